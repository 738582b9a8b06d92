"""Imports of each command, and the time of short commands."""

import subprocess
import sys
import time

import pytest

from louvain_um.cli import COMMANDS

pytestmark = pytest.mark.system

COSTLY = ("numpy", "scipy", "numba", "pandas", "pyarrow", "networkx", "sklearn", "igraph", "cupy")


def modules(*commands):
    """Return the modules that these commands, in one process, import."""
    code = (
        "import sys; from louvain_um.cli import app\n"
        f"for words in {commands}:\n"
        "    try: app(words)\n"
        "    except SystemExit: pass\n"
        "print('\\n' + ' '.join(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


def imported(*commands):
    return modules(*commands) & set(COSTLY)


CLI = "from louvain_um.cli import main; main()"


def once(*arguments, code=CLI):
    resource = pytest.importorskip("resource")

    def used():
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        return children.ru_utime + children.ru_stime

    before = used()
    subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, check=True)
    return used() - before


def by_numba(most, *arguments):
    """Return the processor time of a command by that of importing Numba, the least of each.

    In turns: both take longer on a slower machine. Others at work there only add to either, so
    what is more than `most` after five turns is tried again, up to twenty times in all.
    """
    command, numba = [once(*arguments)], [once(code="import numba")]
    while len(numba) < 5 or (len(numba) < 20 and min(command) >= most * min(numba)):
        command.append(once(*arguments))
        numba.append(once(code="import numba"))
    return min(command) / min(numba)


def test_help_imports_nothing_costly():
    each = ([name, "--help"] for name in COMMANDS if name != "generate")
    assert imported(["--help"], ["--version"], *each) == set()


def test_help_is_quick():
    assert by_numba(0.4, "--help") < 0.4


def test_a_small_graph_imports_only_what_it_needs(two_triangles):
    assert imported(["detect", str(two_triangles), "--device", "cpu"]) <= {
        "numpy",
        "numba",
        "scipy",
    }


def test_a_small_graph_on_the_cpu_imports_nothing_of_gpus_ranks_and_changing_graphs(two_triangles):
    found = modules(["detect", str(two_triangles), "--device", "cpu"])
    assert "louvain_um.cpu.engine" in found
    assert not found & {
        "louvain_um.gpu.engine", "louvain_um.gpu.graph", "louvain_um.distributed.run",
        "louvain_um.distributed.files.reading", "louvain_um.dynamic.graph", "scipy.sparse",
    }  # fmt: skip


def test_the_entry_point_starts(two_triangles):
    since = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "louvain_um", "detect", str(two_triangles)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "2 communities" in done.stdout
    assert time.perf_counter() - since < 60


def test_blas_can_still_be_imported():
    code = (
        "import sys; from louvain_um.cli import import_numba; import_numba()\n"
        "assert 'scipy.linalg' not in sys.modules\n"
        "import scipy.linalg.cython_blas"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_warmup_compiles_what_commands_use(run, two_triangles):
    done = run("warmup")
    assert done.code == 0
    assert done.out.startswith("compiled in ")
    done = run("detect", str(two_triangles), "--device", "cpu", "--method", "leiden")
    assert "compiling" not in done.err
    assert run("warmup", "--architecture", "9").code == 2
