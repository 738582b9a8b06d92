"""Graphs built on a device, or by emulated kernels: those that the host builds, bit for bit."""

import pickle
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import partial
from math import ceil
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import coo_array

import louvain_um as lu
from louvain_um import Graph, as_graph
from louvain_um.analysis import ensemble
from louvain_um.core.numbering import community_sizes
from louvain_um.formats.edge_list.number_vertices import NUMBER_SPARSE, number_vertices
from louvain_um.generators.same_degrees import RandomGraphs
from louvain_um.gpu.building import device_rows, edges, objects
from louvain_um.gpu.building.build import PARTIALS, Builder, Ends, LongRowError
from louvain_um.gpu.building.device_rows import rows_by
from louvain_um.gpu.dynamic.cuda import CudaDevice
from louvain_um.gpu.generate.generate import DeviceRandomGraphs, held_bytes
from louvain_um.gpu.graph import DeviceGraph, FetchedGraph
from louvain_um.gpu.relabel.relabel import agreed_counts, community_counts
from louvain_um.graph import rows
from louvain_um.graph.build import rows_made_by
from louvain_um.graph.row_view import EMPTY, induced_graph, subgraph
from louvain_um.options import Options
from louvain_um.placement.memory import copies
from louvain_um.results import quality
from louvain_um.results.quality import dense_labels
from tests.gpu_emulated.emulated_device import Counted, DeviceArray, Emulated

RNG = np.random.default_rng(7)
WEIGHTS: dict[str, Any] = {
    "none": lambda m: None,
    "ones": lambda m: np.ones(m, np.int64),
    "bytes": lambda m: RNG.integers(0, 5, m).astype(np.uint8),
    "large": lambda m: RNG.integers(0, 2**45, m),
    "even": lambda m: RNG.integers(0, 2**30, m).astype(np.uint64) << np.uint64(25),
    "wide": lambda m: RNG.integers(1, 9, m) + (np.arange(m) < 20) * 2**44,
    "real": lambda m: RNG.random(m),
    "float32": lambda m: (RNG.random(m) * 8).astype(np.float32),
    "whole": lambda m: RNG.integers(0, 9, m).astype(np.float64),
    "mixed": lambda m: RNG.random(m) * 10.0 ** RNG.integers(-40, 9, m),
    "zeros": lambda m: np.zeros(m),
    "negative": lambda m: RNG.integers(-1, 5, m),
    "nan": lambda m: np.where(RNG.random(m) < 0.1, np.nan, 1.0),
}
IDS = (np.uint32, np.int32, np.int64, np.uint64, np.uint8)


@dataclass(frozen=True)
class There:
    """A device to build graphs on: how arrays come and go, and sizes of graphs for it."""

    device: Any
    put: Callable[[Any], Any]
    get: Callable[[Any], Any]
    sizes: tuple[tuple[int, int], ...]
    ranges: tuple[int, int]


@pytest.fixture(params=["emulated", pytest.param("gpu", marks=pytest.mark.gpu)])
def there(request):
    if request.param == "emulated":
        device = Emulated(request.getfixturevalue("emulated"), 2)
        sizes = ((1, 30), (13, 40), (39, 90), (25, 0))
        return There(device, np.asarray, np.asarray, sizes, (7, 1 << 20))
    request.getfixturevalue("gpu")
    import cupy

    sizes = ((50, 200), (3000, 200_000), (1, 1000), (200_000, 1_500_000))
    return There(CudaDevice(), cupy.asarray, cupy.asnumpy, sizes, (1 << 14, 1 << 25))


def differences(there, made, right):
    """Return which parts of a graph on the device differ from the host's."""
    if made is None:
        return ["nothing made"]
    loops = right.loops if right.has_loops else None
    pairs = {
        "offsets": (made.offsets, right.offsets),
        "targets": (made.targets, right.targets),
        "weights": (made.weights, right.weights),
        "loops": (made.loops, loops),
    }
    found = [name for name, (a, b) in pairs.items() if not alike(there, a, b)]
    about = ((made.scale, right.scale), (made.notes, right.notes))
    return found + [f"{a} for {b}" for a, b in about if a != b]


def alike(there, made, right):
    """Compare arrays; 64-bit integers have no sign on the device."""
    if made is None or right is None:
        return made is right
    if right.dtype == np.int64 and made.dtype == np.uint64:
        right = right.view(np.uint64)
    return made.dtype == right.dtype and np.array_equal(there.get(made), right)


def from_edges(builder, u, v, weights=None, **options):
    """Return the graph of a list of edges, made at once; None if the host must look at it."""
    listed = builder.listed(u, v, weights, **options)
    if listed is None:
        return None
    how = {"weighted": listed.weighted, "summing": listed.summing}
    made = builder.rows(listed.pieces(listed.edges), listed.n, **how)
    graph = DeviceGraph.of(replace(made, scale=listed.scale), made.loops)
    return replace(graph, notes=listed.notes_of(made), check=False)


@pytest.mark.parametrize("kind", WEIGHTS)
def test_edges_make_the_graph_of_the_host(there, kind):
    for number in range(12):
        n, m = there.sizes[number % 4]
        ids = IDS[number % (5 if n < 256 else 4)]
        u, v = (RNG.integers(0, n, m).astype(ids) for _ in range(2))
        u[: m // 10] = u[:1]  # a hub
        weights = WEIGHTS[kind](m)
        options = {
            "duplicates": (None, "once", "sum")[number % 3],
            "n_vertices": None if number % 4 < 2 else n + 3,
        }
        builder = Builder(there.device, there.ranges[number % 2])
        given = [None if a is None else there.put(a) for a in (u, v, weights)]
        made = from_edges(builder, *given, **options)
        try:
            right = Graph.from_edges(u, v, weights, **options)
        except ValueError:
            assert made is None
            continue
        assert differences(there, made, right) == [], options


class Copies:
    """Copies to and from a device whose memory is counted."""

    fetched = staticmethod(np.array)

    @staticmethod
    def sent(values):
        copy = Counted().empty(len(values), values.dtype)
        copy[:] = values
        return copy


@pytest.mark.parametrize("spans", [1, 3, 9])
@pytest.mark.parametrize("kind", ["none", "ones", "bytes", "large", "whole"])
def test_rows_of_edges_in_host_memory_are_those_of_the_host(emulated, kind, spans, monkeypatch):
    monkeypatch.setattr(device_rows, "FIXED_BYTES", 8 * PARTIALS + 1024)
    device = Emulated(emulated, 2)
    device.xp = Counted()
    built = []

    def compress(u, v, weights, n, *, summing, threads):
        ends = Ends(u, v, weights)
        weighted = weights is not None
        whole = device_rows.building_bytes(len(u), n, weighted=weighted)
        limit = whole if spans == 1 else whole - (whole - 32 * n - device_rows.FIXED_BYTES) * 2 // 3
        limit = limit if spans < 9 else limit - (limit - 32 * n - device_rows.FIXED_BYTES) // 2
        sizes = device_rows.sizes_within(limit, len(u), n, weighted=weighted, threads=2)
        assert (sizes.most_arcs < 2 * len(u)) == (spans > 1 and len(u) > 0)
        DeviceArray.peak = DeviceArray.live
        try:
            made = rows_by(
                Builder(device, sizes.range_arcs), Copies, ends, n, sizes, summing=summing
            )
        except LongRowError:
            return rows.compress(u, v, weights, n, summing=summing, threads=threads)
        assert DeviceArray.peak <= limit
        assert DeviceArray.live < 8 * PARTIALS + 1024
        built.append(made)
        return made

    for number in range(6):
        n, m = int(RNG.integers(9, 40)), int(RNG.integers(60, 190)) * (number > 0)
        u, v = (RNG.integers(0, n, m) for _ in range(2))
        options = {"duplicates": (None, "once", "sum")[number % 3], "n_vertices": n + number % 2}
        weights = WEIGHTS[kind](m)
        right = Graph.from_edges(u, v, weights, **options)
        with rows_made_by(compress):
            made = Graph.from_edges(u, v, weights, **options)
        for name in ("offsets", "targets", "weights", "loops"):
            mine, other = getattr(made, name), getattr(right, name)
            assert (mine is None) == (other is None)
            assert mine is None or (mine.dtype == other.dtype and np.array_equal(mine, other))
        assert (made.scale, made.notes) == (right.scale, right.notes)
    assert len(built) > 3


@pytest.mark.parametrize("kind", ["none", "bytes", "large"])
def test_rows_that_stay_on_the_device_come_when_they_are_asked_for(emulated, kind):
    device = Emulated(emulated, 2)

    def compress(u, v, weights, n, *, summing, threads):
        ends, sizes = Ends(u, v, weights), device_rows.Sizes(len(u), 2 * len(u), 50)
        return rows_by(Builder(device, 50), Copies, ends, n, sizes, summing=summing, stay=True)

    n, names = 30, np.array([f"v{i}" for i in range(30)])
    u, v, weights = RNG.integers(0, 15, 120), RNG.integers(15, n, 120), WEIGHTS[kind](120)
    v[:3] = u[:3]
    given, modes = (u, v, weights), (u, v[::-1] | 16, weights)
    more = {"n_vertices": n, "names": names}
    right = Graph.from_edges(*given, **more)
    two = Graph.from_edges(*modes, n_vertices=32, kind="bipartite")
    with rows_made_by(compress):
        made = Graph.from_edges(*given, **more)
        both = Graph.from_edges(*modes, n_vertices=32, kind="bipartite")
    assert isinstance(made, FetchedGraph)
    assert not {"offsets", "targets", "loops"} & {*vars(made)}
    assert (made.weighted, made.total_weight) == (right.weighted, right.total_weight)
    copies = pickle.loads(pickle.dumps(made)), replace(made, notes=right.notes)
    for mine, wanted in ((made, right), *((copy, right) for copy in copies), (both, two)):
        for field in fields(right):
            one, other = (getattr(graph, field.name) for graph in (mine, wanted))
            assert np.array_equal(one, other), field.name
            assert np.asarray(one).dtype == np.asarray(other).dtype
    assert not hasattr(made, "nothing")


def test_building_in_spans_that_is_cut_short_holds_no_memory(emulated):
    device = Emulated(emulated, 2)
    device.xp = Counted()
    ends = Ends(*(RNG.integers(0, 20, 300).astype(np.uint32) for _ in range(2)))
    before = DeviceArray.live

    class Cut(Copies):
        @staticmethod
        def fetched(array):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rows_by(Builder(device, 50), Cut, ends, 20, device_rows.Sizes(64, 100, 50), summing=False)
    short = device_rows.Sizes(64, 3, 50)  # than any row
    with pytest.raises(LongRowError):
        rows_by(Builder(device, 50), Copies, ends, 20, short, summing=False)
    assert DeviceArray.live == before


def test_what_is_no_graph_is_left_to_the_host(there):
    builder = Builder(there.device)
    for u, v in (
        ([0, -1], [1, 1]), ([0, 2**33], [1, 1]), ([0.5, 1.0], [1, 1]), ([0, 1], [1]),
        ([[0]], [[1]]), ([True], [False]),
    ):  # fmt: skip
        assert from_edges(builder, there.put(u), there.put(v)) is None
    ends = there.put([0, 5]), there.put([1, 1])
    assert from_edges(builder, *ends, n_vertices=3) is None


@pytest.mark.parametrize("kind", ["ones", "bytes", "large", "even", "real", "float32"])
def test_rows_of_a_matrix_make_the_graph_of_the_host(there, kind):
    builder = Builder(there.device)
    made_there = 0
    for number in range(8):
        n, m = (max(2, size) for size in there.sizes[number % 4])
        u, v = RNG.integers(0, n, m), RNG.integers(0, n, m)
        if number % 4:
            u, v = u[u != v], v[u != v]
        values = WEIGHTS[kind](len(u))
        values = np.maximum(values, 1e-30 if values.dtype.kind == "f" else 1)
        matrix = coo_array((values, (u, v)), (n, n))
        matrix = matrix.tocsr() if number == 5 else (matrix + matrix.T).tocsr()
        made = builder.from_rows(*map(there.put, (matrix.indptr, matrix.indices, matrix.data)))
        if made is not None:
            made_there += 1
            assert differences(there, DeviceGraph.of(made), as_graph(matrix)) == []
    # Sums of large weights that are no longer exact are left to the host.
    assert made_there >= (1 if kind == "large" else 3)


def test_edges_may_come_in_pieces(there):
    u, v = (RNG.integers(0, 30, 200).astype(np.uint32) for _ in range(2))
    pieces = [Ends(*(there.put(x[i : i + 64]) for x in (u, v))) for i in range(0, 200, 64)]
    made = Builder(there.device, 50).rows(lambda: pieces, 30, weighted=False, summing=False)
    right = Graph.from_edges(u, v, n_vertices=30)
    assert made.offsets.tolist() == right.offsets.tolist()
    assert made.targets.tolist() == right.targets.tolist()


@pytest.mark.parametrize("kind", ["none", "bytes", "large", "real"])
def test_a_run_on_the_device_makes_the_rows_of_the_host(gpu, kind, monkeypatch):
    n, m = 100_000, 1_200_000
    u, v, weights = RNG.integers(0, n, m), RNG.integers(0, n, m), WEIGHTS[kind](m)
    given = (u, v) if weights is None else (u, v, np.maximum(weights, 1e-3))
    right = as_graph(given)
    made = []
    there = edges._made_there
    monkeypatch.setattr(
        edges, "_made_there", lambda *a, **k: made.append(there(*a, **k)) or made[-1]
    )
    with edges.rows_made_on(Options(device="cuda")):
        graph = as_graph(given)
    assert [rows is not None for rows in made] == [True]
    for name in ("offsets", "targets", "weights", "loops"):
        assert np.array_equal(getattr(graph, name), getattr(right, name)), name
    assert (graph.scale, graph.notes) == (right.scale, right.notes)
    assert np.array_equal(lu.louvain(given, device="cuda").labels, lu.louvain(right).labels)
    for budget in ("20MB", "1MB"):  # in spans, if the host's threads take longer; by the host
        with edges.rows_made_on(Options(device="cuda", device_budget=budget)):
            assert np.array_equal(as_graph(given).targets, right.targets)
    assert made[-1] is None
    least = edges.limit_of(Options(device_budget="100%"), m, n, weighted=weights is not None)
    assert right.nbytes < least < 5 * right.nbytes
    share = f"{100 * device_rows.building_bytes(m, n, weighted=weights is not None) / least + 1}%"
    with edges.rows_made_on(Options(device="cuda", device_budget=share)):
        assert np.array_equal(as_graph(given).targets, right.targets)
    assert made[-1] is not None


def test_a_run_on_the_device_numbers_sparse_ids(gpu, monkeypatch):
    n, m = 50_000, 1_200_000
    ids = SPREADS["64 bits"](np.arange(n, dtype=np.uint64)).astype(np.int64)
    table = pd.DataFrame(
        {"source": ids[RNG.integers(0, n, m)], "target": ids[RNG.integers(0, n, m)]}
    )
    right = as_graph(table)
    made = []
    there = edges._numbered_there
    monkeypatch.setattr(edges, "_numbered_there", lambda *a: made.append(there(*a)) or made[-1])
    for budget in (None, "40MB", "1MB"):
        with edges.rows_made_on(Options(device="cuda", device_budget=budget)):
            assert unequal(as_graph(table), right) == []
    assert [each is not None for each in made] == [True, True, False]


@pytest.mark.parametrize("kind", ["ones", "float32"])
def test_matrices_on_the_device_give_the_labels_of_the_host(gpu, kind):
    import cupyx

    n, m = 5000, 60_000
    u, v = RNG.integers(0, n, m), RNG.integers(0, n, m)
    u, v = u[u != v], v[u != v]
    matrix = coo_array((np.maximum(WEIGHTS[kind](len(u)), 1e-3), (u, v)), (n, n)).tocsr()
    matrix = (matrix + matrix.T).tocsr().astype(np.float64)
    there = cupyx.scipy.sparse.csr_matrix(matrix)
    assert objects.built_there(there) is not None
    here, far = lu.louvain(matrix, device="cpu"), lu.louvain(there, device=str(gpu))
    assert np.array_equal(here.labels, far.labels)


def test_arrays_by_dlpack_and_bad_ids(gpu):
    import cupy

    u, v = cupy.asarray([0, 1, 2, 3]), cupy.asarray([1, 2, 0, 3])

    class Packed:
        """An array that only DLPack knows."""

        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **options):
            return self.array.__dlpack__(**options)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    found = lu.louvain((Packed(u), Packed(v)), device=str(gpu))
    assert found.labels.tolist() == lu.louvain((u.get(), v.get()), device="cpu").labels.tolist()
    with pytest.raises(lu.GraphError, match="source at index 0 is negative"):
        lu.louvain((u - 1, v), device=str(gpu))


class DeviceColumn:
    """A column of a device's table, by its interface alone."""

    def __init__(self, values, mask=None):
        self.values = values
        given = getattr(values, "__cuda_array_interface__", {"shape": values.shape})
        self.__cuda_array_interface__ = {**given, "mask": mask}

    def to_pandas(self):
        return pd.Series(
            CudaDevice().get(self.values) if hasattr(self.values, "get") else self.values
        )


class DeviceFrame:
    """A table in a device's memory, as cuDF has them."""

    __module__ = "cudf.core.dataframe"

    def __init__(self, columns, put=np.asarray, mask=None):
        self.frame = pd.DataFrame(columns)
        self.columns = self.frame.columns
        self.there = {name: DeviceColumn(put(self.frame[name]), mask) for name in columns}

    def __getitem__(self, name):
        return self.there[name]

    def to_pandas(self):
        return self.frame


def tables():
    """Return columns of tables, and whether their names are such that a device suffices."""
    u, v = np.array([0, 1, 2, 3, 3]), np.array([1, 2, 0, 0, 1])
    w = np.array([0.5, 2, 1, 1, 4])
    yield {"source": u, "target": v}, True
    yield {"dst": u, "src": v, "Weight": w}, True
    yield {"from": u, "to": v, "weight": w.astype(np.int32)}, True
    yield {"source": u + 5, "target": v + 5}, True
    yield {"source": u, "target": v, "strength": w}, False
    yield {"source": u, "target": v, "time": u}, False
    yield {"user": u, "item": v}, False
    yield {0: u, 1: v}, False
    yield {"source": u}, False


@pytest.mark.parametrize(("columns", "by_name"), [*tables()])
def test_tables_on_a_device_make_the_graph_of_the_host(there, columns, by_name):
    frame = DeviceFrame(columns, there.put)
    found = objects.columns_of(frame)
    assert (found is not None) == by_name == objects.is_there(frame)
    assert objects.columns_of(DeviceFrame(columns, there.put, mask=1)) is None
    if found is not None:
        made = of_columns(there, [column.values for column in found])
        assert unequal(made, as_graph(pd.DataFrame(columns))) == []


def of_columns(there, columns, room=1 << 40):
    """Return the graph of a table's columns, made on a device in so much memory."""
    here = SimpleNamespace(sent=there.put, fetched=there.get)
    return objects.graph_of_columns(there.device, here, columns, room, numbered=True)


def unequal(made, right):
    """Return which fields of two graphs differ."""
    pairs = {
        field.name: (getattr(made, field.name), getattr(right, field.name))
        for field in fields(right)
    }
    return [name for name, pair in pairs.items() if not same_values(*pair)]


def same_values(one, other):
    if not isinstance(other, np.ndarray):
        return one is other or one == other
    return one is not None and one.dtype == other.dtype and np.array_equal(one, other)


SPREADS = {
    "gaps": lambda ids: 3 * ids + 2,
    "from 1": lambda ids: ids + 1,
    "32 bits": lambda ids: (ids * 2654435761 % 2**32 - 2**31).clip(0).astype(np.uint32),
    "64 bits": lambda ids: ids * 0x9E3779B97F4A7C15 % 2**63,
}


@pytest.mark.parametrize("kind", ["none", "bytes", "zeros", "real", "wide"])
@pytest.mark.parametrize("spread", SPREADS)
def test_sparse_ids_are_numbered_as_on_the_host(there, spread, kind):
    for n, m in there.sizes:
        ids = SPREADS[spread](np.arange(n, dtype=np.uint64)).astype(np.int64)
        u, v = ids[RNG.integers(0, n, m)], ids[RNG.integers(0, n, m)]
        weights = WEIGHTS[kind](m)
        if kind == "bytes" and m:
            weights[: m // 2] = 0  # some vertices have no edges that count
        columns = {"source": u, "target": v} | ({} if weights is None else {"weight": weights})
        right = as_graph(pd.DataFrame(columns))
        made = of_columns(there, [there.put(each) for each in columns.values()])
        assert unequal(made, right) == [], (n, m)
        sent = SimpleNamespace(sent=there.put, fetched=there.get)
        number = partial(edges.numbered_by, there.device, sent, most_names=n + 1)
        pair, wanted = number(u, v), number_vertices(u.copy(), v.copy())
        names = np.arange(wanted[2]) if wanted[3] is None else wanted[3]
        assert [*map(np.ndarray.tolist, (*pair[:2], pair[3]))] == [
            each.tolist() for each in (*wanted[:2], names)
        ]
        before = NUMBER_SPARSE.set(number)
        assert unequal(as_graph(pd.DataFrame(columns)), right) == []
        NUMBER_SPARSE.reset(before)
        assert len(names) < 2 or edges.numbered_by(there.device, sent, u, v, 1) is None


def test_a_device_that_fills_up_meanwhile_leaves_no_ids_half_numbered(there, monkeypatch):
    ids = SPREADS["32 bits"](np.arange(500, dtype=np.uint64))
    u, v = RNG.permutation(ids), RNG.permutation(ids)
    wanted, numbers, calls = number_vertices(u.copy(), v.copy()), Builder.numbers, []

    def filling(*given):
        calls.append(given)
        if len(calls) > 1:
            raise MemoryError
        return numbers(*given)

    monkeypatch.setattr(Builder, "numbers", filling)
    sent = SimpleNamespace(sent=there.put, fetched=there.get)
    number = partial(edges.numbered_by, there.device, sent, most_names=len(ids))
    before = NUMBER_SPARSE.set(lambda *ends: _or_none(number, *ends))
    made = number_vertices(u, v)
    NUMBER_SPARSE.reset(before)
    assert [*map(np.ndarray.tolist, (*made[:2], made[3]))] == [
        each.tolist() for each in (*wanted[:2], wanted[3])
    ]


def _or_none(step, *given):
    """Return what a step makes; None without memory, as in runs."""
    try:
        return step(*given)
    except MemoryError:
        return None


@pytest.mark.parametrize("kind", ["none", "bytes", "real"])
def test_columns_beyond_the_budget_are_made_in_spans(emulated, kind, monkeypatch):
    monkeypatch.setattr(device_rows, "FIXED_BYTES", 8 * PARTIALS + 2048)
    monkeypatch.setattr(copies, "fetched", np.array)
    device = Emulated(emulated, 2)
    device.xp = Counted()
    n, m = 30, 900
    ids = SPREADS["64 bits"](np.arange(n, dtype=np.uint64)).astype(np.int64)
    columns = {"source": ids[RNG.integers(0, n, m)], "target": ids[RNG.integers(0, n, m)]}
    if kind != "none":
        columns["weight"] = WEIGHTS[kind](m)
    right = as_graph(pd.DataFrame(columns))
    whole = device_rows.building_bytes(m, n, weighted=kind != "none") + 8 * n
    there = There(device, np.asarray, np.array, (), ())
    for room in (whole, whole * 2 // 3):
        before = DeviceArray.peak = DeviceArray.live  # of others, which may be garbage
        made = of_columns(there, [*columns.values()], room)
        assert DeviceArray.peak - before <= room
        assert isinstance(made, FetchedGraph) == (room == whole)
        assert unequal(made, right) == []
        del made
    before = DeviceArray.live
    assert of_columns(there, [*columns.values()], 40 * n) is None
    assert DeviceArray.live <= before
    ends = np.arange(40_000)  # of which counts would take more than the room
    before = DeviceArray.peak = DeviceArray.live
    assert of_columns(there, [ends, ends[::-1]], 100_000) is None
    assert DeviceArray.peak - before <= 100_000


@pytest.mark.parametrize("columns", [columns for columns, *_ in tables()][:-1])
def test_tables_on_a_device_that_the_host_must_read(columns):
    made, right = as_graph(DeviceFrame(columns)), as_graph(pd.DataFrame(columns))
    assert made.targets.tolist() == right.targets.tolist()
    assert (made.notes, made.scale) == (right.notes, right.scale)
    assert (made.names is None) == (right.names is None)


@pytest.mark.parametrize(("columns", "by_name"), [*tables()])
def test_tables_on_a_gpu_give_the_labels_of_the_host(gpu, columns, by_name):
    import cupy

    if len(columns) < 2:
        return
    frame = DeviceFrame(columns, cupy.asarray)
    here, far = lu.louvain(frame.frame, device="cpu"), lu.louvain(frame, device=str(gpu))
    assert np.array_equal(here.labels, far.labels)
    assert isinstance(far.graph, FetchedGraph) == by_name
    assert same_values(far.names, here.names)


def test_graphs_on_the_device_serve_what_graphs_serve(gpu, tmp_path):
    import cupy

    graph = as_graph((RNG.integers(0, 50, 300), RNG.integers(0, 50, 300), RNG.random(300) + 0.1))
    there = DeviceGraph.from_host(graph)
    labels = np.arange(graph.n_vertices) % 3
    assert lu.modularity(there, labels) == lu.modularity(graph, labels)
    assert lu.modularity(there, cupy.asarray(labels)) == lu.modularity(graph, labels)
    assert np.array_equal(lu.DynamicGraph(there).host_snapshot().targets, graph.targets)
    lu.write_graph(tmp_path / "g.npz", there)
    assert np.array_equal(lu.read_graph(tmp_path / "g.npz").targets, graph.targets)


@pytest.mark.parametrize("kind", ["none", "bytes", "real"])
def test_random_graphs_of_the_same_degrees_are_those_of_the_host(there, kind):
    for n, m in there.sizes:
        u, v, weights = RNG.integers(0, n, m), RNG.integers(0, n, m), WEIGHTS[kind](m)
        graph = Graph.from_edges(u, v, weights, n_vertices=n)
        random, builder = RandomGraphs.like(graph), Builder(there.device, there.ranges[0])
        device = DeviceRandomGraphs.of(on(there, graph), builder)
        assert device.ends.tolist() == random.ends.tolist()
        if random.weights is not None:
            assert device.weights.tolist() == random.weights.tolist()
        device = DeviceRandomGraphs(random, builder, there.put)
        for seed in (0, 2**32 - 1):
            here, made = random.graph(seed), device.graph(seed)
            assert differences(there, replace(made, notes=here.notes), here) == []
            labels = (np.arange(n) % 3).astype(np.uint32)
            for one, other in zip(
                random.sums(here, labels), device.sums(made, labels), strict=True
            ):
                assert one.tolist() == other.tolist()


@pytest.mark.parametrize("kind", ["none", "bytes", "wide", "real"])
def test_communities_add_up_to_what_the_host_counts(there, kind):
    for number, (n, m) in enumerate(there.sizes):
        u, v = RNG.integers(0, n, m), RNG.integers(0, n, m)
        graph = Graph.from_edges(u, v, WEIGHTS[kind](m), n_vertices=n + number)
        device = on(there, graph)
        for communities in (1, 3, n):
            labels = dense_labels(graph, RNG.integers(0, communities, n + number))
            sizes = community_sizes(labels)
            right = quality._counts(graph, labels, sizes)
            for parts in (False, True):
                made = community_counts(there.device, device, labels, parts=parts)
                assert made.tolist() == [each.tolist() for each in right[: 4 if parts else 2]]
    none = on(there, Graph.from_edges([], []))
    assert community_counts(there.device, none, np.empty(0, np.uint32), parts=True).shape == (4, 0)


@pytest.mark.parametrize("kind", ["none", "bytes", "wide", "real"])
def test_vertices_merge_to_the_graphs_of_the_host(there, kind):
    for number, (n, m) in enumerate(there.sizes):
        u, v = RNG.integers(0, n, m), RNG.integers(0, n, m)
        graph = Graph.from_edges(u, v, WEIGHTS[kind](m), n_vertices=n + number)
        builder, given = Builder(there.device, there.ranges[number % 2]), on(there, graph)
        for communities in (1, 5, n):
            labels = dense_labels(graph, RNG.integers(0, communities, n + number))
            count = int(labels.max()) + 1
            made = DeviceGraph.of(builder.merged(given, there.put(labels), count, sums=True))
            right = replace(induced_graph(graph, labels), loops=np.zeros(count, np.int64), notes=())
            assert differences(there, made, right) == []
            chosen = np.flatnonzero(labels == 0)
            numbers = np.full(n + number, EMPTY, np.uint32)
            numbers[chosen] = np.arange(len(chosen))
            made = builder.merged(given, there.put(numbers), len(chosen), sums=False)
            made = DeviceGraph.of(made)
            right = replace(subgraph(graph, chosen), loops=np.zeros(len(chosen), np.int64))
            assert differences(there, made, right) == []


@pytest.mark.parametrize("runs", [1, 2, 9])
def test_runs_agree_on_the_arcs_of_the_host(there, runs):
    for number, (n, m) in enumerate(there.sizes):
        graph = Graph.from_edges(RNG.integers(0, n, m), RNG.integers(0, n, m), n_vertices=n + 1)
        labels = RNG.integers(0, max(1, n // 3), (runs, n + 1)).astype(np.uint32)
        right, undecided = ensemble._agreed(graph, [*labels])
        given = on(there, graph)
        counts, found = agreed_counts(
            there.device, given, [*labels], ceil(0.2 * runs), ensemble._chosen
        )
        counted = replace(given, weights=counts, loops=None, check=False)
        builder = Builder(there.device, there.ranges[number % 2])
        made = DeviceGraph.of(builder.merged(counted, None, n + 1, sums=False))
        assert differences(there, made, right) == []
        assert found == undecided


def on(there, graph):
    """Return a graph of the host on a device."""
    weights, loops = graph.weights, graph.loops
    if weights is not None and weights.dtype == np.int64:
        weights = weights.view(np.uint64)
    arrays = (graph.offsets, graph.targets, weights, loops.view(np.uint64))
    arrays = [None if each is None else there.put(each) for each in arrays]
    return DeviceGraph(*arrays, graph.scale, graph.notes)


@pytest.mark.parametrize("method", ["louvain", "leiden"])
@pytest.mark.parametrize("kind", ["none", "real"])
def test_significance_on_a_device_is_that_of_the_host(gpu, kind, method):
    n, m = 3000, 30_000
    graph = Graph.from_edges(RNG.integers(0, n, m), RNG.integers(0, n, m), WEIGHTS[kind](m))
    found = getattr(lu, method)(graph, device="cpu")
    here = found.significance(graphs=5, device="cpu")
    held = held_bytes(graph)
    for budget in (None, 3 * held, held, "80%"):
        there = found.significance(graphs=5, device=str(gpu), device_budget=budget)
        assert here.summary() == there.summary(), budget
