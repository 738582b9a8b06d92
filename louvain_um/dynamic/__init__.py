"""Graphs that change: batches of edges, and the stores that keep rows ready to be read."""

from importlib import import_module
from typing import Any

_MODULES = {"declared", "scenarios", "stores"}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
