"""Run a program that loads the library; its streams, exit code and signals pass through."""

from __future__ import annotations

import shutil
import signal
import struct
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Final

from louvain_um.core.atomic_files import temporary_folder
from louvain_um.errors import LouvainUmError, OptionError
from louvain_um.placement.memory.guard import WARNING
from louvain_um.placement.units import size
from louvain_um.profiling.attach.library import driver_release, environment
from louvain_um.profiling.attach.policy import Advice, served
from louvain_um.profiling.attach.records import Record, Records
from louvain_um.profiling.attach.to_session import session_of
from louvain_um.profiling.attach.tracing import Tracing
from louvain_um.profiling.facade import Session
from louvain_um.results.display import count

PASSED_ON: Final = ("SIGTERM", "SIGHUP")
"""Signals that the program gets from this one; a terminal sends Ctrl-C to both."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a program ended: its code, or minus its signal; its session, None without CUDA."""

    code: int
    session: Session | None
    refused: str = ""


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


def run(
    command: Sequence[str], advice: Advice | None = None, *, allow_driver_eviction: bool = False,
    trace: bool = False,
) -> Ended:  # fmt: skip
    """Run a command and return how it ended, with what was recorded."""
    path = find(command[0])
    with ExitStack() as stack:
        folder = stack.enter_context(temporary_folder("louvain-um-attach"))
        socket = folder / "answers"
        variables = environment(
            folder, socket, placed=advice is not None, guarded=not allow_driver_eviction,
            decides=advice is not None and advice.machine is not None, traced=trace,
        )  # fmt: skip
        tracing = Tracing(driver_release()) if trace else None
        stack.enter_context(served(advice, tracing, socket))
        begun = time.perf_counter()
        try:
            with passing_on() as children:
                child = subprocess.Popen(list(command), executable=path, env=variables)
                children.append(child)
                code = child.wait()
        except OSError as error:
            raise LouvainUmError(
                f"{command[0]}: cannot be run ({(error.strerror or str(error)).lower()}); check "
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
    notes = advice.notes if advice is not None else ()
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


@contextmanager
def passing_on() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Pass signals on to the children listed while the block runs."""
    children = list[subprocess.Popen[bytes]]()

    def to_children(number: int, _: FrameType | None) -> None:
        for child in children:
            child.send_signal(number)

    before = {}
    for name in (*PASSED_ON, "SIGINT"):
        number = getattr(signal, name)
        if signal.getsignal(number) is not signal.SIG_IGN:
            before[number] = signal.signal(
                number, to_children if name in PASSED_ON else lambda *_: None
            )
    try:
        yield children
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
