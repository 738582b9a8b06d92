"""Targets of 24 bits instead of 32, for graphs that do not fit otherwise: `targets24.cuh`.

Weights, if there are any, take 16 bits then. This shrinks the largest arrays of a run, and most of
the bytes that moving reads, by a quarter, with weights by three eighths. Rows are sorted by length,
short ones first. So the longest rows stay on the host if not all fit: the bus reads these as one
range of bytes, while each short row costs one or two requests. If the graph fits, targets keep 32
bits: packing takes time, and reading them in core is no faster.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

MOST_VERTICES: Final = 1 << 24
"""Vertices whose numbers have 24 bits."""


MOST_WEIGHT: Final = (1 << 16) - 1
"""Largest weight of 16 bits."""


def words_for(arcs: int) -> int:
    """Return the words that packed targets take, and one to spare: the last read may reach there.

    Examples
    --------
    >>> from louvain_um.gpu.memory.targets24 import words_for
    >>> words_for(4), words_for(5)
    (4, 5)
    """
    return -(-3 * arcs // 4) + 1


def whole_targets(nbytes: int) -> int:
    """Return of how many targets both words that they are read from are in the first bytes.

    Examples
    --------
    >>> from louvain_um.gpu.memory.targets24 import whole_targets
    >>> [whole_targets(nbytes) for nbytes in (0, 8, 12, 16)]
    [0, 1, 2, 3]
    """
    return max(0, nbytes - 5) // 3


def pack(
    offsets: NDArray[np.int64], targets: NDArray[np.uint32], weights: NDArray[Any] | None = None
) -> tuple[NDArray[np.int64], NDArray[np.uint32], NDArray[np.uint16] | None]:
    """Return offsets, targets and weights as `targets24.cuh` says, rows sorted by length.

    Parameters
    ----------
    offsets : int64[n + 1]
    targets : uint32[arcs]
        Below `MOST_VERTICES`.
    weights : uint32[arcs] or int64[arcs], optional
        Up to `MOST_WEIGHT`.

    Returns
    -------
    offsets : int64[n + 1]
        Where each row begins, and from bit 40 on how many arcs it has; rows whose
        lengths have fewer bits come first, and of these the rows of smaller vertices.
    targets : uint32[words_for(arcs)]
        Arc j's in bytes 3j … 3j + 2.
    weights : uint16[arcs] or None

    Examples
    --------
    >>> import numpy as np
    >>> from louvain_um.gpu.memory.targets24 import pack
    >>> offsets, targets, _ = pack(np.array([0, 2, 3]), np.array([5, 6, 7], np.uint32))
    >>> [(int(entry) & 0xFF, int(entry) >> 40) for entry in offsets[:-1]]
    [(1, 2), (0, 1)]
    >>> targets.view(np.uint8)[:9:3].tolist()
    [7, 5, 6]
    """
    from louvain_um.core.parallel import default_threads, run
    from louvain_um.gpu.memory.targets24_rows import pack_rows, place_rows

    n = len(offsets) - 1
    placed = np.zeros(n + 1, np.int64)
    place_rows(offsets, placed)
    packed = np.zeros(words_for(len(targets)), np.uint32)
    short = None if weights is None else np.empty(len(weights), np.uint16)
    pairs: list[tuple[Any, Any, int]] = [(targets, packed, 3), (weights, short, 2)]
    for values, into, width in pairs[: 1 if weights is None else 2]:
        parts = into.view(np.uint8)[: width * len(values)].reshape(-1, width)
        run(pack_rows, default_threads(), np.zeros(1, np.int64), offsets, values, placed, parts)
    return placed, packed, short


def on_host(graph: Any) -> tuple[Any, Any, Any]:
    """Return a graph's offsets, targets and weights in host memory, wherever they are."""
    offsets, targets, weights = (
        a if a is None or isinstance(a, np.ndarray) else a.get()
        for a in (graph.offsets, graph.targets, graph.weights)
    )
    return offsets, targets, weights
