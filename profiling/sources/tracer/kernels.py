"""Instrumented kernels, the engine's and CuPy's: PTX by NVRTC, rewritten, linked by the driver.

CuPy compiles every kernel by one function of `cupy.cuda.compiler`. While it is replaced here,
kernels are compiled to PTX, rewritten, and finished by the driver. CuPy keeps what it compiled, so
its caches are emptied at the beginning, and at the end, when plain kernels come back. What comes
compiled, such as CUB's device-wide sorts, stays plain.
"""

from __future__ import annotations

import gc
import hashlib
import os
import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final
from unittest.mock import patch

import numpy as np

from louvain_um.errors import KernelCompileError
from louvain_um.events import Event, Observer
from louvain_um.gpu.runtime import compile, compile_cache
from louvain_um.gpu.runtime.compile_cache import Image
from louvain_um.profiling.sources.source import SourceUnavailableError
from louvain_um.profiling.sources.tracer.rewrite import Rewritten, rewritten
from louvain_um.profiling.sources.tracer.snippet import STATE, SYMBOL
from louvain_um.profiling.sources.tracer.tokenizer import PtxError

MODULES: Final = 1 << 16
"""A function is known to the log by its module's number times this, plus its own."""

VERSION: Final = re.compile(r"^\s*\.version\s+(\d+)\.(\d+)", re.MULTILINE)

COMPILE: Final = "_compile_module_with_cache"

ARCHITECTURE: Final = "_get_arch_for_options_for_nvrtc"
"""What is replaced in `cupy.cuda.compiler`, since CuPy 12: what compiles, and what says for which
device."""


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
        ptx = compile_cache.cached_image(source, names, virtual, self.folder)
        try:
            done = rewritten(ptx.code.rstrip(b"\0").decode(), log=self.log)
            code = finish(done.text)
        except (PtxError, KernelCompileError) as error:
            for name in names:
                self.register.left[f"{source}.cu: {name}"] = str(error).splitlines()[0]
            return compile_cache.cached_image(source, names, architecture, self.folder)
        self._rewritten[tuple(ptx.names.values())] = done
        return Image(code, ptx.names)


def finish(ptx: str) -> bytes:
    """Return the current device's machine code for PTX, cached on disk."""
    from cupy.cuda import Device, driver, runtime
    from cupy.cuda.function import LinkState

    release = runtime.driverGetVersion()
    text = for_driver(ptx, (release // 1000, release % 1000 // 10)).encode() + b"\0"
    key = hashlib.sha256(text + Device().compute_capability.encode()).hexdigest()[:40]
    file = compile_cache.cache_folder() / f"{key}.image"
    kept = compile_cache.load(file)
    if kept is None:
        try:
            link = LinkState()
            link.add_ptr_data(text, "traced")
            kept = Image(bytes(link.complete()), {})
        except driver.CUDADriverError as error:
            raise KernelCompileError(
                f"the driver rejected the instrumented code: {error}"
            ) from error
        compile_cache.save(file, kept)
    return kept.code


class CupyKernels:
    """CuPy's kernels while a tracer is active."""

    def __init__(self, register: Register, *, log: bool = False) -> None:
        self.register = register
        self.log = log
        self.modules: list[tuple[Any, int, int]] = []
        self.loaded: Callable[[], None] = lambda: None

    @contextmanager
    def instrumenting(self) -> Iterator[None]:
        """Let CuPy compile instrumented kernels inside the block."""
        from cupy.cuda import compiler

        if not all(hasattr(compiler, name) for name in (COMPILE, ARCHITECTURE)):
            raise SourceUnavailableError(
                "this release of CuPy compiles kernels in a way that is not known here; use CuPy 13"
            )
        original = getattr(compiler, COMPILE)

        def compile_traced(source: str, options: Any = (), **about: Any) -> Any:
            try:
                return self._module(source, tuple(options), about)
            except (PtxError, KernelCompileError, _PlainError) as error:
                name = str(about.get("name_expressions") or source.strip()[:40]).splitlines()[0]
                self.register.left[f"CuPy: {name}"] = str(error).splitlines()[0]
                return original(source, options, **about)

        with ExitStack() as stack:
            stack.enter_context(patch.object(compiler, COMPILE, compile_traced))
            recompile()
            try:
                yield
            finally:
                stack.close()
                recompile()
                self._retire()

    def send(self, state: Any) -> None:
        """Bring the constants of every module up to date."""
        from cupy.cuda import runtime

        runtime.deviceSynchronize()
        for _, number, address in self.modules:
            state["module"] = number * MODULES
            runtime.memcpy(address, state.ctypes.data, state.nbytes, runtime.memcpyHostToDevice)

    def _module(self, source: str, options: tuple[str, ...], about: dict[str, Any]) -> Any:
        """Return an instrumented module, loaded on the current device."""
        from cupy.cuda import compiler
        from cupy.cuda.function import Module

        separate = {"-dc", "--device-c", "-rdc=true", "--relocatable-device-code=true"}
        if about.get("backend", "nvrtc") != "nvrtc" or about.get("to_ltoir"):
            raise _PlainError("it is not compiled by NVRTC to machine code")
        if separate & set(options) or about.get("jitify"):
            raise _PlainError("it is linked with other code")
        plain = getattr(compiler, ARCHITECTURE)

        def to_ptx(arch: Any = None) -> tuple[str, str]:
            number = plain(arch)[0].rpartition("_")[2]
            return f"-arch=compute_{number}", "ptx"

        with patch.object(compiler, ARCHITECTURE, to_ptx):
            # As CuPy does: flushing subnormal numbers.
            ptx, mapping = compiler.compile_using_nvrtc(
                source,
                (*options, "-ftz=true"),
                about.get("arch"),
                "traced.cu",
                about.get("name_expressions"),
                about.get("log_stream"),
                True,
            )
        text = ptx.decode() if isinstance(ptx, bytes) else str(ptx)
        done = rewritten(text.rstrip("\0"), log=self.log)
        module = Module()
        module.load(finish(done.text))
        module._set_mapping(mapping)
        self._enter(module, done)
        return module

    def _enter(self, module: Any, done: Rewritten) -> None:
        number = len(self.register.modules)
        self.register.modules.append(done.functions)
        self.register.sites += sum(done.sites.values())
        for symbol, reason in done.left.items():
            self.register.left[f"CuPy: {symbol}"] = reason
        self.modules.append((module, number, int(module.get_global_var(SYMBOL))))
        self.loaded()

    def _retire(self) -> None:
        """Let kernels that callers still hold count into a cell that is never read."""
        state = np.zeros((), STATE)
        state["cells"] = [_unread().data.ptr] * 3
        state["bins"] = state["count"] = 1
        self.send(state)
        self.modules.clear()


class _PlainError(Exception):
    """A kernel that stays as it is; the text says why."""


@cache
def _unread() -> Any:
    """Return counters that are never read."""
    import cupy

    return cupy.zeros(1, np.uint32)


def recompile() -> None:
    """Let CuPy forget what it has compiled; raw kernels, which remember, compile again now."""
    import cupy

    cupy.clear_memo()
    for each in gc.get_objects():
        if isinstance(each, cupy.ElementwiseKernel):
            _clear(each, "_elementwise_kernel_memo")
        elif isinstance(each, cupy.ufunc):
            _clear(each, "_kernel_memo")
        elif isinstance(each, cupy.RawKernel):
            # One that does not compile says so when it is used.
            with suppress(Exception):
                each.compile()


def _clear(kernel: Any, memo: str) -> None:
    known = getattr(kernel, memo, None)
    if isinstance(known, dict):
        known.clear()
