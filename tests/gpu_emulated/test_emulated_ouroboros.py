"""Ouroboros on the CPU: every interleaving of a few threads, and random traces of many."""

import ctypes

import numpy as np
import pytest

from louvain_um.dynamic.stores.ouro_heap import HeapShape
from louvain_um.dynamic.stores.ouroboros import VARIANTS, Ouroboros, control_of
from louvain_um.errors import OptionError
from louvain_um.gpu.runtime.kernel_list import CATALOGUE, HEAPS
from louvain_um.gpu.runtime.launch import Struct

pytestmark = pytest.mark.deep

MIB = 1 << 20


class Device:
    """NumPy's arrays, and kernels run by a few emulated blocks."""

    xp = np

    def __init__(self, library, blocks=3, front=""):
        self.library, self.blocks, self.front = library, blocks, front

    def launch(self, source, kernel, types, items, *args, front=""):
        assert front == self.front
        assert types in CATALOGUE[source].get(kernel, (*HEAPS, ""))
        given = [ctypes.c_int(self.blocks), ctypes.c_int(HEAPS.index(types) if types else -1)]
        for arg in args:
            if isinstance(arg, Struct):
                given.append(ctypes.c_void_p(arg.argument.ctypes.data))
            elif isinstance(arg, np.ndarray):
                given.append(ctypes.c_void_p(arg.ctypes.data))
            else:
                given.append(ctypes.c_uint64(int(arg)))
        getattr(self.library, f"{kernel}_as")(*given)

    def address(self, array):
        return array.ctypes.data

    def get(self, array):
        return array.copy()


@pytest.fixture(params=VARIANTS)
def begin(request, emulated):
    """Return a function that begins a heap of a variant."""
    device = Device(emulated["ouroboros"])
    return lambda nbytes=4 * MIB, **options: Ouroboros(
        nbytes, request.param, device=device, **options
    )


SHAPES = {"chunk": 1024, "page": 64}, {"chunk": 32768}


@pytest.fixture(params=[(variant, shape) for variant in VARIANTS for shape in SHAPES], ids=str)
def begin_shaped(request, emulated):
    """Return a function that begins a heap of a variant, with chunks of other sizes."""
    variant, shape = request.param
    front = HeapShape(**shape).front
    device = Device(emulated.fronted("ouroboros", front), front=front)
    return lambda nbytes: Ouroboros(nbytes, variant, device=device, **shape)


def trade(heap, seed, steps, most):
    """Let all threads allocate and free in turns; return how often there was no memory."""
    wrong, nulls = np.zeros(1, np.uint64), np.zeros(1, np.uint64)
    device = heap._device
    device.library.trade_as(
        device.blocks, HEAPS.index(heap.struct), ctypes.c_void_p(heap.argument.ctypes.data),
        seed, steps, *(ctypes.c_void_p(a.ctypes.data) for a in (np.uint64(most), wrong, nulls)),
    )  # fmt: skip
    assert wrong[0] == 0, "memory was given to two threads"
    return int(nulls[0])


def assert_separate(addresses, sizes):
    """No piece of memory overlaps another one."""
    there = addresses != 0
    order = np.argsort(addresses[there])
    begins, sizes = addresses[there][order], np.asarray(sizes)[there][order]
    assert (begins[:-1] + sizes[:-1].astype(np.uint64) <= begins[1:]).all()
    assert (begins % 16 == 0).all()


def test_pieces_of_all_sizes_are_separate_counted_and_freed(begin):
    heap = begin()
    rng = np.random.default_rng(3)
    for _ in range(3):
        sizes = np.concatenate(
            [[1, 16, 17, 8192], rng.integers(1, 8193, 100) >> rng.integers(0, 9)]
        )
        sizes = np.maximum(sizes, 1).astype(np.uint64)
        found = heap.malloc(sizes)
        assert (found != 0).all()
        assert_separate(found, sizes)
        classes = np.maximum(np.ceil(np.log2(sizes / 16)), 0).astype(int)
        assert heap.statistics().used_pages == tuple(np.bincount(classes, minlength=10))
        heap.free(found)
        left = heap.statistics()
        assert left.used_bytes == 0
        assert left.free_chunks + left.queue_chunks + sum(left.page_chunks) == left.chunks


def test_what_cannot_be_served_is_null(begin):
    heap = begin(MIB)
    assert (heap.malloc(np.array([0, 8193, 1 << 40], np.uint64)) == 0).all()
    heap.free(np.zeros(3, np.uint64))
    assert heap.statistics().used_bytes == 0


def fill(heap, sizes):
    """Allocate until no memory is left, and return what was found.

    Threads may give up just before another one brings pages, so that one call is not enough.
    """
    found = []
    while (last := heap.malloc(sizes)).any():
        found.append(last[last != 0])
    return np.concatenate(found)


@pytest.mark.parametrize("size", [16, 128, 8192])
def test_memory_runs_out_and_comes_back(begin, size):
    heap = begin(MIB)
    sizes = np.full(2 * MIB // size, size, np.uint64)
    got = []
    for _ in range(3):
        found = fill(heap, sizes)
        assert_separate(found, np.full(len(found), size))
        got.append(len(found))
        stats = heap.statistics()
        pages = stats.used_pages[heap.shape.page_bytes.index(size)]
        assert got[-1] == pages == sum(stats.used_pages)
        assert got[-1] == sum(stats.page_chunks) * (8192 // size)
        heap.free(np.random.default_rng(1).permutation(found))
        assert heap.statistics().used_bytes == 0
    # Ten chunks at most hold queues before any page is freed.
    chunks = heap.statistics().chunks
    assert got[0] >= (chunks - 12) * (8192 // size)
    # Queues take memory, but no page that was cut is lost.
    assert min(got) >= got[0] - (chunks // 4 if size == 16 else 16) * (8192 // size)


@pytest.mark.parametrize("seed", range(3))
def test_threads_allocate_and_free_side_by_side(begin, seed):
    heap = begin(16 * MIB)
    assert trade(heap, seed, 40, [16, 64, 300, 3000]) == 0
    assert heap.statistics().used_bytes == 0


def test_little_memory_is_shared_without_loss(begin):
    heap = begin(MIB)
    for seed in range(3):
        assert trade(heap, seed, 30, [16, 64, 1000, 8192]) > 0
        stats = heap.statistics()
        assert stats.used_bytes == 0
        assert stats.free_chunks >= 0


def test_it_begins_anew_also_with_more_memory(begin):
    heap = begin(MIB)
    sizes = np.full(200, 8192, np.uint64)
    first = heap.malloc(sizes)
    assert (first == 0).any()
    heap.reinitialise()
    assert heap.statistics().used_bytes == 0
    heap.reinitialise(4 * MIB)
    again = heap.malloc(sizes)
    assert (again != 0).all()
    assert_separate(again, sizes)


def test_a_heap_goes_on_where_it_is_copied_to(begin):
    heap = begin(MIB)
    sizes = np.full(3000, 64, np.uint64)
    first = heap.malloc(sizes)
    old = heap._memory
    new = old.copy()
    heap.moved(new)
    shift = np.uint64((new.ctypes.data - old.ctypes.data) % 2**64)
    old.fill(7)
    second = heap.malloc(sizes)
    found = np.concatenate([first + shift, second])
    assert_separate(found, np.full(6000, 64))
    assert ((found >= new.ctypes.data) & (found < new.ctypes.data + MIB)).all()
    heap.free(found)
    assert heap.statistics().used_bytes == 0


def test_overhead_is_small(begin):
    stats = begin(64 * MIB).statistics()
    assert stats.overhead_bytes < 0.03 * stats.nbytes
    assert 0.97 < stats.usable_share < 0.985


def test_chunks_and_pages_of_other_sizes(begin_shaped):
    heap = begin_shaped(8 * MIB)
    chunk, page = heap.shape.chunk, heap.shape.page
    assert (heap.malloc(np.array([0, chunk + 1], np.uint64)) == 0).all()
    sizes = np.random.default_rng(2).integers(1, chunk + 1, 100).astype(np.uint64) >> np.uint64(2)
    found = heap.malloc(np.maximum(sizes, 1))
    assert (found != 0).all()
    assert_separate(found, np.maximum(sizes, page))
    used = heap.statistics().used_bytes
    assert used == sum(page << max(0, (int(s) - 1) // page).bit_length() for s in sizes)
    heap.free(found)
    assert trade(heap, 1, 30, [16, 64, 300, 1000]) == 0
    stats = heap.statistics()
    assert stats.used_bytes == 0
    assert stats.free_chunks + stats.queue_chunks + sum(stats.page_chunks) == stats.chunks
    assert stats.usable_share < chunk / heap.shape.stride


def test_a_small_ring_parks_what_it_cannot_hold(emulated):
    heap = Ouroboros(4 * MIB, "s-p", ring=1024, device=Device(emulated["ouroboros"]))
    sizes = np.full(20_000, 16, np.uint64)
    found = heap.malloc(sizes)
    assert (found != 0).all()
    heap.free(found)
    before = heap.statistics()
    assert before.used_bytes == 0
    again = heap.malloc(sizes)
    assert (again != 0).all()
    assert_separate(again, sizes)
    assert heap.statistics().page_chunks == before.page_chunks, "parked pages were not used"


class Explored(ctypes.Structure):
    """What a search over all interleavings found: `Found` of interleavings.cpp."""

    _fields_ = (
        *((name, ctypes.c_longlong) for name in ("states", "steps", "ends", "most", "least")),
        ("fault", ctypes.c_char * 64),
    )


def explore(library, variant, chunks, ring, scripts):
    """Visit every state of threads that run scripts; chunks hold two pages, segments two entries.

    m and M allocate 16 and 32 bytes, f frees. The first script runs before the others, alone; its
    pages are dealt to them. Queues' own chunks come on top.
    """
    found, index = Explored(), VARIANTS.index(variant)
    kind = index // 2
    library.explore(
        kind, index % 2, chunks + 2 * (kind > 0), ring, scripts.encode(),
        ctypes.c_longlong(1_000_000), ctypes.byref(found),
    )  # fmt: skip
    assert found.fault == b"", f"{found.fault.decode()} after {found.steps} steps"
    assert found.ends > 0
    return found


@pytest.mark.parametrize(("scripts", "chunks"), [(" m m", 6), (" mf m", 1), ("mm f f", 6)])
@pytest.mark.parametrize("variant", VARIANTS)
def test_no_interleaving_loses_or_doubles_a_page(variant, scripts, chunks, emulated):
    found = explore(emulated["interleavings"], variant, chunks, 4, scripts)
    assert found.most == 0, "a thread got no memory though there was some"


@pytest.mark.parametrize(
    ("variant", "scripts"),
    [("s-p", "mmm f f f"), *((v, "mm f m f") for v in ("s-p", "s-c", "va-c"))],
)
def test_no_interleaving_of_three_threads_does(variant, scripts, emulated):
    explore(emulated["interleavings"], variant, 6, 4, scripts)


@pytest.mark.parametrize(("scripts", "least"), [("m m m", 1), ("mm f m", 0)])
@pytest.mark.parametrize("variant", VARIANTS)
def test_the_last_memory_is_given_in_every_interleaving(variant, scripts, least, emulated):
    # One chunk of two pages. Lists and arrays may turn a chunk of the queue into pages.
    if variant == "va-p" and scripts == "mm f m":
        pytest.skip("more states than a test may visit")
    found = explore(emulated["interleavings"], variant, 1, 2 if variant[0] == "s" else 4, scripts)
    assert found.most == 1
    assert found.least == (0 if variant == "va-p" else least)


@pytest.mark.parametrize(
    ("scripts", "times"),
    [("m fm m m m", 250_000), ("m fm mf m", 50_000), ("m fmfm m m mfm", 50_000)],
)
def test_a_semaphore_gives_its_unit_once(scripts, times, emulated):
    """Threads take and bring the only unit while others give up; none waits for ever."""
    found = Explored()
    emulated["interleavings"].wander(
        scripts.encode(), ctypes.c_longlong(times), ctypes.byref(found)
    )
    assert found.fault == b"", f"{found.fault.decode()} in run {found.ends}"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((MIB, "s-x"), "variant must be one of"),
        ((MIB - 1, "s-p"), "nbytes must be at least 1048576"),
        ((1 << 40, "vl-c"), "must be at most"),
        ((MIB, "s-p", 1000), "ring must be a power of two"),
        ((MIB, "s-p", 1 << 20), "leaves no memory"),
        ((MIB, "s-p", None, 3000), "chunk must be one of 1024, 2048"),
        ((MIB, "s-p", None, 8192, 8), "page must be one of 16, 32"),
        ((MIB, "s-p", None, 65536), "nbytes must be at least 2117632"),
    ],
)
def test_bad_options_are_one_line(arguments, says):
    nbytes, variant, *others = arguments
    options = dict(zip(("ring", "chunk", "page"), others, strict=False))
    with pytest.raises(OptionError, match=says) as error:
        Ouroboros(nbytes, variant, device=Device(None), **options)
    assert "\n" not in str(error.value)


def test_control_is_laid_out_as_on_the_device(begin):
    heap = begin(MIB)
    layout = control_of(10)
    control = heap._memory[: layout.itemsize].view(layout)[0]
    assert control["bytes"] == MIB
    assert control["classes"] == 10
    assert control["chunks"] == heap.statistics().chunks
    assert VARIANTS[2 * control["kind"]].split("-")[0] == heap.variant.split("-")[0]
