"""Stores of a changing graph's arcs, by name; all hold the same contents, bit for bit."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

from louvain_um.errors import OptionError

if TYPE_CHECKING:
    from louvain_um.dynamic.stores.store import Store

STORES: Final = {
    "rows": "contiguous rows in size classes: reads like CSR, updates in place",
    "csr": "compressed sparse rows, rebuilt by every batch: the baseline",
}
"""Every store with what it is; a store `name` is the class of `louvain_um.dynamic.stores.name`."""


def store_class(name: str) -> type[Store]:
    """Return the class of a store.

    Raises
    ------
    OptionError
        No such store.
    """
    if name not in STORES:
        raise OptionError("store", name, f"must be one of {', '.join(map(repr, STORES))}")
    found: type[Store] = import_module(f"louvain_um.dynamic.stores.{name}").STORE
    return found
