"""The seven algorithms again, slowly: by networkx and SciPy, or in a few lines of Python."""

import networkx as nx
import numpy as np
import scipy.sparse as sp


def matrix(graph):
    """Return the adjacency matrix in integers, a loop once on the diagonal."""
    weights = np.ones(graph.n_arcs, np.int64) if graph.weights is None else graph.weights
    n = graph.n_vertices
    arcs = sp.csr_matrix(
        (weights.astype(np.int64), graph.targets.astype(np.int64), graph.offsets), shape=(n, n)
    )
    return arcs + sp.diags(graph.loops, format="csr", dtype=np.int64)


def as_networkx(graph):
    found = nx.Graph()
    found.add_nodes_from(range(graph.n_vertices))
    entries = sp.triu(matrix(graph)).tocoo()
    triples = zip(entries.row.tolist(), entries.col.tolist(), entries.data.tolist(), strict=True)
    found.add_weighted_edges_from(triple for triple in triples if triple[2])
    return found


def distances(graph, source, *, weighted):
    """Return distances in integers, −1 where there is no path."""
    found = np.full(graph.n_vertices, -1, np.int64)
    given = as_networkx(graph)
    if weighted:
        reached = nx.single_source_dijkstra_path_length(given, source)
    else:
        reached = nx.single_source_shortest_path_length(given, source)
    for v, distance in reached.items():
        found[v] = distance
    return found


def parents(graph, source, distances, *, weighted):
    """Return the smallest neighbour on a shortest path to each vertex."""
    found = np.full(graph.n_vertices, -1, np.int64)
    for v in range(graph.n_vertices):
        for j in range(graph.offsets[v], graph.offsets[v + 1]):
            u = int(graph.targets[j])
            length = int(graph.weights[j]) if weighted and graph.weights is not None else 1
            if v != source and distances[v] >= 0 and distances[u] + length == distances[v]:
                found[v] = u
                break
    found[source] = source
    return found


def components(graph):
    found = np.zeros(graph.n_vertices, np.uint32)
    for members in nx.connected_components(as_networkx(graph)):
        found[list(members)] = min(members)
    return found


def forest(graph):
    """Return the edges of the forest, by Kruskal's algorithm."""
    edges = sorted((w, u, v) for u, v, w in as_networkx(graph).edges(data="weight") if u != v)
    edges = sorted((w, min(u, v), max(u, v)) for w, u, v in edges)
    joined = nx.utils.UnionFind(range(graph.n_vertices))
    kept = []
    for w, u, v in edges:
        if joined[u] != joined[v]:
            joined.union(u, v)
            kept.append((u, v, w))
    return sorted(kept)


def ranks(graph, damping):
    """Return PageRank by solving its equations; networkx iterates, and comes close."""
    n, entries = graph.n_vertices, matrix(graph).toarray().astype(float)
    out = entries.sum(axis=1)
    steps = np.where(out[:, None] > 0, entries / np.maximum(out, 1)[:, None], 1 / n)
    found = np.linalg.solve(np.eye(n) - damping * steps.T, np.full(n, (1 - damping) / n))
    iterated = nx.pagerank(as_networkx(graph), alpha=damping, tol=1e-9, max_iter=5000)
    np.testing.assert_allclose(found, [iterated[v] for v in range(n)], atol=1e-6)
    return found


def triangles(graph):
    found = nx.triangles(as_networkx(graph))
    return np.array([found[v] for v in range(graph.n_vertices)], np.int64)


def product(graph, x):
    """Return A x in the order of additions that is promised, with Python's floats."""
    result = np.zeros(graph.n_vertices)
    for v in range(graph.n_vertices):
        parts = [0.0] * 32
        for k, j in enumerate(range(graph.offsets[v], graph.offsets[v + 1])):
            weight = 1.0 if graph.weights is None else float(graph.weights[j])
            parts[k % 32] += weight * float(x[graph.targets[j]])
        for half in (16, 8, 4, 2, 1):
            parts = [parts[k] + parts[k + half] for k in range(half)]
        loop = float(graph.loops[v]) * float(x[v]) if graph.loops[v] else 0.0
        result[v] = (parts[0] + loop) / graph.scale
    return result
