"""A result as a pandas frame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from louvain_um.errors import LouvainUmError, check_switch
from louvain_um.results.partition import Result

if TYPE_CHECKING:
    import pandas as pd


def require_pandas() -> Any:
    """Import pandas; the error says how to install it."""
    try:
        import pandas
    except ImportError:
        raise LouvainUmError(
            "a frame needs pandas; install it with pip install 'louvain-um[formats]'"
        ) from None
    return pandas


def to_frame(result: Result, *, levels: bool, hierarchy: bool) -> pd.DataFrame:
    """Return one row per vertex; `Communities.to_frame` documents the columns."""
    check_switch("levels", levels)
    check_switch("hierarchy", hierarchy)
    vertices = np.arange(result.n_vertices) if result.names is None else result.names
    columns: dict[str, Any] = {"vertex": vertices, "community": result.labels}
    if levels:
        cycles = [level.cycle for level in result.levels]
        columns |= {_column(k, cycle): result.at_level(k) for k, cycle in enumerate(cycles)}
    if hierarchy:
        columns |= hierarchy_columns(result)
    frame: pd.DataFrame = require_pandas().DataFrame(named(columns, result.names))
    return frame


def named(columns: dict[str, Any], names: NDArray[Any] | None) -> dict[str, Any]:
    """Return columns without the rows of removed vertices, whose name is None."""
    if names is None or names.dtype != object:
        return columns
    there = np.array([name is not None for name in names.tolist()], bool)
    return columns if there.all() else {name: column[there] for name, column in columns.items()}


def hierarchy_columns(result: Result) -> dict[str, NDArray[np.uint32]]:
    """Return the nested partitions by column: ``hierarchy_0`` is the finest."""
    return {f"hierarchy_{k}": labels for k, labels in enumerate(result.hierarchy()[:-1])}


def _column(level: int, cycle: int) -> str:
    return f"level_{level}_cycle_{cycle}" if cycle else f"level_{level}"
