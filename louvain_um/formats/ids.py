"""Ids of vertices: which texts are numbers, and in which order vertices are numbered.

Text stays text unless every id is a whole number that is written in the same way when it is printed
again: ``007``, ``+4`` and ``1.0`` make their column text. Vertices are numbered in ascending order:
by number if all ids are such numbers, otherwise by code points. So the same edges give the same
graph whatever they are read from.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from louvain_um.core.plain_data import objects
from louvain_um.errors import Uncertain, shown

NUMBER = re.compile("0|[1-9][0-9]{0,17}")
"""A text that reads back from a number as it is."""

MAX_FIXED_WIDTH = 64
"""Length of the longest name, in characters, up to which names are a fixed-width array."""


def is_number(text: str) -> bool:
    """Return whether a text is an id that is a number."""
    return NUMBER.fullmatch(text) is not None


def is_count(word: str) -> bool:
    """Return whether a word is a whole number of at most 18 digits."""
    return word.isascii() and word.isdigit() and len(word) <= 18


def numbers_or_texts(texts: Sequence[Any]) -> list[Any]:
    """Return the ids of a file, which are texts or whole numbers, as numbers if all can be."""
    plain = [str(text) for text in texts]
    return [int(text) for text in plain] if all(map(is_number, plain)) else list(texts)


def name_array(names: Sequence[Any]) -> NDArray[Any]:
    """Return names as an array of integers or of strings if all are, else of objects."""
    if all(type(name) is int for name in names):
        try:
            return np.array(names, np.int64)
        except OverflowError:
            pass
    elif all(isinstance(name, str) for name in names) and _fit(names):
        return np.array(names, np.str_)
    return objects(names)


def _fit(names: Sequence[str]) -> bool:
    """Return whether a fixed-width array keeps names as they are."""
    return max(map(len, names)) <= MAX_FIXED_WIDTH and not any(n.endswith("\0") for n in names)


def order_of(names: Sequence[Any]) -> list[int]:
    """Return the places of names, all different, in ascending order."""
    places = range(len(names))
    if all(type(name) is int or isinstance(name, np.integer) for name in names):
        return sorted(places, key=names.__getitem__)
    if not all(isinstance(name, int | str) for name in names):
        # Objects have no order that other sources share.
        try:
            return sorted(places, key=names.__getitem__)
        except TypeError:
            return list(places)
    plain = all(type(name) is str for name in names)
    texts = names if plain else [str(name) for name in names]
    if all(map(is_number, texts)):
        return sorted(places, key=lambda place: int(texts[place]))
    return sorted(places, key=texts.__getitem__)


def ascending(
    names: Sequence[Any], u: NDArray[Any], v: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[np.uint32], NDArray[np.uint32]]:
    """Return names in ascending order, and the ends of edges by their places among them."""
    order = order_of(names)
    ranks = np.empty(len(order), np.uint32)
    ranks[order] = np.arange(len(order), dtype=np.uint32)
    return name_array([names[place] for place in order]), ranks[u], ranks[v]


def ids_are_text(text: str, line: int) -> str:
    """Return the note on ids that are read as text because one of them is not a whole number."""
    note = f"ids are read as text, because {shown(text)} in line {line} is not a whole number"
    return (
        note if text[:1] in "+0123456789." else Uncertain(f"{note}; correct it if it is a mistake")
    )
