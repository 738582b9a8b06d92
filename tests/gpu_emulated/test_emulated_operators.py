"""Functors of users as CUDA, emulated: operators do with them what they do on the CPU."""

import ctypes
import itertools
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

import louvain_um as lu
from louvain_um.algorithms.functors import Functor, taken
from louvain_um.algorithms.operators import Cuda, advance, filter, segmented_intersection
from louvain_um.errors import GraphError, OptionError
from louvain_um.generators import lfr, rmat
from louvain_um.gpu.algorithms.functors import written
from louvain_um.gpu.algorithms.workspace import KernelRows
from louvain_um.gpu.runtime.compile import using
from louvain_um.graph.row_view import RowView
from tests.algorithms import user_functors
from tests.algorithms.test_algorithms import Gapped
from tests.algorithms.test_user_operators import counted
from tests.gpu_emulated import libraries
from tests.gpu_emulated.emulated_engine import HostArray, held_bytes

pytestmark = pytest.mark.deep

GRAPHS = {
    "plain": rmat(6, edge_factor=4, seed=3).graph,
    "weighted": lfr(120, weights="uniform", seed=3).graph,
    "wide": lu.Graph.from_edges([0, 1, 2, 3], [1, 2, 0, 3], [1 << 40, 3, 4, 9]),
}
VISIT, KEEP, PAIR = ("u", "v", "w", "arc"), ("v",), ("a", "b", "c")
SUM = "sum", *VISIT

# Names need not be those of the operator's parameters, and functions may begin in one line.
PICKED = [lambda v, x: x[v] > 40 or x[v] % 3 == 0, lambda one, x: 0 <= one < x[one]]
BY_HAND = Cuda("atomicAdd((u64*)sums + v, x[u] * w); return x[v] > 20;", "x", "sums")


ADDED_BY_HAND = Cuda("return w * 0.5 - y[v];", "y")


def divides(v, x):
    return 7 // (x[v] - x[v])


def outside(v, x):
    x[v + len(x)] = 1


def endless(v, x):
    while x[v + len(x)] != 3:
        pass


class Device(HostArray):
    """An array of the host that seems to be CuPy's."""

    __cuda_array_interface__ = None


class HostCupy(ModuleType):
    ndarray = Device

    def __getattr__(self, name):
        function = getattr(np, name)

        def call(*given, **options):
            found = function(*given, **options)
            return found.view(Device) if isinstance(found, np.ndarray) else found

        return call


class Linked:
    """A changing graph in linked blocks on the emulated device."""

    def __init__(self, graph, store):
        self.graph = lu.DynamicGraph(graph, store=store)
        self.links = self.graph._store.linked

    def rows(self, view, linked):
        there = {
            name: None if array is None else np.array(array).view(Device)
            for name in ("begins", "ends", "targets", "weights")
            for array in [getattr(view, name)]
        }
        return KernelRows(
            **there, loops=None, n_arcs=view.n_arcs, total_weight=view.total_weight, linked=linked
        )

    def view(self):
        raise AssertionError("the rows are on the device")

    snapshot = view

    def device_view(self):
        return self.rows(self.graph.view(), 0)

    def linked_device_view(self):
        return self.rows(self.graph.linked_view(), self.links)


class There:
    """A store of rows on the emulated device."""

    def __init__(self, graph):
        view = graph.view() if isinstance(graph, Gapped) else RowView.of(graph)
        arrays = {name: getattr(view, name) for name in ("begins", "ends", "targets", "weights")}
        there = {k: None if a is None else np.array(a).view(Device) for k, a in arrays.items()}
        self.rows = KernelRows(
            **there, loops=None, n_arcs=view.n_arcs, total_weight=view.total_weight
        )

    def view(self):
        raise AssertionError("the rows are on the device")

    snapshot = view

    def device_view(self):
        return self.rows


def functors():
    """Return all functors of these tests, and the kernels that they are compiled into."""
    x = np.zeros(1, np.int64)
    for case in user_functors.CASES:
        yield case.function, VISIT, user_functors.arguments_of(case, 1)
    yield BY_HAND, VISIT, [x, x]
    for function, arguments in user_functors.TERMS:
        yield function, SUM, user_functors.arguments_of(user_functors.Case(function, arguments), 1)
    yield ADDED_BY_HAND, SUM, [np.zeros(1)]
    for function in (*PICKED, divides, outside, endless):
        yield function, KEEP, [x]
    yield user_functors.beyond, KEEP, user_functors.beyond_arguments(1)
    yield user_functors.arithmetic, KEEP, [x, x, x]
    yield user_functors.unsigned_arithmetic, KEEP, [np.zeros(1, np.uint32), x, x]
    reals = [np.zeros(1), np.zeros(1, np.float32)]
    yield user_functors.real_arithmetic, KEEP, [x, *reals, *reals]
    yield counted, PAIR, [x]
    yield sys.modules["louvain_um.algorithms.operators"].count, PAIR, []


class Kernels:
    """Kernels with functors in front, compiled for the CPU into one library."""

    def __init__(self):
        self.known, text = {}, ['#include "cuda.h"', '#include "launch.h"']
        text += ['#include "functor.cuh"', '#include "linked_rows.cuh"']
        text += ["namespace plain {", '#include "operators.cu"', "}"]
        names = ['{"list_blocks", launch_of(plain::list_blocks)}']
        for k, (function, leading, arguments) in enumerate(functors()):
            named, given = leading[leading[0] == "sum" :], taken(tuple(arguments), np)
            front = written(Functor.of("visit", named, function, given, sums=leading is SUM))
            self.known[front] = k
            text += [f"namespace n{k} {{", front, '#include "operators.cu"', "}"]
            kernels = {
                VISIT: [
                    f"visit_arcs<{weights}, {rows}, "
                    for weights in ("Unweighted", "u32", "u64")
                    for rows in ("RowView", "LinkedRows", "ListedRows")
                ],
                SUM: [
                    f"sum_arcs<{weights}, {rows}, "
                    for weights in ("Unweighted", "u32", "u64")
                    for rows in ("RowView", "LinkedRows")
                ],
                KEEP: ["keep_items<"],
                PAIR: [f"visit_common<{rows}, " for rows in ("RowView", "LinkedRows")],
            }[leading]
            names += [
                f'{{"{k} {name}Functor>", launch_of(n{k}::{name}n{k}::Functor>)}}'
                for name in kernels
            ]
        text += ["static const std::map<std::string, Launch>& kernels() {"]
        text += ["static const std::map<std::string, Launch> all = {", ",\n".join(names), "};"]
        text += ["return all; }"]
        self.library = ctypes.CDLL(str(libraries.compiled("functors", "\n".join(text))))

    def resident_blocks(self, kernel, threads, shared=0):
        return 2

    def get(self, source, kernel, types="", observer=None):
        return self.launching(kernel)

    def written(self, source, expression, front):
        return self.launching(f"{self.known[front]} {expression}")

    def launching(self, name):
        def launch(grid, block, args, shared=0):
            held = [held_bytes(each) for each in args]
            pointers = (ctypes.c_void_p * len(held))(*(each.ctypes.data for each in held))
            assert self.library.launch_kernel(name.encode(), grid[0], pointers), name

        return launch


@pytest.fixture(scope="module")
def compiled(emulated):
    return Kernels()


@pytest.fixture
def device(compiled, monkeypatch):
    cupy = HostCupy("cupy")
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    with using(compiled):
        yield SimpleNamespace(asarray=lambda values: np.array(values).view(Device))


@pytest.mark.parametrize("returns", ["all", "unique", None])
@pytest.mark.parametrize(
    "form", ["whole", "gapped", "pages:page=32", "vine:block=3", "bal:block=2"]
)
@pytest.mark.parametrize("name", GRAPHS)
def test_advance(device, name, form, returns):
    graph, linked = GRAPHS[name], form not in ("whole", "gapped")
    graph = Gapped(graph) if form == "gapped" else graph
    there, n = Linked(graph, form) if linked else There(graph), graph.n_vertices
    frontier = np.unique(np.random.default_rng(1).integers(0, n, n // 2 + 1))
    # Kernels of the CPU are compiled for each type of weights, and of rows.
    for case in user_functors.CASES[:: 3 if name == "wide" else 1]:
        by_place = linked and case.function is user_functors.gathered
        rows = there.graph if by_place else graph
        for balanced in {case.balanced, False}:
            expected = user_functors.arguments_of(case, n)
            found = user_functors.arguments_of(case, n, device)
            how = {"returns": returns, "balanced": balanced}
            for some in (frontier, None):
                here = advance(rows, some, case.function, *expected, **how)
                kept = advance(there, some, case.function, *found, **how)
                if case.function not in user_functors.ORDERED and returns:
                    assert kept.tolist() == here.tolist()
            for ours, theirs in zip(found, expected, strict=True):
                assert np.asarray(ours).tobytes() == np.asarray(theirs).tobytes(), case


@pytest.mark.parametrize("form", ["whole", "gapped", "pages:page=32", "vine:block=3"])
@pytest.mark.parametrize("name", GRAPHS)
def test_sums(device, name, form):
    graph, linked = GRAPHS[name], form not in ("whole", "gapped")
    graph = Gapped(graph) if form == "gapped" else graph
    there, n = Linked(graph, form) if linked else There(graph), graph.n_vertices
    frontier = np.random.default_rng(1).integers(0, n, n // 2 + 1)
    for function, letters in user_functors.TERMS:
        case = user_functors.Case(function, letters)
        here, given = (user_functors.arguments_of(case, n, each) for each in (np, device))
        for some in (frontier, None, []):
            expected = advance(graph, some, function, *here, returns="sums")
            found = advance(there, some, function, *given, returns="sums")
            assert found.tobytes() == expected.tobytes()
    y = np.arange(n) / 8
    found = advance(there, None, ADDED_BY_HAND, device.asarray(y), returns="sums")
    expected = advance(graph, None, lambda u, v, w, arc, y: w * 0.5 - y[v], y, returns="sums")
    assert found.tobytes() == expected.tobytes()


def test_values_that_arrays_cannot_hold(device):
    graph = lu.Graph.from_edges([0], [1], n_vertices=200)
    here, there = (user_functors.beyond_arguments(200, each) for each in (np, device))
    filter(graph, None, user_functors.beyond, *here)
    filter(There(graph), None, user_functors.beyond, *there)
    for ours, theirs in zip(there, here, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_a_functor_in_cuda(device):
    graph, x = GRAPHS["weighted"], np.arange(GRAPHS["weighted"].n_vertices)
    sums = device.asarray(np.zeros_like(x))
    kept = advance(There(graph), None, BY_HAND, device.asarray(x), sums)
    expected = np.zeros_like(x)
    sources = np.repeat(x, np.diff(graph.offsets))
    np.add.at(expected, graph.targets, x[sources] * graph.weights)
    assert sums.tolist() == expected.tolist()
    assert kept.tolist() == [v for v in np.unique(graph.targets).tolist() if v > 20]


def test_filter(device):
    graph, rng = GRAPHS["plain"], np.random.default_rng(2)
    items, x = rng.integers(0, 60, 200), rng.integers(0, 99, graph.n_vertices)
    for function in PICKED:
        found = filter(There(graph), items, function, device.asarray(x))
        assert found.tolist() == filter(graph, items, function, x).tolist()


def test_arithmetic_of_integers(device):
    graph, rng, ends = GRAPHS["plain"], np.random.default_rng(5), np.iinfo(np.int64)
    pool = np.array([ends.min, ends.max, -7, -1, 1, 2, 3, 5, 40, 41, 10**12])
    for _ in range(9):
        x, y = (rng.choice(pool, graph.n_vertices) for _ in range(2))
        expected = np.zeros(20 * len(x), np.int64)
        found = device.asarray(expected)
        filter(graph, None, user_functors.arithmetic, x, y, expected)
        given = device.asarray(x), device.asarray(y), found
        filter(There(graph), None, user_functors.arithmetic, *given)
        np.testing.assert_array_equal(found, expected)


def test_arithmetic_of_unsigned_integers(device):
    graph, rng = GRAPHS["plain"], np.random.default_rng(7)
    n = graph.n_vertices
    q, x = rng.integers(0, 2**32, n).astype(np.uint32), rng.integers(-9, 2**40, n)
    q[::3], expected = rng.integers(0, 6, len(q[::3])), np.zeros(20 * n, np.int64)
    found = device.asarray(expected)
    filter(graph, None, user_functors.unsigned_arithmetic, q, x, expected)
    given = device.asarray(q), device.asarray(x), found
    filter(There(graph), None, user_functors.unsigned_arithmetic, *given)
    np.testing.assert_array_equal(found, expected)


def test_arithmetic_of_floats(device):
    graph, rng = GRAPHS["plain"], np.random.default_rng(6)
    n = graph.n_vertices
    x, y = rng.integers(-9, 9, n), rng.standard_normal(n)
    z = rng.standard_normal(n).astype(np.float32)
    z[::3] = y[::3] = 0.5
    expected = np.zeros(8 * n), np.zeros(n, np.float32)
    found = [device.asarray(each) for each in expected]
    filter(graph, None, user_functors.real_arithmetic, x, y, z, *expected)
    given = (device.asarray(each) for each in (x, y, z))
    filter(There(graph), None, user_functors.real_arithmetic, *given, *found)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("form", ["whole", "pages:page=32", "vine:block=3", "bal:block=64"])
@pytest.mark.parametrize("name", GRAPHS)
def test_segmented_intersection(device, name, form):
    graph, rng = GRAPHS[name], np.random.default_rng(3)
    n, where = graph.n_vertices, There(graph) if form == "whole" else Linked(graph, form)
    for pairs in (rng.integers(0, n, (300, 2)), None):
        each, there = np.zeros(n, np.int64), device.asarray(np.zeros(n, np.int64))
        expected = segmented_intersection(graph, pairs, counted, each)
        given = None if pairs is None else device.asarray(pairs)
        counts = segmented_intersection(where, given, counted, there)
        assert counts.tolist() == expected.tolist()
        assert there.tolist() == each.tolist()
    pairs = device.asarray([[0, 1]])
    assert segmented_intersection(where, pairs).tolist() == (
        segmented_intersection(graph, [[0, 1]]).tolist()
    )


def test_what_goes_wrong_ends_in_one_line(device):
    there, x = There(GRAPHS["plain"]), device.asarray(np.arange(64))
    for function, message in (
        (divides, "keep divides by 0; mend"), (outside, "outside an array"),
        (endless, "outside an array"),
    ):  # fmt: skip
        with pytest.raises(OptionError, match=message):
            filter(there, None, function, x)
    case = user_functors.CASES[0]
    given = user_functors.arguments_of(case, 64, device)
    for kind, balanced in itertools.product((np.int64, np.uint32), (False, True)):
        wrong = device.asarray(np.array([3, 99], kind))
        with pytest.raises(GraphError, match="99 is not a vertex"):
            advance(there, wrong, case.function, *given, balanced=balanced)
        with pytest.raises(GraphError, match=r"not of shape \(1, 2\)"):
            advance(there, wrong[None], case.function, *given, balanced=balanced)
    with pytest.raises(OptionError, match="contiguous"):
        filter(there, None, PICKED[0], device.asarray(np.arange(128))[::2])
    with pytest.raises(OptionError, match=r"argument 1 is ndarray; pass numbers .* of cupy"):
        filter(there, device.asarray([1]), PICKED[0], np.arange(64))
