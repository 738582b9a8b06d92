import gzip
import re
import time

import numpy as np
import pytest

from louvain_um import DynamicGraph, read_graph
from louvain_um.placement.machine import profiles

GROUPS = ["graph", "hash", "community", "scratch"]
LARGE = ("--vertices", 16_777_216, "--arcs", 650_000_000, "--machine", "h200")


@pytest.fixture(autouse=True)
def no_gpu(monkeypatch, tmp_path):
    """Plan as on a machine without a GPU, wherever the tests run."""
    monkeypatch.setattr(profiles, "present", lambda device: (None, None))
    monkeypatch.setenv("LOUVAIN_UM_MACHINES", str(tmp_path))


def test_json_holds_what_the_interface_promises(run):
    found = run("plan", *LARGE, "--json").json
    assert set(found["peak_bytes"]) == set(found["placements"]) == set(GROUPS)
    assert {"policy", "seconds", "fits", "cliff_arcs"} <= set(found)
    for array in found["arrays"]:
        assert {"name", "group", "dtype", "bytes", "phases"} <= set(array)
        assert array["group"] in GROUPS
    assert found["fits"] is True
    assert found["policy"] == "auto"
    assert found["cliff_arcs"] > 650_000_000
    arrays = {a["name"]: a["bytes"] for a in found["arrays"]}
    assert arrays["targets.0"] == 4 * 650_000_000
    assert arrays["offsets.0"] == 8 * 16_777_217


def test_a_search_is_planned_with_its_runs(run):
    search = "--effort", "best", "--best-of", 2, "--method", "leiden"
    one, more = (run("plan", *LARGE, *given, "--json").json for given in ((), search))
    assert one["runs"] == 1
    assert more["runs"] > 20
    few = run("plan", *LARGE, *search, "--n-iterations", 3, "--json").json
    assert "until" not in " ".join(few["notes"])
    assert any("in the last run, until nothing improves" in note for note in more["notes"])
    text = run("plan", *LARGE, "--n-iterations", -1).err
    assert ": until nothing improves" in text


def test_text_output_has_a_row_and_a_reason_per_group(run):
    found = run("plan", *LARGE, "--device-budget", "2GiB")
    assert found.code == 0
    for group in GROUPS:
        assert f"\n{group}" in found.out
        assert f"{group}: " in found.out
    assert "more than the" in found.out.splitlines()[0]
    assert "φ" not in found.out
    assert "φ − τ − σ" in run("plan", *LARGE, "-v").out
    reported = "all of that is reserved, in pages that change sides"
    assert reported in found.out
    whole = run("plan", *LARGE, "-v").out
    assert reported not in whole
    assert "targets.0" in whole
    brief = run("plan", *LARGE, "-q")
    assert len(brief.out.splitlines()) == 1
    assert brief.err == ""


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.mtx", "%%MatrixMarket matrix coordinate real symmetric\n% c\n9000 9000 40000\nx\n"),
        ("a.graph", "% c\n9000 40000 001\nx\n"),
    ],
)
def test_the_first_lines_are_enough(run, tmp_path, name, text):
    """What follows the header is not valid and must not be read."""
    path = tmp_path / name
    path.write_text(text)
    packed = tmp_path / f"{name}.gz"
    packed.write_bytes(gzip.compress(text.encode()))
    for file in (path, packed):
        found = run("plan", file, "--json").json
        assert (found["vertices"], found["arcs"]) == (9000, 80000)
        assert any("was read" in message and "--read" in message for message in found["notes"])
        assert "weights.0" in {a["name"] for a in found["arrays"]}
        plain = run("plan", file, "--unweighted", "--json").json
        assert "weights.0" not in {a["name"] for a in plain["arrays"]}
        assert run("plan", file, "--read").code == 1


def test_the_heads_of_an_archive_are_enough(run, tmp_path):
    path = tmp_path / "a.npz"
    u = np.arange(1000)
    np.savez_compressed(path, u=u, v=u + 1, n=1001, w=u + 0.5)
    found = run("plan", path, "--json").json
    assert (found["vertices"], found["arcs"]) == (1001, 2000)
    assert {a["name"]: a["dtype"] for a in found["arrays"]}["weights.0"] == "uint64"


def test_a_matrix_of_ones_has_no_weights(run, tmp_path):
    from scipy.sparse import csr_matrix, save_npz

    matrix = csr_matrix(np.array([[0, 1.0, 0], [1, 0, 1], [0, 1, 0]]))
    for factor, weighted in ((1, False), (2, True)):
        save_npz(tmp_path / "a.npz", matrix * factor)
        found = run("plan", tmp_path / "a.npz", "--json").json
        assert (found["vertices"], found["arcs"]) == (3, 4)
        assert ("weights.0" in {a["name"] for a in found["arrays"]}) is weighted


def test_other_files_are_read_whole_with_a_note(run, two_triangles):
    found = run("plan", two_triangles, "--json").json
    assert (found["vertices"], found["arcs"]) == (6, 14)
    assert found["kind"] != "unknown"
    assert any(
        "the whole graph was read, as it has no header" in message for message in found["notes"]
    )
    assert run("plan", "example:karate", "--json").json["vertices"] == 34
    piped = run("plan", "-", "--json", stdin=b"0 1\n1 2\n").json
    assert piped["vertices"] == 3


def test_reading_all_finds_the_kind(run, shared_data):
    path = shared_data / "delaunay_n15.graph"
    assert run("plan", path, "--json").json["kind"] == "unknown"
    assert run("plan", path, "--read", "--json").json["kind"] == "mesh"
    assert run("plan", path, "--kind", "power_law", "--json").json["kind"] == "power_law"


@pytest.mark.parametrize("text", ["%%MatrixMarket matrix array real general\n", "hello\n", ""])
def test_bad_heads_are_named(run, tmp_path, text):
    path = tmp_path / "bad.mtx"
    path.write_text(text)
    assert "bad.mtx" in run("plan", path).complaint()


def test_empty_graphs_are_planned(run):
    found = run("plan", "--vertices", 0, "--arcs", 0, "--json")
    assert found.code == 0
    assert found.json["cliff_arcs"] == 0


def test_a_plan_takes_no_time(run):
    run("plan", *LARGE, "-q")
    since = time.perf_counter()
    run("plan", *LARGE, "--device-budget", "30%", "--json")
    assert time.perf_counter() - since < 2


def test_an_arc_listed_once_is_two_as_undirected(run, tmp_path):
    path = tmp_path / "one_way.mtx"
    path.write_text("%%MatrixMarket matrix coordinate pattern general\n90 90 3\n1 2\n2 3\n4 3\n")
    by_head = run("plan", path, "--symmetrize", "--json").json
    whole = run("plan", path, "--symmetrize", "--read", "--json").json
    assert by_head["arcs"] == whole["arcs"] == 6


def test_bytes_are_shown_by_stage(run, monkeypatch):
    found = run("plan", *LARGE, "--json").json
    for stage, nbytes in found["stage_bytes"].items():
        alive = (array["bytes"] for array in found["arrays"] if stage in array["phases"])
        assert nbytes == sum(alive)
    monkeypatch.setenv("COLUMNS", "40")
    text = run("plan", *LARGE, "--memory", "adv1", "-v").out
    assert re.search(r"^move +\d+\.\d GiB", text, re.MULTILINE)
    assert "…" not in text


def test_stores_of_changing_graphs_are_planned(run, tmp_path):
    graph = read_graph("example:les-miserables")
    for store, words in (("bal", "bal on the CPU: "), ("pages", "of the device at most")):
        assert words in run("plan", "store", store, "example:les-miserables").out
        options = ("example:les-miserables", "--on-cpu", "--json")
        found = run("plan", "store", store, *options).json
        held = DynamicGraph(graph, store=store).memory.total_bytes
        assert sum(array["bytes"] for array in found["arrays"]) == held
    size = ("--vertices", "1M", "--arcs", "40M")
    for phrase in ("about", "φ", " µs", " ms"):  # bytes are planned, and no times
        assert phrase not in run("plan", "store", "rows", *size, "--machine", "h200").out
    assert run("plan", "store", "rows", *size, "--json").json["seconds"] is None
    small, large = (
        run("plan", "store", "rows", *size, "--batch", batch, "--growth", growth, "--json").json
        for batch, growth in (("1k", 1), ("1M", 2))
    )
    assert 1.8 * small["in_core_bytes"] < large["in_core_bytes"]
    assert run("plan", "store", "vine", *size, "-q").out.count("\n") == 1


def test_another_program_is_planned_from_its_size(run, two_triangles):
    found = run("plan", "program", "mst", *LARGE, "--weighted", "--json").json
    sizes = {array["name"]: array["bytes"] for array in found["arrays"]}
    assert (sizes["targets"], sizes["weights"]) == (4 * 650_000_000, 8 * 650_000_000)
    assert found["program"] == "mst"
    bfs = ("plan", "program", "bfs")
    read = run(*bfs, two_triangles, "--json").json
    like = run(*bfs, "--vertices", 6, "--arcs", 14, "--json").json
    assert {**like, "graph": read["graph"]} == read
