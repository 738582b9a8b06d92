"""Modularity against what igraph (Louvain) and leidenalg (Leiden) reach on real graphs."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import normalized_mutual_info_score

from louvain_um import Graph, api
from louvain_um.generators import lfr

# Louvain by igraph 1.0, Leiden by leidenalg 0.12.
REFERENCES = {
    "web-NotreDame.txt.gz": (0.9363, 0.9371),
    "soc-Epinions1.txt.gz": (0.4422, 0.4541),
    "email-Enron.txt.gz": (0.6169, 0.6226),
    "cond-mat-2005.npz": (0.7273, 0.7447),
    "astro-ph.graph": (0.7320, 0.7396),
    "rgg_n_2_15_s0.graph": (0.9670, 0.9677),
}


def read(path: Path) -> Graph:
    """Read a graph by the shortest way, so that a reader's fault cannot hide here."""
    if path.suffix == ".npz":
        with np.load(path) as file:
            return Graph.from_edges(file["u"], file["v"], n_vertices=int(file["n"]))
    if path.suffix == ".graph":
        lines = [line for line in path.read_text().splitlines() if not line.startswith("%")]
        rows = [np.array(line.split(), np.int64) - 1 for line in lines[1:]]
        return Graph.from_edges(
            np.repeat(np.arange(len(rows)), [len(row) for row in rows]), np.concatenate(rows)
        )
    with gzip.open(path, "rt") as file:
        edges = np.loadtxt(file, dtype=np.int64)
    ids, ends = np.unique(edges, return_inverse=True)
    ends = ends.reshape(edges.shape)
    return Graph.from_edges(ends[:, 0], ends[:, 1], n_vertices=len(ids))


@pytest.fixture(scope="module", params=list(REFERENCES))
def case(request: pytest.FixtureRequest, shared_data: Path) -> tuple[Graph, float, float]:
    return read(shared_data / request.param), *REFERENCES[request.param]


def test_louvain_with_the_default_seed(case: tuple[Graph, float, float]) -> None:
    graph, reference, _ = case
    assert api.louvain(graph, device="cpu").modularity >= reference * 0.997


def test_leiden_with_the_default_seed(case: tuple[Graph, float, float]) -> None:
    graph, _, reference = case
    result = api.leiden(graph, device="cpu")
    assert result.modularity >= reference * 0.993
    assert result.quality().disconnected == 0


@pytest.mark.parametrize("method", ["louvain", "leiden"])
def test_the_mean_of_several_seeds(method: str, shared_data: Path) -> None:
    graph = read(shared_data / "email-Enron.txt.gz")
    found = [getattr(api, method)(graph, device="cpu", seed=s).modularity for s in range(6)]
    reference = REFERENCES["email-Enron.txt.gz"][method == "leiden"]
    assert np.mean(found) >= reference * (0.993 if method == "leiden" else 0.997)


@pytest.mark.parametrize("method", ["louvain", "leiden"])
def test_karate(method: str, shared_data: Path) -> None:
    edges = np.loadtxt(shared_data / "karate.mtx", comments="%", skiprows=0, usecols=(0, 1))
    u, v = edges[1:].astype(np.int64).T - 1
    assert getattr(api, method)(Graph.from_edges(u, v), device="cpu").modularity >= 0.4188


@pytest.mark.parametrize(
    ("mixing", "expected"), [(0.1, 0.991), (0.3, 0.977), (0.5, 0.951), (0.6, 0.929)]
)
def test_planted_communities_are_found(mixing: float, expected: float) -> None:
    planted = lfr(
        50_000, min_degree=20, max_degree=100, degree_exponent=2.5, min_community=50,
        max_community=500, community_exponent=1.5, mixing=mixing, seed=1,
    )  # fmt: skip
    found = api.louvain(planted.graph, device="cpu")
    assert normalized_mutual_info_score(planted.labels, found.labels) >= expected - 0.01
