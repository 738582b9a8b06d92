"""Damaged saved files give an error in one line, or a valid result; never anything else."""

import shutil
from contextlib import suppress

import pytest

from louvain_um.errors import LouvainUmError
from tests.paths import ROOT
from tests.saved.continued import (
    continued,
    draw_stream,
    read_partitions,
    read_table_of_addresses,
    resume_comparison,
    resume_profile,
    resume_stream,
)
from tests.saved.saved_files import (
    failure_of,
    read_machine,
    read_policy,
    read_recording,
    read_report,
    read_timed_edges,
    read_tracker,
    saved_files,
)
from tests.tiers import EXAMPLES

pytestmark = pytest.mark.deep

ROUNDS = 4 * EXAMPLES
"""Seeds for each file; `benchmarks/fuzz.py` takes as many as time allows."""

CORPUS = ROOT / "tests" / "corpus" / "saved"
"""Files that once gave a traceback."""


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved")
    return [*saved_files(folder), *continued(folder)]


def test_whole_files_are_read(files, tmp_path):
    for saved in files:
        copy = tmp_path / saved.whole.name
        if not copy.exists():
            (shutil.copytree if saved.whole.is_dir() else shutil.copy)(saved.whole, copy)
        saved.read(copy)


def test_damaged_files_give_one_line_or_a_result(files, tmp_path):
    for seed in range(ROUNDS):
        for saved in files:
            assert (saved.name, seed, failure_of(saved, seed, tmp_path)) == (saved.name, seed, None)


@pytest.mark.parametrize("path", sorted(CORPUS.iterdir()), ids=lambda path: path.name)
def test_files_that_once_failed_are_refused_or_read(path, tmp_path):
    copy = tmp_path / path.name
    (shutil.copytree if path.is_dir() else shutil.copy)(path, copy)
    readers = {
        ".npz": (read_recording, read_report, read_tracker),
        ".csv": (read_timed_edges, read_table_of_addresses, read_partitions),
        ".parquet": (read_table_of_addresses, read_partitions),
        ".toml": (read_policy, read_machine),
    }
    folders = (read_report, resume_stream, draw_stream, resume_profile, resume_comparison)
    for read in readers.get("" if path.is_dir() else path.suffix, folders):
        with suppress(LouvainUmError):
            read(copy)
