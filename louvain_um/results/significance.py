"""Whether communities are more than chance gives: the figures of a test."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

CHANCE: Final = 0.05
"""p-value above which communities are no more than chance gives."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Significance:
    """Communities of a graph compared with those of random graphs with the same degrees.

    Parameters
    ----------
    modularity : float
        Of the graph.
    null : float64[graphs]
        Modularity that the same detection finds in each random graph.
    communities : float64[k]
        p-value of each community: the share of communities of random graphs, of half to twice its
        volume, that keep as large a share of their edges inside; NaN where there are none.

    Examples
    --------
    >>> import louvain_um as lu
    >>> r = lu.louvain(lu.read_graph("example:les-miserables"), device="cpu")
    >>> found = r.significance(graphs=20)
    >>> bool(found.z > 2), round(found.p_value, 3), len(found.communities) == r.n_communities
    (True, 0.048, True)
    """

    modularity: float
    null: NDArray[np.float64]
    communities: NDArray[np.float64]

    @property
    def z(self) -> float:
        """Standard deviations between the modularity and the mean of random graphs."""
        spread = float(self.null.std(ddof=1)) if len(self.null) > 1 else 0.0
        gap = self.modularity - float(self.null.mean())
        return gap / spread if spread else float(np.copysign(np.inf, gap)) if gap else 0.0

    @property
    def p_value(self) -> float:
        """Share of graphs, this one included, whose modularity is at least as large."""
        return float((1 + np.count_nonzero(self.null >= self.modularity)) / (1 + len(self.null)))

    def summary(self) -> dict[str, Any]:
        """Return what ``detect --json`` prints."""
        return {
            "graphs": len(self.null),
            "mean": float(self.null.mean()),
            "z": self.z,
            "p_value": self.p_value,
            "communities": [None if np.isnan(p) else p for p in self.communities.tolist()],
        }

    def __str__(self) -> str:
        mean, graphs = float(self.null.mean()), len(self.null)
        if self.p_value > CHANCE and graphs >= 1 / CHANCE - 1:
            return (
                f"modularity {self.modularity:.4f} is what random graphs of the same degrees give: "
                f"{mean:.4f} on average of {graphs}"
            )
        return (
            f"modularity {self.modularity:.4f}, against {mean:.4f} on average of {graphs} random "
            f"graphs of the same degrees (z {self.z:.1f}, p {self.p_value:.3g})"
        )
