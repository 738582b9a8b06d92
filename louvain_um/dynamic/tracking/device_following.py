"""Following on a device: the twin of `following.py` for graphs whose rows are there.

Communities stay on the device; the host reads back a few counts. Ids, changed vertices and events
are worked out when they are asked for, batch by batch, from what each batch listed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from louvain_um.core import rules
from louvain_um.dynamic.change import Change
from louvain_um.dynamic.graph import DynamicGraph
from louvain_um.dynamic.tracking import partition as steps
from louvain_um.dynamic.tracking.device_runs import Runs
from louvain_um.dynamic.tracking.following import Followed, FollowOptions, Report, audited
from louvain_um.dynamic.tracking.identity import Identity
from louvain_um.dynamic.tracking.listed_identity import ListedIdentity
from louvain_um.dynamic.tracking.partition import Partition, Work
from louvain_um.errors import MemoryBudgetError
from louvain_um.events import announcing
from louvain_um.gpu.dynamic import follow_arrays
from louvain_um.gpu.dynamic.batch_arrays import long_rows
from louvain_um.gpu.dynamic.follow_arrays import COUNTS, DIFFERING, FOLLOW, KEPT, SCRATCH, STATE
from louvain_um.gpu.move.structs import MOVE_RULE, SWEEPS
from louvain_um.gpu.runtime.launch import CONTROL, DRAIN_SLOTS, HUB_TABLES
from louvain_um.gpu.runtime.structs import Struct

MOST_PENDING: Final = 8
"""Batches whose ids wait to be asked for; each holds the names of all vertices."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Members:
    """A partition on a device, with its sums and those of its communities by name.

    Parameters
    ----------
    partition : Partition
        Its names are on the device.
    sizes : uint32[n]
        Living members.
    masses : uint64[n]
        Their degrees.
    communities, differing : int
        Communities, and vertices whose community has another name than before the batch.
    """

    partition: Partition
    sizes: Any
    masses: Any
    communities: int
    differing: int


@dataclass(slots=True)
class Pending:
    """A batch whose ids have not been asked for.

    `changed` and `events` are None until they are known, `ids` until they are asked for or are
    about to change. `in_use` says whether the result of the batch can still be asked.
    """

    n: int
    names: Any
    communities: int
    listed: Any
    row: dict[str, Any] = field(default_factory=dict)
    changed: NDArray[np.uint32] | None = None
    events: NDArray[np.void] | None = None
    ids: NDArray[np.int64] | None = None
    in_use: Callable[[], Any] = lambda: None


class DeviceFollower:
    """Communities of a graph on a device.

    Parameters
    ----------
    graph : DynamicGraph
    options : FollowOptions
        Of mode "follow".
    runs : Runs
        Runs of an engine on the graph.

    Raises
    ------
    MemoryBudgetError
        What following takes does not fit into the graph's budget.
    """

    def __init__(self, graph: DynamicGraph, options: FollowOptions, runs: Runs) -> None:
        self.graph, self.options, self.runs = graph, options, runs
        self.store = graph.device_store
        self.device, self.xp = self.store.device, self.store.xp
        self.counts: Any = None
        self.moved: dict[str, int] = {}
        self.results = self.xp.zeros(COUNTS.itemsize + CONTROL.itemsize, np.uint8)
        self.arrays: dict[str, Any] = {}
        self.hubs: tuple[tuple[int, int], Struct, tuple[Any, ...]] | None = None
        self.pending: deque[Pending] = deque()
        self._refuse_budget()
        n = graph.n_vertices
        self.kept = {name: self.xp.zeros(n, kind) for name, kind in KEPT.items()}
        self._make_room(n)
        labels = runs.detect(graph, options.run, Work())
        self.members = self._settle_labels(self._fields(n), labels)
        self.state = Followed(partition=self.members.partition, touched=self.kept["touched"])
        self._remember_alive()
        self.identity = self._first_identity()
        self.current = Pending(
            n=n,
            names=self.members.partition.names,
            communities=self.members.communities - graph.dead_count,
            listed=None,
            changed=np.zeros(0, np.uint32),
        )

    def follow(self, change: Change) -> tuple[Report, Pending]:
        """Follow a batch that was just applied; see `following.follow_batch`.

        After an error, the follower is as it was.
        """
        self._make_room(self.graph.n_vertices)
        touched = self.kept["touched"].copy()
        try:
            return self._follow(change)
        except BaseException:
            self.kept["touched"] = touched
            raise

    def _follow(self, change: Change) -> tuple[Report, Pending]:
        graph, state, options = self.graph, self.state, self.options
        report = Report()
        n, total = graph.n_vertices, graph.total_weight
        self.device.clear(self.results)
        fields = self._fields(n, change)
        with announcing("carry"):
            self._launch("mark_changes", n, fields)
        with announcing("split"):
            self._split(fields, None, self.arrays["whole"], after_batch=True)
        with announcing("frontier"):
            if total:
                self._move(n, total)
            else:
                self.arrays["labels"][:n] = self.arrays["whole"][:n]
            labels = self.arrays["labels"]
            found = self._settle(fields, labels, state.partition.inside, moved=True)
        counts, moved = self.counts, self.moved
        report.marked, report.split = int(counts["marked"]), int(counts["split"])
        report.work.arcs_checked = int(counts["checked"])
        report.work.arcs_visited, report.work.moves = moved["visited"], moved["total_moves"]
        state = Followed(
            partition=found.partition,
            touched=self.kept["touched"],
            turned=state.turned + int(counts["turned"]),
            period=state.period,
            due=state.due - 1,
        )
        if state.turned > options.renew * total > 0:
            report.renewed = True
            with announcing("renew"):
                found = self._renewed(fields, found, report.work)
            self.device.clear(self.kept["touched"])
            state = replace(state, turned=0)
        if options.connected == "always":
            with announcing("split"):
                found = self._split_left(fields, found, report.work)
        state = replace(state, partition=found.partition)
        if options.audit is not None and state.due <= 0 and total:
            with announcing("audit"):
                run = self.runs.cycle(graph, None, None, options.run, report.work)
                fresh = None if run is None else self._settle_labels(fields, *run)
            other = None if fresh is None else fresh.partition
            state, report.lead = audited(state, other, options, total)
            if fresh and state.partition is fresh.partition:
                found = fresh
                self.device.clear(self.kept["touched"])
                state = replace(state, touched=self.kept["touched"])
        return report, self._end(fields, state, found)

    def _renewed(self, fields: dict[str, Any], found: Members, work: Work) -> Members:
        """Free touched vertices and run a cycle from there; return what is better."""
        graph, run, n = self.graph, self.options.run, fields["n"]
        start = self.xp.empty(n, np.uint32)
        self._launch("release_touched", n, fields, found.partition.names, start)
        cycle = self.runs.cycle(graph, start, self.kept["touched"], run, work)
        if cycle is None:
            return found
        renewed = self._settle_labels(fields, *cycle)
        total = graph.total_weight
        better = self.quality_of(renewed, total) >= self.quality_of(found, total)
        return renewed if better else found

    def quality_of(self, members: Members, total: int) -> float:
        """Return the modularity of a partition."""
        return members.partition.quality(total, self.options.run.resolution)

    def resolve(self, until: Pending | None = None) -> None:
        """Work out ids, changed vertices and events, of all batches or up to one."""
        while self.pending and (until is None or until.changed is None):
            self._keep_ids(self.current)
            batch = self.pending.popleft()
            listed = self.device.get(batch.listed).view(DIFFERING)
            batch.listed = None
            names = batch.names
            batch.changed, batch.events = self.identity.follow(
                listed, batch.n, partial(self.device.get, names), dead=self.graph.dead_count > 0
            )
            batch.row["changed"] = len(batch.changed)
            self.current = batch

    def ids_of(self, batch: Pending) -> NDArray[np.int64]:
        """Return the id of each vertex's community after a batch."""
        self.resolve(batch)
        if batch.ids is None:
            batch.ids = self.identity.of_name[self.device.get(batch.names)]
        return batch.ids

    def host_state(self) -> Followed:
        """Return the state with arrays in host memory."""
        state = self.state
        part = state.partition
        return Followed(
            partition=Partition(
                names=self.device.get(part.names), inside=part.inside, squares=part.squares
            ),
            touched=self.device.get(self.kept["touched"]).astype(np.bool_),
            turned=state.turned,
            period=state.period,
            due=state.due,
        )

    def host_identity(self) -> Identity:
        """Return the identity with arrays in host memory."""
        self.resolve()
        return Identity.restored(
            self.device.get(self.members.partition.names),
            self.graph.alive,
            self.graph.degrees,
            self.identity.of_name.copy(),
            self.identity.next_id,
        )

    @property
    def nbytes(self) -> int:
        """Bytes on the device besides the graph."""
        held = [*self.arrays.values(), *self.kept.values(), self.results]
        held += [self.members.partition.names, self.members.sizes, self.members.masses]
        held += self.hubs[2] if self.hubs else ()
        return sum(array.nbytes for array in held)

    def _refuse_budget(self) -> None:
        """Raise a MemoryBudgetError if following does not fit beside the graph."""
        graph = self.graph
        if graph.device_budget is None:
            return
        parts = follow_arrays.follow_bytes(graph.n_vertices, graph.n_arcs, self.store.longest)
        held = graph.memory.total_bytes
        needed = held + sum(parts.values())
        if needed > graph.device_budget:
            raise MemoryBudgetError(
                needed, graph.device_budget, [("graph", held), *parts.items()],
                "raise device_budget, or follow the graph on the CPU",
            )  # fmt: skip

    def _make_room(self, n: int) -> None:
        """Let arrays of one entry per vertex have room for n."""
        xp = self.xp
        if len(self.arrays.get("whole", ())) < n:
            self.arrays = {}
            self.arrays = {name: xp.empty(n, kind) for name, kind in SCRATCH.items()}
        if len(self.kept["touched"]) < n:
            grown = xp.zeros(n, np.uint8)
            grown[: len(self.kept["touched"])] = self.kept["touched"]
            self.kept["touched"] = grown
        if len(self.arrays.get("long_rows", ())) < (count := long_rows(self.store.n_arcs)):
            self.arrays["long_rows"] = xp.empty(2 * count, np.uint32)
        sizes = follow_arrays.hub_sizes(n, self.store.n_arcs, self.store.longest)
        held = self.hubs[0] if self.hubs else (-1, -1)
        if sizes[0] > held[0] or sizes[1] > held[1]:
            self.hubs = None
            self.hubs = self._hub_tables(sizes)

    def _hub_tables(
        self, sizes: tuple[int, int]
    ) -> tuple[tuple[int, int], Struct, tuple[Any, ...]]:
        """Return empty tables for hubs (`hubs.cuh`)."""
        count, slots = sizes
        empty, units = self.xp.empty, slots // DRAIN_SLOTS + count
        arrays = {
            "keys": empty(slots, np.uint32),
            "sums": empty(slots, np.uint64),
            "slots": empty(count + 1, np.uint64),
            "fills": empty(count + 1, np.uint32),
            "drains": empty(count + 1, np.uint32),
            "own_weights": empty(count + 1, np.uint64),
            "partials": empty(2 * units, np.uint64),
        }
        arrays["keys"].fill(0xFFFFFFFF)
        arrays["sums"].fill(0)
        at = {name: self.device.address(array) for name, array in arrays.items()}
        return sizes, Struct(HUB_TABLES, capacity=slots, **at), tuple(arrays.values())

    def _fields(self, n: int, change: Change | None = None) -> dict[str, Any]:
        """Return what `Follow` holds, as arrays and numbers."""
        store, before = self.store, getattr(self, "members", None)
        names = before.partition.names if before else None
        columns = dict.fromkeys(("u", "v", "before", "after"))
        if change is not None:
            columns = {name: self.xp.asarray(getattr(change, name)) for name in columns}
        return {
            "n": n,
            "n_before": 0 if names is None else len(names),
            "spans": store.spans, "targets": store.targets, "weights": store.weights,
            "degrees": store.degrees, "alive": store.alive,
            "alive_before": self.kept["alive_before"],
            "edges": 0 if change is None else len(change),
            **columns,
            "names": names,
            "whole": self.arrays["whole"], "labels": self.arrays["labels"],
            "next_names": None, "sizes": None, "masses": None,
            "marks": self.arrays["marks"], "flags": self.arrays["flags"],
            "touched": self.kept["touched"], "first": self.arrays["first"],
            "long_rows": self.arrays["long_rows"], "counts": self.results,
        }  # fmt: skip

    def _struct(self, fields: dict[str, Any]) -> Struct:
        numbers = ("n", "n_before", "edges")
        return Struct(
            FOLLOW,
            **{
                name: value if name in numbers else self.device.address(value)
                for name, value in fields.items()
            },
        )

    def _launch(self, kernel: str, items: int, fields: dict[str, Any], *args: Any) -> None:
        types = self.store.types if kernel == "settle_names" else ""
        self.device.launch("follow", kernel, types, items, self._struct(fields), *args)

    def _split(
        self, fields: dict[str, Any], names: Any, out: Any, *, after_batch: bool = False
    ) -> None:
        """Write the connected parts of flagged communities."""
        self._launch("split_flagged", fields["n"], fields, names, out, np.int64(after_batch))

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
            seed=run.seed,
        )  # fmt: skip
        sweeps = Struct(
            SWEEPS,
            n=n, start=at(arrays["whole"]), awake=at(arrays["marks"]), active=at(arrays["active"]),
            next_active=at(arrays["next_active"]), control=at(self.results) + COUNTS.itemsize,
            tolerance=rules.tolerance(0), seed_salt=rules.seed_salt(run.seed),
            cycle=steps.FOLLOWING_CYCLE, sub_rounds=rules.SUB_ROUNDS,
            max_iterations=rules.MAX_ITERATIONS, full_sweeps=0, min_sweeps=rules.MIN_SWEEPS,
        )  # fmt: skip
        types = f"Spans<{self.store.types}>, u64"
        self.device.launch("move", "move", types, n, rule, self.hubs[1], sweeps)

    def _settle(
        self, fields: dict[str, Any], labels: Any, inside: int, *, moved: bool = False
    ) -> Members:
        """Name communities and sum them; with `moved`, labels come from moving `whole`."""
        n, xp = fields["n"], self.xp
        names, sizes, masses = (xp.empty(n, kind) for kind in STATE.values())
        fields.update(labels=labels, next_names=names, sizes=sizes, masses=masses)
        self._launch("settle_names", n, fields, self.arrays["whole"] if moved else None)
        self._read()
        counts = self.counts
        low, middle, high = counts["squares"].tolist()
        if moved:
            inside += int(counts["inside"])
        return Members(
            partition=Partition(
                names=names, inside=inside, squares=low + (middle << 32) + (high << 64)
            ),
            sizes=sizes,
            masses=masses,
            communities=int(counts["communities"]),
            differing=int(counts["differing"]),
        )

    def _settle_labels(
        self, fields: dict[str, Any], labels: Any, inside: int | None = None
    ) -> Members:
        """Settle labels that come from elsewhere, with the weight inside if it is known."""
        n = fields["n"]
        self.device.clear(self.results)
        if inside is not None:
            return self._settle(fields, labels, inside)
        # Moving every vertex out of a community of its own gains all that is inside.
        alone = self.arrays["whole"]
        alone[:n] = self.xp.arange(n, dtype=np.uint32)
        return self._settle(fields, labels, self._loops(), moved=True)

    def _loops(self) -> int:
        """Return the weight of loops, which are inside any community."""
        return 2 * int(self.store.loops.sum())

    def _split_left(self, fields: dict[str, Any], found: Members, work: Work) -> Members:
        """Split the communities that vertices left."""
        names = found.partition.names
        fields.update(next_names=names)
        self._launch("flag_left", fields["n"], fields)
        parts = self.xp.empty(fields["n"], np.uint32)
        self._split(fields, names, parts)
        settled = self._settle(fields, parts, found.partition.inside)
        work.arcs_checked += int(self.counts["checked"])
        return settled

    def _read(self) -> None:
        """Read what kernels counted; waits for them."""
        found = self.device.get(self.results)
        self.counts = found[: COUNTS.itemsize].view(COUNTS)[0]
        control = found[COUNTS.itemsize :].view(CONTROL)[0]
        self.moved = {name: int(control[name]) for name in ("visited", "total_moves")}

    def _end(self, fields: dict[str, Any], state: Followed, found: Members) -> Pending:
        """Take a state; list the vertices whose community changed its name."""
        before, n = self.members, fields["n"]
        listed = self.xp.empty(found.differing * DIFFERING.itemsize, np.uint8)
        if found.differing:
            fields.update(next_names=found.partition.names, sizes=found.sizes, masses=found.masses)
            self._launch("list_differing", n, fields, before.sizes, before.masses, listed)
        self.state, self.members = state, found
        self._remember_alive()
        batch = Pending(
            n=n,
            names=found.partition.names,
            communities=found.communities - self.graph.dead_count,
            listed=listed,
        )
        self.pending.append(batch)
        while len(self.pending) > MOST_PENDING:
            self.resolve(self.pending[0])
        return batch

    def _remember_alive(self) -> None:
        self.kept["alive_before"] = self.store.alive.copy()

    def _first_identity(self) -> ListedIdentity:
        names = self.device.get(self.members.partition.names)
        known = Identity.of(names, self.graph.alive, self.graph.degrees)
        return ListedIdentity(of_name=known.of_name, next_id=known.next_id)

    def _keep_ids(self, batch: Pending) -> None:
        """Keep the ids of a batch whose result is still in use: they are about to change."""
        if batch.ids is None and batch.in_use() is not None:
            self.ids_of(batch)
