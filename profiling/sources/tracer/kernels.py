"""Instrumented versions of the engine's kernels: PTX by NVRTC, rewritten, linked by the driver."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final

from louvain_um.errors import KernelCompileError
from louvain_um.events import Event, Observer
from louvain_um.gpu.runtime import compile, image_cache, images
from louvain_um.gpu.runtime.nvrtc import Image
from louvain_um.profiling.sources.tracer.rewrite import Rewritten
from louvain_um.profiling.sources.tracer.rewrite_cache import rewritten
from louvain_um.profiling.sources.tracer.state import SYMBOL
from louvain_um.profiling.sources.tracer.tokenizer import PtxError

MODULES: Final = 1 << 16
"""A function is known to the log by its module's number times this, plus its own."""

VERSION: Final = re.compile(r"^\s*\.version\s+(\d+)\.(\d+)", re.MULTILINE)


def isa(cuda: tuple[int, int]) -> tuple[int, int]:
    """Return the newest version of PTX that a CUDA release reads (PTX ISA, release history)."""
    major, minor = cuda
    if major == 12 and minor > 5:
        minor -= 1  # CUDA 12.6 brought no new version
    return major - 4, minor


def for_driver(ptx: str, cuda: tuple[int, int]) -> str:
    """Return PTX with a version that a driver of this CUDA release reads."""
    match = VERSION.search(ptx)
    newest = isa(cuda)
    if match is None or (int(match[1]), int(match[2])) <= newest:
        return ptx
    return ptx[: match.start()] + ".version {}.{}".format(*newest) + ptx[match.end() :]


@dataclass(slots=True)
class Register:
    """What a tracer has instrumented."""

    modules: list[tuple[str, ...]] = field(default_factory=list)
    sites: int = 0
    left: dict[str, str] = field(default_factory=dict)


class TracedKernel(compile.Kernel):
    """A kernel whose counting state is updated before each launch."""

    __slots__ = ("ready",)

    def __init__(self, name: str, function: Any, ready: Callable[[], None]) -> None:
        super().__init__(name, function)
        self.ready = ready

    def __call__(
        self,
        grid: tuple[int, ...],
        block: tuple[int, ...],
        args: Sequence[Any],
        shared_mem: int = 0,
    ) -> None:
        """Launch; returns before the kernel has run."""
        self.ready()
        super().__call__(grid, block, args, shared_mem)


class TracedKernels(compile.Kernels):
    """Instrumented kernels in place of others."""

    def __init__(
        self,
        original: compile.Kernels,
        register: Register,
        ready: Callable[[int, int], None],
        *,
        log: bool = False,
    ) -> None:
        super().__init__(original.folder, original.together)
        self.ready = ready
        self.log = log
        self.register = register
        self._rewritten: dict[tuple[str, ...], Rewritten] = {}

    def images(
        self, wanted: list[tuple[str, tuple[str, ...]]], architecture: str, observer: Observer
    ) -> list[Image]:
        """Return instrumented images of some units; plain ones if a unit cannot be instrumented."""
        from cupy.cuda import Device

        device = Device().id
        observer(Event(kind="start", phase="compile"))

        def image(unit: tuple[str, tuple[str, ...]]) -> Image:
            Device(device).use()
            return self._image(*unit, architecture)

        # The driver finishes PTX in the calling thread, without Python's lock.
        with ThreadPoolExecutor(min(len(wanted), os.cpu_count() or 1)) as pool:
            made = list(pool.map(image, wanted))
        observer(Event(kind="end", phase="compile"))
        return made

    def load(self, device: int, source: str, image: Image) -> None:
        """Load an image on the current device."""
        from cupy.cuda.function import Module

        module = Module()
        module.load(image.code)
        done = self._rewritten.get(tuple(image.names.values()))
        ready: Callable[[], None] | None = None
        if done is not None:
            number, address = len(self.register.modules), int(module.get_global_var(SYMBOL))
            self.register.modules.append(done.functions)
            self.register.sites += sum(done.sites.values())

            def ready() -> None:
                self.ready(number, address)

        for expression, symbol in image.names.items():
            name = f"{source}.cu: {expression}"
            function = module.get_function(symbol)
            kernel = compile.Kernel(name, function)
            if ready is not None:
                kernel = TracedKernel(name, function, ready)
            if done is not None and symbol in done.left:
                self.register.left[name] = done.left[symbol]
            self.loaded[device, source, expression] = kernel

    def _image(self, source: str, names: tuple[str, ...], architecture: str) -> Image:
        virtual = architecture.replace("=sm_", "=compute_")
        ptx = images.cached_image(source, names, virtual, self.folder)
        try:
            done = rewritten(ptx.code.rstrip(b"\0").decode(), log=self.log)
            code = finish(done.text)
        except (PtxError, KernelCompileError) as error:
            for name in names:
                self.register.left[f"{source}.cu: {name}"] = str(error).splitlines()[0]
            return images.cached_image(source, names, architecture, self.folder)
        self._rewritten[tuple(ptx.names.values())] = done
        return Image(code, ptx.names)


def finish(ptx: str) -> bytes:
    """Return the current device's machine code for PTX, cached on disk."""
    from cupy.cuda import Device, driver, runtime
    from cupy.cuda.function import LinkState

    release = runtime.driverGetVersion()
    text = for_driver(ptx, (release // 1000, release % 1000 // 10)).encode() + b"\0"
    key = hashlib.sha256(text + Device().compute_capability.encode()).hexdigest()[:40]
    file = image_cache.cache_folder() / f"{key}.image"
    kept = image_cache.load(file)
    if kept is None:
        try:
            link = LinkState()
            link.add_ptr_data(text, "traced")
            kept = Image(bytes(link.complete()), {})
        except driver.CUDADriverError as error:
            raise KernelCompileError(
                f"the driver rejected the instrumented code: {error}"
            ) from error
        image_cache.save(file, kept)
    return kept.code
