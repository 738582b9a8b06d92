"""Before a file is read: the size of its graph, and the most memory that reading it takes.

Edges become records, two for each; many of them leave memory meanwhile (`louvain_um.graph.rows`).
Where a GPU sorts them, less is taken.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from louvain_um.core.plain_data import array_header
from louvain_um.formats.column_roles import choose_weight, find_ends
from louvain_um.formats.edge_list.first_lines import sample_of
from louvain_um.formats.edge_list.reader import reads_weight
from louvain_um.formats.edge_list.sniff import sniff
from louvain_um.formats.file_types import format_of
from louvain_um.formats.graph_file import GraphFile, is_stream, open_graph_file, refuse_missing
from louvain_um.formats.parse_errors import split
from louvain_um.formats.read_options import ReadOptions
from louvain_um.graph.rows import MANY

SAMPLE = 1 << 16
"""Entries of a matrix that are examined."""


@dataclass(frozen=True, slots=True)
class Size:
    """Size of a graph according to its file's header."""

    vertices: int
    arcs: int
    weighted: bool
    real: bool
    read_from: str
    directed: bool = False


def size_from_header(path: str | os.PathLike[str], format: str | None = None) -> Size | None:
    r"""Return the size of the graph in a file, or None if that takes reading the whole file."""
    name = os.fspath(path)
    if name != "-":
        refuse_missing(name)
    if is_stream(name):
        return None
    kind = format or format_of(name)
    if kind not in MEASURES:
        return None
    with open_graph_file(name) as file:
        file.skip_byte_order_mark()
        if kind != "npz":
            file.end_lines_with_newlines()
        return MEASURES[kind](file)


def _matrixmarket(file: GraphFile) -> Size | None:
    from louvain_um.formats.matrixmarket import _banner, _size

    layout, field, symmetry = _banner(file)
    if layout == "array":
        return None
    n, entries, _ = _size(file)
    directed = symmetry == "general"
    arcs = entries if directed else 2 * entries
    real = field in ("real", "double")
    return Size(n, arcs, field != "pattern", real, "its size line", directed)


def _metis(file: GraphFile) -> Size:
    from louvain_um.formats.metis import _header

    header, _ = _header(file)
    return Size(header.n, 2 * header.edges, header.weighted, False, "its first line")


def _npz(file: GraphFile) -> Size | None:
    stream = file.stream
    # A gzipped archive would have to be decompressed as a whole first.
    if not hasattr(stream, "fileno"):
        return None
    try:
        with zipfile.ZipFile(file.seekable()) as archive:
            headers = {
                member.removesuffix(".npy"): _array_header(archive, member)
                for member in archive.namelist()
                if member.endswith(".npy")
            }
            return _archive_size(archive, headers)
    except Exception:  # damaged archives raise many types; reading reports the error
        return None


def _array_header(archive: zipfile.ZipFile, member: str) -> tuple[tuple[int, ...], Any]:
    """Return shape and type of an array without reading its data."""
    with archive.open(member) as stream:
        shape, dtype, _ = array_header(stream)
        return shape, dtype


def _archive_size(archive: zipfile.ZipFile, headers: dict[str, Any]) -> Size | None:
    """Return the size of an edge list or of a sparse matrix, if the archive holds one."""
    import numpy as np

    def small(member: str) -> Any:
        with archive.open(f"{member}.npy") as stream:
            return np.load(stream, allow_pickle=False)

    if {"u", "v", "n"} <= set(headers):
        real = "w" in headers and headers["w"][1].kind == "f"
        n, edges = int(small("n").reshape(())[()]), headers["u"][0][0]
        return Size(n, 2 * edges, "w" in headers, real, "its array headers")
    if {"format", "shape", "data"} <= set(headers) and "u" not in headers:
        (entries, *others), dtype = headers["data"]
        if others:
            return None  # block or diagonal formats store entries that are not edges
        real = dtype.kind == "f"
        weighted = dtype.kind != "b" and not _begins_with_ones(archive, dtype)
        read_from = "its array headers"
        return Size(int(small("shape")[0]), entries, weighted, real, read_from, directed=True)
    return None


def _begins_with_ones(archive: zipfile.ZipFile, dtype: Any) -> bool:
    """Return whether the first entries of a matrix are all 1, which is no weight."""
    import numpy as np

    with archive.open("data.npy") as stream:
        array_header(stream)
        taken = stream.read(SAMPLE * dtype.itemsize)
    first = np.frombuffer(taken[: len(taken) // dtype.itemsize * dtype.itemsize], dtype)
    return bool(len(first)) and bool((first == 1).all())


MEASURES: dict[str, Callable[[GraphFile], Size | None]] = {
    "matrixmarket": _matrixmarket,
    "metis": _metis,
    "npz": _npz,
}

IDS: Final = 8
"""Bytes of the ids of an edge."""

RECORDS: Final = 16
"""Bytes of its records, without weights."""

WEIGHT: Final = 8
"""Bytes of its weight; both records have one, too."""

PARSED: Final = 4
"""Bytes of an edge of a text: what blocks that were read side by side leave in the heap."""

VERTEX: Final = 16
"""Bytes of a vertex: where its row begins, and its loop."""

FIXED: Final = 8 << 20
"""Bytes of buffers."""

TARGETS: Final = 4
"""Bytes of an arc of a matrix beyond those in its file, where it becomes the graph as it is."""

SORTED_MATRIX: Final = 28
"""The same with weights, which become integers."""

TAIL: Final = 1 << 16
"""Bytes of the end of a text that are looked at."""


def reading_bytes(path: str | os.PathLike[str], format: str | None = None) -> int | None:
    """Return about how many bytes of host memory reading a graph takes, None where unknown."""
    # Known are Parquet files of numbers, lists of edges whose ids are numbers, and NumPy archives
    # that are not compressed.
    name = os.fspath(path)
    if is_stream(name) or not os.path.isfile(name):
        return None
    kind = format or format_of(name)
    try:
        with open_graph_file(name) as file:
            if kind == "parquet":
                return _parquet(file)
            if kind == "edges" and hasattr(file.stream, "fileno"):
                return _text(file, os.path.getsize(name))
    except Exception:  # of several types, for damaged files; reading reports them
        return None
    if kind == "npz" and (size := size_from_header(name)) is not None and size.directed:
        more = SORTED_MATRIX if size.weighted else TARGETS
        return os.path.getsize(name) + more * size.arcs + VERTEX * size.vertices + FIXED
    return None


def _parquet(file: GraphFile) -> int | None:
    """Return the bytes that a Parquet file takes, by what it says of its columns."""
    from pyarrow.parquet import ParquetFile

    from louvain_um.formats.arrow import is_numeric, is_plain, statistics

    table = ParquetFile(file.seekable())
    names, types = table.schema_arrow.names, table.schema_arrow.types
    first, second = find_ends(names) or (0, 1)
    if len(names) < 2 or not all(is_plain(types[place]) for place in (first, second)):
        return None
    others = [place for place in range(len(names)) if place not in (first, second)]
    numeric = [names[place] for place in others if is_numeric(types[place])]
    weight, _ = choose_weight(numeric, [names[place] for place in others], ReadOptions())
    known = [statistics(table.metadata, names[place]) for place in (first, second)]
    largest = max((each.max if each else 2**63 for ends in known for each in ends), default=0)
    wide = 0 if largest < 2**32 - 1 else types[first].bit_width // 8 * 2
    return _edges(table.metadata.num_rows, largest + 1, wide, 0, weighted=weight is not None)


def _text(file: GraphFile, nbytes: int) -> int | None:
    """Return the bytes that a list of edges takes, by its first and last lines."""
    lines = sample_of(file).text
    detected = sniff(file, ReadOptions())
    if detected.named or len(lines) < 2:
        return None
    lines = lines[1:] if detected.header is not None else lines
    with open(file.name, "rb") as end:
        end.seek(-min(nbytes, TAIL), os.SEEK_END)
        lines += end.read().splitlines()[1:]
    rows = [split(line, detected.separator) for line in lines if line]
    try:
        largest = max(int(row[place]) for row in rows for place in detected.order[:2])
    except (ValueError, IndexError):
        return None
    edges = nbytes * len(lines) // sum(len(line) + 1 for line in lines)
    weighted = reads_weight(file, detected, ReadOptions())
    return _edges(edges, largest + 1, 0, PARSED, weighted=weighted)


def _edges(edges: int, vertices: int, wide: int, parsed: int, *, weighted: bool) -> int:
    """Return the bytes of some edges: of each, the given ones are kept, or given back if many."""
    weight = WEIGHT if weighted else 0
    each = RECORDS + 2 * weight
    each += wide if each * edges >= MANY else wide + parsed + IDS + weight
    return edges * each + VERTEX * min(vertices, 2 * edges) + FIXED
