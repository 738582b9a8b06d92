"""Communities as a folder of Parquet files, local or remote, each of a range of vertices."""

from __future__ import annotations

import os
import posixpath
from typing import Any

import numpy as np

from louvain_um.errors import LouvainUmError, OptionError
from louvain_um.formats.optional_dependencies import require
from louvain_um.results.communities import Communities

PART_VERTICES = 1 << 24
"""Vertices of a file: 200 MB before compression."""


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
        The folder has files, and `force` is off, or it cannot be written to.

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
    if not 1 <= parts <= 1 << 16:
        raise OptionError("parts", parts, "must lie in 1 … 65,536")
    path = os.fspath(folder)
    arrow, parquet = require("pyarrow", path), require("pyarrow.parquet", path)
    system, root = require("fsspec.core", path).url_to_fs(path)
    try:
        system.makedirs(root, exist_ok=True)
        if not force and system.ls(root):
            raise LouvainUmError(f"{path} has files already; choose another folder, or pass force")
        written = []
        for part in range(parts):
            first, last = part * n // parts, (part + 1) * n // parts
            table = arrow.table(columns_of(result, first, last))
            name = posixpath.join(root, f"part-{part:05}.parquet")
            # Under another name until it is whole.
            with system.open(f"{name}.part", "wb") as file:
                parquet.write_table(table, file)
            system.mv(f"{name}.part", name)
            written.append(system.unstrip_protocol(name) if "://" in path else name)
        # A folder is read as one table: nothing of an earlier result may stay.
        kept = {posixpath.basename(name) for name in written}
        for old in system.glob(posixpath.join(root, "part-*.parquet")):
            if posixpath.basename(old) not in kept:
                system.rm_file(old)
    except OSError as error:
        raise LouvainUmError(f"{path} cannot be written to ({error}); check the folder") from None
    return written


def columns_of(result: Communities, first: int, last: int) -> dict[str, Any]:
    """Return the columns of a range of vertices."""
    names = result.names
    vertices = np.arange(first, last) if names is None else names[first:last]
    return {"vertex": vertices, "community": result.labels[first:last]}
