"""One batch of a tracker: the steps of each mode, renewals and audits."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, Protocol, get_args

import numpy as np

from louvain_um.cpu import follow
from louvain_um.dynamic.change import Change
from louvain_um.dynamic.tracking import partition as steps
from louvain_um.dynamic.tracking.partition import U64, Marks, Partition, Work
from louvain_um.errors import OptionError
from louvain_um.events import announcing
from louvain_um.graph.row_view import RowView
from louvain_um.options import Options

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
    run: Options = field(default_factory=lambda: Options(method="leiden", device="cpu"))

    def __post_init__(self) -> None:
        object.__setattr__(self, "renew", _share("renew", self.renew))
        if self.audit is not None:
            object.__setattr__(self, "audit", _share("audit", self.audit))
        for name, values in (("connected", CONNECTED), ("mode", MODES)):
            if (value := getattr(self, name)) not in values:
                known = ", ".join(f"'{known}'" for known in values)
                raise OptionError(name, value, f"must be one of {known}")

    @property
    def moving(self) -> Options:
        """Options of moves without levels."""
        return replace(self.run, method="louvain")

    @property
    def splits_runs(self) -> bool:
        """Whether communities of runs from single vertices are split."""
        return self.run.method == "louvain" and self.connected == "always"

    @property
    def splits_kept(self) -> bool:
        """Whether communities that a renewal does not better are split: moves may part them."""
        return self.run.method == "leiden" and self.connected == "renewal"


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """The state of a tracker between two batches."""

    partition: Partition
    touched: U64
    turned: int = 0
    changed: float = 0.0
    regained: float = 0.0
    period: int = 1


@dataclass(slots=True)
class Report:
    """What following one batch took."""

    work: Work = field(default_factory=Work)
    marked: int = 0
    split: int = 0
    renewed: bool = False
    lead: float = float("nan")


class Step(Protocol):
    """A mode: how communities follow one batch."""

    def __call__(
        self, view: RowView, state: Followed, marks: Marks, options: FollowOptions, work: Work
    ) -> Partition:
        """Return the partition that follows, its sums included."""


def follow_batch(
    view: RowView, state: Followed, change: Change, options: FollowOptions
) -> tuple[Followed, Report]:
    """Return the state after a batch; the given one is left as it was."""
    report = Report()
    n, total, gamma = view.n_vertices, view.total_weight, options.run.resolution
    with announcing("carry"):
        before, turned = steps.carry(state.partition, change, n)
        marks, touched = np.zeros(n, np.bool_), np.zeros(n, np.uint64)
        touched[: len(state.touched)] = state.touched
        columns = change.u, change.v, change.before, change.after
        follow.mark_changes(*columns, before.names, marks, touched)
    with announcing("split"):
        whole, fell = steps.split_loosened(view, before, change, report.work)
    marks |= fell
    report.marked, report.split = (int(np.count_nonzero(each)) for each in (marks, fell))
    touched[fell] |= steps.WHOLLY
    state = replace(
        state,
        touched=touched,
        turned=state.turned + turned,
        changed=state.changed + change.turned / max(1, total),
    )

    with announcing("frontier"):
        found = STEPS[options.mode](view, state_with(state, whole), marks, options, report.work)
    if options.mode == "follow" and state.turned > options.renew * total > 0:
        report.renewed = True
        with announcing("renew"):
            freed = steps.to_free(view, touched, options.renew)
            renewed = steps.renew(view, found, freed, options.run, report.work)
        if renewed and renewed.quality(total, gamma) >= found.quality(total, gamma):
            state = replace(state, regained=state.regained + lead_of(renewed, found, total, gamma))
            found = renewed
        elif options.splits_kept:
            found = split_all(view, found, report.work)
        touched[freed] = 0
        state = replace(state, touched=touched, turned=0)
    if options.connected == "always":
        with announcing("split"):
            found = split_left(view, whole, found, report.work)
    removed = change.removed
    if len(removed) and not are_alone(removed, found.names, np.empty(n, np.uint8)):
        found = split_all(view, found, report.work)
    state = state_with(state, found)
    if options.mode == "follow" and audit_due(state, options, total):
        with announcing("audit"):
            state, report.lead = audit(view, state, options, report.work)
    return state, report


def lead_of(other: Partition, own: Partition, total: int, resolution: float) -> float:
    """Return the lead in modularity of a partition over another, relative to its own."""
    quality = other.quality(total, resolution)
    return (quality - own.quality(total, resolution)) / abs(quality) if quality else 0.0


def audit_due(state: Followed, options: FollowOptions, total: int) -> bool:
    """Whether a run from single vertices is likely to lead by more than `audit`."""
    if options.audit is None or not total:
        return False
    return state.regained > state.period * options.audit or state.changed >= 1


def split_left(view: RowView, whole: Partition, found: Partition, work: Work) -> Partition:
    """Split the communities of those whose communities others left."""
    n = len(found.names)
    left, flags = np.zeros(n, np.bool_), np.zeros(n, np.bool_)
    left[whole.names[found.names != whole.names]] = True
    flags[found.names[left[whole.names]]] = True
    parts = steps.split(view, found, flags, work)
    return replace(parts, squares=steps.squares_of(view, parts.names))


def split_all(view: RowView, found: Partition, work: Work) -> Partition:
    """Split all communities into their connected parts."""
    parts = steps.split(view, found, np.ones(len(found.names), np.bool_), work)
    return replace(parts, squares=steps.squares_of(view, parts.names))


def are_alone(vertices: Any, names: Any, flags: Any) -> bool:
    """Return whether removed vertices are communities of their own."""
    flags[:] = 0
    flags[vertices] = 1
    own = bool((names[vertices] == vertices).all())
    return own and int(flags[names].sum()) == len(vertices)


def state_with(state: Followed, partition: Partition) -> Followed:
    """Return a state with another partition."""
    return replace(state, partition=partition)


def audit(
    view: RowView, state: Followed, options: FollowOptions, work: Work
) -> tuple[Followed, float]:
    """Compare with a run from single vertices; take its communities where they lead."""
    fresh = steps.detect(view, options.run, work)
    if options.splits_runs:
        fresh = split_all(view, fresh, work)
    state, lead = audited(state, fresh, options, view.total_weight)
    if state.partition is fresh:
        state = replace(state, touched=np.zeros(view.n_vertices, np.uint64))
    return state, lead


def audited(
    state: Followed, fresh: Partition, options: FollowOptions, total: int
) -> tuple[Followed, float]:
    """Return the state after an audit that found a partition, and its lead."""
    assert options.audit is not None
    lead = lead_of(fresh, state.partition, total, options.run.resolution)
    period = state.period
    if lead > options.audit:
        state = replace(state, partition=fresh, turned=0)
        period = max(1, min(period, int(2 * period * options.audit / lead)))
    elif lead < options.audit / 2:
        period = min(2 * period, MOST_PERIOD)
    return replace(state, changed=0.0, regained=0.0, period=period), lead


def frontier_alone(
    view: RowView, state: Followed, marks: Marks, options: FollowOptions, work: Work
) -> Partition:
    """Move what the batch marked, and what that activates."""
    return steps.move_marked(view, state.partition, marks, options.moving, work)


def with_levels(
    view: RowView, state: Followed, marks: Marks, options: FollowOptions, work: Work
) -> Partition:
    """Move marked vertices, then aggregate and go on, as Louvain does."""
    found = steps.run_cycle(view, state.partition.names, marks, options.moving, work)
    return found or steps.moved(view, state.partition, state.partition.names, work)


def screening(
    view: RowView, state: Followed, marks: Marks, options: FollowOptions, work: Work
) -> Partition:
    """Mark the neighbours and the communities of changed vertices, too (Zarayeneh et al. 2021)."""
    wide = marks.copy()
    names = state.partition.names
    communities = np.zeros(len(names), np.bool_)
    for v in np.flatnonzero(marks):
        wide[view.targets[view.begins[v] : view.ends[v]]] = True
    communities[names[marks]] = True
    wide |= communities[names]
    return with_levels(view, state, wide, options, work)


def naive(
    view: RowView, state: Followed, marks: Marks, options: FollowOptions, work: Work
) -> Partition:
    """Start Louvain from the communities before, every vertex active."""
    return with_levels(view, state, np.ones(len(marks), np.bool_), options, work)


def static(
    view: RowView, state: Followed, marks: Marks, options: FollowOptions, work: Work
) -> Partition:
    """Run again from single vertices."""
    return steps.detect(view, options.run, work)


STEPS: Final[dict[Mode, Step]] = {
    "follow": frontier_alone,
    "frontier": with_levels,
    "screening": screening,
    "naive": naive,
    "static": static,
}


def _share(name: str, value: float) -> float:
    """Return a value as Python's number; raise unless it lies between 0 and 1."""
    try:
        number = -1.0 if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        number = -1.0
    if not 0 <= number <= 1:
        raise OptionError(name, value, "must be a number from 0 to 1")
    return number
