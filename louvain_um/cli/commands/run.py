"""``louvain-um run``: algorithms beside communities, one subcommand each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from louvain_um.cli import common
from louvain_um.cli import reading as graphs
from louvain_um.cli.algorithms import Answer, Running, execute, paths, per_vertex, vertices_of
from louvain_um.cli.common import option
from louvain_um.cli.exit_codes import with_exit_code
from louvain_um.cli.help import Command, Group
from louvain_um.cli.reading import ColumnReading, GraphArgument

if TYPE_CHECKING:
    from louvain_um.graph.graph import Graph

app = typer.Typer(
    cls=Group,
    rich_markup_mode=None,
    no_args_is_help=True,
    help="Run a graph algorithm: `louvain-um run bfs friends.csv --source ann -o distances.csv`.",
)

Source = Annotated[str, option("--source VERTEX", "Where paths begin, as the file names it.")]


def registered(name: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that makes a function the subcommand of an algorithm."""

    def register(command: Callable[..., None]) -> Callable[..., None]:
        for parameter, kind in (("running", Running), ("reading", ColumnReading)):
            command = common.with_options(parameter, kind)(command)
        return app.command(name, cls=Command)(with_exit_code(command))

    return register


@app.callback()
def algorithms() -> None:
    """Run a graph algorithm: `louvain-um run bfs friends.csv --source ann -o distances.csv`."""


@registered("bfs")
def bfs(graph: GraphArgument, start: Source, running: Running, reading: ColumnReading) -> None:
    """Find the distance of every vertex from one, in edges, and a tree of shortest paths."""

    def search(loaded: Graph, call: Mapping[str, Any]) -> Answer:
        from louvain_um.algorithms.traversal import bfs

        return paths(loaded, start, *bfs(loaded, graphs.named(loaded, start), **call))

    execute("bfs", graph, search, running, reading)


@registered("sssp")
def sssp(graph: GraphArgument, start: Source, running: Running, reading: ColumnReading) -> None:
    """Find the shortest path from one vertex to every other; weights are lengths."""

    def search(loaded: Graph, call: Mapping[str, Any]) -> Answer:
        from louvain_um.algorithms.traversal import sssp

        return paths(loaded, start, *sssp(loaded, graphs.named(loaded, start), **call))

    execute("sssp", graph, search, running, reading)


@registered("components")
def components(graph: GraphArgument, running: Running, reading: ColumnReading) -> None:
    """Find the connected components; each is named by its first vertex."""

    def find(loaded: Graph, call: Mapping[str, Any]) -> Answer:
        import numpy as np

        from louvain_um.algorithms.structure import connected_components
        from louvain_um.results.display import count

        labels = connected_components(loaded, **call)
        sizes = np.bincount(labels) if len(labels) else np.zeros(1, np.int64)
        many, largest = int(np.count_nonzero(sizes)), int(sizes.max())
        vertices = vertices_of(loaded)
        return Answer(
            columns={"vertex": vertices, "component": vertices[labels]},
            numbers={"components": many, "largest": largest},
            line=f"{count(many, 'component', 'components')}, the largest of "
            f"{count(largest, 'vertex', 'vertices')}",
        )

    execute("components", graph, find, running, reading)


@registered("mst")
def mst(graph: GraphArgument, running: Running, reading: ColumnReading) -> None:
    """Find the spanning forest of least weight."""

    def find(loaded: Graph, call: Mapping[str, Any]) -> Answer:
        import numpy as np

        from louvain_um.algorithms.structure import minimum_spanning_forest
        from louvain_um.graph.integer_weights import weights_to_write
        from louvain_um.results.display import count, quantity

        u, v, weights = minimum_spanning_forest(loaded, **call)
        vertices, total = vertices_of(loaded), weights.sum().item()
        written = weights_to_write(loaded)(np.rint(weights * loaded.scale).astype(np.int64))
        return Answer(
            columns={"source": vertices[u], "target": vertices[v], "weight": written},
            numbers={"edges": len(u), "weight": total},
            line=f"{count(len(u), 'edge', 'edges')} of weight {quantity(total)} in all",
        )

    execute("mst", graph, find, running, reading)


@registered("pagerank")
def pagerank(
    graph: GraphArgument,
    running: Running,
    reading: ColumnReading,
    damping: Annotated[float, option("X", "Probability of following an edge.")] = 0.85,
    tolerance: Annotated[float, option("X", "Stop when all ranks together change by less.")] = 1e-8,
    max_iterations: Annotated[int, option("N", "Give up after so many iterations.")] = 500,
) -> None:
    """Rank vertices by how often a random walk visits them."""

    def rank(loaded: Graph, call: Mapping[str, Any]) -> Answer:
        from louvain_um.algorithms.products import pagerank

        limits: dict[str, Any] = {"tolerance": tolerance, "max_iterations": max_iterations}
        return per_vertex(loaded, "rank", pagerank(loaded, damping, **limits, **call))

    execute("pagerank", graph, rank, running, reading)


@registered("triangles")
def triangles(graph: GraphArgument, running: Running, reading: ColumnReading) -> None:
    """Count the triangles of every vertex."""

    def count(loaded: Graph, call: Mapping[str, Any]) -> Answer:
        from louvain_um.algorithms.structure import triangles
        from louvain_um.results import display

        counts = triangles(loaded, **call)
        total = int(counts.sum()) // 3
        return Answer(
            columns={"vertex": vertices_of(loaded), "triangles": counts},
            numbers={"triangles": total},
            line=display.count(total, "triangle", "triangles"),
        )

    execute("triangles", graph, count, running, reading)


@registered("spmv")
def spmv(
    graph: GraphArgument,
    running: Running,
    reading: ColumnReading,
    vector: Annotated[
        Path | None,
        option(
            "FILE",
            "The vector: .npy, or text with one number per line, in the order of vertices.  "
            "[default: all 1]",
        ),
    ] = None,
) -> None:
    """Multiply the weighted adjacency matrix with a vector."""

    def multiply(loaded: Graph, call: Mapping[str, Any]) -> Answer:
        import numpy as np

        from louvain_um.algorithms.products import spmv

        x = np.ones(loaded.n_vertices) if vector is None else read_vector(vector)
        return per_vertex(loaded, "value", spmv(loaded, x, **call))

    execute("spmv", graph, multiply, running, reading)


def read_vector(path: Path) -> Any:
    """Return the numbers of a file.

    Raises
    ------
    LouvainUmError
        There is no such file, or it holds something else.
    """
    import warnings

    import numpy as np

    from louvain_um.errors import LouvainUmError

    try:
        if path.suffix == ".npy":
            return np.load(path, allow_pickle=False)
        with warnings.catch_warnings():  # an empty file is told by its length
            warnings.simplefilter("ignore")
            return np.loadtxt(path, ndmin=1)
    except FileNotFoundError:
        raise LouvainUmError(f"{path}: no such file; check the path") from None
    except (ValueError, EOFError, UnicodeDecodeError) as error:
        text = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise LouvainUmError(
            f"{path}: is no vector ({text}); write one number per line, or .npy"
        ) from None
