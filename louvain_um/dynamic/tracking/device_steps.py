"""The steps of a tracker on a device: arrays, kernels and what they count.

Communities stay on the device; the host reads back a few counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from louvain_um.core import hierarchy, rules
from louvain_um.core.hierarchy import LevelLoop, Stopwatch, search
from louvain_um.core.interrupts import uninterrupted
from louvain_um.dynamic.batches.changes import Change
from louvain_um.dynamic.graph import DynamicGraph
from louvain_um.dynamic.tracking.device_identity import DeviceListed
from louvain_um.dynamic.tracking.following import BatchReport, FollowOptions, NamedPartition
from louvain_um.dynamic.tracking.host_steps import FOLLOWING_CYCLE, RELEASED
from louvain_um.errors import MemoryBudgetError
from louvain_um.events import ignore
from louvain_um.gpu.dynamic import follow_arrays
from louvain_um.gpu.dynamic.batch_arrays import long_rows
from louvain_um.gpu.dynamic.follow_arrays import (
    COUNTS,
    DIFFERING,
    FOLLOW,
    KEPT,
    SCRATCH,
    STATE,
)
from louvain_um.gpu.move.arguments import CONTROL, MOVE_RULE, SWEEPS
from louvain_um.gpu.move.hub_tables import HUB_TABLES, HubSizes, hub_arrays
from louvain_um.gpu.runtime.launch import Struct
from louvain_um.options import Options
from louvain_um.results.communities import Communities


class Runs(Protocol):
    """Runs on a graph's rows; labels are on its device, any number below n for a community."""

    def detect(self, graph: DynamicGraph, options: Options, report: BatchReport) -> Any:
        """Return the labels of a run from single vertices."""

    def cycle(
        self, graph: DynamicGraph, start: Any, awake: Any, options: Options, report: BatchReport
    ) -> tuple[Any, int] | None:
        """Run one cycle of levels; see `following.Steps.renew`."""


class DeviceRuns:
    """Runs on the current device, on a compressed copy of the rows."""

    def detect(self, graph: DynamicGraph, options: Options, report: BatchReport) -> Any:
        """Return the labels of a run from single vertices."""
        import cupy

        from louvain_um.gpu.engine import GpuEngine

        def run(options: Options) -> Communities:
            with GpuEngine(options, ignore) as engine:
                return hierarchy.detect(engine, graph.snapshot(), options, ignore)

        found = search(run, self._options(options))
        report.arcs_visited += sum(level.arcs_visited for level in found.levels)
        return cupy.asarray(found.labels)

    def cycle(
        self, graph: DynamicGraph, start: Any, awake: Any, options: Options, report: BatchReport
    ) -> tuple[Any, int] | None:
        """Run one cycle of levels from given communities, or from single vertices."""
        import cupy

        from louvain_um.gpu.engine import GpuEngine
        from louvain_um.gpu.relabel import relabel

        run_options = self._options(options)
        with GpuEngine(run_options, ignore) as engine:
            level = engine.load(graph.snapshot(), starts_joined=start is not None)
            plan = engine.plan
            if plan and engine.prepared.blocks is not None and awake is not None:
                raise MemoryBudgetError(
                    plan.in_core_bytes,
                    plan.limit or 0,
                    remedy="raise device_budget, or follow the graph on the CPU",
                )
            run = LevelLoop(engine, run_options, Stopwatch(ignore), renews=start is not None)
            cycle = 0 if start is None else FOLLOWING_CYCLE
            level.cycle, level.start, level.awake = cycle, start, awake
            run.best = RELEASED
            path = run.cycle(level, cycle)
            if len(path) == 1:
                return None
            report.arcs_visited += sum(level.arcs_visited for level in run.levels)
            labels = cupy.empty(graph.n_vertices, np.uint32)
            relabel.compose(path, labels)
            return labels, engine.sums(path[-1]).inside

    def _options(self, options: Options) -> Options:
        """Return options of a run on the device."""
        from louvain_um.placement.policy.find import find_policy

        memory = find_policy(options.memory)
        return replace(options, device="cuda", memory=memory)


LISTING_BYTES: Final = 160
"""Bytes per renamed vertex that grouping on the device takes: keys, their order, sums, entries."""


class HubMemory(NamedTuple):
    """Memory for hubs (`hubs.cuh`): their number and slots, the structure, and its arrays."""

    sizes: HubSizes
    struct: Struct
    arrays: tuple[Any, ...]


class DeviceSteps:
    """The steps of a batch on a device; `following.Steps` documents them."""

    def __init__(self, graph: DynamicGraph, options: FollowOptions, runs: Runs) -> None:
        self.graph, self.options, self.runs = graph, options, runs
        self.store = graph.device_store
        self.memory = self.device = self.store.device
        self.xp = self.store.xp
        self.members: NamedPartition | None = None
        self.undo: Any = None
        self.next_alive: Any = None
        self.fields: dict[str, Any] = {}
        self.counts: Any = None
        self.moved: dict[str, int] = {}
        self.results = self.xp.zeros(COUNTS.itemsize + CONTROL.itemsize, np.uint8)
        self.arrays: dict[str, Any] = {}
        self.hubs: HubMemory | None = None
        n = graph.n_vertices
        self.kept = {name: self.xp.zeros(n, kind) for name, kind in KEPT.items()}
        self._refuse_budget()

    @property
    def touched(self) -> Any:
        """Turnover of each vertex's arcs since it was last freed, uint64[n]."""
        return self.kept["touched"]

    @property
    def nbytes(self) -> int:
        """Bytes on the device besides the graph."""
        held = [*self.arrays.values(), *self.kept.values(), self.results]
        if self.members is not None:
            held += [self.members.names, self.members.sizes, self.members.masses]
        held += self.hubs.arrays if self.hubs else ()
        held += [] if self.undo is None else [self.undo]
        return sum(array.nbytes for array in held)

    def begin(
        self, change: Change | None, before: NamedPartition | None, report: BatchReport
    ) -> None:
        """Carry a partition to the changed graph, and mark the vertices that are to move."""
        n = self.graph.n_vertices
        self.report = report
        self.make_room(n)
        self.fields = self.fields_of(n, change)
        if change is not None:
            self.device.clear(self.results)
            self.undo = self.kept["touched"].copy()
            self.launch("mark_changes", n)

    def split_loosened(self) -> None:
        """Split off the parts of communities that removed edges held."""
        self._split(None, self.arrays["whole"], after_batch=True)

    def move(self) -> NamedPartition:
        """Let marked vertices move, and those that their moves activate; wait for the counts."""
        n, total, arrays = self.fields["n"], self.graph.total_weight, self.arrays
        assert self.members is not None
        if total:
            self._move(n, total)
        else:
            arrays["labels"][:n] = arrays["whole"][:n]
        inside = self.members.inside
        found = self.name(arrays["labels"], inside, moved=True, summed=total > 0)
        report, counts = self.report, self.counts
        report.marked, report.split = int(counts["marked"]), int(counts["split"])
        report.turnover, report.changed = int(counts["turnover"]), int(counts["changed"])
        report.arcs_checked = int(counts["checked"])
        report.arcs_visited, report.moves = self.moved["visited"], self.moved["total_moves"]
        return found

    def renew(self, found: NamedPartition, waiting: int) -> NamedPartition | None:
        """Free touched vertices and run a cycle from there; None where it gained nothing."""
        n = self.fields["n"]
        start, freed = self.xp.empty(n, np.uint32), self.arrays["active"][:n]
        share = np.float64(self.options.renew)
        self.launch("release_touched", n, found.names, start, freed, share)
        run = self._run(waiting + start.nbytes)
        cycle = self.runs.cycle(self.graph, start, freed, run, self.report)
        return self.name_labels(*cycle) if cycle else None

    def detect(self, waiting: int) -> NamedPartition:
        """Return the communities of a run from single vertices."""
        run = self.options.of_runs(self._run(waiting))
        return self.name_labels(self.runs.detect(self.graph, run, self.report))

    def split_left(self, found: NamedPartition) -> NamedPartition:
        """Split the communities of those whose communities others left."""
        before, n = int(self.counts["checked"]), self.fields["n"]
        self.fields.update(next_names=found.names)
        self.launch("flag_left", n)
        parts = self.xp.empty(n, np.uint32)
        self._split(found.names, parts)
        named = self.name(parts, found.inside)
        self.report.arcs_checked += int(self.counts["checked"]) - before
        return named

    def split_all(self, found: NamedPartition) -> NamedPartition:
        """Split all communities into their connected parts."""
        n = self.fields["n"]
        self.arrays["whole"][:n] = n - 1  # all have left one community
        return self.split_left(found)

    def are_alone(self, vertices: NDArray[np.uint32], found: NamedPartition) -> bool:
        """Return whether some vertices are communities of one member each."""
        removed, flags = self.xp.asarray(vertices), self.arrays["flags"][: self.fields["n"]]
        flags[:] = 0
        flags[removed] = 1
        alone = bool((found.names[removed] == removed).all())
        return alone and int(flags[found.names].sum()) == len(removed)

    def forget_touched(self) -> None:
        """Begin anew to count what turns."""
        self.device.clear(self.kept["touched"])

    def list_differing(self, found: NamedPartition, waiting: int) -> DeviceListed:
        """List the vertices whose community has another name than before the batch."""
        listed: Any = found.listed or self._grouped(found, self.room(self.nbytes + waiting))
        self.next_alive = self.store.alive.copy()
        return listed  # type: ignore[no-any-return]

    def keep(self, found: NamedPartition) -> NamedPartition:
        """Make a partition the one that the next batch begins with."""
        first = self.members is None
        self.members = replace(found, listed=None)
        self.kept["alive_before"] = self.store.alive.copy() if first else self.next_alive
        self.next_alive = self.undo = None
        self.fields = {}
        return self.members

    def abandon(self) -> None:
        """Leave all as it was before the batch."""
        if self.undo is not None:
            self.kept["touched"], self.undo = self.undo, None
        self.fields = {}

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """Follow a batch uninterrupted, as what it changes on the device it changes in place."""
        with uninterrupted(), self.device.errors():
            yield

    def room(self, held: int) -> int | None:
        """Return the bytes that the graph's budget leaves; None without one."""
        budget = self.graph.device_budget
        return None if budget is None else max(1, budget - self.graph.memory.device_bytes - held)

    def make_room(self, n: int) -> None:
        """Let arrays of one entry per vertex have room for n."""
        xp = self.xp
        if "whole" not in self.arrays or len(self.arrays["whole"]) < n:
            self.arrays = {}
            self.arrays = {name: xp.empty(n, kind) for name, kind in SCRATCH.items()}
            most = min(n, follow_arrays.MOST_SINGLE)
            self.arrays["listed"] = xp.empty(most * DIFFERING.itemsize, np.uint8)
        if len(self.kept["touched"]) < n:
            grown = xp.zeros(n, KEPT["touched"])
            grown[: len(self.kept["touched"])] = self.kept["touched"]
            self.kept["touched"] = grown
        if len(self.arrays.get("long_rows", ())) < (count := long_rows(self.store.n_arcs)):
            self.arrays["long_rows"] = xp.empty(2 * count, np.uint64)
        sizes = follow_arrays.hub_sizes(n, self.store.n_arcs, self.store.longest)
        held = self.hubs.sizes if self.hubs else HubSizes(-1, -1)
        if sizes.hubs > held.hubs or sizes.slots > held.slots:
            self.hubs = None
            arrays = {
                name: xp.empty(length, kind)
                for name, (length, kind) in hub_arrays(sizes, np.uint64).items()
            }
            at = {name: self.device.address(array) for name, array in arrays.items()}
            struct = Struct(HUB_TABLES, capacity=sizes.slots, **at)
            self.hubs = HubMemory(sizes, struct, tuple(arrays.values()))

    def fields_of(self, n: int, change: Change | None = None) -> dict[str, Any]:
        """Return what `Follow` holds, as arrays and numbers."""
        store, before = self.store, self.members
        columns = dict.fromkeys(("u", "v", "before", "after"))
        if change is not None:
            columns = {name: self.xp.asarray(getattr(change, name)) for name in columns}
        return {
            "n": n,
            "n_before": 0 if before is None else len(before.names),
            "spans": store.spans, "targets": store.targets, "weights": store.weights,
            "degrees": store.degrees, "alive": store.alive,
            "alive_before": self.kept["alive_before"],
            "edges": 0 if change is None else len(change),
            **columns,
            "names": before.names if before else None,
            "whole": self.arrays["whole"], "labels": self.arrays["labels"],
            "next_names": None, "sizes": None, "masses": None,
            "sizes_before": before.sizes if before else None,
            "masses_before": before.masses if before else None,
            "members": self.arrays["move_sizes"], "totals": self.arrays["totals"],
            "marks": self.arrays["marks"], "flags": self.arrays["flags"],
            "touched": self.kept["touched"], "first": self.arrays["first"],
            "long_rows": self.arrays["long_rows"], "counts": self.results,
        }  # fmt: skip

    def launch(self, kernel: str, items: int, *args: Any) -> None:
        """Run a kernel of `follow.cu`."""
        types = self.store.types if kernel == "assign_names" else ""
        numbers, address = ("n", "n_before", "edges"), self.device.address
        struct = Struct(
            FOLLOW,
            **{
                name: value if name in numbers else address(value)
                for name, value in self.fields.items()
            },
        )
        self.device.launch("follow", kernel, types, items, struct, *args)

    def name_labels(self, labels: Any, inside: int | None = None) -> NamedPartition:
        """Name communities of labels that come from elsewhere; return them with their sums."""
        n = self.fields["n"]
        self.device.clear(self.results)
        if inside is not None:
            return self.name(labels, inside)
        # Moving every vertex out of a community of its own gains all that is inside.
        alone = self.arrays["whole"]
        alone[:n] = self.xp.arange(n, dtype=np.uint32)
        # Loops are inside any community.
        return self.name(labels, 2 * int(self.store.loops.sum()), moved=True)

    def name(
        self, labels: Any, inside: int, *, moved: bool = False, summed: bool = False
    ) -> NamedPartition:
        """Name communities and sum them; with `moved`, labels come from moving `whole`."""
        n, xp = self.fields["n"], self.xp
        names, sizes, masses = (xp.empty(n, kind) for kind in STATE.values())
        self.fields.update(labels=labels, next_names=names, sizes=sizes, masses=masses)
        whole, listed = self.arrays["whole"] if moved else None, self.arrays["listed"]
        most = np.int64(len(listed) // DIFFERING.itemsize)
        self.launch("assign_names", n, whole, np.int64(summed), listed, most)
        self.read()
        counts = self.counts
        differing = int(counts["differing"])
        low, middle, high = counts["squares"].tolist()
        few = differing <= most
        return NamedPartition(
            names=names,
            inside=inside + (int(counts["inside"]) if moved else 0),
            squares=low + (middle << 32) + (high << 64),
            sizes=sizes,
            masses=masses,
            communities=int(counts["communities"]),
            differing=differing,
            listed=DeviceListed(listed[: differing * DIFFERING.itemsize].copy()) if few else None,
        )

    def read(self) -> None:
        """Read what kernels counted; waits for them."""
        found = self.device.read(self.results).copy()
        self.counts = found[: COUNTS.itemsize].view(COUNTS)[0]
        control = found[COUNTS.itemsize :].view(CONTROL)[0]
        self.moved = {name: int(control[name]) for name in ("visited", "total_moves")}

    def _split(self, names: Any, out: Any, *, after_batch: bool = False) -> None:
        """Write the connected parts of flagged communities."""
        self.launch("split_flagged", self.fields["n"], names, out, np.int64(after_batch))

    def _move(self, n: int, total: int) -> None:
        """Let marked vertices move, and those that their moves activate."""
        at, arrays, run = self.device.address, self.arrays, self.options.run
        assert self.hubs is not None
        rule = Struct(
            MOVE_RULE,
            offsets=at(self.store.spans), targets=at(self.store.targets),
            weights=at(self.store.weights), degrees=at(self.store.degrees),
            labels=at(arrays["labels"]), totals=at(arrays["totals"]),
            sizes=at(arrays["move_sizes"]), queue=at(arrays["queue"]),
            proposed=at(arrays["proposed"]), rate=run.resolution / total, total=float(total),
            seed=run.seed, flags=0,
        )  # fmt: skip
        sweeps = Struct(
            SWEEPS,
            n=n, start=at(arrays["whole"]), awake=at(arrays["marks"]), active=at(arrays["active"]),
            next_active=at(arrays["next_active"]), control=at(self.results) + COUNTS.itemsize,
            tolerance=rules.tolerance(0), seed_salt=rules.seed_salt(run.seed),
            cycle=FOLLOWING_CYCLE, sub_rounds=rules.FRONTIER_SUB_ROUNDS,
            max_iterations=rules.MAX_ITERATIONS, full_sweeps=0, min_sweeps=rules.MIN_SWEEPS,
            queued=rules.FRONTIER_SUB_ROUNDS, summed=1,
        )  # fmt: skip
        types = f"Spans<{self.store.types}>, u64"
        self.device.launch("move", "move", types, n, rule, self.hubs.struct, sweeps)

    def _grouped(self, found: NamedPartition, room: int | None) -> DeviceListed:
        """List many vertices in groups that came from one community to another."""
        n, count, xp = self.fields["n"], found.differing, self.xp
        self.fields.update(next_names=found.names, sizes=found.sizes, masses=found.masses)
        self.device.clear(self.results)
        vertices, keys = xp.empty(count, np.uint32), xp.empty(count, np.uint64)
        self.launch("key_differing", n, vertices, keys)
        if room is not None and count * LISTING_BYTES > room:
            by_key = self.device.get(vertices), self.device.get(keys)
            del vertices, keys
            return self._grouped_by_host(*by_key)
        order = xp.argsort(keys)
        keys, vertices = keys[order], vertices[order]
        begins = xp.ones(count, np.bool_)
        xp.not_equal(keys[1:], keys[:-1], out=begins[1:])
        first = xp.flatnonzero(begins)
        degrees = xp.cumsum(self.store.degrees[vertices], dtype=np.uint64)
        groups = len(first)
        entries = xp.empty(groups * DIFFERING.itemsize, np.uint8)
        self.launch(
            "list_groups", groups, vertices, np.int64(count), first, np.int64(groups), degrees,
            entries,
        )  # fmt: skip
        return DeviceListed(entries, grouped=True)

    def _grouped_by_host(self, vertices: Any, keys: Any) -> DeviceListed:
        """List groups of vertices of the same key; the device describes the first of each."""
        order = np.argsort(keys)
        keys, vertices = keys[order], vertices[order]
        first = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
        listed = self.arrays["listed"]
        most = len(listed) // DIFFERING.itemsize
        entries = np.empty(len(first), DIFFERING)
        for begin in range(0, len(first), most):
            some = self.xp.asarray(vertices[first[begin : begin + most]])
            k = len(some)
            each, none = self.xp.arange(k, dtype=np.int64), self.xp.zeros(k, np.uint64)
            self.launch("list_groups", k, some, np.int64(k), each, np.int64(k), none, listed)
            part = self.device.get(listed[: k * DIFFERING.itemsize])
            entries[begin : begin + k] = part.view(DIFFERING)
        entries["members"] = np.diff(np.append(first, len(vertices)))
        degrees = self.device.get(self.store.degrees)[vertices]
        entries["degree"] = np.add.reduceat(degrees, first)
        return DeviceListed(entries.view(np.uint8), grouped=True, on_host=True)

    def _run(self, waiting: int) -> Options:
        """Return the options of a run on the memory that is left."""
        return replace(self.options.run, device_budget=self.room(self.nbytes + waiting))

    def _refuse_budget(self) -> None:
        """Raise a MemoryBudgetError if following does not fit in addition to the graph."""
        graph = self.graph
        if graph.device_budget is None:
            return
        parts = follow_arrays.follow_bytes(graph.n_vertices, graph.n_arcs, self.store.longest)
        held = graph.memory.device_bytes
        needed = held + sum(parts.values())
        if needed > graph.device_budget:
            raise MemoryBudgetError(
                needed, graph.device_budget, [("graph", held), *parts.items()],
                "raise device_budget, or follow the graph on the CPU",
            )  # fmt: skip
