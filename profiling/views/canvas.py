"""Empty matplotlib figures, made without pyplot: no window, no global state, no back end."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from louvain_um.errors import LouvainUmError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDE: Final = 7.0
TALL: Final = 4.2
"""Width and height of a chart, in inches."""


def require_matplotlib() -> None:
    """Raise an error that names the extra to install, if matplotlib is missing."""
    if find_spec("matplotlib") is None:
        raise LouvainUmError("charts need matplotlib: pip install 'louvain-um[charts]'")


def new_figure(width: float, height: float) -> tuple[Figure, Axes]:
    """Return a figure with one pair of axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.add_subplot()
