"""CUDA sources to callable kernels: compiled by NVRTC, kept on disk, loaded once a device."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import Any, Final

from louvain_um.errors import DeviceUnavailableError
from louvain_um.events import Event, Observer, ignore
from louvain_um.gpu.runtime import kernel_list
from louvain_um.gpu.runtime.nvrtc import Image, compiler

FOLDER: Final = Path(__file__).parents[1]

OPTIONS: Final = ("--std=c++17", "--fmad=false", "--generate-line-info")
"""No fused multiply-add: the rule rounds each operation on its own."""

PLAIN_SHARED: Final = 48 << 10
"""Bytes of shared memory a block gets without asking."""

MAX_DYNAMIC_SHARED: Final = 8
"""CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES."""


def cache_folder() -> Path:
    """Return the folder of compiled kernels: LOUVAIN_UM_CACHE or the user's cache folder."""
    chosen = os.environ.get("LOUVAIN_UM_CACHE")
    if chosen:
        return Path(chosen) / "kernels"
    home = os.environ.get("LOCALAPPDATA" if os.name == "nt" else "XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "louvain-um" / "kernels"


def target(capability: int) -> str:
    """Return the NVRTC option for a device of this compute capability, in tenths.

    A compiler older than the device makes code for the newest relative that it knows, or, if
    it knows none of that generation, PTX for the driver to finish.

    Raises
    ------
    DeviceUnavailableError
        The device is too old for the compiler.
    """
    known = compiler().architectures
    relatives = [a for a in known if a // 10 == capability // 10 and a <= capability]
    if relatives:
        return f"--gpu-architecture=sm_{max(relatives)}"
    elders = [a for a in known if a <= capability]
    if elders:
        return f"--gpu-architecture=compute_{max(elders)}"
    raise DeviceUnavailableError(
        f"the installed NVRTC {'.'.join(map(str, compiler().version))} has given up compute "
        f"capability {capability / 10}; install louvain-um[cuda12]"
    )


@cache
def sources(folder: Path = FOLDER) -> Mapping[str, str]:
    """Return the text of every CUDA file of a folder, and of the engine's headers, by name."""
    files = [*FOLDER.rglob("*.cuh"), *folder.rglob("*.cu"), *folder.rglob("*.cuh")]
    return {file.name: file.read_text(encoding="utf-8") for file in sorted(set(files))}


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
    headers = {name: text for name, text in files.items() if name.endswith(".cuh")}
    name = f"{source}.cu"
    return compiler().compile(name, files[name], headers, expressions, (*OPTIONS, architecture))


def digest(source: str, expressions: Sequence[str], architecture: str, folder: Path) -> str:
    """Return a name for what `build` would return."""
    files = sources(folder)
    relevant = {n: t for n, t in files.items() if n.endswith(".cuh") or n == f"{source}.cu"}
    parts = [source, relevant, list(expressions), OPTIONS, architecture, compiler().version]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:40]


def recall(file: Path) -> Image | None:
    """Return a kept image, or None if there is none or it is damaged."""
    try:
        head, _, code = file.read_bytes().partition(b"\n")
        entry = json.loads(head)
        if entry["sha256"] == hashlib.sha256(code).hexdigest():
            return Image(code, entry["names"])
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return None


def keep(file: Path, image: Image) -> None:
    """Keep an image for the next process; a disk that is full or closed is no error."""
    entry = {"sha256": hashlib.sha256(image.code).hexdigest(), "names": dict(image.names)}
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=file.parent, suffix=".part")
        try:
            with os.fdopen(handle, "wb") as out:
                out.write(json.dumps(entry).encode() + b"\n" + image.code)
            os.replace(name, file)
        except OSError:
            with suppress(OSError):
                os.unlink(name)


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
            Its template arguments, as `catalogue.CATALOGUE` spells them.

        Raises
        ------
        KernelCompileError
            With the compiler's log.
        """
        from cupy.cuda.runtime import getDevice

        key = getDevice(), source, kernel_list.expression(kernel, types)
        found = self.loaded.get(key)
        if found is None:
            self.prepare([(source, types)], observer)
            found = self.loaded[key]
        return found

    def prepare(self, units: Iterable[tuple[str, str]], observer: Observer = ignore) -> None:
        """Load all kernels of some (source, template arguments) on the current device.

        What is not kept on disk is compiled, side by side, between the observer's "start" and
        "end" of phase "compile".
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
            kernel is given leave to use them.
        """
        from cupy.cuda import Device, driver
        from cupy.cuda.runtime import getDevice

        key = getDevice(), kernel.name, threads, shared
        blocks = self.resident.get(key)
        if blocks is None:
            pointer = kernel.function.ptr
            if shared > PLAIN_SHARED:
                driver.funcSetAttribute(pointer, MAX_DYNAMIC_SHARED, shared)
            each = driver.occupancyMaxActiveBlocksPerMultiprocessor(pointer, threads, shared)
            blocks = each * Device().attributes["MultiProcessorCount"]
            self.resident[key] = blocks
        return blocks

    def images(
        self, wanted: list[tuple[str, tuple[str, ...]]], architecture: str, observer: Observer
    ) -> list[Image]:
        """Return kept or new images of some units."""
        where = cache_folder()
        files = [where / f"{digest(s, n, architecture, self.folder)}.image" for s, n in wanted]
        images = [recall(file) for file in files]
        missing = [i for i, image in enumerate(images) if image is None]
        if missing:
            from concurrent.futures import ThreadPoolExecutor

            observer(Event(kind="start", phase="compile"))
            # NVRTC may be called from several threads, and leaves Python's lock meanwhile.
            with ThreadPoolExecutor(min(len(missing), os.cpu_count() or 1)) as pool:
                made = pool.map(lambda i: build(*wanted[i], architecture, self.folder), missing)
                for i, image in zip(missing, made, strict=True):
                    images[i] = image
                    keep(files[i], image)
            observer(Event(kind="end", phase="compile"))
        return [image for image in images if image is not None]

    def load(self, device: int, source: str, image: Image) -> None:
        """Bring an image to the current device."""
        from cupy.cuda.function import Module

        module = Module()
        module.load(image.code)
        for expression, symbol in image.names.items():
            name = f"{source}.cu: {expression}"
            self.loaded[device, source, expression] = Kernel(name, module.get_function(symbol))


_others: ContextVar[Kernels | None] = ContextVar("kernels", default=None)


@contextmanager
def using(others: Kernels) -> Iterator[None]:
    """Let `others` serve every request for the engine's kernels, in this context alone.

    They must do what the engine's do; a profiler's also take notes.
    """
    token = _others.set(others)
    try:
        yield
    finally:
        _others.reset(token)


class EngineKernels(Kernels):
    """The engine's kernels, or those that stand in for them while `using` says so."""

    def get(self, source: str, kernel: str, types: str = "", observer: Observer = ignore) -> Kernel:
        """Return a kernel of the current device, compiling it if it must be."""
        others = _others.get()
        if others is not None:
            return others.get(source, kernel, types, observer)
        return super().get(source, kernel, types, observer)

    def prepare(self, units: Iterable[tuple[str, str]], observer: Observer = ignore) -> None:
        """Load all kernels of some (source, template arguments) on the current device."""
        others = _others.get()
        if others is not None:
            others.prepare(units, observer)
        else:
            super().prepare(units, observer)

    def resident_blocks(self, kernel: Kernel, threads: int, shared: int = 0) -> int:
        """Return how many blocks the current device holds at once: the largest grid."""
        others = _others.get()
        if others is not None:
            return others.resident_blocks(kernel, threads, shared)
        return super().resident_blocks(kernel, threads, shared)


kernels: Final = EngineKernels()
"""The engine's kernels; what is loaded stays loaded for the process."""
