"""Ranks that mpiexec starts: two processes that run the same program."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow.parquet as pq
import pytest

import louvain_um as lu
from louvain_um.distributed.cluster import refuse_little_shared_memory
from louvain_um.errors import LouvainUmError
from tests.distributed.runs import METHODS, graph_named, one_process
from tests.paths import ROOT

pytestmark = pytest.mark.system

pytest.importorskip(
    "mpi4py.MPI", reason="mpi4py or an MPI library is not installed", exc_type=ImportError
)


ENVIRONMENT = {
    **os.environ, "PYTHONPATH": str(ROOT), "LOUVAIN_UM_PATIENCE": "60", "UCX_TLS": "self,sm",
}  # fmt: skip


def launcher():
    """Return the program that starts ranks; skip where none is next to Python or on the path."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    # MPICH's second launcher is for one machine, and opens no port.
    programs = (shutil.which(name, path=path) for name in ("mpiexec.gforker", "mpiexec"))
    return next(filter(None, programs), None) or pytest.skip("mpiexec is not installed")


def mpiexec(*command, ranks=2):
    """Run a command on ranks, which exchange data through shared memory."""
    return subprocess.run(
        [launcher(), "-n", str(ranks), sys.executable, *command],
        capture_output=True, encoding="utf-8", errors="replace",  # a launcher may cut lines
        timeout=300, env=ENVIRONMENT, check=False,
    )  # fmt: skip


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "graph.npz"
    lu.write_graph(path, graph_named("lfr"))
    return path


def test_labels_are_those_of_one_process(tmp_path, file):
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, numpy as np, louvain_um as lu\n"
        "from mpi4py import MPI\n"
        "from louvain_um.distributed.carriers.mpi import detect_with_mpi\n"
        "from louvain_um.events import ignore\n"
        "from louvain_um.options import Options\n"
        "rank = MPI.COMM_WORLD.Get_rank()\n"
        "graph = None if rank else lu.read_graph(sys.argv[1])\n"
        "for method in ('louvain', 'leiden'):\n"
        "    options = Options(method=method, device='cpu')\n"
        "    more = {'patience': 60.0, 'collapse_arcs': 1 << 10}\n"
        "    found = detect_with_mpi(graph, options, ignore, **more)\n"
        "    file = f'{sys.argv[2]}/{method}{rank}.npz'\n"
        "    np.savez(file, labels=found.labels, value=found.modularity)\n"
    )
    done = mpiexec(str(script), str(file), str(tmp_path))
    assert done.returncode == 0, done.stderr
    for method in METHODS:
        one = one_process("lfr", method)
        for rank in range(2):
            with np.load(tmp_path / f"{method}{rank}.npz") as found:
                assert np.array_equal(found["labels"], one.labels)
                assert found["value"] == one.modularity


def test_a_file_that_is_not_there_ends_all_ranks(tmp_path):
    missing = str(tmp_path / "missing.npz")
    done = mpiexec("-m", "louvain_um", "detect", missing, "--cluster", "mpi")
    assert done.returncode != 0
    assert "missing.npz" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(shutil.which("unshare") is None, reason="hides a file system")
def test_shared_memory_that_lacks_is_said_in_a_line(tmp_path, file):
    hide = "mount -t tmpfs -o size=4k none /dev/shm"
    if subprocess.run(["unshare", "-m", "sh", "-c", hide], capture_output=True).returncode:
        pytest.skip("only root can hide /dev/shm")
    command = [sys.executable, "-m", "louvain_um", "detect", str(file), "--cluster", "mpi"]
    words = [launcher(), "-n", "2", *command]
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", f"{hide} && exec {shlex.join(words)}"],
        capture_output=True, text=True, timeout=120, env=ENVIRONMENT, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 1
    assert "louvain-um: /dev/shm has 4,096 bytes left, and MPICH needs 2,097,152" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("library", "refused"), [("MPICH Version: 4.3", True), ("Intel(R) MPI Library 2021.16", False)]
)
def test_only_mpich_is_refused_for_little_shared_memory(library, refused, monkeypatch):
    begun, rc = [], SimpleNamespace(initialize=True, finalize=None)
    mpi = SimpleNamespace(
        Get_library_version=lambda: library,
        Is_initialized=lambda: bool(begun),
        Init_thread=lambda: begun.append(rc.finalize),
    )
    monkeypatch.setitem(sys.modules, "mpi4py", SimpleNamespace(rc=rc))
    monkeypatch.setitem(sys.modules, "mpi4py.MPI", mpi)
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_bavail=1, f_frsize=4096))
    for _ in range(2):
        with pytest.raises(LouvainUmError, match="MPICH needs") if refused else nullcontext():
            refuse_little_shared_memory()
    assert begun == ([] if refused else [True])
    assert not rc.initialize


def test_an_exception_in_one_rank_ends_all(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "from louvain_um.distributed.carriers import mpi\n"
        "from louvain_um.events import ignore\n"
        "from louvain_um.generators import lfr\n"
        "from louvain_um.options import Options\n"
        "class Failing(mpi.MpiCommunicator):\n"
        "    def exchange(self, arrays):\n"
        "        if self.rank == 1 and self.traffic.collectives > 40:\n"
        "            raise ValueError('broken on purpose')\n"
        "        return super().exchange(arrays)\n"
        "mpi.MpiCommunicator = Failing\n"
        "graph = lfr(1 << 10).graph\n"
        "options = Options(device='cpu')\n"
        "mpi.detect_with_mpi(graph, options, ignore, patience=60.0, collapse_arcs=0)\n"
    )
    done = mpiexec(str(script))
    assert done.returncode != 0
    assert "rank 1 of 2 failed: broken on purpose" in done.stderr


def test_every_process_writes_its_own_vertices(tmp_path, file):
    folder = str(tmp_path / "labels")
    command = ("-m", "louvain_um", "detect", str(file), "--cluster", "mpi", "--json")
    done = mpiexec(*command, "--labels-folder", f"file://{folder}")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)  # printed once
    assert len(found["files"]) == 2
    assert found["modularity"] == one_process("lfr", "louvain").modularity
    table = pq.read_table(tmp_path / "labels")
    assert table["community"].to_pylist() == one_process("lfr", "louvain").labels.tolist()
    again = mpiexec(*command, "--labels-folder", folder)
    assert again.returncode != 0
    assert "has files already" in again.stderr
    assert "Traceback" not in again.stderr


def test_ranks_of_one_machine_open_no_ports(tmp_path):
    pytest.importorskip("psutil")
    if not launcher().endswith("gforker"):
        pytest.skip("MPICH for one machine is not installed")
    script = tmp_path / "script.py"
    script.write_text(
        "import psutil\n"
        "from louvain_um.distributed.carriers.mpi import MPI, MpiCommunicator\n"
        "ranks = MpiCommunicator(60.0)\n"
        "assert ranks.on_one_machine()\n"
        "launched = [psutil.Process(), psutil.Process().parent()]\n"
        "ports = [each for process in launched for each in process.net_connections('inet')]\n"
        "found = MPI.COMM_WORLD.gather(ports)\n"
        "if found is not None:\n"
        "    print(found)\n"
    )
    done = mpiexec(str(script))
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[[], []]\n"


@pytest.mark.parametrize(("victim", "collective"), [(1, 1), (0, 9)])
def test_a_killed_rank_ends_all_and_leaves_nothing(tmp_path, victim, collective):
    script, ranks = tmp_path / "script.py", tmp_path / "ranks"
    ranks.mkdir()
    script.write_text(
        "import os, re, signal, sys\n"
        "from pathlib import Path\n"
        "from louvain_um.cli import main\n"
        "from louvain_um.distributed.carriers import mpi\n"
        "victim, collective, ranks = *map(int, sys.argv[1:3]), sys.argv[3]\n"
        "class Killed(mpi.MpiCommunicator):\n"
        "    def gather(self, array):\n"
        "        if self.traffic.collectives >= collective:\n"
        "            shared = re.findall(r'/dev/shm/\\S+', Path('/proc/self/maps').read_text())\n"
        "            Path(ranks, str(os.getpid())).write_text(shared[0])\n"
        "            if self.rank == victim:\n"
        "                os.kill(os.getpid(), signal.SIGKILL)\n"
        "        return super().gather(array)\n"
        "mpi.MpiCommunicator = Killed\n"
        "sys.argv[1:] = ['detect', 'example:les-miserables', '--cluster', 'mpi', *sys.argv[4:]]\n"
        "main()\n"
    )
    out = tmp_path / "labels.csv"
    done = mpiexec(str(script), str(victim), str(collective), str(ranks), "-o", str(out))
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    assert done.stderr.count("louvain-um: ") == 1
    assert not out.exists()
    for file in ranks.iterdir():
        assert not Path("/proc", file.name).exists()
        assert not Path(file.read_text()).exists()
