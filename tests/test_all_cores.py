"""All tests run on all cores, and reports of several processes are counted once."""

import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from tests.all_cores import DEVICES, MAX_WORKERS, pytest_cmdline_main
from tests.paths import ROOT

OPTIONS = {
    "numprocesses": None, "maxprocesses": None, "tx": [], "dist": "no", "usepdb": False,
    "collectonly": False, "keyword": "", "markexpr": "",
}  # fmt: skip


def configured(*arguments, xdist=True, **options):
    config = SimpleNamespace(
        option=SimpleNamespace(**OPTIONS | options),
        pluginmanager=SimpleNamespace(hasplugin=lambda name: xdist and name == "xdist"),
        invocation_params=SimpleNamespace(dir=ROOT),
        args=list(arguments),
    )
    pytest_cmdline_main(config)
    return config.option


@pytest.mark.parametrize("argument", ["tests", ".", str(ROOT)], ids=["tests", "dot", "root"])
def test_all_tests_use_all_cores(argument):
    option = configured(argument)
    assert (option.numprocesses, option.maxprocesses) == ("logical", MAX_WORKERS)
    assert option.dist == "worksteal"
    assert configured(argument, dist="loadfile").dist == "loadfile"
    assert configured(argument, markexpr="not gpu").numprocesses == "logical"


def test_other_runs_keep_the_processes_that_they_were_given():
    for options in ({"keyword": "plan"}, {"markexpr": "gpu"}, {"usepdb": True}, {"xdist": False}):
        assert configured("tests", **options).numprocesses is None
    for files in (("tests/cli", "tests/test_house.py"), ("tests/test_house.py::test_one_version",)):
        assert configured(*files).numprocesses is None
    assert configured("tests", numprocesses=6).numprocesses == 6


def test_runs_on_devices_keep_files_together(monkeypatch):
    monkeypatch.setenv(DEVICES, "0")
    assert configured("tests", markexpr="gpu", numprocesses=8).dist == "loadfile"
    assert configured("tests", markexpr="gpu", numprocesses=8, dist="load").dist == "load"
    assert int(os.environ[DEVICES]) >= 0


@pytest.mark.parametrize(
    ("worker", "devices", "given", "visible"),
    [(0, "2", None, "0,1"), (3, "2", None, "1,0"), (3, "1", None, None), (1, "2", "7", "7")],
)
def test_processes_on_devices_share_the_machine(monkeypatch, worker, devices, given, visible):
    monkeypatch.setattr(os, "cpu_count", lambda: 32)
    monkeypatch.setenv(DEVICES, devices)
    for name in ("LOUVAIN_UM_THREADS", "CUDA_VISIBLE_DEVICES"):
        monkeypatch.setenv(name, given or "")  # so that it is afterwards as it was
        if given is None or name == "LOUVAIN_UM_THREADS":
            monkeypatch.delenv(name)
    config = SimpleNamespace(
        option=SimpleNamespace(**OPTIONS | {"markexpr": "gpu"}),
        pluginmanager=SimpleNamespace(hasplugin=lambda _: True),
        workerinput={"workercount": 12, "workerid": f"gw{worker}"},
    )
    pytest_cmdline_main(config)
    assert os.environ["LOUVAIN_UM_THREADS"] == "2"
    assert os.environ.get("CUDA_VISIBLE_DEVICES") == visible


@pytest.mark.system
@pytest.mark.parametrize("processes", ["0", "1"])
def test_reports_are_counted_once(tmp_path, processes):
    pytest.importorskip("xdist")
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = gpu\n")
    (tmp_path / "conftest.py").write_text(
        f"import sys\nsys.path[:0] = [{str(ROOT)!r}]\n"
        "from tests.gpu_evidence import OUTCOMES, pytest_runtest_logreport\n"
        "def pytest_sessionfinish(session):\n"
        "    if not hasattr(session.config, 'workerinput'):\n"
        "        print(sorted(OUTCOMES.items()))\n"
    )
    (tmp_path / "test_some.py").write_text(
        "import pytest\n"
        "@pytest.mark.gpu\n@pytest.mark.parametrize('i', range(9))\n"
        "def test_gpu(i):\n"
        "    if i > 5: pytest.skip('none')\n"
        "    assert i\n"
        "@pytest.fixture\ndef broken(): raise ValueError\n"
        "@pytest.mark.gpu\ndef test_error(broken): pass\n"
        "def test_cpu(): pass\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-n", processes, "-p", "no:cacheprovider", "."]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "[('failed', 2), ('passed', 5), ('skipped', 3)]" in done.stdout, done.stdout
