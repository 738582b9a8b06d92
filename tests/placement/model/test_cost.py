from dataclasses import replace

import pytest
from declared_cases import arrays

from louvain_um.core.array_spec import ArraySpec, identity
from louvain_um.placement.layout import fit, lay_out
from louvain_um.placement.machine.profiles import H200, P4000
from louvain_um.placement.model import cost
from louvain_um.placement.model.cost import blocking_factor, launches, remote_seconds, tune
from louvain_um.placement.model.forecast import corrected, forecast
from louvain_um.placement.model.workload import (
    GRAPH_KINDS,
    Facts,
    kind_of,
    seconds_in_core,
    sweeps,
    work_for,
)
from louvain_um.placement.policy.find import find_policy
from louvain_um.placement.policy.policy import Placement

HOST = Placement("host_mapped")

# benchmarks/results/gpu_detect_h200.json: seconds of Louvain, the graph on the device.
MEASURED = [
    ("lfr20", "community_structured", 1_048_576, 40_637_838, 0.0126),
    ("lfr22", "community_structured", 4_194_304, 162_699_488, 0.0357),
    ("lfr24", "community_structured", 16_777_216, 650_300_606, 0.1857),
    ("rmat18", "power_law", 262_144, 7_609_078, 0.0154),
    ("rmat22", "power_law", 4_194_304, 128_304_860, 0.0762),
    ("rmat24", "power_law", 16_777_216, 520_756_880, 0.3206),
    ("stencil150", "mesh", 3_375_000, 86_540_392, 0.0404),
    ("stencil560", "mesh", 175_616_000, 4_549_101_752, 1.7036),
]


@pytest.mark.parametrize(("name", "kind", "n", "arcs", "seconds"), MEASURED, ids=lambda x: str(x))
def test_in_core_predictions_meet_what_was_measured(name, kind, n, arcs, seconds):
    found = GRAPH_KINDS[kind]
    stages = seconds_in_core(found, n, arcs, H200, "louvain", found.visited)
    predicted = sum(s for stage, s in stages.items() if stage != "fetch")
    assert predicted == pytest.approx(seconds, rel=0.2)


def test_a_kind_that_is_not_known_lies_between_the_others():
    n, arcs = 4_000_000, 150_000_000
    took = {
        name: sum(seconds_in_core(kind, n, arcs, H200, "louvain", kind.visited).values())
        for name, kind in GRAPH_KINDS.items()
    }
    assert took["community_structured"] < took["unknown"] < took["power_law"]


@pytest.mark.parametrize(
    ("skew", "name"),
    # Degrees of meshes, of co-authors, of LFR and R-MAT, and of shared/data's networks.
    [(1.0, "mesh"), (1.1, "mesh"), (3.1, "community_structured"), (5.1, "community_structured"),
     (8.4, "community_structured"), (14.0, "power_law"), (17.2, "power_law"), (74.0, "power_law"),
     (None, "unknown")],
)  # fmt: skip
def test_skew_identifies_the_kind(skew, name):
    assert kind_of(skew).name == name


def stream(count, itemsize=4, name="x", size=1000):
    return ArraySpec(
        **identity(name), group="graph", itemsize=itemsize, size=size, stages=("move",),
        accesses={("move", "stream"): count},
    )  # fmt: skip


def test_streams_take_bytes_over_bandwidth_and_random_access_takes_its_rate():
    accesses = {("move", "gather"): 5670, ("refine", "atomic"): 396}
    array = replace(stream(0), accesses=accesses)
    took = remote_seconds(array, HOST, H200, 40)
    assert took["move"] == pytest.approx(1e-5)
    assert took["refine"] == pytest.approx(1e-6)
    assert remote_seconds(stream(51.3e9 / 4), HOST, H200, 40)["move"] == pytest.approx(1)


@pytest.mark.parametrize("kind", ["device", "managed", "prefetched", "read_mostly"])
def test_what_is_on_the_device_costs_the_bus_nothing(kind):
    assert remote_seconds(stream(1e9), Placement(kind), H200, 40) == {}


def test_arrays_that_tell_nothing_are_taken_to_be_read_at_random():
    silent = replace(stream(0), accesses={}, stages=("move", "coarse"))
    assert set(remote_seconds(silent, HOST, H200, 40)) == {"move", "coarse"}


def test_room_that_later_levels_are_not_expected_to_take_costs_nothing_anywhere():
    later = stream(1e9, name="targets.1")
    whole = remote_seconds(later, HOST, H200, 40)["move"]
    assert whole == pytest.approx(cost.TAKEN * remote_seconds(stream(1e9), HOST, H200, 40)["move"])
    assert remote_seconds(later, Placement("split", cost.TAKEN), H200, 40)["move"] == 0
    half = remote_seconds(later, Placement("split", cost.TAKEN / 2), H200, 40)["move"]
    assert half == pytest.approx(whole / 2)


def test_a_byte_is_written_no_faster_than_a_word():
    def adding(itemsize):
        array = stream(0, itemsize=itemsize, name="weights.1")
        array = replace(array, accesses={("aggregate", "stream"): 1e9}, stages=("aggregate",))
        return remote_seconds(array, HOST, H200, 40)["aggregate"]

    assert adding(1) == adding(4) == adding(8) / 2


def test_kinds_tell_how_busy_tables_are_and_flags_are_waited_for_by_nobody():
    scales = cost.Scales(moving=2.0, hubs=3.0)
    tables = replace(stream(0, name="hub_keys"), group="hash")
    assert scales.of(tables, "move", "atomic") == 6.0
    assert scales.of(stream(0, name="next_active"), "move", "gather") == 2 * cost.FLAGS
    assert scales.of(stream(0, name="queue"), "move", "gather") == 2.0


def test_where_rows_begin_is_looked_up_in_the_cache_if_it_fits():
    def adding(nbytes):
        array = stream(0, itemsize=8, name="offsets.0", size=nbytes // 8)
        array = replace(array, accesses={("aggregate", "gather"): 1e9}, stages=("aggregate",))
        return remote_seconds(array, HOST, H200, 40)["aggregate"]

    assert adding(H200.cache_bytes // 2) == 0
    assert adding(4 * H200.cache_bytes) == pytest.approx(0.75e9 / H200.remote_random_rate)


@pytest.mark.parametrize(
    ("mapped", "room", "k"), [(0, 100, 1), (99, 100, 1), (100, 100, 2), (250, 100, 3), (5, 0, 6)]
)
def test_launches_are_as_the_paper_counts_them(mapped, room, k):
    assert launches(mapped, room) == k


def test_blocking_stays_in_the_papers_range():
    found = {blocking_factor(nbytes, H200) for nbytes in (0, 1, 1 << 28, 1 << 32, 1 << 40)}
    assert min(found) == 2
    assert max(found) == 5


@pytest.mark.parametrize("best", range(1, 11))
@pytest.mark.parametrize("begin", [-3, 1, 5, 10, 99])
def test_tuning_finds_the_best_factor_and_measures_each_once(best, begin):
    asked = []

    def measure(pages):
        asked.append(pages)
        return abs(pages - best)

    assert tune(measure, begin) == best
    assert len(asked) == len(set(asked))
    assert set(asked) <= set(range(1, 11))


def test_blocks_are_brought_for_every_sub_round():
    kind = GRAPH_KINDS["community_structured"]
    assert sweeps(kind, "louvain")["move"] >= 8 * kind.iterations
    assert sweeps(kind, "louvain")["refine"] == 0 < sweeps(kind, "leiden")["refine"]


def expect(name, machine=H200, limit=1 << 40, work=None):
    work = work or work_for(arrays(), machine, Facts(skew=300, source="device"))
    policy = find_policy(name)
    layout = lay_out(arrays(), policy)
    return forecast(arrays(), policy, layout, fit(layout, limit).out_of_core, work)


def test_every_stage_is_the_sum_of_its_causes():
    found = expect("adv2")
    for stage, seconds in found.stages.items():
        both = found.core.get(stage, 0) + found.remote.get(stage, 0)
        assert (
            seconds <= both + found.out_of_core.get(stage, 0) + found.arrival.get(stage, 0) + 1e-12
        )
    outside = found.stages["load"] + found.stages["fetch"]
    assert found.seconds == pytest.approx(sum(found.stages.values()) - outside)


def test_policies_stand_in_the_order_of_the_thesis():
    """In core base beats every advice; out of core, the graph's advice beats base by far."""
    in_core = {name: expect(name).seconds for name in ("base", "device", "adv1", "adv2", "adv4")}
    assert in_core["device"] < in_core["base"] < in_core["adv2"] < in_core["adv4"]
    assert in_core["adv4"] < in_core["adv1"]
    short = {name: expect(name, limit=400 << 20).seconds for name in ("base", "adv2")}
    assert short["base"] > 4 * short["adv2"]


def test_a_graph_on_the_host_is_copied_before_it_is_worked_on():
    here, there = (
        work_for(arrays(), H200, Facts(skew=300, source=source)) for source in ("device", "host")
    )
    copied = expect("device", work=there)
    assert copied.stages["load"] == pytest.approx(4e8 / cost.copying_rate(H200), rel=0.1)
    assert cost.copying_rate(H200) < cost.copying_rate(P4000) * 2 < 2 * P4000.copy_to_device
    assert copied.seconds == pytest.approx(expect("device", work=here).seconds)


def test_first_sweeps_correct_computing_or_the_bus():
    work = work_for(arrays(), H200, Facts(skew=300, source="device"))
    core, bus = expect("device", work=work), expect("adv2", work=work)
    share = 1 / work.visited
    slower = corrected(work, [work.arcs], 2 * share * core.stages["move"], core)
    assert slower.core_scale == pytest.approx(2)
    assert slower.bus_scale == 1
    narrow = corrected(work, [work.arcs], 3 * share * bus.stages["move"], bus)
    assert narrow.bus_scale == pytest.approx(3)
    assert narrow.core_scale == 1


def test_sweeps_that_shrink_slowly_mean_more_of_them():
    work = work_for(arrays(), H200, Facts(skew=300, source="device"))
    core = expect("device", work=work)
    took = core.stages["move"]
    quick = corrected(work, [work.arcs, work.arcs // 10], took, core)
    slow = corrected(work, [work.arcs, work.arcs * 9 // 10], took, core)
    assert quick.visited == pytest.approx(1.1 + 0.1 / 9, rel=0.01)
    assert slow.visited == pytest.approx(10, rel=0.01)
    assert corrected(work, [], 1.0, core) == work
