"""One device's share of a level where the other devices belong to other processes.

No device reads another's memory then: the moves of a sub-round are gathered instead, and every
device applies them from arrays of its own. The host waits for each exchange.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Protocol

import numpy as np

from louvain_um.core import rules
from louvain_um.gpu.ranks.share import Share
from louvain_um.gpu.runtime.launch import BINS, queue_entries

NONE: Final = np.uint32(0xFFFFFFFF)
"""Stands for no sub-round, and for no community."""

GATHERED: Final = ("queue", "proposed", "weight_to_target")
"""What a device tells of each move, as far as a step has it."""


class Link(Protocol):
    """How processes exchange arrays that are on their devices; every process calls the same."""

    def gather(self, columns: Sequence[Any], into: Sequence[Any]) -> int:
        """Fill the beginning of `into` with each column of all processes, by rank."""

    def or_bits(self, words: Any) -> None:
        """Set an array, of equal length in all processes, to the bitwise or of all."""

    def sum_exact(self, values: Sequence[int]) -> list[int]:
        """Return the sums of all processes' integers."""


class LinkGate:
    """What `Gate` is to devices of one process, to a device that is alone in its own."""

    devices: Final = 1

    def __init__(self, share: Share, link: Link) -> None:
        self.share = share
        self.link = link
        self.own: dict[str, Any] = {}
        self.everyones: dict[str, Any] = {}
        self.names: list[str] = []
        self.starts: list[int] = []

    def show(self, arrays: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return what kernels are to read, for what this device has to show."""
        (self.own,) = arrays
        entries = queue_entries(self.share.level.vertices, 1)
        for name in (*GATHERED, "starts"):
            if name in self.own:
                size = self.own[name].size if name == "starts" else entries
                self.names.append(f"all_{name}")
                self.everyones[name] = self.share.memory.empty(
                    self.names[-1], "scratch", size, self.own[name].dtype
                )
        return [{**self.own, **self.everyones}]

    def close(self) -> None:
        """Nothing: this device reads its own memory only."""

    def mark(self) -> None:
        """Nothing: exchanges are timed by the ranks that they connect."""

    collect = mark

    def moved(self, sub_round: int) -> None:
        """Gather what all devices propose in a sub-round."""
        if not sub_round:  # what is queued for a sweep changes no more
            self.starts = self.own["starts"].get()[::BINS].tolist()
        begin, end = self.starts[sub_round : sub_round + 2]
        # Found once for all columns: the host waits for how many there are.
        moves = (self.own["proposed"][begin:end] != NONE).nonzero()[0]
        held = [name for name in GATHERED if name in self.own]
        columns = [self.own[name][begin:end].take(moves) for name in held]
        count = self.link.gather(columns, [self.everyones[name] for name in held])
        starts = np.zeros(rules.SUB_ROUNDS * BINS + 1, np.uint32)
        starts[(sub_round + 1) * BINS] = count
        self.everyones["starts"].set(starts)

    def activated(self) -> None:
        """Unite what all devices have activated."""
        self.link.or_bits(self.own["activated"])

    def complete(self, arrays: Sequence[Any], each: int = 1) -> None:
        """Complete an array of which each device has the `each` values of its own vertices."""
        (array,) = arrays
        self.link.gather([array[each * self.share.first : each * self.share.last]], [array])

    def sums(self, values: Sequence[int]) -> list[int]:
        """Return the sums of all devices' integers."""
        return self.link.sum_exact(values)

    def free(self) -> None:
        """Free the arrays."""
        self.own.clear()
        self.everyones.clear()
        self.share.memory.free(*self.names)
