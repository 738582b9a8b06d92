"""Pajek's networks (``.net``) and UCINET's DL: sections of vertices, labels and edges."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import numpy as np

from louvain_um.errors import Uncertain
from louvain_um.formats.graph_file import GraphFile
from louvain_um.formats.ids import is_count, numbers_or_texts
from louvain_um.formats.networks import Network, from_file
from louvain_um.formats.parse_errors import NUMBER, excerpt
from louvain_um.formats.read_options import ReadOptions
from louvain_um.graph.graph import Graph
from louvain_um.graph.limits import MAX_VERTICES

Lines = Iterator[tuple[int, str]]


def numbered_lines(file: GraphFile, comments: str = "%") -> Lines:
    """Yield the lines that are neither empty nor comments, and their numbers."""
    text = file.read().decode("utf-8", "surrogateescape")
    for number, line in enumerate(re.split("\r\n|\n|\r", text), 1):
        stripped = line.strip()
        if stripped and not stripped.startswith(tuple(comments)):
            try:
                stripped.encode()
            except UnicodeEncodeError:
                raise file.error("is not UTF-8 text; convert it (iconv -t utf-8)", number) from None
            yield number, stripped


def read(file: GraphFile, options: ReadOptions) -> Graph:
    """Read a network of Pajek: arcs are directed, edges are not; labels name the vertices."""
    network = Network()
    n = -1
    section = ""
    rows: list[list[str]] = []
    for line, text in numbered_lines(file):
        if text.startswith("*"):
            words = text[1:].split()
            section = words[0].lower() if words else ""
            if section == "vertices":
                if n >= 0:
                    network.notes.append(Uncertain("the first network of the file is read"))
                    break
                n = _count(file, words[1] if len(words) > 1 else "", "*Vertices N", line)
                network.nodes = {vertex: {} for vertex in range(1, n + 1)}
                file.check_vertices(n, n)
            elif section in ("partition", "vector", "permutation", "cluster", "hierarchy"):
                break
            elif section not in ("network", "arcs", "edges", "arcslist", "edgeslist", "matrix"):
                raise file.error(
                    f"section {text[:30]!r} of Pajek is not read; keep *Vertices, *Edges and *Arcs",
                    line,
                )
            continue
        words = _words(text)
        if section == "vertices":
            vertex = _vertex(file, words[0], n, line)
            if len(words) > 1:
                network.nodes[vertex] = {"label": words[1]}
        elif section in ("arcs", "edges"):
            if len(words) < 2:
                raise file.error("one field, but an edge needs two vertices; add the other", line)
            source, target = (_vertex(file, word, n, line) for word in words[:2])
            if len(words) > 2 and not NUMBER.fullmatch(words[2]):
                raise file.error(f"weight {words[2]!r} is not numeric; correct it", line)
            data = {"weight": words[2]} if len(words) > 2 else {}
            network.add_edge(source, target, data, directed=section == "arcs")
        elif section in ("arcslist", "edgeslist"):
            first, *others = (_vertex(file, word, n, line) for word in words)
            for other in others:
                network.add_edge(first, other, {}, directed=section == "arcslist")
        elif section == "matrix":
            rows.append(words)
        elif section != "network":
            raise file.error("does not begin with *Vertices; pass its format (format=…)", line)
    if n < 0:
        raise file.error("has no section *Vertices; write it again")
    if rows:
        labels = [network.nodes[v].get("label", v) for v in network.nodes]
        return matrix_graph(file, rows, labels, options)
    return from_file(network, options)


def _words(text: str) -> list[str]:
    """Return the words of a line, those in quotes whole."""
    if '"' not in text:
        return text.split()
    found = re.findall(r'"((?:[^"\\]|\\.)*)"|(\S+)', text)
    return [quoted.replace('\\"', '"') if quoted or not word else word for quoted, word in found]


def _count(file: GraphFile, word: str, remedy: str, line: int) -> int:
    if not is_count(word):
        raise file.error(f"the number of vertices is missing; write {remedy}", line)
    n = int(word)
    if n > MAX_VERTICES:
        raise file.error(f"{n} vertices; at most {MAX_VERTICES} are supported", line)
    return n


def _vertex(file: GraphFile, word: str, n: int, line: int) -> int:
    if not is_count(word) or not 1 <= int(word) <= n:
        raise file.error(f"{excerpt(word.encode())} is not a vertex 1 … {n}; correct it", line)
    return int(word)


def matrix_graph(
    file: GraphFile, rows: list[list[str]], labels: list[object], options: ReadOptions
) -> Graph:
    """Build the graph of a square matrix of numbers with a label for each row."""
    from louvain_um.formats.matrices import from_labelled

    n = len(labels)
    if len(rows) != n or any(len(row) != n for row in rows):
        raise file.error(f"the matrix is not {n} × {n}, as its vertices are; correct it")
    try:
        cells = [float(cell) if cell else 0.0 for row in rows for cell in row]
    except ValueError as error:
        raise file.error(f"the matrix holds what is not a number ({error}); correct it") from None
    matrix = np.array(cells, np.float64).reshape(n, n)
    if np.isfinite(matrix).all() and (matrix == np.floor(matrix)).all():
        matrix = matrix.astype(np.int64) if np.abs(matrix).max(initial=0) < 2**53 else matrix
    return from_labelled(matrix, numbers_or_texts(labels), options)


def read_dl(file: GraphFile, options: ReadOptions) -> Graph:
    """Read a DL file of UCINET: a list of edges or of neighbours, or a whole matrix."""
    lines = numbered_lines(file, comments="")
    header, labels, embedded, first = _dl_header(file, lines)
    n = _count(file, header.get("n", "0"), "n=N", first)
    form = header.get("format", "fullmatrix").lower()
    if form == "fullmatrix":
        rows = [_dl_words(text) for _, text in lines]
        if embedded and rows:
            labels, rows = rows[0], [row[1:] for row in rows[1:]]
        flat = [cell for row in rows for cell in row]
        names: list[object] = [*labels] or [*range(1, n + 1)]
        rows = [flat[i : i + len(names)] for i in range(0, len(flat), len(names) or 1)]
        return matrix_graph(file, rows, names, options)
    if form not in ("edgelist1", "nodelist1"):
        raise file.error(
            f"format {form!r} of DL is not read, only edgelist1, nodelist1 and fullmatrix; export "
            "one of these",
            first,
        )
    network = Network()
    if not embedded:
        network.nodes = {k: {} for k in range(1, n + 1)}
        for place, label in enumerate(labels, 1):
            network.nodes[place] = {"label": label}
    vertex: Callable[[str, int], int | str] = (
        (lambda word, line: word) if embedded else lambda word, line: _vertex(file, word, n, line)
    )
    for line, text in lines:
        words = _dl_words(text)
        if form == "nodelist1":
            for other in words[1:]:
                network.add_edge(vertex(words[0], line), vertex(other, line), {})
            continue
        if len(words) < 2 or (len(words) > 2 and not NUMBER.fullmatch(words[2])):
            raise file.error("is not an edge 'vertex vertex [weight]'; correct it", line)
        data = {"weight": words[2]} if len(words) > 2 else {}
        network.add_edge(vertex(words[0], line), vertex(words[1], line), data)
    return from_file(network, options)


def _dl_words(text: str) -> list[str]:
    if '"' in text:
        return _words(text.replace(",", " "))
    return re.split(r"[\s,]+", text.strip(", \t"))


def _dl_header(file: GraphFile, lines: Lines) -> tuple[dict[str, str], list[str], bool, int]:
    """Return the settings of a DL file, its labels, whether these are in the data, and a line."""
    settings: dict[str, str] = {}
    labels: list[str] = []
    embedded = within = False
    line = 1
    for line, text in lines:
        lower = text.lower()
        if lower.startswith("data"):
            return settings, labels, embedded, line
        if within and not re.match(r"labels\s+embedded", lower):
            labels += _dl_words(text)
            continue
        if re.match(r"labels\s+embedded", lower):
            embedded, within = True, False
            continue
        if lower.startswith("labels"):
            within = True
            labels += _dl_words(rest) if (rest := text.partition(":")[2].strip()) else []
            continue
        words = re.sub(r"\s*=\s*", "=", re.sub("(?i)^dl", "", text)).replace(",", " ")
        for key, value in (word.split("=", 1) for word in words.split() if "=" in word):
            settings[key.lower()] = value
        if "labels embedded" in lower:
            embedded = True
    if settings and not is_count(settings.get("n", "0")):
        raise file.error("the number of vertices is not a number; write it after 'n ='", line)
    raise file.error("has no line 'data:'; write it again", line)
