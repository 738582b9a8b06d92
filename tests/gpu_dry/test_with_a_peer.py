"""What a run does whose arrays lie on two devices: they stay where the plan put them."""

import pytest

from louvain_um.options import Options
from tests.gpu_dry.dry_device import run_dry
from tests.gpu_dry.dry_levels import made_up

pytestmark = pytest.mark.deep

LARGE = [("lfr24", "louvain", 4), ("lfr24", "louvain", 16), ("rmat24", "louvain", 8)]


@pytest.mark.parametrize("budget", ["70%", "50%", "30%"])
@pytest.mark.parametrize(("name", "method", "shrink"), LARGE)
def test_arrays_stay_where_they_were_placed(monkeypatch, name, method, shrink, budget):
    graph, script = made_up(name, method, shrink)
    options = Options(method=method, device="cuda:0", device_budget=budget, peer_memory="cuda:1")
    plan, memory = run_dry(monkeypatch, graph, script, options)
    if plan.in_pages:
        assert not plan.expected.remote  # all that was known before fits
        return
    assert not plan.compact
    assert memory.mover is None
    assert plan.placement_of("targets.0").on_device < 1
    assert memory.arenas.peer == 1
    assert memory.arenas.budget == plan.limit
    assert sum(arena.resident_bytes for arena in memory.arenas) <= plan.limit
    # What outgrew its estimate lies on the peer, never on the host.
    assert set(memory.overflowed.values()) <= {"peer", "device"}
