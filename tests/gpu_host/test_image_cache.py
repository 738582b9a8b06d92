"""Compiled kernels on disk: found again, never trusted blindly, never the reason for a failure."""

import ctypes
import os
import subprocess
import sys
import threading
import time
import tomllib
from contextlib import suppress
from fnmatch import fnmatch
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from louvain_um import api
from louvain_um.cli.commands import warmup
from louvain_um.core import private_files
from louvain_um.errors import DeviceUnavailableError, GraphWarning, LouvainUmError
from louvain_um.gpu.runtime import compile, compile_cache, device, kernel_list
from louvain_um.graph.graph import Graph
from louvain_um.options import Options

ROOT = Path(__file__).parents[2]
IMAGE = compile_cache.Image(b"\x7fELF\n code", {"a<u32>": "_Za"})


@pytest.mark.parametrize("damage", [b"", b"{}\n", b"not json", b'{"sha256": "0", "names": {}}\nx'])
def test_a_damaged_image_is_a_miss(tmp_path, damage):
    file = tmp_path / "deep" / "one.image"
    assert compile_cache.load(file) is None
    compile_cache.save(file, IMAGE)
    assert compile_cache.load(file) == IMAGE
    assert [entry.name for entry in file.parent.iterdir()] == ["one.image"]
    file.write_bytes(damage)
    assert compile_cache.load(file) is None


def test_a_closed_cache_is_no_error(tmp_path):
    (tmp_path / "file").touch()
    closed = tmp_path / "file" / "one.image"
    compile_cache.save(closed, IMAGE)
    assert compile_cache.load(closed) is None
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_the_cache_goes_where_it_is_asked(monkeypatch, tmp_path):
    monkeypatch.setenv("LOUVAIN_UM_CACHE", str(tmp_path))
    assert compile_cache.cache_folder() == tmp_path / "kernels"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of sources, with a cache of its own."""
    try:
        compile_cache.compiler()
    except DeviceUnavailableError as error:
        pytest.skip(error.reason)
    monkeypatch.setenv("LOUVAIN_UM_CACHE", str(tmp_path / "cache"))
    (tmp_path / "one.cu").write_text('#include "two.cuh"\n__global__ void k() {}\n')
    (tmp_path / "images").mkdir()
    (tmp_path / "two.cuh").write_text('#include "rules.cuh"\n')
    (tmp_path / "other.cuh").write_text("// a")
    return tmp_path


def test_digests_follow_sources_types_and_architecture(folder):
    def digest(name="k", architecture="sm_75"):
        compile_cache.sources.cache_clear()
        return compile_cache.digest("one", [name], architecture, folder)

    first = digest()
    assert first == digest()
    assert first != digest("k<u32>")
    assert first != digest(architecture="sm_80")
    (folder / "other.cuh").write_text("// b")
    assert first == digest()
    (folder / "two.cuh").write_text('#include "rules.cuh"\n// b\n')
    second = digest()
    assert first != second
    (folder / "one.cu").write_text('#include "two.cuh"\n__global__ void k() {} // b\n')
    assert digest() not in (first, second)


def test_what_was_compiled_once_is_read(folder, monkeypatch):
    first = compile_cache.cached_image("one", ["k"], compile_cache.target(75), folder)
    monkeypatch.setattr(compile_cache, "build", None)
    assert compile_cache.cached_image("one", ["k"], compile_cache.target(75), folder) == first


HOLDER = """
import os, signal, sys
from pathlib import Path
from louvain_um.core.private_files import made_once
with made_once(Path(sys.argv[1])):
    print("holds", flush=True)
    os.kill(os.getpid(), signal.SIGSTOP)
"""


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="only Linux says who runs")
def test_who_waits_for_a_stopped_process_compiles_after_a_while(folder, monkeypatch):
    unit = "one", ["k"], compile_cache.target(75), folder
    monkeypatch.setattr(private_files, "IDLE_SECONDS", 0.5)
    monkeypatch.setattr(private_files, "_patient", True)
    command = [sys.executable, "-c", HOLDER, str(compile_cache.image_file(*unit))]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as holder:
        try:
            assert holder.stdout.readline() == b"holds\n"
            with pytest.warns(GraphWarning, match="another process began to compile"):
                first = compile_cache.cached_image(*unit)
        finally:
            holder.kill()
    assert compile_cache.known_image(*unit) == first


def test_images_that_come_with_the_package_are_not_compiled(folder, monkeypatch, tmp_path):
    unit = "one", ["k"], compile_cache.target(75), folder
    monkeypatch.setattr(compile_cache, "SHIPPED", tmp_path / "images")
    assert compile_cache.known_image(*unit) is None
    first = compile_cache.build(*unit)
    warmup.write_image(tmp_path / "images", *unit)
    monkeypatch.setenv("LOUVAIN_UM_CACHE", str(tmp_path / "another"))
    monkeypatch.setattr(compile_cache, "build", None)
    assert compile_cache.known_image(*unit) == first
    compile_cache.shipped_file(*unit).write_bytes(b"damaged")
    assert compile_cache.known_image(*unit) is None


def test_wheels_hold_images():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    patterns = project["tool"]["setuptools"]["package-data"]["*"]
    within = compile_cache.SHIPPED.relative_to(compile_cache.FOLDER) / "one.image"
    assert any(fnmatch(str(within), pattern) for pattern in patterns if "/" in pattern)


def test_what_is_expected_is_compiled_once_in_the_background(folder, monkeypatch):
    compiled, one_at_a_time = [], threading.Semaphore(0)
    build = compile_cache.build

    def counted(source, names, *rest):
        one_at_a_time.acquire()
        compiled.append(names)
        return build(source, ["k"], *rest)

    monkeypatch.setattr(compile_cache, "build", counted)
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    kernels = compile.Kernels(folder, lambda source, types: [types])
    kernels.expect([("one", ("wanted",)), ("one", ("in vain",))], 75)
    events = []

    def observer(event):
        events.append(event.kind)
        one_at_a_time.release(2)

    wanted = [("one", ("wanted",)), ("one", ("late",))]
    images = kernels.images(wanted, compile_cache.target(75), observer)
    assert [image.code[:4] for image in images] == [b"\x7fELF"] * 2
    assert sorted(compiled) == [("late",), ("wanted",)]
    assert events == ["start", "end"]


@pytest.mark.parametrize("late", [False, True])
def test_what_failed_in_the_background_is_compiled_again(folder, monkeypatch, late):
    asked, build, goes_on = [], compile_cache.build, threading.Event()

    def failing_once(*unit):
        asked.append(unit)
        if len(asked) == 1:
            assert goes_on.wait(60)
            raise OSError("no space left")
        return build(*unit)

    monkeypatch.setattr(compile_cache, "build", failing_once)
    kernels = compile.Kernels(folder, lambda source, types: [types])
    kernels.expect([("one", ("k",))], 75)
    if not late:
        goes_on.set()
        assert next(iter(kernels.expected.values())).exception(60)
    target = compile_cache.target(75)
    (image,) = kernels.images([("one", ("k",))], target, lambda event: goes_on.set())
    assert image.code[:4] == b"\x7fELF"
    assert len(asked) == 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_nothing_is_expected_after_a_fork():
    assert compile.kernels.expected == {}
    compile.kernels.expected["job"] = None
    try:
        with compile.kernels.lock:
            child = os.fork()
            if not child:
                free = compile.kernels.lock.acquire(blocking=False)
                os._exit(not free or len(compile.kernels.expected))
        assert os.waitpid(child, 0)[1] == 0
    finally:
        del compile.kernels.expected["job"]


@pytest.mark.parametrize(
    "options",
    [Options(device="cuda"), Options(initial=np.zeros(9)), Options(device="auto")],
    ids=["no device", "refused labels", "on the CPU"],
)
def test_runs_that_come_to_no_kernel_leave_none_to_compile(monkeypatch, options):
    dropped, begun = [], []
    monkeypatch.setattr(ctypes, "CDLL", lambda name: Driver((7, 0)))
    monkeypatch.delitem(sys.modules, "louvain_um.gpu.engine", raising=False)

    def expect(*given):
        time.sleep(0.1)
        begun.append(given)

    monkeypatch.setattr(compile.kernels, "expect", expect)
    monkeypatch.setattr(compile.kernels, "drop_expected", lambda: dropped.append(len(begun)))
    with suppress(LouvainUmError):
        api.run(Graph.from_edges([0, 1], [1, 2]), options)
    assert dropped[-1:] == [1]


def test_the_cpu_is_always_there():
    choice = device.pick("cpu")
    assert (str(choice), choice.index) == ("cpu", -1)
    with choice.current():
        pass


@pytest.fixture(autouse=True)
def looked_for_anew(monkeypatch):
    """Look for the driver's library in every call."""
    monkeypatch.setattr(device, "library", device.library.__wrapped__)


def test_without_a_driver_auto_is_the_cpu_and_cuda_an_error(monkeypatch):
    def missing(name):
        raise OSError(name)

    monkeypatch.setattr(ctypes, "CDLL", missing)
    choice = device.pick("auto")
    assert choice.kind == "cpu"
    assert "driver" in choice.reason
    with pytest.raises(DeviceUnavailableError, match="no NVIDIA driver") as caught:
        device.pick("cuda")
    assert "\n" not in caught.value.reason


class Driver:
    """Stands for libcuda with devices of given compute capabilities."""

    def __init__(self, *found, status=0):
        self.found = found
        self.status = status

    def cuInit(self, flags):  # noqa: N802
        return self.status

    def cuDeviceGetCount(self, count):  # noqa: N802
        count._obj.value = len(self.found)
        return 0

    def cuDeviceGetAttribute(self, value, attribute, index):  # noqa: N802
        value._obj.value = self.found[index][device.CAPABILITY.index(attribute)]
        return 0


@pytest.mark.parametrize(
    ("driver", "asked", "reason"),
    [
        (Driver(), "cuda", "no NVIDIA GPU is visible"),
        (Driver(status=100), "cuda", "no NVIDIA GPU is visible"),
        (Driver(status=999), "cuda:0", "CUDA error 999"),
        (Driver((9, 0)), "cuda:1", "no cuda:1 here, only cuda:0"),
        (Driver((9, 0), (9, 0)), "cuda:2", "cuda:0 … cuda:1"),
    ],
)
def test_a_device_that_is_not_there(monkeypatch, driver, asked, reason):
    monkeypatch.setattr(ctypes, "CDLL", lambda name: driver)
    with pytest.raises(DeviceUnavailableError, match=reason):
        device.pick(asked)


def test_a_device_that_is_too_old(monkeypatch):
    pytest.importorskip("cupy")
    monkeypatch.setattr(ctypes, "CDLL", lambda name: Driver((7, 0)))
    with pytest.raises(DeviceUnavailableError, match=r"compute capability 7\.0, less than 7\.5"):
        device.pick("cuda:0")


def test_without_cupy(monkeypatch):
    monkeypatch.setattr(ctypes, "CDLL", lambda name: Driver((9, 0)))
    monkeypatch.setattr(device.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(DeviceUnavailableError, match=r"louvain-um\[cuda13\]"):
        device.pick("cuda:0")


def test_a_context_starts_in_the_background_and_failures_are_left_to_later(monkeypatch):
    driver, retained, released = Driver((9, 0), (9, 0)), [], threading.Event()

    def retain(context, index):
        assert released.wait(60)
        retained.append(index)

    driver.cuDevicePrimaryCtxRetain = retain
    monkeypatch.setattr(ctypes, "CDLL", lambda name: driver)
    for asked in ("cpu", "cuda:x", "cuda:1", "auto"):
        device.start_early(SimpleNamespace(device=asked))
    assert not retained
    released.set()
    device.all_begun()
    assert sorted(retained) == [0, 1]


@pytest.mark.parametrize(
    ("options", "units"),
    [
        (Options(device="cuda:1"), kernel_list.usual("louvain")),
        (Options(method="leiden"), kernel_list.usual("leiden")),
        (Options(objective="signed"), None),
        (Options(device="cuda:0,1"), None),
        (Options(device="cpu"), None),
    ],
)
def test_kernels_that_most_runs_take_are_expected(monkeypatch, options, units):
    monkeypatch.setattr(ctypes, "CDLL", lambda name: Driver((9, 0), (8, 6)))
    expected = []
    monkeypatch.setattr(compile.kernels, "expect", lambda *given: expected.append(given))
    device.start_early(options)
    device.all_begun()
    capability = 86 if options.device == "cuda:1" else 90
    assert expected == ([] if units is None else [(units, capability)])
    known = {
        (source, name)
        for source in kernel_list.CATALOGUE
        for name in kernel_list.everything(source)
    }
    assert all((source, name) in known for source, names in units or () for name in names)
