"""Stores compared: the same batches on each, one record per graph, store and batch size."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from functools import partial
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any, Final

import numpy as np

from louvain_um.algorithms.products import pagerank, spmv
from louvain_um.algorithms.structure import triangles
from louvain_um.api import louvain
from louvain_um.core.atomic_files import write_csv, write_text
from louvain_um.core.plain_data import build
from louvain_um.core.run_folder import RunFolder
from louvain_um.dynamic.batches.names import graph_of_start
from louvain_um.dynamic.graph import DynamicGraph
from louvain_um.dynamic.scenarios import churn, random_ends
from louvain_um.dynamic.stores import options_of, store_class
from louvain_um.dynamic.streams import EdgeStream
from louvain_um.dynamic.tracking.stream_folder import fingerprint
from louvain_um.errors import OptionError
from louvain_um.graph.graph import Graph

RESULTS: Final = "results.json"
SCHEMA: Final = 1
KEY: Final = ("graph", "digest", "store", "batch")

MOST: Final = 1_000_000_000
"""Edges of a batch, and steps."""

STREAM_BATCH: Final = 1000
"""Edges of a batch in trials on a stream's last window."""

TRIALS: Final = {
    "sorted": "batches that come sorted by row, and the same ones shuffled",
    "skew": "batches of which every edge has an end among a thousandth of the vertices",
    "mixed": "batches that insert edges and delete as many, by one call",
    "algorithms": "PageRank, Louvain, matrix-vector products and triangles, on rows where they "
    "lie; and a copy as compressed rows",
    "vertices": "vertices added, and removed with all their edges",
}
"""Trials by name; those that change a graph most come last."""

RUNS: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What is compared.

    Parameters
    ----------
    stores : tuple of str
    batches : tuple of int
        Edges inserted, and as many deleted, in a step.
    steps : int
        Steps of which the median counts.
    seed : int
    every, window : str, optional
        Steps of a timed stream; `batches` and `steps` do not apply then.
    device : str
        Where the graphs are; batches are copied there before they are timed.
    also : tuple of str
        What else is measured: `louvain_um.analysis.store_comparison.TRIALS`, or "all" of these.
    """

    stores: tuple[str, ...]
    batches: tuple[int, ...] = (10_000,)
    steps: int = 5
    seed: int = 0
    every: str | None = None
    window: str | None = None
    device: str = "cpu"
    also: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.also == ("all",):
            object.__setattr__(self, "also", tuple(TRIALS))
        for trial in self.also:
            if trial not in TRIALS:
                raise OptionError("also", trial, f"must be all, or some of {', '.join(TRIALS)}")
        for name in self.stores:
            try:
                store_class(name, self.device)
            except OptionError as error:
                named = "stores" if error.option == "store" else error.option
                raise OptionError(named, error.value, error.remedy, error.problem) from None
        for name, values in (("batch", self.batches), ("steps", (self.steps,))):
            for value in values:
                if not 1 <= value <= MOST:
                    raise OptionError(name, value, f"must lie in 1 … {MOST:,}")
        if self.window is not None and self.every is None:
            raise OptionError(
                "window",
                remedy="pass every=… (--every) with it",
                problem="a window (--window) is for timed streams",
            )
        if not 0 <= self.seed < 2**32:
            raise OptionError("seed", self.seed, "must lie in 0 … 2^32 - 1")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreRecord:
    """A point of the results, as the file holds it."""

    graph: str
    digest: str
    store: str
    batch: int
    build_ms: float
    insert_ms: float | None
    delete_ms: float | None
    query_ms: float | None
    insert_edges_per_second: float | None
    delete_edges_per_second: float | None
    query_edges_per_second: float | None
    bytes_per_arc: float
    held_bytes: int
    live_bytes: int
    row_bytes: int
    moved_bytes: int
    traverse_ms: float
    arcs: int
    contents: str
    sorted_insert_ms: float | None = None
    shuffled_insert_ms: float | None = None
    skewed_insert_ms: float | None = None
    skewed_delete_ms: float | None = None
    mixed_ms: float | None = None
    pagerank_ms: float | None = None
    louvain_ms: float | None = None
    copy_ms: float | None = None
    spmv_ms: float | None = None
    triangles_ms: float | None = None
    triangles: int | None = None
    add_vertices_ms: float | None = None
    remove_vertices_ms: float | None = None


def compare_stores(
    sources: Iterable[tuple[str, Graph | EdgeStream]],
    settings: Comparison,
    folder: Path,
    *,
    force: bool = False,
    progress: Callable[[str], None] = lambda text: None,
) -> list[dict[str, Any]]:
    """Run every store on every source; write `results.json` after each point, and a table.

    Points that the folder holds already, of the same graph and settings, are not run again unless
    `force` is on.

    Raises
    ------
    LouvainUmError
        The folder holds results of other settings, and `force` is off, or another run is writing
        there.
    """
    settings_read = json.loads(json.dumps(asdict(settings)))
    for store, (_, source) in product(settings.stores, sources := list(sources)):
        weighted = isinstance(source, EdgeStream) or graph_of_start(source).weighted
        if weighted and options_of(store).get("update") == "unchecked":
            problem, remedy = f"{store} does not add to weights", "leave it out, or the weights"
            raise OptionError("stores", store, remedy, problem=problem)
    kept = {k: settings_read[k] for k in ("steps", "seed", "every", "window")}
    if settings.device != "cpu":
        kept["device"] = settings.device
    if settings.also:
        kept["also"] = settings_read["also"]
    done = dict[tuple[Any, ...], dict[str, Any]]()

    def keep(found: Any) -> None:
        record = asdict(build(StoreRecord, found, "result"))
        done[tuple(record[name] for name in KEY)] = record

    records = []
    with RunFolder(folder, keep, setup=kept, force=force) as held:
        for name, source in sources:
            digest = _digest(source)
            batches = settings.batches if settings.every is None else (0,)
            for key in product((name,), (digest,), settings.stores, batches):
                _, _, store, batch = key
                if key not in done:
                    progress(f"{name}, {store}" + (f", batches of {batch:,}" if batch else ""))
                    where: dict[str, Any] = dict(zip(KEY, key, strict=True))
                    numbers = _run(source, store, batch, settings)
                    done[key] = asdict(StoreRecord(**where, **numbers))
                    held.write_line(done[key])
                    _write(folder, kept, list(done.values()))
                records.append(done[key])
        _write(folder, kept, list(done.values()))
    return records


def _write(folder: Path, settings: dict[str, Any], records: list[dict[str, Any]]) -> None:
    """Write the records, whole, as JSON and as a table."""
    text = json.dumps({"schema": SCHEMA, "settings": settings, "results": records}, indent=1)
    write_text(folder / RESULTS, text + "\n", force=True)
    write_csv(folder / "results.csv", records, force=True, line_end="\n")


def _digest(source: Graph | EdgeStream) -> str:
    if isinstance(source, Graph):
        return DynamicGraph(source, store="csr", names=False).digest()
    return fingerprint(source)


def placed(graph: DynamicGraph, columns: Any, *, inserted: bool = False) -> Any:
    """Return columns where the graph is; of a directed one, arcs of both directions."""
    # Those inserted into a store that does not look them up are new.
    if columns is None:
        return None
    store, xp = graph.device_store, np
    if store is not None:
        xp, ends = store.xp, (store.xp.asarray(column, np.uint32) for column in columns[:2])
        columns = *ends, *(xp.asarray(column) for column in columns[2:])
    if inserted and getattr(graph._store, "unchecked", False):
        new = (graph.has_edges if store is None else store.find_there)(*columns) == 0
        columns = tuple(column[new] for column in columns)
    if not graph.directed:
        return columns
    u, v, *weights = columns
    second = u != v  # a loop has one arc
    pairs = (u, v[second]), (v, u[second]), *((w, w[second]) for w in weights)
    return tuple(xp.append(*pair) for pair in pairs)


def wait(store: Any) -> None:
    """Wait for the store's device."""
    if store is not None:
        store.read_counts()


class Timings:
    """Seconds of calls on a graph, by what they do, and edges a second."""

    def __init__(self, store: Any) -> None:
        self.store = store
        self.seconds: dict[str, list[float]] = {}
        self.rates: dict[str, list[float]] = {}

    def of(self, what: str, call: Callable[[], Any], *, counts: bool = True, size: int = 1) -> Any:
        """Call, wait for the store's device, and count the time unless this call compiles."""
        since = time.perf_counter()
        result = call()
        wait(self.store)
        taken = time.perf_counter() - since
        if counts and size:
            self.seconds.setdefault(what, []).append(taken)
            self.rates.setdefault(what, []).append(size / taken)
        return result


def _run(
    source: Graph | EdgeStream, store: str, batch: int, settings: Comparison
) -> dict[str, Any]:
    """Return rates and bytes of one point."""
    since = time.perf_counter()
    if isinstance(source, EdgeStream):
        graph = source.graph(store=store, device=settings.device)
    else:
        graph = DynamicGraph(source, store=store, device=settings.device, names=False)
    build = time.perf_counter() - since
    batches: Iterable[Any]
    if isinstance(source, EdgeStream):
        batches = source.steps(every=settings.every or "", window=settings.window)
    else:
        batches = churn(source, batch=batch, steps=settings.steps + 1, seed=settings.seed).steps()
    there = graph.device_store
    timed = Timings(there)
    for number, step in enumerate(batches):
        warm = number > 0 or batch == 0
        calls = {"delete": ("delete", "decrease"), "insert": ("insert",)}
        asked = None
        for what, columns in calls.items():
            ends = {each: getattr(step, each) for each in columns}
            size = sum(len(given[0]) for given in ends.values() if given is not None)
            given = {
                each: placed(graph, column, inserted=what == "insert")
                for each, column in ends.items()
            }
            timed.of(what, partial(graph.apply, **given), counts=warm, size=size)
            asked = next((each for each in given.values() if each is not None), asked)
        if asked is not None:
            find = graph.has_edges if there is None else there.find_there
            query = partial(find, *asked[:2])
            timed.of("query", query, counts=warm, size=len(asked[0]))
    memory = graph.memory
    x = np.ones(graph.n_vertices)
    for run in range(4):
        timed.of("traverse", partial(spmv, graph, x, device=settings.device), counts=run > 0)
    arcs = graph.n_arcs
    trials = Trials(graph, batch or STREAM_BATCH, settings.device, settings.seed)
    found = trials.run(settings.also)
    medians = {
        f"{what}_{unit}": median(values[what]) * factor if what in values else None
        for unit, values, factor in (
            ("ms", timed.seconds, 1e3), ("edges_per_second", timed.rates, 1),
        )
        for what in ("insert", "delete", "query")
    }  # fmt: skip
    return {
        "build_ms": 1e3 * build,
        **medians,
        "bytes_per_arc": memory.bytes_per_arc,
        "held_bytes": memory.held_bytes,
        "live_bytes": memory.live_bytes,
        "row_bytes": memory.row_bytes,
        "moved_bytes": memory.moved_bytes,
        "traverse_ms": 1e3 * median(timed.seconds["traverse"]),
        "arcs": arcs,
        "contents": graph.digest(),
        **found,
    }


class Trials:
    """Trials on a graph, with batches of one size."""

    def __init__(
        self, graph: DynamicGraph, batch: int, device: str, seed: int, runs: int = RUNS
    ) -> None:
        self.graph, self.batch, self.device, self.runs = graph, batch, device, runs
        self.store = graph.device_store
        self.rng = np.random.default_rng([seed, batch])
        self.timed = Timings(self.store)

    def run(self, chosen: tuple[str, ...]) -> dict[str, float | int]:
        """Carry out trials; return milliseconds, and the number of triangles."""
        found: dict[str, float | int] = {}
        for name in TRIALS:
            if name in chosen and self.graph.n_vertices > 1:
                self.timed = Timings(self.store)
                found |= getattr(self, f"_{name}")() or {}
                found |= {f"{what}_ms": 1e3 * min(t) for what, t in self.timed.seconds.items()}
        return found

    def _sorted(self) -> None:
        """Insert a batch sorted by row, delete it, insert it shuffled; next time the reverse."""
        for run in range(self.runs + 1):
            u, v = random_ends(self.rng, self.graph.n_vertices, self.batch)
            ways = [
                ("sorted_insert", np.lexsort((v, u))),
                ("shuffled_insert", self.rng.permutation(len(u))),
            ]
            for what, places in ways if run % 2 else reversed(ways):
                ends = placed(self.graph, (u[places], v[places]), inserted=True)
                change = self.timed.of(what, partial(self.graph.apply, insert=ends), counts=run > 0)
                self.graph.apply(delete=(change.u, change.v))

    def _skew(self) -> None:
        """Insert and delete edges that meet at few vertices."""
        n = self.graph.n_vertices
        hubs = self.rng.choice(n, max(1, n // 1000), replace=False).astype(np.uint32)
        for run in range(self.runs + 1):
            _, v = random_ends(self.rng, n, self.batch)
            u = self.rng.choice(hubs, len(v))
            ends = placed(self.graph, (u[u != v], v[u != v]), inserted=True)
            insert = partial(self.graph.apply, insert=ends)
            change = self.timed.of("skewed_insert", insert, counts=run > 0)
            delete = partial(self.graph.apply, delete=(change.u, change.v))
            self.timed.of("skewed_delete", delete, counts=run > 0)

    def _mixed(self) -> None:
        """Insert edges, and with them delete those of the batch before."""
        gone = None
        for run in range(self.runs + 1):
            u, v = random_ends(self.rng, self.graph.n_vertices, self.batch)
            new = ~self.graph.has_edges(u, v)  # none of those that are deleted
            given = {"insert": placed(self.graph, (u[new], v[new])), "delete": gone}
            change = self.timed.of("mixed", partial(self.graph.apply, **given), counts=run > 0)
            gone = change.u[change.inserted], change.v[change.inserted]

    def _algorithms(self) -> dict[str, int]:
        """Multiply with a vector, rank the vertices, detect communities, count triangles, copy."""
        counts: Any = ()
        x = np.ones(self.graph.n_vertices)
        for run in range(self.runs + 1):
            multiply = partial(spmv, self.graph, x, device=self.device)
            self.timed.of("spmv", multiply, counts=run > 0)
            if self.graph.directed:
                continue
            rank = partial(pagerank, self.graph, tolerance=1e-4, device=self.device)
            self.timed.of("pagerank", rank, counts=run > 0)
            detect = partial(louvain, self.graph, device=self.device)
            self.timed.of("louvain", detect, counts=run > 0)
            self.timed.of("copy", self.graph.snapshot, counts=run > 0)
            count = partial(triangles, self.graph, device=self.device)
            counts = self.timed.of("triangles", count, counts=run > 0)
        return {"triangles": int(np.asarray(counts).sum()) // 3} if len(counts) else {}

    def _vertices(self) -> None:
        """Add vertices, and remove others with their edges."""
        count = max(1, min(self.batch, self.graph.n_vertices // 16))
        for run in range(self.runs + 1):
            add = partial(self.graph.add_vertices, count)
            self.timed.of("add_vertices", add, counts=run > 0)
            alive = np.flatnonzero(self.graph.alive)
            gone = self.rng.choice(alive, min(count, len(alive)), replace=False)
            remove = partial(self.graph.remove_vertices, gone)
            self.timed.of("remove_vertices", remove, counts=run > 0)
