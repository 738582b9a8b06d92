"""Graphs from other libraries' objects, recognized by the module of their type.

No library is imported that the caller has not imported: an object of a library proves that
it is loaded.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from contextvars import ContextVar
from importlib.resources import files
from typing import Any, Final

import numpy as np

from louvain_um.core.headroom import check_host_memory
from louvain_um.core.plain_data import collected, number_array
from louvain_um.errors import GraphError, OptionError
from louvain_um.formats.build import make_graph
from louvain_um.formats.read_options import ReadOptions
from louvain_um.graph.graph import Graph

TUPLE_BYTES: Final = 60
"""Of each edge of a list, at least: its ends as columns of objects, then of numbers."""

KNOWN = (
    "a Graph, a networkx, igraph or NetworKit graph, a SciPy or CuPy sparse matrix, a square "
    "array, a table of edges (pandas, Arrow, Polars, cuDF), (source, target[, weights]) or a list "
    "of edge tuples"
)

BUILDING: Final = "louvain_um.gpu.building.objects"
"""What builds graphs of arrays in a device's memory, for objects that are there."""

BUILDS_THERE: ContextVar[bool] = ContextVar("builds_there", default=True)
"""Whether such graphs are built where their arrays are."""


def _graph_in(obj: Any) -> Graph | None:
    """Return an object of this package as a graph, None for others."""
    if isinstance(obj, Graph | type):
        return obj if isinstance(obj, Graph) else None
    # A changing graph, as it is now, and a graph on a device.
    make = getattr(obj, "host_snapshot", None) or getattr(obj, "as_graph", None)
    found: Graph | None = None if make is None else make()
    return found


def adapt(obj: Any, options: ReadOptions) -> Graph:
    """Return `obj` as a graph; `as_graph` documents the accepted types."""
    if (found := _graph_in(obj)) is not None:
        permitted = ReadOptions(
            directed=options.directed, signed=options.signed,
            symmetrize=options.symmetrize and found.kind != "directed",
            allow_rounding=options.allow_rounding,
        )  # fmt: skip
        if options != permitted:
            raise GraphError(
                f"a {type(obj).__name__} is taken as it is; pass options of reading to what it is "
                "made of"
            )
        return found
    if BUILDS_THERE.get() and options == ReadOptions() and (built := _built_there(obj)):
        return built
    libraries = {base.__module__.partition(".")[0] for base in type(obj).__mro__}
    if "cudf" in libraries and hasattr(obj, "to_pandas"):  # of a device's memory
        return adapt(obj.to_pandas(), options)
    table = bool(libraries & {"pandas", "pyarrow", "polars"})
    if "anndata" in libraries and hasattr(obj, "obsp"):
        from louvain_um.formats.neighbours import from_anndata

        return from_anndata(obj, options)
    network = libraries & {"networkx", "igraph"}
    fits = ("weight",) if network else ("bipartite",) if isinstance(obj, tuple | list) else ()
    if not table and (problem := options.unsuited(f"a {type(obj).__name__}", but=fits)):
        raise GraphError(problem)
    obj = collected(obj)
    if "networkx" in libraries and hasattr(obj, "is_multigraph"):
        from louvain_um.formats.networks import from_networkx

        return from_networkx(obj, options)
    if "igraph" in libraries and hasattr(obj, "get_edgelist"):
        from louvain_um.formats.networks import from_igraph

        return from_igraph(obj, options)
    if "networkit" in libraries and hasattr(obj, "upperNodeIdBound"):
        from louvain_um.formats.networks import from_networkit

        return from_networkit(obj, options)
    if libraries & {"cupy", "cupyx"} and hasattr(obj, "get"):
        obj = obj.get()
        libraries = {type(obj).__module__.partition(".")[0]}
    if "scipy" in libraries and hasattr(obj, "tocsr"):
        from louvain_um.formats.matrices import from_sparse

        return from_sparse(obj, options)
    if table:
        return _from_table(obj, libraries, options)
    if isinstance(obj, np.ndarray):
        return _from_array(obj, options)
    if isinstance(obj, list) and all(isinstance(edge, tuple) for edge in obj):
        return _from_tuples(obj, options)
    if isinstance(obj, tuple | list) and len(obj) in (2, 3):
        if isinstance(obj, list) and all(isinstance(p, list) and len(p) in (2, 3) for p in obj):
            raise GraphError(
                "a list of lists of two or three can be edges, columns or a matrix; pass edges as "
                "a list of tuples, columns as a tuple (source, target[, weights]), a matrix as "
                "numpy.array(...)"
            )
        parts = [_host(part) for part in obj]
        return _from_arrays(parts, options)
    if libraries & {"dask", "dask_expr"}:
        raise GraphError(
            "a Dask DataFrame is read by the ranks of a cluster; pass "
            "read_partitioned(frame) and cluster='local:2', say"
        )
    raise GraphError(f"cannot read {type(obj).__name__} as a graph; pass {KNOWN}")


def _built_there(obj: Any) -> Graph | None:
    """Return the graph of arrays in a device's memory, made there; None for any others."""
    if "cupy" not in sys.modules:
        return None
    building = importlib.import_module(BUILDING)
    if not building.is_there(obj):
        return None
    there: Graph | None = building.built_there(obj)
    return there


def _from_array(array: Any, options: ReadOptions) -> Graph:
    from louvain_um.formats.matrices import from_dense

    if np.ma.is_masked(array):
        raise GraphError("the array has masked entries; fill them, with 0 where there is no edge")
    if array.ndim == 2 and array.shape[0] == array.shape[1]:
        return from_dense(array, options)
    from louvain_um.formats.tables import whole

    columns = None
    if array.ndim == 2 and array.shape[0] in (2, 3) and array.shape[1] > 3:
        columns = [*array]
    elif array.ndim == 2 and array.shape[1] in (2, 3) and array.shape[0] > 3:
        columns = [array[:, place] for place in range(array.shape[1])]
    if columns is None:
        raise GraphError(
            f"an array of shape {array.shape} is not a square adjacency matrix; pass edges as "
            "(source, target) or (source, target, weights)"
        )
    if array.dtype.kind == "f":  # ids in an array of real weights
        columns[:2] = [whole(column) for column in columns[:2]]
    return _from_arrays(columns, options)


def _from_tuples(edges: list[tuple[Any, ...]], options: ReadOptions) -> Graph:
    """Build from [(u, v[, w]), …]."""
    width = len(edges[0]) if edges else 2
    odd = next((i for i, edge in enumerate(edges) if len(edge) != width), None)
    if odd is not None or width not in (2, 3):
        raise GraphError(
            f"edge {odd or 0} is {edges[odd or 0]!r}; all must be (u, v), or all (u, v, weight)"
        )
    check_host_memory(
        TUPLE_BYTES * len(edges), f"a list of {len(edges):,} edges", "pass arrays of both ends"
    )
    parts = list(zip(*edges, strict=True)) or [(), ()]
    return _from_arrays([number_array(part) for part in parts], options)


def _from_arrays(parts: list[Any], options: ReadOptions) -> Graph:
    """Build from (source, target[, weights]); ids are vertices 0 … n − 1 or names."""
    from louvain_um.formats.tables import factorize

    u, v = parts[:2]
    w = parts[2] if len(parts) == 3 and options.weighted is not False else None
    if u.ndim != 1 or v.ndim != 1:
        raise GraphError(
            f"edges must be two one-dimensional arrays; got shapes {u.shape} and {v.shape}"
        )
    if options.bipartite:
        from louvain_um.formats.tables import from_ids

        return from_ids(u, v, w, options)
    names = None
    if "U" in (u.dtype.kind, v.dtype.kind) or object in (u.dtype, v.dtype):
        if len(u) != len(v):
            raise GraphError(
                f"source has {len(u)} entries and target {len(v)}; pass both ends of each edge"
            )
        u, v, names = factorize(u, v)
    return make_graph(u, v, w, names, options)


def _from_table(obj: Any, libraries: set[str], options: ReadOptions) -> Graph:
    from louvain_um.formats.tables import from_columns, refuse_cross_table, refuse_incidence

    if "pandas" in libraries and hasattr(obj, "columns"):
        if _is_matrix(obj) and not options.names_columns:
            return _from_matrix(obj, options)
        refuse_cross_table(obj, options)
        kinds = dict(zip(obj.columns, obj.dtypes, strict=True))
        numbers = all(getattr(kind, "kind", "O") in "iuf" for kind in kinds.values())
        if numbers and not options.names_columns and _seems_matrix(obj):
            raise GraphError(
                f"{len(obj)} numbered columns in as many rows seem to be a matrix, not edges; pass "
                "frame.to_numpy(), or name the columns with source=… and target=…"
            )
        if numbers and obj.index.dtype.kind in "OT" and not options.names_columns:
            refuse_incidence(obj.index.tolist(), list(obj.columns), obj.to_numpy())
        return from_columns(
            list(obj.columns),
            lambda name: obj[name].to_numpy(),
            lambda name: getattr(kinds[name], "kind", "O") in "iuf",
            options,
        )
    if "pyarrow" in libraries and hasattr(obj, "column_names"):
        from louvain_um.formats.arrow import from_arrow, is_numeric

        types = dict(zip(obj.schema.names, obj.schema.types, strict=True))

        def column(name: Any) -> Any:
            array = obj.column(name)
            if not hasattr(array, "combine_chunks"):
                import pyarrow

                array = pyarrow.chunked_array([array])
            return from_arrow(array, str(name))

        return from_columns(obj.column_names, column, lambda name: is_numeric(types[name]), options)
    if "polars" in libraries and hasattr(obj, "get_column"):
        return from_columns(
            obj.columns,
            lambda name: _polars_column(obj, name),
            lambda name: obj.schema[name].is_numeric(),
            options,
        )
    raise GraphError(f"cannot read {type(obj).__name__} as a graph; pass {KNOWN}")


def _polars_column(frame: Any, name: str) -> Any:
    """Return a column of a Polars frame as an array."""
    try:
        return frame.get_column(name).to_numpy()
    except Exception:  # of several types, one for each Polars
        raise GraphError(
            f"column {name} is of type {frame.schema[name]}; cast it to Int64 or text"
        ) from None


def _is_matrix(frame: Any) -> bool:
    """Return whether a frame is an adjacency matrix: its rows and columns have the same labels."""
    # Rows, or columns in another order, without labels of their own.
    numbered = [type(labels).__name__ == "RangeIndex" for labels in (frame.index, frame.columns)]
    if len(frame) == 0 or numbered[0]:
        return False
    if frame.index.equals(frame.columns):
        return True
    square = len(frame) == len(frame.columns) and not numbered[1]
    return square and set(frame.index) == set(frame.columns)


def _seems_matrix(frame: Any) -> bool:
    """Return whether a frame without names of its columns is square and symmetric."""
    from louvain_um.formats.edge_list.sniff import LEAST_MATRIX

    square = LEAST_MATRIX <= len(frame) == frame.shape[1]
    if type(frame.columns).__name__ != "RangeIndex" or not square:
        return False
    cells = frame.to_numpy()
    return bool((cells == cells.T).all())


def listed_vertices(obj: Any) -> list[Any] | None:
    """Return the vertices of a networkx graph or a square frame in its order."""
    libraries = {base.__module__.partition(".")[0] for base in type(obj).__mro__}
    if "networkx" in libraries:
        return list(obj)
    square = "pandas" in libraries and hasattr(obj, "columns") and _is_matrix(obj)
    return obj.index.tolist() if square else None


def _from_matrix(frame: Any, options: ReadOptions) -> Graph:
    from louvain_um.formats.matrices import from_labelled

    names = frame.index.tolist()
    if names != frame.columns.tolist() and len(set(names)) == len(names):
        frame = frame[names]
    sparse = all(hasattr(kind, "fill_value") for kind in frame.dtypes)
    matrix = frame.sparse.to_coo().tocsr() if sparse else frame.to_numpy()
    return from_labelled(matrix, names, options)


def _host(part: Any) -> Any:
    """Return an array in host memory."""
    if type(part).__module__.startswith("cudf"):
        part = part.to_pandas()
    elif hasattr(part, "__cuda_array_interface__") and "cupy" in sys.modules:
        part = sys.modules["cupy"].asarray(part).get()
    # Masks stay, for `build` to refuse.
    return number_array(part)


EXAMPLES: Final = ("les-miserables", "karate", "florentine-families", "southern-women")
"""Names of examples: the networks of Knuth (1993), Zachary (1977), Breiger and Pattison (1986), and
Davis and others (1941), as networkx has them."""

PREFIX = "example:"


def is_example(source: str) -> bool:
    """Return whether a source names an example; a file of that name comes first."""
    if not source.startswith(PREFIX) or os.path.exists(source):
        return False
    name = source.removeprefix(PREFIX)
    if name not in EXAMPLES:
        raise OptionError(
            "example",
            name,
            f"choose from {', '.join(EXAMPLES)}",
            problem=f"unknown example {name!r}",
        )
    return True


def example(source: str, options: ReadOptions) -> Graph:
    """Return the graph of an example."""
    from louvain_um.formats.networks import UNDIRECTED

    if options.directed:
        raise GraphError(UNDIRECTED)
    fits = ("weight",) if options.weight == "weight" else ()
    if problem := options.unsuited("an example", but=fits) or options.unsuited_to("an example"):
        raise GraphError(problem)
    with files("louvain_um.formats").joinpath("examples.json").open("rb") as file:
        edges = json.load(file)[source.removeprefix(PREFIX)]
    return _from_tuples([tuple(edge) for edge in edges], options)
