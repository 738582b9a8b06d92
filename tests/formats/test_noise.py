"""Files with bytes changed at random: a graph or one line of complaint, never anything else."""

import gzip
import warnings

import networkx as nx
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse

from louvain_um.errors import GraphFormatError, GraphWarning
from louvain_um.formats import read_graph, write_graph
from louvain_um.graph.graph import Graph

NAMES = ["g.txt", "g.csv", "n.csv", "g.mtx", "g.graph", "g.npz", "s.npz", "g.parquet", "g.gml",
         "g.graphml", "g.txt.gz"]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("noise")
    rng = np.random.default_rng(5)
    u, v = rng.integers(0, 9, 20), rng.integers(9, 20, 20)
    weighted = Graph.from_edges(u, v, rng.random(20))
    words = np.array([f"v {i}" for i in range(20)])
    named = Graph.from_edges(u, v, n_vertices=20, names=words)
    for name in NAMES:
        if name == "s.npz":
            sparse.save_npz(folder / name, sparse.eye_array(9).tocsr())
        elif name == "g.gml":
            nx.write_gml(nx.karate_club_graph(), folder / name)
        elif name == "g.graphml":
            nx.write_graphml_xml(nx.path_graph(5), folder / name)
        else:
            write_graph(folder / name, named if name == "n.csv" else weighted)
    return folder


def check(path):
    """Read a file; it is a graph, or an error of one line that names it."""
    complaint = ""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", GraphWarning)
            assert read_graph(path).n_arcs % 2 == 0
    except GraphFormatError as error:
        complaint = str(error)
    assert not complaint or (complaint.startswith(str(path)) and "\n" not in complaint)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_changed_bytes(folder, name, data):
    whole = bytearray((folder / name).read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(whole) - 1))
        byte = data.draw(st.one_of(st.sampled_from(b'\n\t ,;"-.e#%0x'), st.integers(0, 255)))
        whole[place] = byte
    if data.draw(st.booleans()):
        del whole[data.draw(st.integers(1, len(whole))) :]
    path = folder / f"changed.{name}"
    path.write_bytes(whole)
    check(path)


@settings(max_examples=200)
@given(st.text('01 \t\n,;"#%/-.eanx', max_size=30), st.sampled_from(["g.txt", "g.txt.gz"]))
def test_any_text(tmp_path_factory, text, name):
    path = tmp_path_factory.getbasetemp() / name
    raw = text.encode()
    path.write_bytes(gzip.compress(raw) if name.endswith("gz") else raw)
    check(path)
