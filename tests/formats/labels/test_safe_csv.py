"""Names that spreadsheets would run as formulas."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from louvain_um.errors import LouvainUmError
from louvain_um.formats.labels import read_labels, write_labels
from louvain_um.results.comparison import Labels

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


def test_names_are_unchanged_by_default(tmp_path):
    path = tmp_path / "labels.csv"
    write_labels(path, Labels(np.array(NAMES, object), np.arange(len(NAMES))))
    assert read_labels(path).vertices.tolist() == NAMES


def test_numbers_are_unchanged(tmp_path):
    path = tmp_path / "labels.csv"
    write_labels(path, Labels(np.array([-1, 2]), np.array([0, 1])), safe_csv=True)
    assert path.read_text().split() == ["vertex,community", "-1,0", "2,1"]


def test_other_files_are_refused(tmp_path):
    with pytest.raises(LouvainUmError, match=r"--safe-csv is for .csv and .tsv"):
        write_labels(tmp_path / "a.json", Labels(np.arange(1), np.arange(1)), safe_csv=True)
    assert list(tmp_path.iterdir()) == []
