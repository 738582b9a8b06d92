"""Smart allocation: one call that decides from the cost model where an array lives.

After Hope, Nag and Qasem: `is_host_resident` weighs remote access against the copies and
launches that it saves, `smart_malloc` allocates accordingly, values are written where the bytes
live, and nothing is copied to a place where it already is.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from louvain_um.core.array_spec import ArraySpec, Stage, Use
from louvain_um.core.ledger import Group
from louvain_um.errors import MemoryBudgetError
from louvain_um.placement.arena_spec import ArenaSpec
from louvain_um.placement.machine.machine import Machine
from louvain_um.placement.machine.machine_choice import machine_for
from louvain_um.placement.memory import colocate, cuda_calls
from louvain_um.placement.memory.allocator import view
from louvain_um.placement.memory.arena import Arena
from louvain_um.placement.memory.guard import guard, managed_refusal
from louvain_um.placement.model.cost import Estimate, exposed, launches
from louvain_um.placement.model.remote_access import remote_seconds
from louvain_um.placement.policy.policy import Placement

HOST_MAPPED = Placement("host_mapped")


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
    >>> from louvain_um.placement.placer import Work, host_residency
    >>> once = Work(touches={"stream": 1e8}, copies=2)
    >>> host_residency(10**8, "u4", once, H200, 1 << 30).host_pays
    True
    >>> often = Work(touches={"gather": 1e10}, copies=1)
    >>> host_residency(10**8, "u4", often, H200, 1 << 30).host_pays
    False
    """
    item = np.dtype(dtype).itemsize
    accesses: dict[tuple[Stage, Use], float] = {
        ("move", use): count for use, count in work.touches.items()
    }
    array = ArraySpec(
        name="array",
        group="scratch",
        itemsize=item,
        size=shape,
        stages=("move",),
        accesses=accesses,
    )
    rates = {
        "stream": machine.device_bandwidth / item,
        "gather": machine.device_random_rate,
        "atomic": machine.device_atomic_rate,
    }
    here = sum(count / rates[use] for use, count in work.touches.items())
    core: dict[Stage, float] = {"move": here + work.computing}
    remote = remote_seconds(array, HOST_MAPPED, machine, 0.0)
    blocks = launches(array.nbytes, room)
    # What does not fit has to come again for every pass.
    copies = max(work.copies, work.passes) if blocks > 1 else work.copies
    return Estimate(
        phi=exposed(core, remote),
        tau=copies * array.nbytes / machine.copy_to_device,
        sigma=work.passes * (blocks - 1) * machine.launch_seconds,
    )


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
    group: Group = "scratch",
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
    name : str
        For messages.
    group : {"graph", "hash", "community", "scratch"}
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
    kind = np.dtype(dtype)
    if copies is None:
        copies = float(isinstance(source, np.ndarray))
    work = Work(touches=touches, copies=copies, passes=passes, computing=computing)
    figures = machine or machine_for(device)
    with cuda_calls.current(device):
        free = guard.room(device) if room is None else room
        hosted = is_host_resident(shape, kind, work, figures, free)
        arena = _arena(name, group, shape * kind.itemsize, hosted, device)
        owner = _Owner(arena)
        array = view(arena.whole(), shape, kind, arena, owner)
        if source is not None:
            if source.dtype != kind or source.size > shape:
                raise ValueError(f"{source.size} {source.dtype} do not fit {shape} {kind}")
            parts = arena.sides(array.data.ptr, source.nbytes)
            colocate.fill(parts, source, device)
    return array


def initialise(array: Any, value: Any) -> None:
    """Set all elements of an array from `smart_malloc`, by the side that they live on."""
    arena = _owner(array).arena
    with cuda_calls.current(arena.device):
        cuda_calls.synchronize()  # the host may not overtake kernels
        colocate.initialise(arena.sides(array.data.ptr, array.nbytes), array.dtype, value)


def placement_of(array: Any) -> Placement:
    """Return where an array from `smart_malloc` lives."""
    return _owner(array).arena.placement


class _Owner:
    """What the views of an arena keep alive; the arena goes with it."""

    def __init__(self, arena: Arena) -> None:
        self.arena = arena
        self.finalizer = weakref.finalize(self, arena.close)


def _owner(array: Any) -> _Owner:
    owner = getattr(array.data.mem, "_owner", None)
    if not isinstance(owner, _Owner):
        raise ValueError("this array was not made by smart_malloc")
    return owner


def _arena(name: str, group: Group, nbytes: int, hosted: bool, device: int) -> Arena:
    """Return an arena on the side that was chosen; page-locked if managed memory cannot be."""
    pinned, mapped = Placement("pinned"), HOST_MAPPED
    kinds = [Placement("device")]
    if hosted:
        kinds = [pinned] if managed_refusal(device) else [mapped, pinned]
    for placement in kinds[:-1]:
        try:
            return Arena(_spec(name, group, nbytes, placement), device)
        except MemoryBudgetError:
            continue
    return Arena(_spec(name, group, nbytes, kinds[-1]), device)


def _spec(name: str, group: Group, nbytes: int, placement: Placement) -> ArenaSpec:
    return ArenaSpec(name=name, group=group, capacity=nbytes, placement=placement)
