"""NVRTC, NVIDIA's run-time compiler, through cuda.bindings: CUDA C++ to cubin or PTX.

cuda.core's `Program` does not serve here: it asks the driver before it returns PTX, which the
tracer's tests need on machines without a GPU, and its program cache refuses name expressions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from louvain_um.errors import DeviceUnavailableError, KernelCompileError


@dataclass(frozen=True, slots=True)
class Image:
    """Machine code and the symbols of its kernels."""

    code: bytes
    names: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiler:
    """What the installed NVRTC can do."""

    version: tuple[int, int]
    architectures: tuple[int, ...]


@cache
def compiler() -> Compiler:
    """Return the installed compiler."""
    try:
        version = _call("nvrtcVersion")
        return Compiler(version=version, architectures=tuple(_call("nvrtcGetSupportedArchs")))
    except Exception as error:  # a missing library is reported in many ways
        line = f"{type(error).__name__}: {error}".splitlines()[0]
        raise DeviceUnavailableError(
            "NVRTC, which compiles the CUDA kernels, was not found; pip install "
            f"'louvain-um[cuda13]' or 'louvain-um[cuda12]' ({line})"
        ) from None


def compile_source(
    name: str,
    source: str,
    headers: Mapping[str, str],
    expressions: Sequence[str],
    options: Sequence[str],
) -> Image:
    """Compile CUDA C++; safe to call from several threads, which then run side by side."""
    from cuda.bindings import nvrtc

    program = _call(
        "nvrtcCreateProgram",
        source.encode(),
        name.encode(),
        len(headers),
        [text.encode() for text in headers.values()],
        [header.encode() for header in headers],
    )
    try:
        for expression in expressions:
            _call("nvrtcAddNameExpression", program, expression.encode())
        flags = [option.encode() for option in options]
        status, *_ = nvrtc.nvrtcCompileProgram(program, len(flags), flags)
        if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            log = _output(program, "ProgramLog")
            raise KernelCompileError(log.rstrip(b"\0\n").decode(errors="replace"))
        to_ptx = any(option.startswith("--gpu-architecture=compute_") for option in options)
        code = _output(program, "PTX" if to_ptx else "CUBIN")
        names = {
            expression: _call("nvrtcGetLoweredName", program, expression.encode()).decode()
            for expression in expressions
        }
    finally:
        nvrtc.nvrtcDestroyProgram(program)
    return Image(code, names)


def _call(function: str, *args: Any) -> Any:
    """Return what a function of NVRTC returns besides its status."""
    from cuda.bindings import nvrtc

    status, *values = getattr(nvrtc, function)(*args)
    if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        raise KernelCompileError(f"{function}: {status.name}")
    return values[0] if len(values) == 1 else tuple(values)


def _output(program: Any, what: str) -> bytes:
    """Return a compiled program's log or code."""
    buffer = bytes(_call(f"nvrtcGet{what}Size", program))
    _call(f"nvrtcGet{what}", program, buffer)
    return buffer
