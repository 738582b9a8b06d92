"""Instrumented versions of CuPy's kernels: raw, element-wise, reductions, everything it compiles.

CuPy compiles every kernel by one function of `cupy.cuda.compiler`. While it is replaced here,
kernels are compiled to PTX, rewritten, and finished by the driver. CuPy keeps what it compiled, so
its caches are emptied at the beginning, and at the end, when plain kernels come back. What comes
compiled, such as CUB's device-wide sorts, stays plain.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from typing import Any, Final
from unittest.mock import patch

import numpy as np

from louvain_um.errors import KernelCompileError
from louvain_um.profiling.sources.source import SourceUnavailableError
from louvain_um.profiling.sources.tracer.kernels import MODULES, Register, finish
from louvain_um.profiling.sources.tracer.rewrite import Rewritten
from louvain_um.profiling.sources.tracer.rewrite_cache import rewritten
from louvain_um.profiling.sources.tracer.state import STATE, SYMBOL
from louvain_um.profiling.sources.tracer.tokenizer import PtxError

COMPILE: Final = "_compile_module_with_cache"
ARCHITECTURE: Final = "_get_arch_for_options_for_nvrtc"
"""What is replaced in `cupy.cuda.compiler`, since CuPy 12: what compiles, and what says for which
device."""


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
