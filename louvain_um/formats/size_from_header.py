"""Size of the graph in a file, from its header alone if the format has one."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from louvain_um.core.archives import array_header
from louvain_um.formats.file_types import format_of
from louvain_um.formats.graph_file import GraphFile, is_stream, open_graph_file, refuse_missing

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
