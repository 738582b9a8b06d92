"""A result as a pandas frame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from louvain_um.errors import LouvainUmError
from louvain_um.results.partition import Result

if TYPE_CHECKING:
    import pandas as pd


def to_frame(result: Result, *, levels: bool) -> pd.DataFrame:
    """Return one row per vertex; `Communities.to_frame` documents the columns."""
    try:
        import pandas as pd
    except ImportError:
        raise LouvainUmError(
            "a frame needs pandas; install it with pip install 'louvain-um[formats]'"
        ) from None

    vertices = np.arange(result.n_vertices) if result.names is None else result.names
    columns: dict[str, Any] = {"vertex": vertices, "community": result.labels}
    if levels:
        cycles = [level.cycle for level in result.levels]
        columns |= {_column(k, cycle): result.at_level(k) for k, cycle in enumerate(cycles)}
    return pd.DataFrame(columns)


def _column(level: int, cycle: int) -> str:
    return f"level_{level}_cycle_{cycle}" if cycle else f"level_{level}"
