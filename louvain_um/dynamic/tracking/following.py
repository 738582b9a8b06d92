"""How communities follow a changing graph: the steps of a batch, on the host or on a device."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from louvain_um.core.objective import Objective, Sums
from louvain_um.dynamic.batches.changes import NO_VERTICES, Change
from louvain_um.dynamic.graph import DynamicGraph
from louvain_um.dynamic.tracking.identity import HOST, ArrayMemory, CommunityIds, ListedVertices
from louvain_um.errors import OptionError, check_choice
from louvain_um.events import announcing
from louvain_um.gpu.dynamic.follow_arrays import MOST_LISTED, MOST_PENDING
from louvain_um.options import Effort, Options

Mode = Literal["follow", "frontier", "screening", "naive", "static"]
MODES: Final = get_args(Mode)

Connected = Literal["renewal", "always"]
CONNECTED: Final = get_args(Connected)

MOST_PERIOD: Final = 1 << 20
"""Of `Followed.period`: audits that find nothing would double it without end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowOptions:
    """How a tracker follows; see `louvain_um.dynamic.tracking.tracker.Tracker`."""

    mode: Mode = "follow"
    renew: float = 0.02
    audit: float | None = 0.003
    connected: Connected = "renewal"
    effort: Effort = "default"
    n_iterations: int | None = None
    best_of: int = 1
    run: Options = field(default_factory=lambda: Options(method="leiden", device="cpu"))

    def __post_init__(self) -> None:
        object.__setattr__(self, "renew", _share("renew", self.renew))
        if self.audit is not None:
            object.__setattr__(self, "audit", _share("audit", self.audit))
        check_choice("connected", self.connected, CONNECTED)
        check_choice("mode", self.mode, MODES)
        self.of_runs(self.run)  # checks how long to search

    def of_runs(self, run: Options) -> Options:
        """Return the options of a run from single vertices."""
        cycles, seeds = self.n_iterations, self.best_of
        return replace(run, effort=self.effort, n_iterations=cycles, best_of=seeds)

    def settings(self) -> dict[str, Any]:
        """Return all on which labels depend but the graph's batches, to be saved with them."""
        following = ("mode", "renew", "audit", "connected")
        return self.of_runs(self.run).settings() | {x: getattr(self, x) for x in following}

    @property
    def splits_runs(self) -> bool:
        """Whether communities of runs from single vertices are split."""
        return self.run.method == "louvain" and self.connected == "always"

    @property
    def splits_kept(self) -> bool:
        """Whether communities that a renewal does not improve are split: moves may part them."""
        return self.run.method == "leiden" and self.connected == "renewal"


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedPartition:
    """Communities of the vertices of a graph, each named after its smallest member."""

    # On a device it also has members and their degrees by name, and the vertices whose community
    # has another name than before the batch.

    names: Any
    inside: int
    squares: int
    sizes: Any = None
    masses: Any = None
    communities: int | None = None
    differing: int = 0
    listed: ListedVertices | None = None

    def quality(self, total: int, resolution: float) -> float:
        """Return the modularity."""
        objective = Objective(name="modularity", resolution=resolution, total=total, norm=total)
        return objective.value(Sums(self.inside, self.squares, communities=0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """The state of a tracker between two batches."""

    partition: NamedPartition
    turnover: int = 0
    changed: float = 0.0
    regained: float = 0.0
    period: int = 1


@dataclass(slots=True)
class BatchReport:
    """What following one batch took; columns of a history, but for `turnover` and `changed`."""

    marked: int = 0
    split: int = 0
    moves: int = 0
    renewed: bool = False
    audit_lead: float = float("nan")
    arcs_visited: int = 0
    arcs_checked: int = 0
    turnover: int = 0
    changed: int = 0


class Steps(Protocol):
    """What a batch takes, where the graph is; `begin` starts it, `keep` or `abandon` ends it."""

    memory: ArrayMemory

    @property
    def touched(self) -> Any:
        """Turnover of each vertex's arcs since it was last freed, uint64[n]."""

    @property
    def nbytes(self) -> int:
        """Bytes of arrays that are kept between batches."""

    def begin(
        self, change: Change | None, before: NamedPartition | None, report: BatchReport
    ) -> None:
        """Carry a partition to the changed graph, and mark the vertices that are to move."""

    def split_loosened(self) -> None:
        """Split off the parts of communities that removed edges held."""

    def move(self) -> NamedPartition:
        """Let marked vertices move; `report` then has all that the host decides on."""

    def renew(self, found: NamedPartition, waiting: int) -> NamedPartition | None:
        """Free touched vertices and run a cycle from there; None where it gained nothing."""

    def detect(self, waiting: int) -> NamedPartition:
        """Return the communities of a run from single vertices."""

    def split_left(self, found: NamedPartition) -> NamedPartition:
        """Split the communities of those whose communities others left."""

    def split_all(self, found: NamedPartition) -> NamedPartition:
        """Split all communities into their connected parts."""

    def are_alone(self, vertices: NDArray[np.uint32], found: NamedPartition) -> bool:
        """Return whether some vertices are communities of one member each."""

    def forget_touched(self) -> None:
        """Begin anew to count what turns."""

    def list_differing(self, found: NamedPartition, waiting: int) -> ListedVertices:
        """List the vertices whose community has another name than before the batch."""

    def keep(self, found: NamedPartition) -> NamedPartition:
        """Make a partition the one that the next batch begins with; this cannot fail."""

    def abandon(self) -> None:
        """Leave all as it was before the batch."""

    def guarded(self) -> AbstractContextManager[Any]:
        """Return what a batch is followed in: errors and interrupts are the steps' affair."""

    def room(self, held: int) -> int | None:
        """Return the bytes that the graph's budget leaves; None without one."""


@dataclass(kw_only=True)
class Pending:
    """The communities after a batch; ids, changed vertices and events come when asked for."""

    memory: ArrayMemory
    names: Any
    communities: int
    listed: ListedVertices | None = None
    follower: Follower | None = None
    of_name: Any = None
    row: Any = field(default_factory=dict)
    changed: NDArray[np.uint32] | None = None
    events: NDArray[np.void] | None = None
    ids: NDArray[np.int64] | None = None
    in_use: Callable[[], Any] = lambda: None

    def __getstate__(self) -> dict[str, Any]:
        # Weak references cannot be pickled.
        return {name: value for name, value in self.__dict__.items() if name != "in_use"}

    def resolve(self) -> None:
        """Work out changed vertices and events, of batches before this one, too."""
        follower = self.follower  # None once another thread has worked them out
        if follower is not None:
            follower.resolve(self)

    def resolved_ids(self) -> NDArray[np.int64]:
        """Return the id of each vertex's community, −1 for removed vertices."""
        self.resolve()
        of_name = self.of_name  # before `ids` is looked at: another thread may call `retire` now
        if self.ids is None:
            self.ids = self.memory.get(of_name[self.memory.xp.asarray(self.names)])
        return self.ids

    def retire(self) -> None:
        """Make way for the next batch's ids: what is still in use goes to the host."""
        if self.memory is not HOST:
            if self.in_use() is not None:
                self.resolved_ids()
                self.names = self.memory.get(self.names)
            self.of_name = None


@dataclass(frozen=True, kw_only=True)
class Next:
    """What a batch leads to, not yet kept."""

    state: Followed
    batch: Pending
    report: BatchReport


class Follower:
    """Communities that follow a graph, from the first ones on or from a state that was saved."""

    def __init__(
        self,
        graph: DynamicGraph,
        options: FollowOptions,
        steps: Steps,
        saved: tuple[Followed, CommunityIds] | None = None,
    ) -> None:
        self.graph, self.options, self.steps = graph, options, steps
        self.pending: deque[Pending] = deque()
        if saved is None:
            steps.begin(None, None, BatchReport())
            found = steps.keep(self._detected(0))
            names = steps.memory.get(found.names)
            saved = Followed(partition=found), CommunityIds.first(names, graph.alive, steps.memory)
        self.state, self.identity = saved
        of_name = self.identity.of_name
        self.current = Pending(
            memory=steps.memory,
            names=self.state.partition.names,
            communities=int((of_name >= 0).sum()),
            of_name=of_name,
            changed=NO_VERTICES,
        )

    def __getstate__(self) -> dict[str, Any]:
        self.resolve()  # rows of the history cannot be copied without it
        return self.__dict__

    def follow(self, change: Change) -> Next:
        """Return what a batch that was just applied leads to."""
        steps, report, waiting = self.steps, BatchReport(), self.waiting_bytes
        try:
            with announcing("carry"):
                steps.begin(change, self.state.partition, report)
            state = self._followed(change, report, waiting)
            batch = self._pending(state.partition)
            listed = steps.list_differing(state.partition, waiting)
            if self._listed_bytes + listed.waiting_bytes > MOST_LISTED * len(batch.names):
                listed = listed.fetched(steps.memory)
            batch.listed, batch.follower = listed, self
            while len(self.pending) >= MOST_PENDING:
                self.resolve(self.pending[0])
        except BaseException:
            steps.abandon()
            raise
        return Next(state=state, batch=batch, report=report)

    def take(self, found: Next) -> None:
        """Keep what a batch led to; this cannot fail."""
        kept = self.steps.keep(found.state.partition)
        self.state = replace(found.state, partition=kept)
        self.pending.append(found.batch)

    def _followed(self, change: Change, report: BatchReport, waiting: int) -> Followed:
        """Return the state after a batch that has begun."""
        steps, options, total = self.steps, self.options, self.graph.total_weight
        follows = options.mode == "follow"
        with announcing("split"):
            steps.split_loosened()
        with announcing("frontier"):
            found = steps.move()
        turnover = self.state.turnover + report.turnover
        changed = self.state.changed + report.changed / max(1, total)
        state = replace(self.state, turnover=turnover, changed=changed)
        if follows and turnover > options.renew * total > 0:
            report.renewed = True
            with announcing("renew"):
                found, lead = self._renewed(found, total, waiting)
            state = replace(state, turnover=0, regained=state.regained + lead)
        if options.connected == "always":
            with announcing("split"):
                found = steps.split_left(found)
        if len(change.removed) and not steps.are_alone(change.removed, found):
            found = steps.split_all(found)
        state = replace(state, partition=found)
        if follows and audit_due(state, options, total):
            with announcing("audit"):
                fresh = self._detected(waiting)
                state, report.audit_lead = audited(state, fresh, options, total)
                if state.partition is fresh:
                    steps.forget_touched()
        return state

    def _renewed(
        self, found: NamedPartition, total: int, waiting: int
    ) -> tuple[NamedPartition, float]:
        """Return the better of a partition and its renewal, and the lead of the latter."""
        gamma, renewed = self.options.run.resolution, self.steps.renew(found, waiting)
        if renewed and renewed.quality(total, gamma) >= found.quality(total, gamma):
            return renewed, lead_of(renewed, found, total, gamma)
        return (self.steps.split_all(found) if self.options.splits_kept else found), 0.0

    def _detected(self, waiting: int) -> NamedPartition:
        """Return the communities of a run from single vertices, split if asked for."""
        fresh = self.steps.detect(waiting)
        return self.steps.split_all(fresh) if self.options.splits_runs else fresh

    def _pending(self, found: NamedPartition) -> Pending:
        """Return communities whose ids are yet to be asked for."""
        names, count = found.names, found.communities
        if count is None:
            count = int(np.count_nonzero(names == np.arange(len(names), dtype=np.uint32)))
        count -= self.graph.dead_count  # a removed vertex is alone
        return Pending(memory=self.steps.memory, names=names, communities=count)

    def resolve(self, until: Pending | None = None) -> None:
        """Work out ids, changed vertices and events, of all batches or up to one."""
        with self.graph.lock:
            self._resolve(until)

    def _resolve(self, until: Pending | None) -> None:
        """Work them out, one thread at a time."""
        memory = self.steps.memory
        while self.pending and (until is None or until.changed is None):
            batch, last = self.pending[0], self.current
            before = memory.xp.asarray(last.names)
            last.retire()
            assert batch.listed is not None
            self.identity, batch.changed, batch.events = self.identity.follow(
                batch.listed, before, batch.names, self.steps.room(self.nbytes)
            )
            batch.row["changed"] = len(batch.changed)
            batch.of_name = self.identity.of_name
            batch.listed = batch.follower = None
            self.current = self.pending.popleft()

    def host_state(self) -> Followed:
        """Return the state with arrays in host memory."""
        part = self.state.partition
        names = self.steps.memory.get(part.names)
        return replace(
            self.state,
            partition=NamedPartition(names=names, inside=part.inside, squares=part.squares),
        )

    @property
    def nbytes(self) -> int:
        """Bytes of following, where the graph is."""
        return self.steps.nbytes + self.waiting_bytes

    @property
    def waiting_bytes(self) -> int:
        """Bytes of ids, and of batches whose ids wait to be asked for."""
        # The last batch's names are those of the state.
        names = {id(batch.names): batch.names for batch in (self.current, *self.pending)}
        names.pop(id(self.state.partition.names), None)
        held = self.identity.of_name.nbytes + sum(array.nbytes for array in names.values())
        return int(held + self._listed_bytes)

    @property
    def _listed_bytes(self) -> int:
        return sum(batch.listed.waiting_bytes for batch in self.pending if batch.listed)


def lead_of(other: NamedPartition, than: NamedPartition, total: int, resolution: float) -> float:
    """Return the lead in modularity of a partition over another, relative to its value."""
    quality = other.quality(total, resolution)
    return (quality - than.quality(total, resolution)) / abs(quality) if quality else 0.0


def audit_due(state: Followed, options: FollowOptions, total: int) -> bool:
    """Whether a run from single vertices is likely to lead by more than `audit`."""
    if options.audit is None or not total:
        return False
    return state.regained > state.period * options.audit or state.changed >= 1


def audited(
    state: Followed, fresh: NamedPartition, options: FollowOptions, total: int
) -> tuple[Followed, float]:
    """Return the state after an audit that found a partition, and its lead."""
    assert options.audit is not None
    lead = lead_of(fresh, state.partition, total, options.run.resolution)
    period = state.period
    if lead > options.audit:
        state = replace(state, partition=fresh, turnover=0)
        period = max(1, min(period, int(2 * period * options.audit / lead)))
    elif lead < options.audit / 2:
        period = min(2 * period, MOST_PERIOD)
    return replace(state, changed=0.0, regained=0.0, period=period), lead


def _share(name: str, value: float) -> float:
    """Return a value as Python's number; raise unless it lies between 0 and 1."""
    try:
        number = -1.0 if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        number = -1.0
    if not 0 <= number <= 1:
        raise OptionError(name, value, "must be a number from 0 to 1")
    return number
