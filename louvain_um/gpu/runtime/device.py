"""The device of a run: chosen once, with the reason, checked before the run; its errors."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from threading import Thread
from typing import TYPE_CHECKING, Any, Final, Literal

from louvain_um.errors import (
    DeviceUnavailableError,
    GraphError,
    KernelCompileError,
    MemoryBudgetError,
    OptionError,
)

if TYPE_CHECKING:
    from louvain_um.options import Options
    from louvain_um.placement.detection_plan import Plan

OLDEST: Final = (7, 5)
"""Lowest compute capability that the kernels compile for."""

NO_DEVICE: Final = 100
CAPABILITY: Final = (75, 76)
"""CUDA_ERROR_NO_DEVICE; the attributes of major and minor compute capability."""

LIBRARY: Final = "nvcuda.dll" if os.name == "nt" else "libcuda.so.1"

INSTALL: Final = "pip install 'louvain-um[cuda13]' (or [cuda12]) or use device='cpu'"


@dataclass(frozen=True, slots=True)
class Choice:
    """The device of a run."""

    kind: Literal["cpu", "cuda"]
    index: int
    reason: str

    def __str__(self) -> str:
        return self.kind if self.kind == "cpu" else f"cuda:{self.index}"

    @contextmanager
    def current(self) -> Iterator[None]:
        """Make the device current within a block, and the previous one afterwards."""
        if self.kind == "cpu":
            yield
            return
        from cupy.cuda import runtime

        before = runtime.getDevice()
        runtime.setDevice(self.index)
        try:
            yield
        finally:
            runtime.setDevice(before)


def pick(device: str = "auto") -> Choice:
    """Return the device that an option selects."""
    if device == "cpu":
        return Choice("cpu", -1, "asked for")
    if "," in device or device.endswith(":all"):
        raise DeviceUnavailableError(
            f"{device} names several devices, which only detection uses; name one"
        )
    try:
        _, _, number = device.partition(":")
        index = usable(int(number) if number else None)
    except DeviceUnavailableError as error:
        if device == "auto":
            return Choice("cpu", -1, error.reason)
        raise
    return Choice("cuda", index, "a usable GPU" if device == "auto" else "asked for")


def first_of(device: str) -> str:
    """Return the first of several devices that an option names; any other option as it is."""
    return "cuda:0" if device == "cuda:all" else device.partition(",")[0]


def usable(index: int | None) -> int:
    """Return the number of a CUDA device (None: the current one) that the engine can run on."""
    all_begun()
    known = capabilities()
    if index is not None and index >= len(known):
        visible = "only cuda:0" if len(known) == 1 else f"cuda:0 … cuda:{len(known) - 1}"
        raise DeviceUnavailableError(f"there is no cuda:{index} here, {visible}; choose another")
    if importlib.util.find_spec("cupy") is None:
        raise DeviceUnavailableError(f"CuPy is not installed; {INSTALL}")
    try:
        from cupy.cuda import runtime

        index = runtime.getDevice() if index is None else index
    except Exception as error:  # broken installations fail in many ways
        line = f"{error}".splitlines()[0] if f"{error}" else type(error).__name__
        raise DeviceUnavailableError(
            f"CuPy cannot use the GPU ({line}); update the driver, or {INSTALL}"
        ) from None
    if known[index] < OLDEST:
        raise DeviceUnavailableError(
            f"cuda:{index} has compute capability {_dotted(known[index])}, less than "
            f"{_dotted(OLDEST)}; use another GPU or device='cpu'"
        )
    from louvain_um.gpu.runtime.compile_cache import compiler

    compiler()
    return index


def start_early(options: Options) -> None:
    """Start a device's context and load kernels in the background, while Python has other work."""
    load_early(options)
    if options.device != "cpu" and library() is not None:
        in_background(_start, options.device)


def load_early(options: Options) -> None:
    """Begin in the background to load kernels, or to compile them, before a run can name them."""
    if options.device != "cpu" and library() is not None:
        in_background(_load_kernels, options)


def drop_early() -> None:
    """Load no more of the kernels of `load_early` than have begun."""
    all_begun()
    if compile := sys.modules.get("louvain_um.gpu.runtime.compile"):
        compile.kernels.drop_expected()


def _load_kernels(options: Options) -> None:
    """Expect the kernels that most runs with these options take."""
    if options.objective == "modularity" and not is_several(options.device):
        from louvain_um.gpu.runtime import compile, kernel_list

        major, minor = capabilities()[_index(options.device)]
        compile.kernels.expect(kernel_list.usual(options.method), 10 * major + minor)


def _start(device: str) -> None:
    """Retain the primary context, which CuPy shares; through ctypes others can import meanwhile."""
    capabilities()
    context = ctypes.c_void_p()
    library().cuDevicePrimaryCtxRetain(ctypes.byref(context), _index(device))


def _index(device: str) -> int:
    """Return the number of the first device that an option names, 0 if it has none."""
    return int(first_of(device).partition(":")[2] or 0)


def in_background(step: Callable[..., object], *args: Any) -> None:
    """Begin what can fail without harm, and what `all_begun` waits for."""

    def run() -> None:
        with suppress(Exception):
            step(*args)

    thread = Thread(target=run, name="louvain-um-cuda")
    with suppress(RuntimeError):  # there may be no room for another thread
        thread.start()
        _beginning.append(thread)


def has_begun() -> bool:
    """Return whether all that began in the background has ended."""
    return not any(thread.is_alive() for thread in _beginning)


_beginning: list[Thread] = []


def all_begun() -> None:
    """Wait for what began in the background, so that its imports never meet others."""
    while _beginning:
        _beginning.pop().join()


@cache
def library() -> Any:
    """Return the driver's library, None without one; looking for it takes long, so once."""
    with suppress(OSError):
        return ctypes.CDLL(LIBRARY)
    return None


def capabilities() -> list[tuple[int, int]]:
    """Return the compute capability of each visible device."""
    driver = library()
    if driver is None:
        raise DeviceUnavailableError(
            "no NVIDIA driver on this machine; install one or use device='cpu'"
        )
    status = driver.cuInit(0)
    count, value = ctypes.c_int(0), ctypes.c_int(0)
    if status == 0:
        driver.cuDeviceGetCount(ctypes.byref(count))
    if status not in (0, NO_DEVICE):
        raise DeviceUnavailableError(
            f"the NVIDIA driver does not start (CUDA error {status}); see whether nvidia-smi "
            "works, or use device='cpu'"
        )
    if count.value == 0:
        hidden = " (CUDA_VISIBLE_DEVICES is set)" if "CUDA_VISIBLE_DEVICES" in os.environ else ""
        raise DeviceUnavailableError(f"no NVIDIA GPU is visible{hidden}; use device='cpu'")
    pairs = []
    for device in range(count.value):
        pair = []
        for attribute in CAPABILITY:
            driver.cuDeviceGetAttribute(ctypes.byref(value), attribute, device)
            pair.append(value.value)
        pairs.append((pair[0], pair[1]))
    return pairs


@cache
def name_of(index: int) -> str:
    """Return a device's name; the driver takes a millisecond for it."""
    from cupy.cuda import runtime

    name: bytes = runtime.getDeviceProperties(index)["name"]
    return name.decode()


def describe(index: int) -> dict[str, Any]:
    """Return name, compute capability, memory, driver and CUDA versions of a device."""
    from cupy.cuda import runtime

    about = runtime.getDeviceProperties(index)
    name = about["name"]
    return {
        "name": name.decode() if isinstance(name, bytes) else name,
        "compute_capability": f"{about['major']}.{about['minor']}",
        "bytes": int(about["totalGlobalMem"]),
        "multiprocessors": int(about["multiProcessorCount"]),
        "driver_cuda": _version(runtime.driverGetVersion()),
        "runtime_cuda": _version(runtime.runtimeGetVersion()),
    }


def _version(number: int) -> str:
    return f"{number // 1000}.{number % 1000 // 10}"


def _dotted(capability: tuple[int, int]) -> str:
    return f"{capability[0]}.{capability[1]}"


MAX_DEGREE: Final = 1 << 30
"""Arcs of a vertex: hash tables have at least twice as many slots, counted in 32 bits."""


def is_several(device: str) -> bool:
    """Return whether an option names several devices."""
    return "," in device or device == "cuda:all"


def device_of(graph: object, device: str) -> str:
    """Return the device option of a run; a graph on a device is processed there."""
    from louvain_um.graph.graph import Graph

    there = getattr(graph, "there", None) if isinstance(graph, Graph) else graph
    index = there.device_index if hasattr(type(there), "device_index") else None  # type: ignore[union-attr]
    if device == "cpu" or index is None or (there is not graph and device not in ("auto", "cuda")):
        return device
    here = f"cuda:{index}"
    if device == "auto":
        try:
            return str(pick(here))
        except DeviceUnavailableError:
            return "cpu"
    if device not in ("cuda", here):
        raise OptionError(
            "device",
            device,
            f"use device={here!r}, or give graph.to_host()",
            problem=f"the graph is on {here}, not on {device}",
        )
    return here


def refuse_high_degrees(graph: Any) -> None:
    """Raise `GraphError` for a vertex with more arcs than a hash table on the GPU can hold."""
    if graph.n_vertices <= MAX_DEGREE:
        return
    begins, ends = getattr(graph, "begins", None), getattr(graph, "ends", None)
    if begins is None:
        begins, ends = graph.offsets[:-1], graph.offsets[1:]
    max_degree = int((ends - begins).max())
    if max_degree > MAX_DEGREE:
        raise GraphError(
            f"a vertex has {max_degree:,} arcs, more than the {MAX_DEGREE:,} that fit a hash table "
            "on the GPU; use device='cpu'"
        )


@contextmanager
def device_errors(chosen: Choice, plan: Callable[[], Plan | None] = lambda: None) -> Iterator[None]:
    """Turn what CuPy raises within a block into errors of this package."""
    from cupy.cuda import compiler, driver, memory, runtime

    try:
        yield
    except compiler.CompileException as error:  # of kernels that CuPy makes
        raise KernelCompileError(str(error)) from error
    except memory.OutOfMemoryError as error:  # of memory that CuPy's own functions take
        raise out_of_memory(plan(), error) from error
    except (driver.CUDADriverError, runtime.CUDARuntimeError) as error:
        raise DeviceUnavailableError(
            f"{chosen} stopped working ({error}); start again, or use device='cpu'"
        ) from error


def out_of_memory(plan: Plan | None, error: Exception) -> MemoryBudgetError:
    """Return the error for a device that has less free memory than the plan assumed."""
    arrays = [] if plan is None else [(a.name, a.nbytes) for a in plan.arrays]
    planned = 0 if plan is None else plan.device_bytes
    return MemoryBudgetError(
        planned + max(1, getattr(error, "_size", 1)),
        planned,
        arrays,
        "other programs may have taken device memory since the plan was made; close them, or set "
        "device_budget lower",
    )
