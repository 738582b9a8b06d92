"""MatrixMarket coordinate files: pattern, integer or real; symmetric or general."""

from __future__ import annotations

import numpy as np

from louvain_um.core.headroom import check_host_memory
from louvain_um.formats.edge_list import scan
from louvain_um.formats.edge_list.edges import EdgeList, build_graph, read_numbers
from louvain_um.formats.edge_list.scan import LineFormat
from louvain_um.formats.graph_file import GraphFile
from louvain_um.formats.ids import is_count
from louvain_um.formats.matrices import from_dense, read_as_matrix
from louvain_um.formats.read_options import ReadOptions
from louvain_um.graph.graph import Graph
from louvain_um.graph.limits import MAX_VERTICES


def read(file: GraphFile, options: ReadOptions) -> Graph:
    """Read a MatrixMarket file; `read_graph` documents how entries become edges."""
    layout, field, symmetry = _banner(file)
    if layout == "array":
        return _read_array(file, symmetry, options)
    n, entries, line = _size(file)
    weighted = field != "pattern" and options.weighted is not False
    if options.weighted and not weighted:
        raise file.error("is a pattern matrix without weights; drop weighted=True (--weighted)", 1)
    if options.directed and symmetry == "symmetric":
        raise file.error("is a symmetric matrix; drop directed=True (--directed)", 1)
    shape = scan.TWO_IDS if field == "pattern" else scan.WEIGHT
    if field != "pattern" and not weighted:
        shape = scan.IGNORE_REST
    edges = read_numbers(
        file,
        LineFormat(
            shape=shape,
            min_id=1,
            max_id=n,
            first_line=line + 1,
            expected=entries,
            signed=options.signed,
        ),
    )
    from_zero(file, edges, n)
    if symmetry == "general":
        edges = read_as_matrix(edges, n, options, file.error, 1)
    names = np.arange(1, n + 1, dtype=np.int64)
    return build_graph(file, edges, n, names, options, edges.notes)


def from_zero(file: GraphFile, edges: EdgeList, n: int) -> None:
    """Let the n vertices of a file count from 0 instead of 1."""
    file.check_vertices(n, len(edges.u))
    for ids in (edges.u, edges.v):
        ids -= ids.dtype.type(1)


def _read_array(file: GraphFile, symmetry: str, options: ReadOptions) -> Graph:
    """Read a dense matrix, listed by columns; of a symmetric one its lower half."""
    words, line = file.read_header(1, "rows columns")
    if len(words) != 2 or not all(is_count(word) and len(word) < 10 for word in words):
        raise file.error("is not a size line 'rows columns'; correct it", line)
    rows, columns = map(int, words)
    if rows != columns:
        raise file.error(
            f"the matrix is {rows} × {columns}; an adjacency matrix must be square", line
        )
    check_host_memory(8 * rows * rows, f"a matrix of {rows:,} rows", "use a sparse matrix")
    wanted = rows * rows if symmetry == "general" else rows * (rows + 1) // 2
    text = [t for t in file.read().decode("utf-8", "replace").split("\n") if t[:1] != "%"]
    words = " ".join(text).split()
    if len(words) != wanted:
        raise file.error(f"announces {wanted:,} entries but contains {len(words):,}; correct it")
    try:
        whole = all(word.lstrip("+-").isdigit() for word in words)
        values = np.array([int(word) if whole else float(word) for word in words])
    except (ValueError, OverflowError) as error:
        raise file.error(f"holds what is not a number ({error}); correct it") from None
    if symmetry == "general":
        matrix = values.reshape(rows, rows).T
    else:
        matrix = np.zeros((rows, rows), values.dtype)
        column, row = np.triu_indices(rows)
        matrix[row, column] = matrix[column, row] = values
    return from_dense(matrix, options, np.arange(1, rows + 1, dtype=np.int64))


def _banner(file: GraphFile) -> tuple[str, str, str]:
    """Return layout, field and symmetry from the first line."""
    words = file.read_line().lower().split()
    if len(words) != 5 or words[0] != "%%matrixmarket" or words[1] != "matrix":
        raise file.error(
            "does not begin with '%%MatrixMarket matrix coordinate <field> <symmetry>'; "
            "if it is an edge list, pass format='edges'",
            1,
        )
    _, _, layout, field, symmetry = words
    if layout not in ("coordinate", "array"):
        raise file.error(f"layout {layout!r} is not supported; use coordinate or array", 1)
    if field not in ("pattern", "integer", "real", "double", "unsigned-integer"):
        raise file.error(f"field {field!r} is not supported; use pattern, integer or real", 1)
    if symmetry not in ("general", "symmetric"):
        raise file.error(f"symmetry {symmetry!r} is not supported; use symmetric or general", 1)
    return layout, field, symmetry


def _size(file: GraphFile) -> tuple[int, int, int]:
    """Return vertices, entries and the number of the size line."""
    words, line = file.read_header(1, "rows columns entries")
    if len(words) != 3 or not all(is_count(word) for word in words):
        raise file.error("is not a size line 'rows columns entries'; correct it", line)
    rows, columns, entries = map(int, words)
    if rows != columns:
        raise file.error(
            f"the matrix is {rows} × {columns}; an adjacency matrix must be square", line
        )
    if rows > MAX_VERTICES:
        raise file.error(f"{rows} vertices; at most {MAX_VERTICES} are supported", line)
    return rows, entries, line
