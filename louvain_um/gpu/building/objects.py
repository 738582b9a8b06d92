"""Graphs of other libraries' objects that lie in a device's memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from louvain_um.formats.column_roles import find_ends
from louvain_um.formats.two_modes import different_kinds
from louvain_um.gpu.graph import DeviceGraph


def is_there(obj: Any) -> bool:
    """Return whether an object, or what a tuple or list holds, lies in a device's memory."""
    if isinstance(obj, tuple | list):
        return 2 <= len(obj) <= 3 and all(_lies_on_a_device(part) for part in obj)
    return _is_matrix(obj) or columns_of(obj) is not None


def columns_of(frame: Any) -> list[Any] | None:
    """Return the columns of a table on a device if their names alone say what they are.

    These are two known names of ends, and perhaps weight. The host looks at other tables, and at
    missing values.
    """
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


def has_gaps(graph: DeviceGraph) -> bool:
    """Return whether some vertices have no edges: ids of a table are to be numbered then."""
    empty = graph.offsets[1:] == graph.offsets[:-1]
    return bool((empty if graph.loops is None else empty & (graph.loops == 0)).any())


def built_there(obj: Any, limit: int | None = None) -> DeviceGraph | None:
    """Return the graph of an object where its data lie; None if the host must look at it.

    The host does, too, where building takes more memory than is free, or than a limit.
    """
    from cupy.cuda.memory import OutOfMemoryError

    try:
        return _built_there(obj, limit)
    except OutOfMemoryError:
        return None


def _built_there(obj: Any, limit: int | None) -> DeviceGraph | None:
    """Return the graph of an object; out of memory raises."""
    import cupy

    from louvain_um.gpu.building.build import Builder
    from louvain_um.gpu.building.edges import building_bytes
    from louvain_um.gpu.dynamic.cuda import CudaDevice

    table = columns_of(obj)
    if table is not None or isinstance(obj, tuple | list):
        columns = [_array(part) for part in table or obj]
        edges, weighted = len(columns[0]), len(columns) == 3
        if limit is not None and building_bytes(edges, 0, weighted=weighted) > limit:
            return None
        with columns[0].device:
            if len({column.device.id for column in columns}) > 1:
                return None
            made = Builder(CudaDevice()).from_edges(*columns)
            return None if table and made is not None and has_gaps(made) else made
    with obj.data.device:
        if obj.shape[0] != obj.shape[1] or obj.data.dtype.kind not in "biuf":
            return None
        if obj.format == "coo":
            # Repeated entries are summed, which a narrow type rounds or overflows.
            if obj.data.dtype not in (np.float64, np.int64):
                return None
            obj = obj.tocsr()
        elif obj.format not in ("csr", "csc"):
            return None
        return Builder(CudaDevice()).from_rows(
            *(cupy.asarray(array) for array in (obj.indptr, obj.indices, obj.data))
        )


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
