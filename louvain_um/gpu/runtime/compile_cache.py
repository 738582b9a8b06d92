"""CUDA sources to images, compiled by NVRTC, and their cache on disk, one file per image.

NVRTC is called through cuda.bindings. cuda.core's `Program` does not serve here: it asks the driver
before it returns PTX, which the tracer's tests need on machines without a GPU, and its program
cache refuses name expressions.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from louvain_um.core import private_files
from louvain_um.errors import DeviceUnavailableError, KernelCompileError
from louvain_um.placement import hardware

FOLDER: Final = Path(__file__).parents[1]

SHIPPED: Final = FOLDER / "images"
"""Images that come with the package, where it was built with any."""

DEFINES: Final = tuple(
    f"-D{name}={getattr(hardware, name)}" for name in ("THREADS", "WARP", "PAGE", "SECTOR")
)
"""Constants of `placement.hardware` that kernels use by the same names."""

OPTIONS: Final = ("--std=c++17", "--fmad=false", "--generate-line-info", *DEFINES)
"""No fused multiply-add: the rule rounds each operation on its own."""

BLOCKED: Final = FOLDER.parent / "placement" / "program" / "blocked.cuh"
"""Kernel blocking, which kernels of users include, too."""

INCLUDE: Final = re.compile(r'^#include "(.+)"$', re.MULTILINE)


def target(capability: int) -> str:
    """Return the NVRTC option for a device of this compute capability, times 10."""
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
    files = [BLOCKED, *FOLDER.rglob("*.cuh"), *folder.rglob("*.cu"), *folder.rglob("*.cuh")]
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
    source: str,
    expressions: Sequence[str],
    architecture: str,
    folder: Path = FOLDER,
    front: str = "",
) -> Image:
    """Compile some kernels of one source; messages name its file and line."""
    files = sources(folder)
    name = f"{source}.cu"
    options = (*OPTIONS, architecture)
    return compile_source(name, front + files[name], included(name, files), expressions, options)


def digest(
    source: str,
    expressions: Sequence[str],
    architecture: str,
    folder: Path,
    front: str = "",
    *,
    compiled_by: object = None,
) -> str:
    """Return a name for what `build` would return, by any compiler or by one."""
    files = sources(folder)
    name = f"{source}.cu"
    texts = {name: front + files[name], **dict(sorted(included(name, files).items()))}
    parts = [source, texts, list(expressions), OPTIONS, architecture, compiled_by]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:40]


def image_file(
    source: str,
    expressions: Sequence[str],
    architecture: str,
    folder: Path = FOLDER,
    front: str = "",
) -> Path:
    """Return where an image is cached, whether or not it is there; parameters as of `build`."""
    by = compiler().version
    name = digest(source, expressions, architecture, folder, front, compiled_by=by)
    return cache_folder() / f"{name}.image"


def shipped_file(
    source: str, expressions: Sequence[str], architecture: str, folder: Path = FOLDER
) -> Path:
    """Return where an image is that comes with the package, whether or not it is there."""
    return SHIPPED / f"{digest(source, expressions, architecture, folder)}.image"


def known_image(
    source: str, expressions: Sequence[str], architecture: str, folder: Path = FOLDER
) -> Image | None:
    """Return an image that is cached or comes with the package; None if it must be compiled."""
    cached = load(image_file(source, expressions, architecture, folder))
    if cached is not None:
        return cached
    with suppress(OSError):
        return parse(shipped_file(source, expressions, architecture, folder).read_bytes())
    return None


def cached_image(
    source: str,
    expressions: Sequence[str],
    architecture: str,
    folder: Path = FOLDER,
    front: str = "",
) -> Image:
    """Return what `build` returns, from the cache if it is there; else it is cached."""
    file = image_file(source, expressions, architecture, folder, front)
    image = load(file)
    if image is None:
        with private_files.made_once(file):
            image = load(file)
            if image is None:
                image = build(source, expressions, architecture, folder, front)
                save(file, image)
    return image


def cache_folder() -> Path:
    """Return the folder of compiled kernels: LOUVAIN_UM_CACHE or the user's cache folder."""
    chosen = os.environ.get("LOUVAIN_UM_CACHE")
    if chosen:
        return Path(chosen) / "kernels"
    home = os.environ.get("LOCALAPPDATA" if os.name == "nt" else "XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "louvain-um" / "kernels"


def load(file: Path) -> Image | None:
    """Return a cached image, or None if there is none or the file is damaged or not private."""
    with suppress(ValueError):
        return parse(private_files.read(file) or b"")
    return None


def parse(data: bytes) -> Image | None:
    """Return the image that a file holds, None if it is damaged."""
    with suppress(ValueError, KeyError, TypeError):
        head, _, code = data.partition(b"\n")
        entry = json.loads(head)
        if entry["sha256"] == hashlib.sha256(code).hexdigest():
            return Image(code, entry["names"])
    return None


def written(image: Image) -> bytes:
    """Return an image as the contents of a file."""
    entry = {"sha256": hashlib.sha256(image.code).hexdigest(), "names": dict(image.names)}
    return json.dumps(entry).encode() + b"\n" + image.code


def save(file: Path, image: Image) -> None:
    """Write an image for later processes; a full or read-only disk is no error."""
    with suppress(OSError):
        private_files.write(file, written(image))


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
