"""Write label files: one community per vertex, as CSV, TSV, Parquet, NPZ or JSON."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike, NDArray

from louvain_um.errors import GraphError
from louvain_um.formats.file_types import path_text
from louvain_um.formats.labels.columns import columns
from louvain_um.formats.labels.given import listed
from louvain_um.formats.labels.table import write_table, writer_for
from louvain_um.results.communities import Communities
from louvain_um.results.comparison import Labels
from louvain_um.results.frame import named
from louvain_um.results.given_labels import Given

SCHEMA = "louvain-um/labels"
VERSION = 1


def write_labels(
    labels: Given | Labels,
    path: str | Path,
    *,
    names: ArrayLike | None = None,
    hierarchy: bool = False,
    more: Mapping[str, NDArray[Any]] | None = None,
    force: bool = False,
    safe_csv: bool = False,
) -> None:
    """Write one row per vertex: its name in the source, or its id, and its community.

    Vertices that were removed from a changing graph with names are left out. `read_labels` reads
    the file again.

    Parameters
    ----------
    labels : Communities, Labels, dict, list of sets, array, Series or table
        A result, or labels as `compare` takes them: integers or text, in vertex order or with
        their vertices.
    path : path
        Ends in ``.csv``, ``.tsv``, ``.parquet``, ``.npz`` or ``.json``. The columns (arrays,
        keys) are ``vertex`` and ``community``. A path as first argument and labels as second, the
        former order, are the same.
    names : array of length n, optional
        Names of the vertices, for labels in vertex order; 0 … n − 1 if left out.
    hierarchy : bool
        Add the nested partitions of a result: columns ``hierarchy_0``, the finest,
        ``hierarchy_1`` …, as in `Communities.to_frame`.
    more : mapping of str to array of length n, optional
        Further columns of numbers, by name.
    force : bool
        Replace the file if it exists.
    safe_csv : bool
        Write ``'`` before names in ``.csv`` and ``.tsv`` files that spreadsheets would run as
        formulas. It stays part of the name when the file is read.

    Raises
    ------
    GraphError
        A label or a name is missing, no integer or text, or a vertex is listed twice.
    LouvainUmError
        The suffix is unknown, the file exists, the folder does not, or the disk is full.
        No partial file is left.

    Examples
    --------
    >>> import louvain_um as lu, pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> lu.write_labels({"ann": 0, "bob": 0, "cid": 1}, folder / "labels.csv")
    >>> (folder / "labels.csv").read_text().split()
    ['vertex,community', 'ann,0', 'bob,0', 'cid,1']
    >>> lu.write_labels([0, 0, 1], folder / "again.json", names=["ann", "bob", "cid"])
    >>> lu.read_labels(folder / "again.json").vertices.tolist()
    ['ann', 'bob', 'cid']
    """
    given: Any = labels
    if isinstance(labels, str | Path):
        given, path = path, labels
    path = path_text(path)
    writer_for(path)
    found = listed(given, names)
    if hierarchy and not isinstance(found, Communities):
        raise GraphError("only a result has a hierarchy; pass one, or leave hierarchy out")
    named_by = found.vertices if isinstance(found, Labels) else found.names
    table = named(columns(found, hierarchy=hierarchy) | dict(more or {}), named_by)
    write_table(path, table, _about(found), force=force, safe_csv=safe_csv)


def _about(result: Communities | Labels) -> dict[str, Any]:
    """Return what a JSON file says of a result."""
    about = {"schema": SCHEMA, "schema_version": VERSION}
    if isinstance(result, Labels):
        return about
    return about | {
        "method": result.method,
        "modularity": result.modularity,
        "resolution": result.resolution,
        "communities": result.n_communities,
    }
