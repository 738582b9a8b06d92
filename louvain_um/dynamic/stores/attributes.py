"""Attributes of the edges and vertices of a store in blocks, as Marrow-Graph has them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from louvain_um.cpu.dynamic.linked import gather
from louvain_um.dynamic.stores.store import I64, U32, Growing, offsets_of
from louvain_um.errors import GraphError, OptionError

HIGH = np.uint64(32)


class Attributes:
    """Attributes of edges and vertices, which are numbers; those of edges lie beside their targets.

    What is new has 0. Bytes of attributes are in no budget, but `moved_bytes` counts those sent.

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

    def __init__(self, store: Any) -> None:
        self._store = store
        self.of_edges, self.of_vertices = dict[str, Growing[Any]](), dict[str, Growing[Any]]()
        self._numbers = np.zeros(0, np.int64)
        self._moving = False

    def edit(self, name: str, values: ArrayLike, u: ArrayLike, v: ArrayLike | None = None) -> None:
        """Write an attribute of vertices u, or of the edges between u and v.

        Parameters
        ----------
        name : str
            An attribute; its first values decide its type.
        values : number or array of number, of length b
        u, v : array of int, of length b
            Ids, not names. Both directions of an edge have the same value.

        Raises
        ------
        GraphError
            An id that is none, an edge that is not there, or values that are no numbers, or of
            another length. Nothing is written then.
        OptionError
            The name is in use: of vertices for edges, or of edges for vertices.
        """
        store, n = self._store, len(self._store._live.items)
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
        given = np.broadcast_to(given, ends[0].shape)
        held, others = self.of_vertices, self.of_edges
        one, other = (ends[side].astype(np.uint32) for side in (0, -1))
        places: NDArray[Any] = one
        if v is not None:
            held, others, given = others, held, np.tile(given, 2)
            keys, places = self._placed(np.unique(np.concatenate([one, other])))
            asked = [a.astype(np.uint64) << HIGH | b for a, b in ((one, other), (other, one))]
            at, there = _found(keys, np.concatenate(asked))
            if not there.all():
                raise GraphError("an edge is not in the graph; insert it, or leave it out")
            places = places[at]
        if name in others:
            raise OptionError("name", name, "must be another: edges and vertices have their own")
        size = n if v is None else len(store._targets)
        held.setdefault(name, Growing(np.zeros(size, given.dtype))).items[places] = given
        if v is None:
            store.changed.append(one)
        else:
            store.dirty[places // store.words] = 1

    def arrays(self, *, device: bool = False) -> list[Any]:
        """Return all attributes, those of edges first, in the order in which they were named.

        Parameters
        ----------
        device : bool
            Whether from the replica, to which what changed is sent before.

        Returns
        -------
        list of array
            Of edges by place, which operators call `arc`, of vertices by id. Valid until the next
            batch.
        """
        if device:
            there = self._store.push()
            keys = (
                *(("edges", name) for name in self.of_edges),
                *(("vertices", name) for name in self.of_vertices),
            )
            return [there[key].ravel() for key in keys]
        self._store.walked()  # which sorts rows
        return [each.items for each in (*self.of_edges.values(), *self.of_vertices.values())]

    def hold(self) -> None:
        """Have a place for each of the pool's."""
        for array in self.of_edges.values():
            more = len(self._store._targets) - len(array.items)
            array.extend(more, 0) if more > 0 else array.drop(-more)

    @contextmanager
    def moving(self, rows: U32) -> Iterator[None]:
        """Let entries of some rows change their places within a block; attributes follow them."""
        if self._moving or not self.of_edges:
            yield
            return
        keys, places = self._placed(rows)
        values = {name: array.items[places] for name, array in self.of_edges.items()}
        self._moving = True
        try:
            yield
        finally:
            self._moving = False
        moved, places = self._placed(rows)
        at, there = _found(keys, moved)
        for name, array in self.of_edges.items():
            array.items[places] = 0
            array.items[places[there]] = values[name][at[there]]

    def _placed(self, rows: U32) -> tuple[Any, I64]:
        """Return the arcs of some rows as ascending keys, and their places."""
        begins, lengths, targets, _, *shape = self._store._entries
        if len(self._numbers) != len(targets):
            self._numbers = np.arange(len(targets))
        counts = lengths[rows].astype(np.int64)
        offsets = offsets_of(counts)
        found, places = np.empty(offsets[-1], np.uint32), np.empty(offsets[-1], np.int64)
        gather((begins, lengths, targets, self._numbers, *shape), rows, offsets, found, places)
        keys = np.repeat(rows, counts).astype(np.uint64) << HIGH | found
        order = np.argsort(keys)
        return keys[order], places[order]


def _found(keys: Any, asked: Any) -> tuple[I64, NDArray[np.bool_]]:
    """Return where ascending keys are what is asked for, and whether they are."""
    if not len(keys):
        return np.zeros(len(asked), np.int64), np.zeros(len(asked), np.bool_)
    at = np.minimum(np.searchsorted(keys, asked), len(keys) - 1)
    return at, keys[at] == asked
