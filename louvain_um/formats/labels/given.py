"""Labels as callers have them, listed by vertex as a file lists them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from louvain_um.core.plain_data import is_missing
from louvain_um.errors import GraphError
from louvain_um.formats.labels.columns import objects, typed
from louvain_um.results.communities import Communities
from louvain_um.results.comparison import Labels
from louvain_um.results.given_labels import (
    FORMS,
    OVERLAPPING,
    Given,
    indexed_communities,
    is_indexed,
    label_array,
    named_labels,
    plain_communities,
)
from louvain_um.results.partition import Partition


def listed(given: Given | Labels, names: ArrayLike | None = None) -> Communities | Labels:
    """Return vertices and their communities; a result stays a result."""
    if isinstance(given, Communities | Labels) and names is None:
        return given
    chosen = None if names is None else _names(names)
    own, labels = _split(given, chosen)
    column = _column(labels)
    if own is not None and chosen is not None:
        raise GraphError("these labels name their vertices; leave names out")
    if own is None and chosen is not None and len(chosen) != len(column):
        raise GraphError(
            f"{len(chosen)} names for {len(column)} labels; pass one name for each label"
        )
    if isinstance(given, Communities):
        return replace(given, graph=None, vertex_names=chosen)
    vertices = chosen if own is None else _names(own)
    return Labels(np.arange(len(column)) if vertices is None else vertices, column)


def _split(given: Any, names: NDArray[Any] | None) -> tuple[Any, Any]:
    """Return vertices, or None for labels in vertex order, and labels."""
    given = plain_communities(given)
    if isinstance(given, Labels):
        return given.vertices, given.communities
    if isinstance(given, Partition):
        return given.names, given.labels
    if is_indexed(given):
        known = given.index.tolist() if names is None else names.tolist()
        given = indexed_communities(given, known)
    if isinstance(given, Mapping):
        return list(given), list(given.values())
    members = named_labels(given)
    if members is not None and len(set(members[0].tolist())) < len(members[0]):
        raise GraphError(OVERLAPPING)
    return (None, given) if members is None else members


def _names(values: Any) -> NDArray[Any]:
    """Return names as integers or objects, all different."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise GraphError("names must be integers or text, one for each vertex")
    listed = values.tolist() if isinstance(values, np.ndarray) else list(values)
    if any(map(is_missing, listed)):
        at = next(at for at, value in enumerate(listed) if is_missing(value))
        raise GraphError(f"the name at index {at} is missing ({listed[at]}); name every vertex")
    try:
        once = len(set(listed)) == len(listed)
    except TypeError:
        raise GraphError("names must be integers or text, one for each vertex") from None
    if not once:
        raise GraphError("some vertices are listed twice; list each once")
    numbers = typed(listed)
    return objects(listed) if numbers.dtype.kind == "O" else numbers


def _column(values: Any) -> NDArray[Any]:
    """Return communities as integers or text."""
    column = label_array(values)
    if column.ndim != 1:
        raise GraphError(f"labels must be one-dimensional, not of shape {column.shape}; {FORMS}")
    if column.dtype.kind in "biu":
        return column
    # As they were: NumPy makes real numbers of integers beyond 63 bits.
    found: Sequence[Any] = values if isinstance(values, list) else column.tolist()
    for at, value in enumerate(found):
        if not isinstance(value, int | str | np.integer | float):
            raise GraphError(f"communities must be integers or strings; {FORMS}")
        if isinstance(value, float) and not value.is_integer():
            raise GraphError(f"the label at index {at} is {value}; label by integers or strings")
    # pandas makes integers real where one was missing once.
    return typed([int(value) if isinstance(value, float) else value for value in found])
