"""The history of a tracker: one row per batch, packed, as streams have no end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, overload

import numpy as np
from numpy.typing import NDArray

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
