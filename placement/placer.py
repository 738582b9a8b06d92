"""Place the arrays of your own kernels: declare them, let all be decided together, run.

After Hope, Nag and Qasem: the cost model decides from declared, counted and measured accesses
where each array lives; values are written by the side where they live; nothing is copied to a
place where it already is.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from louvain_um.core.plain_data import plain_array
from louvain_um.errors import OptionError, PlacementError, among, check_switch, checks_kinds
from louvain_um.events import Event, announce, announcing
from louvain_um.options import Budget, Options
from louvain_um.placement.layout import SLACK
from louvain_um.placement.machine.machine import Machine
from louvain_um.placement.machine.profiles import load_machine, machine_for
from louvain_um.placement.memory.cuda_calls import CudaError
from louvain_um.placement.policy.find import find_policy
from louvain_um.placement.policy.policy import AUTO, Placement, Policy
from louvain_um.placement.program.backends import Declarations, Slot
from louvain_um.placement.program.device_backend import backend_of
from louvain_um.placement.program.feedback import (
    Counter,
    counted,
    reconsidered,
    with_counts,
    with_time,
)
from louvain_um.placement.program.program import Accesses, Phase, Program, ProgramArray
from louvain_um.placement.program.program_plan import ProgramPlan, plan_program


class Placer:
    """Places arrays of a program's own kernels on a GPU and its host.

    Declare every array, then `solve`; run kernels in `phase`. The first run of each phase is timed,
    and arrays move where that pays for the runs to come. On a machine without a GPU arrays are
    NumPy's, so that the same code runs.

    Parameters
    ----------
    budget : int or str, optional
        Bytes of the device that the arrays may take, as a number, like "8GiB", or like "70%" of
        what they take in core; by default what is free.
    memory : str, path or Policy
        "auto" decides by the cost model; other policies place groups and roles.
    device : {"auto", "cpu", "cuda", "cuda:N"} or int
        "auto" takes the current GPU, if there is one.
    peer_memory : str, optional
        Another GPU, such as "cuda:1", whose memory takes the place of the host's. Of no use where
        there is no GPU.
    machine : Machine, str or path, optional
        Figures to decide by; the device's, if left out.
    phases : sequence of Phase or str
        The program's phases; if left out, those that arrays name. Without any, there is one: the
        first name that `phase` is given is its own.
    name : str
        Of the program, for messages.
    feedback : bool
        Whether arrays move after the first run of a phase, where its measured time shows that
        this pays; of no use where no phase runs again.

    Raises
    ------
    OptionError, DeviceUnavailableError
        There is no such policy, budget, phase or device.

    Examples
    --------
    >>> import numpy as np
    >>> import louvain_um as lu
    >>> from louvain_um.placement.program import Gather, Stream
    >>> with lu.Placer(budget="64MiB", device="cpu") as place:
    ...     x = place.array("x", 1000, np.float32, source=np.arange(1000), reads=Stream(20))
    ...     y = place.array("y", 1000, np.float32, writes=Stream(20), reads=Gather(20_000))
    ...     plan = place.solve()
    ...     with place.phase("iterate"):
    ...         y[...] = 2 * x
    ...     total = float(y.sum())
    >>> total, str(plan.placements["y"])
    (999000.0, 'device')
    """

    @checks_kinds
    def __init__(
        self,
        budget: Budget | int | str | None = None,
        *,
        memory: str | Path | Policy = "auto",
        device: str | int = "auto",
        peer_memory: str | None = None,
        machine: Machine | str | Path | None = None,
        phases: Sequence[Phase | str] = (),
        name: str = "program",
        feedback: bool = True,
    ) -> None:
        check_switch("feedback", feedback)
        self.feedback = feedback
        self.budget = Budget.parse(budget)
        self.policy = find_policy(memory)
        if peer_memory is not None:
            named = f"cuda:{device}" if isinstance(device, int) else device
            Options(device=named, peer_memory=peer_memory)  # checks both
        self.backend = backend_of(device, peer_memory)
        if machine is None:
            self.machine = machine_for(getattr(self.backend, "device", None))
        else:
            self.machine = machine if isinstance(machine, Machine) else load_machine(machine)
        if peer_memory is not None and self.backend.room() is not None:
            self.machine = self.machine.with_peer()
        self.declared = Declarations(name, phases)
        self.plan: ProgramPlan | None = None
        self._foreseen: ProgramPlan | None = None
        self.moved: list[tuple[str, str, str]] = []
        self.running: str | None = None
        self._seconds: dict[str, list[float]] = {}
        self._counting = False
        self._counted = set[str]()
        self._closed = False

    @checks_kinds
    def array(
        self,
        name: str,
        shape: int | tuple[int, ...],
        dtype: DTypeLike = np.float32,
        *,
        reads: Accesses = (),
        writes: Accesses = (),
        group: str = "arrays",
        role: str = "other",
        phases: Sequence[str] | None = None,
        source: Any = None,
        from_host: float | None = None,
        to_host: float = 0.0,
        on_device: bool = False,
    ) -> Any:
        """Declare an array; it gets memory when the program is solved.

        Parameters
        ----------
        name, shape, dtype, reads, writes, group, role, phases, from_host, to_host, on_device
            As in `louvain_um.placement.program.ProgramArray`; `from_host` is 1 with a `source` of
            NumPy, else 0, if left out.
        source : numpy.ndarray or cupy.ndarray, optional
            Values that the array has when it gets its memory.

        Returns
        -------
        cupy.ndarray
            Or numpy.ndarray without a GPU. It stays the same object when its memory moves. Its
            `host` is a NumPy array over the same memory, where that is on the host.

        Raises
        ------
        OptionError
            The name is taken, an argument is wrong, or the program is solved already.
        """
        self._refuse_late(name)
        if isinstance(phases, str):
            raise OptionError("phases", phases, f"of array {name} must be a list, like ['run']")
        given = isinstance(source, np.ndarray | list | tuple)
        spec = ProgramArray(
            name=name,
            shape=shape,
            dtype=dtype,
            group=group,
            role=role,
            phases=None if phases is None else tuple(phases),
            reads=reads,
            writes=writes,
            from_host=float(given) if from_host is None else from_host,
            to_host=to_host,
            given=given,
            on_device=on_device,
        )
        return self.add(spec, source)

    def add(self, spec: ProgramArray, source: Any = None) -> Any:
        """Declare an array of a `Program`; otherwise as `array`.

        Raises
        ------
        OptionError
            As of `array`.
        """
        self._refuse_late(spec.name)
        given = isinstance(source, np.ndarray | list | tuple)
        slot = self.declared.add(spec, plain_array(source, "source") if given else source)
        slot.array = self.backend.new(slot)
        return slot.array

    def declare(self, program: Program, sources: Mapping[str, Any]) -> ProgramPlan:
        """Declare all arrays of a `Program`, with values of some; return where they will live.

        If the plan has several launches, arrays that kernels take by rows get memory for a slice,
        and no values: `fill` brings each slice.

        Raises
        ------
        OptionError, MemoryBudgetError
            As of `array` and `solve`.
        """
        plan = self._foreseen = self._decided(program)
        for spec in plan.program.arrays:
            sliced = plan.launches > 1 and spec.by_rows
            self.add(spec, None if sliced else sources.get(spec.name))
        return plan

    def fill(self, name: str, values: Any) -> None:
        """Write values into an array that has memory, on the side where it lives.

        Fewer values than the array has, along its only dimension, fill its beginning.
        """
        slot = self._slot(name)
        slot.check()
        self.backend.fill(slot, values)

    def get(self, name: str) -> NDArray[Any]:
        """Return a copy of an array in host memory; the host reads what lives there itself."""
        slot = self._slot(name)
        slot.check()
        return self.backend.fetch(slot)

    @property
    def program(self) -> Program:
        """What was declared so far."""
        return self.declared.program

    @property
    def slots(self) -> dict[str, Slot]:
        """Arrays by name."""
        return self.declared.slots

    def _slot(self, name: str) -> Slot:
        """Return an array by name; the error lists all names."""
        if not among(name, *self.slots):
            known = ", ".join(self.slots) or "none is declared"
            raise OptionError("name", name, f"must be that of an array ({known})")
        return self.slots[name]

    def solve(self) -> ProgramPlan:
        """Decide where all arrays live, and allocate those that live in every phase.

        Called again, it returns the plan as it is now.

        Returns
        -------
        ProgramPlan
            `print` shows it as a table.

        Raises
        ------
        OptionError
            An array names an unknown phase.
        MemoryBudgetError
            What must be on the device exceeds the budget; the error has the bytes. Nothing is left
            allocated.
        """
        self._refuse_closed()
        if self.plan is None:
            plan = self._foreseen or self._decided(self.program)
            if self.backend.room() is not None:
                announce(Event(kind="plan", plan=plan))
            for name, slot in self.slots.items():
                slot.placement = plan.placements[name]
            self.backend.prepare(list(self.slots.values()))
            with ExitStack() as undo:
                for slot in self.slots.values():
                    undo.callback(self._take, slot, "declared")
                    if slot.spec.phases is None:
                        self._give(slot)
                    else:
                        slot.state = "outside"
                undo.pop_all()
            self.plan = plan
        return self.plan

    @contextmanager
    def phase(self, name: str) -> Iterator[Placer]:
        """Run a phase: arrays that live only in it have memory inside the block.

        Its time is measured, from the first launch to the end of the last kernel.

        Raises
        ------
        OptionError
            There is no such phase, or another one runs.
        MemoryBudgetError
            There is no memory for its arrays.
        """
        self._refuse_closed()
        if self.running is not None:
            raise OptionError(
                "phase", name, "end it before the next begins",
                problem=f"phase {self.running!r} is running",
            )  # fmt: skip
        plan = self.solve()
        known = self.declared.phase(name)
        mine = [slot for slot in self.slots.values() if known in (slot.spec.phases or ())]
        with ExitStack() as inside:
            for slot in mine:
                self._give(slot)
                inside.callback(self._take, slot, "outside")
            self.running = name
            inside.callback(setattr, self, "running", None)
            self.backend.wait()
            with announcing(name):
                since = time.perf_counter()
                yield self
                self._wait_for(name)
                seconds = time.perf_counter() - since
            runs = self._seconds.setdefault(known, [])
            runs.append(seconds)
        if len(runs) == 1 and not self._counting:
            plan = with_time(plan, known, runs[0], counted=known in self._counted)
            if known in self._counted:
                self.declared.operations[known] = plan.program.phase(known).operations
            self._reconsider(plan)

    @contextmanager
    def learn(self, name: str, counter: Counter) -> Iterator[Placer]:
        """Run a phase once under an access counter; counts replace what was declared.

        Arrays are decided anew afterwards, and move where that pays.

        Parameters
        ----------
        name : str
            The phase.
        counter : Counter
            Such as ``Tracer(programs=True)`` of `louvain_um.profiling.sources.tracer`, which
            instruments kernels; they run slower.

        Raises
        ------
        OptionError
            There is no such phase.
        SourceUnavailableError
            Kernels cannot be instrumented here.
        """
        plan = self.solve()
        known = self.declared.phase(name)
        with counter:
            for slot in self.slots.values():
                if slot.state == "live":
                    counter.observe(_announced("array", slot, self.backend.address(slot)))
            self._counting = True
            try:
                with self.phase(name):
                    for slot in self.slots.values():
                        if known in (slot.spec.phases or ()):
                            counter.observe(_announced("array", slot, self.backend.address(slot)))
                    yield self
            finally:
                self._counting = False
                # An instrumented run is slower than any later one.
                self._seconds.pop(known, None)
        program = self.program
        for array, count in counted(counter.result()).items():
            if array in self.slots:
                slot = self.slots[array]
                accesses = count.accesses(slot.spec.size)
                slot.spec = with_counts(slot.spec, program, known, *accesses)
        self._counted.add(known)
        self._reconsider(plan)

    def close(self) -> None:
        """Free everything; arrays of this Placer cannot be used any more."""
        self._closed = True
        for slot in self.slots.values():
            self._take(slot, "closed")

    def __enter__(self) -> Placer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def is_host_resident(self, name: str) -> bool:
        """Whether an array, or some of it, stays on the host: the paper's isHostResident."""
        return self.solve().is_host_resident(name)

    def _decided(self, program: Program) -> ProgramPlan:
        room = self.backend.room()
        if room is not None:
            room = max(0, room - SLACK * len(program.arrays))
        return plan_program(
            program, self.machine, self.policy, self.budget, free=room, managed=self.backend.managed
        )

    def _wait_for(self, phase: str) -> None:
        """Wait for the kernels of a phase; name what may be wrong if one fails."""
        try:
            self.backend.wait()
        except CudaError as error:
            away = [name for name, slot in self.slots.items() if slot.state != "live"]
            others = f"arrays of other phases are {', '.join(away)}" if away else "check its bounds"
            raise PlacementError(
                f"a kernel of phase {phase!r} failed ({error.name}); {others}"
            ) from None

    def _give(self, slot: Slot) -> None:
        self.backend.give(slot)
        announce(_announced("array", slot, self.backend.address(slot)))

    def _take(self, slot: Slot, state: Any) -> None:
        if slot.state == "live":
            announce(_announced("freed", slot, self.backend.address(slot)))
        self.backend.take(slot)
        slot.state = state
        if state == "closed":
            slot.source = None

    def _reconsider(self, plan: ProgramPlan) -> None:
        """Decide anew from what is known now, and move arrays where that pays."""
        self.plan = plan
        if not self.feedback or self.policy.name != AUTO.name or self.backend.room() is None:
            return
        runs = {name: len(seconds) for name, seconds in self._seconds.items()}
        self.plan = reconsidered(plan, self.program, runs, managed=self.backend.managed)
        goals = self.plan.placements
        # What goes to the host makes room for the rest.
        for name in sorted(goals, key=lambda name: goals[name].on_device):
            if goals[name] != plan.placements[name]:
                self._move(self.slots[name], goals[name])

    def _move(self, slot: Slot, placement: Placement) -> None:
        self.moved.append((slot.spec.name, str(slot.placement), str(placement)))
        if slot.state == "live":
            announce(_announced("freed", slot, self.backend.address(slot)))
            self.backend.move(slot, placement)
            announce(_announced("array", slot, self.backend.address(slot)))
        slot.placement = placement

    def _refuse_late(self, name: object) -> None:
        if self._closed or self.plan is not None:
            state = "closed" if self._closed else "solved"
            raise OptionError(
                "name", name, "declare every array before solve(), or use another Placer",
                problem=f"the Placer is {state}: array {str(name)[:40]!r} comes too late",
            )  # fmt: skip

    def _refuse_closed(self) -> None:
        if self._closed:
            raise OptionError(remedy="the Placer is closed; use another one")


def _announced(kind: Any, slot: Slot, address: int) -> Event:
    spec = slot.spec
    return Event(kind=kind, name=spec.name, group=spec.group, address=address, nbytes=spec.nbytes)
