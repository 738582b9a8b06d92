"""Nsight Systems as a source: sessions from its exports, SQLite or a folder of Parquet files.

Tables and columns as in NVIDIA's "SQLite Export Schema Reference" (Nsight Systems 2021 to 2025);
a table that a recording did not need is not there. A Parquet file holds the table of its name.
"""

from __future__ import annotations

import contextlib
import re
import sqlite3
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from louvain_um.core.numbering import distinct
from louvain_um.errors import READ_AGAIN, LouvainUmError, reason_of
from louvain_um.formats.file_types import require
from louvain_um.profiling.session import Lifetime, PhaseSpan, SessionData
from louvain_um.profiling.session.data import with_phases
from louvain_um.profiling.session.events import (
    MOST_LEVELS,
    EventTable,
    Kind,
    Source,
    concatenate,
    device_numbers,
)
from louvain_um.profiling.session.storage import check

MAGIC = b"SQLite format 3\x00"
REPORT: Final = re.compile(r"(Start|Time|Total Time|Duration) \((ns|%)\),")
"""How tables of `nsys stats` begin."""

KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"
COPIES = "CUPTI_ACTIVITY_KIND_MEMCPY"
SETS = "CUPTI_ACTIVITY_KIND_MEMSET"
GPU_FAULTS = "CUDA_UM_GPU_PAGE_FAULT_EVENTS"
CPU_FAULTS = "CUDA_UM_CPU_PAGE_FAULT_EVENTS"
RANGES = "NVTX_EVENTS"
STRINGS = "StringIds"
NVPROF = "StringTable"
"""Nsight Systems has `StringIds` instead."""
TABLES = (KERNELS, COPIES, SETS, GPU_FAULTS, CPU_FAULTS)
ABOUT = ("TARGET_INFO_GPU", "TARGET_INFO_SESSION_START_TIME")

FIGURES_OF = {
    COPIES: ("bytes_to_device", "bytes_to_host", "bytes_evicted"),
    GPU_FAULTS: ("gpu_fault_groups", "gpu_faults"),
    CPU_FAULTS: ("cpu_faults",),
}
"""Table → the figures of a summary that it holds."""

BETWEEN_GPUS: Final = (8, 10, 13)
COPY_KINDS = {
    1: Kind.COPY_TO_DEVICE,
    2: Kind.COPY_TO_HOST,
    11: Kind.HTOD,
    12: Kind.DTOH,
    13: Kind.DTOD,
}
"""ENUM_CUDA_MEMCPY_OPER: 11 to 13 are unified memory's; all others are plain copies. Those between
GPUs may have a destination."""

PUSH_POP, START_END = 59, 60
"""Types of NVTX events that are ranges."""

USED: Final = (
    "start", "end", "shortName", "demangledName", "deviceId", "dstDeviceId", "bytes", "copyKind",
    "migrationCause", "virtualAddress", "address", "numberOfPageFaults", "eventType", "text",
    "textId", "id", "value", "cuDevice", "name", "utcTime",
)  # fmt: skip
"""Columns of these tables that are read."""

MOST_TEXT: Final = 1 << 24
"""Bytes of one value, and of a statement in the file's schema."""

LIMITS: Final = {
    sqlite3.SQLITE_LIMIT_LENGTH: MOST_TEXT,
    sqlite3.SQLITE_LIMIT_COLUMN: 1000,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 100,
    sqlite3.SQLITE_LIMIT_FUNCTION_ARG: 8,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
}

STEPS_AT_ONCE: Final = 100_000
STEPS: Final = 10_000_000
STEPS_PER_BYTE: Final = 100
"""Steps of SQLite's machine between two looks, for any file, and for each byte of it.

Reading a row of a table takes some 20 steps, and a row has more than one byte.
"""


def read_export(path: str | Path, *, arrays: Sequence[Lifetime] = ()) -> SessionData:
    """Read an export; `louvain_um.profiling.import_nsys` documents the arguments."""
    folder = Path(path).is_dir()
    try:
        if not folder:
            with Path(path).open("rb") as file:
                if file.read(len(MAGIC)) != MAGIC:
                    raise LouvainUmError(
                        f"{path}: not an SQLite file; run nsys export --type sqlite"
                    )
    except OSError as error:
        raise LouvainUmError(f"{path}: {reason_of(error)}{READ_AGAIN}") from None
    try:
        with contextlib.closing((_of_parquet if folder else _connect)(Path(path))) as base:
            session = _Import(base, str(path)).session(tuple(arrays))
        check(session)
        return session
    except sqlite3.Error as error:
        reason = " ".join(str(error).split())
        raise LouvainUmError(f"{path}: cannot be read ({reason}); export it again") from None
    except (ValueError, TypeError, OverflowError, AttributeError, KeyError, MemoryError):
        # SQLite lets a column hold anything, whatever its type is said to be.
        raise LouvainUmError(f"{path}: a damaged export; export it again") from None


def _connect(path: Path) -> sqlite3.Connection:
    """Open an untrusted file: read only, no code of its own, and a bound on what it may cost."""
    base = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
    for limit, most in LIMITS.items():
        base.setlimit(limit, most)
    for setting in ("trusted_schema = OFF", "query_only = ON", "cell_size_check = ON"):
        base.execute(f"PRAGMA {setting}")
    left = (STEPS + STEPS_PER_BYTE * path.stat().st_size) // STEPS_AT_ONCE

    def enough() -> bool:
        nonlocal left
        left -= 1
        return left < 0

    base.set_progress_handler(enough, STEPS_AT_ONCE)
    return base


def _of_parquet(folder: Path) -> sqlite3.Connection:
    """Return a database in memory with the tables of a folder of Parquet files."""
    pa, parquet = require("pyarrow", f"{folder}"), require("pyarrow.parquet", f"{folder}")
    from louvain_um.formats.arrow import check_unpacked

    base = sqlite3.connect(":memory:")
    for name in (*TABLES, RANGES, STRINGS, *ABOUT):
        if not (folder / f"{name}.parquet").is_file():
            continue
        try:
            part = folder / f"{name}.parquet"
            with part.open("rb") as stream, parquet.ParquetFile(stream) as file:
                check_unpacked(file.metadata, stream, part)
                names = [column for column in file.schema_arrow.names if column in USED]
                if not names:
                    continue
                columns = ", ".join(f'"{column}"' for column in names)
                base.execute(f"CREATE TABLE {name} ({columns})")
                marks = ", ".join("?" * len(names))
                for batch in file.iter_batches(columns=names):
                    rows = zip(*(column.to_pylist() for column in batch.columns), strict=True)
                    base.executemany(f"INSERT INTO {name} VALUES ({marks})", rows)
        except (pa.ArrowException, OSError) as error:
            reason = str(error).partition("\n")[0]
            raise LouvainUmError(
                f"{folder}: {name} cannot be read ({reason}){READ_AGAIN}"
            ) from None
    return base


class _Import:
    """One database."""

    def __init__(self, base: sqlite3.Connection, path: str) -> None:
        self.base = base
        self.path = path
        # Plain tables: views, virtual tables and generated columns run what the file says.
        tables = base.execute(
            "SELECT name FROM sqlite_master AS found WHERE type = 'table' AND rootpage > 0 "
            "AND NOT EXISTS (SELECT * FROM pragma_table_xinfo(found.name) WHERE hidden)"
        )
        self.tables = {name for (name,) in tables}
        if NVPROF in self.tables and STRINGS not in self.tables:
            raise LouvainUmError(
                f"{path}: is an export of nvprof, which is not read; record again with nsys "
                "profile, then run nsys export --type sqlite"
            )
        if not self.tables & {*TABLES, ABOUT[1]}:
            raise LouvainUmError(
                f"{path}: not an export of Nsight Systems; run nsys export --type sqlite"
            )
        self.notes: list[str] = []
        self.strings: dict[int, str] = {}
        if STRINGS in self.tables:
            self.strings = dict(base.execute(f"SELECT id, value FROM {STRINGS}"))

    def session(self, arrays: tuple[Lifetime, ...]) -> SessionData:
        """Return all that is in it."""
        table = concatenate([self.kernels(), self.copies(), self.sets(), self.faults()])
        phases = self.phases()
        if not len(table):
            raise LouvainUmError(
                f"{self.path}: has no CUDA events; record with nsys profile --trace cuda,nvtx "
                "--cuda-um-gpu-page-faults true --cuda-um-cpu-page-faults true"
            )
        for name, what in ((GPU_FAULTS, "gpu"), (CPU_FAULTS, "cpu")):
            if name not in self.tables:
                self.notes.append(
                    f"Nsight Systems recorded no {what.upper()} page faults; it does with "
                    f"--cuda-um-{what}-page-faults true"
                )
        if COPIES not in self.tables:
            self.notes.append(
                "Nsight Systems recorded no copies: whether pages migrated is unknown; it does "
                "with --trace cuda"
            )
        missing = [name for table, names in FIGURES_OF.items() if table not in self.tables
                   for name in names]  # fmt: skip
        began, ended = int(table["time"][0]), int((table["time"] + table["duration"]).max())
        metadata = {
            **self.about(),
            "seconds": (ended - began) / 1e9,
            "complete": True,
            "sources": {"nsys": "measured"},
            "not_recorded": [*missing, "thrashing", "throttling", "remote_maps"],
        }
        return SessionData(
            metadata=metadata,
            lifetimes=arrays,
            phases=phases,
            events=with_phases(table, phases),
            notes=tuple(self.notes),
        )

    def columns(self, table: str, *wanted: str, missing: int = 0) -> list[NDArray[np.int64]]:
        """Return columns of a table as integers; those that a version lacks are filled."""
        if table not in self.tables:
            return [np.empty(0, np.int64) for _ in wanted]
        there = {row[1] for row in self.base.execute(f"PRAGMA table_info({table})")}
        chosen = [
            f'ifnull("{name}", {missing})' if name in there else str(missing) for name in wanted
        ]
        rows = self.base.execute(f"SELECT {', '.join(chosen)} FROM {table}").fetchall()
        columns = np.array(rows, np.int64).reshape(-1, len(wanted)).T
        return [*columns]

    def kernels(self) -> EventTable:
        """Return kernels, by the shorter of their names."""
        start, end, short, long, device = self.columns(
            KERNELS, "start", "end", "shortName", "demangledName", "deviceId"
        )
        numbers, kernel = np.unique(np.where(short != 0, short, long), return_inverse=True)
        return _events(
            Kind.KERNEL,
            tuple(self.strings.get(int(number), "kernel") for number in numbers),
            time=start,
            duration=end - start,
            kernel=kernel,
            device=device_numbers(device),
        )

    def copies(self) -> EventTable:
        """Return migrations, which Nsight lists among the copies, and copies."""
        start, end, size, kind, cause, address, device = self.columns(
            COPIES, "start", "end", "bytes", "copyKind", "migrationCause", "virtualAddress",
            "deviceId",
        )  # fmt: skip
        # Without a destination, the GPU of a copy between GPUs is taken as the receiver.
        (receiver,) = self.columns(COPIES, "dstDeviceId", missing=-1)
        device = np.where(np.isin(kind, BETWEEN_GPUS) & (receiver >= 0), receiver, device)
        meaning = np.full(len(kind), Kind.COPY, np.int64)
        for number, what in COPY_KINDS.items():
            meaning[kind == number] = what
        managed = meaning <= Kind.DTOD
        return _events(
            meaning,
            time=start,
            duration=end - start,
            bytes=size,
            cause=np.where(managed, cause, 0),
            address=np.where(managed, address, 0),
            device=device_numbers(device),
        )

    def sets(self) -> EventTable:
        """Return `cudaMemset` as copies."""
        start, end, size = self.columns(SETS, "start", "end", "bytes")
        gpu = self.first_gpu()
        return _events(Kind.COPY, time=start, duration=end - start, bytes=size, device=gpu)

    def faults(self) -> EventTable:
        """Return faults of the GPU, in groups, and of the CPU."""
        start, end, address, faults, device = self.columns(
            GPU_FAULTS, "start", "end", "address", "numberOfPageFaults", "deviceId"
        )
        at, where = self.columns(CPU_FAULTS, "start", "address")
        groups = _events(
            Kind.GPU_FAULT_GROUP,
            time=start,
            duration=end - start,
            address=address,
            count=np.maximum(faults, 1),
            device=device_numbers(device),
        )
        single = _events(Kind.CPU_FAULT, time=at, address=where, device=self.first_gpu())
        return concatenate([groups, single])

    def phases(self) -> tuple[PhaseSpan, ...]:
        """Return NVTX ranges; `move` and `move 3` are phase and level as the engines name them."""
        if RANGES not in self.tables:
            return ()
        rows = self.base.execute(
            f'SELECT start, "end", text, textId FROM {RANGES} '
            f'WHERE eventType IN ({PUSH_POP}, {START_END}) AND "end" IS NOT NULL ORDER BY start'
        )
        return tuple(self._span(*row) for row in rows)

    def _span(self, start: int, end: int, text: str | None, number: int | None) -> PhaseSpan:
        name = text or self.strings.get(number or 0, "range")
        head, _, tail = name.rpartition(" ")
        phase, level = (head, int(tail)) if head and tail.isdecimal() else (name, -1)
        level = level if level < MOST_LEVELS else -1
        return PhaseSpan(phase=phase, level=level, iteration=-1, start_ns=start, end_ns=end)

    def about(self) -> dict[str, Any]:
        """Return the names of the GPUs in use and when the recording began."""
        found: dict[str, Any] = {"device": "", "policy": None, "file": Path(self.path).name}
        with contextlib.suppress(sqlite3.OperationalError):  # no such table or column
            found["device"] = self.devices()
        with contextlib.suppress(sqlite3.OperationalError):
            row = self.base.execute("SELECT utcTime FROM TARGET_INFO_SESSION_START_TIME").fetchone()
            found |= {"created": str(row[0])} if row else {}
        return found

    def used_gpus(self) -> set[int]:
        """Return the numbers of the GPUs on which kernels ran or to which bytes were copied."""
        found = [self.columns(table, "deviceId", missing=-1)[0] for table in (KERNELS, COPIES)]
        return set(distinct(np.concatenate(found)).tolist())

    def first_gpu(self) -> int:
        """Return the GPU to which events are assigned that name none."""
        return min(max(min(self.used_gpus(), default=0), 0), 255)

    def devices(self) -> str:
        """Return the names of the GPUs on which kernels ran or to which bytes were copied."""
        there = {row[1] for row in self.base.execute("PRAGMA table_info(TARGET_INFO_GPU)")}
        number = next((name for name in ("cuDevice", "id") if name in there), "NULL")
        gpus = self.base.execute(f"SELECT {number}, name FROM TARGET_INFO_GPU").fetchall()
        used = self.used_gpus()
        names = Counter(str(name) for device, name in gpus if device in used)
        names = names or Counter(str(name) for _, name in gpus[:1])
        return ", ".join(f"{many} × {name}" if many > 1 else name for name, many in names.items())


def _events(kind: Any, names: tuple[str, ...] = (), **columns: Any) -> EventTable:
    """Return events of a kind, or of a kind each."""
    return EventTable({**columns, "kind": kind, "source": Source.NSYS}, names)


def is_export(path: str | Path) -> bool:
    """Return whether a file is an SQLite database, or a folder holds Nsight's tables as Parquet."""
    if Path(path).is_dir():
        return any(Path(path, f"{name}.parquet").is_file() for name in (*TABLES, STRINGS))
    if not Path(path).is_file():  # a pipe would be waited for
        return False
    try:
        with open(path, "rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def is_report(path: str | Path) -> bool:
    """Return whether a file is a table of `nsys stats`, in CSV."""
    if Path(path).suffix != ".csv" or not Path(path).is_file():
        return False
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return bool(REPORT.match(file.readline(1 << 12)))
    except OSError:
        return False
