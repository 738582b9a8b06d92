"""METIS graphs: one line per vertex; every edge is in the lines of both ends."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from louvain_um.core.compiled import kernel
from louvain_um.core.headroom import check_host_memory
from louvain_um.formats import parse_errors
from louvain_um.formats.edge_list.edges import (
    EdgeList,
    Written,
    build_graph,
    exact_weights,
    use_integer_weights,
)
from louvain_um.formats.edge_list.number_parser import read_real
from louvain_um.formats.edge_list.scan import LineFormat, blank
from louvain_um.formats.graph_file import GraphFile
from louvain_um.formats.matrices import all_entries, matrix_of_rows, one_half
from louvain_um.formats.read_options import ReadOptions
from louvain_um.graph.graph import Graph
from louvain_um.graph.limits import MAX_VERTICES


@dataclass(frozen=True, slots=True)
class Header:
    """Vertices, edges, numbers to skip at the start of a line, whether edges are weighted."""

    n: int
    edges: int
    before: int
    weighted: bool


def read(file: GraphFile, options: ReadOptions) -> Graph:
    """Read a METIS graph; vertex sizes and weights are skipped."""
    header, line = _header(file)
    if options.weighted and not header.weighted:
        raise file.error("has no edge weights; drop weighted=True (--weighted)", line)
    written = Written()
    offsets, columns, values, plain = _rows(file, header, line, written)
    if not options.symmetrize and len(columns) != 2 * header.edges:
        raise file.error(
            f"announces {header.edges:,} edges, so {2 * header.edges:,} neighbours, but lists "
            f"{len(columns):,}; the file may be truncated, or list each edge only once "
            "(symmetrize=True (--symmetrize))",
            line,
        )
    if options.weighted is False:
        values = None
    weighted = values is not None
    matrix = matrix_of_rows(offsets, columns, values)
    del offsets, columns, values
    edges = one_half(matrix, weighted)
    if not isinstance(edges, EdgeList):
        if not options.symmetrize:
            raise file.error(
                f"is not symmetric: {edges.describe(1)} (lists of vertices {edges.row + 1} and "
                f"{edges.column + 1}); correct the lists, or pass symmetrize=True (--symmetrize)",
                line + 1 + edges.row if plain else None,
            )
        edges = all_entries(matrix, weighted)
    if edges.w is not None:
        use_integer_weights(edges, written)
    names = np.arange(1, header.n + 1, dtype=np.int64)
    return build_graph(file, edges, header.n, names, options, edges.notes)


def _header(file: GraphFile) -> tuple[Header, int]:
    words, line = file.read_header(0, "vertices edges [format]")
    if parse_errors.looks_binary(" ".join(words).encode()):
        raise file.error(
            "is not text; check whether it is compressed or in another format (format=…)", line
        )
    plain = 2 <= len(words) <= 4 and all(w.isascii() and w.isdigit() for w in words)
    if not plain or any(len(word) > 18 for word in words):
        raise file.error(
            "is not a METIS header 'vertices edges [format [weights]]'; correct it", line
        )
    code = words[2].zfill(3) if len(words) > 2 else "000"
    if len(code) > 3 or set(code) - {"0", "1"}:
        raise file.error(
            f"format code {words[2]!r} is not one of METIS's (0 … 111); correct it", line
        )
    n = int(words[0])
    if n > MAX_VERTICES:
        raise file.error(f"{n} vertices; at most {MAX_VERTICES} are supported", line)
    vertex_weights = int(words[3]) if len(words) > 3 else 1
    before = int(code[0]) + (vertex_weights if code[1] == "1" else 0)
    return Header(n, int(words[1]), before, code[2] == "1"), line


def _rows(
    file: GraphFile, header: Header, line: int, written: Written
) -> tuple[NDArray[np.int64], NDArray[np.uint32], NDArray[np.float64] | None, bool]:
    """Return the lists as compressed rows: offsets, columns, weights."""
    check_host_memory(
        8 * header.n,
        f"the {header.n:,} vertices announced",
        "check the header, or use a machine with more memory",
    )
    offsets = np.zeros(header.n + 1, np.int64)
    columns: list[NDArray[np.uint32]] = []
    values: list[NDArray[np.float64]] = []
    row = 0
    line += 1
    first = line
    for data in file.blocks():
        room = len(data) // 2 + 1
        out = np.empty(room, np.uint32)
        weights = np.empty(room if header.weighted else 0, np.float64)
        deferred = np.empty((room if header.weighted else 0, 3), np.int64)
        row, count, lines, bad, n_deferred, has_point = _scan_rows(
            data, header.n, header.before, header.weighted, row, offsets, out, weights, deferred
        )
        written.real |= has_point
        if n_deferred:
            exact_weights(file, data, line, deferred[:n_deferred], weights, written, LineFormat())
        if bad >= 0:
            message = _line_error(parse_errors.line_at(data, bad), header, row)
            raise file.error(message, line + lines)
        line += lines
        columns.append(out[:count].copy())
        if header.weighted:
            values.append(weights[:count].copy())
    file.check_vertices(header.n, max(row, header.edges))
    np.cumsum(offsets, out=offsets)
    if row < header.n and int(offsets[-1]) != 2 * header.edges:
        raise file.error(
            f"announces {header.n:,} vertices but ends after {row:,} lists; the file may be "
            "truncated",
            line - 1,
        )
    joined = np.concatenate([np.empty(0, np.uint32), *columns])
    return offsets, joined, np.concatenate(values) if values else None, line - first == row


def _line_error(line: bytes, header: Header, row: int) -> str:
    if parse_errors.looks_binary(line):
        return parse_errors.NOT_TEXT
    if row >= header.n:
        return f"more lists than the {header.n:,} vertices announced; correct the header"
    words = line.decode("utf-8", "backslashreplace").split()
    if len(words) < header.before:
        return f"has fewer than the {header.before} numbers that the format code requires; add them"
    step = 2 if header.weighted else 1
    for word in words[header.before :: step]:
        if not parse_errors.WHOLE.fullmatch(word) or not 1 <= int(word) <= header.n:
            return f"neighbour {word[:40]!r} is not a vertex 1 … {header.n}; correct the list"
    return "a neighbour lacks its weight, which the format code requires; add it"


@kernel()
def _scan_rows(data, n, before, weighted, row, lengths, columns, weights, deferred):
    """Read whole lines; list lengths go to ``lengths[row + 1]``, the rest as `scan_numbers`."""
    pos, count, lines, n_deferred = 0, 0, 0, 0
    bad = -1
    real = False
    while pos < len(data):
        line = pos
        while blank(data[pos]):
            pos += 1
        if data[pos] == 37:
            while data[pos] != 10:
                pos += 1
            pos += 1
            lines += 1
            continue
        if row >= n:
            # Empty lines at the end are not lists.
            if data[pos] != 10:
                bad = line
                break
            pos += 1
            lines += 1
            continue
        for _ in range(before):
            if data[pos] == 10:
                bad = line
                break
            while data[pos] != 10 and not blank(data[pos]):
                pos += 1
            while blank(data[pos]):
                pos += 1
        first = count
        while bad < 0 and data[pos] != 10:
            b = np.int64(0)
            start = pos
            d = np.uint8(data[pos] - 48)
            while d < 10:
                b = b * 10 + d
                pos += 1
                d = np.uint8(data[pos] - 48)
            if pos - start > 18 or b < 1 or b > n or not (data[pos] == 10 or blank(data[pos])):
                bad = line
                break
            while blank(data[pos]):
                pos += 1
            columns[count] = b - 1
            if weighted:
                start = pos
                weights[count], pos, sure, has_point = read_real(data, pos)
                real = real or has_point
                if sure and (data[pos] == 10 or blank(data[pos])):
                    pass
                elif data[start] == 10:
                    bad = line
                    break
                else:
                    while data[pos] != 10 and not blank(data[pos]):
                        pos += 1
                    deferred[n_deferred, 0] = count
                    deferred[n_deferred, 1] = start
                    deferred[n_deferred, 2] = pos
                    n_deferred += 1
                while blank(data[pos]):
                    pos += 1
            count += 1
        if bad >= 0:
            break
        pos += 1
        lines += 1
        row += 1
        lengths[row] = count - first
    return row, count, lines, bad, n_deferred, real
