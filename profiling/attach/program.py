"""Run a program into which the driver loads our library: a wheel's, or compiled on this machine.

Its streams, exit code and signals pass through.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import shutil
import signal
import struct
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Final

from louvain_um.core import private_files
from louvain_um.core.atomic_files import temporary_folder
from louvain_um.errors import DeviceUnavailableError, LouvainUmError, OptionError, reason_of
from louvain_um.gpu.runtime.compile_cache import cache_folder
from louvain_um.placement.hardware import size
from louvain_um.placement.memory.guard import WARNING
from louvain_um.profiling.attach.policy import Advice, served
from louvain_um.profiling.attach.records import Record, Records
from louvain_um.profiling.attach.to_session import session_of
from louvain_um.profiling.attach.tracing import Tracing
from louvain_um.profiling.facade import Session
from louvain_um.profiling.sources.cupti import Library
from louvain_um.results.display import count

ADDRESS_BYTES: Final = 108
"""Bytes of a local socket's path, with the 0 that ends it."""

PASSED_ON: Final = ("SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGINT", "SIGQUIT")
"""Signals that the program gets from this one, unless all processes of the group got them."""

LATER: Final = 0.2
"""Seconds in which a signal reaches all processes of a group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a program ended: its code, or minus its signal; its session, or why there is none."""

    code: int
    session: Session | None
    refused: str = ""
    missing: str = "it used no CUDA"


def find(program: str) -> str:
    """Return the path of a program."""
    path = shutil.which(program)
    if path is not None:
        return path
    if Path(program).is_file():
        raise OptionError("program", program, "make it executable: chmod +x",
                          problem=f"{program} is not executable")  # fmt: skip
    raise OptionError("program", program, "name an executable file, or a command in PATH",
                      problem=f"there is no program {program!r}")  # fmt: skip


def _address(folder: Path, stack: ExitStack) -> Path:
    """Return a path of a socket in a folder that a socket's address has room for."""
    path = folder / "answers"
    if len(os.fsencode(path)) < ADDRESS_BYTES:
        return path
    number = os.open(folder, os.O_RDONLY)
    stack.callback(os.close, number)
    return Path(f"/proc/{os.getpid()}/fd/{number}/answers")


def run(
    command: Sequence[str], advice: Advice | None = None, *, allow_driver_eviction: bool = False,
    trace: bool = False,
) -> Ended:  # fmt: skip
    """Run a command and return how it ended, with what was recorded."""
    path = find(command[0])
    with ExitStack() as stack:
        folder = stack.enter_context(temporary_folder("louvain-um-attach"))
        socket = _address(folder, stack)
        variables = environment(
            folder, socket, placed=advice is not None, guarded=not allow_driver_eviction,
            decides=advice is not None and advice.machine is not None, traced=trace,
        )  # fmt: skip
        tracing = Tracing(driver_release()) if trace else None
        stack.enter_context(served(advice, tracing, socket))
        begun = time.perf_counter()
        try:
            with passing_on() as to:
                child = subprocess.Popen(list(command), executable=path, env=variables)
                to(child)
                code = child.wait()
                if advice is not None:
                    advice.end()
        except OSError as error:
            raise LouvainUmError(
                f"{command[0]}: cannot be run ({reason_of(error)}); check "
                "that it is a program for this machine"
            ) from None
        seconds = time.perf_counter() - begun
        return _ended(folder, code, child.pid, command, advice, tracing, seconds)


def _ended(
    folder: Path, code: int, process: int, command: Sequence[str], advice: Advice | None,
    tracing: Tracing | None, seconds: float,
) -> Ended:  # fmt: skip
    found = []
    for file in sorted(folder.glob("*.record")):
        with suppress(LouvainUmError):
            found.append(Records(file))
    if not found and any(folder.glob("*.record")):
        lost = (
            f"its records cannot be read; if {folder.parent} is full, name another folder in TMPDIR"
        )
        return Ended(code=code, session=None, missing=lost)
    if not found:
        return Ended(code=code, session=None)
    # A launcher starts the program that uses CUDA: of several, what allocates most counts.
    chosen = max(found, key=lambda one: (one.process == process, int(one[Record.ALLOC]["b"].sum())))
    try:
        session = session_of(
            chosen,
            tracing.modules if tracing is not None else None,
            program=Path(command[0]).name,
            policy=advice.policy.name if advice is not None else None,
            exit_code=code,
            process_seconds=seconds,
            graph={"name": Path(command[0]).name},
        )
    except (ArithmeticError, LookupError, ValueError, struct.error) as error:
        raise LouvainUmError(
            f"{command[0]}: ended with {code}, and what was recorded is damaged, as by a program "
            "that writes beyond its arrays; check it with compute-sanitizer"
        ) from error
    taken = len(chosen[Record.TAKEN])
    notes = advice.notes(chosen.path, taken) if advice is not None else ()
    if len(found) > 1:
        many = count(len(found) - 1, "other process", "other processes")
        notes = (*notes, f"{many} used CUDA; the session is that of one process")
    session = replace(session, notes=(*session.notes, *notes))
    refused = [row for one in found for row in one[Record.REFUSED]]
    return Ended(code=code, session=session, refused=_refusal(refused[0]) if refused else "")


def _refusal(row: object) -> str:
    nbytes, free, need = (int(row[name]) for name in ("a", "b", "c"))  # type: ignore[index]
    return (
        f"the program was ended before an allocation of {size(nbytes)}: with it, managed and "
        f"device memory would need {size(need)} of the {size(free)} that the device has free, and "
        f"the driver would evict; make the program's input smaller, or pass "
        f"--allow-driver-eviction if you must: {WARNING}"
    )


class Witness:
    """A process of the same group, ended by the signals that all of the group get."""

    def __init__(self) -> None:
        self.process = self._begun()

    def _begun(self) -> subprocess.Popen[bytes] | None:
        """Start a process that ends with this one at the latest."""
        with suppress(OSError):
            waiting = ["sh", "-c", "ulimit -c 0; exec cat"]
            return subprocess.Popen(waiting, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        return None

    def got(self, number: int) -> bool:
        """Return whether the group got a signal that has come."""
        if self.process is None:
            return False
        try:
            ended = self.process.wait(LATER)
        except subprocess.TimeoutExpired:
            return False
        self.restart()
        return ended == -number

    def restart(self) -> None:
        """Begin another process in place of one that may have ended."""
        self.close()
        self.process = self._begun()

    def close(self) -> None:
        """End the process."""
        if self.process is not None and self.process.stdin is not None:
            self.process.stdin.close()
            self.process.wait()


@contextmanager
def passing_on() -> Iterator[Callable[[subprocess.Popen[bytes]], None]]:
    """Yield what takes a child; pass on to it the signals that come while the block runs."""
    children, early, witness = list[subprocess.Popen[bytes]](), list[int](), Witness()

    def add(child: subprocess.Popen[bytes]) -> None:
        children.append(child)
        if early:  # they may have ended it
            witness.restart()
        for number in early:
            child.send_signal(number)

    def to_children(number: int, _: FrameType | None) -> None:
        if not children:  # it may run already
            early.append(number)
        elif not witness.got(number):
            children[0].send_signal(number)

    before = {}
    for name in PASSED_ON:
        number = getattr(signal, name)
        if signal.getsignal(number) is not signal.SIG_IGN:
            before[number] = signal.signal(number, to_children)
    try:
        yield add
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        witness.close()


SOURCE: Final = Path(__file__).with_name("inject.c")
PARTS: Final = (SOURCE, SOURCE.with_name("trace.c"))
PREBUILT: Final = SOURCE.with_suffix(".so")
"""Made with a wheel, by `setup.py`."""

OPTIONS: Final = ("-O2", "-shared", "-fPIC", "-pthread")


def compiled() -> Path:
    """Return the library's file, compiled if neither the package nor this user's cache has it."""
    with suppress(OSError):  # made for another system
        return Path(ctypes.CDLL(str(PREBUILT))._name)
    compiler = _compiler()
    parts = (
        *(part.read_bytes() for part in PARTS),
        *map(str.encode, (*OPTIONS, platform.machine(), compiler)),
    )
    name = hashlib.sha256(b"\0".join(parts)).hexdigest()[:40]
    file = cache_folder() / f"{name}.so"
    if private_files.read(file) is None:
        with private_files.made_once(file):
            if private_files.read(file) is None:
                private_files.write(file, _compile(compiler))
    if private_files.read(file) is None:
        raise LouvainUmError(
            f"{file.parent}: others can write there; set LOUVAIN_UM_CACHE to a folder of your own"
        )
    return file


def _compiler() -> str:
    for name in (os.environ.get("CC"), "cc", "gcc", "clang"):
        path = shutil.which(name) if name else None
        if path:
            return path
    raise LouvainUmError("attach needs a C compiler and found none; install gcc, or name one in CC")


def _compile(compiler: str) -> bytes:
    with temporary_folder("louvain-um-attach-compiled") as folder:
        made = Path(folder, "inject.so")
        command = [compiler, *OPTIONS, str(SOURCE), "-o", str(made), "-ldl"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode or not made.is_file():
            reason = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise LouvainUmError(
                f"{compiler} could not compile the library of attach: {reason}; name another "
                "compiler in CC"
            )
        return made.read_bytes()


def environment(
    folder: Path, socket: Path, *, placed: bool, decides: bool, guarded: bool, traced: bool
) -> dict[str, str]:
    """Return the variables with which a program loads the library and records into a folder."""
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        raise DeviceUnavailableError(
            "no NVIDIA driver was found (libcuda.so.1); attach where nvidia-smi works"
        ) from None
    found = {
        "CUDA_INJECTION64_PATH": str(compiled()),
        "LOUVAIN_UM_ATTACH": str(folder),
        "LOUVAIN_UM_ATTACH_CUPTI": Library().path,
    }
    if placed:
        found["LOUVAIN_UM_ATTACH_POLICY"] = str(socket)
    if decides:
        found["LOUVAIN_UM_ATTACH_DECIDES"] = "1"
    if not guarded:
        found["LOUVAIN_UM_ATTACH_UNGUARDED"] = "1"
    if traced:
        preloaded = found["CUDA_INJECTION64_PATH"]
        if {" ", ":"} & set(preloaded):
            raise LouvainUmError(
                f"{preloaded}: has a space or colon, and cannot be preloaded; set LOUVAIN_UM_CACHE"
            )
        found["LOUVAIN_UM_ATTACH_TRACE"] = str(socket)
        found["LD_PRELOAD"] = ":".join(filter(None, (preloaded, os.environ.get("LD_PRELOAD"))))
        found["CUPY_COMPILE_WITH_PTX"] = "1"  # not to machine code
    return os.environ | found


def driver_release() -> tuple[int, int]:
    """Return the CUDA release of the driver."""
    number = ctypes.c_int()
    ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(ctypes.byref(number))
    return number.value // 1000, number.value % 1000 // 10
