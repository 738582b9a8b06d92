from dataclasses import replace

import pytest

from louvain_um.core.ledger import GROUPS
from louvain_um.placement.machine.profiles import load_machine
from louvain_um.profiling.access.recorded_plans import declared
from louvain_um.profiling.simulator import load_trace
from louvain_um.profiling.sweep.replay import Point, replay
from louvain_um.profiling.sweep.replay_tables import groups
from louvain_um.profiling.sweep.results import gains
from louvain_um.profiling.thesis.published import PEAK_MB
from louvain_um.profiling.thesis.rundemanen import RESERVED
from louvain_um.profiling.thesis.stand_ins import stand_in

NINE = tuple(f"adv{i}" for i in range(1, 10))
SCALE = 1 / 32
RATES = (0.0, 30.0, 50.0, 70.0)


@pytest.fixture(scope="module")
def recorded():
    original = stand_in("audikw_1")
    subject = original.subject(SCALE)
    return subject, subject.record()


@pytest.fixture(scope="module")
def found(recorded):
    _, trace = recorded
    machine, known = load_machine("p4000"), {}
    return [
        replay(
            trace,
            Point(graph="audikw_1", policy=policy, oversubscription=rate, gpu="p4000"),
            machine,
            known=known,
        )[0]
        for policy in ("base", *NINE, "auto")
        for rate in RATES
    ]  # fmt: skip


def test_the_thesis_s_order_comes_out(found):
    gain = gains(found)
    assert all(gain[policy][0.0] < 1 for policy in NINE)
    for rate in (30.0, 50.0, 70.0):
        best = sorted(NINE, key=lambda policy: -gain[policy][rate])
        assert best[0] in ("adv2", "adv7")
        assert {"adv2", "adv7"} <= set(best[:3])
        assert 0.5 < gain["adv3"][rate] < 1.7
        assert 0.5 < gain["adv4"][rate] < 1.7
        assert gain["auto"][rate] >= gain[best[0]][rate]
    assert gain["adv2"][50.0] > gain["adv2"][30.0]
    assert gain["adv7"][70.0] > gain["adv2"][70.0]


def test_a_saved_recording_gives_what_the_study_gave(recorded, found, tmp_path):
    _, trace = recorded
    trace.save(tmp_path / "t.npz")
    again = load_trace(tmp_path / "t.npz")
    assert again.reserved == round(SCALE * RESERVED)
    point = Point(graph="audikw_1", policy="base", oversubscription=30.0, gpu="p4000")
    row = replay(again, point, load_machine("p4000"))[0]
    studied = next(r for r in found if (r["policy"], r["oversubscription"]) == ("base", 30.0))
    assert row == studied
    less = replay(replace(again, reserved=0), point, load_machine("p4000"))[0]
    assert less["budget_bytes"] == row["budget_bytes"] + again.reserved


def test_sizes_are_the_thesis_s_scaled_down(recorded):
    _, trace = recorded
    peaks = {row["group"]: row["peak_bytes"] for row in groups(trace, "audikw_1", None, 0.0)}
    for group, megabytes in zip(GROUPS, PEAK_MB["audikw_1"], strict=True):
        if group in ("graph", "scratch"):
            assert peaks[group] == pytest.approx(megabytes * 1e6 * SCALE, rel=0.4)
    tables = {array.name for array in trace.arrays if array.group == "hash"}
    assert tables == {"globalHashTable", "hashTablePtrs", "devPrimes"}


def test_passes_are_those_that_accesses_tell(recorded):
    original = stand_in("audikw_1")
    assert original.passes == 3
    _, trace = recorded
    targets = next(a for a in declared(trace) if a.name == "targets.0")
    assert targets.accesses["move", "stream"] == pytest.approx(3 * targets.size, rel=0.1)
