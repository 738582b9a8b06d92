"""Community detection in large graphs on a CPU or a GPU, with the same labels on both."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from louvain_um.version import __version__ as __version__

if TYPE_CHECKING:
    from louvain_um.algorithms.products import pagerank, spmv
    from louvain_um.algorithms.structure import (
        connected_components,
        minimum_spanning_forest,
        triangles,
    )
    from louvain_um.algorithms.traversal import bfs, sssp
    from louvain_um.analysis.ensemble import ensemble
    from louvain_um.analysis.resolution import resolution_profile
    from louvain_um.api import detect_partitioned, leiden, louvain
    from louvain_um.distributed.files.reading import read_partitioned
    from louvain_um.dynamic.graph import DynamicGraph
    from louvain_um.dynamic.streams import read_stream
    from louvain_um.dynamic.tracking.tracker import Tracker
    from louvain_um.errors import (
        DeviceUnavailableError,
        GraphError,
        GraphFormatError,
        GraphWarning,
        KernelCompileError,
        LouvainUmError,
        MemoryBudgetError,
        OptionError,
        WorkerLostError,
    )
    from louvain_um.formats import as_graph, read_graph, write_graph
    from louvain_um.formats.labels.reader import read_labels
    from louvain_um.formats.labels.writer import write_labels
    from louvain_um.graph.graph import Graph
    from louvain_um.interop.estimator import Louvain
    from louvain_um.placement.placer import Placer
    from louvain_um.planning import plan
    from louvain_um.profiling import profile, recording
    from louvain_um.profiling.sweeping import sweep
    from louvain_um.results.communities import Communities
    from louvain_um.results.quality import modularity

# What stands where; imported on first use, so that `louvain-um --help` answers at once.
_HOMES = {
    "louvain_um.algorithms.products": ("pagerank", "spmv"),
    "louvain_um.algorithms.structure": (
        "connected_components",
        "minimum_spanning_forest",
        "triangles",
    ),
    "louvain_um.algorithms.traversal": ("bfs", "sssp"),
    "louvain_um.analysis.ensemble": ("ensemble",),
    "louvain_um.analysis.resolution": ("resolution_profile",),
    "louvain_um.api": ("detect_partitioned", "leiden", "louvain"),
    "louvain_um.dynamic.graph": ("DynamicGraph",),
    "louvain_um.dynamic.tracking.tracker": ("Tracker",),
    "louvain_um.dynamic.streams": ("read_stream",),
    "louvain_um.results.communities": ("Communities",),
    "louvain_um.errors": (
        "DeviceUnavailableError",
        "GraphError",
        "GraphFormatError",
        "GraphWarning",
        "KernelCompileError",
        "LouvainUmError",
        "MemoryBudgetError",
        "OptionError",
        "WorkerLostError",
    ),
    "louvain_um.distributed.files.reading": ("read_partitioned",),
    "louvain_um.interop.estimator": ("Louvain",),
    "louvain_um.formats": ("as_graph", "read_graph", "write_graph"),
    "louvain_um.formats.labels.reader": ("read_labels",),
    "louvain_um.formats.labels.writer": ("write_labels",),
    "louvain_um.graph.graph": ("Graph",),
    "louvain_um.placement.placer": ("Placer",),
    "louvain_um.planning": ("plan",),
    "louvain_um.profiling": ("profile", "recording"),
    "louvain_um.profiling.sweeping": ("sweep",),
    "louvain_um.results.quality": ("modularity",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Communities",
    "DeviceUnavailableError",
    "DynamicGraph",
    "Graph",
    "GraphError",
    "GraphFormatError",
    "GraphWarning",
    "KernelCompileError",
    "Louvain",
    "LouvainUmError",
    "MemoryBudgetError",
    "OptionError",
    "Placer",
    "Tracker",
    "WorkerLostError",
    "as_graph",
    "bfs",
    "connected_components",
    "detect_partitioned",
    "ensemble",
    "leiden",
    "louvain",
    "minimum_spanning_forest",
    "modularity",
    "pagerank",
    "plan",
    "profile",
    "read_graph",
    "read_labels",
    "read_partitioned",
    "read_stream",
    "recording",
    "resolution_profile",
    "spmv",
    "sssp",
    "sweep",
    "triangles",
    "write_graph",
    "write_labels",
]

_PACKAGES = {"dynamic", "generators", "placement", "profiling"}


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        return getattr(import_module(_HOME_OF[name]), name)
    if name in _PACKAGES:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    # What completion offers: neither this module's own imports nor submodules loaded so far.
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
