"""A neighbour's memory in the place of the host's, for any program."""

from __future__ import annotations

import pytest

import louvain_um as lu
from louvain_um.errors import OptionError
from louvain_um.placement.machine.machine import Machine
from louvain_um.placement.machine.profiles import PROFILES
from louvain_um.placement.program import Gather, Program, ProgramArray, Stream

PROGRAM = Program(
    name="scan",
    arrays=[
        ProgramArray(name="data", shape=10**9, reads=Stream(passes=20), from_host=1),
        ProgramArray(name="table", shape=10**8, reads=Gather(10**9)),
    ],
)


@pytest.mark.parametrize("budget", ["60%", "20%"])
def test_what_does_not_fit_lies_on_the_peer_and_takes_less_time(budget: str) -> None:
    with_host = lu.plan(PROGRAM, device_budget=budget, machine="h200")
    with_peer = lu.plan(PROGRAM, device_budget=budget, machine="h200", peer_memory="cuda:1")
    kinds = {placement.kind for placement in with_peer.placements.values()}
    assert kinds <= {"device", "split", "peer"}
    assert kinds != {"device"}
    assert with_peer.seconds < with_host.seconds


@pytest.mark.parametrize("machine", PROFILES.values(), ids=lambda machine: machine.name)
def test_no_neighbour_is_faster_than_a_device_s_own_memory(machine: Machine) -> None:
    beside = machine.with_peer()
    assert beside.remote_bandwidth <= machine.device_bandwidth
    assert beside.copy_to_device <= machine.device_bandwidth
    assert beside.remote_random_rate <= machine.device_random_rate
    if not machine.peer_bandwidth:
        assert beside.remote_bandwidth == machine.remote_bandwidth


def test_what_fits_stays() -> None:
    plan = lu.plan(PROGRAM, machine="h200", peer_memory="cuda:1")
    assert {placement.kind for placement in plan.placements.values()} == {"device"}


def test_a_peer_is_named_as_a_gpu() -> None:
    with pytest.raises(OptionError, match="such as 'cuda:1'"):
        lu.Placer(device="cpu", peer_memory="neighbour")
