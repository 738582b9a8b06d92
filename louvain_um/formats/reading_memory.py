"""How much host memory reading a file takes at its peak, estimated from its first and last bytes.

Edges that are to be sorted lie next to the records that they become: two for each
edge: `louvain_um.graph.rows`. Where a GPU sorts them, less is taken.
"""

from __future__ import annotations

import os
from typing import Final

from louvain_um.formats.column_roles import choose_weight, find_ends
from louvain_um.formats.edge_list.first_lines import sample_of
from louvain_um.formats.edge_list.reader import reads_weight
from louvain_um.formats.edge_list.sniff import sniff
from louvain_um.formats.file_types import format_of
from louvain_um.formats.graph_file import GraphFile, is_stream, open_graph_file
from louvain_um.formats.parse_errors import split
from louvain_um.formats.read_options import ReadOptions
from louvain_um.formats.size_from_header import size_from_header

IDS: Final = 8
"""Bytes of the ids of an edge."""

RECORDS: Final = 16
"""Bytes of its records, without weights."""

WEIGHTS: Final = 40
"""Bytes that a weight adds: as it is read, as an integer, in both records, and room for sorting."""

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
    """Return about how many bytes of host memory reading a graph takes, None where unknown.

    Known are Parquet files of numbers, lists of edges whose ids are numbers, and NumPy archives
    that are not compressed.
    """
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
    return _edges(table.metadata.num_rows, largest + 1, IDS + wide, weighted=weight is not None)


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
    return _edges(edges, largest + 1, IDS + PARSED, weighted=weighted)


def _edges(edges: int, vertices: int, each: int, *, weighted: bool) -> int:
    """Return the bytes of some edges, of which each takes so many before it is sorted."""
    more = WEIGHTS if weighted else 0
    return edges * (each + RECORDS + more) + VERTEX * min(vertices, 2 * edges) + FIXED
