"""What does not fit into host memory is refused in one line with the bytes, before it is made."""

import gzip
import pickle

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import louvain_um as lu
from louvain_um.core import headroom
from louvain_um.core.headroom import check_host_memory, host_memory
from louvain_um.errors import GraphFormatError, HostMemoryError, LouvainUmError
from louvain_um.formats.labels import read_labels
from louvain_um.profiling.sweep.files import read_rows

MANY = 2**32 - 2
"""Vertices: offsets and loops take 64 GiB."""


@pytest.fixture
def free(monkeypatch, tmp_path):
    """Let the system say that so many bytes are free."""

    def say(count):
        info = tmp_path / "meminfo"
        info.write_text(f"MemTotal: 99999999 kB\nMemAvailable: {count >> 10} kB\nSwapFree: 0 kB\n")
        monkeypatch.setattr(headroom, "MEMORY_INFO", info)

    return say


def test_the_smallest_limit_counts(free, monkeypatch, tmp_path):
    free(8 << 30)
    monkeypatch.setattr(headroom, "CONTROL_GROUP", tmp_path)
    monkeypatch.setattr(headroom, "MEMBERSHIP", tmp_path / "membership")
    assert host_memory() == 8 << 30
    files = {"memory.max": 3 << 30, "memory.current": 2 << 30, "memory.stat": "inactive_file 4096"}
    for name, text in files.items():
        (tmp_path / name).write_text(str(text))
    assert host_memory() == (1 << 30) + 4096
    (tmp_path / "memory.max").write_text("max\n")
    assert host_memory() == 8 << 30


GROUPS = {
    "0::/jobs/7/step\n": ("", "memory.max", "memory.current", "inactive_file"),
    "3:cpu:/jobs/7\n2:memory:/jobs/7/step\n0::/\n": (
        "memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"
    ),
    "0::/../../jobs\n": ("", "memory.max", "memory.current", "inactive_file"),
}  # fmt: skip


@pytest.mark.parametrize("membership", GROUPS)
def test_the_groups_of_batch_systems_and_services_count(free, monkeypatch, tmp_path, membership):
    free(8 << 30)
    monkeypatch.setattr(headroom, "CONTROL_GROUP", tmp_path / "groups")
    monkeypatch.setattr(headroom, "MEMBERSHIP", tmp_path / "membership")
    (tmp_path / "membership").write_text(membership)
    first, limit, used, cached = GROUPS[membership]
    inside = tmp_path / "groups" / first / "jobs/7/step"
    inside.mkdir(parents=True)
    above = inside.parents[2 if ".." in membership else 0]
    for folder, most in ((inside, 7 << 30), (above, 2 << 30)):
        (folder / limit).write_text(f"{most}\n")
        (folder / used).write_text(f"{1 << 30}\n")
        (folder / "memory.stat").write_text(f"cache 9\n{cached} 512\n")
    assert host_memory() == (1 << 30) + 512


def test_swap_counts_unless_memory_is_to_be_page_locked(monkeypatch, tmp_path):
    info = tmp_path / "meminfo"
    info.write_text("MemAvailable: 1024 kB\nSwapFree: 2048 kB\n")
    monkeypatch.setattr(headroom, "MEMORY_INFO", info)
    assert (host_memory(), host_memory(swap=False)) == (3 << 20, 1 << 20)


def test_the_error_says_both_and_can_be_pickled(free):
    free(1 << 30)
    with pytest.raises(HostMemoryError) as caught:
        check_host_memory(1 << 40, "it", "use less")
    assert (
        str(pickle.loads(pickle.dumps(caught.value)))
        == str(caught.value)
        == ("it needs 1,099,511,627,776 bytes of host memory, 1,073,741,824 are free; use less")
    )


CLAIMS = {
    "g.mtx": f"%%MatrixMarket matrix coordinate pattern symmetric\n{MANY} {MANY} 1\n2 1\n",
    "general.mtx": f"%%MatrixMarket matrix coordinate pattern general\n{MANY} {MANY} 1\n1 1\n",
    "g.graph": f"{MANY} 1\n2\n1\n",
    "g.txt": f"# Nodes: {MANY} Edges: 1\n0 1\n",
}


@pytest.mark.parametrize("name", CLAIMS)
def test_headers_that_claim_too_many_vertices(tmp_path, free, name):
    free(8 << 30)
    path = tmp_path / name
    path.write_text(CLAIMS[name])
    with pytest.raises(GraphFormatError, match=r"bytes of host memory, 8,589,934,592 are free;"):
        lu.read_graph(path, trusted=True)


def test_ids_that_claim_too_many_vertices(tmp_path, free):
    free(8 << 30)
    path = tmp_path / "g.txt"
    path.write_text(f"0 {MANY - 1}\n")
    with pytest.raises(GraphFormatError, match="of host memory"):
        lu.read_graph(path, one_based=False, trusted=True)
    with pytest.raises(HostMemoryError, match=f"a graph of {MANY:,} vertices and 1 edges needs"):
        lu.Graph.from_edges([0], [1], n_vertices=MANY)


@pytest.mark.parametrize("suffix", ["graphml", "gexf", "cyjs"])
def test_objects_of_other_formats_that_do_not_fit(tmp_path, free, suffix):
    graph = lu.Graph.from_edges(np.arange(100_000), np.arange(1, 100_001))
    free(50 << 20)
    with pytest.raises(HostMemoryError, match=f"writing .*{suffix} needs"):
        lu.write_graph(tmp_path / f"g.{suffix}", graph)
    assert [path.name for path in tmp_path.iterdir()] == ["meminfo"]


OBJECTS = {
    "a graph of networkx": lambda found: found.to_networkx(),
    "a graph of igraph": lambda found: found.to_igraph(),
    "a matrix of 1,999,998 arcs": lambda found: found.graph.to_scipy(),
    "a table of 999,999 edges": lambda found: found.graph.to_pandas(),
    "a dict of 1,000,000 vertices": lambda found: found.to_dict(),
    "shares of 1,000,000 vertices": lambda found: found.memberships(),
    "a changing graph of 1,000,000 vertices and 1,999,998 arcs": lambda found: lu.DynamicGraph(
        found.graph, device="cpu"
    ),
}


@pytest.mark.parametrize("what", OBJECTS)
def test_objects_of_a_result_that_do_not_fit(free, what):
    n = 1_000_000
    graph = lu.Graph.from_edges(np.arange(n - 1), np.arange(1, n))
    found = lu.Communities.of(graph, np.arange(n) // 10)
    free(30 << 20)
    with pytest.raises(HostMemoryError, match=f"^{what} needs"):
        OBJECTS[what](found)


def test_names_that_do_not_fit(tmp_path, free):
    path = tmp_path / "names.csv"
    with path.open("w") as file:
        file.write("source,target\n")
        file.writelines(f"{'a' * 50}{i},{'b' * 50}{i}\n" for i in range(60_000))
    free(36 << 20)  # 120,000 names of 55 characters take more, the graph less
    with pytest.raises(GraphFormatError, match=r"120,000 names of vertices needs .* are free"):
        lu.read_graph(path)
    free(1 << 30)
    assert lu.read_graph(path).n_vertices == 120_000


def test_tables_of_few_bytes_and_many_rows(tmp_path, free):
    rows = 40_000_000
    zeros = pa.DictionaryArray.from_arrays(np.zeros(rows, np.int8), pa.array([7], pa.int64()))
    path = tmp_path / "g.parquet"
    for names in (["source", "target"], ["vertex", "community"], ["policy", "seconds"]):
        parquet.write_table(pa.table([zeros, zeros], names=names), path)
        read = {
            "source": lu.read_graph, "vertex": read_labels, "policy": read_rows
        }[names[0]]  # fmt: skip
        free(256 << 20)
        with pytest.raises(LouvainUmError, match=r"200 times|of host memory") as caught:
            read(path)
        assert str(caught.value).startswith(str(path))


def test_tables_of_a_sweep_as_text(tmp_path, free):
    path = tmp_path / "results.csv"
    path.write_text("policy,seconds\n" + "base,1\n" * 1_000_000)
    free(20 << 20)
    with pytest.raises(HostMemoryError, match="reading it needs"):
        read_rows(path)


def test_labels_that_unpack_to_far_more(tmp_path):
    path = tmp_path / "labels.txt.gz"
    path.write_bytes(gzip.compress(b"0\n" * (150 << 20), 9))
    with pytest.raises(GraphFormatError, match="200 times its size"):
        read_labels(path)


def test_a_run_that_does_not_fit(free):
    graph = lu.Graph.from_edges([0], [1], n_vertices=1_000_000)
    free(20 << 20)
    with pytest.raises(HostMemoryError, match="a run on 1,000,000 vertices needs"):
        lu.louvain(graph, device="cpu")
