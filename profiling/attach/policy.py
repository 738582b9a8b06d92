"""Policies for any program: served to the library by call site, decided from a recorded run."""

from __future__ import annotations

import json
import re
import socket
import struct
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import product
from math import inf
from pathlib import Path
from typing import Final

import numpy as np

from louvain_um.core.atomic_files import write_text
from louvain_um.errors import LouvainUmError, OptionError
from louvain_um.options import Budget
from louvain_um.placement.hardware import BLOCK
from louvain_um.placement.layout import share_of
from louvain_um.placement.machine.machine import Machine
from louvain_um.placement.policy.policy import Kind, Placement, Policy
from louvain_um.placement.program.cost import ProgramCost
from louvain_um.placement.program.program import Program, ProgramArray
from louvain_um.placement.program.solver import fits, held_by_phase, solve
from louvain_um.profiling.access.recorded_plans import program_of
from louvain_um.profiling.access.recordings import of_session
from louvain_um.profiling.attach.records import Records
from louvain_um.profiling.attach.sites import Sites
from louvain_um.profiling.attach.to_session import session_of
from louvain_um.profiling.attach.tracing import MOST_IMAGE, Tracing
from louvain_um.profiling.session import SessionData
from louvain_um.profiling.session.events import Kind as EventKind
from louvain_um.profiling.simulator import HostTouches, Launch, Trace
from louvain_um.profiling.simulator.simulate import SAMPLE, seconds_within
from louvain_um.profiling.simulator.trace import Step
from louvain_um.profiling.views.session.analysis import SessionAnalysis

CODES: Final[Mapping[Kind, int]] = {
    "managed": 0, "prefetched": 1, "device": 1, "host_mapped": 2, "read_mostly": 3, "split": 4,
}  # fmt: skip
"""Placements of managed memory, as `inject.c` numbers them."""

MOST_TEXT: Final = 1 << 16
"""Bytes of a call stack that the library may send."""

TRACE: Final = 0xFFFFFFFE
"""Number of the library's question for a module's instrumented code."""

DECIDE: Final = 0xFFFFFFFF
"""Number of the library's question that asks for a decision, instead of a call stack's."""

LEAST_GAIN: Final = 1.25
"""How many times faster the host's side has to be where everything fits the device: accesses are
declared, once for each launch, and may be more, or at random, which costs most over the bus."""

TIE: Final = 1.05
"""How much slower the device may be where there is room: kernels that read one array over the bus
and write another do not keep both ways busy, as the model has it (`attach_h200.json`, stencil)."""


def check(policy: Policy) -> None:
    """Raise OptionError for a policy that names what managed memory cannot be."""
    placed = [policy.others, *policy.groups.values(), *policy.arrays.values()]
    wrong = next((where for where in placed if where.kind not in CODES), None)
    if wrong is not None:
        raise OptionError(
            "policy", str(wrong), f"can place memory of other programs as {', '.join(CODES)}"
        )


def answer(policy: Policy, site: str) -> str:
    """Return where arrays of a call site go: by number, and −1 for all others."""
    numbered = re.compile(re.escape(site) + r" \((\d+)\)")
    found = [(-1, policy.placement_in("", site))]
    for name, where in policy.arrays.items():
        match = numbered.fullmatch(name)
        if name == site or match:
            found.append((int(match[1]) - 1 if match else 0, where))
    return "".join(f"{slot} {CODES[to.kind]} {to.fraction:.6f}\n" for slot, to in found)


@dataclass(slots=True)
class Advice:
    """The policy that a program follows; with a machine, decided from its first launches."""

    policy: Policy
    machine: Machine | None = None
    budget: str | None = None
    launches: list[int] = field(default_factory=list)
    """How many launches each decision was made from."""

    answered: dict[str, list[bool]] = field(default_factory=dict)
    """Whether the answers to each process had a decision, by the name of its records."""

    reason: str = "it ended before a policy was decided; give its session to the next run as --from"
    """Why nothing was decided."""

    ended: bool = False
    """Whether the program has ended, so that no decision is to come."""

    lock: threading.Lock = field(default_factory=threading.Lock)

    def decide(self, recorded: Path) -> None:
        """Decide from what a program that runs has recorded, if that suffices."""
        with self.lock:
            if not self.ended:
                before = len(self.launches)
                self._decide(recorded)
                made = len(self.launches) > before
                self.answered.setdefault(recorded.name, []).append(made)

    def end(self) -> None:
        """Wait for a decision that is being made; make no other."""
        with self.lock:
            self.ended = True

    def _decide(self, recorded: Path) -> None:
        if self.machine is None:
            return
        try:
            session = session_of(Records(recorded))
            self.policy = decide(
                session, self.machine, self.budget, self.policy.name, replays=False
            )
        except LouvainUmError as error:
            self.reason = str(error)
            return
        count = session.metadata["about_sources"]["launches"]["launches"]
        self.policy = replace(
            self.policy, about=f"decided for {self.machine.name} from {count} launches of a run"
        )
        self.launches.append(count)

    def notes(self, recorded: Path, taken: int) -> tuple[str, ...]:
        """Return what the session says of decisions in the run; its process took some answers."""
        if self.machine is None:
            return ()
        if not self.launches:
            return (f"nothing was placed in this run: {self.reason}",)
        missed = any(self.answered.get(recorded.name, ())[taken:])
        late = "; the program ended before the last could be followed" if missed else ""
        times = ", ".join(map(str, self.launches))
        return (f"the policy was decided after {times} launches{late}",)


@contextmanager
def served(advice: Advice | None, tracing: Tracing | None, path: Path) -> Iterator[None]:
    """Answer the library's questions on a socket while the block runs."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()

        def accept() -> None:
            with suppress(OSError):  # the listener was closed
                while True:
                    connection, _ = listener.accept()
                    threading.Thread(
                        target=_serve, args=(connection, advice, tracing), daemon=True
                    ).start()

        threading.Thread(target=accept, daemon=True).start()
        try:
            yield
        finally:
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)


def _serve(connection: socket.socket, advice: Advice | None, tracing: Tracing | None) -> None:
    with closing(Sites()) as sites, connection, suppress(OSError, EOFError):
        peer = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        folder = Path(connection.getsockname()).parent
        process = struct.unpack("3i", peer)[0]
        while True:
            number, size = struct.unpack("<II", _read(connection, 8))
            if number == TRACE and tracing is not None and size <= MOST_IMAGE:
                (capability,) = struct.unpack("<I", _read(connection, 4))
                module, ptx = tracing.answer(_read(connection, size), capability)
                connection.sendall(struct.pack("<II", module, len(ptx)) + ptx)
                continue
            if size > MOST_TEXT or advice is None:
                return
            text = _read(connection, size).decode(errors="replace")
            reply = b""
            if number == DECIDE:
                advice.decide(max(folder.glob(f"{process}-*.record"), default=folder))
            else:
                site = sites.names.get(number) or sites.name(number, text)
                reply = answer(advice.policy, site).encode()
            connection.sendall(struct.pack("<I", len(reply)) + reply)


def _read(connection: socket.socket, size: int) -> bytearray:
    found = bytearray()
    while len(found) < size:
        part = connection.recv(size - len(found))
        if not part:
            raise EOFError
        found += part
    return found


MOST_TOUCHES: Final = 1 << 30
"""Touches of pages that replays of candidates simulate together: some ten seconds."""

EVICTION: Final = 256
"""Touches that take as long to simulate as an eviction."""

BY_HAND: Final[tuple[Kind, ...]] = ("managed", "prefetched", "host_mapped")
"""Placements that one writes by hand, one for the largest call site and one for all others."""


def decide(
    session: SessionData,
    machine: Machine,
    budget: str | None,
    name: str,
    *,
    evicts: bool = False,
    replays: bool = True,
) -> Policy:
    """Return the policy that the cost model decides for the managed arrays of a recorded run.

    With little memory, `replays` of what one would write by hand may find a faster one for a run
    on one GPU; `evicts` says that the driver may then evict.
    """
    kinds: Mapping[str, str] = session.metadata.get("memory_kinds", {})
    if "managed" not in kinds.values():
        raise LouvainUmError(
            "the recorded run has no managed memory to place; allocate with cudaMallocManaged"
        )
    trace, back = of_session(session), _bytes_to_host(session)
    program = program_of(trace)
    # The host writes managed memory in place, before the first kernel.
    arrays = [
        replace(array, given=False, to_host=min(1.0, back.get(array.name, 0) / array.nbytes))
        if kinds.get(array.name) == "managed" else replace(array, on_device=True)
        for array in program.arrays
    ]  # fmt: skip
    program = replace(program, arrays=arrays)
    free = session.metadata.get("free_bytes") or machine.bytes_for_runs
    allowed = Budget.parse(budget).resolve(program.peak_bytes)
    limit = min(free, machine.bytes_for_runs, *(() if allowed is None else (allowed,)))
    cost = ProgramCost(program=program, machine=machine)
    whole = {a.name: Placement("device" if a.on_device else "prefetched") for a in arrays}
    # The driver gives each array whole blocks.
    room = max(0, limit - sum(-array.nbytes % BLOCK for array in arrays if not array.on_device))
    enough = fits(program, whole, limit)
    if enough:
        found = solve(cost, limit)
        if cost.seconds(found) > cost.seconds(whole) / LEAST_GAIN:
            found = whole
    else:
        found = filled(cost, room)
    # Managed memory stays managed: its advice brings it to the same side.
    managed: Mapping[str, Kind] = {"device": "prefetched", "pinned": "host_mapped"}
    found = {
        array: Placement(managed[where.kind])
        if where.kind in managed and kinds.get(array) == "managed"
        else where
        for array, where in found.items()
    }
    if replays and not enough and trace.devices == 1:
        found = Candidates(
            trace=trace, program=program, machine=machine, capacity=limit, room=room,
            evicts=evicts, best=found,
        ).fastest(array for array in arrays if kinds.get(array.name) == "managed")  # fmt: skip
    placements = {array: where for array, where in found.items() if kinds.get(array) == "managed"}
    by_site: dict[str, dict[str, Placement]] = {}
    for life in session.lifetimes:
        if life.name in placements:
            by_site.setdefault(life.group, {})[life.name] = placements[life.name]
    alike = {site: set(where.values()) for site, where in by_site.items()}
    return Policy(
        name=name,
        about=f"decided for {machine.name} from a recorded run",
        others="managed",  # type: ignore[arg-type]  # parsed there
        groups={site: where.pop() for site, where in alike.items() if len(where) == 1},
        arrays={
            array: where
            for site in by_site
            if len(set(by_site[site].values())) > 1
            for array, where in by_site[site].items()
        },
    )


def filled(cost: ProgramCost, limit: int) -> dict[str, Placement]:
    """Return placements for little memory, with what may as well be on the device there."""
    program, found = cost.program, dict[str, Placement]()
    for name, where in solve(cost, limit).items():
        found[name] = Placement("host_mapped") if where.kind == "pinned" else where
    most = cost.seconds(found) * TIE
    for array in sorted(program.arrays, key=lambda each: -each.nbytes):
        held, where = held_by_phase(program, found), Placement("prefetched")
        room = limit - max((held[phase] for phase in program.phases_of(array)), default=limit)
        if array.held > room:
            where = Placement("split", share_of(room // BLOCK * BLOCK, array.nbytes))
        tried = found | {array.name: where}
        if found[array.name].on_device == 0 and room >= BLOCK and cost.seconds(tried) < most:
            found = tried
    return found


@dataclass(slots=True, kw_only=True)
class Candidates:
    """Placements for little memory, compared by replays of the recorded run."""

    trace: Trace
    program: Program
    machine: Machine
    capacity: int
    room: int
    evicts: bool
    best: dict[str, Placement]
    seconds: float = inf
    left: int = MOST_TOUCHES
    each: int = field(init=False)

    def __post_init__(self) -> None:
        self.each = sum(map(_simulated, self.trace.steps))

    def fastest(self, arrays: Iterable[ProgramArray]) -> dict[str, Placement]:
        """Return the fastest of what was found and what one would write by hand for some arrays."""
        # If the driver may evict, single arrays are then placed otherwise, the largest first.
        self.seconds = self.replayed(self.best)
        order = sorted(arrays, key=lambda array: -array.nbytes)
        largest = order[0].group if order else ""
        by_hand = [
            {a.name: Placement(first if a.group == largest else others) for a in order}
            for first, others in product(BY_HAND, repeat=2)
        ]
        # What faults most is replayed last: it takes longest.
        by_hand.sort(key=lambda each: max(held_by_phase(self.program, self.best | each).values()))
        for placements in by_hand:
            self.try_out(placements)
        for array, kind in product(order, BY_HAND) if self.evicts else ():
            self.try_out({array.name: Placement(kind)})
        return self.best

    def try_out(self, changed: dict[str, Placement]) -> None:
        """Keep what is faster than all before it."""
        placements = self.best | changed
        if placements != self.best and (self.evicts or fits(self.program, placements, self.room)):
            seconds = self.replayed(placements)
            if seconds < self.seconds:
                self.seconds, self.best = seconds, placements

    def replayed(self, placements: Mapping[str, Placement]) -> float:
        """Return the seconds of a replay; infinitely many if it cannot be, or takes too long."""
        if self.left < self.each:
            return inf
        self.left -= self.each
        names = {name: str(where) for name, where in placements.items()}
        try:
            seconds, evictions = seconds_within(
                self.seconds, self.trace, self.machine, names, self.capacity
            )
        except LouvainUmError:
            return inf
        self.left -= EVICTION * min(evictions, SAMPLE)
        return seconds


def _simulated(step: Step) -> int:
    """Return the touches of a step that are simulated: of many in random order, a sample."""
    if not isinstance(step, Launch | HostTouches):
        return 0
    t = step.touches
    if isinstance(step, HostTouches):
        return int(t.length.sum())
    once = int(np.where(t.scattered, np.minimum(t.amount, 2 * SAMPLE), t.length).sum())
    return 2 * once if step.repeats > 1 else once  # the second stands for all further ones


def _bytes_to_host(session: SessionData) -> dict[str, int]:
    """Return the bytes of each array that migrated to the host."""
    analysis = SessionAnalysis(session)
    arrays = analysis.arrays
    sums = analysis.sums(analysis.array_of, len(arrays) + 1, EventKind.DTOH, "bytes")
    return {array.name: nbytes for array, nbytes in zip(arrays, sums, strict=False)}


def policy_name(path: Path) -> str:
    """Return a name for a policy that a file holds."""
    plain = re.sub(r"[^\w-]", "_", path.stem)
    return plain if re.match(r"[A-Za-z]", plain) else f"p{plain}"


def write_toml(policy: Policy, path: Path, *, force: bool) -> None:
    """Write a policy as a person can read and edit it."""
    lines = [
        f"name = {json.dumps(policy.name)}",
        f"about = {json.dumps(policy.about)}",
        f"others = {json.dumps(str(policy.others))}",
    ]
    for table in ("groups", "arrays"):
        rows = getattr(policy, table).items()
        lines += ["", f"[{table}]"] if rows else []
        lines += [f"{json.dumps(name, ensure_ascii=False)} = {json.dumps(str(to))}"
                  for name, to in rows]  # fmt: skip
    write_text(path, "\n".join(lines) + "\n", force=force)


ADVICE: Final[Mapping[Kind, tuple[str, ...]]] = {
    "managed": (),
    "prefetched": (
        "cudaMemAdvise({p}, {n}, cudaMemAdviseSetPreferredLocation, gpu);",
        "/* before the first kernel: */ cudaMemPrefetchAsync({p}, {n}, gpu, 0, stream);",
    ),
    "host_mapped": (
        "cudaMemAdvise({p}, {n}, cudaMemAdviseSetPreferredLocation, host);",
        "cudaMemAdvise({p}, {n}, cudaMemAdviseSetAccessedBy, gpu);",
    ),
    "read_mostly": ("cudaMemAdvise({p}, {n}, cudaMemAdviseSetReadMostly, gpu);",),
}


def snippet(policy: Policy, session: SessionData) -> str:
    """Return the calls of a policy as C, for the program's own source."""
    kinds = session.metadata.get("memory_kinds", {})
    lines = [
        f"/* {policy.about}; after each allocation, before it is touched (CUDA 13) */",
        "const struct cudaMemLocation gpu = {cudaMemLocationTypeDevice, 0};",
        "const struct cudaMemLocation host = {cudaMemLocationTypeHost, 0};",
    ]
    names = dict.fromkeys(
        (life.name, life.group, life.nbytes)
        for life in session.lifetimes
        if kinds.get(life.name) == "managed"
    )
    for name, group, nbytes in names:
        to = policy.placement_in(name, group)
        lines += ["", f"/* {name.replace('*/', '* /')}: {to} */"]
        if to.kind == "split":
            here = int(nbytes * to.fraction) // BLOCK * BLOCK
            for kind, at, size in (
                ("prefetched", "p", f"{here}"),
                ("host_mapped", f"(char *)p + {here}", f"bytes - {here}"),
            ):
                lines += [call.format(p=at, n=size) for call in ADVICE[kind]]  # type: ignore[index]
        else:
            lines += [call.format(p="p", n="bytes") for call in ADVICE[to.kind]]
    return "\n".join(lines) + "\n"
