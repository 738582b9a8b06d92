"""Arrays that grow and shrink at their end."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T", bound=np.generic)


class Growing(Generic[T]):
    """An array with room behind its end, so that growing copies each item a few times at most."""

    __slots__ = ("_room", "items")

    def __init__(self, items: NDArray[T]) -> None:
        self._room = self.items = items

    def __reduce__(self) -> tuple[Any, ...]:
        # Copies of `items` and of the room apart would share no memory.
        return type(self), (self.items,)

    def reserve(self, count: int) -> None:
        """Make room for `count` more items."""
        size = len(self.items) + count
        if size > len(self._room):
            room = np.empty(size + size // 4, self.items.dtype)
            room[: len(self.items)] = self.items
            self._room, self.items = room, room[: len(self.items)]

    def extend(self, count: int, values: Any) -> None:
        """Append `count` items: an array, or one value for all."""
        self.reserve(count)
        old, size = len(self.items), len(self.items) + count
        self._room[old:size] = values
        self.items = self._room[:size]

    def drop(self, count: int) -> None:
        """Remove the last `count` items."""
        self.items = self.items[: len(self.items) - count]
