from __future__ import annotations

from pathlib import Path

import pytest

from louvain_um.profiling import load
from tests.cli.conftest import Run


def test_a_run_is_recorded(run: Run, two_triangles: Path, tmp_path: Path):
    session = tmp_path / "run.npz"
    out = run("profile", two_triangles, "-o", session, "--device", "cpu")
    assert (out.code, " arcs/s\n" in out.out) == (0, True)
    assert f"louvain-um report {session}" in out.out
    about = load(session).metadata
    assert (about["communities"], about["graph"]["vertices"]) == (2, 6)
    assert about["complete"]


def test_json_is_one_object(run: Run, two_triangles: Path, tmp_path: Path):
    session = tmp_path / "run.parquet"
    out = run("profile", two_triangles, "-o", session, "--device", "cpu", "--json", "-q")
    found = out.json
    assert found["graph"]["edges"] == 7
    assert found["communities"] == 2
    assert found["session"] == str(session)
    assert found["seconds"] > 0
    assert found["gpu_faults"] is None
    assert found["sources"]["engine"] == "measured"
    assert set(found["peak_bytes"]) == {"graph", "hash", "community", "scratch"}


def test_another_algorithm_is_recorded(run: Run, two_triangles: Path, tmp_path: Path):
    session = tmp_path / "run.npz"
    command = ("profile", two_triangles, "-o", session, "--device", "cpu")
    found = run(*command, "--program", "bfs", "--from", "dan", "--json", "-q").json
    assert (found["program"], found["method"], found["communities"]) == ("bfs", "bfs", None)
    simulated = run("simulate", session, "--machine", "h200", "--policies", "base,auto")
    assert simulated.code == 0, simulated.err
    said = run(*command, "--force", "--program", "pagerank", "--from", "dan").complaint()
    assert "begins at no vertex; omit --from, which only bfs and sssp take" in said
    assert "omit --from" in run(*command, "--force", "--from", "dan").complaint()
    said = run(*command, "--force", "--program", "bfs", "--method", "leiden").complaint()
    assert "no detection of communities; omit --method" in said
    assert "no vertex" in run(*command, "--force", "--program", "bfs", "--from", "zoe").complaint()


def test_light_is_for_a_gpu(run: Run, two_triangles: Path, tmp_path: Path):
    command = ("profile", two_triangles, "-o", tmp_path / "run.npz", "--device", "cpu", "--force")
    assert "ran on the CPU; --light was ignored" in run(*command, "--light").err
    assert "--light" not in run(*command).err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("-o", "run.csv"), 1, "name it so"),
        (("-o", "there.npz"), 1, "--force"),
        (("-o", "absent/run.npz"), 1, "create it first"),
        (("-o", "run.npz", "--tracer"), 2, "CPU run"),
        (("-o", "run.npz", "--memory", "nonsense"), 2, "nonsense"),
        (("-o", "run.npz", "--resolution", "0"), 2, "resolution"),
    ],
)
def test_bad_arguments_give_one_line(
    run: Run,
    two_triangles: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    code: int,
    message: str,
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there.npz").write_text("mine")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    out = run("profile", two_triangles, "--device", "cpu", *arguments)
    assert out.code == code
    assert message in out.complaint()
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
