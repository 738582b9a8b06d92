"""NumPy archives: a SciPy sparse matrix, or arrays ``u``, ``v`` and optionally ``n``, ``w``.

A matrix that is not compressed is read by all threads. Its checksums are not compared if its rows
are those of an undirected graph without loops: damage would make them asymmetric.
"""

from __future__ import annotations

import io
import os
import struct
import zipfile
from typing import Any

import numpy as np
from numpy.lib import format as npy
from scipy.sparse import csr_array, load_npz

from louvain_um.core import parallel
from louvain_um.core.plain_data import array_header
from louvain_um.errors import GraphError, GraphFormatError, HostMemoryError
from louvain_um.formats.build import make_graph
from louvain_um.formats.file_types import first_line_of
from louvain_um.formats.graph_file import GraphFile
from louvain_um.formats.matrices import from_sparse, rows_as_they_are
from louvain_um.formats.read_options import ReadOptions
from louvain_um.graph.graph import Graph
from louvain_um.graph.limits import checked_names

ZIP_MAGIC = b"PK"

LOCAL_HEADER = struct.Struct("<26xHH")
"""The header in front of a member: the lengths of its name and of what follows, at its end."""

NAMED = 8
"""Number of arrays that the error names for an archive without a graph."""


def read(file: GraphFile, options: ReadOptions) -> Graph:
    """Read a NumPy archive."""
    matrix = names = None
    if file.peek(2) != ZIP_MAGIC:
        # NumPy's own error would advise to load it as a pickle.
        raise file.error("is not an .npz archive; download or save it again")
    try:
        # A seekable file is read in place: the archive is not held twice.
        file.check_archive()
        found = _saved_rows(file, options)
        if found is not None:
            return found
        with np.load(file.seekable(), allow_pickle=False) as archive:
            members = set(archive.files)
            chosen = {
                "u": str(options.source or "u"),
                "v": str(options.target or "v"),
                "w": str(options.weight or "w"),
            }
            wanted = {"n": "n", "names": "names"} | chosen
            arrays = {key: archive[name] for key, name in wanted.items() if name in members}
            if any(isinstance(array, bytes) for array in arrays.values()):  # as NumPy gives others
                raise ValueError("a member is not an array")
        absent = [name for key, name in chosen.items() if name != key and name not in members]
        if "format" in members and not {"u", "v"} <= arrays.keys() and not absent:
            matrix = load_npz(file.seekable())
            names = _checked(arrays.get("names"), matrix.shape[0])
    except (GraphFormatError, HostMemoryError):
        raise
    except Exception as error:  # damaged archives raise many types
        raise file.error(
            f"is not a valid .npz archive ({first_line_of(error)}); download or save it again, "
            "without pickled objects"
        ) from None
    if matrix is not None:
        return from_sparse(matrix, options, names)
    if {"u", "v"} <= arrays.keys() and not absent:
        return _edges(file, arrays, options, (chosen["u"], chosen["v"]))
    if "header" in members:  # only sessions and recordings of this package have one
        raise file.error(
            "is a session or a recording, not a graph; read it with louvain-um report or simulate"
        )
    named = sorted(members)
    if absent and named:
        raise file.error(
            f"has no array {absent[0]!r}, only {', '.join(named[:NAMED])}; name one of these"
        )
    more = f" and {len(named) - NAMED} more" if len(named) > NAMED else ""
    raise file.error(
        f"contains the arrays {', '.join(named[:NAMED]) or '(none)'}{more}; a graph needs u and v "
        "(optionally n and w), or the arrays of scipy.sparse.save_npz"
    )


def _saved_rows(file: GraphFile, options: ReadOptions) -> Graph | None:
    """Return the graph of a matrix whose rows are a graph's; None if it must be looked at."""
    stream = file.seekable()
    if not isinstance(stream, io.BufferedReader):
        return None
    with zipfile.ZipFile(stream) as archive:
        members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
        wanted = ("format", "shape", "indptr", "indices", "data")
        if not members.keys() >= {*wanted} or members.keys() >= {"u", "v"}:
            return None
        if any(members[name].compress_type != zipfile.ZIP_STORED for name in wanted):
            return None
        if npy.read_array(archive.open(members["format"])).item() not in (b"csr", "csr"):
            return None
        n, columns = map(int, npy.read_array(archive.open(members["shape"])))
        parts = [_stored(stream, members[name]) for name in ("data", "indices", "indptr")]
        names = npy.read_array(archive.open(members["names"])) if "names" in members else None
    if n != columns or any(part is None for part in parts):
        return None
    data, indices, indptr = parts
    file.check_vertices(n, len(data) // 2)
    matrix = csr_array((data, indices, indptr), shape=(n, n))
    found = rows_as_they_are(matrix, options, _checked(names, n))
    return None if found is not None and found.loops.any() else found


def _checked(names: Any, n: int) -> Any:
    if names is None:
        return None
    if names.shape != (n,):
        raise GraphError(f"names must have one entry per vertex, {n} in all")
    return checked_names(names, n)


def _stored(stream: io.BufferedReader, info: zipfile.ZipInfo) -> Any:
    """Read an array that is not compressed by all threads; None if it is not one-dimensional."""
    stream.seek(info.header_offset)
    local = stream.read(LOCAL_HEADER.size)
    *_, name_bytes, extra_bytes = LOCAL_HEADER.unpack(local)
    begin = info.header_offset + LOCAL_HEADER.size + name_bytes + extra_bytes
    stream.seek(begin)
    shape, dtype, _ = array_header(stream)
    begin, end = stream.tell(), begin + info.file_size
    if len(shape) != 1 or dtype.hasobject or end - begin != shape[0] * dtype.itemsize:
        return None
    array = np.empty(shape, dtype)
    bytes_of = array.view(np.uint8)
    step = 1 << 24

    def work(thread: int, threads: int) -> None:
        for at in range(thread * step, len(bytes_of), threads * step):
            piece = memoryview(bytes_of[at : at + step].data)
            while len(piece):
                read = os.preadv(stream.fileno(), [piece], begin + at)
                if not read:
                    raise EOFError("the archive ends within an array")
                piece, at = piece[read:], at + read

    parallel.run(work, parallel.default_threads() if len(bytes_of) > step else 1)
    return array


def _edges(
    file: GraphFile, arrays: dict[str, Any], options: ReadOptions, titles: tuple[str, str]
) -> Graph:
    for name in ("u", "v"):
        if arrays[name].ndim != 1:
            raise GraphError(f"array {name} must be one-dimensional, one entry per edge")
    n = None
    if "n" in arrays:
        if arrays["n"].size != 1 or arrays["n"].dtype.kind not in "iu" or arrays["n"].min() < 0:
            raise GraphError("array n must be one whole number of at least 0")
        n = int(arrays["n"].reshape(())[()])
        file.check_vertices(n, len(arrays["u"]))
    w = arrays.get("w") if options.weighted is not False else None
    if options.weighted and w is None:
        raise GraphError("has no array w with weights; drop weighted=True (--weighted)")
    if options.bipartite:
        from louvain_um.formats.tables import Sides, from_ids

        u, v, names = arrays["u"], arrays["v"], arrays.get("names")
        if names is not None:
            for ids in (u, v):
                whole = names.ndim == 1 and ids.dtype.kind in "iu"
                if not whole or (
                    len(ids) and not 0 <= int(ids.min()) <= int(ids.max()) < len(names)
                ):
                    raise GraphError("names must have one entry per vertex")
            u, v = names[u], names[v]
        return from_ids(u, v, w, options, sides=Sides(titles))
    u, v, names = arrays.pop("u"), arrays.pop("v"), arrays.get("names")
    if names is None:
        return make_graph(u, v, w, None, options, n=n)
    if n is not None and names.shape != (n,):
        raise GraphError(f"names must have one entry per vertex, {n} in all")
    if names.ndim != 1:
        raise GraphError("names must have one entry per vertex")
    return make_graph(u, v, w, checked_names(names, len(names)), options)
