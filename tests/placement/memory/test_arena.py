import pytest
from fake_cuda import GIB, FakeCuda, install

from louvain_um.errors import MemoryBudgetError, PlacementError
from louvain_um.placement.hardware import BLOCK
from louvain_um.placement.layout import ArenaSpec
from louvain_um.placement.memory import advise
from louvain_um.placement.memory.arena import Arena
from louvain_um.placement.memory.guard import guard
from louvain_um.placement.policy.policy import KINDS, Placement

MIB = 1 << 20
CAPACITY = 8 * MIB


def spec(kind, capacity=CAPACITY, fraction=1.0):
    placement = Placement(kind, fraction)
    return ArenaSpec(name="graph", group="graph", capacity=capacity, placement=placement)


def reported(cuda):
    """Return what was advised and prefetched, offsets instead of addresses."""
    return [
        (name, at[0] % GIB, *at[1:])
        for name, *at in cuda.log
        if len(at) == 3 and "cuMem" not in name
    ]


WHOLE = 10 * MIB
SEQUENCES = {
    "device": [],
    "pinned": [],
    "peer": [],
    "managed": [],
    "read_mostly": [("SetReadMostly", 0, WHOLE, 0)],
    "prefetched": [("SetPreferredLocation", 0, WHOLE, 0), ("prefetch", 0, WHOLE, 0)],
    "host_mapped": [
        ("SetPreferredLocation", 0, WHOLE, -1),
        ("SetAccessedBy", 0, WHOLE, 0),
        ("touch", 0, WHOLE, -1),
    ],
    "split": [
        ("SetPreferredLocation", 0, 4 * MIB, 0),
        ("SetPreferredLocation", 4 * MIB, 6 * MIB, -1),
        ("SetAccessedBy", 4 * MIB, 6 * MIB, 0),
        ("prefetch", 0, 4 * MIB, 0),
        ("touch", 4 * MIB, 6 * MIB, -1),
    ],
}


@pytest.mark.parametrize("toolkit", [12, 13])
@pytest.mark.parametrize("kind", KINDS)
def test_the_driver_is_advised_before_anything_is_touched(kind, toolkit, monkeypatch):
    cuda = install(monkeypatch, FakeCuda(toolkit=toolkit))
    peer = 1 if kind == "peer" else None
    arena = Arena(spec(kind, fraction=0.5 if kind == "split" else 1.0), 0, peer=peer)
    assert reported(cuda) == SEQUENCES[kind]
    assert cuda.log[0][0] in ("malloc", "mallocManaged", "hostRegister")
    arena.close()
    assert not cuda.alive


def test_a_split_with_a_peer_reaches_into_its_memory(cuda):
    arena = Arena(spec("split", fraction=0.5), 0, peer=1)
    assert [part.side for part in arena.extents] == ["device", "peer"]
    assert [entry[1] for entry in cuda.log if entry[0] == "cuMemCreate"] == ["device", "device"]
    arena.close()
    assert not cuda.alive


def test_an_arena_on_a_peer_wants_one(cuda):
    with pytest.raises(PlacementError, match="peer_memory='cuda:1'"):
        Arena(spec("peer"), 0)
    assert not cuda.alive


@pytest.mark.parametrize(("fraction", "sides"), [(0.0, ["host"]), (1.0, ["device"])])
def test_a_split_at_the_ends_is_one_run(cuda, fraction, sides):
    arena = Arena(spec("split", fraction=fraction), 0)
    assert [part.side for part in arena.extents] == sides
    assert arena.resident_bytes == fraction * CAPACITY


def test_a_split_is_cut_where_a_block_ends(cuda):
    arena = Arena(spec("split", 21 * MIB, fraction=0.6), 0)
    here, there = arena.extents
    assert (here.nbytes, there.offset) == (12 * MIB, 12 * MIB)
    address = arena.take(16 * MIB)
    assert arena.sides(address, 16 * MIB) == (
        (address, 12 * MIB, "device"),
        (address + 12 * MIB, 4 * MIB, "host"),
    )


@pytest.mark.parametrize(
    ("kind", "advice"),
    [
        ("host_mapped", "SetPreferredLocation"),
        ("host_mapped", "SetAccessedBy"),
        ("read_mostly", "SetReadMostly"),
        ("split", "prefetch"),
    ],
)
def test_rejected_advice_is_named_and_leaves_nothing_behind(cuda, kind, advice):
    cuda.reject = advice
    with pytest.raises(PlacementError, match=rf"'graph'.*{advice}.*cudaErrorInvalidValue"):
        Arena(spec(kind), 0)
    assert not cuda.alive
    assert not guard.ranges


@pytest.mark.parametrize(
    ("advice", "name"), [("SetPreferredLocation", "preferred"), ("SetAccessedBy", "accessed_by")]
)
def test_advice_that_the_driver_forgets_is_named(cuda, advice, name):
    cuda.forget = advice
    with pytest.raises(PlacementError, match=name):
        Arena(spec("host_mapped"), 0)
    assert not cuda.alive


def test_another_placement_replaces_the_old_advice(cuda):
    arena = Arena(spec("host_mapped"), 0)
    cuda.log.clear()
    arena.place(Placement("read_mostly"))
    assert [step[0] for step in reported(cuda)] == [
        "UnsetPreferredLocation",
        "UnsetAccessedBy",
        "SetReadMostly",
    ]
    cuda.log.clear()
    arena.place(Placement("prefetched"))
    assert [step[0] for step in reported(cuda)] == [
        "UnsetReadMostly",
        "SetPreferredLocation",
        "prefetch",
    ]
    arena.place(Placement("managed"))
    found = advise.attributes(arena.address, arena.nbytes)
    assert (found.preferred, found.accessed_by, found.read_mostly) == (-2, (), False)
    with pytest.raises(ValueError, match="managed memory cannot become device"):
        arena.place(Placement("device"))


def test_managed_ranges_begin_at_a_block_whatever_the_driver_returns(cuda):
    cuda.skew = 4096
    arena = Arena(spec("prefetched"), 0)
    assert arena.address % BLOCK == 0
    assert arena.take(CAPACITY) == arena.address
    arena.close()
    assert not cuda.alive


def test_as_many_bytes_as_planned_fit_however_many_arrays_they_are(cuda):
    arena = Arena(spec("device", 100 * 257), 0)
    assert all(arena.take(257) is not None for _ in range(100))


def test_no_page_locked_memory(cuda):
    cuda.fail_after = 0
    with pytest.raises(MemoryBudgetError, match="page-locked"):
        Arena(spec("pinned"), 0)


@pytest.mark.parametrize(("number", "why"), [(83, "no managed memory"), (89, "concurrent")])
@pytest.mark.parametrize("kind", ["managed", "host_mapped", "read_mostly"])
def test_devices_without_usable_managed_memory_are_refused(cuda, number, why, kind):
    cuda.attributes[number] = 0
    with pytest.raises(PlacementError, match=why) as caught:
        Arena(spec(kind), 0)
    assert "pinned" in str(caught.value)
    Arena(spec("pinned"), 0).close()
    Arena(spec("device"), 0).close()
    assert not cuda.alive


@pytest.mark.parametrize("why", ["no managed memory", "larger than what is free"])
def test_a_split_does_without_managed_memory_where_it_must(cuda, why):
    if why == "no managed memory":
        cuda.attributes[89] = 0
    size = CAPACITY if why == "no managed memory" else 9 * GIB
    arena = Arena(spec("split", size, fraction=0.5), 0)
    assert not arena.managed
    assert not reported(cuda)
    chunks = [at for name, *at in cuda.log if name == "cuMemCreate"]
    assert chunks[0] == ["device", size // 2]
    assert {place for place, _ in chunks[1:]} == {"host"}
    assert sum(nbytes for _, nbytes in chunks) == arena.nbytes
    opened = [tuple(at) for name, *at in cuda.log if name == "cuMemSetAccess"]
    assert opened == [("device", 0, arena.nbytes), ("host", size // 2, arena.nbytes - size // 2)]
    arena.close()
    assert not cuda.alive


@pytest.mark.parametrize(
    "call", ["cuMemAddressReserve", "cuMemCreate", "cuMemMap", "cuMemSetAccess"]
)
def test_a_driver_that_cannot_join_memories_is_named(cuda, call):
    cuda.attributes[89] = 0
    cuda.reject = call
    with pytest.raises(PlacementError, match=rf"'graph'.*{call}.*pinned"):
        Arena(spec("split", fraction=0.5), 0)
    assert not cuda.alive
