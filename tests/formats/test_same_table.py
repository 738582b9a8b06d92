"""The same edges through every writer, read back: same names, edges, weights and communities."""

import warnings
from collections import Counter
from collections.abc import Callable

import networkx as nx
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import feather

import louvain_um as lu
from louvain_um.formats import as_graph, read_graph, write_graph

igraph = pytest.importorskip("igraph")
pl = pytest.importorskip("polars")

Edge = tuple[str, str, float]

ID_KINDS: dict[str, Callable[[int], str]] = {
    "numbers from 0": str,
    "numbers from 1": lambda i: str(i + 1),
    "large numbers": lambda i: str(10**12 + 7 * i),
    "zeros in front": lambda i: f"{i:05d}",
    "decimals": lambda i: f"{i}.0",
    "telephones": lambda i: f"+49170{i}",
    "some text": lambda i: f"{i}" if i % 3 else f"x{i}",
    "names": lambda i: f"ann{i}",
    "umlauts": lambda i: f"Müller {i}" if i % 2 else f"Óscar-{i}",
}


@st.composite
def tables(draw):
    """Return edges between ids of one kind, some repeated, reversed or loops."""
    name = ID_KINDS[draw(st.sampled_from(sorted(ID_KINDS)))]
    pairs = draw(
        st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), min_size=4, max_size=40)
    )
    weights = draw(
        st.lists(
            st.sampled_from([0.5, 1.0, 1.5, 2.0, 3.0]), min_size=len(pairs), max_size=len(pairs)
        )
    )
    edges = [(name(a), name(b), w) for (a, b), w in zip(pairs, weights, strict=True)]
    return [*edges, (name(0), name(1), 2.5), *((b, a, w) for a, b, w in edges[:2])]


def multigraph(edges):
    graph = nx.MultiGraph()
    for a, b, w in edges:
        graph.add_edge(a, b, weight=w, colour="red")
    return graph


def summed(edges):
    total = Counter()
    for a, b, w in edges:
        total[min(a, b), max(a, b)] += w
    graph = nx.Graph()
    graph.add_weighted_edges_from((a, b, w) for (a, b), w in total.items())
    return graph


def of_igraph(edges):
    names = sorted({end for edge in edges for end in edge[:2]}, reverse=True)
    place = {name: i for i, name in enumerate(names)}
    graph = igraph.Graph(len(names), [(place[a], place[b]) for a, b, _ in edges])
    graph.vs["name"] = names
    graph.es["Weight"] = [w for *_, w in edges]
    return graph


def frame(edges):
    return pd.DataFrame(edges, columns=["from", "to", "strength"])


def written(folder, edges):
    blank = any(" " in end for edge in edges for end in edge[:2])

    def path(name):
        return folder / name

    multi, table, graph = multigraph(edges), frame(edges), of_igraph(edges)
    nx.write_graphml_xml(multi, path("nx.graphml"))
    nx.write_gexf(multi, path("nx.gexf"))
    nx.write_gml(multi, path("nx.gml"))
    path("nx.json").write_text(__import__("json").dumps(nx.node_link_data(multi, edges="links")))
    path("nx.cyjs").write_text(__import__("json").dumps(nx.cytoscape_data(multi)))
    nx.write_edgelist(summed(edges), path("nx.csv"), delimiter=",")
    nx.write_edgelist(multi, path("nx.tsv"), delimiter="\t")
    nx.write_weighted_edgelist(summed(edges), path("nx_w.tsv"), delimiter="\t")
    yield from ((name, path(name)) for name in ("nx.graphml", "nx.gexf", "nx.gml", "nx.json"))
    yield from ((name, path(name)) for name in ("nx.cyjs", "nx.csv", "nx.tsv", "nx_w.tsv"))
    graph.write_graphml(str(path("ig.graphml")))
    graph.write_gml(str(path("ig.gml")))
    yield from ((name, path(name)) for name in ("ig.graphml", "ig.gml"))
    if not blank:
        nx.write_pajek(multi, path("nx.net"))
        nx.write_edgelist(summed(edges), path("nx.edgelist"))
        graph.write_ncol(str(path("ig.ncol")), names="name", weights="Weight")
        yield from ((name, path(name)) for name in ("nx.net", "nx.edgelist", "ig.ncol"))
    table.to_csv(path("pd.csv"), index=False)
    table.to_csv(path("pd_index.csv"))
    table.to_csv(path("pd.tsv"), index=False, sep="\t")
    table.to_parquet(path("pd.parquet"))
    table.to_json(path("pd.json"), orient="records")
    table.to_json(path("pd.jsonl"), orient="records", lines=True)
    feather.write_feather(pa.Table.from_pandas(table), path("pa.feather"))
    pl.from_pandas(table).write_csv(path("pl.csv"))
    pl.from_pandas(table).write_parquet(path("pl.parquet"))
    pl.from_pandas(table).write_ndjson(path("pl.ndjson"))
    yield from ((each, path(each)) for each in ("pd.csv", "pd_index.csv", "pd.tsv", "pd.parquet"))
    yield from ((each, path(each)) for each in ("pd.json", "pd.jsonl", "pa.feather", "pl.csv"))
    yield from ((each, path(each)) for each in ("pl.parquet", "pl.ndjson"))
    ours = as_graph(table)
    for suffix in ("csv", "tsv", "npz", "parquet", "graphml", "gexf", "cyjs"):
        write_graph(ours, path(f"our.{suffix}"))
        yield f"our.{suffix}", path(f"our.{suffix}")


def objects(edges):
    table = frame(edges)
    yield "networkx", multigraph(edges)
    yield "pandas", table
    yield "arrow", pa.Table.from_pandas(table)
    yield "polars", pl.from_pandas(table)
    yield "polars, lazy", pl.from_pandas(table).lazy()
    yield "arrays", tuple(table[name].to_numpy() for name in table.columns)


def contents(graph):
    names = [*map(str, range(graph.n_vertices) if graph.names is None else graph.names.tolist())]
    edges = graph.to_pandas()
    ends = (map(str, edges[end].tolist()) for end in ("source", "target"))
    weights = edges["weight"].tolist() if graph.weighted else [1] * len(edges)
    return names, sorted((min(a, b), max(a, b), w) for a, b, w in zip(*ends, weights, strict=True))


@settings(max_examples=8)
@given(edges=tables())
def test_every_source_gives_the_same_graph(tmp_path_factory, edges):
    folder = tmp_path_factory.mktemp("table")
    names = sorted({end for edge in edges for end in edge[:2]})
    if all(name.isdigit() and (name == "0" or name[0] != "0") for name in names):
        names.sort(key=int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        read = [(what, read_graph(path)) for what, path in written(folder, edges)]
        read += [(what, as_graph(obj)) for what, obj in objects(edges)]
    total = Counter()
    for a, b, w in edges:
        total[min(a, b), max(a, b)] += w
    wanted = names, sorted((a, b, w) for (a, b), w in total.items())
    labels = {}
    for what, graph in read:
        assert contents(graph) == wanted, what
        labels[what] = lu.leiden(graph, device="cpu").labels.tolist()
    assert len({tuple(found) for found in labels.values()}) == 1, labels
