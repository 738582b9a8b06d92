"""Seeded graphs of any size: the same arguments give the same graph on every machine.

Each kind is a function that returns `Generated`. Randomness is counter-based: edge i is a hash of
(seed, stream, i), computed in integers, so neither the number of threads nor the device changes
a graph.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from louvain_um.generators.base import Generated, Weights
from louvain_um.generators.lfr import lfr
from louvain_um.generators.planted import planted, ring_of_cliques
from louvain_um.generators.rmat import rmat
from louvain_um.generators.stencil import geometric, grid, stencil

GENERATORS: Mapping[str, Callable[..., Generated]] = MappingProxyType(
    {
        "rmat": rmat,
        "lfr": lfr,
        "planted": planted,
        "stencil": stencil,
        "grid": grid,
        "geometric": geometric,
        "ring": ring_of_cliques,
    }
)
"""Generators by their names on the command line."""

__all__ = [
    "GENERATORS",
    "Generated",
    "Weights",
    "geometric",
    "grid",
    "lfr",
    "planted",
    "ring_of_cliques",
    "rmat",
    "stencil",
]
