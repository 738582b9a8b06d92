"""Tables of edges: pandas, Arrow and Polars frames, and Parquet files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from louvain_um.core.plain_data import is_missing
from louvain_um.errors import Doubt, GraphError
from louvain_um.formats.column_roles import (
    ENDS,
    LABELS_NOT_EDGES,
    TIMES,
    VERTEX_NAMES,
    are_labels,
    choose,
    find_ends,
    is_id,
)
from louvain_um.formats.edge_list.number_vertices import number_vertices
from louvain_um.formats.notes import OTHERS, notes_on_ends, unread_numbers
from louvain_um.formats.read_options import ReadOptions
from louvain_um.formats.two_modes import note_on_modes, split_modes
from louvain_um.graph.graph import Graph

IDS_ARE = "numbers or text"

ARROW_EDGES = 1 << 15
"""Edges from which Arrow numbers names sooner than a dict, importing it included."""


def refuse_cross_table(frame: Any, options: ReadOptions) -> None:
    """Raise if a pandas frame has a title over all of its columns, as `crosstab` and `pivot` do."""
    title = getattr(frame.columns, "name", None)
    titles = [str(name) for name in frame.columns]
    if title is None or not titles or options.names_columns or find_ends(titles):
        return
    rows, other, table = frame.index.name, title, "table"
    cells = frame.dtypes.tolist()
    if rows is None:
        rows, cells = frame.columns[0], cells[1:]
        table = f"table.set_index({rows!r})"
    if not all(dtype.kind in "biuf" for dtype in cells):  # names, or what is no number
        return
    if rows == title:
        other = f"other_{title}"
        table += f".T.rename_axis({other!r}).T"
    raise GraphError(
        f"a cross table of {rows!r} and {title!r} is not a list of edges; pass {table}.stack()"
        f".rename('weight').reset_index() with source={rows!r}, target={other!r}"
    )


def from_columns(
    columns: Sequence[Any],
    column: Callable[[Any], NDArray[Any]],
    numeric: Callable[[Any], bool],
    options: ReadOptions,
    n_vertices: int | None = None,
) -> Graph:
    """Build a graph from a table."""
    titles = [str(name) for name in columns]
    if not options.names_columns and are_labels([title.lower() for title in titles]):
        raise GraphError(LABELS_NOT_EDGES + "name the columns source and target")
    if len(columns) < 2:
        raise GraphError(
            f"an edge table needs two columns, such as source and target; got {[*columns]}"
        )
    roles = choose(columns, len(columns), options)
    ends = roles.source, roles.target
    others = [i for i in range(len(columns)) if i not in (*ends, roles.time)]
    weight = roles.weight
    if options.weighted and weight is None:
        if not others:
            raise GraphError("has no third column with weights; drop weighted=True (--weighted)")
        weight = others[0]
    pair = titles[ends[0]], titles[ends[1]]
    known = {title.lower() for title in pair} <= ENDS
    notes = notes_on_ends(roles, titles, moved=set(ends) != {0, 1} and not known)
    if not notes and not options.names_columns and not options.bipartite:
        notes += _note_on_attributes(columns, ends, numeric)
    unread = [
        title
        for i, title in enumerate(titles)
        if i in others
        and i != weight
        and title.lower() not in TIMES
        and not is_id(title)
        and numeric(columns[i])
    ]
    if unread and options.weighted is not False:
        doubtful = weight is None and not options.names_columns
        notes.append(unread_numbers(unread, doubtful=doubtful))
    w = None if weight is None else column(columns[weight])
    u, v = (column(columns[i]) for i in ends)
    graph = from_ids(u, v, w, options, n_vertices, pair)
    return replace(graph, notes=(*notes, *graph.notes)) if notes else graph


def _note_on_attributes(
    columns: Sequence[Any], ends: tuple[int, int], numeric: Callable[[Any], bool]
) -> list[str]:
    """Return a note if ends that no name tells may be a vertex and a number that it has."""
    first, second = (columns[place] for place in ends)
    if not isinstance(second, str) or find_ends([str(first), second]) or is_id(second):
        return []
    if not numeric(second) or (numeric(first) and str(first).lower() not in VERTEX_NAMES):
        return []
    return [
        Doubt(
            f"each number of column {second!r} is read as a vertex, with an edge to that of "
            f"{first!r}; if it is none, pass a table of edges, or {OTHERS}"
        )
    ]


def from_ids(
    u: NDArray[Any],
    v: NDArray[Any],
    w: NDArray[Any] | None,
    options: ReadOptions,
    n_vertices: int | None = None,
    titles: tuple[str, str] = ("", ""),
) -> Graph:
    """Build a graph from any ids; vertices are those that occur."""
    if len(u) != len(v):
        raise GraphError(
            f"source has {len(u)} entries and target {len(v)}; pass both ends of each edge"
        )
    names: NDArray[Any] | None = None
    notes: tuple[str, ...] = ()
    if w is not None and w.dtype.kind in "OUT":
        w = _numbers(w)
    for ids in (u, v):
        if ids.ndim != 1:
            raise GraphError(f"ids are {IDS_ARE}, not arrays of shape {ids.shape[1:]}")
    integers = u.dtype.kind in "iu" and v.dtype.kind in "iu"
    if integers:
        for ids, what in ((u, "source"), (v, "target")):
            if len(ids) and int(ids.min()) < 0:
                first = int(np.argmax(ids < 0))
                raise GraphError(f"{what} at index {first} is negative ({ids[first]}); correct it")
        u, v = own_ids(u), own_ids(v)
    else:
        u, v, names = factorize(u, v)
    if (options.bipartite or not integers) and (unsuited := options.unsuited_to_names()):
        raise GraphError(unsuited)
    if options.bipartite:
        u, v, n, names = split_modes(u, v, names, titles)
    elif integers:
        base = None if options.one_based is None else int(options.one_based)
        u, v, n, names = number_vertices(u, v, announced=n_vertices, base=base)
    else:
        assert names is not None
        n = len(names)
    if not options.bipartite:
        notes = note_on_modes(u, v, n, titles)
    graph = Graph.from_edges(
        u,
        v,
        w,
        n_vertices=n,
        duplicates=options.duplicates,
        names=names,
        allow_rounding=options.allow_rounding,
        kind=options.kind,
    )
    return replace(graph, notes=(*notes, *graph.notes)) if notes else graph


def factorize(
    u: NDArray[Any], v: NDArray[Any]
) -> tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[Any]]:
    """Return ids as positions in an array of names, sorted if the names can be compared."""
    for ids in (u, v):
        if len(ids) and ids.dtype.kind == "f":
            _refuse_reals(ids)
    if {u.dtype.kind, v.dtype.kind} > {"b"}:
        raise GraphError(
            "ids of one column are truth values, and True would be the vertex 1; convert them to "
            "text or integers"
        )
    numbered = _number_with_arrow(u, v) if len(u) >= ARROW_EDGES else None
    codes, words = numbered or _number_with_dict(u, v)
    try:
        order = sorted(range(len(words)), key=words.__getitem__)
    except TypeError:
        order = list(range(len(words)))
    ranks = np.empty(len(words), np.uint32)
    ranks[order] = np.arange(len(words), dtype=np.uint32)
    names = name_array([words[place] for place in order])
    return ranks[codes[: len(u)]], ranks[codes[len(u) :]], names


def _refuse_reals(ids: NDArray[Any]) -> NoReturn:
    """Raise for real numbers in place of ids: in pandas, integers of which some are missing."""
    if (missing := np.isnan(ids)).any():
        raise GraphError(
            f"the id in row {int(np.argmax(missing))} is missing, of {np.count_nonzero(missing):,} "
            "in all; drop these rows, then convert the column with astype('int64')"
        )
    raise GraphError(
        f"ids are real numbers, such as {ids[0]}; convert the column with astype('int64'), or to "
        "text"
    )


def _number_with_dict(u: NDArray[Any], v: NDArray[Any]) -> tuple[NDArray[Any], list[Any]]:
    """Return the numbers of all ids, those of `u` first, and the names by number."""
    numbers: dict[Any, int] = {}
    codes = np.empty(len(u) + len(v), np.uint32)
    for first, ids in ((0, u), (len(u), v)):
        values = ids.tolist()
        try:
            for place, name in enumerate(values):
                if name is None or name != name:
                    raise GraphError(f"the id in row {place} is missing; drop the row")
            codes[first : first + len(ids)] = [numbers.setdefault(x, len(numbers)) for x in values]
        except (TypeError, ValueError, ArithmeticError):
            _refuse_objects(values)
            raise
    return codes, list(numbers)


def _refuse_objects(ids: list[Any]) -> None:
    """Raise for the first id that is missing or cannot be one."""
    for place, name in enumerate(ids):
        if is_missing(name):
            raise GraphError(f"the id in row {place} is missing; drop the row")
        try:
            hash(name)
        except TypeError:
            kind = type(name).__name__
            raise GraphError(
                f"the id in row {place} is of type {kind}; ids are {IDS_ARE}"
            ) from None


def _number_with_arrow(u: NDArray[Any], v: NDArray[Any]) -> tuple[NDArray[Any], list[Any]] | None:
    """Do the same with Arrow's dictionary encoding; None without pyarrow or if ids are not text."""
    try:
        import pyarrow as pa
    except ImportError:
        return None
    try:
        # As objects: Arrow would cut a fixed-width string at a NUL character.
        columns = [pa.array(ids.astype(object, copy=False)) for ids in (u, v)]
        if any(column.type != pa.string() or column.null_count for column in columns):
            return None
        encoded = pa.concat_arrays(columns).dictionary_encode()
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        # Ids of several types, integers of more than 64 bits, or more than 2 GiB of text.
        return None
    return encoded.indices.to_numpy(), encoded.dictionary.to_pylist()


def name_array(names: Sequence[Any]) -> NDArray[Any]:
    """Return names as an array of integers or of strings if all are, else of objects."""
    if all(type(name) is int for name in names):
        try:
            return np.array(names, np.int64)
        except OverflowError:
            pass
    elif all(isinstance(name, str) for name in names) and max(map(len, names)) <= 64:
        return np.array(names, np.str_)
    array = np.empty(len(names), object)
    array[:] = names
    return array


def own_ids(ids: NDArray[Any]) -> NDArray[Any]:
    """Return a copy of whole numbers that may be changed, in 32 bits if the ids fit."""
    if len(ids) == 0 or int(ids.max()) < 2**32 - 1:
        return ids.astype(np.uint32)
    if int(ids.max()) >= 2**63:
        raise GraphError(f"id {ids.max()} exceeds 2^63 - 1; pass smaller ids, or names as strings")
    return ids.astype(np.int64)


def _numbers(values: NDArray[Any]) -> NDArray[Any]:
    """Return weights held as objects as an array of integers or floats; decimals become floats."""
    listed = values.tolist()
    for row, weight in enumerate(listed):
        if is_missing(weight):
            raise GraphError(f"the weight in row {row} is missing; fill it, or drop the row")
        if isinstance(weight, str):
            raise GraphError(
                f"the weight in row {row} is text ({weight!r}); convert the column to numbers, as "
                "pandas.to_numeric does"
            )
    listed = [float(w) if isinstance(w, Decimal | Fraction) else w for w in listed]
    try:
        numbers = np.array(listed)
    except ValueError:
        numbers = values
    if numbers.dtype.kind not in "biuf":
        kinds = ", ".join(sorted({type(weight).__name__ for weight in listed}))
        raise GraphError(f"weights must be numbers, not {kinds}; convert the column")
    return numbers
