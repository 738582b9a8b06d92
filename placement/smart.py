"""Smart allocation: one array, placed by the cost model of Hope, Nag and Qasem.

`is_host_resident` and `smart_malloc` are the paper's calls, as thin forms of the Placer
(`louvain_um.placement.placer`), which decides for several arrays together. An array may live on
the device; on the host, read over the bus; or in managed memory, whose pages come on demand.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from louvain_um.core.array_spec import Use
from louvain_um.errors import OptionError
from louvain_um.placement.hardware import BLOCK
from louvain_um.placement.machine.machine import Machine
from louvain_um.placement.machine.profiles import machine_for
from louvain_um.placement.memory import cuda_calls
from louvain_um.placement.memory.copies import initialise as initialise_parts
from louvain_um.placement.model.cost import Estimate
from louvain_um.placement.policy.policy import Kind, Placement
from louvain_um.placement.program.backends import HostArray, Slot, plain
from louvain_um.placement.program.cost import DemandPages, ProgramCost
from louvain_um.placement.program.device_backend import Owner, backend_of, owner_of
from louvain_um.placement.program.program import (
    Access,
    Atomic,
    Gather,
    Phase,
    Program,
    ProgramArray,
    Stream,
    check_share,
)


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
    share : float
        Part of the array that is touched at all, above 0 and at most 1: on demand, only its pages
        come.
    given : bool
        Whether the first values come from other memory of the host; else the host writes the
        array itself, which saves that copy where host and device share the array.
    """

    touches: Mapping[Use, float]
    copies: float = 0.0
    passes: float = 1.0
    computing: float = 0.0
    share: float = 1.0
    given: bool = False

    def __post_init__(self) -> None:
        check_share(self.share)
        if not self.share:
            raise OptionError("share", self.share, "must be above 0; an untouched array needs none")


class Decision(NamedTuple):
    """Where an array should live, and why.

    Parameters
    ----------
    placement : Placement
        "device", "host_mapped" or "managed".
    estimates : mapping of str to Estimate
        φ, τ and σ of each placement on the host's side that is possible; below 0 it pays.
    paged : DemandPages
        What demand paging brings: fault groups, and unique pages.
    """

    placement: Placement
    estimates: Mapping[Kind, Estimate]
    paged: DemandPages


def decide(
    shape: int, dtype: DTypeLike, work: Work, machine: Machine, room: int, *, managed: bool = True
) -> Decision:
    """Return whether an array should live on the device, on the host, or migrate on demand.

    Parameters
    ----------
    shape : int
        Elements.
    dtype : dtype
    work : Work
    machine : Machine
    room : int
        Bytes of the device that the array may have. Pages that are touched must fit them, too, so
        that the driver evicts none.
    managed : bool
        Whether managed memory is possible at all.

    Examples
    --------
    >>> from louvain_um.placement.machine.profiles import H200
    >>> from louvain_um.placement.smart import Work, decide
    >>> def where(**work):
    ...     return str(decide(10**8, "u4", Work(**work), H200, 1 << 30).placement)
    >>> where(touches={"stream": 1e8}, copies=2)
    'host_mapped'
    >>> where(touches={"gather": 1e10}, copies=1, given=True)
    'device'
    >>> where(touches={"gather": 1e10}, copies=1, share=0.2)
    'managed'
    """
    array = _declared("array", shape, dtype, work)
    phase = Phase(
        name="run", passes=work.passes, operations=work.computing * machine.operation_rate
    )
    program = Program(name="array", arrays=[array], phases=[phase])
    cost = ProgramCost(program=program, machine=machine)
    paged = cost.paged(array)
    hosts: list[Kind] = ["host_mapped"]
    if managed and paged.blocks * BLOCK <= room:
        hosts.append("managed")
    found = {
        kind: cost.estimate(array, {"array": Placement(kind)}, room, Placement(kind))
        for kind in hosts
    }
    best = min(hosts, key=lambda kind: found[kind].net)
    here = array.nbytes <= room and not found[best].host_pays
    return Decision(Placement("device" if here else best), found, paged)


def host_residency(
    shape: int, dtype: DTypeLike, work: Work, machine: Machine, room: int
) -> Estimate:
    """Return φ, τ and σ of keeping an array on the host, where the GPU reads it over the bus.

    The parameters are those of `decide`.

    Examples
    --------
    >>> from louvain_um.placement.machine.profiles import H200
    >>> from louvain_um.placement.smart import Work, host_residency
    >>> once = Work(touches={"stream": 1e8}, copies=2)
    >>> host_residency(10**8, "u4", once, H200, 1 << 30).host_pays
    True
    """
    return decide(shape, dtype, work, machine, room, managed=False).estimates["host_mapped"]


def is_host_resident(shape: int, dtype: DTypeLike, work: Work, machine: Machine, room: int) -> bool:
    """Say whether an array is better kept on the host's side, or does not fit the device.

    The parameters are those of `decide`. On the host's side are `host_mapped` and, as in the
    paper, `managed` memory, whose pages come on demand.
    """
    return decide(shape, dtype, work, machine, room).placement.kind != "device"


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
    share: float = 1.0,
    source: Any = None,
    machine: Machine | None = None,
    room: int | None = None,
    device: int | str | None = None,
) -> Any:
    """Return an array that lives where the cost model puts it.

    Parameters
    ----------
    shape : int
        Elements.
    dtype : dtype
    name, group : str
        For messages.
    touches, passes, computing, share
        See `Work`.
    copies : float, optional
        See `Work`; 1 with a `source` in host memory, else 0, if left out.
    source : numpy.ndarray or cupy.ndarray, optional
        Values to begin with, written where the array lives.
    machine : Machine, optional
        Figures to decide by; the device's, if left out.
    room : int, optional
        Bytes of the device that the array may have; what is free, if left out.
    device : int or {"auto", "cpu", "cuda", "cuda:N"}, optional
        The CUDA device; the current one if there is one, else the CPU, if left out.

    Returns
    -------
    cupy.ndarray
        Or numpy.ndarray without a GPU. One-dimensional; its memory is freed with the last array
        that uses it. `placement_of` says where it lives, or would live on the `machine`.

    Raises
    ------
    DeviceUnavailableError
        There is no such device.
    MemoryBudgetError
        There is no room on either side.
    ValueError
        The source has another dtype or more elements.

    Examples
    --------
    >>> from louvain_um.placement.smart import placement_of, smart_malloc
    >>> x = smart_malloc(1000, "f4", touches={"gather": 1e9}, device="cpu")
    >>> x[:] = 1
    >>> str(placement_of(x)), float(x.sum())
    ('device', 1000.0)
    """
    if source is not None and (source.dtype != np.dtype(dtype) or source.size > shape):
        raise ValueError(f"{source.size} {source.dtype} do not fit {shape} {np.dtype(dtype)}")
    if copies is None:
        copies = float(isinstance(source, np.ndarray))
    work = Work(
        touches=touches, copies=copies, passes=passes, computing=computing, share=share,
        given=isinstance(source, np.ndarray),
    )  # fmt: skip
    backend = backend_of("auto" if device is None else device)
    number = getattr(backend, "device", None)
    machine = machine or machine_for(number)
    free = backend.room()
    room = (machine.bytes_for_runs if free is None else free) if room is None else room
    # Of managed memory every byte may be touched: all of it must fit what is free.
    fits = free is None or shape * np.dtype(dtype).itemsize <= free
    decided = decide(shape, dtype, work, machine, room, managed=backend.managed and fits)
    slot = Slot(_declared(name, shape, dtype, work, group))
    slot.placement = decided.placement
    if not backend.managed and decided.placement.kind == "host_mapped":
        slot.placement = Placement("pinned")
    array = slot.array = backend.new(slot)
    backend.prepare([slot])
    backend.give(slot)
    if source is not None and source.size:
        backend.fill(slot, source.reshape(-1))
    slot.array = None
    if number is not None:
        # The array alone keeps its memory.
        slot.memory = array.slot = None
    return array


def initialise(array: Any, value: Any) -> None:
    """Set all elements of an array from `smart_malloc`, by the side that they live on."""
    if isinstance(array, HostArray):
        plain(array).fill(value)
        return
    arena = _owner(array).arena
    with cuda_calls.current(arena.device):
        cuda_calls.synchronize()  # the host may not overtake kernels
        initialise_parts(arena.sides(array.data.ptr, array.nbytes), array.dtype, value)


def placement_of(array: Any) -> Placement:
    """Return where an array from `smart_malloc`, or of a Placer, lives."""
    if isinstance(array, HostArray):
        return array.slot.placement or Placement("device")
    return _owner(array).arena.placement


def _owner(array: Any) -> Owner:
    owner = owner_of(array) if hasattr(getattr(array, "data", None), "mem") else None
    if owner is None:
        raise ValueError("this array was not made by smart_malloc")
    return owner


def _declared(
    name: str, shape: int, dtype: DTypeLike, work: Work, group: str = "arrays"
) -> ProgramArray:
    """Return an array with the accesses of its work."""
    made: dict[Use, type[Gather]] = {"gather": Gather, "atomic": Atomic}
    accesses: list[Access] = [
        Stream(count / max(shape, 1) / work.share, work.share)
        if use == "stream"
        else made[use](count, work.share)
        for use, count in work.touches.items()
    ]
    return ProgramArray(
        name=name, shape=shape, dtype=dtype, group=group, reads=accesses, from_host=work.copies,
        given=work.given,
    )  # fmt: skip
