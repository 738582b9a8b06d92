"""Integers to decimal text, column by column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def digits(columns: Sequence[NDArray[Any]], ends: Sequence[bytes]) -> bytes:
    """Return rows of integers as text."""
    n = len(columns[0])
    if n == 0:
        return b""
    widths = [_width(column) for column in columns]
    total = sum(widths) + len(columns)
    text = np.zeros((n, total), np.uint8)  # 0 marks an empty cell
    right = 0
    for column, width, end in zip(columns, widths, ends, strict=True):
        right += width
        _print(column, text, right)
        text[:, right] = end[0]
        right += 1
    flat = text.ravel()
    kept: bytes = flat[flat != 0].tobytes()
    return kept


def _width(column: NDArray[Any]) -> int:
    return max(len(str(int(column.min()))), len(str(int(column.max()))))


def _print(column: NDArray[Any], text: NDArray[np.uint8], right: int) -> None:
    """Print a column's numbers, flush right before text column `right`."""
    negative = column < 0
    signed = bool(negative.any())
    rest = column.astype(np.uint64)
    if signed:
        # Two's complement is also right for the smallest integer.
        np.negative(rest, out=rest, where=negative)
    if int(rest.max()) < 2**32:
        rest = rest.astype(np.uint32)
    place = right - 1
    while True:
        quotient = rest // 10
        digit = (rest - quotient * 10).astype(np.uint8) + ord("0")
        if place < right - 1:
            digit[rest == 0] = 0
        text[:, place] = digit
        rest = quotient
        place -= 1
        if not rest.any():
            break
    if signed:
        rows = np.flatnonzero(negative)
        numbers = text[rows, :right]
        # The sign goes into the last empty cell before the number.
        first = right - np.argmax(numbers[:, ::-1] == 0, axis=1) - 1
        text[rows, first] = ord("-")
