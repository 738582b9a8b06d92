"""Tables of edges: pandas, Arrow and Polars frames, and Parquet files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from louvain_um.core.plain_data import is_missing, number_array
from louvain_um.errors import GraphError, Uncertain, shown
from louvain_um.formats.build import make_graph
from louvain_um.formats.column_roles import (
    ENDS,
    LABELS_NOT_EDGES,
    VERTEX_NAMES,
    are_labels,
    are_times,
    choose,
    choose_weight,
    find_ends,
    is_id,
    title_of,
)
from louvain_um.formats.edge_list.number_vertices import number_vertices, refuse_ids
from louvain_um.formats.edge_list.reader import AS_WEIGHT, OTHERS, notes_on_ends
from louvain_um.formats.edge_list.scan import DIRECTED_EDGE
from louvain_um.formats.ids import ascending
from louvain_um.formats.matrices import from_labelled
from louvain_um.formats.read_options import ReadOptions
from louvain_um.formats.two_modes import Numbered, is_incidence, modes_of, split_modes
from louvain_um.graph.graph import Graph
from louvain_um.graph.ids import narrowed

IDS_ARE = "numbers or text"

SAMPLE_ROWS = 1000
"""Rows of a table in which its ends are looked for."""

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
    if not all(dtype.kind in "biuf" for dtype in cells):  # names, or other values
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
    values: Callable[[Any], NDArray[Any]],
    numeric: Callable[[Any], bool],
    options: ReadOptions,
    n_vertices: int | None = None,
    *,
    owned: bool = False,
) -> Graph:
    """Build a graph from a table, whose columns may be changed if `owned`."""
    titles = [title_of(name) for name in columns]
    times = Counter(columns)

    def column(name: Any) -> NDArray[Any]:
        if times[name] > 1:
            raise GraphError(f"two columns are named {name!r}; rename one")
        return values(name)

    if not options.names_columns and are_labels([title.lower() for title in titles]):
        raise GraphError(LABELS_NOT_EDGES + "name the columns source and target")
    if len(columns) < 2:
        raise GraphError(
            f"an edge table needs two columns, such as source and target; got {[*columns]}"
        )
    if not options.names_columns and (graph := _of_matrix(columns, column, numeric, options)):
        return graph
    roles = choose(columns, len(columns), options, _sample_of(columns, column))
    ends = roles.source, roles.target
    others = [i for i in range(len(columns)) if i not in (*ends, roles.time)]
    weight = roles.weight
    pair = titles[ends[0]], titles[ends[1]]
    known = {title.lower() for title in pair} <= ENDS
    notes = notes_on_ends(roles, titles, moved=set(ends) != {0, 1} and not known)
    if not notes and not options.names_columns and not options.bipartite:
        notes += _note_on_attributes(columns, ends, numeric)
    for place in others:
        if not numeric(columns[place]):
            notes += note_on_types(columns[place], column, options)
    numbers = [i for i in others if numeric(columns[i]) and i != roles.relation]
    if weight is None and len(numbers) == 1 and not options.weighted:
        place = numbers[0]
        cells = column(columns[place])
        whole = cells.dtype.kind in "iu" and len(cells) > 1
        if what := are_times(int(cells.min()), int(cells.max())) if whole else "":
            looks = f"column {titles[place]!r} looks like {what}"
            notes.append(Uncertain(f"{looks} and is not read; {AS_WEIGHT}"))
            numbers = []
    if options.weight is None:
        title, remarks = choose_weight(
            [titles[i] for i in numbers], [titles[i] for i in others], options
        )
        weight = None if title is None else next(i for i in others if titles[i] == title)
        notes += remarks
    w = None if weight is None else column(columns[weight])
    u, v = (column(columns[i]) for i in ends)
    return from_ids(u, v, w, options, n_vertices, Sides(pair), notes, owned=owned)


def note_on_types(
    name: Any, column: Callable[[Any], NDArray[Any]], options: ReadOptions
) -> list[str]:
    """Raise a GraphError if a column ``Type`` says that an edge is directed; note what it lacks."""
    if options.symmetrize or options.directed or title_of(name).lower() != "type":
        return []
    try:
        types = column(name).tolist()
    except GraphError as error:
        return [Uncertain(f"which edges are directed is not read: {error}")]
    for row, value in enumerate(types):
        if isinstance(value, str) and value.lower() == "directed":
            raise GraphError(f"row {row}: {DIRECTED_EDGE}")
    return []


def _of_matrix(
    columns: Sequence[Any],
    column: Callable[[Any], NDArray[Any]],
    numeric: Callable[[Any], bool],
    options: ReadOptions,
) -> Graph | None:
    """Return the graph of a table whose rows and columns have the same labels, None for others."""
    words = [name for name in columns if not numeric(name)]
    if len(columns) < 3 or len(words) > 1 or (not words and find_ends([*map(str, columns)])):
        return None
    if not any(isinstance(name, str) for name in columns):  # numbers of columns without names
        return None
    index = [name for name in columns if str(name).startswith("__index_level_")]  # of pandas
    label = [*words, *index, columns[0]][0]
    try:
        labels = column(label).tolist()
    except GraphError:  # of a column that may have no role
        return None
    titles = {str(name): name for name in columns if name != label}
    texts = [str(each) for each in labels]
    if set(texts) == set(titles) and len(texts) == len(titles):
        return from_labelled(
            np.column_stack([column(titles[text]) for text in texts]), labels, options
        )
    if words and len(set(texts)) == len(texts):
        refuse_incidence(texts, [*titles], np.array([column(name) for name in titles.values()]))
    return None


def refuse_incidence(labels: Sequence[Any], titles: Sequence[Any], cells: NDArray[Any]) -> None:
    """Raise an error for a table that says which rows and columns belong together."""
    if is_incidence([*map(str, titles)], [*map(str, labels)], cells):
        raise GraphError(
            "seems to be an incidence table, with a number for each row and column; make a list "
            "of edges of it, as pandas.melt does, or name the columns with source=… and target=…"
        )


def _note_on_attributes(
    columns: Sequence[Any], ends: tuple[int, int], numeric: Callable[[Any], bool]
) -> list[str]:
    """Return a note if ends that no name identifies may be a vertex and a number that it has."""
    first, second = (columns[place] for place in ends)
    if not isinstance(second, str) or find_ends([str(first), second]) or is_id(second):
        return []
    if not numeric(second) or (numeric(first) and str(first).lower() not in VERTEX_NAMES):
        return []
    return [
        Uncertain(
            f"each number of column {second!r} is read as a vertex, with an edge to that of "
            f"{first!r}; if it is none, pass a table of edges, or {OTHERS}"
        )
    ]


def _sample_of(columns: Sequence[Any], column: Callable[[Any], NDArray[Any]]) -> list[list[str]]:
    """Return the first rows of a table as text, if its ends may need to be looked for."""
    if len(columns) < 3 or find_ends([title_of(name) for name in columns]):
        return []
    try:
        cells = [[str(cell) for cell in column(name)[:SAMPLE_ROWS].tolist()] for name in columns]
    except GraphError:  # of a column that may have no role
        return []
    return [list(row) for row in zip(*cells, strict=True)]


class Sides(NamedTuple):
    """Titles of the columns of ends, and whether a file says that they are of two kinds."""

    titles: tuple[str, str] = ("", "")
    declared: bool = False


NO_SIDES: Final = Sides()


def from_ids(
    u: NDArray[Any],
    v: NDArray[Any],
    w: NDArray[Any] | None,
    options: ReadOptions,
    n_vertices: int | None = None,
    sides: Sides = NO_SIDES,
    notes: Sequence[str] = (),
    *,
    owned: bool = False,
) -> Graph:
    """Build a graph from ids, which may be changed if `owned`; vertices are those that occur."""
    if len(u) != len(v):
        raise GraphError(
            f"source has {len(u)} entries and target {len(v)}; pass both ends of each edge"
        )
    names: NDArray[Any] | None = None
    if w is not None and w.dtype.kind in "OUT":
        w = _numbers(w)
    for ids in (u, v):
        if ids.ndim != 1:
            raise GraphError(f"ids are {IDS_ARE}, not arrays of shape {ids.shape[1:]}")
    u, v = whole(u), whole(v)
    integers = u.dtype.kind in "iu" and v.dtype.kind in "iu"
    if integers:
        u, v = checked_ids(u, "source", owned=owned), checked_ids(v, "target", owned=owned)
    else:
        u, v, names = factorize(u, v)
    if (options.bipartite or not integers) and (unsuited := options.unsuited_to_names()):
        raise GraphError(unsuited)
    if options.bipartite:
        u, v, _, names = split_modes(u, v, names, sides.titles)
        return make_graph(u, v, w, names, options, notes=notes)
    if integers:
        base = None if options.one_based is None else int(options.one_based)
        if base is not None:
            refuse_ids(u, v, base, trusted=options.trusted)
        found = Numbered(*number_vertices(u, v, announced=n_vertices, base=base))
    else:
        assert names is not None
        found = Numbered(u, v, len(names), names)
    found = modes_of(found, sides.titles, declared=sides.declared, one=options.bipartite is False)
    notes = [*notes, *found.notes]
    owned = owned or w is None  # numbered ids are no user's
    return make_graph(
        found.u, found.v, w, found.names, options, n=found.n, notes=notes, owned=owned
    )


def whole(ids: NDArray[Any]) -> NDArray[Any]:
    """Return real numbers as integers if all are whole; `factorize` refuses others."""
    if ids.dtype.kind != "f" or len(ids) == 0 or not np.isfinite(ids).all():
        return ids
    whole = (ids == np.floor(ids)).all() and (np.abs(ids) < np.float64(2**53)).all()
    return ids.astype(np.int64) if whole else ids


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
    names, u, v = ascending(words, codes[: len(u)], codes[len(u) :])
    return u, v, names


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


def checked_ids(ids: NDArray[Any], what: str, *, owned: bool = False) -> NDArray[Any]:
    """Return whole numbers: in 32 bits if they fit, a copy unless `owned`, else as int64."""
    found = narrowed(ids)
    if found.least < 0:
        first = int(np.argmax(ids < 0))
        raise GraphError(f"{what} at index {first} is negative ({ids[first]}); correct it")
    if found.largest < 2**32 - 1:
        free = found.values is not ids or (owned and ids.flags.writeable)
        return found.values if free else ids.copy()
    if found.largest >= 2**63:
        raise GraphError(
            f"id {found.largest} exceeds 2^63 - 1; pass smaller ids, or names as strings"
        )
    return ids.astype(np.int64, copy=False)


def _numbers(values: NDArray[Any]) -> NDArray[Any]:
    """Return weights held as objects as an array of integers or floats; decimals become floats."""
    listed = values.tolist()
    for row, weight in enumerate(listed):
        if is_missing(weight):
            raise GraphError(f"the weight in row {row} is missing; fill it, or drop the row")
        if isinstance(weight, str):
            raise GraphError(
                f"the weight in row {row} is text ({shown(weight)}); convert the column to "
                "numbers, as pandas.to_numeric does"
            )
    listed = [float(w) if isinstance(w, Decimal | Fraction) else w for w in listed]
    try:
        numbers = number_array(listed)
    except ValueError:
        numbers = values
    large = all(isinstance(weight, int | float | np.number) for weight in listed)
    if numbers.dtype.kind not in "biuf" and not large:
        kinds = ", ".join(sorted({type(weight).__name__ for weight in listed}))
        raise GraphError(f"weights must be numbers, not {kinds}; convert the column")
    return numbers
