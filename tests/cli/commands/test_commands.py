import inspect

import pytest

import louvain_um as lu
from louvain_um.generators import GENERATORS

SMALL = {
    "rmat": ["6", "--edge-factor", "4", "--no-permute"],
    "lfr": ["300", "--max-degree", "30", "--min-degree", "4", "--mixing", "0.2"],
    "planted": ["100", "--blocks", "4", "--degree-in", "8", "--degree-out", "2"],
    "stencil": ["5x6", "--points", "8"],
    "grid": ["4x4x4", "--periodic"],
    "geometric": ["200", "--degree", "6"],
    "ring": ["6", "--size", "4"],
}


@pytest.mark.parametrize("kind", list(GENERATORS))
def test_generate_every_kind(run, tmp_path, kind):
    out = tmp_path / "graph.csv"
    done = run("generate", kind, *SMALL[kind], "--seed", "5", "-o", out, "--json")
    assert done.code == 0, done.err
    graph = lu.read_graph(out)
    assert done.json["graph"]["edges"] == graph.n_edges > 0
    assert done.json["graph"]["vertices"] == graph.n_vertices


@pytest.mark.parametrize("kind", list(GENERATORS))
def test_every_argument_of_a_kind_is_an_option(run, kind):
    done = run("generate", kind, "--help")
    assert done.code == 0
    for name, parameter in inspect.signature(GENERATORS[kind]).parameters.items():
        if parameter.kind is parameter.KEYWORD_ONLY:
            assert f"--{name.replace('_', '-')} " in done.out


@pytest.mark.parametrize("suffix", ["csv", "mtx", "graph", "npz"])
def test_planted_labels_name_vertices_as_the_graph_does(run, tmp_path, suffix):
    graph, planted, found = tmp_path / f"g.{suffix}", tmp_path / "p.csv", tmp_path / "f.csv"
    ask = ["40", "--blocks", "2", "--degree-in", "19", "--degree-out", "0"]
    assert run("generate", "planted", *ask, "-o", graph, "--planted", planted).code == 0
    assert run("detect", graph, "-o", found).code == 0
    assert run("compare", planted, found, "--json").json["nmi"] == 1.0


def test_generate_takes_numbers_as_other_commands_do(run, tmp_path):
    sizes = set()
    for n in ("2000", "2k", "2e3", "2_000"):
        done = run("generate", "lfr", n, "-o", tmp_path / "g.mtx", "--force", "--json")
        sizes.add(tuple(done.json["graph"].items()))
    assert len(sizes) == 1
    assert dict(*sizes)["vertices"] == 2000


def test_generate_keeps_what_exists(run, tmp_path):
    out = tmp_path / "g.csv"
    out.write_text("precious")
    assert "--force" in run("generate", "ring", "-o", out).complaint()
    assert out.read_text() == "precious"
    assert run("generate", "ring", "-o", out, "--force", "-q").out == ""
    assert out.read_text() != "precious"


@pytest.mark.parametrize("suffix", ["csv", "tsv.gz", "mtx", "graph", "npz", "parquet"])
def test_convert_keeps_the_graph(run, two_triangles, tmp_path, suffix):
    out = tmp_path / f"copy.{suffix}"
    done = run("convert", two_triangles, out, "--json")
    assert done.code == 0, done.err
    assert done.json["graph"]["edges"] == 7
    copy = lu.read_graph(out)
    assert (copy.n_vertices, copy.n_edges) == (6, 7)
    if suffix in ("mtx", "graph"):
        assert "note: " in done.err  # the names are lost, and that is message
        assert run("convert", two_triangles, out, "--force", "-q").err == ""
    else:
        assert set(copy.names.tolist()) == {"ann", "bob", "cid", "dan", "eve", "fay"}


def test_compare(run, tmp_path):
    a, b = tmp_path / "a.csv", tmp_path / "b.txt"
    a.write_text("vertex,community\nx,0\ny,0\nz,1\nw,1\nonly,3\n")
    b.write_text("w 8\nz 8\ny 9\nx 9\n")
    done = run("compare", a, b)
    assert done.code == 0, done.err
    assert "4 vertices in both" in done.out
    assert "1 only in" in done.out
    assert "NMI  1.0000" in done.out
    assert "The partitions are identical on the vertices in both." in done.out
    assert "The partitions are identical." in run("compare", a, a).out
    values = run("compare", a, b, "--json").json
    assert (values["nmi"], values["ari"], values["ami"], values["identical"]) == (1, 1, 1, True)
    assert values["unmatched"] == [1, 0]
    assert values["sizes"] == [[2, 2, 1], [2, 2]]
    assert run("compare", a, b, "-q").out == "NMI  1.0000\nARI  1.0000\nAMI  1.0000\n"


def test_compare_overlapping(run, tmp_path):
    a, b = tmp_path / "a.csv", tmp_path / "b.csv"
    a.write_text("vertex,community\nx,0\ny,0\ny,1\nz,1\n")
    b.write_text("x 5\ny 5\nz 6\n")
    done = run("compare", a, b)
    assert "a.csv overlap: 1 membership beyond one" in done.out.replace("\n", " ")
    values = run("compare", a, b, "--json").json
    assert values["omega"] == pytest.approx(0.4)
    assert "nmi" not in values
    assert run("compare", a, a, "-q").out == (
        "ONMI (MGH)  1.0000\nONMI (LFK)  1.0000\nomega  1.0000\n"
    )


@pytest.mark.parametrize("flip", [False, True])
def test_compare_notices_ids_that_differ_by_one(run, tmp_path, flip):
    zero, one = tmp_path / "zero.csv", tmp_path / "one.csv"
    zero.write_text("".join(f"{v},{v // 4}\n" for v in range(12)))
    one.write_text("".join(f"{v + 1},{v // 4}\n" for v in range(12)))
    pair = (one, zero) if flip else (zero, one)
    done = run("compare", *pair, "--json")
    assert done.json["unmatched"] == [1, 1]
    which = "second" if flip else "first"
    assert "note: ids start at " in done.err
    assert f"add 1 to the ids of the {which}" in done.err
    assert run("compare", *pair, "-q").err == ""


def test_compare_does_not_suspect_a_part_of_the_vertices(run, tmp_path):
    (tmp_path / "all.csv").write_text("".join(f"{v},{v // 4}\n" for v in range(12)))
    (tmp_path / "some.csv").write_text("".join(f"{v},{v // 4}\n" for v in range(1, 12)))
    assert run("compare", tmp_path / "all.csv", tmp_path / "some.csv").err == ""


def test_compare_reads_one_side_from_stdin(run, tmp_path):
    a = tmp_path / "a.csv"
    a.write_text("0,0\n1,1\n")
    assert run("compare", "-", a, "--json", stdin=b"0,4\n1,5\n").json["nmi"] == 1.0


def test_doctor(run, monkeypatch):
    from louvain_um.errors import DeviceUnavailableError
    from louvain_um.gpu.runtime import device

    def pick(asked):
        raise DeviceUnavailableError("no GPU today")

    monkeypatch.setattr(device, "pick", pick)
    found = run("doctor", "--json").json
    assert found["version"] == lu.__version__
    assert found["gpu"] == {"usable": False, "reason": "no GPU today"}
    assert found["packages"]["numpy"]
    assert found["cores"] >= 1
    assert found["memory_bytes"]["total"] > 0
    assert found["cache"]["writable"] in (True, False)
    text = run("doctor").out
    assert "none: no GPU today" in text
    assert "none: no GPU today" in run("doctor", "-q").out


def test_version_and_help(run):
    assert run("--version").out == f"louvain-um {lu.__version__}\n"
    text = run("-h").out
    for command in ("detect", "compare", "convert", "generate", "doctor"):
        assert command in text
        assert run(command, "-h").code == 0
