"""Read label files: those of `write_labels`, and plain text of two columns."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from louvain_um.errors import GraphFormatError, LouvainUmError
from louvain_um.results.comparison import Labels

VERTEX_NAMES = {"vertex", "node", "id", "name"}

KNOWN = ".csv, .tsv, .txt, .parquet, .npz, .json"


def read_labels(path: str | Path) -> Labels:
    r"""Read the community of each vertex.

    Parameters
    ----------
    path : path
        What `write_labels` or `Communities.save` wrote, or text with a vertex and its
        community on each line, separated by blanks, a tab, a comma or a semicolon (``.gz``
        too; ``-`` is stdin). Lines that start with ``#`` or ``%`` and a header are skipped.
        Lines with a single field are the communities of vertices 0, 1, 2 …

    Returns
    -------
    Labels

    Raises
    ------
    GraphFormatError
        The file is not a label file; names the first bad line.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from louvain_um.formats.labels import read_labels
    >>> file = pathlib.Path(tempfile.mkdtemp(), "departments.txt")
    >>> _ = file.write_text("7 a\n9 b\n")
    >>> read_labels(file).vertices.tolist(), read_labels(file).communities.tolist()
    ([7, 9], ['a', 'b'])
    """
    if not str(path):
        raise GraphFormatError("file name is empty; name a file, or - for stdin", "''")
    suffix = Path(path).suffix.lower()
    try:
        if suffix == ".npz":
            labels = _read_npz(path)
        elif suffix == ".parquet":
            labels = _read_parquet(path)
        elif suffix == ".json":
            labels = _read_json(path)
        else:
            labels = _read_text(path)
    except FileNotFoundError:
        raise GraphFormatError("no such file; check the path", path) from None
    except IsADirectoryError:
        raise GraphFormatError("is a folder; name a file in it", path) from None
    except OSError as error:
        reason = (error.strerror or str(error)).splitlines()[0]
        raise GraphFormatError(f"cannot be read: {reason}", path) from error
    if len(labels.vertices) != len(labels.communities):
        raise GraphFormatError(
            f"{len(labels.vertices)} vertices, but {len(labels.communities)} communities; "
            "write one community per vertex",
            path,
        )
    names, counts = np.unique(labels.vertices, return_counts=True)
    if len(names) < len(labels.vertices):
        raise GraphFormatError(
            f"vertex {names[counts > 1][0]} is listed more than once; keep one line per vertex",
            path,
        )
    return labels


def _read_npz(path: str | Path) -> Labels:
    from louvain_um.results import saving
    from louvain_um.results.communities import Communities

    arrays = saving.read_arrays(path)
    if saving.is_result(arrays):
        result = Communities.load(path)
        names = result.names
        return Labels(np.arange(result.n_vertices) if names is None else names, result.labels)
    if not {"vertex", "community"} <= set(arrays):
        raise GraphFormatError(
            f"contains {', '.join(sorted(arrays))}; labels need the arrays vertex and community",
            path,
        )
    return Labels(arrays["vertex"], arrays["community"])


def _read_parquet(path: str | Path) -> Labels:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        raise LouvainUmError(
            f"{path}: reading .parquet needs pyarrow: pip install 'louvain-um[formats]'"
        ) from None
    try:
        table = parquet.read_table(path, columns=["vertex", "community"])
        return Labels(*(table[name].to_numpy() for name in ("vertex", "community")))
    except (pa.ArrowInvalid, KeyError) as error:
        raise GraphFormatError(
            "is not a Parquet file with columns vertex and community", path
        ) from error


def _read_json(path: str | Path) -> Labels:
    try:
        parsed = json.loads(Path(path).read_bytes())
    except ValueError as error:
        raise GraphFormatError(
            "is not valid JSON; write it again", path, getattr(error, "lineno", None)
        ) from error
    if isinstance(parsed, dict) and isinstance(parsed.get("vertex"), list):
        vertices, communities = parsed["vertex"], parsed.get("community")
    elif isinstance(parsed, dict) and parsed:
        vertices, communities = list(parsed), list(parsed.values())
    else:
        vertices, communities = [], None
    if not isinstance(communities, list) or any(isinstance(c, list | dict) for c in communities):
        raise GraphFormatError(
            "needs lists vertex and community, or an object {vertex: community}", path
        )
    return Labels(_column(list(map(str, vertices))), _column(list(map(str, communities))))


def _read_text(path: str | Path) -> Labels:
    text = _text(path)
    first = re.search(r"^[ \t\r]*([^\s#%].*)$", text, re.MULTILINE)
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
    width = 0
    if fields[0].strip(' "').lower() in VERTEX_NAMES:
        width = len(fields)
        # Its newline stays, which keeps line numbers.
        text = text[: first.start(1)] + text[first.end() :]
    return _numbers(text, separator) or _texts(path, text, separator, width)


def _numbers(text: str, separator: str | None) -> Labels | None:
    """Return labels if all are numbers, six times as fast; None in any other case."""
    start = text[:65536].split(None, 1)
    if not start or not start[0][0].isdecimal():
        return None
    try:
        rows = np.loadtxt(
            io.StringIO(text), np.int64, comments=("#", "%"), delimiter=separator, ndmin=2
        )
    except (ValueError, OverflowError):
        return None
    return Labels(rows[:, 0].copy(), rows[:, 1].copy()) if rows.shape[1] == 2 else None


def _texts(path: str | Path, text: str, separator: str | None, width: int) -> Labels:
    """Return labels of any type; `width` is 0 without a header."""
    listed: list[list[str]] = []
    for number, fields in _rows(path, text, separator):
        width = width or len(fields)
        if len(fields) != width or width > 2:
            expected = f"{width}, as in the first line" if len(fields) != width else "1 or 2"
            raise GraphFormatError(
                f"{len(fields)} fields instead of {expected}; expected a vertex and its community",
                path,
                number,
            )
        listed.append(fields)
    communities = _column([row[-1] for row in listed])
    vertices = _column([row[0] for row in listed]) if width == 2 else np.arange(len(listed))
    return Labels(vertices, communities)


def _rows(path: str | Path, text: str, separator: str | None) -> Iterator[tuple[int, list[str]]]:
    """Yield line numbers and fields."""
    if separator is None:
        for number, line in enumerate(text.split("\n"), 1):
            fields = line.split()
            if fields and fields[0][0] not in "#%":
                yield number, fields
        return
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    try:
        for fields in reader:
            if any(fields) and not fields[0].startswith(("#", "%")):
                yield reader.line_num, fields
    except csv.Error as error:
        raise GraphFormatError(f"{error}", path, reader.line_num) from error


def _text(path: str | Path) -> str:
    try:
        raw = sys.stdin.buffer.read() if str(path) == "-" else Path(path).read_bytes()
        if raw[:2] == b"\x1f\x8b":
            raw = gzip.decompress(raw)
        text = raw.decode("utf-8-sig")
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise GraphFormatError(
            "the gzip stream is damaged or truncated; download or compress it again", path
        ) from error
    except UnicodeDecodeError as error:
        raise GraphFormatError(
            f"is not text; label files are {KNOWN}",
            path,
            raw[: error.start].count(b"\n") + 1,
        ) from error
    if "\0" in text:
        raise GraphFormatError(f"is not text; label files are {KNOWN}", path)
    return text


def _column(texts: list[str]) -> NDArray[Any]:
    """Return integers if all texts are integers, else the texts."""
    column = np.empty(len(texts), object)
    column[:] = texts
    try:
        return column.astype(np.int64)
    except (ValueError, OverflowError):
        return column
