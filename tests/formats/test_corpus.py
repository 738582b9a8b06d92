"""Files that readers once failed on, and random changes of them: never a raw exception."""

import gzip
import random
import shutil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from louvain_um.formats import read_graph
from tests.formats.noise import CORPUS, changed, files_of, read_all

FILES = files_of(CORPUS)


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_known_files(path):
    read_all(path)


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_changed_files(path, tmp_path):
    chance = random.Random(path.name)
    (tmp_path / path.parent.name).mkdir()
    copy = tmp_path / path.parent.name / path.name
    for _ in range(25):
        copy.write_bytes(changed(path.read_bytes(), chance))
        read_all(copy, chance)


@pytest.mark.parametrize(
    "name", ["carriage_returns.csv", "no_namespace.graphml", "mark.mtx", "mark.graph", "mark.gml"]
)
def test_files_that_are_graphs(name, tmp_path):
    shutil.copy(CORPUS / "graphs" / name, tmp_path / name)
    assert read_graph(tmp_path / name).n_edges == (2 if name.endswith("csv") else 1)


def test_what_relates_two_ids_is_no_weight(tmp_path):
    lines = ["a\tn\tb", "bob\tlikes\tdee", "ann\tlikes\tbob", "dee\tknows\tann"]
    (tmp_path / "g.tsv").write_text("\n".join(lines))
    assert read_graph(tmp_path / "g.tsv", header=True).n_edges == 3


@settings(max_examples=200)
@given(st.text('01 \t\n,;"#%/-.eanx', max_size=30), st.sampled_from(["g.txt", "g.txt.gz"]))
def test_any_text(tmp_path_factory, text, name):
    path = tmp_path_factory.getbasetemp() / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith("gz") else text.encode())
    read_all(path)
