"""Graphs that ranks read by themselves: pieces first, then each edge goes to both ends' owners."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from louvain_um.core.headroom import check_host_memory
from louvain_um.core.numbering import distinct
from louvain_um.core.plain_data import EXACT
from louvain_um.distributed.communicator import Array, Communicator
from louvain_um.distributed.files.part_folder import (
    EdgePiece,
    Edges,
    files_of,
    from_columns,
    pieces_of,
    read_piece,
    share,
)
from louvain_um.distributed.partition import BINS, RowBlock, cut_by_arcs
from louvain_um.errors import GraphError, OptionError, check_choice
from louvain_um.formats.file_types import path_text
from louvain_um.formats.read_options import Column, ReadOptions
from louvain_um.graph.integer_weights import TOO_LARGE, fit, scaled
from louvain_um.graph.limits import MAX_TOTAL_WEIGHT, MAX_VERTICES, Duplicates
from louvain_um.options import is_whole

I64 = NDArray[np.int64]

DENSE: Final = 64
"""Ids up to this many times the edges, and `FREE_IDS` more, are numbered by a bitmap."""

FREE_IDS: Final = 1 << 27


@dataclass(frozen=True, eq=False, kw_only=True, slots=True)
class PartitionedGraph:
    """A list of edges that ranks will read; `read_partitioned` makes it.

    Parameters
    ----------
    pieces : tuple of Piece
        What ranks read.
    frame : Dask DataFrame, optional
        Instead of pieces.
    options : ReadOptions
    n_vertices : int, optional
        Vertices are 0 … n_vertices − 1; by default, the ids that occur.
    """

    pieces: tuple[EdgePiece, ...] = ()
    frame: Any = None
    options: ReadOptions = field(default_factory=ReadOptions)
    n_vertices: int | None = None

    def __repr__(self) -> str:
        if self.frame is not None:
            return "PartitionedGraph(a Dask DataFrame)"
        files = len({piece.path for piece in self.pieces})
        return f"PartitionedGraph({len(self.pieces):,} pieces of {files:,} files)"

    @property
    def notes(self) -> tuple[str, ...]:
        """Nothing is guessed before ranks read."""
        return ()

    def rows(self, ranks: Communicator, frames: list[Any] | None = None) -> RowBlock:
        """Return this rank's rows; every rank calls this.

        Parameters
        ----------
        ranks : Communicator
        frames : list of DataFrame, optional
            This rank's partitions of the frame.
        """
        if frames is None:
            local = share(self.pieces, ranks.rank, ranks.size) if self.pieces else []
            edges = [read_piece(piece, self.options) for piece in local]
        else:
            edges = [edges_of_frame(frame, self.options) for frame in frames]
        return rows_of_edges(
            ranks, edges, n_vertices=self.n_vertices, duplicates=self.options.duplicates
        )


def read_partitioned(
    data: Any,
    *,
    source: Column | None = None,
    target: Column | None = None,
    weight: Column | None = None,
    weighted: bool | None = None,
    duplicates: Duplicates | None = None,
    n_vertices: int | None = None,
) -> PartitionedGraph:
    r"""Name edges that the ranks of a cluster read, so that no process ever holds them all.

    Parameters
    ----------
    data : path, or Dask DataFrame
        Parquet files, whose row groups are dealt over ranks, or files of text, each read by one
        rank: a file, a folder, or a pattern such as ``edges/*.parquet``. Every worker must be able
        to read them; remote ones ("s3://…") through fsspec.
    source, target, weight : str or int, optional
        Columns, by name or number from 1.
    weighted : bool, optional
        Whether weights are read; by default, if there are any.
    duplicates : {"once", "sum"}, optional
        As in `read_graph`.
    n_vertices : int, optional
        Vertices are 0 … n_vertices − 1. By default they are the ids that occur, numbered in their
        order, as `read_graph` does.

    Returns
    -------
    PartitionedGraph
        For `louvain` and `leiden` with `cluster=`.

    Raises
    ------
    GraphFormatError
        No such file, or not one of edges.

    Examples
    --------
    >>> import os, tempfile
    >>> import louvain_um as lu
    >>> folder = tempfile.mkdtemp()
    >>> for part in range(3):
    ...     with open(os.path.join(folder, f"{part}.csv"), "w") as file:
    ...         _ = file.write(f"{part},{part + 1}\n")
    >>> len(lu.read_partitioned(folder).pieces)
    3
    """
    options = ReadOptions(
        source=source, target=target, weight=weight, weighted=weighted, duplicates=duplicates
    )
    if duplicates is not None:
        check_choice("duplicates", duplicates, ("once", "sum"))
    if n_vertices is not None and not (is_whole(n_vertices) and 0 <= n_vertices <= MAX_VERTICES):
        remedy = f"must be a whole number in 0 … {MAX_VERTICES:,}"
        raise OptionError("n_vertices", n_vertices, remedy)
    if hasattr(data, "to_delayed"):
        return PartitionedGraph(frame=data, options=options, n_vertices=n_vertices)
    pieces = list[EdgePiece]()
    files = files_of(path_text(data))
    for file in files:
        found, announced = pieces_of(file if "://" in file else os.path.abspath(file))
        pieces += found
        if len(files) == 1 and n_vertices is None:
            n_vertices = announced
    return PartitionedGraph(pieces=tuple(pieces), options=options, n_vertices=n_vertices)


def edges_of_frame(frame: Any, options: ReadOptions) -> Edges:
    """Return the edges of a partition, a pandas DataFrame."""
    return from_columns(list(frame.columns), lambda name: frame[name].to_numpy(), options)


def rows_of_edges(
    ranks: Communicator,
    edges: list[Edges],
    *,
    n_vertices: int | None,
    duplicates: Duplicates | None,
) -> RowBlock:
    """Return this rank's rows of the graph of all ranks' edges."""
    u, v = (_joined([part[k] for part in edges], np.int64) for k in (0, 1))
    listed = [part[2] for part in edges]
    kinds = _kinds(ranks, listed, len(u))
    weights: I64 | None = None
    scale = 1.0
    notes: tuple[str, ...] = ()
    if "w" in kinds:
        given = _joined(listed, np.float64 if "f" in kinds else np.int64)
        weights, scale, notes = quantise(ranks, given, real="f" in kinds)
    summing = duplicates == "sum" or (duplicates is None and weights is not None)
    if summing and weights is None:
        weights = np.ones(len(u), np.int64)
    n, names = number(ranks, u, v, n_vertices)
    bounds = np.arange(BINS + 1) * n // BINS
    per_bin = np.zeros(BINS, np.int64)
    for end in (u, v):
        per_bin += np.bincount(np.searchsorted(bounds, end, "right") - 1, minlength=BINS)[:BINS]
    cuts = bounds[cut_by_arcs(np.append(0, np.cumsum(ranks.sum_exact(per_bin))), ranks.size)]
    row, target, load = to_owners(ranks, u, v, weights, cuts)
    first, last = int(cuts[ranks.rank]), int(cuts[ranks.rank + 1])
    rows = local_rows(ranks, first, last, n, row, target, load, summing=summing)
    return replace(rows, names=names, scale=scale, notes=notes)


def _joined(parts: list[Any], dtype: Any) -> Array:
    """Return the arrays of all parts as one, if its type holds their integers."""
    for part in map(np.asarray, parts):
        if not len(part) or part.dtype.kind not in "iu":
            continue
        if dtype == np.float64 and max(-int(part.min()), int(part.max())) > EXACT:
            raise GraphError(f"integer weights reach {float(part.max()):.3g}{TOO_LARGE}")
        if int(part.max()) >= 2**63:
            raise GraphError(f"{part.max()} is above 2^63 - 1; use smaller numbers, or text")
    return np.concatenate([np.zeros(0, dtype), *(np.asarray(part, dtype) for part in parts)])


def _kinds(ranks: Communicator, listed: list[Any], edges: int) -> str:
    """Return "", "w" (integer weights) or "wf" (real ones), the same on every rank."""
    weighted = [part is not None for part in listed]
    real = any(part is not None and part.dtype.kind == "f" for part in listed)
    flags = ranks.sum_exact([any(weighted), edges > 0 and not all(weighted), real]).tolist()
    if flags[0] and flags[1]:
        raise GraphError("some parts have weights and others do not; pass weighted=False")
    return ("w" if flags[0] else "") + ("f" if flags[2] else "")


def quantise(
    ranks: Communicator, weights: Array, *, real: bool
) -> tuple[I64, float, tuple[str, ...]]:
    """Turn all ranks' weights into integers, as `louvain_um.graph.integer_weights` does."""
    bad = ranks.sum_exact([np.count_nonzero(~(weights >= 0) | (weights == np.inf))])
    if bad[0]:
        raise GraphError("weights must be finite and not negative; correct them")
    if not real:
        sums = ranks.allgatherv(np.array([weights.sum(dtype=np.float64)]))
        total = float(np.concatenate(sums).sum())
        if 2 * total >= MAX_TOTAL_WEIGHT:
            raise GraphError(f"integer weights add up to {total:.3g}{TOO_LARGE}")
        return weights.astype(np.int64), 1.0, ()
    local_largest = np.array([weights.max(initial=0.0)])
    largest = float(np.concatenate(ranks.allgatherv(local_largest)).max())
    if largest == 0.0:
        return np.zeros(len(weights), np.int64), 1.0, ()
    integers = np.empty(len(weights), np.int64)

    def scan(shift: int, *, write: bool) -> tuple[int, int, int]:
        local = scaled(weights, shift, 1, integers if write else np.empty(0, np.int64))
        bits = np.concatenate(ranks.allgatherv(np.array([local[1]], np.int64)))
        total, underflows = ranks.sum_exact([local[0], local[2]]).tolist()
        return total, int(np.bitwise_or.reduce(bits)), underflows

    fitted = fit(largest, int(ranks.sum_exact([len(weights)])[0]), scan)
    integers >>= fitted.spare
    return integers, 2.0**fitted.shift, fitted.notes


def number(ranks: Communicator, u: I64, v: I64, n_vertices: int | None) -> tuple[int, I64 | None]:
    """Replace ids by vertices, in their order; return n, and the ids unless they are 0 … n − 1."""
    ends = np.array([int(max(u.max(initial=-1), v.max(initial=-1)))], np.int64)
    high = int(np.concatenate(ranks.allgatherv(ends)).max())
    listed = int(ranks.sum_exact([len(u)])[0])
    if n_vertices is not None:
        if high >= n_vertices:
            raise GraphError(f"vertex {high} needs n_vertices of at least {high + 1}")
        if n_vertices > MAX_VERTICES:
            raise GraphError(f"{n_vertices} vertices; at most {MAX_VERTICES} are supported")
        # Every rank has the degrees of all vertices.
        check_host_memory(8 * n_vertices, f"{n_vertices:,} vertices", "check their number")
        return n_vertices, None
    if high < DENSE * listed + FREE_IDS:
        seen = np.zeros(high + 1, np.bool_)
        seen[u] = seen[v] = True
        bits = ranks.or_bits(np.packbits(seen))
        names = np.flatnonzero(np.unpackbits(bits, count=high + 1)).astype(np.int64)
    else:
        local = distinct(np.concatenate((u, v)))
        names = distinct(np.concatenate(ranks.allgatherv(local)))
    if len(names) > MAX_VERTICES:
        raise GraphError(f"{len(names)} vertices; at most {MAX_VERTICES} are supported")
    for ids in (u, v):
        ids[:] = np.searchsorted(names, ids)
    return len(names), None if len(names) == high + 1 else names


def to_owners(
    ranks: Communicator, u: I64, v: I64, weights: I64 | None, cuts: I64
) -> tuple[I64, I64, I64 | None]:
    """Send each edge to the owners of both ends; return rows, targets and weights received."""
    edges = u != v
    row = np.concatenate((u, v[edges]))
    target = np.concatenate((v, u[edges]))
    owner = np.searchsorted(cuts, row, "right") - 1
    order = np.argsort(owner, kind="stable")
    at = np.searchsorted(owner[order], np.arange(1, ranks.size))

    def sent(values: I64) -> I64:
        return np.concatenate(ranks.alltoallv(np.split(values[order], at)))

    if weights is None:
        return sent(row), sent(target), None
    return sent(row), sent(target), sent(np.concatenate((weights, weights[edges])))


def local_rows(
    ranks: Communicator,
    first: int,
    last: int,
    n: int,
    row: I64,
    target: I64,
    weights: I64 | None,
    *,
    summing: bool,
) -> RowBlock:
    """Sort local arcs into rows; merge those listed more than once; keep loops separately."""
    key = (row - first).astype(np.uint64) << np.uint64(32) | target.astype(np.uint64)
    order = np.argsort(key, kind="stable")
    key = key[order]
    heads = np.flatnonzero(np.diff(key, prepend=~key[:1]))
    key = key[heads]
    merge = np.add if summing else np.maximum
    ones = np.ones(len(heads), np.int64)
    loads = (
        ones if weights is None else merge.reduceat(weights[order], heads) if len(heads) else ones
    )
    row, target = (key >> np.uint64(32)).astype(np.int64), key.astype(np.uint32)
    loop = row + first == target
    loops = np.zeros(last - first, np.int64)
    loops[row[loop]] = loads[loop]
    kept = ~loop & (loads > 0)
    offsets = np.zeros(last - first + 1, np.int64)
    np.cumsum(np.bincount(row[kept], minlength=last - first), out=offsets[1:])
    wide = ranks.sum_exact([int(loads[kept].max(initial=0)) >= 2**32])[0]
    return RowBlock(
        first=first,
        n_vertices=n,
        offsets=offsets,
        targets=target[kept],
        weights=None if weights is None else loads[kept].astype(np.int64 if wide else np.uint32),
        loops=loops,
    )


def blocks_to_read(graph: PartitionedGraph, ranks: int) -> list[list[int]]:
    """Return which partitions of a frame each rank takes."""
    count = graph.frame.npartitions
    ends = (np.arange(ranks + 1) * count // ranks).tolist()
    return [list(range(a, b)) for a, b in pairwise(ends)]


def refuse_without_cluster() -> None:
    """Raise that a partitioned graph needs ranks that read it."""
    problem = "a partitioned graph is read by the ranks of a cluster"
    raise OptionError("cluster", None, "pass cluster='local:2', say", problem=problem)
