"""Ranks that fail, stall or run out of disk: never a hang, never a wrong label."""

import errno
import functools
import json
import time
from pathlib import Path
from unittest import mock

import numpy as np
import pyarrow.parquet as pq
import pytest

from louvain_um import Graph
from louvain_um.core import atomic_files
from louvain_um.distributed.checkpoint import RUN
from louvain_um.errors import LouvainUmError, WorkerLostError
from louvain_um.options import Options
from tests.distributed.runs import METHODS, Counting, assert_equal, graph_named, one_process
from tests.distributed.threads import detect_in_threads, run_threads
from tests.tiers import EXAMPLES


class BrokenRankError(Exception):
    """What a test breaks a rank with."""


def fail():
    raise BrokenRankError("broken on purpose")


def run(method, folder=None, *, ranks=3, name="lfr", **values):
    options = Options(method=method, device="cpu")
    graph = graph_named(name)
    return detect_in_threads(
        graph, options, ranks=ranks, collapse_arcs=1 << 10, checkpoint=folder, **values
    )


def collectives_of(method, folder=None, **values):
    """Return how many collectives a run takes, and its result."""
    made = []

    def make(meeting, rank):
        made.append(Counting(meeting, rank, -1, 0, fail))
        return made[-1]

    found = run(method, folder, communicator=make, **values)
    return made[0].calls, found


@pytest.mark.deep
@pytest.mark.parametrize("method", METHODS)
def test_a_failure_at_any_collective_is_resumed_on_fewer_ranks(method, tmp_path):
    total, _ = collectives_of(method, tmp_path / "whole")
    assert total > 50
    replays = set()
    for at in range(0, total, max(1, total // (12 * EXAMPLES))):
        folder = tmp_path / str(at)
        broken = functools.partial(Counting, victim=1, at=at, act=fail)
        with pytest.raises(BrokenRankError):
            run(method, folder, communicator=broken)
        resumed = run(method, folder, ranks=2)
        assert_equal(resumed, one_process("lfr", method))
        replays.add(resumed.provenance["replayed"])
    assert {0} < replays


def test_ranks_of_one_process_do_not_parse_files_at_once(tmp_path):
    """CPython 3.11 raises SystemError if they do."""
    run("louvain", tmp_path)
    load, inside, most = np.load, [0], [0]

    def slow(*args, **more):
        inside[0] += 1
        most[0] = max(most[0], inside[0])
        time.sleep(0.002)
        try:
            return load(*args, **more)
        finally:
            inside[0] -= 1

    with mock.patch.object(np, "load", slow):
        resumed = run("louvain", tmp_path)
    assert_equal(resumed, one_process("lfr", "louvain"))
    assert resumed.provenance["replayed"]
    assert most == [1]


def test_a_finished_run_is_replayed_on_more_ranks(tmp_path):
    run("leiden", tmp_path)
    again = run("leiden", tmp_path, ranks=5)
    assert_equal(again, one_process("lfr", "leiden"))
    assert again.provenance["replayed"] >= len(again.levels)


def test_other_ranks_learn_why():
    reasons = []

    def task(ranks):
        if ranks.rank == 2:
            fail()
        try:
            ranks.sum_exact([1])
        except WorkerLostError as error:
            reasons.append(str(error))
            raise

    with pytest.raises(BrokenRankError):
        run_threads(task, 3)
    assert reasons == ["rank 2 of 3 failed: broken on purpose"] * 2


def test_a_stalled_rank_ends_in_an_error():
    stalled = functools.partial(Counting, victim=1, at=20, act=lambda: time.sleep(2))
    since = time.monotonic()
    with pytest.raises(WorkerLostError, match=r"did not answer for 0\.5 s"):
        run("louvain", communicator=stalled, patience=0.5)
    assert time.monotonic() - since < 30


def test_nothing_is_exchanged_after_an_abort():
    def task(ranks):
        ranks.abort("enough")
        for _ in range(2):
            with pytest.raises(WorkerLostError, match="enough"):
                ranks.allgatherv(np.zeros(1))

    run_threads(task, 2)


def changed(pattern, change):
    """Return a function that changes what files of a folder hold."""

    def damage(folder):
        for file in sorted(folder.glob(pattern)):
            before = file.read_bytes()
            assert change(before) != before
            file.write_bytes(change(before))

    return damage


def reshaped(folder):
    for file in folder.glob("move.*.npy"):
        np.save(file, np.load(file).reshape(1, -1))


def unsealed(folder):
    for seal in folder.glob("move.*.json"):
        seal.unlink()


DAMAGE = {
    "cut": changed("move.0.0.*.npy", lambda data: data[:-8]),
    "bytes": changed("move.0.0.*.npy", lambda data: data[:200] + b"\1" + data[201:]),
    "shape": reshaped,
    "no seal": unsealed,
    "key": changed("move.*.json", lambda seal: seal.replace(b'"moves"', b'"mowes"')),
    "slices": changed("move.*.json", lambda s: s.replace(b'"slices": [[', b'"slices": [7, [')),
    "gain": changed("move.*.json", lambda seal: seal.replace(b'"gain": ', b'"gain": 1')),
    "nested": changed("move.*.json", lambda seal: b"[" * 100_000),
    "no text": changed("move.*.json", lambda seal: b"\xff" + seal),
    "empty": changed("move.*.json", lambda seal: b"{}"),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_checkpoint_does_not_count(tmp_path, kind):
    run("louvain", tmp_path)
    DAMAGE[kind](tmp_path)
    again = run("louvain", tmp_path)
    # Of a damaged first step, the steps behind it count.
    assert bool(again.provenance["replayed"]) == (kind in ("cut", "bytes"))
    assert_equal(again, one_process("lfr", "louvain"))


def test_checkpoints_whose_run_is_unknown_do_not_count(tmp_path):
    run("louvain", tmp_path)
    (tmp_path / RUN).write_text("damaged")
    found = run("leiden", tmp_path)
    assert found.provenance["replayed"] == 0
    assert_equal(found, one_process("lfr", "leiden"))


def test_a_run_of_many_lines_is_refused_in_one(tmp_path):
    run("louvain", tmp_path)
    (tmp_path / RUN).write_text('{"vertices": "a\\nb"}')
    with pytest.raises(LouvainUmError, match=r"^[^\n]*another run[^\n]*$"):
        run("louvain", tmp_path)


@pytest.mark.parametrize(("name", "method"), [("rmat", "louvain"), ("lfr", "leiden")])
def test_checkpoints_of_another_run_are_refused(tmp_path, name, method):
    run("louvain", tmp_path)
    with pytest.raises(LouvainUmError, match=r"another run.*name another folder"):
        run(method, tmp_path, name=name)


def test_a_graph_that_differs_in_one_edge_is_another_run(tmp_path):
    separate = Graph.from_edges([0, 1, 2, 3, 4, 5], [1, 2, 0, 4, 5, 3])
    crossed = Graph.from_edges([0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 0])
    assert np.array_equal(separate.degrees, crossed.degrees)
    options = Options(device="cpu")
    detect_in_threads(separate, options, ranks=2, collapse_arcs=0, checkpoint=tmp_path)
    with pytest.raises(LouvainUmError, match="its graph is"):
        detect_in_threads(crossed, options, ranks=3, collapse_arcs=0, checkpoint=tmp_path)


def test_checkpoints_of_another_version_are_refused(tmp_path):
    (tmp_path / RUN).write_text(json.dumps({"version": "older"}))
    with pytest.raises(LouvainUmError, match="another run"):
        run("louvain", tmp_path)


def test_a_full_disk_ends_every_rank_in_one_line(tmp_path):
    def full(path):
        if path.name.startswith(".move.0.0"):
            raise OSError(errno.ENOSPC, "No space left on device")

    with (
        mock.patch.object(atomic_files, "flush", full),
        pytest.raises(LouvainUmError, match=r"disk is full.*free some space"),
    ):
        run("louvain", tmp_path)
    assert not list(tmp_path.glob("move*"))
    assert_equal(run("louvain", tmp_path), one_process("lfr", "louvain"))


@pytest.mark.deep
def test_a_failure_at_any_collective_leaves_all_files_or_none(tmp_path):
    total, whole = collectives_of("louvain", labels=str(tmp_path / "whole"))
    names = [Path(file).name for file in whole.provenance["files"]]
    for at in (0, 1, 2, 20, *range(total - 4, total)):
        folder = tmp_path / str(at)
        broken = functools.partial(Counting, victim=1, at=at, act=fail)
        with pytest.raises(BrokenRankError):
            run("louvain", labels=str(folder), communicator=broken)
        left = sorted(path.name for path in folder.glob("*.parquet"))
        assert left in ([], names)
        again = run("louvain", ranks=2, labels=str(folder), force=bool(left))
        found = pq.read_table(folder)["community"].to_pylist()
        assert found == whole.labels.tolist()
        assert len(again.provenance["files"]) == len(list(folder.iterdir())) == 2
