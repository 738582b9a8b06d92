"""Stores compared: the same batches on each, one record per graph, store and batch size."""

from __future__ import annotations

import csv
import io
import json
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final

from louvain_um.analysis.stores.trials import TRIALS, Trials, placed, wait
from louvain_um.core.atomic_files import OwnFolder, is_empty, replacing
from louvain_um.core.plain_data import build, parse
from louvain_um.dynamic.graph import DynamicGraph
from louvain_um.dynamic.scenarios import churn
from louvain_um.dynamic.stores import store_class
from louvain_um.dynamic.streams import EdgeStream
from louvain_um.dynamic.tracking.stream_folder import fingerprint
from louvain_um.errors import LouvainUmError, OptionError
from louvain_um.graph.graph import Graph

RESULTS: Final = "results.json"
SCHEMA: Final = 1

MOST: Final = 1_000_000_000
"""Edges of a batch, and steps."""

STREAM_BATCH: Final = 1000
"""Edges of a batch in trials on a stream's last window."""


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
        What else is measured: `louvain_um.analysis.stores.trials.TRIALS`.
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
        for trial in self.also:
            if trial not in TRIALS:
                raise OptionError("also", trial, f"must be one of {', '.join(TRIALS)}")
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
class Record:
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
    pagerank_ms: float | None = None
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
    tell: Callable[[str], None] = lambda text: None,
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
    with OwnFolder(folder):
        return _compare(sources, settings, folder, force=force, tell=tell)


def _compare(
    sources: Iterable[tuple[str, Graph | EdgeStream]], settings: Comparison, folder: Path, *,
    force: bool, tell: Callable[[str], None],
) -> list[dict[str, Any]]:  # fmt: skip
    """Run every store on every source in a folder of one's own."""
    settings_read = json.loads(json.dumps(asdict(settings)))
    kept = {k: settings_read[k] for k in ("steps", "seed", "every", "window")}
    if settings.device != "cpu":
        kept["device"] = settings.device
    if settings.also:
        kept["also"] = settings_read["also"]
    found = read_results(folder, kept, force=force)
    done = {(r["graph"], r["digest"], r["store"], r["batch"]): r for r in found}
    records = []
    for name, source in sources:
        digest = _digest(source)
        for store in settings.stores:
            for batch in settings.batches if settings.every is None else (0,):
                key = (name, digest, store, batch)
                if key not in done:
                    tell(f"{name}, {store}" + (f", batches of {batch:,}" if batch else ""))
                    numbers = _run(source, store, batch, settings)
                    where: dict[str, Any] = {
                        "graph": name,
                        "digest": digest,
                        "store": store,
                        "batch": batch,
                    }
                    done[key] = asdict(Record(**where, **numbers))
                    _write(folder, kept, list(done.values()))
                records.append(done[key])
    return records


def read_results(folder: Path, settings: dict[str, Any], *, force: bool) -> list[dict[str, Any]]:
    """Return the points in a folder; none with `force`."""
    file = folder / RESULTS
    if force:
        return []
    if not file.exists():
        if not is_empty(folder):
            raise LouvainUmError(f"{folder}: is not empty; name another folder, or pass --force")
        return []
    try:
        held = parse(file.read_bytes())
        same = held["schema"] == SCHEMA and held["settings"] == settings
        results = [asdict(build(Record, record, "result")) for record in held["results"] if same]
    except (ValueError, KeyError, TypeError):
        same, results = False, []
    if not same:
        raise LouvainUmError(
            f"{file}: holds results of other settings; name another folder, or pass --force"
        )
    return results


def _write(folder: Path, settings: dict[str, Any], records: list[dict[str, Any]]) -> None:
    """Write the records, whole, as JSON and as a table."""
    text = json.dumps({"schema": SCHEMA, "settings": settings, "results": records}, indent=1)
    with replacing(folder / RESULTS, force=True) as part:
        part.write_text(text + "\n", "utf-8")
    table = io.StringIO()
    writer = csv.DictWriter(table, list(records[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    with replacing(folder / "results.csv", force=True) as part:
        part.write_text(table.getvalue(), "utf-8")


def _digest(source: Graph | EdgeStream) -> str:
    if isinstance(source, Graph):
        return DynamicGraph(source, store="csr", names=False).digest()
    return fingerprint(source)


def _run(
    source: Graph | EdgeStream, store: str, batch: int, settings: Comparison
) -> dict[str, Any]:
    """Return rates and bytes of one point."""
    if isinstance(source, EdgeStream):
        since = time.perf_counter()
        graph = source.graph(store=store, device=settings.device)
        build = time.perf_counter() - since
        every = settings.every or ""
        batches: Iterable[Any] = source.steps(every=every, window=settings.window)
    else:
        since = time.perf_counter()
        graph = DynamicGraph(source, store=store, device=settings.device, names=False)
        build = time.perf_counter() - since
        batches = churn(source, batch=batch, steps=settings.steps + 1, seed=settings.seed).steps()
    times: dict[str, list[float]] = {"insert": [], "delete": [], "query": []}
    rates: dict[str, list[float]] = {what: [] for what in times}
    there = graph.device_store
    for number, step in enumerate(batches):
        insert, delete, decrease = (
            placed(there, ends) for ends in (step.insert, step.delete, step.decrease)
        )
        calls: dict[str, Any] = {
            "delete": {"delete": delete, "decrease": decrease},
            "insert": {"insert": insert},
        }
        asked = insert or delete or decrease
        for what, given in calls.items():
            size = sum(len(ends[0]) for ends in given.values() if ends is not None)
            since = time.perf_counter()
            graph.apply(**given)
            wait(there)
            _note(times, rates, what, since, size, warm=number > 0 or batch == 0)
        if asked is not None:
            since = time.perf_counter()
            if there is None:
                graph.has_edges(*asked[:2])
            else:
                there.find_there(*asked[:2])
            wait(there)
            _note(times, rates, "query", since, len(asked[0]), warm=number > 0 or batch == 0)
    memory = graph.memory
    since = time.perf_counter()
    graph._store.traverse()  # compiles
    walks = []
    for _ in range(3):
        since = time.perf_counter()
        graph._store.traverse()
        walks.append(time.perf_counter() - since)
    arcs = graph.n_arcs
    trials = Trials(graph, batch or STREAM_BATCH, settings.device, settings.seed)
    found = trials.run(settings.also)
    return {
        "build_ms": 1e3 * build,
        **{f"{what}_ms": 1e3 * median(t) if t else None for what, t in times.items()},
        **{f"{what}_edges_per_second": median(r) if r else None for what, r in rates.items()},
        "bytes_per_arc": memory.bytes_per_arc,
        "held_bytes": memory.held_bytes,
        "live_bytes": memory.live_bytes,
        "row_bytes": memory.row_bytes,
        "moved_bytes": memory.moved_bytes,
        "traverse_ms": 1e3 * median(walks),
        "arcs": arcs,
        "contents": graph.digest(),
        **found,
    }


def _note(
    times: dict[str, list[float]],
    rates: dict[str, list[float]],
    what: str,
    since: float,
    size: int,
    *,
    warm: bool,
) -> None:
    """Count a call, unless it was the first, which compiles."""
    taken = time.perf_counter() - since
    if size and warm:
        times[what].append(taken)
        rates[what].append(size / taken)
