"""CUDA sources to callable kernels: compiled by NVRTC, cached on disk, loaded once per device."""

from __future__ import annotations

import hashlib
import json
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import Any, Final

from louvain_um.errors import DeviceUnavailableError
from louvain_um.events import Event, Observer, ignore
from louvain_um.gpu.runtime import image_cache, kernel_list
from louvain_um.gpu.runtime.nvrtc import Image, compile_source, compiler

FOLDER: Final = Path(__file__).parents[1]

OPTIONS: Final = ("--std=c++17", "--fmad=false", "--generate-line-info")
"""No fused multiply-add: the rule rounds each operation on its own."""

INCLUDE: Final = re.compile(r'^#include "(.+)"$', re.MULTILINE)

DEFAULT_SHARED: Final = 48 << 10
"""Bytes of shared memory that a block may use without opting in."""

MAX_DYNAMIC_SHARED: Final = 8
"""CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES."""


def target(capability: int) -> str:
    """Return the NVRTC option for a device of this compute capability, times 10.

    A compiler older than the device makes machine code for the newest architecture of the same
    generation that it knows; if it knows none, PTX, which the driver finishes.

    Raises
    ------
    DeviceUnavailableError
        The device is too old for the compiler.
    """
    known = compiler().architectures
    same_generation = [a for a in known if a // 10 == capability // 10 and a <= capability]
    if same_generation:
        return f"--gpu-architecture=sm_{max(same_generation)}"
    older = [a for a in known if a <= capability]
    if older:
        return f"--gpu-architecture=compute_{max(older)}"
    raise DeviceUnavailableError(
        f"the installed NVRTC {'.'.join(map(str, compiler().version))} no longer supports compute "
        f"capability {capability / 10}; install louvain-um[cuda12]"
    )


@cache
def sources(folder: Path = FOLDER) -> Mapping[str, str]:
    """Return the text of every CUDA file of a folder, and of the engine's headers, by name."""
    files = [*FOLDER.rglob("*.cuh"), *folder.rglob("*.cu"), *folder.rglob("*.cuh")]
    return {file.name: file.read_text(encoding="utf-8") for file in sorted(set(files))}


def included(name: str, files: Mapping[str, str]) -> dict[str, str]:
    """Return the headers that a file includes, directly or not, by name."""
    headers = dict[str, str]()
    pending = [name]
    while pending:
        for header in INCLUDE.findall(files[pending.pop()]):
            if header in files and header not in headers:
                headers[header] = files[header]
                pending.append(header)
    return headers


def build(
    source: str, expressions: Sequence[str], architecture: str, folder: Path = FOLDER
) -> Image:
    """Compile some kernels of one source; messages name its file and line.

    Parameters
    ----------
    source : str
        File name without ``.cu``.
    expressions : sequence of str
        C++ names of the kernels.
    architecture : str
        As `target` returns it.

    Raises
    ------
    KernelCompileError
        With the compiler's log.
    """
    files = sources(folder)
    name = f"{source}.cu"
    options = (*OPTIONS, architecture)
    return compile_source(name, files[name], included(name, files), expressions, options)


def digest(source: str, expressions: Sequence[str], architecture: str, folder: Path) -> str:
    """Return a name for what `build` would return."""
    files = sources(folder)
    name = f"{source}.cu"
    texts = {name: files[name], **dict(sorted(included(name, files).items()))}
    parts = [source, texts, list(expressions), OPTIONS, architecture, compiler().version]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:40]


def image_file(
    source: str, expressions: Sequence[str], architecture: str, folder: Path = FOLDER
) -> Path:
    """Return where the image of some kernels is cached, whether or not it is there."""
    name = digest(source, expressions, architecture, folder)
    return image_cache.cache_folder() / f"{name}.image"


def cached_image(
    source: str, expressions: Sequence[str], architecture: str, folder: Path = FOLDER
) -> Image:
    """Return what `build` returns, from the cache if it is there; else it is cached."""
    file = image_file(source, expressions, architecture, folder)
    image = image_cache.load(file)
    if image is None:
        image = build(source, expressions, architecture, folder)
        image_cache.save(file, image)
    return image


def written_image(source: str, expression: str, architecture: str, front: str) -> Image:
    """Return a kernel of a source that other text is written in front of, cached like others."""
    files, name = sources(), f"{source}.cu"
    headers = included(name, files)
    parts = [front, files[name], dict(sorted(headers.items())), expression, OPTIONS, architecture]
    key = hashlib.sha256(json.dumps([*parts, compiler().version]).encode()).hexdigest()[:40]
    file = image_cache.cache_folder() / f"{key}.image"
    image = image_cache.load(file)
    if image is None:
        options = (*OPTIONS, architecture)
        image = compile_source(name, front + files[name], headers, [expression], options)
        image_cache.save(file, image)
    return image


class Kernel:
    """A loaded kernel, launched cooperatively on CuPy's current stream.

    ``kernel(grid, block, args, shared_mem=0)``: `grid` and `block` are tuples, `args` CuPy
    arrays and NumPy scalars of the parameters' exact types. Every block must be resident.
    """

    __slots__ = ("function", "name")

    def __init__(self, name: str, function: Any) -> None:
        self.name = name
        self.function = function

    def __call__(
        self,
        grid: tuple[int, ...],
        block: tuple[int, ...],
        args: Sequence[Any],
        shared_mem: int = 0,
    ) -> None:
        """Launch; returns before the kernel has run."""
        self.function(grid, block, args, shared_mem, None, True)

    def __repr__(self) -> str:
        return f"Kernel({self.name})"


class Kernels:
    """The kernels of a folder of CUDA sources, loaded on first use on each device."""

    def __init__(
        self,
        folder: Path = FOLDER,
        together: Callable[[str, str], Sequence[str]] = kernel_list.together,
    ) -> None:
        self.folder = folder
        self.together = together
        self.loaded: dict[tuple[int, str, str], Kernel] = {}
        self.resident: dict[tuple[int, str, int, int], int] = {}
        self.lock = threading.Lock()

    def get(self, source: str, kernel: str, types: str = "", observer: Observer = ignore) -> Kernel:
        """Return a kernel of the current device, compiling it if it must be.

        Parameters
        ----------
        source : str
            File without ``.cu``.
        kernel : str
            The function's name.
        types : str
            Its template arguments, as `kernel_list.CATALOGUE` spells them.

        Raises
        ------
        KernelCompileError
            With the compiler's log.
        """
        from cupy.cuda.runtime import getDevice

        key = getDevice(), source, kernel_list.expression(kernel, types)
        loaded = self.loaded.get(key)
        if loaded is None:
            self.prepare([(source, types)], observer)
            loaded = self.loaded[key]
        return loaded

    def written(self, source: str, kernel: str, types: str, front: str) -> Kernel:
        """Return a kernel whose source begins with other text, such as a user's expression.

        Parameters
        ----------
        source, kernel, types : str
            As of `get`.
        front : str
            Lines of CUDA C++, which define what the source leaves open.
        """
        from cupy.cuda import Device

        device, expression = Device(), kernel_list.expression(kernel, types)
        with self.lock:
            name = f"{source} {front}"
            loaded = self.loaded.get((device.id, name, expression))
            if loaded is None:
                architecture = target(int(device.compute_capability))
                self.load(device.id, name, written_image(source, expression, architecture, front))
                loaded = self.loaded[device.id, name, expression]
        return loaded

    def prepare(self, units: Iterable[tuple[str, str]], observer: Observer = ignore) -> None:
        """Load all kernels of some (source, template arguments) on the current device.

        Images that are not cached are compiled, side by side, between the observer's "start"
        and "end" of phase "compile".
        """
        from cupy.cuda import Device

        device = Device()
        with self.lock:
            wanted = [
                (source, names)
                for source, types in dict.fromkeys(units)
                if (names := tuple(self.together(source, types)))
                and (device.id, source, names[0]) not in self.loaded
            ]
            if wanted:
                architecture = target(int(device.compute_capability))
                images = self.images(wanted, architecture, observer)
                for (source, _), image in zip(wanted, images, strict=True):
                    self.load(device.id, source, image)

    def resident_blocks(self, kernel: Kernel, threads: int, shared: int = 0) -> int:
        """Return how many blocks the current device holds at once: the largest grid.

        Parameters
        ----------
        threads, shared : int
            Threads of a block, and bytes of its dynamic shared memory; above 48 KiB the
            kernel opts in.
        """
        from cupy.cuda import Device, driver
        from cupy.cuda.runtime import getDevice

        key = getDevice(), kernel.name, threads, shared
        blocks = self.resident.get(key)
        if blocks is None:
            pointer = kernel.function.ptr
            if shared > DEFAULT_SHARED:
                driver.funcSetAttribute(pointer, MAX_DYNAMIC_SHARED, shared)
            each = driver.occupancyMaxActiveBlocksPerMultiprocessor(pointer, threads, shared)
            blocks = each * Device().attributes["MultiProcessorCount"]
            self.resident[key] = blocks
        return blocks

    def images(
        self, wanted: list[tuple[str, tuple[str, ...]]], architecture: str, observer: Observer
    ) -> list[Image]:
        """Return images of some units, compiling those that are not cached."""
        jobs = [(source, names, architecture, self.folder) for source, names in wanted]
        images = [image_cache.load(image_file(*job)) for job in jobs]
        missing = [i for i, image in enumerate(images) if image is None]
        if missing:
            from concurrent.futures import ThreadPoolExecutor

            observer(Event(kind="start", phase="compile"))
            # NVRTC releases the GIL, so that threads compile side by side.
            with ThreadPoolExecutor(min(len(missing), os.cpu_count() or 1)) as pool:
                made = pool.map(lambda i: cached_image(*jobs[i]), missing)
                for i, image in zip(missing, made, strict=True):
                    images[i] = image
            observer(Event(kind="end", phase="compile"))
        return [image for image in images if image is not None]

    def load(self, device: int, source: str, image: Image) -> None:
        """Load an image on the current device."""
        from cupy.cuda.function import Module

        module = Module()
        module.load(image.code)
        for expression, symbol in image.names.items():
            name = f"{source}.cu: {expression}"
            self.loaded[device, source, expression] = Kernel(name, module.get_function(symbol))


_substitute: ContextVar[Kernels | None] = ContextVar("kernels", default=None)


@contextmanager
def using(others: Kernels) -> Iterator[None]:
    """Serve the engine's requests for kernels from `others`, in this context only.

    They must do what the engine's kernels do; a profiler's also record.
    """
    token = _substitute.set(others)
    try:
        yield
    finally:
        _substitute.reset(token)


class EngineKernels(Kernels):
    """The engine's kernels, or their substitutes inside `using`."""

    def get(self, source: str, kernel: str, types: str = "", observer: Observer = ignore) -> Kernel:
        """Return a kernel of the current device, compiling it if it must be."""
        others = _substitute.get()
        if others is not None:
            return others.get(source, kernel, types, observer)
        return super().get(source, kernel, types, observer)

    def prepare(self, units: Iterable[tuple[str, str]], observer: Observer = ignore) -> None:
        """Load all kernels of some (source, template arguments) on the current device."""
        others = _substitute.get()
        if others is not None:
            others.prepare(units, observer)
        else:
            super().prepare(units, observer)

    def resident_blocks(self, kernel: Kernel, threads: int, shared: int = 0) -> int:
        """Return how many blocks the current device holds at once: the largest grid."""
        others = _substitute.get()
        if others is not None:
            return others.resident_blocks(kernel, threads, shared)
        return super().resident_blocks(kernel, threads, shared)


kernels: Final = EngineKernels()
"""The engine's kernels; loaded modules stay loaded for the process."""
