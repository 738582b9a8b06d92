"""NVRTC, NVIDIA's compiler as a library, through cuda.bindings or else through CuPy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any, Protocol

from louvain_um.errors import DeviceUnavailableError, KernelCompileError


@dataclass(frozen=True, slots=True)
class Image:
    """Machine code and where its kernels are.

    Parameters
    ----------
    code : bytes
        A cubin, or PTX for a device younger than the compiler.
    names : mapping of str to str
        Name expression → symbol in the code.
    """

    code: bytes
    names: Mapping[str, str]


class Compiler(Protocol):
    """One way to reach NVRTC."""

    version: tuple[int, int]
    architectures: tuple[int, ...]

    def compile(
        self,
        name: str,
        source: str,
        headers: Mapping[str, str],
        expressions: Sequence[str],
        options: Sequence[str],
    ) -> Image:
        """Return the compiled kernels that the name expressions stand for."""


@cache
def compiler() -> Compiler:
    """Return the compiler at hand.

    Raises
    ------
    DeviceUnavailableError
        No NVRTC is installed.
    """
    problems = []
    for way in (_Bindings, _CuPy):
        try:
            return way()
        except Exception as error:  # a missing library shows itself in many ways
            problems.append(f"{type(error).__name__}: {error}".splitlines()[0])
    raise DeviceUnavailableError(
        "NVRTC, which compiles the CUDA kernels, was not found; pip install 'louvain-um[cuda13]' "
        f"or 'louvain-um[cuda12]' ({'; '.join(problems)})"
    )


def _text(log: bytes) -> str:
    return log.rstrip(b"\0\n").decode(errors="replace")


class _Bindings:
    """NVRTC by way of cuda.bindings."""

    def __init__(self) -> None:
        from cuda.bindings import nvrtc

        self.nvrtc: ModuleType = nvrtc
        self.version: tuple[int, int] = self.call("nvrtcVersion")
        self.architectures: tuple[int, ...] = tuple(self.call("nvrtcGetSupportedArchs"))

    def call(self, function: str, *args: Any) -> Any:
        """Return what a function of NVRTC returns behind its status."""
        status, *values = getattr(self.nvrtc, function)(*args)
        if status != self.nvrtc.nvrtcResult.NVRTC_SUCCESS:
            raise KernelCompileError(f"{function}: {status.name}")
        return values[0] if len(values) == 1 else tuple(values)

    def compile(
        self,
        name: str,
        source: str,
        headers: Mapping[str, str],
        expressions: Sequence[str],
        options: Sequence[str],
    ) -> Image:
        """Return the compiled kernels that the name expressions stand for."""
        program = self.call(
            "nvrtcCreateProgram",
            source.encode(),
            name.encode(),
            len(headers),
            [text.encode() for text in headers.values()],
            [header.encode() for header in headers],
        )
        try:
            for expression in expressions:
                self.call("nvrtcAddNameExpression", program, expression.encode())
            status, *_ = self.nvrtc.nvrtcCompileProgram(
                program, len(options), [option.encode() for option in options]
            )
            if status != self.nvrtc.nvrtcResult.NVRTC_SUCCESS:
                log = bytes(self.call("nvrtcGetProgramLogSize", program))
                self.call("nvrtcGetProgramLog", program, log)
                raise KernelCompileError(_text(log))
            kind = "PTX" if _wants_ptx(options) else "CUBIN"
            code = bytes(self.call(f"nvrtcGet{kind}Size", program))
            self.call(f"nvrtcGet{kind}", program, code)
            names = {
                e: self.call("nvrtcGetLoweredName", program, e.encode()).decode()
                for e in expressions
            }
        finally:
            self.nvrtc.nvrtcDestroyProgram(program)
        return Image(code, names)


class _CuPy:
    """NVRTC by way of CuPy's own wrapper, for an installation without cuda.bindings."""

    def __init__(self) -> None:
        from cupy_backends.cuda.libs import nvrtc

        self.nvrtc: Any = nvrtc
        self.version: tuple[int, int] = tuple(nvrtc.getVersion())
        self.architectures: tuple[int, ...] = tuple(nvrtc.getSupportedArchs())

    def compile(
        self,
        name: str,
        source: str,
        headers: Mapping[str, str],
        expressions: Sequence[str],
        options: Sequence[str],
    ) -> Image:
        """Return the compiled kernels that the name expressions stand for."""
        nvrtc = self.nvrtc
        program = nvrtc.createProgram(
            source,
            name,
            [text.encode() for text in headers.values()],
            [header.encode() for header in headers],
        )
        try:
            for expression in expressions:
                nvrtc.addNameExpression(program, expression)
            try:
                nvrtc.compileProgram(program, list(options))
            except nvrtc.NVRTCError:
                raise KernelCompileError(nvrtc.getProgramLog(program)) from None
            code = nvrtc.getPTX(program) if _wants_ptx(options) else nvrtc.getCUBIN(program)
            names = {e: nvrtc.getLoweredName(program, e) for e in expressions}
        finally:
            nvrtc.destroyProgram(program)
        return Image(code if isinstance(code, bytes) else code.encode(), names)


def _wants_ptx(options: Sequence[str]) -> bool:
    return any(option.startswith("--gpu-architecture=compute_") for option in options)
