"""Whatever names hold, each writer's output is valid, or it is refused in one line."""

import csv
import json
import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pyarrow.parquet as pq
import pytest

import louvain_um as lu
from louvain_um.drawing.reports import page
from louvain_um.formats.labels import read_labels

HOSTILE = {
    "control": "a\x01b", "escape": "\x1b[31mred", "NUL": "a\0", "delete": "a\x7f",
    "surrogate": "a\udc80", "quotes": "\"a'b\"", "newlines": "a\nb\r\nc\rd", "tab": "a\tb",
    "formula": "=cmd|'/c calc'!A0", "script": "</script><script>alert(1)</script>",
    "entity": "&amp;<!--]]>", "noncharacter": "a\uffff", "right to left": "\u202eabc\u05d0",
    "mathematics": "$\\frac{$", "long": "x" * 100_000, "empty": "", "comma": "a,b;c",
    "comment": "#a", "number": "007", "byte order mark": "\ufeffb",
}  # fmt: skip


@pytest.fixture(params=HOSTILE)
def found(request):
    names = np.array([HOSTILE[request.param], "b", "c", "d"], object)
    graph = lu.Graph.from_edges([0, 0, 1, 2], [1, 2, 2, 3], names=names)
    return lu.louvain(graph, device="cpu")


def refused_in_one_line(write):
    """Return whether a writer refuses, after a check of what it says."""
    try:
        write()
    except lu.LouvainUmError as error:
        said = str(error)
    else:
        return False
    assert "\n" not in said
    assert len(said) < 600
    return True


@pytest.mark.parametrize(
    "suffix", ["graphml", "gexf", "cyjs", "csv", "tsv", "txt", "npz", "parquet"]
)
def test_graphs_come_back_or_are_refused(tmp_path, found, suffix):
    out = tmp_path / f"out.{suffix}"
    if refused_in_one_line(lambda: lu.write_graph(out, found.graph)):
        assert not out.exists()
        return
    if suffix in ("graphml", "gexf"):
        ElementTree.parse(out)
    if suffix == "cyjs":
        json.loads(out.read_bytes())
    again = lu.read_graph(out)
    assert sorted(map(str, again.names.tolist())) == sorted(found.names.tolist())


LONG = {
    "named columns.csv": "source,target,weight\n{0},{1},2\n{1},c,1\n",
    "quoted.csv": '"{0}","{1}"\n"{1}","c"\n',
    "header.csv": "x{0},{1}\n1,2\n2,3\n",
    "blanks.txt": "# {0}\n{0} {1}\n{1} c\n",
    "neighbours.adjlist": "{0} {1}\n{1} c\n",
    "pajek.net": '*Vertices 3\n1 "{0}"\n2 "{1}"\n3 "c"\n*Edges\n1 2\n2 3\n',
    "empty id.csv": "a,{0}\n,b\n",
    "not a weight.csv": "source,target,weight\na,b,1\n{0},b,{1}\n",
    "one field.csv": "a,b\n{0}\n",
    "cross table.csv": ";n{0};{1}\nn{0};0;1\n{1};1;0\n",
    "repeated.graphml": '<graphml><graph><node id="{0}"/><node id="{0}"/></graph></graphml>',
    "missing.gml": 'graph [ node [ id 1 ] edge [ source "{0}" target 1 ] ]',
}


@pytest.mark.parametrize("file", LONG)
def test_long_names_are_read_or_refused_in_one_short_line(run, tmp_path, file):
    (tmp_path / file).write_text(LONG[file].format("1" * 100_000, "y" * 100_000))
    done = run("convert", tmp_path / file, tmp_path / "out.npz")
    assert done.code in (0, 1)
    assert all(len(line) < 600 for line in done.err.splitlines())
    if done.code:
        assert file.startswith(("empty", "not", "one", "repeated", "missing"))
        assert done.err.count("\n") == 1
    else:
        assert lu.read_graph(tmp_path / "out.npz").n_vertices >= 2


@pytest.mark.parametrize("suffix", ["csv", "tsv", "npz", "parquet", "json"])
@pytest.mark.parametrize("safe", [False, True])
def test_labels_come_back_or_are_refused(tmp_path, found, suffix, safe):
    out = tmp_path / f"out.{suffix}"
    safe = safe and suffix in ("csv", "tsv")
    if refused_in_one_line(lambda: lu.write_labels(found, out, safe_csv=safe)):
        assert not out.exists()
        return
    if suffix in ("csv", "tsv"):
        before = csv.field_size_limit(1 << 20)
        with out.open(encoding="utf-8", newline="") as file:
            rows = [*csv.reader(file, delimiter="," if suffix == "csv" else "\t")]
        csv.field_size_limit(before)
        assert {len(row) for row in rows} == {2}
        guarded = [row[0] for row in rows[1:]]
        assert not safe or not any(name.startswith(("=", "+", "-", "@")) for name in guarded)
        assert [name.removeprefix("'") for name in guarded] == found.names.tolist()
    elif suffix == "parquet":
        assert pq.read_table(out)["vertex"].to_pylist() == found.names.tolist()
    else:
        assert list(map(str, read_labels(out).vertices)) == found.names.tolist()


@pytest.mark.parametrize("kind", ["graph", "dendrogram"])
@pytest.mark.filterwarnings("ignore:Glyph", "ignore:Matplotlib currently does not support")
def test_pictures_are_valid(tmp_path, found, kind):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    axes = found.plot(kind=kind)
    try:
        for suffix in ("svg", "pdf", "png"):
            axes.figure.savefig(tmp_path / f"out.{suffix}")
    finally:
        pyplot.close("all")
    ElementTree.parse(tmp_path / "out.svg")


class Scripts(HTMLParser):
    """Counts the scripts of a page and collects what they hold."""

    def __init__(self):
        super().__init__()
        self.found = []
        self.inside = False

    def handle_starttag(self, tag, attributes):
        self.inside = tag == "script"
        self.found += [""] if self.inside else []

    def handle_endtag(self, tag):
        self.inside = False

    def handle_data(self, data):
        if self.inside:
            self.found[-1] += data


def test_pages_hold_only_their_scripts(found):
    title = found.names[0]
    text = page(found, found.graph, title, 1)
    text.encode("utf-8")
    scripts = Scripts()
    scripts.feed(text)
    plain = Scripts()
    plain.feed(page(lu.louvain(replaced(found.graph), device="cpu"), replaced(found.graph), "x", 1))
    assert len(scripts.found) == len(plain.found)
    assert json.loads(scripts.found[0])
    assert not re.search("[\\0-\\x08\\x1b\\x7f]", text)


def replaced(graph):
    """Return a graph without names."""
    return lu.Graph.from_edges([0, 0, 1, 2], [1, 2, 2, 3])


def test_texts_of_results_have_no_control_characters(found):
    for text in (repr(found), found._repr_html_()):
        assert not re.search("[\\0-\\x08\\x1b\\x7f\\ud800-\\udfff]", text)


@pytest.mark.parametrize(
    "command",
    [["detect"], ["ensemble", "--runs", "2"], ["run", "pagerank"], ["stream", "--every", "2"]],
    ids=lambda command: command[0],
)
def test_commands_guard_names_from_spreadsheets(run, tmp_path, command):
    lines = ["=1+2 b 1", "b c 2", "c =1+2 3"]
    timed = command[0] == "stream"
    (tmp_path / "g.txt").write_text("\n".join(x if timed else x[:-2] for x in lines) + "\n")
    out = tmp_path / ("out" if timed else "out.csv")
    call = [*command, tmp_path / "g.txt", "-o", out, "--safe-csv", "-q"]
    assert run(*call).code == 0
    text = (out / "communities.csv" if timed else out).read_text()
    assert "'=1+2" in text
    assert not re.search('(^|,)"?=', text, re.MULTILINE)
    if not timed:
        assert run(*[each for each in call if each not in ("-o", out)]).code == 2
        assert run(*call[:-4], "-o", tmp_path / "out.json", "--safe-csv").code != 0
