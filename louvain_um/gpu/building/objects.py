"""Graphs of other libraries' objects that lie in a device's memory."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from louvain_um.core.parallel import default_threads
from louvain_um.formats.column_roles import find_ends
from louvain_um.formats.two_modes import different_kinds
from louvain_um.gpu.building.build import (
    NUMBERING,
    RANGE_ARCS,
    UNWEIGHTED,
    WEIGHTED,
    Builder,
    LongRowError,
)
from louvain_um.gpu.building.device_rows import SHARE, rows_of, sizes_within
from louvain_um.gpu.graph import DeviceGraph
from louvain_um.graph.graph import Graph
from louvain_um.graph.limits import Duplicates
from louvain_um.placement.memory import copies, cuda_calls

CACHED: Final = 0.125
"""Share of the memory for building that its scratch memory may keep, cached by CuPy."""


def is_there(obj: Any) -> bool:
    """Return whether an object, or what a tuple or list holds, lies in a device's memory."""
    if isinstance(obj, tuple | list):
        return 2 <= len(obj) <= 3 and all(_lies_on_a_device(part) for part in obj)
    return _is_matrix(obj) or columns_of(obj) is not None


def columns_of(frame: Any) -> list[Any] | None:
    """Return the columns of a table on a device if their names alone say what they are."""
    # These are two known names of ends, and perhaps weight. The host looks at other tables, and at
    # missing values.
    if isinstance(frame, dict) or not (hasattr(frame, "columns") and hasattr(frame, "to_pandas")):
        return None
    titles = [*frame.columns]
    if not all(isinstance(title, str) for title in titles) or len({*titles}) < len(titles):
        return None
    ends = find_ends(titles)
    if ends is None or {*ends} != {0, 1} or different_kinds(*titles[:2]):
        return None
    if [title.lower() for title in titles[2:]] not in ([], ["weight"]):
        return None
    columns = [frame[titles[place]] for place in (*ends, *range(2, len(titles)))]
    for column in columns:
        if getattr(column, "__cuda_array_interface__", {"mask": True}).get("mask") is not None:
            return None
    return columns


def built_there(obj: Any, limit: int | None = None) -> Graph | None:
    """Return the graph of an object where its data lie; None if the host must look at it."""
    # Where it takes more memory than is free, or than a limit, spans of rows go to the host one
    # after the other; the host makes them where these would be too many.
    from cupy.cuda.memory import OutOfMemoryError

    from louvain_um.gpu.dynamic.cuda import CudaDevice

    table, columns = columns_of(obj), None
    if table is not None or isinstance(obj, tuple | list):
        columns = [_array(part) for part in table or obj]
    with (obj.data if columns is None else columns[0]).device:
        device = CudaDevice()
        try:
            if columns is None:
                made = _of_matrix(device, obj)
            else:
                made = _of_columns(device, columns, limit, numbered=bool(table))
        except (OutOfMemoryError, LongRowError):
            made = None
        if made is None:
            device.free_cached()
        return made


def _of_columns(
    device: Any, columns: list[Any], limit: int | None, *, numbered: bool
) -> Graph | None:
    """Return the graph of columns; out of memory raises."""
    if len({column.device.id for column in columns}) > 1:
        return None
    enough = 4 * NUMBERING * len(columns[0])  # sorting included
    free = int(SHARE * cuda_calls.reclaimed_memory(enough)[0])
    room = free if limit is None else min(free, limit)
    return graph_of_columns(device, copies, columns, room, numbered=numbered)


def _of_matrix(device: Any, matrix: Any) -> Graph | None:
    """Return the graph of a sparse matrix; out of memory raises."""
    import cupy

    if matrix.shape[0] != matrix.shape[1] or matrix.data.dtype.kind not in "biuf":
        return None
    if matrix.format == "coo":
        # Repeated entries are summed, which a narrow type rounds or overflows.
        if matrix.data.dtype not in (np.float64, np.int64):
            return None
        matrix = matrix.tocsr()
    elif matrix.format not in ("csr", "csc"):
        return None
    made = Builder(device).from_rows(
        *(cupy.asarray(array) for array in (matrix.indptr, matrix.indices, matrix.data))
    )
    return None if made is None else DeviceGraph.of(made).as_graph(checked=True)


def graph_of_columns(
    device: Any,
    copies: Any,
    columns: list[Any],
    room: int,
    *,
    numbered: bool,
    n_vertices: int | None = None,
    duplicates: Duplicates | None = None,
) -> Graph | None:
    """Return the graph of columns on a device, made in so much memory; None if the host must."""
    most = max(1, min(RANGE_ARCS, room // NUMBERING))
    builder = Builder(device, most)
    listed = builder.listed(
        *columns,
        n_vertices=n_vertices,
        duplicates=duplicates,
        most_names=room // NUMBERING if numbered else None,
    )
    if listed is None:
        return None
    names = None if listed.names is None else copies.fetched(listed.names).view(np.int64)
    sizes = sizes_within(
        room - (0 if names is None else names.nbytes), listed.edges, listed.n,
        weighted=listed.weighted, threads=default_threads(),
    )  # fmt: skip
    if sizes is None:
        return None
    builder.range_arcs, stay = sizes.range_arcs, sizes.most_arcs >= 2 * listed.edges
    made = rows_of(builder, listed, sizes, None if stay else copies.fetched)
    scratch = (WEIGHTED if listed.weighted else UNWEIGHTED)[2]
    if scratch * min(2 * listed.edges, sizes.range_arcs) > CACHED * room:
        device.free_cached()  # the plan of a run does not count it as free
    more = {"scale": listed.scale, "notes": listed.notes_of(made), "names": names}
    graph: Graph = (made if stay else made.here()).graph(Graph, **more)
    return graph


def _lies_on_a_device(part: Any) -> bool:
    if hasattr(part, "__cuda_array_interface__"):
        return True
    located = getattr(part, "__dlpack_device__", None)
    return located is not None and int(located()[0]) == 2  # kDLCUDA


def _is_matrix(obj: Any) -> bool:
    return type(obj).__module__.startswith("cupyx.") and hasattr(obj, "tocsr")


def _array(part: Any) -> Any:
    """Return a column as a CuPy array, without a copy."""
    import cupy

    if hasattr(part, "__cuda_array_interface__"):
        return cupy.asarray(part)
    return cupy.from_dlpack(part)
