"""Policies × oversubscription × graphs, measured or modelled."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_MODULE_OF = {
    "Settings": "points",
    "Subject": "points",
    "Sweep": "results",
    "gains": "results",
    "read": "files",
    "render": "run",
    "sweep": "run",
}

__all__ = ["Settings", "Subject", "Sweep", "gains", "read", "render", "sweep"]


def __getattr__(name: str) -> Any:
    # On first use: importing one module of the package loads none of the others.
    if name in _MODULE_OF:
        return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
