"""Names of vertices: kept on the host, translated before a batch reaches the store."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from louvain_um.core.plain_data import is_missing
from louvain_um.errors import GraphError
from louvain_um.formats.ids import name_array

_NONE: NDArray[Any] = np.empty(0, object)


def _nothing() -> None:
    """Return what a reference to an array that has gone does."""


class Names:
    """The name of each vertex; a removed vertex has none, and its name may be given again."""

    def __init__(self, names: Iterable[Hashable]) -> None:
        self.of: list[Any] = list(names)
        named = [(name, place) for place, name in enumerate(self.of) if name is not None]
        self.ids: dict[Any, int] = dict(named)
        self._counts = Counter(map(_kind, self.ids))
        self._array: Callable[[], NDArray[Any] | None] = _nothing
        """The first names as an array, while somebody holds it."""
        if len(self.ids) != len(named):
            raise GraphError("some vertices have the same name; make the names different")

    def __getstate__(self) -> dict[str, Any]:
        # Weak references cannot be pickled.
        return {**self.__dict__, "_array": _nothing}

    @property
    def kinds(self) -> set[str]:
        """Which kinds of names there are."""
        return set(+self._counts)

    def add(self, names: list[Any]) -> None:
        """Name the next vertices; the caller has made sure that the names are new."""
        self.ids.update(zip(names, range(len(self.of), len(self.of) + len(names)), strict=True))
        self.of += names
        self._counts.update(map(_kind, names))

    def drop(self, count: int) -> None:
        """Forget the last `count` vertices."""
        known, array = self._array(), self._array
        self.remove(np.arange(len(self.of) - count, len(self.of), dtype=np.uint32))
        del self.of[len(self.of) - count :]
        if known is not None and len(known) <= len(self.of):
            self._array = array

    def remove(self, ids: NDArray[np.uint32]) -> None:
        """Free the names of some vertices."""
        for place in ids.tolist():
            del self.ids[self.of[place]]
            self._counts[_kind(self.of[place])] -= 1
            self.of[place] = None
        self._array = _nothing

    def fresh(self, given: Any) -> list[Any]:
        """Return the names of vertices to add, a list; refuse those that there are."""
        if isinstance(given, int | np.integer | str):
            raise GraphError("vertices of this graph have names; pass add_vertices([name, …])")
        listed = as_list(given)
        if len(set(listed)) != len(listed) or any(name in self.ids for name in listed):
            raise GraphError("a vertex of one of these names is there; leave it out")
        self._refuse_others(listed)
        return listed

    def translated(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the columns of a batch with vertices for the names at both ends."""
        return {
            what: columns and (*(self.ids_of(ends, what) for ends in columns[:2]), *columns[2:])
            for what, columns in given.items()
        }

    def unknown(self, *columns: Any) -> list[Any]:
        """Return the names that no vertex has, each once, sorted where they can be compared."""
        new = {name for column in columns for name in as_list(column) if name not in self.ids}
        try:
            listed = sorted(new)
        except TypeError:
            listed = sorted(new, key=lambda name: (str(type(name)), str(name)))
        self._refuse_others(listed)
        return listed

    def _refuse_others(self, new: list[Any]) -> None:
        """Raise for names of another kind than the others: most likely the same, unconverted."""
        known = self.kinds
        for name in new:
            if is_missing(name):
                raise GraphError("the name of a vertex is missing; leave the edge out")
            kind = _kind(name)
            if not known and kind == "reals":
                raise GraphError(
                    f"a vertex has the real number {name!r} for a name; use whole numbers"
                )
            one = next(iter(self.ids)) if known else new[0]
            if (known or {_kind(one)}) in ({"text"}, {"numbers"}) and kind != _kind(one):
                raise GraphError(
                    f"vertices are named by {_kind(one)}, such as {one!r}, but {name!r} is not; "
                    "convert it"
                )

    def ids_of(self, column: Any, what: str) -> NDArray[np.int64]:
        """Return the vertices of some names."""
        names = as_list(column)
        try:
            return np.array([self.ids[name] for name in names], np.int64)
        except KeyError as error:
            raise GraphError(
                f"{what}: no vertex is named {error.args[0]!r}; insert an edge of it first, or "
                "call add_vertices"
            ) from None

    def at(self, ids: NDArray[np.uint32]) -> NDArray[Any]:
        """Return the names of some vertices; None for removed ones."""
        return name_array([self.of[place] for place in ids.tolist()]) if len(ids) else _NONE

    def array(self) -> NDArray[Any]:
        """Return the name of each vertex, None for removed ones; others may hold the same array."""
        known = self._array()
        if known is None:
            known = _NONE
        if len(known) < len(self.of):
            known = self._longer(known)
            known.flags.writeable = False
            self._array = weakref.ref(known)
        return known

    def _longer(self, known: NDArray[Any]) -> NDArray[Any]:
        """Return an array of all names, of which some are known."""
        fresh = name_array(self.of[len(known) :])
        if len(known) and known.dtype.kind == fresh.dtype.kind:
            return np.concatenate([known, fresh])
        return name_array(self.of) if len(known) else fresh


def _kind(name: Any) -> str:
    if isinstance(name, str):
        return "text"
    if isinstance(name, int | np.integer):
        return "numbers"
    return "reals" if isinstance(name, float | np.floating) else "others"


def as_list(column: Any) -> list[Any]:
    """Return a column as a list of plain Python values."""
    values = column.get() if type(column).__module__.startswith("cupy") else column
    if isinstance(values, str | bytes) or not (hasattr(values, "ndim") or np.iterable(values)):
        raise GraphError(f"names must be a list or an array, not {values!r}; pass [name, …]")
    if getattr(values, "ndim", 1) != 1:
        raise GraphError(f"names must be one-dimensional, not {values.shape}; flatten them")
    listed: list[Any] = values.tolist() if hasattr(values, "tolist") else list(values)
    for name in listed:
        if not isinstance(name, Hashable):
            raise GraphError(f"{name!r} cannot be the name of a vertex; use numbers or text")
    return listed


def are_names(columns: tuple[Any, ...] | None) -> bool:
    """Return whether the ends of edges are text."""
    return columns is not None and any(
        isinstance(next(iter(ends), None), str) for ends in columns[:2] if np.iterable(ends)
    )
