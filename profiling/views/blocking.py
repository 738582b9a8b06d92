"""The chart of a blocking factor's curve: the paper's Figure 7."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from louvain_um.core.atomic_files import replacing
from louvain_um.placement.program.blocking import BlockingCurve
from louvain_um.profiling.views.canvas import TALL, WIDE, new_figure, require_matplotlib

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def blocking_chart(
    curves: Mapping[str, BlockingCurve],
    *,
    unblocked: Mapping[str, float] | None = None,
    save_to: str | Path | None = None,
    force: bool = False,
) -> Figure:
    """Draw seconds by pages per warp, a line for each curve; the best factor is marked.

    Parameters
    ----------
    curves : mapping of str to BlockingCurve
        By name of the graph or program.
    unblocked : mapping of str to float, optional
        Seconds of the same kernels without blocking: curves are then relative to these.
    save_to : path, optional
        A file to write.
    force : bool
        Whether that file may replace another.

    Raises
    ------
    LouvainUmError
        matplotlib is not installed, or the file exists.

    Examples
    --------
    >>> from louvain_um.placement.program import tune_blocking
    >>> from louvain_um.profiling.views.blocking import blocking_chart
    >>> figure = blocking_chart({"bfs": tune_blocking(lambda pages: 1.0 / pages)})
    >>> figure.axes[0].get_xlabel()
    'pages per warp'
    """
    require_matplotlib()
    figure, axes = new_figure(WIDE, TALL)
    for name, curve in curves.items():
        base = (unblocked or {}).get(name)
        values = {f: s if base is None else base / s for f, s in sorted(curve.seconds.items())}
        (line,) = axes.plot(list(values), list(values.values()), marker="o", label=name)
        axes.plot([curve.best], [values[curve.best]], "o", ms=11, mfc="none", c=line.get_color())
    axes.set_xlabel("pages per warp")
    axes.set_ylabel("seconds" if unblocked is None else "speed-up over no blocking")
    axes.set_ylim(bottom=0)
    axes.legend()
    if save_to is not None:
        with replacing(save_to, force=force) as part:
            figure.savefig(part, format=Path(save_to).suffix.removeprefix(".") or "png")
    return figure
