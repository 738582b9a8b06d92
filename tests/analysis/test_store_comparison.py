"""``louvain-um stores``: every store on the same batches, resumed where it was interrupted."""

import json

import pytest
from typer.testing import CliRunner

from louvain_um.analysis import store_comparison as comparison
from louvain_um.cli import app
from louvain_um.dynamic.stores import STORES

pytestmark = pytest.mark.deep

GRAPH = "example:les-miserables"


def run(*arguments):
    result = CliRunner().invoke(app, ["stores", *arguments])
    return result.exit_code, result.output


def test_every_store_ends_with_the_same_contents(tmp_path):
    code, text = run(
        GRAPH, "--stores", "all", "--batch", "5,20", "--steps", "2", "-o", str(tmp_path), "--json"
    )
    assert code == 0, text
    records = json.loads(text)["results"]
    assert [(r["store"], r["batch"]) for r in records] == [(s, b) for s in STORES for b in (5, 20)]
    for batch in (5, 20):
        assert len({r["contents"] for r in records if r["batch"] == batch}) == 1
    assert all(r["insert_edges_per_second"] > 0 and r["traverse_ms"] > 0 for r in records)
    held = json.loads((tmp_path / "results.json").read_text())
    assert held["results"] == records
    assert len((tmp_path / "results.csv").read_text().splitlines()) == 1 + len(records)
    assert (tmp_path / "rates.svg").exists()
    page = (tmp_path / "report.html").read_text()
    assert page.count("<svg") == 3
    assert page.count("<tr>") == 1 + len(records)
    assert all(f"<td>{store}</td>" in page for store in STORES)
    assert "<script" not in page


def test_a_comparison_continues_and_keeps_what_it_has(tmp_path, monkeypatch):
    first = ("--steps", "1", "--batch", "4", "-o", str(tmp_path))
    assert run(GRAPH, "--stores", "rows", *first)[0] == 0
    before = json.loads((tmp_path / "results.json").read_text())["results"]
    kept, calls = comparison._run, []
    monkeypatch.setattr(comparison, "_run", lambda *a: calls.append(a[1]) or kept(*a))
    code, text = run(GRAPH, "--stores", "rows,csr", *first)
    assert code == 0
    assert "csr" in text
    assert calls == ["csr"]
    assert json.loads((tmp_path / "results.json").read_text())["results"][:1] == before
    code, text = run(GRAPH, "--steps", "3", "-o", str(tmp_path))
    assert code == 1
    assert "other options" in text
    assert run(GRAPH, "--steps", "3", "-o", str(tmp_path), "--force", "-q")[0] == 0


def test_a_comparison_that_fails_before_its_first_point_leaves_no_folder(tmp_path, monkeypatch):
    out, before = tmp_path / "out", comparison._run
    monkeypatch.setattr(comparison, "_run", lambda *_: 1 / 0)
    assert run(GRAPH, "--stores", "rows", "--steps", "1", "-o", str(out))[0] != 0
    assert not out.exists()
    out.mkdir()
    (out / "points.jsonl").touch()  # as a kill leaves it
    monkeypatch.setattr(comparison, "_run", before)
    some = ("--stores", "rows", "--batch", "4", "--steps", "2", "-o", str(out), "-q")
    assert run(GRAPH, *some)[0] == 0


def test_a_stream_of_other_weights_is_measured_again(tmp_path):
    file, words = tmp_path / "timed.txt", ("--every", "2", "--stores", "rows", "--json")
    digests = set()
    for weight in (5, 7):
        file.write_text(f"1 2 1 1\n2 3 2 {weight}\n3 1 3 1\n")
        code, text = run(str(file), *words, "-o", str(tmp_path / "out"))
        assert code == 0, text
        digests.add(json.loads(text)["results"][0]["digest"])
    assert len(digests) == 2
    assert len(json.loads((tmp_path / "out" / "results.json").read_text())["results"]) == 2


def test_trials_count_the_same_on_every_store(tmp_path):
    code, text = run(
        GRAPH, "--stores", "all", "--batch", "9", "--steps", "1", "--also", "all", "-o",
        str(tmp_path), "--json",
    )  # fmt: skip
    assert code == 0, text
    records = json.loads(text)["results"]
    assert {r["triangles"] for r in records} == {records[0]["triangles"]}
    assert len({r["contents"] for r in records}) == 1
    for record in records:
        assert None not in record.values()
    page = (tmp_path / "report.html").read_text()
    assert page.count("<tr>") == 2 * (1 + len(records))
    code, text = run(GRAPH, "--also", "skew,colour", "-o", str(tmp_path / "other"))
    assert (code != 0, "colour" in text, "Traceback" in text) == (True, True, False)
    assert "must be all, or some of sorted, skew" in text
    code, text = run(GRAPH, "--batch", "9", "--steps", "1", "-o", str(tmp_path))
    assert (code, "other options" in text) == (1, True)


def test_tables_are_as_wide_as_the_terminal(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    stores = "rows,pages:layout=aos:page=128"
    options = ("--batch", "9", "--steps", "1", "--also", "algorithms", "-o", str(tmp_path))
    code, text = run(GRAPH, "--stores", stores, *options)
    assert code == 0, text
    shown = text[: text.index("results.json")]
    assert "…" not in shown
    assert max(map(len, shown.splitlines())) <= 80
    assert shown.count("pages:layout=aos:page=128") == shown.count("store") > 1
    assert all(name in shown for name in ("inserts/s", "PageRank", "Louvain", "copy"))


def test_directed_and_unchecked_stores_are_compared_with_the_same_edges(tmp_path):
    file = tmp_path / "ring.txt"
    file.write_text("".join(f"{k} {(k + 1) % 40}\n" for k in range(40)))
    stores = "rows,pages:directed=yes,pages:deletion=reverse,ouro-va-p:update=unchecked"
    code, text = run(
        str(file), "--stores", stores, "--batch", "30", "--also", "all", "-o", str(tmp_path / "a"),
        "--json",
    )  # fmt: skip
    assert code == 0, text
    records = json.loads(text)["results"]
    assert len({r["contents"] for r in records}) == 1
    assert [r["store"] for r in records if r["pagerank_ms"] is None] == ["pages:directed=yes"]
    assert all(r["mixed_ms"] > 0 and r["spmv_ms"] > 0 for r in records)
    code, text = run(GRAPH, "--stores", "ouro-va-p:update=unchecked", "-o", str(tmp_path / "b"))
    assert (code, len(text.strip().splitlines())) == (2, 1)
    assert "does not add to weights; leave it out" in text
    assert not (tmp_path / "b").exists()


def test_a_device_that_is_not_there_or_lacks_a_store_is_refused(tmp_path, monkeypatch):
    code, text = run(GRAPH, "--device", "tpu", "-o", str(tmp_path / "a"))
    assert (code != 0, "tpu" in text) == (True, True)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    code, text = run(GRAPH, "--device", "cuda", "-o", str(tmp_path / "b"))
    assert code != 0
    assert len(text.strip().splitlines()) <= 2
    assert not (tmp_path / "b" / "results.json").exists()


def test_timed_streams_are_replayed(tmp_path):
    file = tmp_path / "calls.txt"
    file.write_text("".join(f"{k % 7} {k % 5} {k}\n" for k in range(40)))
    out = tmp_path / "out"
    code, text = run(str(file), "--every", "10s", "--window", "20s", "-o", str(out), "--json")
    assert code == 0, text
    records = json.loads(text)["results"]
    assert len({r["contents"] for r in records}) == 1
    assert {r["batch"] for r in records} == {0}


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ([], "-o"),
        (["--stores", "heap", "-o", "OUT"], "store"),
        (["--batch", "many", "-o", "OUT"], "--batch"),
        (["--batch", "0", "-o", "OUT"], "--batch"),
        (["--window", "3d", "-o", "OUT"], "--window"),
        (["--every", "soon", "-o", "OUT"], "--every"),
    ],
)
def test_bad_arguments_are_one_line(arguments, text, tmp_path):
    arguments = [str(tmp_path / "out") if a == "OUT" else a for a in arguments]
    code, output = run(GRAPH, *arguments)
    assert code in (1, 2)
    assert text in output
    assert "Traceback" not in output
