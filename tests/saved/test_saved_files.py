"""Damaged saved files give an error in one line, or a valid result; never anything else."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path

import pytest

from louvain_um.errors import LouvainUmError
from tests.paths import ROOT
from tests.saved.saved_files import (
    Saved,
    failure_of,
    read_machine,
    read_policy,
    read_recording,
    read_report,
    read_timed_edges,
    read_tracker,
    saved_files,
)

ROUNDS = 8
"""Seeds for each file; `benchmarks/fuzz.py` takes as many as time allows."""

CORPUS = ROOT / "tests" / "corpus" / "saved"
"""Files that once gave a traceback."""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Saved]:
    return list(saved_files(tmp_path_factory.mktemp("saved")))


def test_whole_files_are_read(files: list[Saved]):
    for saved in files:
        saved.read(saved.whole)


def test_damaged_files_give_one_line_or_a_result(files: list[Saved], tmp_path: Path):
    for seed in range(ROUNDS):
        for saved in files:
            assert (saved.name, seed, failure_of(saved, seed, tmp_path)) == (saved.name, seed, None)


@pytest.mark.parametrize("path", sorted(CORPUS.iterdir()), ids=lambda path: path.name)
def test_files_that_once_failed_are_refused_or_read(path: Path, tmp_path: Path):
    copy = tmp_path / path.name
    (shutil.copytree if path.is_dir() else shutil.copy)(path, copy)
    readers = {
        ".npz": (read_recording, read_report, read_tracker),
        ".csv": (read_timed_edges,),
        ".toml": (read_policy, read_machine),
    }
    for read in readers.get(path.suffix, (read_report,)):
        with suppress(LouvainUmError):
            read(copy)
