"""Attributes of the edges and vertices of a store in blocks, as Marrow-Graph and faimGraph have."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from louvain_um.dynamic.stores.blocks import HIGH, SEMANTIC
from louvain_um.errors import GraphError, OptionError


class Attributes:
    """Attributes of edges and vertices, which are numbers; those of edges are stored with targets.

    What is new has 0. Semantic edges (``pages:edges=semantic``) have `type`, `timestamp1` and
    `timestamp2`, uint32, from the beginning; ``layout=soa`` and ``layout=aos`` keep them in blocks.
    Bytes of other attributes are in no budget; `moved_bytes` counts those sent to a replica.

    Examples
    --------
    >>> import louvain_um as lu
    >>> from louvain_um.algorithms.operators import advance
    >>> g = lu.DynamicGraph(lu.Graph.from_edges([0, 1], [1, 2]), store="bal")
    >>> g.attributes.edit("length", [0.5, 2.0], [1, 2], [0, 1])
    >>> g.attributes.edit("height", 9, [2])
    >>> def farther(u, v, w, arc, length, height):
    ...     return length[arc] + height[v]
    >>> advance(g, None, farther, *g.attributes.arrays(), returns="sums").tolist()
    [0.5, 11.5, 2.0]
    """

    def __init__(self, store: Any, options: dict[str, Any]) -> None:
        self._store = store
        names = SEMANTIC if options.get("edges") == "semantic" and store.entry == 1 else ()
        self._of_edges = {name: store.xp.zeros(0, np.uint32) for name in names}
        self._of_vertices = dict[str, Any]()
        self._moving = False

    def edges(self) -> dict[str, Any]:
        """Return the attributes of edges, by place."""
        inside: dict[str, Any] = self._store.in_blocks()
        return inside | self._held(self._of_edges, len(self._store.targets))

    def vertices(self) -> dict[str, Any]:
        """Return the attributes of vertices."""
        return self._held(self._of_vertices, self._store.n_rows)

    def edit(self, name: str, values: ArrayLike, u: ArrayLike, v: ArrayLike | None = None) -> None:
        """Write an attribute of vertices u, or of the edges between u and v.

        Parameters
        ----------
        name : str
            An attribute; its first values decide its type.
        values : number or array of number, of length b
            Of what is given twice, the last counts.
        u, v : array of int, of length b
            Ids, not names. Both directions of an edge have the same value, unless it is directed.

        Raises
        ------
        GraphError
            An unknown id or edge, or values that are not numbers, have another length, or do not
            fit an attribute of integers. Nothing is written then.
        OptionError
            The name is in use: of vertices for edges, or of edges for vertices.
        """
        store, n, xp = self._store, self._store.n_rows, self._store.xp
        ends = [np.atleast_1d(np.asarray(end)) for end in (u, v) if end is not None]
        for end in ends:
            valid = end.dtype.kind in "iu" and bool(((end >= 0) & (end < n)).all())
            if end.shape != ends[0].shape[:1] or (end.size and not valid):
                raise GraphError(
                    f"ends must be in 0 … {n - 1}, in arrays of one dimension and length"
                )
        given = np.asarray(values)
        if given.dtype.kind not in "biuf" or given.shape not in ((), ends[0].shape):
            raise GraphError("values must be a number, or an array of as many numbers as ends")
        low, high = ends[0].astype(np.uint64), ends[-1].astype(np.uint64)
        if not store.directed:
            low, high = np.minimum(low, high), np.maximum(low, high)
        kept = len(low) - 1 - np.unique((low << HIGH | high)[::-1], return_index=True)[1]
        low, high, given = low[kept], high[kept], np.broadcast_to(given, ends[0].shape)[kept]
        held, others, columns = self.vertices(), self.edges(), self._of_vertices
        places = rows = xp.asarray(low.astype(np.uint32))
        if v is not None:
            held, others, columns = others, held, self._of_edges
            asked = low << HIGH | high
            if not store.directed:
                asked, given = np.append(asked, high << HIGH | low), np.tile(given, 2)
            rows = xp.asarray(np.unique(asked >> HIGH).astype(np.uint32))
            keys, places = store.placed(rows)
            at = self._found(keys, xp.asarray(asked))
            if bool((at == len(keys)).any()):
                raise GraphError("an edge is not in the graph; insert it, or leave it out")
            places = places[at]
        if name in others:
            raise OptionError("name", name, "must be another: edges and vertices have their own")
        dtype = held[name].dtype if name in held else given.dtype
        with np.errstate(invalid="ignore"):
            fitting = given.astype(dtype)
        if dtype.kind != "f" and not np.array_equal(fitting, given):
            raise GraphError(f"values of {name!r} must fit its type, {dtype}")
        if name not in held:
            columns[name] = held[name] = xp.zeros(n if v is None else len(store.targets), dtype)
        held[name][places] = xp.asarray(fitting)
        store.wrote(rows, places if v is not None else places[:0])

    def clear(self, vertices: Any) -> None:
        """Let vertices that come again be like new ones."""
        if held := self.vertices():
            rows = self._store.xp.asarray(vertices)
            for array in held.values():
                array[rows] = 0
            self._store.wrote(rows, rows[:0])

    def arrays(self, *, device: bool = False) -> list[Any]:
        """Return all attributes, those of edges first, in the order in which they were named.

        Parameters
        ----------
        device : bool
            Whether from the replica of `bal`, to which what changed is sent before; else they are
            where the graph is.

        Returns
        -------
        list of array
            Of edges by place, which operators call `arc`, of vertices by id. Valid until the next
            batch.
        """
        if device and hasattr(self._store, "push"):
            there, keys = self._store.push(), [("edges", name) for name in self._of_edges]
            keys += [("vertices", name) for name in self._of_vertices]
            return [there[key].ravel() for key in keys]
        self._store.walked()  # which sorts rows
        return [*self.edges().values(), *self.vertices().values()]

    @contextmanager
    def moving(self, rows: Any) -> Iterator[None]:
        """Let entries of some rows change their places; attributes of edges follow them."""
        if self._moving or not self.edges():
            yield
            return
        keys, places = self._store.placed(rows)
        xp, held = self._store.xp, self.edges().items()
        values = {name: xp.append(array[places], xp.zeros(1, array.dtype)) for name, array in held}
        self._moving = True
        try:
            yield
        finally:
            self._moving = False
        moved, places = self._store.placed(rows)
        at = self._found(keys, moved)
        for name, array in self.edges().items():
            array[places] = values[name][at]

    def _held(self, arrays: dict[str, Any], size: int) -> dict[str, Any]:
        """Return arrays with so many values, of which new ones are 0."""
        for name, array in arrays.items():
            if len(array) != size:
                arrays[name] = self._store.xp.zeros(size, array.dtype)
                arrays[name][: len(array)] = array[:size]
        return arrays

    def _found(self, keys: Any, asked: Any) -> Any:
        """Return where ascending keys are what is asked for; their number where they are not."""
        if len(keys) == 0:
            return self._store.xp.zeros(len(asked), np.int64)
        at = self._store.xp.minimum(self._store.xp.searchsorted(keys, asked), len(keys) - 1)
        return self._store.xp.where(keys[at] == asked, at, len(keys))
