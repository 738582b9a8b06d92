"""The rule's arithmetic in compiled form; tests hold it equal to `louvain_um.core.rules`."""

# Numba functions carry no annotations: Numba infers their types.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc"

from __future__ import annotations

import numpy as np

from louvain_um.core.compiled import kernel


@kernel(inline="always")
def mix32(x):
    """Return a well-mixed 32-bit image of a uint32."""
    x = np.uint32(x)
    x ^= x >> np.uint32(16)
    x = np.uint32(x * np.uint32(0x7FEB352D))
    x ^= x >> np.uint32(15)
    x = np.uint32(x * np.uint32(0x846CA68B))
    x ^= x >> np.uint32(16)
    return np.uint32(x)


@kernel(inline="always")
def bucket(vertex, salt, sub_rounds):
    """Return the sub-round of a vertex; `sub_rounds` is a power of two."""
    return np.int64(mix32(np.uint32(vertex) ^ np.uint32(salt)) & np.uint32(sub_rounds - 1))


@kernel(inline="always")
def wins_tie(candidate, champion, seed):
    """Whether `candidate` comes before `champion` among communities of equal score."""
    a = mix32(np.uint32(candidate) ^ np.uint32(seed))
    b = mix32(np.uint32(champion) ^ np.uint32(seed))
    return a < b or (a == b and candidate < champion)
