"""Save results to one `.npz` file and load them again."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from louvain_um.core.plain_data import (
    build,
    names_of_bytes,
    names_to_bytes,
    objects,
    parse,
    read_archive,
    to_bytes,
    write_archive,
)
from louvain_um.errors import GraphError, LouvainUmError
from louvain_um.formats.file_types import path_text
from louvain_um.graph.graph import Graph
from louvain_um.options import ObjectiveName
from louvain_um.results.partition import Level, Result

SCHEMA = "louvain-um/communities"
VERSION = 1
"""Raised whenever older code could no longer read what `save` writes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What a file says in addition to its arrays."""

    schema: str
    schema_version: int
    graph: Mapping[str, int] | None
    levels: tuple[Level, ...]
    modularity: float
    objective: ObjectiveName = "modularity"
    value: float | None = None
    resolution: float
    method: str
    timings: Mapping[str, float]
    memory: Mapping[str, int]
    provenance: Mapping[str, Any]


def save(result: Result, path: str | Path, *, force: bool = False) -> None:
    """Write a result; `Communities.save` documents the arguments."""
    path = path_text(path)
    if Path(path).suffix != ".npz":
        raise LouvainUmError(
            f"{path}: a result is saved as .npz; for labels alone, call "
            "louvain_um.write_labels(result, path)"
        )
    arrays: dict[str, NDArray[Any]] = {"labels": result.labels}
    arrays |= {f"map_{k}": map_ for k, map_ in enumerate(result.maps)}
    arrays |= {f"cut_{k}": labels for k, labels in enumerate(result.coarse_labels)}
    names = result.names
    if names is not None and names.dtype.kind in "iuU":
        arrays["names"] = names
    elif names is not None:
        arrays["names_json"] = names_to_bytes(list(names))
    about = {
        "schema": SCHEMA,
        "schema_version": VERSION,
        "graph": None if result.graph is None else _fingerprint(result.graph),
        "levels": [dataclasses.asdict(level) for level in result.levels],
        "modularity": result.modularity,
        "objective": result.objective,
        "value": result.value,
        "resolution": result.resolution,
        "method": result.method,
        "timings": dict(result.timings),
        "memory": dict(result.memory),
        "provenance": dict(result.provenance),
    }
    arrays["about"] = to_bytes(about)
    write_archive(path, arrays, force=force)


def load_fields(path: str | Path, graph: Graph | None = None) -> dict[str, Any]:
    """Return the fields of a result, all but its graph; see `Communities.load`."""
    path = path_text(path)
    arrays = read_arrays(path)
    about = _about(path, arrays)
    try:
        return _fields(path, arrays, about, graph)
    except LouvainUmError:
        raise
    except Exception as error:  # a file may hold any JSON and any arrays
        raise LouvainUmError(
            f"{path}: is damaged ({type(error).__name__}); detect again and save it again"
        ) from error


def _fields(
    path: str | Path,
    arrays: dict[str, NDArray[Any]],
    values: Mapping[str, Any],
    graph: Graph | None,
) -> dict[str, Any]:
    about: About = build(About, values, "result")
    if graph is not None and about.graph not in (None, _fingerprint(graph)):
        raise GraphError(f"{path}: belongs to another graph than the one passed")
    names = arrays.get("names")
    if "names_json" in arrays:
        names = objects(names_of_bytes(arrays["names_json"]))
    labels = arrays["labels"]
    integers = [labels, *_numbered(arrays, "map_"), *_numbered(arrays, "cut_")]
    if any(array.ndim != 1 or array.dtype.kind not in "iu" for array in integers):
        raise ValueError("labels are not lists of integers")
    if len(labels) and not 0 <= int(labels.min()) <= int(labels.max()) < len(labels):
        raise ValueError("labels out of range")
    if names is not None and (names.ndim != 1 or len(names) != len(labels)):
        raise ValueError("names do not match")
    kept = ("levels", "modularity", "objective", "value", "resolution", "method", "timings",
            "memory", "provenance")  # fmt: skip
    return {key: getattr(about, key) for key in kept} | {
        "labels": labels.astype(np.uint32, copy=False),
        "maps": _numbered(arrays, "map_"),
        "coarse_labels": _numbered(arrays, "cut_"),
        "vertex_names": names,
    }


def read_arrays(path: str | Path) -> dict[str, NDArray[Any]]:
    """Return the arrays of an `.npz` file, never unpickling anything."""
    return read_archive(path, f"{path}: not a whole .npz file of plain arrays; write it again")


def _about(path: str | Path, arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
    try:
        about = parse(arrays["about"].tobytes())
        schema, version = about["schema"], int(about["schema_version"])
    except (KeyError, ValueError, TypeError, OverflowError):
        schema, version, about = None, 0, {}
    if schema != SCHEMA or "labels" not in arrays:
        raise LouvainUmError(f"{path}: not a result saved by Communities.save")
    if version != VERSION:
        raise LouvainUmError(
            f"{path}: written in version {version} of the format, this louvain-um reads "
            f"version {VERSION}; detect again, or use the louvain-um that wrote it"
        )
    return dict(about)


def _fingerprint(graph: Graph) -> dict[str, int]:
    return {"vertices": graph.n_vertices, "arcs": graph.n_arcs, "total_weight": graph.total_weight}


def _numbered(arrays: dict[str, NDArray[Any]], prefix: str) -> tuple[NDArray[Any], ...]:
    """Return the arrays named prefix0, prefix1, … in that order."""
    count = sum(name.startswith(prefix) for name in arrays)
    return tuple(arrays[f"{prefix}{k}"] for k in range(count))
