"""Policies × oversubscription × graphs, measured or modelled."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_MODULE_OF = {"Settings": "points", "Subject": "points", "render": "run", "sweep": "run"}

__all__ = ["Settings", "Subject", "render", "sweep"]


def __getattr__(name: str) -> Any:
    # On first use: the modules of this package import each other's neighbours, not the package.
    if name in _MODULE_OF:
        return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
