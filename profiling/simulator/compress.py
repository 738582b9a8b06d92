"""Compression of page touches to runs."""

# Numba functions carry no annotations: Numba infers their types.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc"

from __future__ import annotations

from louvain_um.core.compiled import kernel


@kernel()
def compress(array, first, length, way, amount):
    """Return the columns of `touches.Touches` with rows merged that continue or repeat the last."""
    out_array = array.copy()
    out_first = first.copy()
    out_length = length.copy()
    out_way = way.copy()
    out_amount = amount.copy()
    last = -1
    for i in range(len(first)):
        if last >= 0 and array[i] == out_array[last] and way[i] == out_way[last]:
            next_page = out_first[last] + out_length[last]
            if first[i] == next_page and amount[i] == out_amount[last]:
                out_length[last] += length[i]
                continue
            if length[i] == 1 and out_length[last] == 1 and first[i] == out_first[last]:
                out_amount[last] += amount[i]
                continue
        last += 1
        out_array[last] = array[i]
        out_first[last] = first[i]
        out_length[last] = length[i]
        out_way[last] = way[i]
        out_amount[last] = amount[i]
    end = last + 1
    return (
        out_array[:end].copy(),
        out_first[:end].copy(),
        out_length[:end].copy(),
        out_way[:end].copy(),
        out_amount[:end].copy(),
    )
