"""Smart allocation: one array, placed by the cost model of Hope, Nag and Qasem.

`is_host_resident` and `smart_malloc` are the paper's calls, as thin forms of the Placer
(`louvain_um.placement.placer`), which decides for several arrays together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from louvain_um.core.array_spec import Use
from louvain_um.placement.machine.machine import Machine
from louvain_um.placement.machine.profiles import machine_for
from louvain_um.placement.memory import cuda_calls
from louvain_um.placement.memory.copies import fill
from louvain_um.placement.memory.copies import initialise as initialise_parts
from louvain_um.placement.model.cost import Estimate
from louvain_um.placement.policy.policy import Placement
from louvain_um.placement.program.accesses import Access, Atomic, Gather, Stream
from louvain_um.placement.program.backends import Slot
from louvain_um.placement.program.cost import ProgramCost
from louvain_um.placement.program.device_backend import DeviceBackend, Owner, owner_of
from louvain_um.placement.program.program import Phase, Program, ProgramArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What kernels do with one array.

    Parameters
    ----------
    touches : mapping of {"stream", "gather", "atomic"} to float
        Element accesses in all.
    copies : float
        How often the array would be copied between host and device if it lived there.
    passes : float
        How often kernels go over all of it.
    computing : float
        Seconds in which the kernels do other things; they hide remote accesses.
    """

    touches: Mapping[Use, float]
    copies: float = 0.0
    passes: float = 1.0
    computing: float = 0.0


def host_residency(
    shape: int, dtype: DTypeLike, work: Work, machine: Machine, room: int
) -> Estimate:
    """Return φ, τ and σ of keeping an array on the host.

    Parameters
    ----------
    shape : int
        Elements.
    dtype : dtype
    work : Work
    machine : Machine
    room : int
        Bytes of the device that the array may have.

    Examples
    --------
    >>> from louvain_um.placement.machine.profiles import H200
    >>> from louvain_um.placement.smart import Work, host_residency
    >>> once = Work(touches={"stream": 1e8}, copies=2)
    >>> host_residency(10**8, "u4", once, H200, 1 << 30).host_pays
    True
    >>> often = Work(touches={"gather": 1e10}, copies=1)
    >>> host_residency(10**8, "u4", often, H200, 1 << 30).host_pays
    False
    """
    array = _declared("array", shape, dtype, work)
    phase = Phase(
        name="run", passes=work.passes, operations=work.computing * machine.operation_rate
    )
    program = Program(name="array", arrays=[array], phases=[phase])
    cost = ProgramCost(program=program, machine=machine)
    return cost.estimate(array, {"array": Placement("host_mapped")}, room)


def is_host_resident(shape: int, dtype: DTypeLike, work: Work, machine: Machine, room: int) -> bool:
    """Say whether an array is better kept on the host, or does not fit anywhere else.

    The parameters are `host_residency`'s.
    """
    if shape * np.dtype(dtype).itemsize > room:
        return True
    return host_residency(shape, dtype, work, machine, room).host_pays


def smart_malloc(
    shape: int,
    dtype: DTypeLike,
    *,
    name: str = "array",
    group: str = "arrays",
    touches: Mapping[Use, float],
    copies: float | None = None,
    passes: float = 1.0,
    computing: float = 0.0,
    source: Any = None,
    machine: Machine | None = None,
    room: int | None = None,
    device: int | None = None,
) -> Any:
    """Return an array that lives where the cost model puts it.

    Parameters
    ----------
    shape : int
        Elements.
    dtype : dtype
    name, group : str
        For messages.
    touches, passes, computing
        See `Work`.
    copies : float, optional
        See `Work`; 1 with a `source` in host memory, else 0, if left out.
    source : numpy.ndarray or cupy.ndarray, optional
        Values to begin with, written where the array lives.
    machine : Machine, optional
        Figures to decide by; the device's, if left out.
    room : int, optional
        Bytes of the device that the array may have; what is free, if left out.
    device : int, optional
        The CUDA device; the current one, if left out.

    Returns
    -------
    cupy.ndarray
        One-dimensional; its memory is freed with the last array that uses it. `placement_of`
        says where it lives.

    Raises
    ------
    MemoryBudgetError
        There is no room on either side.
    ValueError
        The source has another dtype or more elements.
    """
    if device is None:
        device = int(cuda_calls.cupy_runtime().getDevice())
    if source is not None and (source.dtype != np.dtype(dtype) or source.size > shape):
        raise ValueError(f"{source.size} {source.dtype} do not fit {shape} {np.dtype(dtype)}")
    if copies is None:
        copies = float(isinstance(source, np.ndarray))
    work = Work(touches=touches, copies=copies, passes=passes, computing=computing)
    backend = DeviceBackend(device)
    free = backend.room() or 0
    on_host = is_host_resident(
        shape, dtype, work, machine or machine_for(device), free if room is None else room
    )
    slot = Slot(_declared(name, shape, dtype, work, group))
    slot.placement = Placement("host_mapped" if on_host else "device")
    if on_host and not backend.managed:
        slot.placement = Placement("pinned")
    slot.array = backend.new(slot)
    backend.prepare([slot])
    backend.give(slot)
    array, arena = slot.array, slot.memory.arena
    if source is not None:
        with cuda_calls.current(device):
            fill(arena.sides(array.data.ptr, source.nbytes), source, device)
    # The array alone keeps its memory.
    slot.array = slot.memory = array.slot = None
    return array


def initialise(array: Any, value: Any) -> None:
    """Set all elements of an array from `smart_malloc`, by the side that they live on."""
    arena = _owner(array).arena
    with cuda_calls.current(arena.device):
        cuda_calls.synchronize()  # the host may not overtake kernels
        initialise_parts(arena.sides(array.data.ptr, array.nbytes), array.dtype, value)


def placement_of(array: Any) -> Placement:
    """Return where an array from `smart_malloc`, or of a Placer, lives."""
    return _owner(array).arena.placement


def _owner(array: Any) -> Owner:
    owner = owner_of(array)
    if owner is None:
        raise ValueError("this array was not made by smart_malloc")
    return owner


def _declared(
    name: str, shape: int, dtype: DTypeLike, work: Work, group: str = "arrays"
) -> ProgramArray:
    """Return an array with the accesses of its work."""
    made: dict[Use, type[Gather]] = {"gather": Gather, "atomic": Atomic}
    accesses: list[Access] = [
        Stream(count / max(shape, 1)) if use == "stream" else made[use](count)
        for use, count in work.touches.items()
    ]
    return ProgramArray(
        name=name, shape=shape, dtype=dtype, group=group, reads=accesses, from_host=work.copies
    )
