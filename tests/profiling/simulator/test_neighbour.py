"""Another GPU's memory as a placement of the simulator."""

import json
from dataclasses import replace

import pytest
from simulator_cases import BLOCK, array, scan
from typer.testing import CliRunner

from louvain_um.cli import app
from louvain_um.errors import MemoryBudgetError
from louvain_um.placement.machine.profiles import H200, P4000
from louvain_um.profiling.simulator import Access
from louvain_um.profiling.simulator.simulate import simulate
from louvain_um.profiling.simulator.trace import Trace

TERMS = ("remote_sequential", "remote_random", "remote_atomic")
FASTER = {
    Access.READ: H200.peer_bandwidth / H200.remote_bandwidth,
    Access.GATHER: H200.peer_random_rate / H200.pinned_random_rate,
    Access.ATOMIC: H200.peer_atomic_rate / H200.remote_atomic_rate,
}


def remote(data, step, machine, where):
    """Return the seconds on the bus or the link of one step on an array."""
    found = simulate(Trace((data,), (step,)), machine, placements={"data": where})
    assert found.batches == 0
    return sum(found.costs[term] for term in TERMS)


@pytest.mark.parametrize("way", FASTER)
def test_a_neighbour_is_read_at_the_rate_of_its_link(way):
    data = array(64)
    host, peer = (remote(data, scan(data, way=way), H200, where) for where in ("pinned", "peer"))
    assert host / peer == pytest.approx(FASTER[way], rel=1e-3)


def test_a_machine_without_a_link_has_the_rates_of_its_host():
    data = array(8)
    host, peer = (remote(data, scan(data), P4000, where) for where in ("pinned", "peer"))
    assert host == peer > 0


def test_the_rest_of_a_split_is_where_there_is_a_neighbour():
    data = array(8)
    trace = Trace((data,), (scan(data),))
    host, peer = (
        simulate(trace, H200, placements={"data": "split(0.5)"}, capacity=8 * BLOCK, peer=peer)
        for peer in (False, True)
    )
    assert host.bytes_remote == peer.bytes_remote == data.nbytes // 2
    assert peer.seconds - peer.load_seconds < host.seconds - host.load_seconds
    assert peer.peak_bytes == host.peak_bytes == data.nbytes // 2
    assert (host.bytes_loaded, peer.bytes_loaded) == (data.nbytes // 2, data.nbytes)


def test_a_neighbour_has_an_end_too():
    data = array(8)
    small = replace(H200, memory_bytes=4 * BLOCK)
    with pytest.raises(MemoryBudgetError, match="other GPU"):
        remote(data, scan(data), small, "peer")


def test_the_command_line_compares_with_the_host():
    arguments = ["simulate", "example:les-miserables", "--policies", "auto,adv2", "--json"]
    limits = ["--oversubscription", "0,70"]
    rows = []
    for peer in ([], ["--peer-memory", "cuda:1"]):
        done = CliRunner().invoke(app, [*arguments, *limits, *peer])
        assert done.exit_code == 0, done.output
        rows.append(json.loads(done.stdout)["results"])
    for host, other in zip(*rows, strict=True):
        assert host["feasible"] == other["feasible"]
        if host["policy"] == "adv2" or host["oversubscription"] == 0:
            assert host == other
    wrong = CliRunner().invoke(app, [*arguments, "--peer-memory", "the other one"])
    assert wrong.exit_code == 2
