import csv
import io
import itertools
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import louvain_um as lu
from louvain_um.errors import LouvainUmError
from louvain_um.formats.labels import read_labels, write_labels
from louvain_um.results.comparison import Labels
from tests.paths import ROOT

GRAPH = lu.as_graph((["ann", "bob", "cid"], ["bob", "cid", "dan"]))
RESULT = lu.louvain(GRAPH)
PLAIN = lu.louvain(lu.Graph.from_edges([0, 1, 2], [1, 2, 3]))


def written(path, labels, **options):
    lu.write_labels(labels, path, **options)
    found = lu.read_labels(path)
    return dict(zip(found.vertices.tolist(), found.communities.tolist(), strict=True))


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (RESULT, RESULT.to_dict()),
        (RESULT.to_frame(), RESULT.to_dict()),
        (PLAIN, PLAIN.to_dict()),
        ({"ann": "red", "bob": "blue"}, {"ann": "red", "bob": "blue"}),
        ({7: 0, 3: 1}, {7: 0, 3: 1}),
        ([{"ann", "bob"}, {"cid"}], {"ann": 0, "bob": 0, "cid": 1}),
        ([["ann", "bob"], ["cid"]], {"ann": 0, "bob": 0, "cid": 1}),
        ([4, 4, 9], {0: 4, 1: 4, 2: 9}),
        (np.array([4, 4, 9], np.uint8), {0: 4, 1: 4, 2: 9}),
        (np.array([4.0, 9.0]), {0: 4, 1: 9}),
        (pd.Series([4, 9], index=["bob", "ann"]), {"bob": 4, "ann": 9}),
        (pd.Series([4, 9], index=[1, 0]), {0: 9, 1: 4}),
        (pd.Series(["x", "y"], dtype="category"), {0: "x", 1: "y"}),
        (Labels(np.array(["ann"], object), np.array([3])), {"ann": 3}),
        ([], {}),
    ],
    ids=[
        "result", "frame", "unnamed", "dict", "ids", "sets", "lists", "list", "array", "whole",
        "series", "shuffled", "category", "labels", "empty",
    ],
)  # fmt: skip
def test_whatever_holds_labels_is_written(tmp_path, labels, expected):
    assert written(tmp_path / "a.csv", labels) == expected
    assert written(tmp_path / "a.parquet", labels) == expected


@pytest.mark.parametrize("labels", [[0, 0, 1], np.array([0, 0, 1]), pd.Series([0, 0, 1])])
def test_names_are_of_labels_in_vertex_order(tmp_path, labels):
    names = ["ann", "bob", "cid"]
    expected = {"ann": 0, "bob": 0, "cid": 1}
    assert written(tmp_path / "a.json", labels, names=names) == expected
    assert written(tmp_path / "b.json", labels, names=pd.Index(names)) == expected


def test_names_leave_a_result_its_hierarchy(tmp_path):
    lu.write_labels(PLAIN, tmp_path / "a.csv", names=list("wxyz"), hierarchy=True)
    lines = (tmp_path / "a.csv").read_text().splitlines()
    assert lines[0].startswith("vertex,community")
    assert [line[0] for line in lines[1:]] == list("wxyz")


def test_the_former_order_of_arguments_is_taken(tmp_path):
    lu.write_labels(tmp_path / "a.csv", [0, 1])
    assert lu.read_labels(tmp_path / "a.csv").communities.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("labels", "options", "message"),
    [
        ([0, 1], {"names": ["ann"]}, "1 names for 2 labels"),
        ([0, 1], {"names": ["ann", "ann"]}, "listed twice"),
        ([0, 1], {"names": ["ann", None]}, "name at index 1 is missing"),
        ([0, 1], {"names": [["ann"], ["bob"]]}, "names must be"),
        ({"ann": 0}, {"names": ["ann"]}, "leave names out"),
        (RESULT, {"names": ["a", "b", "c", "d"]}, "leave names out"),
        ([0, 1], {"hierarchy": True}, "only a result has a hierarchy"),
        ([{"ann"}, {"ann"}], {}, "overlap"),
        ([0.5, 1.0], {}, "label at index 0 is 0.5"),
        ([1, None], {}, "label at index 1 is missing"),
        (pd.Series([1, None], dtype="Int64"), {}, "label at index 1 is missing"),
        (pd.array([1, None], dtype="Int64"), {}, "label at index 1 is missing"),
        (np.zeros((2, 2)), {}, "one-dimensional"),
        ([[1, 2], 3], {}, "integers or strings"),
        (np.array(["2020-01-01"], "M8[D]"), {}, "integers or strings"),
    ],
)
def test_bad_labels_are_reported_and_nothing_is_written(tmp_path, labels, options, message):
    with pytest.raises(LouvainUmError, match=message) as error:
        lu.write_labels(labels, tmp_path / "a.csv", **options)
    assert "\n" not in str(error.value)
    assert list(tmp_path.iterdir()) == []


def test_members_of_sets_are_written_in_the_same_order_by_every_process(tmp_path):
    code = "import louvain_um as lu; lu.write_labels([{'ann', 'bob', 'cid', 7}, {'eve'}], '{}.csv')"
    for seed in ("1", "2", "3"):
        command = [sys.executable, "-c", code.replace("{}", seed)]
        subprocess.run(command, cwd=tmp_path, env=os.environ | {"PYTHONHASHSEED": seed,
                       "PYTHONPATH": str(ROOT)}, check=True, timeout=100)  # fmt: skip
    assert len({file.read_bytes() for file in tmp_path.iterdir()}) == 1


def test_paths_are_text_or_bytes(tmp_path):
    result = lu.louvain(lu.as_graph([(0, 1)]), device="cpu")
    tracker = lu.Tracker(lu.DynamicGraph(2))
    takers = (
        lu.read_labels, lambda path: lu.write_labels([0, 1], path), tracker.save, lu.Tracker.load,
        result.save, lu.Communities.load,
    )  # fmt: skip
    for take, wrong in itertools.product(takers, (None, 7, io.StringIO("0 1"))):
        with pytest.raises(lu.GraphError, match="as a path"):
            take(wrong)
    path = os.fsencode(tmp_path / "a.csv")
    lu.write_labels([0, 1], path)
    assert lu.read_labels(path).communities.tolist() == [0, 1]


NAMES = ["=cmd|' /C calc'!A0", "+1", "-1+1", "@SUM(A1)", " =1", "'=1", "'tis", "ann", "007", "a=b"]


@pytest.mark.parametrize("suffix", ["csv", "tsv"])
def test_no_name_begins_a_formula_and_all_can_be_restored(tmp_path, suffix):
    path = tmp_path / f"labels.{suffix}"
    write_labels(path, Labels(np.array(NAMES, object), np.arange(len(NAMES))), safe_csv=True)
    with path.open(newline="") as file:
        rows = list(csv.reader(file, delimiter="," if suffix == "csv" else "\t"))[1:]
    assert not [name for name, _ in rows if name.lstrip()[0] in "=+-@"]
    assert {"ann", "007", "a=b"} <= {name for name, _ in rows}
    read = read_labels(path)
    assert [name.removeprefix("'") for name in read.vertices] == NAMES


def test_numbers_are_unchanged(tmp_path):
    path = tmp_path / "labels.csv"
    write_labels(path, Labels(np.array([-1, 2]), np.array([0, 1])), safe_csv=True)
    assert path.read_text().split() == ["vertex,community", "-1,0", "2,1"]


def test_other_files_are_refused(tmp_path):
    with pytest.raises(LouvainUmError, match=r"--safe-csv is for .csv and .tsv"):
        write_labels(tmp_path / "a.json", Labels(np.arange(1), np.arange(1)), safe_csv=True)
    assert list(tmp_path.iterdir()) == []
