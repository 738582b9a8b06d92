"""Arrays on GPUs exchanged by way of the hosts, over what connects the ranks anyway."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from louvain_um.distributed.communicator import Communicator, gather_columns


class StagedLink:
    """Copies arrays to the host, exchanges them there, and copies what arrives to the GPU."""

    def __init__(self, ranks: Communicator) -> None:
        self.ranks = ranks

    def gather(self, columns: Sequence[Any], into: Sequence[Any]) -> int:
        """Fill the beginning of `into` with each column of all ranks; return their entries."""
        found = gather_columns(self.ranks, *(column.get() for column in columns))
        for array, column in zip(into, found, strict=True):
            if len(column):
                array[: len(column)].set(column)
        return len(found[0])

    def or_bits(self, words: Any) -> None:
        """Set an array, of equal length on all ranks, to the bitwise or of all."""
        words.set(self.ranks.or_bits(words.get().view(np.uint8)).view(words.dtype))

    def sum_exact(self, values: Sequence[int]) -> list[int]:
        """Return the sums of all ranks' integers."""
        sums: list[int] = self.ranks.sum_exact(values).tolist()
        return sums
