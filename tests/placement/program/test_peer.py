"""A neighbour's memory in the place of the host's, for any program."""

from types import SimpleNamespace

import pytest

import louvain_um as lu
from louvain_um.errors import OptionError
from louvain_um.placement.machine.profiles import PROFILES, present
from louvain_um.placement.memory import cuda_calls
from louvain_um.placement.program import Gather, Program, ProgramArray, Stream

PROGRAM = Program(
    name="scan",
    arrays=[
        ProgramArray(name="data", shape=10**9, reads=Stream(passes=20), from_host=1),
        ProgramArray(name="table", shape=10**8, reads=Gather(10**9)),
    ],
)


@pytest.mark.parametrize("budget", ["60%", "20%"])
def test_what_does_not_fit_lies_on_the_peer_and_takes_less_time(budget):
    with_host = lu.plan(PROGRAM, device_budget=budget, machine="h200")
    with_peer = lu.plan(PROGRAM, device_budget=budget, machine="h200", peer_memory="cuda:1")
    kinds = {placement.kind for placement in with_peer.placements.values()}
    assert kinds <= {"device", "split", "peer"}
    assert kinds != {"device"}
    assert with_peer.seconds < with_host.seconds


@pytest.mark.parametrize("machine", PROFILES.values(), ids=lambda machine: machine.name)
def test_no_neighbour_is_faster_than_a_device_s_own_memory(machine):
    on_peer = machine.with_peer()
    assert on_peer.remote_bandwidth <= machine.device_bandwidth
    assert on_peer.copy_to_device <= machine.device_bandwidth
    assert on_peer.remote_random_rate <= machine.device_random_rate
    if not machine.peer_bandwidth:
        assert on_peer.remote_bandwidth == machine.remote_bandwidth


@pytest.mark.parametrize("policy", ["zero_copy", "adv1", "adv2"])
def test_what_a_policy_keeps_on_the_host_is_read_there(policy):
    sizes = {"n_vertices": 1 << 20, "n_arcs": 40_000_000, "memory": policy, "machine": "h200"}
    for program in ((), (PROGRAM,)):
        given = {"memory": policy, "machine": "h200"} if program else sizes
        host = lu.plan(*program, **given)
        on_peer = lu.plan(*program, **given, peer_memory="cuda:1")
        assert host.seconds == on_peer.seconds
        assert host.placements == on_peer.placements


def test_what_fits_stays():
    plan = lu.plan(PROGRAM, machine="h200", peer_memory="cuda:1")
    assert {placement.kind for placement in plan.placements.values()} == {"device"}


def test_a_peer_is_named_as_a_gpu():
    with pytest.raises(OptionError, match="such as 'cuda:1'"):
        lu.Placer(device="cpu", peer_memory="neighbour")


def test_the_cpu_has_no_peer():
    with pytest.raises(OptionError, match="use device='cuda:0'"):
        lu.Placer(device="cpu", peer_memory="cuda:1")
    with pytest.raises(OptionError, match="use device='cuda:0'"):
        lu.Placer(device=1, peer_memory="cuda:1")


def test_without_a_gpu_figures_are_those_of_the_host():
    if present(0)[0] is not None:
        pytest.skip("there is a GPU")
    with lu.Placer(machine=PROFILES["h200"], peer_memory="cuda:1") as place:
        assert place.machine.beyond == "host"


@pytest.mark.parametrize(("code", "reached"), [(0, True), (101, False)])
def test_a_device_that_is_not_there_is_not_reached(monkeypatch, code, reached):
    class RefusedError(RuntimeError):
        status = code

    def can_access(device, other):
        if code:
            raise RefusedError("cudaErrorInvalidDevice: invalid device ordinal")
        return True

    runtime = SimpleNamespace(deviceCanAccessPeer=can_access)
    monkeypatch.setattr(cuda_calls, "cupy_runtime", lambda: runtime)
    assert cuda_calls.reaches(0, 99) == reached
