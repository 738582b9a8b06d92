import pytest
from declared_cases import arrays

from louvain_um.core.array_spec import STAGES, ArraySpec, identity, peak_bytes
from louvain_um.core.ledger import GROUPS
from louvain_um.placement.hardware import ALIGNED, BLOCK
from louvain_um.placement.layout import capacity, device_bytes_in_core, fit, lay_out
from louvain_um.placement.policy.find import find_policy
from louvain_um.placement.policy.policy import POLICY_NAMES, Placement, Policy

ARCS = ("targets.0", "weights.0")


def one(name, nbytes, stages=("move",), group="scratch", **more):
    known = {"group": group, "itemsize": 1, "size": nbytes, "stages": stages}
    return ArraySpec(**identity(name), **known, **more)


@pytest.mark.parametrize("name", POLICY_NAMES)
def test_every_array_has_one_arena_with_room_for_it(name):
    layout = lay_out(arrays(), find_policy(name))
    named = [member for spec in layout for member in spec.members or ()]
    assert len(named) == len(set(named))
    for array in arrays():
        own = [s for s in layout if array.name in (s.members or ())]
        rest = [s for s in layout if s.members is None and s.group == array.group]
        (spec,) = own or rest
        assert spec.group == array.group
        assert spec.capacity >= array.nbytes


def test_an_arena_is_as_large_as_its_fullest_stage():
    assert capacity([one("a", 1024), one("b", 512, ("refine",)), one("c", 600)]) == 1024 + 768
    assert capacity([]) == 0


def test_in_core_takes_what_the_groups_take_and_a_little_for_alignment():
    peak = sum(peak_bytes(arrays()).values())
    alone, separate = device_bytes_in_core(arrays()), device_bytes_in_core(arrays(), separate=True)
    assert peak <= alone <= peak + ALIGNED * len(arrays())
    assert alone <= separate <= alone + 4096


def test_what_the_host_holds_costs_no_device_bytes_but_control_stays():
    layout = lay_out(arrays(), find_policy("adv1"))
    assert fit(layout, 1 << 40).needed == 4096
    (control,) = (spec for spec in layout if spec.placement.kind == "device")
    assert control.members == ("control",)


def test_arrays_may_go_their_own_way():
    policy = Policy(name="mine", arrays={"targets.0": "split(0.5)", "labels": "pinned"})
    found = {spec.name: str(spec.placement) for spec in lay_out(arrays(), policy)}
    assert found["targets.0"] == "split(0.5)"
    assert found["labels"] == "pinned"
    assert found["graph"] == found["community"] == "device"


def test_only_arcs_that_come_and_go_are_held_in_part():
    layout = lay_out(arrays(), find_policy("base"))
    whole = fit(layout, 1 << 40)
    assert whole.out_of_core == {}
    assert whole.needed == whole.occupied == sum(spec.capacity for spec in layout)
    low_scratch = fit(layout, whole.needed - 1)
    assert set(low_scratch.out_of_core) == {"targets.0"} <= set(ARCS)
    assert whole.needed - BLOCK - 1 <= low_scratch.occupied < whole.needed
    assert low_scratch.out_of_core["targets.0"] % BLOCK == 0


def test_what_must_be_there_is_two_blocks_of_arcs_and_all_else():
    layout = lay_out(arrays(), find_policy("base"))
    others = sum(spec.capacity for spec in layout if spec.name != "targets.0")
    fitted = fit(layout, others + 2 * BLOCK)
    assert fitted.within(others + 2 * BLOCK)
    assert fitted.out_of_core == {"targets.0": 2 * BLOCK}
    assert not fit(layout, others + 2 * BLOCK - 1).within(others + 2 * BLOCK - 1)


def test_a_block_has_room_for_the_longest_row():
    layout = lay_out(arrays(), find_policy("base"))
    assert fit(layout, 0, max_degree=10_000_000).needed > fit(layout, 0).needed + 8 * 10_000_000


@pytest.mark.parametrize("limit", [0, 1, 10**8, 3 * 10**8, 5 * 10**8, 10**9, 10**12])
def test_what_fits_keeps_to_the_limit(limit):
    for name in POLICY_NAMES:
        fitted = fit(lay_out(arrays(), find_policy(name)), limit)
        if fitted.within(limit):
            assert fitted.occupied <= limit
        assert fitted.needed <= fitted.occupied


def test_weights_come_and_go_with_their_targets():
    both = [one(name, 64 << 20, STAGES, "graph") for name in ARCS]
    fitted = fit(lay_out(both, find_policy("base")), 32 << 20)
    assert fitted.out_of_core == dict.fromkeys(ARCS, 16 << 20)


def test_copies_that_cannot_be_sent_back_are_not_paged():
    policy = Policy(
        name="copied",
        placements=dict.fromkeys(GROUPS, Placement("device")) | {"graph": Placement("read_mostly")},
    )
    layout = lay_out(arrays(), policy)
    whole = fit(layout, 1 << 40)
    assert not whole.out_of_core
    assert not fit(layout, whole.needed - 1).within(whole.needed - 1)
