"""Which store of a changing graph is fastest, on stand-ins for the graphs of their papers?

    python benchmarks/stores_papers.py [--graphs luxembourg_osm,delaunay_n20] [--device cpu|cuda]
        [--stores pages:page=128,bal] [--batches 10000,1000000] [--runs 2] [--trials 100000]
        [--missing] [--seconds 240] [--slow 10] [--degrees 5,10,25,50] [--layouts]
        [--allocator 4,64 [--chunk 8192] [--page 16]]

Each store takes the same edges, which are made where the graph is (`paper_graphs.py`, seed 0).
`begin`: a graph without edges, where GraphVine reserves its blocks. `bulk`: all edges, in a random
order, in one batch on it; `held_mb` is what it holds then. `build`: the whole graph
from host memory. Batches, the smallest first, of at most half the edges: random edges are deleted,
and as many inserted and asked for, and the matrix is multiplied with a vector; of `bal` on a GPU,
what changed is pushed before. `computes` and `moves` are the shares of that time in which the GPU
did so; else it was idle. Medians after one that warms up. Then all that `louvain-um stores
--also all` measures. The stores must hold the same in the end.

`--degrees`, on a GPU: random graphs of so many arcs per vertex instead, and what edits the rows of
`pages`: a warp per row, also keeping it sorted, or a thread, warp or block per update, which locks
the row. Ends of a batch's edges are uniform, or one end is among 1,000 vertices. Milliseconds are
those of kernels, `edit_ms` those of the ones that edit. What the others do, sort the batch and find
its rows and repeated edges, faimGraph's update per vertex does, too, and its update-centric one
does not.

`--layouts`: a random weighted graph of 20 arcs per vertex instead, in `pages` of several layouts,
with plain and with semantic edges: batches, queries, and what reads targets (`bfs`), weights, too
(`spmv`), or the whole entry (`entry`). Then as many vertices as the smallest batch has edges are
removed, and ids of these used again.

`--allocator`, on a GPU: Ouroboros for kernels instead (`allocator.py`), in pieces of so many bytes.

What takes more than `--slow` seconds is the last of its kind: a batch is not repeated, and larger
ones are left out; a store built in bulk is not built again, and is left out of graphs with more
vertices. `--missing` continues where a call was cut off, or stopped itself after `--seconds`.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import numpy as np
from allocator import variants
from common import kept, machine, parser, save
from paper_graphs import GRAPHS, PaperGraph, sources_of

from louvain_um.algorithms.operators import advance
from louvain_um.algorithms.products import spmv
from louvain_um.algorithms.traversal import bfs
from louvain_um.analysis.store_comparison import TRIALS, Trials, placed, wait
from louvain_um.dynamic.graph import DynamicGraph
from louvain_um.dynamic.scenarios import Ends
from louvain_um.dynamic.stores import STORES, options_of
from louvain_um.graph.graph import Graph
from louvain_um.profiling.session.events import Kind
from louvain_um.profiling.sources.cupti import Cupti
from louvain_um.profiling.sources.source import SessionClock, SourceUnavailableError

UPDATES = (
    "pages:update=vertex", "pages:order=sorted", "pages:update=thread", "pages:update=warp",
    "pages:update=block",
)  # fmt: skip
LAYOUTS = (
    *(
        f"pages:layout={layout}:page={page}:edges={edges}"
        for edges in ("plain", "semantic")
        for layout in ("arrays", "soa", "aos")
        for page in (64, 128)
    ),
    "pages:ids=queue",
)
FOCUS = 1000
"""Vertices among which one end of each edge is in focused batches, as in faimGraph's paper."""

WARMING = PaperGraph("small", "", 20_000, 200_000, None, 200)
BATCHES = "10000,100000,1000000,10000000"

KERNELS = "batches", "merge", "linked", "queued", "pagerank", "spmv", "triangles", "bfs"
"""Sources of the kernels that run."""

MANY = 5_000_000
"""Vertices of graphs on which trials run once after one that warms up."""

GRAPHVINE = {
    "co-papers-dblp": (0.575, 124.647, 890, 0.868, 52.207, 2.444, 151.679, 37.11, 513.151),
    "co-papers-citeseer": (0.589, 129.029, 921, 0.821, 15.432, 2.253, 80.649, 37.658, 550.459),
    "hugetrace-00020": (2.227, 135.142, 3550, 3.197, 4.336, 5.762, 7.367, 29.444, 27.670),
    "channel-500x100x100-b050": (1.355, 339.383, 3201, 1.183, 1.342, 4.563, 7.559, 40.887, 72.130),
    "delaunay_n24": (2.386, 286.08, 4831, 3.415, 4.077, 5.787, 10.359, 24.485, 43.523),
    "europe_osm": (4.042, 190.068, 8908, 10.362, 10.837, 11.973, 12.605, 27.317, 33.288),
    "rgg_n_2_24_s0": (3.180, 992.54, 9142, 3.333, 3.641, 7.559, 6.563, 40.779, 35.059),
}
"""Its tables 2 to 5, on an RTX 2060: ms to begin and in bulk, MB held then, and ms to insert and
delete 100,000, 1,000,000 and 10,000,000 edges. The record has them next to `vine`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A graph, its edges in a random order, and batches of each size: what to delete and insert."""

    name: str
    graph: Graph
    edges: Ends
    batches: dict[int, list[tuple[Ends, Ends]]]
    contents: dict[int, tuple[int, int]] = field(default_factory=dict)
    """What the first store held after so many batches."""


def case_of(paper: PaperGraph, sizes: list[int], runs: int, device: str) -> Case:
    """Make a graph and its batches, where it is going to be."""
    n = paper.vertices
    if device == "cpu":
        xp: Any = np
        graph = paper.make()
        rows: Any = graph
    else:
        import cupy as xp

        made = DynamicGraph(n, store="csr", device=device)
        made.apply(insert=paper.edges(xp=xp))
        rows = made.snapshot()
        graph = rows.to_host(check=False)
    u = sources_of(xp, rows.offsets[1:])
    once = u < rows.targets
    rng = xp.random.default_rng(1)
    order = xp.argsort(rng.random(int(once.sum())))
    u, v = u[once][order], rows.targets[once][order]
    edges, at = (u.copy(), v.copy()), 0
    batches: dict[int, list[tuple[Ends, Ends]]] = {}
    for size in sizes:
        for _ in range((runs + 1) * (2 * size <= len(u))):
            gone = xp.arange(at, at + size) % len(u)
            insert = random_ends(rng, n, size)
            batches.setdefault(size, []).append(((u[gone], v[gone]), insert))
            u[gone], v[gone] = insert
            at += size
    assert graph.degrees.any()  # computed once, and not while the first store is timed
    return Case(name=paper.name, graph=graph, edges=edges, batches=batches)


def random_ends(rng: Any, n: int, count: int) -> Ends:
    """Return random pairs of different vertices; either library's generator draws them."""
    u, v = (rng.integers(0, most, count).astype(np.uint32) for most in (n, n - 1))
    return u, v + (v >= u).astype(np.uint32)


def seconds(there: Any, call: Callable[..., Any], *args: Any, **options: Any) -> float:
    """Return the seconds of a call and of what it launched."""
    since = time.perf_counter()
    call(*args, **options)
    wait(there)
    return time.perf_counter() - since


class Recording:
    """Seconds in which a GPU computes, edits rows and moves data, by what CUPTI records."""

    def __init__(self, device: str) -> None:
        self.source = None if device == "cpu" else Cupti(counters=False)
        self.since = 0.0

    def begin(self) -> None:
        """Start to record."""
        if self.source is None:
            return
        try:
            self.source.start(SessionClock())
        except SourceUnavailableError as error:
            print(f"no times of kernels: {error}", flush=True)
        else:
            self.since = time.perf_counter()

    def end(self) -> dict[str, Any]:
        """Return the seconds of each, and all that went by; none if nothing was recorded."""
        if self.source is None or not self.since:
            return {}
        taken = time.perf_counter() - self.since
        self.source.stop()
        events = self.source.drain(last=True)
        if events is None:
            return {}
        kinds, spent = events.columns["kind"], 1e-9 * events.columns["duration"]
        edits = [number for number, name in enumerate(events.kernels) if "edit_" in name]
        chosen = {
            "computes": kinds == Kind.KERNEL,
            "edits": np.isin(events.columns["kernel"], edits) & (kinds == Kind.KERNEL),
            "moves": np.isin(kinds, (Kind.COPY_TO_DEVICE, Kind.COPY_TO_HOST, Kind.COPY)),
        }
        return {"taken": taken, **{what: float(spent[of].sum()) for what, of in chosen.items()}}


def batches_on(
    graph: DynamicGraph, case: Case, slow: float, device: str
) -> Iterator[dict[str, Any]]:
    """Apply the batches; yield the milliseconds of each size, and of a product after each."""
    x = np.ones(graph.n_vertices)
    there, replica = graph.device_store, getattr(graph._store, "replica", {})
    find: Callable[..., Any] = graph.has_edges if there is None else there.find_there
    for size, steps in case.batches.items():
        times, moved, busy = [], graph.memory.moved_bytes, Recording(device)
        for gone, come in steps:
            if len(times) == 1:
                busy.begin()
            delete = placed(graph, gone)
            taken = {"delete_ms": 1e3 * seconds(there, graph.apply, delete=delete)}
            insert = placed(graph, come, inserted=True)
            taken |= {
                "insert_ms": 1e3 * seconds(there, graph.apply, insert=insert),
                "query_ms": 1e3 * seconds(there, find, *insert),
                "product_ms": 1e3 * seconds(there, spmv, graph, x, device=device),
            }
            times.append(taken)
            if max(taken.values()) > 1e3 * slow:
                break
        kept, found = times[1:] or times, busy.end()
        yield {
            "batch": size,
            "runs": len(kept),
            **{what: median(taken[what] for taken in kept) for what in kept[0]},
            "bytes_per_arc": graph.memory.bytes_per_arc,
            "moved_bytes": (graph.memory.moved_bytes - moved) / len(times),
            "device_bytes": sum(array.nbytes for array in replica.values()) or None,
            **{what: found[what] / found["taken"] for what in ("computes", "moves") if found},
        }
        if max(times[-1].values()) > 1e3 * slow:
            return


def contents(graph: DynamicGraph) -> tuple[int, int]:
    """Return sums that depend on all rows and their order."""
    there = graph.device_store
    if there is None:
        rows = graph._store.compressed()
        xp, offsets, targets = np, rows.offsets, rows.targets
    else:
        xp, (offsets, targets, _) = there.xp, there.device_rows()
    sums = (
        (array.astype(np.uint64) * (2 * xp.arange(len(array), dtype=np.uint64) + 1)).sum()
        for array in (offsets, targets)
    )
    first, second = (int(total) for total in sums)
    return first, second


def measured(
    case: Case, store: str, args: argparse.Namespace
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return what a store took: of batches of each size, and of all else."""
    options: dict[str, Any] = {"store": store, "device": args.device, "names": False}
    since = time.perf_counter()
    graph = DynamicGraph(case.graph.n_vertices, **options)
    wait(graph.device_store)
    found = {"begin_ms": 1e3 * (time.perf_counter() - since)}
    edges = placed(graph, case.edges)
    found["bulk_ms"] = 1e3 * seconds(graph.device_store, graph.apply, insert=edges)
    found["held_mb"] = graph.memory.total_bytes / 1e6
    assert graph.n_arcs == case.graph.n_arcs, f"{store} has {graph.n_arcs:,} arcs"
    if found["bulk_ms"] <= 1e3 * args.slow:
        del graph
        since = time.perf_counter()
        graph = DynamicGraph(case.graph, **options)
        wait(graph.device_store)
        found["build_ms"] = 1e3 * (time.perf_counter() - since)
    found["bytes_per_arc"] = graph.memory.bytes_per_arc
    before = graph.epoch
    points = list(batches_on(graph, case, args.slow, args.device))
    held, applied = contents(graph), graph.epoch - before
    assert case.contents.setdefault(applied, held) == held, f"{store} holds something else"
    batch = min(args.trials, graph.n_arcs // 4)
    runs = args.runs if graph.n_vertices <= MANY else 1
    chosen = tuple(TRIALS) if batch else ()
    trials = Trials(graph, batch, args.device, 0, runs=runs).run(chosen)
    return points, {"batch": batch, "runs": runs, **found, **trials}


def published(graph: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return what GraphVine's paper has of a graph, as `measured` does."""
    begin, bulk, held, *times = GRAPHVINE[graph]
    points = [
        {"batch": batch, "insert_ms": times[2 * k], "delete_ms": times[2 * k + 1]}
        for k, batch in enumerate((100_000, 1_000_000, 10_000_000))
    ]
    return points, {"batch": 0, "begin_ms": begin, "bulk_ms": bulk, "held_mb": held}


def put(record: dict[str, Any], where: dict[str, str], found: tuple[Any, Any]) -> None:
    """Replace the rows of a graph and a store in a record."""
    for part, rows in (("results", found[0]), ("trials", [found[1]])):
        others = [row for row in record[part] if not where.items() <= row.items()]
        record[part] = others + [where | row for row in rows]


def updates(args: argparse.Namespace, sizes: list[int]) -> Iterator[dict[str, Any]]:
    """Yield what each way to edit rows takes, by degree, batch, and where its edges are."""
    import cupy as xp

    n = args.vertices
    for degree in map(int, args.degrees.split(",")):
        rng = xp.random.default_rng(degree)
        base = random_ends(rng, n, n * degree // 2)
        batches = {
            (size, focus): [
                (ends[0] % focus, ends[1])
                for ends in (random_ends(rng, n, size) for _ in range(args.runs + 1))
            ]
            for size in sizes
            for focus in (n, FOCUS)
        }
        graph, held = DynamicGraph(n, store="pages", device=args.device, names=False), set()
        graph.apply(insert=base)
        there = graph.device_store
        for store in UPDATES:
            graph.compact()
            there.options = options_of(store)
            for (size, focus), steps in batches.items():
                times = []
                for ends in steps:
                    taken, change = {}, None
                    for what in ("insert", "delete"):
                        given = ends if change is None else (change.u, change.v)
                        recording = Recording(args.device)
                        recording.begin()
                        change = graph.apply(**{what: given})
                        wait(there)
                        found = recording.end()
                        taken[f"{what}_ms"] = 1e3 * found["computes"]
                        taken[f"{what}_edit_ms"] = 1e3 * found["edits"]
                    times.append(taken)
                yield {
                    "degree": degree, "store": store, "batch": size, "focus": focus,
                    **{what: median(taken[what] for taken in times[1:]) for what in times[0]},
                }  # fmt: skip
            held.add(contents(graph))
        assert len(held) == 1, f"degree {degree}: they hold different edges"
        del graph, there


def of_entry(u, v, w, arc, kind, first, last):  # type: ignore[no-untyped-def]
    """Return something that depends on all words of an arc's entry."""
    return 0.5 * w * (kind[arc] + last[arc] - first[arc])


def layouts(args: argparse.Namespace, sizes: list[int]) -> Iterator[dict[str, Any]]:
    """Yield what each layout of pages takes, by batch, and what ids of removed vertices do."""
    n, rng, held = args.vertices, np.random.default_rng(0), set()
    base = *random_ends(rng, n, 10 * n), rng.integers(1, 100, 10 * n)
    batches = {size: [random_ends(rng, n, size) for _ in range(args.runs + 1)] for size in sizes}
    gone, x = rng.choice(n, sizes[0], replace=False), np.ones(n)
    for store in LAYOUTS:
        graph = DynamicGraph(n, True, store=store, device=args.device, names=False)
        graph.apply(insert=base)
        there = graph.device_store
        put = np.asarray if there is None else there.xp.asarray
        find: Callable[..., Any] = graph.has_edges if there is None else there.find_there
        reads: dict[str, tuple[Any, ...]] = {"bfs": (bfs, graph, 0), "spmv": (spmv, graph, x)}
        for size, steps in batches.items():
            times = []
            for here in steps:
                ends = tuple(map(put, here))
                taken = {"insert": seconds(there, graph.apply, insert=ends)}
                if "semantic" in store:
                    taken["edit"] = seconds(there, graph.attributes.edit, "type", 7, *here)
                    arrays = graph.attributes.arrays()
                    reads["entry"] = advance, graph, None, of_entry, *arrays
                for what, (call, *given) in reads.items():
                    how = {"returns": "sums"} if call is advance else {"device": args.device}
                    call(*given, **how)  # which sorts rows
                    taken[what] = seconds(there, call, *given, **how)
                taken["query"] = seconds(there, find, *ends)
                taken["delete"] = seconds(there, graph.apply, delete=ends)
                times.append(taken)
            yield {
                "store": store, "batch": size, "bytes_per_arc": graph.memory.bytes_per_arc,
                **{f"{what}_ms": 1e3 * median(t[what] for t in times[1:]) for what in times[0]},
            }  # fmt: skip
        held.add(contents(graph))
        taken = {"remove_ms": 1e3 * seconds(there, graph.remove_vertices, gone)}
        taken["add_ms"] = 1e3 * seconds(there, graph.add_vertices, len(gone), reuse=True)
        yield {"store": store, "batch": len(gone), **taken}
        del graph, there, reads, find
    assert len(held) == 1, "layouts hold different edges"


def main() -> None:
    """Measure what is asked for, and add it to the record."""
    given = parser(__doc__)
    given.add_argument("--graphs", default="all")
    given.add_argument("--device", default="cpu")
    given.add_argument("--stores", help="by default all that the device has")
    given.add_argument("--batches", default=BATCHES)
    given.add_argument("--runs", type=int, default=2)
    given.add_argument("--trials", type=int, default=100_000, help="edges of a batch; 0: none")
    given.add_argument("--missing", action="store_true", help="only what the file lacks")
    given.add_argument("--seconds", type=float, default=float("inf"))
    given.add_argument("--slow", type=float, default=10)
    given.add_argument("--degrees", help="random graphs of these mean degrees instead")
    given.add_argument("--layouts", action="store_true", help="layouts of pages instead")
    given.add_argument("--allocator", help="least and most bytes of a piece of memory instead")
    given.add_argument("--chunk", type=int, default=8192, help="bytes of a chunk of the allocator")
    given.add_argument("--page", type=int, default=16, help="bytes of its smallest page")
    given.add_argument("--vertices", type=int, default=500_000, help="of random graphs")
    args = given.parse_args()
    begun = time.perf_counter()
    chosen = [GRAPHS[name] for name in (args.graphs.split(",") if args.graphs != "all" else GRAPHS)]
    stores = args.stores.split(",") if args.stores else list(STORES)
    sizes = sorted(map(int, args.batches.split(",")))
    record = {"graphs": {}, "results": [], "trials": []}
    record |= kept("stores", args.output, args.device) | {"machine": machine()}
    if args.device != "cpu":  # side by side; what runs first would compile one after the other
        from louvain_um.gpu.runtime.compile import kernels
        from louvain_um.gpu.runtime.kernel_list import types_of

        units = ((source, types) for source in KERNELS for types in types_of(source))
        left = {"u64"} if args.layouts else {"u32", "u64"}
        kernels.prepare(unit for unit in units if not left & {*unit[1].split(", ")})
    others = (
        ("updates", updates, args.degrees), ("layouts", layouts, args.layouts),
        ("allocator", variants, args.allocator),
    )  # fmt: skip
    for what, measure, asked in others:
        if not asked:
            continue
        few = argparse.Namespace(**vars(args) | {"degrees": "2", "vertices": 20_000})
        rows: list[dict[str, Any]] = []
        record[what] = {"machine": record["machine"], "rows": rows}
        warm = [*measure(few, [1000])]
        print(f"{len(warm)} ways warm after {time.perf_counter() - begun:.1f} s", flush=True)
        for row in measure(args, sizes):
            rows.append(row)
            rows.sort(key=lambda r: (r.get("batch", 0), r.get("focus", 0)))
            save("stores", record, args.output, args.device)
            print(f"{time.perf_counter() - begun:.1f} s", row, flush=True)
        return
    small = case_of(WARMING, [1000], 1, args.device)
    for store in stores:
        measured(small, store, args)
    print(f"warm after {time.perf_counter() - begun:.1f} s", flush=True)
    for paper in sorted(chosen, key=lambda graph: graph.arcs):
        done = {row["store"] for row in record["trials"] if row["graph"] == paper.name}
        slow = {
            row["store"]
            for row in record["trials"]
            if row["bulk_ms"] > 1e3 * args.slow and GRAPHS[row["graph"]].vertices < paper.vertices
        }
        left = [name for name in stores if name not in slow | (done if args.missing else set())]
        if not left or time.perf_counter() - begun > args.seconds:
            continue
        case = case_of(paper, sizes, args.runs, args.device)
        about = {"vertices": case.graph.n_vertices, "arcs": case.graph.n_arcs}
        record["graphs"][case.name] = about
        print(case.name, about, f"made after {time.perf_counter() - begun:.1f} s", flush=True)
        for store in left:
            if time.perf_counter() - begun > args.seconds:
                break
            found = measured(case, store, args)
            put(record, {"graph": case.name, "store": store}, found)
            if store == "vine" and case.name in GRAPHVINE:
                paper_has = {"graph": case.name, "store": "GraphVine's paper"}
                put(record, paper_has, published(case.name))
            save("stores", record, args.output, args.device)
            gc.collect()
            print(f"{store} after {time.perf_counter() - begun:.1f} s", *found, flush=True)
        del case
        if args.device != "cpu":
            import cupy

            cupy.get_default_memory_pool().free_all_blocks()


if __name__ == "__main__":
    main()
