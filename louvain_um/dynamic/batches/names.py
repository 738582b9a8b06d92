"""Names of vertices: kept on the host, translated before a batch reaches the store."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from louvain_um.errors import GraphError
from louvain_um.formats.objects.frames import name_array


class Names:
    """The name of each vertex; a removed vertex has none, and its name may be given again.

    Examples
    --------
    >>> from louvain_um.dynamic.batches.names import Names
    >>> names = Names(["ann", "bob"])
    >>> names.ids_of(["bob", "ann"], "u").tolist(), names.unknown(["cid", "ann"])
    ([1, 0], ['cid'])
    """

    def __init__(self, names: Iterable[Hashable]) -> None:
        self.of: list[Any] = list(names)
        named = [(name, place) for place, name in enumerate(self.of) if name is not None]
        self.ids: dict[Any, int] = dict(named)
        self.kinds = {_kind(name) for name in self.ids}
        if len(self.ids) != len(named):
            raise GraphError("some vertices have the same name; make the names different")

    def add(self, names: list[Any]) -> None:
        """Name the next vertices; the caller has made sure that the names are new."""
        self.ids.update(zip(names, range(len(self.of), len(self.of) + len(names)), strict=True))
        self.of += names
        self.kinds |= {_kind(name) for name in names}

    def drop(self, count: int) -> None:
        """Forget the last `count` vertices."""
        for name in self.of[len(self.of) - count :]:
            del self.ids[name]
        del self.of[len(self.of) - count :]

    def remove(self, ids: NDArray[np.uint32]) -> None:
        """Free the names of some vertices."""
        for place in ids.tolist():
            del self.ids[self.of[place]]
            self.of[place] = None

    def fresh(self, given: Any) -> list[Any]:
        """Return the names of vertices to add, a list; refuse those that there are."""
        if isinstance(given, int | np.integer | str):
            raise GraphError("vertices of this graph have names; pass add_vertices([name, …])")
        listed = as_list(given)
        if len(set(listed)) != len(listed) or any(name in self.ids for name in listed):
            raise GraphError("a vertex of one of these names is there; leave it out")
        return listed

    def translated(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the columns of a batch with vertices for the names at both ends."""
        return {
            what: columns and (*(self.ids_of(ends, what) for ends in columns[:2]), *columns[2:])
            for what, columns in given.items()
        }

    def unknown(self, *columns: Any) -> list[Any]:
        """Return the names that no vertex has, each once, sorted where they can be compared.

        In any case they are in an order that the order of the columns does not change.
        """
        new = {name for column in columns for name in as_list(column)} - self.ids.keys()
        for name in new:
            if name is None or name != name:
                raise GraphError("the name of a vertex is missing; leave the edge out")
            self._refuse_other(name)
        try:
            return sorted(new)
        except TypeError:
            return sorted(new, key=lambda name: (str(type(name)), str(name)))

    def _refuse_other(self, name: Any) -> None:
        """Raise for a name of another kind than all others: most likely the same one, unconverted.

        Beside "7", a vertex 7 would be another one.
        """
        kind = _kind(name)
        if self.kinds in ({"text"}, {"numbers"}) and kind not in self.kinds:
            (known,) = self.kinds
            raise GraphError(
                f"vertices are named by {known}, such as {next(iter(self.ids))!r}, and "
                f"{name!r} is none; convert it"
            )
        if kind == "reals" and not self.kinds:
            raise GraphError(f"a vertex has the real number {name!r} for a name; use whole numbers")

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

    def array(self) -> NDArray[Any]:
        """Return the name of each vertex; None for removed ones."""
        return name_array(self.of) if self.of else np.empty(0, object)


def _kind(name: Any) -> str:
    if isinstance(name, str):
        return "text"
    if isinstance(name, int | np.integer):
        return "numbers"
    return "reals" if isinstance(name, float | np.floating) else "others"


def as_list(column: Any) -> list[Any]:
    """Return a column as a list of plain Python values."""
    values = column.get() if type(column).__module__.startswith("cupy") else column
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
