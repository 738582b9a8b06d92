"""Following on a device: the twin of `following.py` for graphs whose rows are there.

Communities stay on the device; the host reads back a few counts. Ids, changed vertices and events
are worked out when they are asked for, batch by batch, from what each batch listed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from louvain_um.dynamic.change import Change
from louvain_um.dynamic.graph import DynamicGraph
from louvain_um.dynamic.tracking.device_runs import Runs
from louvain_um.dynamic.tracking.device_steps import DeviceSteps, Members
from louvain_um.dynamic.tracking.following import (
    Followed,
    FollowOptions,
    Report,
    are_alone,
    audit_due,
    audited,
    lead_of,
)
from louvain_um.dynamic.tracking.identity import Identity
from louvain_um.dynamic.tracking.listed_identity import Listed, ListedIdentity
from louvain_um.dynamic.tracking.partition import Partition, Work
from louvain_um.errors import MemoryBudgetError
from louvain_um.events import announcing
from louvain_um.gpu.dynamic import follow_arrays
from louvain_um.gpu.dynamic.follow_arrays import MOST_LISTED, MOST_PENDING
from louvain_um.options import Options


@dataclass(slots=True)
class Pending:
    """A batch whose ids have not been asked for."""

    n: int
    names: Any
    communities: int
    listed: Listed | None
    listed_there: int = 0
    row: Any = field(default_factory=dict)
    changed: NDArray[np.uint32] | None = None
    events: NDArray[np.void] | None = None
    ids: NDArray[np.int64] | None = None
    in_use: Callable[[], Any] = lambda: None


class DeviceFollower:
    """Communities of a graph on a device."""

    def __init__(self, graph: DynamicGraph, options: FollowOptions, runs: Runs) -> None:
        self.graph, self.options, self.runs = graph, options, runs
        self.steps = DeviceSteps(graph, options.run)
        self.device, self.xp = self.steps.device, self.steps.xp
        self.pending: deque[Pending] = deque()
        self.undo: Any = None
        self._refuse_budget()
        n = graph.n_vertices
        self.steps.make_room(n)
        labels = runs.detect(graph, self._run(self.steps.nbytes), Work())
        self.members = self._settled(self.steps.fields(n), labels, Work()).unlisted
        self.steps.members, self.kept = self.members, self.steps.kept
        self.state = Followed(partition=self.members.partition, touched=self.kept["touched"])
        self.kept["alive_before"] = graph.device_store.alive.copy()
        self.identity = self._first_identity()
        self.current = Pending(
            n=n,
            names=self.members.partition.names,
            communities=self.members.communities - graph.dead_count,
            listed=None,
            changed=np.zeros(0, np.uint32),
        )

    def follow(self, change: Change) -> tuple[Report, Pending]:
        """Follow a batch that was just applied; see `following.follow_batch`."""
        n = self.graph.n_vertices
        self.steps.make_room(n)
        self.device.clear(self.steps.results)
        fields = self.steps.fields(n, change)
        self.undo = self.kept["touched"].copy()
        try:
            with announcing("carry"):
                self.steps.launch("mark_changes", n, fields)
            return self._follow(fields, change)
        except BaseException:
            self.kept["touched"] = self.undo
            raise
        finally:
            self.undo = None

    def _follow(self, fields: dict[str, Any], change: Change) -> tuple[Report, Pending]:
        """Carry the communities to the graph as it is, once the changes are marked."""
        graph, state, options = self.graph, self.state, self.options
        report = Report()
        n, total = fields["n"], graph.total_weight
        with announcing("split"):
            self.steps.split(fields, None, self.steps.arrays["whole"], after_batch=True)
        with announcing("frontier"):
            if total:
                self.steps.move(n, total)
            else:
                self.steps.arrays["labels"][:n] = self.steps.arrays["whole"][:n]
            labels = self.steps.arrays["labels"]
            found = self.steps.settle(
                fields, labels, state.partition.inside, moved=True, summed=total > 0
            )
        counts, moved = self.steps.counts, self.steps.moved
        report.marked, report.split = int(counts["marked"]), int(counts["split"])
        report.work.arcs_checked = int(counts["checked"])
        report.work.arcs_visited, report.work.moves = moved["visited"], moved["total_moves"]
        state = replace(
            state,
            partition=found.partition,
            touched=self.kept["touched"],
            turned=state.turned + int(counts["turned"]),
            changed=state.changed + int(counts["changed"]) / max(1, total),
        )
        if state.turned > options.renew * total > 0:
            report.renewed = True
            with announcing("renew"):
                found, lead = self._renewed(fields, found, report.work)
            state = replace(state, turned=0, regained=state.regained + lead)
        if options.connected == "always":
            with announcing("split"):
                found = self.steps.split_left(fields, found, report.work)
        if len(removed := self.xp.asarray(change.removed)):
            flags = self.steps.arrays["flags"][: fields["n"]]
            if not are_alone(removed, found.partition.names, flags):
                found = self._split_all(fields, found, report.work)
        state = replace(state, partition=found.partition)
        if audit_due(state, options, total):
            with announcing("audit"):
                labels = self.runs.detect(graph, self._run(self.nbytes), report.work)
                fresh = self._settled(fields, labels, report.work)
            state, report.lead = audited(state, fresh.partition, options, total)
            if state.partition is fresh.partition:
                found = fresh
                self.device.clear(self.kept["touched"])
        return report, self._end(fields, state, found)

    def _renewed(self, fields: dict[str, Any], found: Members, work: Work) -> tuple[Members, float]:
        """Free touched vertices and run a cycle from there; return what is better, and its lead."""
        graph, n = self.graph, fields["n"]
        start, freed = self.xp.empty(n, np.uint32), self.steps.arrays["active"][:n]
        share = np.float64(self.options.renew)
        self.steps.launch("release_touched", n, fields, found.partition.names, start, freed, share)
        run = self._run(self.nbytes + start.nbytes)
        cycle = self.runs.cycle(graph, start, freed, run, work)
        total = graph.total_weight
        renewed = self.steps.settle_labels(fields, *cycle) if cycle else None
        if renewed is None or self.quality_of(renewed, total) < self.quality_of(found, total):
            if self.options.splits_kept:
                found = self._split_all(fields, found, work)
            return found, 0.0
        return renewed, lead_of(renewed.partition, found.partition, total, run.resolution)

    def _settled(self, fields: dict[str, Any], labels: Any, work: Work) -> Members:
        """Settle the labels of a run from single vertices."""
        fresh = self.steps.settle_labels(fields, labels)
        return self._split_all(fields, fresh, work) if self.options.splits_runs else fresh

    def _split_all(self, fields: dict[str, Any], found: Members, work: Work) -> Members:
        """Split all communities into their connected parts."""
        self.steps.arrays["whole"][: fields["n"]] = fields["n"] - 1  # all have left one community
        return self.steps.split_left(fields, found, work)

    def quality_of(self, members: Members, total: int) -> float:
        """Return the modularity of a partition."""
        return members.partition.quality(total, self.options.run.resolution)

    def resolve(self, until: Pending | None = None) -> None:
        """Work out ids, changed vertices and events, of all batches or up to one."""
        while self.pending and (until is None or until.changed is None):
            batch, before = self.pending[0], self.xp.asarray(self.current.names)
            self._keep_ids(self.current)
            assert batch.listed is not None
            batch.changed, batch.events = self.identity.follow(
                batch.listed, before, batch.names, self._room(self.nbytes)
            )
            batch.listed = None
            self.pending.popleft()
            batch.row["changed"] = len(batch.changed)
            self.current = batch

    def ids_of(self, batch: Pending) -> NDArray[np.int64]:
        """Return the id of each vertex's community after a batch."""
        self.resolve(batch)
        if batch.ids is None:
            batch.ids = self.identity.ids_of(batch.names)
        return batch.ids

    def host_state(self) -> Followed:
        """Return the state with arrays in host memory."""
        state = self.state
        part = state.partition
        return replace(
            state,
            partition=Partition(
                names=self.device.get(part.names), inside=part.inside, squares=part.squares
            ),
            touched=self.device.get(self.kept["touched"]),
        )

    def host_identity(self) -> Identity:
        """Return the identity with arrays in host memory."""
        self.resolve()
        names, of_name = (
            self.device.get(each) for each in (self.members.partition.names, self.identity.of_name)
        )
        # Vertices may have been added since the last batch.
        alive, degrees = of_name[names] >= 0, self.graph.degrees[: len(names)]
        return Identity.restored(names, alive, degrees, of_name, self.identity.next_id)

    @property
    def nbytes(self) -> int:
        """Bytes on the device besides the graph."""
        # The last batch's names are those of the state.
        waiting = {id(batch.names): batch.names for batch in (self.current, *self.pending)}
        waiting.pop(id(self.members.partition.names), None)
        names = sum(array.nbytes for array in waiting.values())
        undo = 0 if self.undo is None else self.undo.nbytes
        held = self.steps.nbytes + self.identity.of_name.nbytes
        return int(held + names + self._listed_bytes + undo)

    def _room(self, held: int) -> int | None:
        """Return the bytes that the graph's budget leaves beside others; None without one."""
        budget = self.graph.device_budget
        return None if budget is None else max(1, budget - self.graph.memory.device_bytes - held)

    def _run(self, held: int) -> Options:
        """Return the options of a run beside the graph and other bytes."""
        return replace(self.options.run, device_budget=self._room(held))

    @property
    def _listed_bytes(self) -> int:
        """Bytes of the lists that wait on the device."""
        return sum(batch.listed_there for batch in self.pending)

    def _refuse_budget(self) -> None:
        """Raise a MemoryBudgetError if following does not fit beside the graph."""
        graph = self.graph
        if graph.device_budget is None:
            return
        parts = follow_arrays.follow_bytes(
            graph.n_vertices, graph.n_arcs, self.graph.device_store.longest
        )
        held = graph.memory.device_bytes
        needed = held + sum(parts.values())
        if needed > graph.device_budget:
            raise MemoryBudgetError(
                needed, graph.device_budget, [("graph", held), *parts.items()],
                "raise device_budget, or follow the graph on the CPU",
            )  # fmt: skip

    def _end(self, fields: dict[str, Any], state: Followed, found: Members) -> Pending:
        """Take a state; list the vertices whose community changed its name."""
        n = fields["n"]
        listed = found.listed
        if listed is None:
            listed = self.steps.listed(fields, found, self._room(self.nbytes))
        there = 0 if listed.on_host else listed.nbytes
        if self._listed_bytes + there > MOST_LISTED * n:
            entries = self.device.get(listed.entries)
            listed, there = replace(listed, entries=entries, on_host=True), 0
        batch = Pending(
            n=n,
            names=found.partition.names,
            communities=found.communities - self.graph.dead_count,
            listed=listed,
            listed_there=there,
        )
        while len(self.pending) >= MOST_PENDING:
            self.resolve(self.pending[0])
        # Nothing fails from here on.
        alive = self.graph.device_store.alive.copy()
        self.state, self.members = state, found.unlisted
        self.steps.members = self.members
        self.kept["alive_before"] = alive
        self.pending.append(batch)
        return batch

    def _first_identity(self) -> ListedIdentity:
        names = self.device.get(self.members.partition.names)
        known = Identity.of(names, self.graph.alive, self.graph.degrees)
        return ListedIdentity(self.device, self.xp.asarray(known.of_name), known.next_id)

    def _keep_ids(self, batch: Pending) -> None:
        """Keep the ids of a batch whose result is still in use, on the host: they will change."""
        if batch.in_use() is not None:
            if batch.ids is None:
                batch.ids = self.identity.ids_of(batch.names)
            batch.names = self.device.get(batch.names)
