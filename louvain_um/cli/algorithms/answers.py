"""What algorithms answer on the command line: a table, figures, and one line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from louvain_um.graph.graph import Graph


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The result of an algorithm: a table, what JSON shows of it, and one line."""

    columns: Mapping[str, Any]
    numbers: Mapping[str, Any]
    line: str

    def write(self, output: Path, name: str, *, force: bool) -> None:
        """Write the table; `name` is the algorithm."""
        from louvain_um.cli.common import to_json_types
        from louvain_um.formats.labels.columns import writable
        from louvain_um.formats.labels.table import write_table

        columns = {
            key: column if column.dtype.kind == "f" else writable(column, unique=key == "vertex")
            for key, column in self.columns.items()
        }
        numbers: Any = to_json_types(self.numbers)
        # An object holds a key once: a number named as a column is its total.
        named = {f"total_{key}" if key in self.columns else key: numbers[key] for key in numbers}
        about = {"schema": "louvain-um/table", "schema_version": 1, "algorithm": name, **named}
        write_table(output, columns, about, force=force)


def vertices_of(graph: Graph) -> Any:
    """Return the vertices' names, or their numbers."""
    import numpy as np

    return np.arange(graph.n_vertices, dtype=np.uint32) if graph.names is None else graph.names


def paths(graph: Graph, source: str, distances: Any, parents: Any) -> Answer:
    """Return the answer of a search: vertices that are not reached have no row."""
    import numpy as np

    from louvain_um.results.display import count, quantity

    vertices, reached = vertices_of(graph), np.flatnonzero(distances >= 0)
    farthest = distances.max().item()
    total = count(graph.n_vertices, "vertex", "vertices")
    return Answer(
        columns={
            "vertex": vertices[reached],
            "distance": distances[reached],
            "parent": vertices[parents[reached]],
        },
        numbers={"source": source, "reached": len(reached), "farthest": farthest},
        line=f"{len(reached):,} of {total} reached from {source}, the farthest at distance "
        f"{quantity(farthest)}",
    )


def per_vertex(graph: Graph, name: str, values: Any) -> Answer:
    """Return the answer of an algorithm that computes one float per vertex."""
    vertices = vertices_of(graph)
    if not len(values):
        return Answer(columns={"vertex": vertices, name: values}, numbers={}, line="no vertices")
    top, largest = vertices[values.argmax()], values.max().item()
    return Answer(
        columns={"vertex": vertices, name: values},
        numbers={"top": top, "largest": largest},
        line=f"largest {name} {largest:.6g}, of vertex {top}",
    )
