import json

import pytest

import louvain_um as lu
from louvain_um.errors import MemoryBudgetError, OptionError
from louvain_um.placement.policy.find import find_policy
from louvain_um.placement.policy.policy import Placement, Policy
from louvain_um.placement.program import Atomic, Gather, Phase, Program, ProgramArray, Stream

MIB = 1 << 20


def two_phases():
    return Program(
        name="two",
        arrays=[
            ProgramArray(name="both", shape=(MIB, 2), dtype="f4", reads=Stream(passes=30)),
            ProgramArray(name="first", shape=MIB, phases=("load",), writes=Stream()),
            ProgramArray(
                name="second", shape=MIB, phases=("iterate",), group="work", role="targets",
                reads={"iterate": [Gather(1e6), Atomic(5)]},
            ),
        ],
        phases=[Phase(name="load", passes=1), Phase(name="iterate", passes=9)],
    )  # fmt: skip


def test_arrays_count_in_the_phases_in_which_they_live():
    program = two_phases()
    assert program.bytes_by_phase == {"load": 12 * MIB, "iterate": 12 * MIB}
    assert program.peak_bytes == 12 * MIB
    assert program.phases_of(program.arrays[2]) == ("iterate",)


def test_accesses_without_a_phase_are_shared_by_passes():
    program = two_phases()
    both, _, second = program.arrays
    assert program.accesses(both, "load") == [(Stream(passes=3), False)]
    assert program.accesses(both, "iterate") == [(Stream(passes=27), False)]
    assert program.accesses(second, "iterate") == [(Gather(1e6), False), (Atomic(5), False)]
    assert program.accesses(second, "load") == []
    assert second.written
    assert not both.written


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: ProgramArray(name="", shape=1), "name"),
        (lambda: ProgramArray(name="x", shape=(2, 2.5)), "shape"),
        (lambda: ProgramArray(name="x", shape=1, dtype=object), "dtype"),
        (lambda: ProgramArray(name="x", shape=1, reads=3), "Stream"),
        (lambda: ProgramArray(name="x", shape=8, phases="run"), "x are not a list of names"),
        (lambda: ProgramArray(name="x", shape=8, phases=[None]), "x are not a list of names"),
        (lambda: Program(name="p", arrays=["x"]), "of program p are of another type"),
        (lambda: Program(name="p", arrays=[], phases=["run"]), "of program p are of another type"),
        (lambda: Stream(passes=-1), "passes"),
        (lambda: Gather(float("nan")), "count"),
        (lambda: Phase(name="p", operations=-1), "operations"),
        (lambda: Program(name="p", arrays=[ProgramArray(name="x", shape=1)] * 2), "two arrays"),
        (lambda: Program(name="p", arrays=[], phases=[Phase(name="a")] * 2), "two phases"),
        (
            lambda: Program(name="p", arrays=[ProgramArray(name="x", shape=1, phases=("no",))]),
            "array x: program p has no phase 'no'; use one of run",
        ),
        (
            lambda: Program(
                name="p", arrays=[ProgramArray(name="x", shape=1, reads={"no": Stream()})]
            ),
            "no phase 'no'",
        ),
    ],
)
def test_what_is_no_program_is_refused_in_one_line(make, said):
    with pytest.raises(OptionError, match=said) as error:
        make()
    assert "\n" not in str(error.value)


def test_empty_programs_and_arrays_have_plans():
    for arrays in ([], [ProgramArray(name="nothing", shape=0, reads=Stream())]):
        plan = lu.plan(Program(name="p", arrays=arrays), device_budget=1, machine="h200")
        assert plan.device_bytes == {"run": 0}
        assert str(plan)


def test_plans_answer_with_bytes_seconds_and_reasons():
    plan = lu.plan(two_phases(), device_budget="50%", machine="h200")
    assert plan.limit == 6 * MIB
    assert not plan.fits
    assert all(nbytes <= plan.limit for nbytes in plan.device_bytes.values())
    assert plan.peak_bytes == {"arrays": 12 * MIB, "work": 4 * MIB}
    assert plan.seconds == pytest.approx(
        sum(plan.phase_seconds.values()) + sum(plan.arrival_seconds.values())
    )
    found = json.loads(json.dumps(plan.to_dict()))
    assert [row["name"] for row in found["arrays"]] == ["both", "first", "second"]
    assert all(row["placement"] in str(plan) for row in found["arrays"])


@pytest.mark.parametrize(
    ("policy", "kinds"),
    [
        ("base", ["managed", "managed", "managed"]),
        ("adv1", ["host_mapped", "host_mapped", "host_mapped"]),
        ("adv2", ["managed", "managed", "managed"]),
        ("device", ["device", "device", "device"]),
        (Policy(name="mine", groups={"work": "pinned"}), ["device", "device", "pinned"]),
        (
            Policy(name="mine", roles={"targets": "pinned"}, others="managed"),
            ["managed", "managed", "pinned"],
        ),
        (
            Policy(name="mine", arrays={"second": "device"}, roles={"targets": "pinned"}),
            ["device", "device", "device"],
        ),
    ],
)
def test_policies_place_groups_and_roles_of_any_program(policy, kinds):
    plan = lu.plan(two_phases(), memory=policy, machine="h200")
    assert [where.kind for where in plan.placements.values()] == kinds


def test_the_four_groups_of_louvain_are_placed_by_their_names():
    array = ProgramArray(name="x", shape=10, group="graph")
    for name in ("zero_copy", "adv2", "adv3"):
        plan = lu.plan(Program(name="p", arrays=[array]), memory=name, machine="h200")
        assert plan.placements["x"] == find_policy(name).placements["graph"]


def test_policy_files_place_groups_and_roles(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('others = "managed"\n[groups]\nwork = "pinned"\n[roles]\nrows = "device"\n')
    policy = find_policy(path)
    found = [policy.placement_in("x", *where) for where in (("work",), ("work", "rows"), ("else",))]
    assert found == [Placement("pinned"), Placement("device"), Placement("managed")]


def test_a_name_nearly_of_the_program_is_refused_and_others_may_be_of_another_program(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('[groups]\nfoo = "pinned"\n[roles]\ntragets = "pinned"\n')
    said = r"policy mine: roles has 'tragets'; did you mean targets\? Or name one of other, targets"
    with pytest.raises(OptionError, match=said):
        lu.plan(two_phases(), memory=path, machine="h200")
    path.write_text('[groups]\nfoo = "pinned"\n[roles]\ntargets = "pinned"\n')
    assert "pinned" in str(lu.plan(two_phases(), memory=path, machine="h200"))
    path.write_text('[groups]\nwork = "pinned"\nworks = "pinned"\n')
    assert "pinned" in str(lu.plan(two_phases(), memory=path, machine="h200"))


def test_a_fixed_policy_beyond_the_budget_is_refused_to_the_byte():
    with pytest.raises(MemoryBudgetError, match="phase 'load' of program two") as error:
        lu.plan(two_phases(), memory="device", device_budget=10 * MIB, machine="h200")
    assert error.value.needed == 12 * MIB
    assert "raise the budget to 12MiB, or let memory='auto' place" in str(error.value)
    assert error.value.largest[0] == ("both", 8 * MIB)


@pytest.mark.parametrize("budget", [1, "33%", "100%", "200%", None])
@pytest.mark.parametrize(
    "arrays",
    [
        [],
        [ProgramArray(name="x", shape=0, reads=Stream())],
        [ProgramArray(name="x", shape=100, phases=(), reads=Stream())],
        [ProgramArray(name="x", shape=(1 << 49, 1 << 49), dtype="f8", reads=Stream())],
        [ProgramArray(name="x", shape=1, reads=Gather(1e30), to_host=1e30)],
    ],
)
def test_plans_of_programs_of_any_shape(arrays, budget):
    plan = lu.plan(Program(name="p", arrays=arrays), device_budget=budget, machine="h200")
    assert max(plan.device_bytes.values()) <= plan.limit
    assert plan.seconds >= 0
    assert plan.to_dict()["seconds"] == plan.seconds


def test_a_small_array_does_not_take_longer_than_its_program():
    arrays = [ProgramArray(name=f"a{k}", shape=10, given=True, from_host=1) for k in range(9)]
    plan = lu.plan(Program(name="tiny", arrays=arrays), machine="h200")
    assert plan.seconds < 1e-4
    for reason in plan.reasons.values():
        assert max(map(abs, (reason.phi, reason.tau, reason.sigma))) < plan.seconds + 1e-6


@pytest.mark.parametrize("kind", ["host_mapped", "pinned", "prefetched", "split"])
def test_a_larger_array_never_arrives_sooner(kind):
    sizes = [1, 1 << 10, 1 << 24, (1 << 25) - 1, 1 << 25, (1 << 25) + 1, 1 << 30]
    seconds = []
    for size in sizes:
        array = ProgramArray(name="a", shape=size, dtype="u1", given=True)
        plan = lu.plan(Program(name="one", arrays=[array]), machine="h200")
        seconds.append(plan.cost.arrival(array, Placement(kind)))
    assert seconds == sorted(seconds)
    assert seconds[0] < 1e-8


def test_a_frame_has_one_row_per_array():
    plan = lu.plan(two_phases(), machine="h200")
    frame = plan.to_frame().set_index("name")
    assert frame.index.tolist() == ["both", "first", "second"]
    assert frame.loc["both", "bytes"] == 8 * MIB
    assert frame.loc["second", ["group", "role", "phases"]].tolist() == [
        "work", "targets", ["iterate"],
    ]  # fmt: skip
    assert frame["arrival_seconds"].to_dict() == plan.arrival_seconds
