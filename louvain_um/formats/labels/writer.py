"""Write label files: one community per vertex, as CSV, TSV, Parquet, NPZ or JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date, time
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from louvain_um.core.plain_data import is_missing, is_real, objects, plain_array
from louvain_um.errors import GraphError, check_switch, check_table
from louvain_um.formats.file_types import path_text
from louvain_um.formats.labels.table import write_table, writer_for
from louvain_um.formats.labels.text import columns, integers, typed
from louvain_um.results.communities import Communities
from louvain_um.results.comparison import Labels
from louvain_um.results.frame import named
from louvain_um.results.given_labels import (
    FORMS,
    OVERLAPPING,
    Given,
    indexed_communities,
    is_indexed,
    label_array,
    named_labels,
    plain_communities,
)
from louvain_um.results.partition import Partition

SCHEMA = "louvain-um/labels"
VERSION = 1

KINDS: Final = bool, int, float, str, date, time
"""Kinds of values that a further column may have; a boolean is no integer."""

UNITS: Final = dict.fromkeys(("Y", "M", "W", "D", "generic"), "D") | {
    "h": "s", "m": "s", "s": "s", "ms": "ms", "us": "us", "ns": "ns",
}  # fmt: skip
"""Units in which NumPy's times of each unit are written; Parquet has no others."""


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
        Further columns by name: numbers, text, booleans, dates or times. Files of text and JSON
        have ``true``, ``false`` and ISO 8601; missing values are empty, in JSON null.
    force : bool
        Replace the file if it exists.
    safe_csv : bool
        Write ``'`` before names in ``.csv`` and ``.tsv`` files that spreadsheets would run as
        formulas. It stays part of the name when the file is read.

    Raises
    ------
    GraphError
        A label or a name is missing, no integer or text, or a vertex is listed twice; a further
        column has another length, or values of another kind or of several.
    LouvainUmError
        The suffix is unknown, the file exists, the folder does not, the disk is full, or
        ``.npz`` cannot keep the values.
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
    check_switch("hierarchy", hierarchy)
    check_switch("safe_csv", safe_csv)
    if more is not None:
        check_table("more", more)
    path = path_text(path)
    writer_for(path)
    found = listed(given, names)
    if hierarchy and not isinstance(found, Communities):
        raise GraphError("only a result has a hierarchy; pass one, or leave hierarchy out")
    named_by = found.vertices if isinstance(found, Labels) else found.names
    known = columns(found, hierarchy=hierarchy)
    n = len(next(iter(known.values())))
    for title, values in (more or {}).items():
        name = str(title)
        if name in {"", "vertex", *known} or not name.isprintable() or {*name} & {*',"\\'}:
            raise GraphError(
                f"no column can be named {name!r}; choose a name of its own without commas, quotes "
                "and control characters"
            )
        known[name] = _further(values, f"column {name}", n)
    table = named(known, named_by)
    write_table(path, table, _about(found), force=force, safe_csv=safe_csv)


def _further(values: Any, what: str, n: int) -> NDArray[Any]:
    """Return numbers, booleans or times; text, and what has gaps, as objects."""
    column = plain_array(values, what)
    if column.shape != (n,):
        raise GraphError(f"{what} must have one value for each vertex")
    kind = column.dtype.kind
    if kind == "M" and (unit := np.datetime_data(column.dtype)[0]) in UNITS:
        return column.astype(f"datetime64[{UNITS[unit]}]")
    if kind in "iub" or (kind == "f" and isinstance(values, np.ndarray)):
        return column
    given = column.tolist() if kind in "UO" else column
    if kind == "f":  # NumPy makes floats of nullable integers with gaps
        calls = (getattr(values, name, None) for name in ("tolist", "to_pylist"))
        given = next((call() for call in calls if call is not None), values)
    listed = [None if is_missing(value) else value for value in given]
    listed = [value.item() if isinstance(value, np.generic) and is_real(value) else value
              for value in listed]  # fmt: skip
    there = [value for value in listed if value is not None]
    kinds = {next((kind for kind in KINDS if isinstance(value, kind)), None) for value in there}
    if kind == "f" and (not kinds or float in kinds):
        return column
    if float in kinds and kinds <= {int, float}:
        return np.array([np.nan if value is None else value for value in listed], np.float64)
    whole = integers(there) if kinds == {int} else None
    if len(kinds) > 1 or None in kinds or (kinds == {int} and whole is None):
        raise GraphError(
            f"{what} must have numbers of at most 64 bits, text, booleans, dates or times, all of "
            "one kind"
        )
    if kinds == {str}:
        try:
            "".join(there).encode()
        except UnicodeEncodeError:
            raise GraphError(f"{what} is not valid Unicode text (lone surrogates)") from None
    if kinds & {date, time}:
        return objects([None if value is None else value.isoformat() for value in listed])
    if len(there) == n and kinds == {bool}:
        return np.array(listed, np.bool_)
    return whole if whole is not None and len(there) == n else objects(listed)


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
        "options": result.provenance.get("options"),
    }


def listed(given: Given | Labels, names: ArrayLike | None = None) -> Communities | Labels:
    """Return vertices and their communities; a result stays a result."""
    if isinstance(given, Communities | Labels) and names is None:
        return given
    chosen = None if names is None else _names(names)
    keys, labels = _split(given, chosen)
    column = _column(labels)
    if keys is not None and chosen is not None:
        raise GraphError("these labels name their vertices; leave names out")
    if keys is None and chosen is not None and len(chosen) != len(column):
        raise GraphError(
            f"{len(chosen)} names for {len(column)} labels; pass one name for each label"
        )
    if isinstance(given, Communities):
        return replace(given, graph=None, vertex_names=chosen)
    vertices = chosen if keys is None else _names(keys)
    return Labels(np.arange(len(column)) if vertices is None else vertices, column)


def _split(given: Any, names: NDArray[Any] | None) -> tuple[Any, Any]:
    """Return vertices, or None for labels in vertex order, and labels."""
    given = plain_communities(given)
    if isinstance(given, Labels):
        return given.vertices, given.communities
    if isinstance(given, Partition):
        return given.names, given.labels
    if is_indexed(given):
        known = given.index.tolist() if names is None else names.tolist()
        given = indexed_communities(given, known)
    if isinstance(given, Mapping):
        return list(given), list(given.values())
    members = named_labels(given)
    if members is not None and len(set(members[0].tolist())) < len(members[0]):
        raise GraphError(OVERLAPPING)
    return (None, given) if members is None else members


def _names(values: Any) -> NDArray[Any]:
    """Return names as integers or objects, all different."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise GraphError("names must be integers or text, one for each vertex")
    listed = np.atleast_1d(values).tolist() if isinstance(values, np.ndarray) else list(values)
    if any(map(is_missing, listed)):
        at = next(at for at, value in enumerate(listed) if is_missing(value))
        raise GraphError(f"the name at index {at} is missing ({listed[at]}); name every vertex")
    try:
        once = len(set(listed)) == len(listed)
    except TypeError:
        raise GraphError("names must be integers or text, one for each vertex") from None
    if not once:
        raise GraphError("some vertices are listed twice; list each once")
    numbers = typed(listed)
    return objects(listed) if numbers.dtype.kind == "O" else numbers


def _column(values: Any) -> NDArray[Any]:
    """Return communities as integers or text."""
    column = label_array(values)
    if column.ndim != 1:
        raise GraphError(f"labels must be one-dimensional, not of shape {column.shape}; {FORMS}")
    if column.dtype.kind in "biu":
        return column
    # As they were: NumPy makes real numbers of integers beyond 63 bits.
    found: Sequence[Any] = values if isinstance(values, list) else column.tolist()
    for at, value in enumerate(found):
        if not isinstance(value, int | str | np.integer | float):
            raise GraphError(f"communities must be integers or strings; {FORMS}")
        if isinstance(value, float) and not value.is_integer():
            raise GraphError(f"the label at index {at} is {value}; label by integers or strings")
    # pandas makes integers real where one was missing once.
    return typed([int(value) if isinstance(value, float) else value for value in found])
