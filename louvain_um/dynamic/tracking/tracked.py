"""What a tracker returns for a batch, communities with lasting ids, and the history of them."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from functools import partial
from typing import TYPE_CHECKING, Any, Final, overload

import numpy as np
from numpy.typing import NDArray

from louvain_um.core.numbering import number_by_size
from louvain_um.dynamic.tracking.identity import NO_EVENTS, NO_ID
from louvain_um.results.communities import Communities

if TYPE_CHECKING:
    import pandas as pd

    from louvain_um.dynamic.tracking.following import Pending


ROW: Final = np.dtype([
    ("epoch", np.int64), ("modularity", np.float64), ("communities", np.int64),
    ("edges_changed", np.int64), ("marked", np.int64), ("split", np.int64), ("moves", np.int64),
    ("changed", np.int64), ("renewed", np.bool_), ("audit_lead", np.float64),
    ("arcs_visited", np.int64), ("arcs_checked", np.int64), ("seconds", np.float64),
])  # fmt: skip
"""Columns of a history; `Tracker.to_frame` says what they are."""

BLOCK: Final = 1024
"""Rows that are allocated together."""


class History(Sequence[dict[str, Any]]):
    """Rows that read as a list of dicts, at 97 bytes each."""

    def __init__(self, rows: Iterable[Mapping[str, Any]] | NDArray[np.void] = ()) -> None:
        self._blocks: list[NDArray[np.void]] = []
        self._count = 0
        if isinstance(rows, np.ndarray):
            rows = (dict(zip(ROW.names or (), row, strict=True)) for row in rows.tolist())
        for row in rows:
            self.add(row)

    def add(self, row: Mapping[str, Any]) -> np.void:
        """Append a row; return it, so that what is known later can be filled in."""
        block, at = divmod(self._count, BLOCK)
        if block == len(self._blocks):
            self._blocks.append(np.zeros(BLOCK, ROW))
        self._blocks[block][at] = tuple(row[name] for name in ROW.names or ())
        self._count += 1
        added: np.void = self._blocks[block][at]
        return added

    def array(self) -> NDArray[np.void]:
        """Return a copy as one structured array."""
        return np.concatenate([np.zeros(0, ROW), *self._blocks])[: self._count]

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, index: slice) -> list[dict[str, Any]]: ...
    def __getitem__(self, index: int | slice) -> dict[str, Any] | list[dict[str, Any]]:
        places = range(self._count)[index]
        if isinstance(places, range):
            return [self[place] for place in places]
        row = self._blocks[places // BLOCK][places % BLOCK]
        return dict(zip(ROW.names or (), row.item(), strict=True))

    def __eq__(self, other: object) -> bool:
        return list(self) == list(other) if isinstance(other, History | list) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # like a list

    def __repr__(self) -> str:
        return repr(list(self))


ARRAYS = ("labels", "ids", "changed", "events")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class TrackedCommunities(Communities):
    """The communities of a changing graph after a batch.

    Parameters
    ----------
    ids : int64[n]
        Id of each vertex's community, which persists from batch to batch; −1 for removed vertices.
    changed : uint32[c]
        Vertices whose id is another than before the batch, ascending.
    events : structured array
        What happened to communities of two vertices and more that gained or lost members; its
        fields are those of `louvain_um.dynamic.tracking.identity.EVENT`.
    epoch : int
        The graph's epoch.
    n_communities : int
        Communities of vertices that were not removed.
    """

    ids: NDArray[np.int64]
    changed: NDArray[np.uint32]
    events: NDArray[np.void] = field(default_factory=lambda: NO_EVENTS)
    epoch: int = 0

    @property
    def n_communities(self) -> int:
        """Number of communities; removed vertices are in none."""
        return len(self.sizes) - int(np.count_nonzero(self.ids == NO_ID))

    def events_frame(self) -> pd.DataFrame:
        """Return the events as a table, one row each.

        Examples
        --------
        >>> import louvain_um as lu
        >>> g = lu.DynamicGraph(lu.Graph.from_edges([0, 1, 2, 3, 4, 5], [1, 2, 0, 4, 5, 3]))
        >>> t = lu.Tracker(g)
        >>> r = t.update(g.apply(insert=([2, 2, 2], [3, 4, 5])))
        >>> r.events_frame()[["kind", "id", "size_before", "size"]].to_dict("list")
        {'kind': [], 'id': [], 'size_before': [], 'size': []}
        """
        import pandas as pd

        return pd.DataFrame({name: self.events[name] for name in self.events.dtype.names or ()})


class LazyCommunities(TrackedCommunities):
    """The same, whose arrays are worked out, or copied from a device, when they are asked for."""

    _batch: Pending
    _labels: NDArray[np.uint32] | None

    def __init__(self, batch: Pending, **values: Any) -> None:
        batch.in_use = weakref.ref(self)
        known = {**defaults(TrackedCommunities), **values, "value": values["modularity"]}
        for name, value in (known | {"_batch": batch, "_labels": None}).items():
            object.__setattr__(self, name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        # A copy cannot wait: later batches change the ids that it would find.
        values = {each.name: getattr(self, each.name) for each in fields(self) if each.init}
        return partial(TrackedCommunities, **values), ()

    @property
    def labels(self) -> NDArray[np.uint32]:
        """Community of each vertex, 0 … k − 1 by descending size."""
        found = self._labels
        if found is None:
            found = number_by_size(self._batch.memory.get(self._batch.names))
            object.__setattr__(self, "_labels", found)
        return found

    @property
    def ids(self) -> NDArray[np.int64]:
        """Id of each vertex's community."""
        return self._batch.resolved_ids()

    @property
    def changed(self) -> NDArray[np.uint32]:
        """Vertices whose id is another than before the batch."""
        self._batch.resolve()
        assert self._batch.changed is not None
        return self._batch.changed

    @property
    def events(self) -> NDArray[np.void]:
        """What happened to communities."""
        self._batch.resolve()
        return NO_EVENTS if self._batch.events is None else self._batch.events

    @property
    def n_vertices(self) -> int:
        """Number of vertices."""
        return len(self._batch.names)

    @property
    def n_communities(self) -> int:
        """Number of communities; removed vertices are in none."""
        return self._batch.communities


def defaults(kind: Any) -> dict[str, Any]:
    """Return the default of each field of a dataclass that has one, but for arrays."""
    found = {}
    for each in fields(kind):
        if each.name in ARRAYS:
            continue
        if each.default_factory is not MISSING:
            found[each.name] = each.default_factory()
        elif each.default is not MISSING:
            found[each.name] = each.default
    return found
