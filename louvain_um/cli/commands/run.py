"""``louvain-um run``: other algorithms than community detection, one subcommand each."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from louvain_um.cli import common, terminal
from louvain_um.cli import reading as graphs
from louvain_um.cli.common import option
from louvain_um.cli.exit_codes import print_note, with_exit_code
from louvain_um.cli.help import Command, Group
from louvain_um.cli.reading import ColumnReading, GraphArgument, Reading, source_column
from louvain_um.cli.terminal import echo
from louvain_um.errors import LouvainUmError, OptionError, Underflow
from louvain_um.formats.file_types import first_line_of
from louvain_um.options import Options
from louvain_um.placement.policy.find import find_policy
from louvain_um.version import __version__

if TYPE_CHECKING:
    from louvain_um.graph.graph import Graph


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The result of an algorithm: a table, what JSON shows of it, and one line."""

    columns: Mapping[str, Any]
    numbers: Mapping[str, Any]
    line: str

    def write(self, output: Path, name: str, *, force: bool, safe_csv: bool) -> None:
        """Write the table; `name` is the algorithm."""
        from louvain_um.core.plain_data import as_json
        from louvain_um.formats.labels.table import write_table
        from louvain_um.formats.labels.text import writable

        columns = {
            key: column if column.dtype.kind == "f" else writable(column, unique=key == "vertex")
            for key, column in self.columns.items()
        }
        numbers = as_json(self.numbers)
        # An object holds a key once: a number named as a column is its total.
        named = {f"total_{key}" if key in self.columns else key: numbers[key] for key in numbers}
        about = {"schema": "louvain-um/table", "schema_version": 1, "algorithm": name, **named}
        write_table(output, columns, about, force=force, safe_csv=safe_csv)


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


WEIGHING = {"sssp": "every edge has length 1", "mst": "every edge weighs 1"}
"""Algorithms to which weights matter most, and what they do without any."""

FOLLOWING = ("bfs", "sssp", "components", "mst", "triangles")
"""Algorithms whose answer changes with every edge, however little it weighs."""

Algorithm = Callable[["Graph", Mapping[str, Any]], Answer]
"""Computes an answer from a graph and the options of the call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """Options of every algorithm."""

    output: Annotated[
        Path | None,
        option("--output -o TABLE", "File for the result: .csv, .tsv, .parquet, .npz or .json."),
    ] = None
    device: common.Device = "auto"
    memory: common.Memory = "auto"
    device_budget: common.Budget = None
    peer_memory: common.Peer = None
    threads: common.Threads = None
    safe_csv: common.SafeCsv = False
    json: common.Json = False
    force: common.Force = False
    quiet: common.Quiet = False
    verbose: common.Verbose = False


def refuse_underflow(name: str, source: str, graph: Graph) -> None:
    """Raise if edges are missing because their weights round to 0, and the answer needs them."""
    for note in graph.notes if name in FOLLOWING else ():
        if isinstance(note, Underflow):
            unweighted = WEIGHING.get(name, "weights do not matter here")
            raise LouvainUmError(
                f"{source}: {note}, and their edges would be missing; correct the large weights, "
                f"or pass weighted=False (--unweighted): {unweighted}"
            )


def execute(
    name: str, source: str, algorithm: Algorithm, running: Running, reading: Reading
) -> None:
    """Read the graph, run the algorithm, write its table, print what was found."""
    from louvain_um.cli.progress import progress_reporter, timed
    from louvain_um.gpu.runtime.device import pick

    # Bad options raise here, before the graph is read.
    Options(
        device=running.device, threads=running.threads, device_budget=running.device_budget,
        peer_memory=running.peer_memory,
    )  # fmt: skip
    find_policy(running.memory)
    device, output = str(pick(running.device)), running.output
    if output is not None:
        from louvain_um.formats.file_types import check_table_path

        graphs.refuse_same(source, output)
        check_table_path(output, force=running.force, safe_csv=running.safe_csv)
    elif running.safe_csv:
        raise OptionError(remedy="--safe-csv needs a file to write: add -o table.csv")
    seconds = dict.fromkeys(("read", "run", "write"), 0.0)
    with progress_reporter(quiet=running.quiet) as reporter:
        from louvain_um.core.compiled import announced

        with timed(seconds, "read", reporter), announced(reporter):
            reporter.step(f"reading {source}")
            loaded = reading.read(source)
            refuse_underflow(name, source, loaded)
        with timed(seconds, "run", reporter):
            reporter.step(f"running {name}")
            call = {
                "device": device,
                "memory": running.memory,
                "device_budget": running.device_budget,
                "peer_memory": None if device == "cpu" else running.peer_memory,
                "threads": running.threads,
                "observer": reporter,
            }
            answer = algorithm(loaded, call)
        if output is not None:
            with timed(seconds, "write", reporter):
                reporter.step(f"writing {output}")
                answer.write(output, name, force=running.force, safe_csv=running.safe_csv)
    if not running.quiet:
        print_note(*map(source_column, loaded.notes))
        if name in WEIGHING and not loaded.weighted:
            print_note(f"the graph has no weights; {WEIGHING[name]}")
        given = running.memory, "auto", running.device_budget, running.peer_memory
        print_note(*common.ignored_memory_options(device, *given))
        print_note(*common.compiling_notes(reporter.compiled))
    if running.json:
        common.print_json(
            {
                "schema": 1,
                "version": __version__,
                "algorithm": name,
                "graph": terminal.graph_numbers(loaded),
                **answer.numbers,
                "seconds": seconds,
                "device": device,
                "policy": None if device == "cpu" else running.memory,
            }
        )
        return
    if not running.quiet:
        echo(terminal.graph_line(loaded, source))
    echo(f"{answer.line} ({name}, {seconds['run']:.2f} s on {device})")
    if output is not None and not running.quiet:
        echo(f"\nwritten to {output}")


app = typer.Typer(
    cls=Group,
    rich_markup_mode=None,
    no_args_is_help=True,
    help="Run a graph algorithm: `louvain-um run bfs friends.csv --source ann -o distances.csv`.",
)

Source = Annotated[str, option("--source VERTEX", "Start vertex, named as in the file.")]


def subcommand(function: common.Command) -> common.Command:
    """Make a function a subcommand of its name."""
    return app.command(cls=Command)(with_exit_code(function))


@app.callback()
def algorithms() -> None:
    """Run a graph algorithm: `louvain-um run bfs friends.csv --source ann -o distances.csv`."""


@subcommand
def bfs(graph: GraphArgument, start: Source, running: Running, reading: ColumnReading) -> None:
    """Find the distance from one vertex to every other, in edges, and a tree of shortest paths."""

    def search(loaded: Graph, call: Mapping[str, Any]) -> Answer:
        from louvain_um.algorithms.traversal import bfs

        return paths(loaded, start, *bfs(loaded, graphs.named(loaded, start), **call))

    execute("bfs", graph, search, running, reading)


@subcommand
def sssp(graph: GraphArgument, start: Source, running: Running, reading: ColumnReading) -> None:
    """Find the shortest path from one vertex to every other; weights are lengths."""

    def search(loaded: Graph, call: Mapping[str, Any]) -> Answer:
        from louvain_um.algorithms.traversal import sssp

        return paths(loaded, start, *sssp(loaded, graphs.named(loaded, start), **call))

    execute("sssp", graph, search, running, reading)


@subcommand
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


@subcommand
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


@subcommand
def pagerank(
    graph: GraphArgument,
    damping: Annotated[float, option("X", "Probability of following an edge.")] = 0.85,
    tolerance: Annotated[float, option("X", "Stop when all ranks together change by less.")] = 1e-8,
    max_iterations: Annotated[int, option("N", "Give up after this many iterations.")] = 500,
    *,
    running: Running,
    reading: ColumnReading,
) -> None:
    """Rank vertices by how often a random walk visits them."""

    def rank(loaded: Graph, call: Mapping[str, Any]) -> Answer:
        from louvain_um.algorithms.products import pagerank

        limits: dict[str, Any] = {"tolerance": tolerance, "max_iterations": max_iterations}
        return per_vertex(loaded, "rank", pagerank(loaded, damping, **limits, **call))

    execute("pagerank", graph, rank, running, reading)


@subcommand
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


@subcommand
def spmv(
    graph: GraphArgument,
    vector: Annotated[
        Path | None,
        option(
            "FILE",
            "The vector: .npy, or text with one number per line, in the order of vertices.  "
            "[default: all 1]",
        ),
    ] = None,
    *,
    running: Running,
    reading: ColumnReading,
) -> None:
    """Multiply the weighted adjacency matrix with a vector."""

    def multiply(loaded: Graph, call: Mapping[str, Any]) -> Answer:
        import numpy as np

        from louvain_um.algorithms.products import spmv

        x = np.ones(loaded.n_vertices) if vector is None else read_vector(vector)
        return per_vertex(loaded, "value", spmv(loaded, x, **call))

    graphs.refuse_two_inputs(graph, vector)
    execute("spmv", graph, multiply, running, reading)


def read_vector(path: Path) -> Any:
    """Return the numbers of a file."""
    import warnings

    import numpy as np

    try:
        if path.suffix == ".npy":
            return np.load(path, allow_pickle=False)
        with warnings.catch_warnings():  # an empty file is recognised by its length
            warnings.simplefilter("ignore")
            return np.loadtxt(sys.stdin if str(path) == "-" else path, ndmin=1)
    except FileNotFoundError:
        raise LouvainUmError(f"{path}: no such file; check the path") from None
    except (ValueError, EOFError, UnicodeDecodeError) as error:
        raise LouvainUmError(
            f"{path}: is not a vector ({first_line_of(error)}); write one number per line, or .npy"
        ) from None
