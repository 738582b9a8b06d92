"""Targets of 24 bits instead of 32, for graphs that do not fit otherwise: `packed.cuh`.

A quarter less of what is largest in a run and what moving reads most of. Where the graph fits,
it stays as it is: packing takes time, and reading it in core is no faster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from louvain_um.gpu import carry
from louvain_um.gpu.compile import Kernels

if TYPE_CHECKING:
    from louvain_um.placement.allocator import Allocator

MOST_VERTICES: Final = 1 << 24
"""Vertices whose numbers have 24 bits."""

CHUNK: Final = 1 << 23
"""Arcs that come from the host at a time, a multiple of four: these end with a word."""


def words_for(arcs: int) -> int:
    """Return the words that packed targets take, and one to spare: the last read may reach there.

    Examples
    --------
    >>> from louvain_um.gpu.packing import words_for
    >>> words_for(4), words_for(5)
    (4, 5)
    """
    return -(-3 * arcs // 4) + 1


def pack(kernels: Kernels, memory: Allocator, targets: Any, packed: Any) -> None:
    """Write packed targets.

    Parameters
    ----------
    targets : uint32[arcs]
        Below `MOST_VERTICES`; NumPy's or CuPy's.
    packed : cupy.ndarray
        uint32[words_for(arcs)], on any side of the bus.
    """
    if not isinstance(targets, np.ndarray):
        carry.run(kernels, "pack_targets", len(targets), targets, packed)
        return
    incoming = memory.empty("incoming", "scratch", min(len(targets), CHUNK), np.uint32)
    for begin in range(0, len(targets), CHUNK):
        some = targets[begin : begin + CHUNK]
        memory.fill("incoming", some)
        carry.run(kernels, "pack_targets", len(some), incoming, packed[3 * begin // 4 :])
    memory.free("incoming")
