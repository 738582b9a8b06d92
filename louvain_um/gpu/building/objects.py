"""Graphs of other libraries' objects that lie in a device's memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from louvain_um.gpu.graph import DeviceGraph


def is_there(obj: Any) -> bool:
    """Return whether an object, or what a tuple or list holds, lies in a device's memory."""
    if isinstance(obj, tuple | list):
        return 2 <= len(obj) <= 3 and all(_lies_on_a_device(part) for part in obj)
    return _is_matrix(obj)


def built_there(obj: Any) -> DeviceGraph | None:
    """Return the graph of an object where its data lie; None if the host must look at it."""
    import cupy

    from louvain_um.gpu.building.build import Builder
    from louvain_um.gpu.dynamic.cuda import Cuda

    if isinstance(obj, tuple | list):
        columns = [_array(part) for part in obj]
        with columns[0].device:
            if len({column.device.id for column in columns}) > 1:
                return None
            return Builder(Cuda()).from_edges(*columns)
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
        return Builder(Cuda()).from_rows(
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
