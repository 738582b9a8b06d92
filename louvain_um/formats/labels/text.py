"""Label files in text: CSV, TSV, and fields separated by blanks."""

from __future__ import annotations

import csv
import io
import re
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from louvain_um.core.numbering import distinct
from louvain_um.core.plain_data import objects
from louvain_um.errors import GraphFormatError, GraphWarning, LouvainUmError, shown
from louvain_um.formats.column_roles import KINDS, plain
from louvain_um.formats.two_modes import PEOPLE, THINGS
from louvain_um.results.communities import Communities
from louvain_um.results.comparison import Labels
from louvain_um.results.frame import hierarchy_columns

INTEGER = re.compile(r"\s*[+-]?[0-9]+\s*", re.ASCII)
"""Text that can be read as an integer; `int` also accepts underscores and other digits."""


def columns(result: Communities | Labels, *, hierarchy: bool = False) -> dict[str, NDArray[Any]]:
    """Return the columns of a label file, each as integers or as an object array of strings."""
    if isinstance(result, Labels):
        return {
            "vertex": writable(result.vertices, unique=True),
            "community": writable(result.communities),
        }
    names = result.names
    if names is None:
        names = np.arange(result.n_vertices, dtype=np.uint32)
    found = {"vertex": writable(names, unique=True), "community": result.labels}
    return found | (hierarchy_columns(result) if hierarchy else {})


def integers_or_texts(texts: Sequence[str]) -> NDArray[Any]:
    """Return integers if all texts are integers, different ones if the texts differ; else texts."""
    if all(map(INTEGER.fullmatch, texts)) and all(len(text) < 4000 for text in texts):
        numbers = integers(list(map(int, texts)))
        if numbers is not None and len(distinct(numbers)) == len(set(texts)):
            return numbers
    return objects(texts)


def integers(values: Sequence[int]) -> NDArray[Any] | None:
    """Return an int64 array, or uint64 where only that fits; None where neither does."""
    for dtype in (np.int64, np.uint64):
        try:
            return np.array(values, dtype)
        except OverflowError:
            continue
    return None


def checked(column: NDArray[Any], path: Any) -> NDArray[Any]:
    """Return a column of a file as numbers or text; other columns are an error."""
    if column.ndim != 1:
        raise GraphFormatError(
            f"vertex and community must be one-dimensional, not of shape {column.shape}; "
            "write one row per vertex",
            path,
        )
    if column.dtype.kind == "f" and np.isnan(column).any():
        raise GraphFormatError("some vertices or communities are missing; drop those rows", path)
    if column.dtype.kind in "biufU":
        return column
    values = column.tolist()
    if any(value is None for value in values):
        raise GraphFormatError("some vertices or communities are missing; drop those rows", path)
    return typed(
        [str(each, "utf-8", "replace") if type(each) is bytes else each for each in values]
    )


def typed(values: Sequence[Any]) -> NDArray[Any]:
    """Return integers as integers, and values of any other or of several types as text."""
    if values and all(type(value) is int or isinstance(value, np.integer) for value in values):
        numbers = integers(values)
        if numbers is not None:
            return numbers
    return objects([value if isinstance(value, str) else str(value) for value in values])


def writable(column: NDArray[Any], *, unique: bool = False) -> NDArray[Any]:
    """Return a column as integers or text; with `unique`, different values must stay different."""
    if column.dtype.kind in "iu":
        return column
    if column.dtype.kind == "U":
        parts = (codes_of(column[low : low + PART]) for low in range(0, len(column), PART))
        if any((codes >> 11 == SURROGATES).any() for codes in parts):
            raise LouvainUmError(LONE)
        return column
    texts = typed(column.tolist())
    if texts.dtype.kind != "O":
        return texts
    try:
        "".join(texts).encode()
    except UnicodeEncodeError:
        raise LouvainUmError(LONE) from None
    if unique and len(set(texts)) < len(set(column.tolist())):
        raise LouvainUmError(
            "some vertices differ in type only, such as 1 and '1', and a file could not "
            "distinguish them; rename them"
        )
    return texts


def codes_of(column: NDArray[np.str_]) -> NDArray[np.uint32]:
    """Return the characters of texts, uint32[n, width]; zeros follow shorter ones."""
    native = np.ascontiguousarray(column, column.dtype.newbyteorder("="))
    return native.view(np.uint32).reshape(len(column), -1)


PART = 1 << 16
"""Texts that are looked at together."""

SURROGATES = 0xD800 >> 11
"""Upper bits of characters that UTF-8 does not have."""

LONE = "some names are not valid Unicode text (lone surrogates); rename those vertices"

SAMPLE = 1000
"""Lines below the first that decide whether it is a header."""

WRITTEN_HEADER = ["vertex", "community"]
"""First columns of the files that `write_labels` writes; those of a hierarchy may follow."""

QUOTED = "\0"
"""Marks a quoted field for `csv`, which does not tell; text has no such character."""

ROUNDED = re.compile("[.A-Za-z]|[0-9]{19}")
"""What NumPy before 2.3 may read as an integer that it rounds."""

LIFTING = threading.Lock()
"""Is held while the csv module's limit is lifted."""

MAX_FIELD = 2**31 - 1
"""Longest field of `csv`, in characters: longer than any."""

SEPARATOR_LINE = re.compile(r'\A"?sep=.?"?[ \t]*(?=\r?\n)', re.IGNORECASE)
"""What gives spreadsheets the separator; its newline stays, which keeps line numbers."""

FORMULA = re.compile("[\\s\0]*[-=+@|%\uff0d\uff1d\uff0b\uff20]|[\t\r\n']")
"""Begin of a text that spreadsheets take for a formula, or that `spreadsheet_safe` must mark."""


def quoted_where_needed(separator: str, texts: list[str]) -> list[str]:
    """Return fields that read as these texts, quoted unless they begin with a letter."""
    plain = re.compile(rf'[^\W\d][^"\r\n{separator}]*').fullmatch
    return [text if plain(text) else '"' + text.replace('"', '""') + '"' for text in texts]


def spreadsheet_safe(column: NDArray[Any]) -> NDArray[Any]:
    """Return a column in which no spreadsheet finds a formula: ``'`` stands before such texts."""
    if column.dtype.kind in "iufbM":
        return column
    return objects(
        [f"'{each}" if isinstance(each, str) and FORMULA.match(each) else each
         for each in column.tolist()]
    )  # fmt: skip


def read(path: str | Path, text: str) -> Labels:
    """Return the labels of a text file."""
    text = SEPARATOR_LINE.sub("", text)
    first = re.search(r"^[ \t\r]*([^\s#%][^\r\n]*)", text, re.MULTILINE)
    if first is None:
        raise GraphFormatError(
            "contains no labels; expected lines with a vertex and its community", path
        )
    line = first[1].strip()
    separator = next((s for s in "\t,;" if s in line), None)
    fields = line.split(separator)
    if len(fields) > 2 and separator is None:
        raise GraphFormatError(
            f"{len(fields)} fields; expected a vertex and its community",
            path,
            text.count("\n", 0, first.start(1)) + 1,
        )
    width, written = 0, False
    kind = kind_of_first_line(*_sample(fields, text[first.end() :], separator))
    if kind == "uncertain":
        warnings.warn(
            GraphWarning(
                f"{path}: the first line ({shown(line)}) is read as a vertex and its community; "
                "if it is a header, delete it or start it with #"
            ),
            stacklevel=4,
        )
    if kind == "header":
        width, written = len(fields), fields[:2] == WRITTEN_HEADER
        names = [plain(name.strip(' "')) for name in fields[:2]]
        others = VERTEX_NAMES | KINDS | PEOPLE | THINGS
        if len(names) == 2 and names[0] in COMMUNITY_NAMES and names[1] in others:
            problem = "names the community before the vertex; write the vertex first"
            raise GraphFormatError(problem, path, text.count("\n", 0, first.start(1)) + 1)
        # Its newline stays, which keeps line numbers.
        text = text[: first.start(1)] + text[first.end() :]
    if not (written and re.search("[#%]", text)):
        numbers = _numbers(text, separator, width if written else 2)
        if numbers is not None:
            return numbers
    with _long_fields():
        return _texts(path, text, separator, width, written)


def _sample(
    fields: list[str], below: str, separator: str | None
) -> tuple[list[str], list[list[str]]]:
    """Return the fields of the first line and of some below, without quotes and comments."""
    lines = (line.strip() for line in islice(io.StringIO(below), SAMPLE))
    rows = [line.split(separator) for line in lines if line and line[0] not in "#%"]
    first, *others = ([name.strip(' "') for name in row] for row in (fields, *rows))
    return first, others


def _numbers(text: str, separator: str | None, width: int) -> Labels | None:
    """Return labels if all are numbers, six times as fast; None in any other case."""
    start = text[:65536].split(None, 1)
    if not start or not (start[0][0].isascii() and start[0][0].isdecimal()):
        return None
    if np.lib.NumpyVersion(np.__version__) < "2.3.0" and ROUNDED.search(text):
        return None
    try:
        comments = [sign for sign in "#%" if sign in text] or None
        rows = np.loadtxt(
            io.StringIO(text), np.int64, comments=comments, delimiter=separator, ndmin=2
        )
    except (ValueError, OverflowError):
        return None
    if rows.shape[1] != width or len(distinct(rows[:, 0])) < len(rows):
        return None
    return Labels(rows[:, 0].copy(), rows[:, 1].copy())


def _texts(path: str | Path, text: str, separator: str | None, width: int, written: bool) -> Labels:
    """Return labels of any type; `width` is 0 without a header."""
    listed: list[list[str]] = []
    for number, fields in _rows(path, text, separator, written):
        width = width or len(fields)
        if len(fields) != width or (width > 2 and not written):
            expected = f"{width}, as in the first line" if len(fields) != width else "1 or 2"
            raise GraphFormatError(
                f"{len(fields)} fields instead of {expected}; expected a vertex and its community",
                path,
                number,
            )
        if "" in fields[:2]:
            missing = "vertex" if not fields[0] and width > 1 else "community"
            raise GraphFormatError(
                f'the {missing} is empty; fill it in, delete the line, or write "" if the name is '
                "empty",
                path,
                number,
            )
        listed.append(fields)
    communities = _column([row[min(width, 2) - 1] for row in listed])
    vertices = _column([row[0] for row in listed]) if width > 1 else np.arange(len(listed))
    return Labels(vertices, communities)


def _column(fields: list[str]) -> NDArray[Any]:
    """Return integers if no field is quoted and all are integers, else texts."""
    if not any(field.startswith(QUOTED) for field in fields):
        return integers_or_texts(fields)
    return objects([field.removeprefix(QUOTED) for field in fields])


def _rows(
    path: str | Path, text: str, separator: str | None, written: bool
) -> Iterator[tuple[int, list[str]]]:
    """Yield line numbers and fields, the quoted ones marked."""
    if separator is None:
        for number, line in enumerate(text.split("\n"), 1):
            fields = line.split()
            if fields and fields[0][0] not in "#%":
                yield number, fields
        return
    lines = io.StringIO(_marked(path, text, separator), newline="")
    reader = csv.reader(lines, delimiter=separator)
    try:
        for fields in reader:
            if not any(fields):
                continue
            if fields[0].startswith(("#", "%")):
                labelled = written and len(fields) > 1 and INTEGER.fullmatch(fields[1])
                if not labelled:
                    continue
            yield reader.line_num, fields
    except csv.Error as error:
        raise GraphFormatError(
            f"{error}; quote the field or correct the line", path, reader.line_num
        ) from error


def _marked(path: str | Path, text: str, separator: str) -> str:
    """Return the text with a mark at the start of each quoted field."""
    if '"' not in text:
        return text

    def mark(field: re.Match[str]) -> str:
        if not field[2]:
            raise GraphFormatError(
                "a quoted field has no closing quote; add it",
                path,
                text.count("\n", 0, field.start()) + 1,
            )
        return f'"{QUOTED}{field[1]}"'

    pattern = rf'(?:(?<=[\r\n{separator}])|\A)"([^"]*(?:""[^"]*)*)("?)'
    return re.sub(pattern, mark, text)


@contextmanager
def _long_fields() -> Iterator[None]:
    """Lift the csv module's limit of 128 KiB per field, a setting of the whole process."""
    with LIFTING:
        before = csv.field_size_limit(min(MAX_FIELD, sys.maxsize))
        try:
            yield
        finally:
            csv.field_size_limit(before)


VERTEX_NAMES = {"vertex", "node", "id", "name"}
"""Names of the column of vertices that no list of labels begins with."""

COMMUNITY_NAMES = {
    "block", "blockmodel", "class", "cluster", "clusters", "comm", "communities", "community",
    "department", "dept", "faction", "ground_truth", "group", "infomap", "label", "labels",
    "leiden", "louvain", "member_of", "membership", "modularity_class", "module", "partition",
    "party", "planted", "true_label", "truth",
}  # fmt: skip
"""Names of the column of communities, in lower case."""

REPEATED = 4
"""Lines from which a community that only the first one has makes the first line uncertain."""


def kind_of_first_line(first: list[str], others: list[list[str]]) -> str:
    """Return "header", "uncertain" (a vertex that may be a header) or "vertex"."""
    if first[0].lower() in VERTEX_NAMES:
        return "header"
    others = [row for row in others if len(row) == len(first)]
    if not others or any(map(INTEGER.fullmatch, first)) or len(first) > 2:
        return "vertex"
    integers = [all(INTEGER.fullmatch(row[i]) for row in others) for i in range(len(first))]
    if integers == [True, True] or (len(others) > 1 and any(integers)):
        return "header"
    if len(first) < 2 or any(row[0] == first[0] for row in others):
        return "vertex"
    communities = [row[1] for row in others]
    if first[1] in communities:
        return "vertex"
    named = plain(first[0]) in KINDS | PEOPLE | THINGS
    if named and plain(first[1]) in COMMUNITY_NAMES:
        return "header"
    once = any(communities.count(community) == 1 for community in set(communities))
    return "uncertain" if len(others) >= REPEATED and not once else "vertex"
