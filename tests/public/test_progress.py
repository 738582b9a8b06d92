"""`progress=True` shows one line in notebooks and on terminals, and nothing elsewhere."""

import io
import re

import pytest

import louvain_um as lu

KARATE = lu.read_graph("example:karate")


class Terminal(io.StringIO):
    def isatty(self):
        return True


def terminal(monkeypatch):
    """Return what stands for stderr from now on."""
    monkeypatch.setattr("louvain_um.progress.PAUSE_SECONDS", 0.0)
    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    return screen


def lines(screen):
    """Return the texts that a line has had."""
    return [text.removeprefix("\x1b[K") for text in screen.getvalue().split("\r")[1:]]


def test_a_terminal_shows_levels_on_one_line_and_clears_it(monkeypatch):
    screen = terminal(monkeypatch)
    seen = []
    found = lu.leiden(KARATE, device="cpu", progress=True, observer=seen.append)
    shown = lines(screen)
    assert any(text.startswith("level 0 · moving · iteration 0") for text in shown)
    assert any("modularity 0.4" in text for text in shown)
    assert shown[-1] == ""
    assert "\n" not in screen.getvalue()
    assert seen
    assert found.labels.tolist() == lu.leiden(KARATE, device="cpu").labels.tolist()


def test_runs_are_counted(monkeypatch):
    screen = terminal(monkeypatch)
    found = lu.louvain(KARATE, device="cpu")
    lu.ensemble(KARATE, runs=2, device="cpu", progress=True)
    lu.resolution_profile(KARATE, points=2, runs=1, device="cpu", progress=True)
    found.significance(graphs=2, device="cpu", progress=True)
    shown = lines(screen)
    for text in ("1 of 2, seed 1", "0 of 2, resolution", "1 of 2, random graph 2"):
        assert any(line.partition(" ")[2].startswith(text) for line in shown), shown
    assert any(line.startswith(10 * "█" + 10 * "░" + " 1 of 2") for line in shown)
    assert shown[-1] == ""


def test_an_error_clears_the_line(monkeypatch):
    screen = terminal(monkeypatch)

    def fail(event):
        raise ValueError(event.phase)

    with pytest.raises(ValueError, match="load"):
        lu.louvain(KARATE, device="cpu", progress=True, observer=fail)
    assert lines(screen)[-1] == ""


def test_nothing_is_shown_elsewhere(capfd):
    lu.louvain(KARATE, device="cpu", progress=True)
    lu.ensemble(KARATE, runs=2, device="cpu", progress=True)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("call", [lu.louvain, lu.leiden, lu.ensemble, lu.resolution_profile])
def test_other_values_are_refused(call):
    with pytest.raises(lu.OptionError, match="progress must be True"):
        call(KARATE, device="cpu", progress="yes")


@pytest.mark.site
def test_a_notebook_shows_a_line_that_is_replaced_a_table_and_a_picture():
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("matplotlib")
    code = """
import louvain_um as lu, louvain_um.progress
louvain_um.progress.PAUSE_SECONDS = 0.0
g = lu.read_graph("example:les-miserables")
r = lu.louvain(g, device="cpu", progress=True)
e = lu.ensemble(g, runs=2, device="cpu", progress=True)
r"""
    cells = [nbformat.v4.new_code_cell(each) for each in (code, "r.describe()")]
    book, sent = nbformat.v4.new_notebook(cells=cells), []

    class Client(nbclient.NotebookClient):
        def process_message(self, message, cell, index):
            sent.append(message["content"].get("data", {}).get("text/plain", ""))
            return super().process_message(message, cell, index)

    Client(book, timeout=300).execute()
    *lines, result = book.cells[0].outputs
    assert [each.output_type for each in lines] == ["display_data"] * 2  # replaced, not added
    assert all(each.data["text/plain"].endswith(" s") for each in lines)
    assert any(text.startswith("level 0 · moving · iteration 0") for text in sent)
    assert 10 * "█" + 10 * "░" + " 1 of 2, seed 1" in sent
    shown = result.data["text/html"]
    assert re.search(r"<img|<svg", shown)
    assert "Valjean" in shown
    assert ">Valjean, Marius, Cosette</td>" in book.cells[1].outputs[0].data["text/html"]
