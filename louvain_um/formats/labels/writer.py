"""Write label files: one community per vertex, as CSV, TSV, Parquet, NPZ or JSON."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from louvain_um.errors import LouvainUmError
from louvain_um.formats.labels.columns import columns
from louvain_um.formats.labels.table import check_table_path, write_table
from louvain_um.formats.labels.text import spreadsheet_safe
from louvain_um.results.communities import Communities
from louvain_um.results.comparison import Labels
from louvain_um.results.frame import named

SCHEMA = "louvain-um/labels"
VERSION = 1


def write_labels(
    path: str | Path,
    communities: Communities | Labels,
    *,
    hierarchy: bool = False,
    more: Mapping[str, NDArray[Any]] | None = None,
    force: bool = False,
    safe_csv: bool = False,
) -> None:
    """Write one row per vertex: its name in the source, or its id, and its community.

    Vertices that were removed from a changing graph with names are left out.

    Parameters
    ----------
    path : path
        Ends in ``.csv``, ``.tsv``, ``.parquet``, ``.npz`` or ``.json``. The columns (arrays,
        keys) are ``vertex`` and ``community``.
    communities : Communities or Labels
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
    LouvainUmError
        The suffix is unknown, the file exists, the folder does not, or the disk is full.
        No partial file is left.

    Examples
    --------
    >>> import louvain_um as lu, pathlib, tempfile
    >>> from louvain_um.results.communities import Communities
    >>> from louvain_um.formats.labels import write_labels
    >>> result = Communities.of(lu.Graph.from_edges([0], [1], n_vertices=3), [0, 0, 1])
    >>> out = pathlib.Path(tempfile.mkdtemp(), "labels.csv")
    >>> write_labels(out, result)
    >>> out.read_text().split()
    ['vertex,community', '0,0', '1,0', '2,1']
    """
    names = communities.vertices if isinstance(communities, Labels) else communities.names
    found = named(columns(communities, hierarchy=hierarchy) | dict(more or {}), names)
    if safe_csv:
        _check_text(path)
        found = {name: spreadsheet_safe(column) for name, column in found.items()}
    write_table(path, found, _about(communities), force=force)


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


def check_labels_path(path: str | Path, *, force: bool = False, safe_csv: bool = False) -> None:
    """Raise the errors of `write_labels` about the path, before any work is done."""
    if safe_csv:
        _check_text(path)
    check_table_path(path, force=force)


def _check_text(path: str | Path) -> None:
    if Path(path).suffix.lower() not in (".csv", ".tsv"):
        raise LouvainUmError(f"{path}: --safe-csv is for .csv and .tsv files; leave it out")
