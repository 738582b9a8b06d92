from types import SimpleNamespace

import pytest
from fake_cuda import GIB

from louvain_um.errors import MemoryBudgetError
from louvain_um.options import Options
from louvain_um.placement.layout import ArenaSpec
from louvain_um.placement.memory.arena import Arena
from louvain_um.placement.memory.guard import WARNING, ballast, guard
from louvain_um.placement.policy.policy import Placement
from louvain_um.placement.program import Program, ProgramArray, Stream
from louvain_um.profiling.record.jobs import held_ballast


def managed(nbytes):
    spec = ArenaSpec(name="a", group="hash", capacity=nbytes, placement=Placement("managed"))
    return Arena(spec, 0)


def test_ballast_that_would_evict_managed_memory_is_refused(cuda):
    with (
        pytest.raises(MemoryBudgetError, match="--allow-driver-eviction") as caught,
        ballast(6 * GIB, 3 * GIB, 0),
    ):
        pytest.fail("ballast was taken")
    assert WARNING in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not cuda.alive


def test_ballast_that_leaves_room_is_taken_and_given_back(cuda):
    with ballast(4 * GIB, 3 * GIB, 0):
        managed(3 * GIB)
        with pytest.raises(MemoryBudgetError, match="evict"):
            managed(2 * GIB)
    assert [kind for kind, _ in cuda.alive.values()] == ["mallocManaged"]


def test_only_while_it_is_allowed_may_managed_memory_exceed_what_is_free(cuda):
    with ballast(6 * GIB, 3 * GIB, 0, allow_driver_eviction=True):
        managed(3 * GIB).close()
    with ballast(6 * GIB, 1 * GIB, 0), pytest.raises(MemoryBudgetError):
        managed(3 * GIB)
    assert not guard.ranges


def test_no_room_for_the_ballast_itself(cuda):
    with (
        pytest.raises(MemoryBudgetError, match="largest: ballast"),
        ballast(9 * GIB, 0, 0, allow_driver_eviction=True),
    ):
        pytest.fail("ballast was taken")


@pytest.mark.parametrize(("memory", "refused"), [("base", True), ("device", False)])
def test_ballast_of_a_program_counts_what_its_plan_has_managed(
    cuda, monkeypatch, memory, refused
):  # fmt: skip
    monkeypatch.setattr("louvain_um.gpu.runtime.device.pick", lambda _: SimpleNamespace(index=0))
    array = ProgramArray(name="x", shape=1 << 30, reads=Stream())
    program = Program(name="scan", arrays=[array])
    options = Options(device="cuda", memory=memory, ballast="5GiB")
    held = held_ballast(program, options)
    with pytest.raises(MemoryBudgetError, match="ballast") if refused else held:
        if refused:
            held.__enter__()
        assert ("malloc", 5 * GIB) in cuda.log
    assert not cuda.alive
