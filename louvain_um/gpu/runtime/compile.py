"""The engine's kernels: compiled where no image is cached, loaded once per device."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Final

from louvain_um.events import Event, Observer, ignore
from louvain_um.gpu.runtime import kernel_list
from louvain_um.gpu.runtime.compile_cache import FOLDER, Image, cached_image, known_image, target

DEFAULT_SHARED: Final = 48 << 10
"""Bytes of shared memory that a block may use without opting in."""

MAX_DYNAMIC_SHARED: Final = 8
"""CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES."""

Job = tuple[str, tuple[str, ...], str, Path]
"""Source, C++ names, NVRTC's option for a device, and folder: what `cached_image` takes."""


def _image(job: Job) -> Image:
    """Return an image, compiling it if it is not known."""
    return known_image(*job) or cached_image(*job)


def _failed(image: Future[Image]) -> bool:
    """Return whether an image was given up, or could not be had."""
    return image.done() and (image.cancelled() or image.exception() is not None)


class Kernel:
    """A loaded kernel, launched cooperatively on CuPy's current stream."""

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
        self.expected: dict[Job, Future[Image]] = {}
        self.lock = threading.Lock()

    def get(self, source: str, kernel: str, types: str = "", observer: Observer = ignore) -> Kernel:
        """Return a kernel of the current device, compiling it if it must be."""
        from cupy.cuda.runtime import getDevice

        key = getDevice(), source, kernel_list.expression(kernel, types)
        loaded = self.loaded.get(key)
        if loaded is None:
            self.prepare([(source, types)], observer)
            loaded = self.loaded[key]
        return loaded

    def written(self, source: str, expression: str, front: str) -> Kernel:
        """Return a kernel whose source begins with other text, such as a user's functor."""
        from cupy.cuda import Device

        device = Device()
        with self.lock:
            name = f"{source} {front}"
            loaded = self.loaded.get((device.id, name, expression))
            if loaded is None:
                architecture = target(int(device.compute_capability))
                image = cached_image(source, [expression], architecture, front=front)
                self.load(device.id, name, image)
                loaded = self.loaded[device.id, name, expression]
        return loaded

    def prepare(
        self,
        units: Iterable[tuple[str, str]],
        observer: Observer = ignore,
        *,
        later: Container[str] = (),
    ) -> None:
        """Load kernels of some (source, template arguments): all but those that `later` names."""
        from cupy.cuda import Device

        device = Device()
        with self.lock:
            wanted = [
                (source, names)
                for source, types in dict.fromkeys(units)
                for names in kernel_list.units(self.together(source, types))
                if names[0] not in later and (device.id, source, names[0]) not in self.loaded
            ]
            if wanted:
                architecture = target(int(device.compute_capability))
                images = self.images(wanted, architecture, observer)
                for (source, _), image in zip(wanted, images, strict=True):
                    self.load(device.id, source, image)

    def expect(self, units: Iterable[tuple[str, tuple[str, ...]]], capability: int) -> None:
        """Begin to read or compile images in the background that `prepare` may want soon."""
        architecture = target(capability)
        jobs = [(source, names, architecture, self.folder) for source, names in units]
        pool = ThreadPoolExecutor(os.cpu_count(), "louvain-um-kernels")
        self.expected |= {job: pool.submit(_image, job) for job in jobs}

    def drop_expected(self) -> None:
        """Compile nothing in the background that has not begun."""
        for image in list(self.expected.values()):
            image.cancel()

    def forget_expected(self) -> None:
        """Expect nothing, as after a fork, where the threads that compile are missing."""
        self.expected = {}
        self.lock = threading.Lock()

    def resident_blocks(self, kernel: Kernel, threads: int, shared: int = 0) -> int:
        """Return how many blocks the current device holds at once: the largest grid."""
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
        """Return images of some units, compiling those that are not known."""
        jobs = [(source, names, architecture, self.folder) for source, names in wanted]
        self.drop_expected()
        expected = {job: self.expected.pop(job, None) for job in jobs}
        compiling = not all(image is None or image.done() for image in expected.values())
        begun = {job: image for job, image in expected.items() if image and not _failed(image)}
        images = {job: known_image(*job) for job in jobs if job not in begun}
        missing = [job for job, image in images.items() if image is None]
        if missing or compiling:
            observer(Event(kind="start", phase="compile"))
            # NVRTC releases the GIL, so that threads compile side by side.
            pool = ThreadPoolExecutor(max(1, min(len(missing), os.cpu_count() or 1)))
            try:
                begun |= {job: pool.submit(_image, job) for job in missing}
                wait(begun.values())
                # What kept the background from it, such as a full disk, may have passed.
                again = [
                    job for job in begun if begun[job] is expected[job] and _failed(begun[job])
                ]
                begun |= {job: pool.submit(_image, job) for job in again}
                wait(begun.values())
            finally:
                pool.shutdown(wait=False, cancel_futures=True)  # Ctrl-C does not wait for them
            observer(Event(kind="end", phase="compile"))
        return [images.get(job) or begun[job].result() for job in jobs]

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
    """Serve the engine's requests for kernels from `others`, in this context only."""
    token = _substitute.set(others)
    try:
        yield
    finally:
        _substitute.reset(token)


class EngineKernels(Kernels):
    """The engine's kernels, or their substitutes inside `using`."""

    @property
    def substituted(self) -> bool:
        """Whether others serve them now."""
        return _substitute.get() is not None

    def get(self, source: str, kernel: str, types: str = "", observer: Observer = ignore) -> Kernel:
        """Return a kernel of the current device, compiling it if it must be."""
        others = _substitute.get()
        if others is not None:
            return others.get(source, kernel, types, observer)
        return super().get(source, kernel, types, observer)

    def written(self, source: str, expression: str, front: str) -> Kernel:
        """Return a kernel whose source begins with other text, such as a user's functor."""
        others = _substitute.get()
        return (others or super()).written(source, expression, front)  # type: ignore[union-attr]

    def prepare(
        self,
        units: Iterable[tuple[str, str]],
        observer: Observer = ignore,
        *,
        later: Container[str] = (),
    ) -> None:
        """Load kernels of some (source, template arguments): all but those that `later` names."""
        others = _substitute.get()
        if others is not None:
            others.prepare(units, observer)
        else:
            super().prepare(units, observer, later=later)

    def resident_blocks(self, kernel: Kernel, threads: int, shared: int = 0) -> int:
        """Return how many blocks the current device holds at once: the largest grid."""
        others = _substitute.get()
        if others is not None:
            return others.resident_blocks(kernel, threads, shared)
        return super().resident_blocks(kernel, threads, shared)


kernels: Final = EngineKernels()
"""The engine's kernels; loaded modules stay loaded for the process."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=kernels.forget_expected)
