"""Text files whose lines are not plain edges: DIMACS, LGL, SIF, lists of neighbours, matrices."""

from __future__ import annotations

import ast
import csv
import re
from dataclasses import replace
from typing import Any

import numpy as np

from louvain_um.formats.edge_list.edges import build_graph, read_numbers
from louvain_um.formats.edge_list.scan import IGNORE_REST, WEIGHT, LineFormat
from louvain_um.formats.graph_file import BLOCK_BYTES, GraphFile
from louvain_um.formats.ids import is_count
from louvain_um.formats.matrices import read_as_matrix
from louvain_um.formats.matrixmarket import from_zero
from louvain_um.formats.networks import Network, from_file
from louvain_um.formats.pajek import matrix_graph, numbered_lines
from louvain_um.formats.parse_errors import NUMBER, refuse_brackets
from louvain_um.formats.read_options import ReadOptions
from louvain_um.formats.two_modes import is_incidence
from louvain_um.graph.graph import Graph

HEAD = 1 << 16
"""Bytes in which a kind of file is recognised."""

DIMACS_PROBLEM = re.compile(r"p\s+([a-z]+)\s+(\d{1,18})\s+(\d{1,18})(?:\s.*)?", re.IGNORECASE)

MARKED = re.compile(rb"(?m)^[ \t]*(?:([ae])(?=[ \t])|[a-z](?=[ \t\r\n]))", re.IGNORECASE)
"""The marker of a record in DIMACS: edges and arcs, or else what is skipped."""

NO_LITERAL = re.compile(r"(?<=[:,\s-])(?:inf|nan)(?=\s*[,}])")
"""Numbers that Python writes without a literal for them."""

WITH_DICT = re.compile(r"[^{]*[^{\s]\S*\s*\{.*\}")
"""An edge as networkx writes it with its attributes."""


def recognised(file: GraphFile) -> str:
    """Return the format of a text whose suffix says that it is a list of edges."""
    head = file.peek(HEAD)
    complete = len(head) < HEAD
    text = (head if complete else head[: head.rfind(b"\n") + 1]).decode("utf-8", "replace")
    lines = [line.rstrip("\r") for line in text.split("\n") if line.strip()]
    if not lines:
        return "edges"
    first = lines[0].strip().lower()
    if re.match(r"\*(vertices|network)\b", first):
        return "pajek"
    if re.match(r"dl\s+n\s*=|dl\s*$", first):
        return "dl"
    if first.startswith(("c ", "p ")) and any(map(DIMACS_PROBLEM.fullmatch, map(str.strip, lines))):
        return "dimacs"
    comments = [line for line in lines if line.lstrip().startswith("#")]
    data = [line for line in lines if not line.lstrip().startswith(("#", "%", "//"))]
    if not data:
        return "edges"
    if {line.split()[0] for line in data} in ({"v", "e"}, {"t", "v", "e"}):
        raise file.error(
            "holds records of vertices (v) and edges (e); keep those of edges: grep '^e' FILE"
        )
    if any(re.match(r"\s*# GMT ", comment) for comment in comments):
        return "adjacency"
    if all(line.rstrip().endswith("}") and WITH_DICT.fullmatch(line.strip()) for line in data):
        return "networkx"
    if len(comments) > 1 and _is_lgl(lines):
        return "lgl"
    found = _labelled(lines, complete=complete)
    return found or "edges"


def _is_lgl(lines: list[str]) -> bool:
    """Return whether lines ``# name`` each begin a list of neighbours that they are themselves."""
    if not lines[0].startswith("#"):
        return False
    heads = [line[1:].split() for line in lines if line.startswith("#")]
    rows = [line.split() for line in lines if not line.startswith("#")]
    if any(len(words) != 1 for words in heads) or not 1 <= max(map(len, rows), default=0) <= 2:
        return False
    if any(len(row) == 2 and not NUMBER.fullmatch(row[1]) for row in rows):
        return False
    names = {words[0] for words in heads}
    return len(names) == len(heads) and bool(names & {row[0] for row in rows})


def _rows(lines: list[str]) -> list[list[str]]:
    """Return the fields of lines that may be a matrix with labels; none if no character fits."""
    for separator in "\t;, ":
        if separator in lines[0] and all(separator in line for line in lines[:8]):
            return [
                [cell.strip() for cell in row]
                for row in csv.reader(lines, delimiter=separator, skipinitialspace=separator == " ")
            ]
    return []


def _labelled(lines: list[str], *, complete: bool) -> str:
    """Return "matrix" or "incidence" for a table of numbers whose rows and columns have labels."""
    try:
        first = _rows(lines[:2])
        if len(first) < 2 or len(first[1]) < 3 or len(lines) < 3:
            return ""
        if not all(NUMBER.fullmatch(cell) or not cell for cell in first[1][1:]):
            return ""
        rows = _rows(lines)
    except csv.Error:
        return ""
    if len(rows) < 3:
        return ""
    titles, body = rows[0], rows[1:]
    width = len(body[0])
    if any(len(row) != width for row in body) or len(titles) not in (width, width - 1):
        return ""
    corner = titles[0] if len(titles) == width else ""
    bare = len(titles) == width and not corner  # an empty id would be an error
    titles = titles[-(width - 1) :]
    labels = [row[0] for row in body]
    cells = [cell for row in body for cell in row[1:]]
    if NUMBER.fullmatch(corner) or len(set(labels)) < len(labels):
        return ""
    if not all(NUMBER.fullmatch(cell) or not cell for cell in cells):
        return ""
    words = not any(map(NUMBER.fullmatch, labels))
    whole = len(labels) == len(titles) if complete else len(labels) <= len(titles)
    if whole and (words or bare or len(titles) > 3) and set(labels) <= set(titles):
        return "matrix"
    numbers = np.array([float(cell or 0) for cell in cells])
    return "incidence" if is_incidence([*filter(None, [corner]), *titles], labels, numbers) else ""


def refuse_incidence(file: GraphFile) -> None:
    """Raise the error for a table of zeros and ones that is not asked for as one."""
    raise file.error(
        "seems to be an incidence table, with a number for each row and column; pass "
        "format='incidence' (--format incidence) to read each as an edge, or name the columns "
        "with source=… and target=…"
    )


def read_matrix(file: GraphFile, options: ReadOptions) -> Graph:
    """Read a square matrix of numbers whose rows and columns have the same labels."""
    _, labels, titles, cells = _table(file)
    if set(labels) != set(titles):
        raise file.error(
            f"rows and columns have different labels ({labels[0]!r}, {titles[0]!r}); pass "
            "format='incidence' (--format incidence) if they are different kinds of vertices"
        )
    place = {title: i for i, title in enumerate(titles)}
    order = [place[label] for label in labels]
    rows = [[row[i] for i in order] for row in cells]
    return matrix_graph(file, rows, [*labels], options)


def read_incidence(file: GraphFile, options: ReadOptions) -> Graph:
    """Read a table of numbers: each that is not 0 joins the vertices of its row and column."""
    from louvain_um.formats.tables import Sides, from_ids

    corner, labels, titles, cells = _table(file)
    u, v, w = [], [], []
    for label, row in zip(labels, cells, strict=True):
        for title, cell in zip(titles, row, strict=True):
            try:
                value = float(cell or 0)
            except ValueError:
                raise file.error(f"{cell[:40]!r} is not a number; correct it") from None
            if value:
                u.append(label)
                v.append(title)
                w.append(value)
    weights = None if options.weighted is False or set(w) <= {1.0} else np.array(w)
    if weights is not None and (np.abs(weights) < 2.0**53).all() and not (weights % 1).any():
        weights = weights.astype(np.int64)
    ends = np.array(u, object), np.array(v, object)
    sides = Sides((corner or "row", "column"), declared=True)
    return from_ids(*ends, weights, options, sides=sides)


def _table(file: GraphFile) -> tuple[str, list[str], list[str], list[list[str]]]:
    """Return the corner of a table with labels, the labels of rows and columns, and its cells."""
    text = file.read().decode("utf-8", "replace")
    lines = [line.rstrip("\r") for line in text.split("\n") if line.strip()]
    lines = [line for line in lines if not line.startswith(("#", "%"))]
    try:
        rows = _rows(lines) if lines else []
    except csv.Error as error:
        raise file.error(f"is not a table ({error}); check its quotes") from None
    width = len(rows[1]) if len(rows) > 1 else 0
    if width < 2 or len(rows[0]) not in (width, width - 1):
        raise file.error("is not a table with labels for its rows and columns; correct it")
    for number, row in enumerate(rows[1:], 2):
        if len(row) != width:
            raise file.error(f"{len(row)} fields instead of {width}; correct the line", number)
    corner = rows[0][0] if len(rows[0]) == width else ""
    titles = rows[0][-(width - 1) :]
    return corner, [row[0] for row in rows[1:]], titles, [row[1:] for row in rows[1:]]


class _Records:
    """A DIMACS file whose markers of edges are blanks and whose other records are comments."""

    def __init__(self, file: GraphFile) -> None:
        self.blocks = file.blocks(BLOCK_BYTES)
        self.rest = b""

    def read(self, size: int = -1) -> bytes:
        """Return up to `size` bytes; fewer only at the end."""
        while size < 0 or len(self.rest) < size:
            block = next(self.blocks, None)
            if block is None:
                break
            self.rest += MARKED.sub(lambda found: b" " if found[1] else b"#", block.tobytes())
        taken = self.rest if size < 0 else self.rest[:size]
        self.rest = self.rest[len(taken) :]
        return taken


def read_dimacs(file: GraphFile, options: ReadOptions) -> Graph:
    """Read a graph of DIMACS: edges ``e u v [w]``, or arcs ``a u v w`` in both directions."""
    head = file.peek(HEAD).decode("utf-8", "replace").split("\n")
    problem = next(filter(None, (DIMACS_PROBLEM.fullmatch(line.strip()) for line in head)), None)
    edge = next((line.split() for line in head if re.match(r"\s*[aeAE]\s", line)), None)
    if problem is None or edge is None:
        what = "no line 'p edge N M' or 'p sp N M'" if problem is None else "no edges"
        raise file.error(f"is DIMACS, but has {what} in its first lines; correct it")
    arcs, n = edge[0].lower() == "a", int(problem[2])
    weighted = len(edge) > 3 and options.weighted is not False
    if options.weighted and not weighted:
        raise file.error("has no weights; drop weighted=True (--weighted)")
    records: Any = _Records(file)
    text = GraphFile(records, file.name, trusted=file.trusted)
    edges = read_numbers(
        text,
        LineFormat(
            shape=WEIGHT if weighted else IGNORE_REST, min_id=1, max_id=n, signed=options.signed
        ),
    )
    from_zero(file, edges, n)
    if arcs:
        edges = read_as_matrix(edges, n, options, file.error)
    elif options.directed:
        raise file.error("has undirected edges; drop directed=True (--directed)")
    return build_graph(file, edges, n, np.arange(1, n + 1), options, edges.notes)


def read_lgl(file: GraphFile, options: ReadOptions) -> Graph:
    """Read LGL: lines ``# name``, each followed by its neighbours and their weights."""
    network = Network()
    vertex: str | None = None
    for line, text in numbered_lines(file, comments=""):
        words = text.split()
        if words[0].startswith("#"):
            vertex = text[1:].strip()
            network.nodes.setdefault(vertex, {})
            continue
        if vertex is None:
            raise file.error("a neighbour comes before the first line '# name'; correct it", line)
        if len(words) > 2 or (len(words) == 2 and not NUMBER.fullmatch(words[1])):
            raise file.error("is not a line 'neighbour [weight]'; correct it", line)
        network.add_edge(vertex, words[0], {"weight": words[1]} if len(words) == 2 else {})
    return from_file(network, options)


def read_sif(file: GraphFile, options: ReadOptions) -> Graph:
    """Read SIF of Cytoscape: ``source relation target target …``, or a vertex alone."""
    network = Network()
    lines = [*numbered_lines(file, comments="")]
    separator = "\t" if any("\t" in text for _, text in lines) else None
    for line, text in lines:
        words = [word.strip() for word in text.split(separator)]
        words = [word for word in words if word]
        if len(words) == 2:
            raise file.error("has a relation and no target; add it, or remove the relation", line)
        network.nodes.setdefault(words[0], {})
        for target in words[2:]:
            network.add_edge(words[0], target, {})
    options = options if options.duplicates else replace(options, duplicates="once")
    return from_file(network, options)


def read_adjacency(file: GraphFile, options: ReadOptions) -> Graph:
    """Read a list of neighbours: a vertex and its neighbours on each line, as networkx writes."""
    network = Network()
    lines = [*numbered_lines(file, comments="#%")]
    if any(text.endswith("}") for _, text in lines):
        return _read_multiline(file, lines, options)
    separator = next((s for s in "\t;," if any(s in text for _, text in lines)), None)
    rows = [[word.strip().rstrip(":") for word in text.split(separator)] for _, text in lines]
    refuse_brackets(file, rows, lines[0][0] if lines else 0)
    for first, *others in rows:
        network.nodes.setdefault(first, {})
        for other in filter(None, others):
            network.add_edge(first, other, {})
    options = options if options.duplicates else replace(options, duplicates="once")
    return from_file(network, options)


def _read_multiline(file: GraphFile, lines: list[tuple[int, str]], options: ReadOptions) -> Graph:
    """Read networkx's list of neighbours with attributes: a vertex and its degree, then these."""
    network = Network()
    left, vertex = 0, ""
    for line, text in lines:
        if left:
            name, data = _with_dict(file, text, line, 1)
            network.add_edge(vertex, name[0], data)
            left -= 1
            continue
        vertex, _, degree = text.rpartition(" ")
        if not vertex or not is_count(degree):
            raise file.error("is not a line 'vertex degree'; correct it", line)
        left = int(degree)
        network.nodes.setdefault(vertex, {})
    return from_file(network, options)


def read_networkx(file: GraphFile, options: ReadOptions) -> Graph:
    """Read edges as networkx writes them by default: two ids and a dict of attributes."""
    network = Network()
    for line, text in numbered_lines(file, comments="#%"):
        (source, target), data = _with_dict(file, text, line, 2)
        network.add_edge(source, target, data)
    return from_file(network, options)


def _with_dict(file: GraphFile, text: str, line: int, ids: int) -> tuple[list[str], dict[str, Any]]:
    """Return the ids and the attributes of a line."""
    before, brace, inside = text.partition("{")
    before = before.strip(" ")
    separator = before[-1:] if before[-1:] in ",;|\t:" and before[-1:] else None
    words = [word.strip() for word in before.rstrip(separator or " ").split(separator)]
    try:
        data = ast.literal_eval(brace + _finite(inside)) if brace else {}
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        data = None
    if not isinstance(data, dict) or len(words) != ids or not all(words):
        raise file.error(
            "is not a line of ids and a dict of attributes such as {'weight': 2}; correct it, or "
            "pass its format (format=…)",
            line,
        )
    return words, data


def _finite(text: str) -> str:
    """Return a dict's text with infinities and NaN, which are names to Python, as literals."""
    return NO_LITERAL.sub(lambda found: "1e999" if found[0] == "inf" else "None", text)
