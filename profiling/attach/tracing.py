"""Instrumented modules for a program that loads its own, and what they counted of its arrays."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sysconfig
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from louvain_um.core.atomic_files import temporary_folder
from louvain_um.errors import LouvainUmError
from louvain_um.profiling.attach.records import Record, Records
from louvain_um.profiling.attach.sites import Sites, array_name
from louvain_um.profiling.session import PageMap
from louvain_um.profiling.session.events import EventTable
from louvain_um.profiling.sources.cupti_records import demangle, short_name
from louvain_um.profiling.sources.tracer.counter_rows import Maps
from louvain_um.profiling.sources.tracer.kernels import for_driver
from louvain_um.profiling.sources.tracer.rewrite import rewritten
from louvain_um.profiling.sources.tracer.snippet import COPIES, USES
from louvain_um.profiling.sources.tracer.tokenizer import PtxError
from louvain_um.profiling.sources.tracer.tracer import AccessCounts, Row, table

FAT: Final = b"\x50\xed\x55\xba"
"""What a binary with code for several devices begins with."""

TARGET: Final = re.compile(r"^\s*\.target\s+sm_(\d+)([af]?)", re.MULTILINE)
ENTRY: Final = re.compile(r"\.entry\b[^{;]*")
BOUNDS: Final = (".maxntid", ".reqntid")
MAP_BYTES: Final = 256 << 20
MOST_IMAGE: Final = 256 << 20
"""Bytes of a module that the library sends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """A module that a program loaded: instrumented, or why not."""

    functions: tuple[str, ...] = ()
    left: Mapping[str, str] = field(default_factory=dict)
    sites: int = 0
    reason: str = ""


@dataclass(slots=True)
class Tracing:
    """Answers what the library asks about modules, and remembers what it answered."""

    cuda: tuple[int, int]
    modules: list[Module] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, image: bytes | bytearray, capability: int) -> tuple[int, bytes]:
        """Return a module's number, and its PTX, instrumented; nothing if that cannot be."""
        text, module = b"", Module()
        try:
            done = rewritten(_ptx(image, capability))
            module = Module(
                functions=done.functions, left=done.left, sites=sum(done.sites.values())
            )
            if module.sites:
                text = for_driver(bounded(done.text), self.cuda).encode()
        except (PtxError, LouvainUmError) as error:
            module = Module(reason=str(error).splitlines()[0])
        with self._lock:
            self.modules.append(module)
            return len(self.modules) - 1, text


def bounded(ptx: str) -> str:
    """Return PTX whose kernels can run in the largest blocks, however many registers they want."""

    def with_bound(match: re.Match[str]) -> str:
        header = match[0]
        if any(bound in header for bound in BOUNDS):
            return header
        return f"{header.rstrip()}\n.maxntid 1024, 1, 1\n"

    return ENTRY.sub(with_bound, ptx)


def _ptx(image: bytes | bytearray, capability: int) -> str:
    """Return the PTX of an image: as it is, or for the newest device up to one."""
    if image[:4] != FAT:
        return image.decode("latin-1")
    found = dict[int, list[str]]()
    for text in _texts(image):
        target = TARGET.search(text)
        number = int(target[1]) if target else 0
        if target and number <= capability and (not target[2] or number == capability):
            found.setdefault(number, []).append(text)
    if not found:
        raise LouvainUmError("it carries no PTX")
    texts = found[max(found)]
    if len(texts) > 1:
        raise LouvainUmError(f"it is linked from {len(texts)} parts")
    return texts[0]


def _texts(image: bytes | bytearray) -> Iterator[str]:
    """Yield the PTX in a binary with code for several devices."""
    tool = _cuobjdump()
    if tool is None:
        raise LouvainUmError(
            "its PTX is packed, and the toolkit's cuobjdump, which unpacks it, is not in PATH"
        )
    with temporary_folder("louvain-um-attach-ptx") as folder:
        Path(folder, "image.fatbin").write_bytes(image)
        command = [tool, "-xptx", "all", "image.fatbin"]
        try:
            subprocess.run(command, cwd=folder, capture_output=True, timeout=300, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise LouvainUmError(f"{tool} could not unpack it ({error})") from None
        for file in sorted(Path(folder).glob("*.ptx")):
            yield file.read_text("latin-1")


def _cuobjdump() -> str | None:
    """Return the toolkit's program that unpacks PTX."""
    homes = [os.environ[name] for name in ("CUDA_HOME", "CUDA_PATH") if name in os.environ]
    site = Path(sysconfig.get_paths()["purelib"], "nvidia", "cu13")
    folders = [f"{home}/bin" for home in (*homes, site, "/usr/local/cuda")]
    return shutil.which("cuobjdump", path=os.pathsep.join([os.environ.get("PATH", ""), *folders]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Traced:
    """What instrumented modules of a process counted, by array; of which kernels they are."""

    maps: Mapping[str, PageMap] = field(default_factory=dict)
    counts: Mapping[str, AccessCounts] = field(default_factory=dict)
    elsewhere: AccessCounts = field(default_factory=AccessCounts)
    events: EventTable = field(default_factory=lambda: table(()))
    kernels: frozenset[str] = frozenset()
    places: int = 0
    notes: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()


def traced(records: Records, modules: Sequence[Module], sites: Sites, origin: int) -> Traced:
    """Return what a process's instrumented modules counted."""
    loads = [(modules[int(row["d"])], int(row["e"])) for row in records[Record.TRACED]]
    known = [module for module, status in loads if not status]
    reasons = [module.reason for module in modules if module.reason]
    reasons += ["the driver refused the instrumented code"] * any(status for _, status in loads)
    found = Traced(reasons=tuple(dict.fromkeys(reasons)))
    if not known:
        return found
    ends = records[Record.COUNTS]
    if not len(ends) or ends["f"][0]:
        return replace(found, reasons=(*found.reasons, "the program ended before counts were read"))
    end = ends[0]
    cells = np.fromfile(records.path.with_suffix(".counts"), np.uint32).reshape(
        len(USES), int(end["b"]), int(end["e"])
    )
    begin = int(end["a"]) - origin
    edges = begin + (np.arange(int(end["e"]) + 1, dtype=np.int64) << int(end["d"]))
    maps, sums, rows = Maps(MAP_BYTES), dict[str, NDArray[np.uint64]](), list[Row]()
    for row in records[Record.COUNTED]:
        name = array_name(sites.names.get(int(row["d"]), "unknown"), int(row["e"]))
        first, many, copies = int(row["f"]), int(row["g"]), int(row["c"])
        mine = cells[:, first : first + many * copies].reshape(len(USES), copies, many, -1)
        pages = mine.sum(axis=(0, 1), dtype=np.uint64)
        if not pages.any():
            continue
        maps.add(name, int(row["h"]), pages)
        uses = mine.sum(axis=(1, 2, 3), dtype=np.uint64)
        sums[name] = sums.get(name, np.zeros(len(USES), np.uint64)) + uses
        last = int(edges[np.flatnonzero(pages.any(axis=0))[-1]])
        rows.append(Row(max(0, last), int(row["a"]), int(uses.sum()), -1, -1))
    outside = cells[:, :COPIES].sum(axis=(1, 2), dtype=np.uint64)
    left = {name: why for module in known for name, why in module.left.items()}
    notes = [f"{short_name(demangle(name.encode()))} was not instrumented: {why}"
             for name, why in sorted(left.items())]  # fmt: skip
    if end["g"]:
        notes.append("no counters were left for some arrays: their accesses count as in no array")
    if outside.any():
        notes.append(f"{int(outside.sum()):,} traced accesses lie in no array of 64 KiB or more")
    return replace(
        found,
        maps={page.array: page for page in maps.page_maps(edges)},
        counts={name: AccessCounts(*map(int, uses)) for name, uses in sums.items()},
        elsewhere=AccessCounts(*map(int, outside)),
        events=table(rows),
        kernels=frozenset(
            name for module in known for name in module.functions if name not in module.left
        ),
        places=sum(module.sites for module in known),
        notes=tuple(notes),
    )
