"""`louvain-um attach` on a real device: a binary with a static runtime, and CuPy."""

import re
import shutil
import subprocess
import sys
import tomllib

import pytest

from louvain_um.profiling import load
from tests.paths import BENCHMARKS

pytestmark = pytest.mark.gpu

ATTACH = (sys.executable, "-m", "louvain_um", "attach")
SOURCE = BENCHMARKS / "programs" / "three.cu"


def line_of(comment):
    lines = SOURCE.read_text().splitlines()
    return next(
        f"three.cu:{at}" for at, line in enumerate(lines, 1) if line.endswith(f"// {comment}")
    )


@pytest.fixture(scope="module")
def program(gpu, tmp_path_factory):
    if not shutil.which("nvcc"):
        pytest.skip("needs nvcc")
    path = tmp_path_factory.mktemp("programs") / "three"
    subprocess.run(["nvcc", "-O2", "-g", str(SOURCE), "-o", str(path)], check=True)
    return path


def attach(*arguments):
    command = [*ATTACH, *map(str, arguments)]
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=300)


def test_a_binary_is_recorded_by_call_site_and_placed(program, tmp_path):
    plain = subprocess.run([program], check=False, capture_output=True, text=True)
    done = attach("-o", tmp_path / "s.npz", "--", program)
    assert (done.returncode, done.stdout) == (plain.returncode, plain.stdout), done.stderr
    session = load(tmp_path / "s.npz")
    assert session.metadata["sources"]["cupti"] == "measured"
    index, table, out = map(line_of, ("index", "table", "out"))
    assert {index, table, out} <= {life.name for life in session.lifetimes}
    groups = session.summary()["by_group"]
    assert groups[table]["bytes_to_device"] >= 128 << 20
    accesses = session.metadata["about_sources"]["launches"]["accesses"]
    assert accesses[index][1] == 0
    assert accesses[out][0] == 0
    policy = tmp_path / "mine.toml"
    policy.write_text(f'others = "managed"\n[groups]\n"{index}" = "host_mapped"\n')
    done = attach("--policy", policy, "-o", tmp_path / "p.npz", "--", program)
    assert (done.returncode, done.stdout) == (plain.returncode, plain.stdout), done.stderr
    groups = load(tmp_path / "p.npz").summary()["by_group"]
    assert (groups[index]["bytes_to_device"], groups[index]["gpu_faults"]) == (0, 0)
    done = attach(
        "--policy", "auto", "--from", tmp_path / "s.npz", "-o", tmp_path / "a.npz", "--", program
    )
    assert (done.returncode, done.stdout) == (plain.returncode, plain.stdout), done.stderr


def test_accesses_of_a_binary_are_counted(program, tmp_path):
    plain = subprocess.run([program], check=False, capture_output=True, text=True)
    done = attach("--trace", "-o", tmp_path / "s.npz", "--", program)
    assert (done.returncode, done.stdout) == (plain.returncode, plain.stdout), done.stderr
    session = load(tmp_path / "s.npz")
    if "cuobjdump" in " ".join(session.notes):
        pytest.skip("needs cuobjdump")
    once, never = 5 << 24, 0
    assert session.metadata["about_sources"]["tracer"]["accesses"] == {
        line_of("index"): [once, never, never], line_of("table"): [once, never, never],
        line_of("out"): [never, once, never],
    }  # fmt: skip


def test_a_binary_is_placed_while_it_runs(program, tmp_path):
    plain = subprocess.run([program], check=False, capture_output=True, text=True)
    done = attach(
        "--policy", "auto", "--device-budget", "50%", "-o", tmp_path / "s.npz", "--", program
    )
    assert (done.returncode, done.stdout) == (plain.returncode, plain.stdout), done.stderr
    session = load(tmp_path / "s.npz")
    assert not any("refused the advice" in note for note in session.notes), session.notes
    if any("ended before a policy was decided" in note for note in session.notes):
        return  # it goes on while its policy is decided, and has five launches
    assert re.search(r"decided after \d+ launches", " ".join(session.notes)), session.notes
    groups = tomllib.loads((tmp_path / "s.toml").read_text())["groups"]
    assert groups.keys() == {*map(line_of, ("index", "table", "out"))}
    assert {"host_mapped"} & set(groups.values())


def test_a_cupy_script_is_named_by_its_lines(gpu, tmp_path):
    pytest.importorskip("cupy")
    script = tmp_path / "script.py"
    script.write_text(
        "import cupy as cp\n"
        "cp.cuda.set_allocator(cp.cuda.MemoryPool(cp.cuda.malloc_managed).malloc)\n"
        "x = cp.arange(1 << 24, dtype=cp.float32)\n"
        "print(float((x * 2).sum()))\n"
    )
    done = attach("-o", tmp_path / "s.npz", "--", sys.executable, script)
    assert done.returncode == 0, done.stderr
    names = {life.name for life in load(tmp_path / "s.npz").lifetimes}
    assert any(name.startswith("script.py:3") for name in names), names
