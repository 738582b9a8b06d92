"""Communities as a folder of Parquet files, each of a range of vertices."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from louvain_um.distributed.communicator import Communicator
from louvain_um.distributed.files.part_folder import MOST_PARTS, PartFolder
from louvain_um.distributed.partition import RowBlock
from louvain_um.errors import OptionError
from louvain_um.options import ObjectiveName
from louvain_um.results.communities import Communities
from louvain_um.results.partition import Level

PART_VERTICES: Final = 1 << 24
"""Vertices of a file: 200 MB before compression."""


@dataclass(frozen=True, eq=False, kw_only=True)
class PartitionedLabels:
    """Communities whose labels are in files, each written by the rank that holds the vertices.

    `louvain_um.detect_partitioned` returns it.

    Parameters
    ----------
    files : list of str
        Parquet files with the columns vertex and community, in the order of their vertices.
    n_vertices : int
    sizes : int64[k]
        Members of each community, descending.
    levels, modularity, method, resolution, timings, memory, provenance
        As of `Communities`.
    """

    files: list[str]
    n_vertices: int
    sizes: NDArray[np.int64]
    levels: tuple[Level, ...]
    modularity: float
    method: str
    resolution: float
    timings: dict[str, float] = field(default_factory=dict)
    memory: dict[str, int] = field(default_factory=dict)
    provenance: dict[str, Any] = field(default_factory=dict)
    graph: ClassVar[None] = None
    objective: ClassVar[ObjectiveName] = "modularity"

    @classmethod
    def of(cls, result: Communities) -> PartitionedLabels:
        """Return what is left of a rank's result without its labels."""
        provenance = dict(result.provenance)
        return cls(
            files=provenance.pop("files"),
            n_vertices=result.n_vertices,
            sizes=result.sizes,
            levels=result.levels,
            modularity=result.modularity,
            method=result.method,
            resolution=result.resolution,
            timings=dict(result.timings),
            memory=dict(result.memory),
            provenance=provenance,
        )

    @property
    def value(self) -> float:
        """The objective's value."""
        return self.modularity

    @property
    def n_communities(self) -> int:
        """Number of communities."""
        return len(self.sizes)


class RankParts:
    """The files of all ranks; each writes those of its own vertices."""

    def __init__(self, ranks: Communicator, folder: str | os.PathLike[str], *, force: bool) -> None:
        self.ranks = ranks
        self.folder = PartFolder(folder)
        try:
            if ranks.rank == 0:
                self.folder.claim(force=force)
            mine = np.frombuffer(self.folder.run.encode(), np.uint8)
            self.folder.run = np.concatenate(ranks.allgatherv(mine)).tobytes().decode()
        except BaseException:
            self.close()
            raise

    def write(self, result: Communities, block: RowBlock) -> list[str]:
        """Write local vertices' communities; return all ranks' files, once all are whole."""
        cuts = cuts_of(block.first, block.last, -(-(block.last - block.first) // PART_VERTICES))
        counts = np.concatenate(self.ranks.allgatherv(np.array([len(cuts) - 1], np.int64)))
        first = int(counts[: self.ranks.rank].sum())
        local = range(first, first + len(cuts) - 1)
        try:
            for part, (low, high) in zip(local, pairwise(cuts), strict=True):
                names = block.local_names
                if names is not None:
                    names = names[low - block.first : high - block.first]
                self.folder.write(part, columns_of(result, low, high, names))
            self._meet()
        except BaseException:
            for part in local:
                self.folder.drop(part)
            raise
        parts = range(int(counts.sum()))
        if self.ranks.rank == 0:  # alone, so that no other rank's death leaves a part of them
            self.folder.publish(len(parts))
        self._meet()
        return [self.folder.name(part) for part in parts]

    def close(self) -> None:
        """Let other runs write to the folder."""
        self.folder.close()

    def _meet(self) -> None:
        """Wait for all ranks; raises where one of them failed."""
        self.ranks.allgatherv(np.zeros(0, np.uint8))


def write_labels_partitioned(
    result: Communities, folder: str | os.PathLike[str], *, parts: int | None = None,
    force: bool = False,
) -> list[str]:  # fmt: skip
    """Write vertex and community to Parquet files, which readers of folders take as one table.

    Parameters
    ----------
    result : Communities
    folder : path
        Created if needed; remote ones ("s3://…") through fsspec.
    parts : int, optional
        Number of files, each of consecutive vertices; by default one for 2²⁴ vertices.
    force : bool
        Whether files may replace others of the same names.

    Returns
    -------
    list of str
        The files, in the order of their vertices.

    Raises
    ------
    OptionError
        Not a number of parts.
    LouvainUmError
        The folder has files, and `force` is off, another run writes to it, or it cannot be
        written to.

    Examples
    --------
    >>> import tempfile
    >>> import louvain_um as lu
    >>> from louvain_um.distributed.files.writing import write_labels_partitioned
    >>> result = lu.louvain(lu.Graph.from_edges([0, 1, 2], [1, 2, 0]), device="cpu")
    >>> len(write_labels_partitioned(result, tempfile.mkdtemp(), parts=2))
    2
    """
    n = result.n_vertices
    parts = max(1, -(-n // PART_VERTICES)) if parts is None else parts
    if not 1 <= parts <= MOST_PARTS:
        raise OptionError("parts", parts, "must lie in 1 … 65,536")
    target = PartFolder(folder)
    try:
        target.claim(force=force)
        try:
            for part, (low, high) in enumerate(pairwise(cuts_of(0, n, parts))):
                target.write(part, columns_of(result, low, high))
        except BaseException:
            for part in range(parts):
                target.drop(part)
            raise
        target.publish(parts)
    finally:
        target.close()
    return [target.name(part) for part in range(parts)]


def cuts_of(first: int, last: int, parts: int) -> Sequence[int]:
    """Return where each of some even parts of a range begins, and its end; one part at least."""
    parts = max(parts, 1)
    return [first + part * (last - first) // parts for part in range(parts + 1)]


def columns_of(
    result: Communities, first: int, last: int, names: NDArray[Any] | None = None
) -> dict[str, Any]:
    """Return the columns of a range of vertices, with their names; without, the result's."""
    if names is None:
        names = np.arange(first, last) if result.names is None else result.names[first:last]
    if names.dtype.kind == "O":  # a column has one type
        names = np.array([str(name) for name in names], object)
    return {"vertex": names, "community": result.labels[first:last]}
