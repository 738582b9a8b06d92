"""Columns of a label file: integers or text, and nothing between them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from louvain_um.core.numbering import distinct
from louvain_um.errors import LouvainUmError
from louvain_um.results.communities import Communities
from louvain_um.results.comparison import Labels
from louvain_um.results.frame import hierarchy_columns

INTEGER = re.compile(r"\s*[+-]?[0-9]+\s*", re.ASCII)
"""Text that can be read as an integer; `int` also accepts underscores and other digits."""


def columns(result: Communities | Labels, *, hierarchy: bool = False) -> dict[str, NDArray[Any]]:
    """Return the columns of a label file, each as integers or as an object array of strings."""
    if isinstance(result, Labels):
        return {
            "vertex": writable(result.vertices, unique=True),
            "community": writable(result.communities),
        }
    names = result.names
    if names is None:
        names = np.arange(result.n_vertices, dtype=np.uint32)
    found = {"vertex": writable(names, unique=True), "community": result.labels}
    return found | (hierarchy_columns(result) if hierarchy else {})


def integers_or_texts(texts: Sequence[str]) -> NDArray[Any]:
    """Return integers if all texts are integers, different ones if the texts differ; else texts."""
    if all(map(INTEGER.fullmatch, texts)) and all(len(text) < 4000 for text in texts):
        numbers = integers(list(map(int, texts)))
        if numbers is not None and len(distinct(numbers)) == len(set(texts)):
            return numbers
    return objects(texts)


def integers(values: Sequence[int]) -> NDArray[Any] | None:
    """Return an int64 array, or uint64 where only that fits; None where neither does."""
    for dtype in (np.int64, np.uint64):
        try:
            return np.array(values, dtype)
        except OverflowError:
            continue
    return None


def objects(values: Sequence[Any]) -> NDArray[Any]:
    """Return an object array, which keeps any text as it is."""
    column = np.empty(len(values), object)
    column[:] = values
    return column


def checked(column: NDArray[Any], path: Any) -> NDArray[Any]:
    """Return a column of a file as numbers or text; other columns are an error."""
    from louvain_um.errors import GraphFormatError

    if column.ndim != 1:
        raise GraphFormatError(
            f"vertex and community must be one-dimensional, not of shape {column.shape}; "
            "write one row per vertex",
            path,
        )
    if column.dtype.kind == "f" and np.isnan(column).any():
        raise GraphFormatError("some vertices or communities are missing; drop those rows", path)
    if column.dtype.kind in "biufU":
        return column
    values = column.tolist()
    if any(value is None for value in values):
        raise GraphFormatError("some vertices or communities are missing; drop those rows", path)
    return typed(values)


def typed(values: Sequence[Any]) -> NDArray[Any]:
    """Return integers as integers, and values of any other or of several types as text."""
    if values and all(type(value) is int or isinstance(value, np.integer) for value in values):
        numbers = integers(values)
        if numbers is not None:
            return numbers
    return objects([value if isinstance(value, str) else str(value) for value in values])


def writable(column: NDArray[Any], *, unique: bool = False) -> NDArray[Any]:
    """Return a column as integers or text; with `unique`, different values must stay different."""
    if column.dtype.kind in "iu":
        return column
    texts = typed(column.tolist())
    if texts.dtype.kind != "O":
        return texts
    try:
        "".join(texts).encode()
    except UnicodeEncodeError:
        raise LouvainUmError(
            "some names are not valid Unicode text (lone surrogates); rename those vertices"
        ) from None
    if unique and len(set(texts)) < len(set(column.tolist())):
        raise LouvainUmError(
            "some vertices differ in type only, such as 1 and '1', and a file could not "
            "distinguish them; rename them"
        )
    return texts
