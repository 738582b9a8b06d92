"""What a plan leaves on the host is compared with the host's memory before it is allocated."""

import pytest

from louvain_um.core import headroom
from louvain_um.errors import HostMemoryError
from louvain_um.gpu.memory import run_plan
from louvain_um.gpu.memory.run_plan import check_host_room
from louvain_um.placement.layout import ArenaSpec
from louvain_um.placement.policy.policy import Placement


@pytest.mark.parametrize("kind", ["host_mapped", "pinned", "split"])
def test_a_host_that_is_too_small(kind, monkeypatch, tmp_path):
    info = tmp_path / "meminfo"
    info.write_text(f"MemAvailable: {4 << 20} kB\n")
    monkeypatch.setattr(headroom, "MEMORY_INFO", info)
    placement = Placement(kind, 0.5) if kind == "split" else Placement(kind)
    host = 8 << 30 if kind == "split" else 16 << 30
    there = ArenaSpec(name="all", group=None, capacity=1 << 40, placement=Placement("device"))
    large = ArenaSpec(name="graph", group="graph", capacity=16 << 30, placement=placement)
    with pytest.raises(HostMemoryError, match="what the plan leaves on the host needs") as caught:
        check_host_room([there, large])
    assert caught.value.free == 4 << 30
    assert host <= caught.value.needed <= host + (4 << 20)
    small = ArenaSpec(name="graph", group="graph", capacity=1 << 30, placement=placement)
    check_host_room([there, small])
    # Page-locked memory of the run before is this one's.
    monkeypatch.setattr(run_plan, "kept_bytes", lambda: 16 << 30)
    check_host_room([there, large])
