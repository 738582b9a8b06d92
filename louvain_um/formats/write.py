"""Write graphs to files: each edge once, real weights as they were read, no partial files."""

from __future__ import annotations

import gzip
import io
import json
import math
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple, cast

import numpy as np
from numpy.lib import format as npy
from numpy.typing import DTypeLike, NDArray

from louvain_um.core import atomic_files
from louvain_um.core.headroom import check_host_memory
from louvain_um.core.plain_data import objects
from louvain_um.errors import GraphFormatError, shown
from louvain_um.formats.edge_list.first_lines import is_word
from louvain_um.formats.file_types import (
    ATTRIBUTED,
    SPREADSHEETS,
    SUFFIXES,
    format_of,
    require,
    suffix_of,
)
from louvain_um.formats.labels.table import digits
from louvain_um.formats.labels.text import integers_or_texts, typed, writable
from louvain_um.graph.export import (
    BLOCK_ARCS,
    Attributes,
    distinct,
    edges,
    matrices,
    to_networkx,
    values_of,
    vertex_names,
    vertex_ranges,
)
from louvain_um.graph.graph import Graph
from louvain_um.graph.integer_weights import weights_to_write
from louvain_um.graph.kinds import refuse_directed

OBJECT_BYTES: Final = 900
"""What a vertex or an edge takes at least while it is written by networkx."""

BLOCK_BYTES: Final = 40
"""Of each arc of a block that is written, at least: its numbers, and their text."""

NOT_IN_NAMES: Final = {
    "edges": re.compile(r"\A\Z|[\0-\x08\n\r\x0e-\x1f\x7f]"),
    "graphml": (no_xml := re.compile(r"\A\Z|[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")),
    "gexf": no_xml,
    "cytoscape": re.compile(r"\A\Z"),
    "parquet": re.compile(r"(?!)"),
}
"""What names must not contain in formats that hold them; .npz holds almost any."""

NOT_IN_VALUES: Final = re.compile(r"[\0-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
"""Characters that XML has no place for; U+FFFD is written instead."""

RESERVED: Final = {
    "graphml": ["label"],
    "gexf": ["label", "id", "pid", "parents", "viz", "start", "end", "slices", "spells"],
    "cytoscape": ["label", "id", "name", "value"],
}
"""Names of attributes that mean something else, in the formats that have attributes."""

WRITTEN: Final = ("edges", "matrixmarket", "metis", "npz", "parquet", *RESERVED)
"""Formats that are written, too."""

Writer = Callable[[BinaryIO, Graph, str], tuple[str, ...]]


def write(
    path: str, graph: Graph, kind: str | None, force: bool, attributes: Attributes
) -> tuple[str, ...]:
    """Write a graph; `write_graph` documents it."""
    refuse_directed(graph, "directed edges to write")
    name, held = written_format(path, kind), graph.attributes or {}
    notes: tuple[str, ...] = ()
    if name in RESERVED:
        attributes = {**attributes, **{key: held[key] for key in held if key not in attributes}}
    elif held:
        notes = (f"attributes of vertices are left out; {', '.join(ATTRIBUTED)} keep them",)
    writer = writer_for(path, kind, force, attributes)
    if name != "npz":
        needed = BLOCK_BYTES * min(graph.n_arcs, BLOCK_ARCS)
        check_host_memory(
            needed, f"writing {path}", "write .npz, or use a machine with more memory"
        )
    graph = _with_names_of(graph, name, path)
    with (
        atomic_files.replacing(path, force=force) as part,
        _opened(part, path.lower().endswith(".gz")) as stream,
    ):
        return (*writer(stream, graph, path), *notes)


def written_format(path: str, kind: str | None) -> str:
    """Return the format to write; the error lists the suffixes of those that are written."""
    suffix = suffix_of(path)
    name = kind or (format_of(path) if suffix in SPREADSHEETS else SUFFIXES.get(suffix, ""))
    if name in WRITTEN:
        return name
    known = " ".join(sorted(each for each, of in SUFFIXES.items() if of in WRITTEN))
    problem = f"suffix {suffix!r} is unknown" if suffix else "the name has no suffix"
    problem = f"{name} can be read but not written" if name else problem
    raise GraphFormatError(f"{problem}; use one of {known}, or pass format=…", path)


def writer_for(path: str, kind: str | None, force: bool, attributes: Attributes) -> Writer:
    """Return the writer for a path; raise an error if it cannot be written."""
    name = written_format(path, kind)
    with_attributes: dict[str, Callable[[BinaryIO, Graph, str, Attributes], None]] = {
        "graphml": write_graphml,
        "gexf": write_gexf,
        "cytoscape": write_cytoscape,
    }
    writers: dict[str, Writer] = {
        "edges": _write_edges,
        "matrixmarket": _write_matrixmarket,
        "metis": _write_metis,
        "npz": _write_npz,
        "parquet": _write_parquet,
    }
    if name in with_attributes:
        atomic_files.check_output(path, force=force)
        require("networkx", path)

        def writer(stream: BinaryIO, graph: Graph, path: str) -> tuple[str, ...]:
            with_attributes[name](stream, graph, path, attributes)
            return ()

        return writer
    if attributes:
        raise GraphFormatError(
            f"{name} has no place for communities; use .gexf, .graphml or .cyjs, or write labels "
            "(louvain_um.write_labels)",
            path,
        )
    if name == "parquet" and path.lower().endswith(".gz"):
        raise GraphFormatError("Parquet files are already compressed; drop .gz", path)
    atomic_files.check_output(path, force=force)
    if name == "parquet":
        require("pyarrow.parquet", path)
    return writers[name]


def _with_names_of(graph: Graph, kind: str | None, path: str) -> Graph:
    """Return the graph with names as integers or text that a file of this kind gives back."""
    if graph.names is None or kind not in NOT_IN_NAMES:
        return graph
    names = writable(graph.names, unique=True)
    known = names.tolist()
    if kind == "edges" and names.dtype.kind in "OU":
        numbers = integers_or_texts(known)  # as they are read, where nothing is lost
        if numbers.dtype.kind in "iu" and list(map(str, numbers.tolist())) == known:
            names = numbers
    if kind in ("edges", "parquet") and len(set(known)) < len(known):
        raise GraphFormatError("two vertices have the same name; rename one", path)
    refused = NOT_IN_NAMES[kind].search
    if names.dtype.kind in "OU" and (wrong := next(filter(refused, known), None)) is not None:
        raise GraphFormatError(
            f"a vertex has the name {shown(wrong)}, which this format cannot hold; rename it, or "
            "write .npz or .parquet",
            path,
        )
    return graph.renewed(names=names)


@contextmanager
def _opened(part: Path, compressed: bool) -> Iterator[BinaryIO]:
    """Open a file for writing, gzipped on request."""
    with part.open("wb") as file:
        if not compressed:
            yield file
            return
        # Without a timestamp, the same graph gives the same bytes.
        with gzip.GzipFile("", "wb", compresslevel=6, fileobj=file, mtime=0) as stream:
            yield cast(BinaryIO, stream)


def _write_rows(
    stream: BinaryIO,
    graph: Graph,
    separator: str,
    names: NDArray[Any] | None = None,
    base: int = 0,
    swap: bool = False,
) -> None:
    """Write each edge as a line of ids or names and, if the graph has any, weights."""
    plain = names is None or names.dtype.kind in "iu"
    if names is not None and not plain:
        names = objects([*map(_quoter(separator), names.tolist())])
    for u, v, w in edges(graph):
        a, b = (v, u) if swap else (u, v)
        ends = [a + base, b + base] if names is None else [names[a], names[b]]
        if plain and (w is None or w.dtype == np.int64):
            columns = ends if w is None else [*ends, w]
            ends_of_fields = [separator.encode()] * (len(columns) - 1) + [b"\n"]
            stream.write(digits(columns, ends_of_fields))
            continue
        words = [map(str, part.tolist()) for part in ends]
        if w is not None:
            words.append(map(repr, w.tolist()))
        lines = "\n".join(map(separator.join, zip(*words, strict=True)))
        if lines:
            stream.write(f"{lines}\n".encode())


def _quoter(separator: str) -> Callable[[str], str]:
    """Return a function that quotes names which a reader would split, skip or take for numbers."""

    def quote(text: str) -> str:
        plain = text[:1].isalpha() and is_word(text) and text == text.strip()
        if plain and separator not in text and '"' not in text:
            return text
        return '"' + text.replace('"', '""') + '"'

    return quote


def _write_edges(stream: BinaryIO, graph: Graph, path: str) -> tuple[str, ...]:
    separator = "," if path.lower().removesuffix(".gz").endswith(".csv") else "\t"
    names = graph.names
    # An edge list does not say whether ids of isolated vertices start at 0 or 1.
    base = 1 if _one_based(graph) and not _isolated_note(graph) else 0
    if base:
        names = None
    notes: tuple[str, ...] = ()
    # Other programs take a comment in CSV for data; only a graph with isolated vertices needs it.
    titled = separator == "," and not (names is None and _isolated_note(graph))
    if names is None and not titled:
        stream.write(f"# Nodes: {graph.n_vertices} Edges: {graph.n_edges}\n".encode())
    elif names is not None:
        notes = _isolated_note(graph)
    columns = ["source", "target", "weight"][: 3 if graph.weighted else 2]
    if titled or (names is not None and names.dtype.kind not in "iu"):
        stream.write(f"{separator.join(columns)}\n".encode())
    elif graph.weighted:
        # Otherwise large integer weights could be read as times.
        stream.write(f"# {' '.join(columns)}\n".encode())
    _write_rows(stream, graph, separator, names, base)
    return notes


def _write_matrixmarket(stream: BinaryIO, graph: Graph, path: str) -> tuple[str, ...]:
    kind = "pattern"
    if graph.weighted:
        kind = "integer" if graph.scale == 1.0 else "real"
    n = graph.n_vertices
    stream.write(f"%%MatrixMarket matrix coordinate {kind} symmetric\n".encode())
    stream.write(f"{n} {n} {graph.n_edges}\n".encode())
    # The format stores the lower half: the row is the larger id.
    _write_rows(stream, graph, " ", None, 1, swap=True)
    return _numbering_note(graph, "MatrixMarket")


def _write_metis(stream: BinaryIO, graph: Graph, path: str) -> tuple[str, ...]:
    if np.any(graph.loops):
        first = int(np.flatnonzero(graph.loops)[0])
        raise GraphFormatError(
            f"METIS has no self-loops, but vertex {first} has one; write .mtx or .npz", path
        )
    code = " 001" if graph.weighted else ""
    stream.write(f"{graph.n_vertices} {graph.n_arcs // 2}{code}\n".encode())
    decimals = weights_to_write(graph)
    for start, stop in vertex_ranges(graph):
        low, high = int(graph.offsets[start]), int(graph.offsets[stop])
        targets, weights = graph.arcs(low, high)
        columns = targets.astype(np.int64) + 1
        starts = graph.offsets[start : stop + 1] - low
        if weights is None:
            stream.write(_lists(digits([columns], [b" "]), starts))
        elif graph.scale == 1.0:
            pairs = [columns, weights]
            stream.write(_lists(digits(pairs, [b" ", b" "]), 2 * starts))
        else:
            real = decimals(weights.astype(np.int64)).tolist()
            words = [f"{b} {w!r}" for b, w in zip(columns.tolist(), real, strict=True)]
            lines = [" ".join(words[a:b]) for a, b in pairwise(starts.tolist())]
            stream.write(("\n".join(lines) + "\n").encode())
    notes = _numbering_note(graph, "METIS")
    if graph.scale != 1.0:
        notes += ("METIS programs read integer weights only; these are real",)
    return notes


def _lists(text: bytes, starts: NDArray[np.int64]) -> bytes:
    """Return numbers, each followed by a blank, as lines; empty lists are empty lines."""
    out = np.frombuffer(text, np.uint8).copy()
    blanks = np.flatnonzero(out == ord(" "))
    full = starts[1:] > starts[:-1]
    out[blanks[starts[1:][full] - 1]] = ord("\n")
    # An empty list's line follows the number before it.
    ends = np.concatenate(([0], blanks + 1))
    return np.insert(out, ends[starts[1:][~full]], ord("\n")).tobytes()


def _write_npz(stream: BinaryIO, graph: Graph, path: str) -> tuple[str, ...]:
    arrays = _rows_as_saved(graph) or _edges_as_saved(graph)
    if graph.names is not None:
        names = graph.names
        if names.dtype == object and (names := typed(names.tolist())).dtype == object:
            if any(str(name).endswith("\0") for name in names):
                raise GraphFormatError("a name ends in NUL, which .npz drops; rename it", path)
            names = np.array(names.tolist())
        arrays["names"] = names
    if not isinstance(stream, gzip.GzipFile):
        _save(stream, arrays)
    else:
        # Writing a zip needs seeking, which a gzip stream lacks.
        whole = io.BytesIO()
        _save(whole, arrays)
        stream.write(whole.getbuffer())
    return ()


class StreamedArray(NamedTuple):
    """An array that is written piece by piece."""

    size: int
    dtype: DTypeLike
    parts: Iterable[NDArray[Any]]


def _save(stream: BinaryIO, arrays: Mapping[str, Any]) -> None:
    """Write what `numpy.savez` writes."""
    with zipfile.ZipFile(stream, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                if not isinstance(array, StreamedArray):
                    npy.write_array(file, np.asanyarray(array))
                    continue
                empty = np.empty(0, array.dtype)
                header = npy.header_data_from_array_1_0(empty) | {"shape": (array.size,)}
                npy.write_array_header_1_0(file, header)
                for part in array.parts:
                    file.write(np.ascontiguousarray(part, array.dtype).data)


def _edges_as_saved(graph: Graph) -> dict[str, Any]:
    """Return the arrays that hold each edge once."""
    arrays: dict[str, Any] = {"n": np.int64(graph.n_vertices)}
    for place, name in enumerate("uvw" if graph.weighted else "uv"):
        real = name == "w" and graph.scale != 1.0
        dtype = np.uint32 if name != "w" else np.float64 if real else np.int64
        arrays[name] = StreamedArray(graph.n_edges, dtype, map(itemgetter(place), edges(graph)))
    return arrays


def _rows_as_saved(graph: Graph) -> dict[str, Any] | None:
    """Return the arrays of `scipy.sparse.save_npz`, which are read fastest; None for edges."""
    # A matrix distinguishes neither weights that are all 1 from none, nor edges from loops that
    # count twice.
    n, loops = graph.n_vertices, graph.loops
    if graph.kind != "undirected" or not (
        any(bool(np.any(w != 1)) for w in _weights(graph))
        if graph.weighted
        else int(loops.max(initial=0)) <= 1
    ):
        return None
    entries = graph.n_arcs + int(np.count_nonzero(loops))
    integer = np.int32 if max(n, entries) < 2**31 else np.int64
    starts = graph.offsets + np.concatenate(([0], np.cumsum(loops != 0)))
    dtype = np.int64 if graph.scale == 1.0 else np.float64
    pattern = matrices(graph, vertex_ranges(graph), values=False)
    rows = matrices(graph, vertex_ranges(graph))
    return {
        "format": np.array(b"csr"),
        "shape": np.array((n, n), np.int64),
        "indptr": starts.astype(integer, copy=False),
        "indices": StreamedArray(entries, integer, (part.indices for part in pattern)),
        "data": StreamedArray(entries, dtype, (part.data for part in rows))
        if graph.weighted
        else np.ones(entries, np.bool_),
    }


def _weights(graph: Graph) -> Iterator[NDArray[Any]]:
    """Yield the weights of a weighted graph, a range of arcs at a time."""
    for begin in range(0, graph.n_arcs, BLOCK_ARCS):
        yield cast(NDArray[Any], graph.arcs(begin, begin + BLOCK_ARCS)[1])


def _write_parquet(stream: BinaryIO, graph: Graph, path: str) -> tuple[str, ...]:
    from louvain_um.formats.arrow import VERTICES_KEY

    arrow, parquet = require("pyarrow", path), require("pyarrow.parquet", path)
    metadata = {VERTICES_KEY: str(graph.n_vertices).encode()}
    notes: tuple[str, ...] = ()
    names: Any = None
    if graph.names is not None:
        names = graph.names
        if names.dtype.kind in "iu":
            names = names.astype(names.dtype.newbyteorder("="), copy=False)
        else:
            names = np.array([str(name) for name in names.tolist()], dtype=object)
        if not _one_based(graph):
            metadata, notes = {}, _isolated_note(graph)

    def table(u: NDArray[Any], v: NDArray[Any], w: NDArray[Any] | None) -> Any:
        u, v = u.astype(np.uint32), v.astype(np.uint32)
        columns = (
            {"source": u, "target": v}
            if names is None
            else {"source": names[u], "target": names[v]}
        )
        if w is not None:
            columns["weight"] = w
        return arrow.table(columns).replace_schema_metadata(metadata)

    # The types are those of a loop of the first vertex: that of no texts is unknown.
    first = np.arange(min(1, graph.n_vertices))
    weight = np.ones(len(first), np.int64 if graph.scale == 1.0 else np.float64)
    schema = table(first, first, weight if graph.weighted else None).schema
    with parquet.ParquetWriter(stream, schema) as writer:
        for block in edges(graph):
            writer.write_table(table(*block).cast(schema))
    return notes


def _one_based(graph: Graph) -> bool:
    """Return whether vertices are named 1 … n, as in formats that count from 1."""
    names = graph.names
    return (
        names is not None
        and names.dtype.kind in "iu"
        and np.array_equal(names, np.arange(1, len(names) + 1))
    )


def _numbering_note(graph: Graph, kind: str) -> tuple[str, ...]:
    if _one_based(graph):
        return ()
    if graph.names is None:
        last = graph.n_vertices
        if last == 0:
            return ()
        return (f"{kind} counts from 1: vertices 0 … {last - 1} are written as 1 … {last}",)
    return (f"{kind} stores no names: vertices are numbered 1 … {graph.n_vertices}",)


def _isolated_note(graph: Graph) -> tuple[str, ...]:
    """Return a note about isolated vertices, whose names an edge list cannot keep."""
    isolated = int(np.count_nonzero((np.diff(graph.offsets) == 0) & (graph.loops == 0)))
    if not isolated:
        return ()
    kept = ".npz, .graphml, .gexf and .cyjs keep them"
    return (f"{isolated} isolated vertices have names and no edges, and are left out; {kept}",)


def write_gexf(stream: BinaryIO, graph: Graph, path: str, attributes: Attributes) -> None:
    """Write GEXF, for Gephi."""
    writer = require("networkx.readwrite.gexf", path).GEXFWriter(prettyprint=False)
    writer.add_graph(_labelled(graph, path, attributes, "gexf"))
    for meta in writer.xml.iter("meta"):
        # The date of writing: the same graph gives the same bytes.
        meta.attrib.pop("lastmodifieddate", None)
    writer.write(stream)


def write_graphml(stream: BinaryIO, graph: Graph, path: str, attributes: Attributes) -> None:
    """Write GraphML, for igraph, yEd, Gephi and others."""
    networkx = require("networkx", path)
    text = io.BytesIO()
    labelled = _labelled(graph, path, attributes, "graphml")
    networkx.write_graphml_xml(labelled, text, prettyprint=False)
    # Readers of XML take a carriage return for a newline unless it is escaped.
    stream.write(text.getvalue().replace(b"\r", b"&#13;"))


def write_cytoscape(stream: BinaryIO, graph: Graph, path: str, attributes: Attributes) -> None:
    """Write the JSON of Cytoscape and Cytoscape.js."""
    found = require("networkx", path).cytoscape_data(
        _labelled(graph, path, attributes, "cytoscape"), name="label"
    )
    stream.write(json.dumps(found, ensure_ascii=False).encode() + b"\n")


def _labelled(graph: Graph, path: str, attributes: Attributes, kind: str) -> Any:
    """Return the graph with vertices 0 … n − 1, labelled with their names or ids."""
    needed = OBJECT_BYTES * (graph.n_vertices + graph.n_edges)
    check_host_memory(needed, f"writing {path}", "write .csv, .parquet or .npz")
    names = vertex_names(graph)
    plain = [name if isinstance(name, str | int) else str(name) for name in names]
    # A label is of one type in these formats.
    typed = plain if len({type(name) for name in plain}) < 2 else [str(name) for name in plain]
    numbered = graph.renewed(names=None)
    titles = distinct([NOT_IN_VALUES.sub("\ufffd", str(key)) for key in attributes], RESERVED[kind])
    columns = map(_of_one_type, values_of(graph, attributes).values())
    named = dict(zip(titles, columns, strict=True))
    return to_networkx(numbered, {"label": objects(typed), **named})


def _of_one_type(values: list[Any]) -> NDArray[Any]:
    """Return values as whole or real numbers or truth values if all are, else as texts."""
    types = {type(value) for value in values if value is not None}
    there = [value for value in values if value is not None]
    kept: Callable[[Any], Any]
    if types == {bool} or (types == {int} and all(-(2**63) <= each < 2**63 for each in there)):
        return objects(values)
    if types <= {int, float} and float in types and all(map(math.isfinite, there)):
        kept = float
    else:
        kept = _text
    return objects([None if value is None else kept(value) for value in values])


def _text(value: Any) -> str:
    return NOT_IN_VALUES.sub("\ufffd", str(value))
