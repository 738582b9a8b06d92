"""What a placement cost: sessions, sources, simulator, report."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from louvain_um.profiling.facade import Session, import_nsys, load
    from louvain_um.profiling.record.profiler import load_ipython_extension, profile, recording

_HOME_OF = {
    "Session": "facade",
    "import_nsys": "facade",
    "load": "facade",
    "load_ipython_extension": "record.profiler",
    "profile": "record.profiler",
    "recording": "record.profiler",
}

__all__ = ["Session", "import_nsys", "load", "load_ipython_extension", "profile", "recording"]


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        return getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
