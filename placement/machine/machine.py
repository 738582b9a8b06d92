"""What a machine can do: bandwidths, rates and latencies that every prediction is made from.

A profile is a frozen set of figures, each with its unit in its name's documentation, and a note
on where it comes from. Some come with the package; `calibrate` writes one for the machine at
hand; a file may be edited by hand.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from louvain_um.core.atomic_files import write_text
from louvain_um.core.plain_data import Within, as_json, check_fields
from louvain_um.errors import OptionError
from louvain_um.placement.hardware import BLOCK, CONTEXT, PAGE, size

if TYPE_CHECKING:
    from louvain_um.placement.policy.policy import Placement

GIB = 1 << 30

MOST_BYTES = 1 << 52
"""Most bytes of a memory or a cache."""

MOST_GPUS = 8
"""Most GPUs of one host."""

Bytes = Annotated[int, Within(1, MOST_BYTES)]

MaybeBytes = Annotated[int, Within(0, MOST_BYTES)]
"""Figures that may be 0 are so where others contain or stand for them."""

Rate = Annotated[float, Within(1, 1e18)]
"""Bytes or accesses per second."""

MaybeRate = Annotated[float, Within(0, 1e18)]

Seconds = Annotated[float, Within(1e-300, 1e6)]
"""Of one fault, launch or step."""

MaybeSeconds = Annotated[float, Within(0, 1e6)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Figures of one GPU and its host: bytes, bytes/s, accesses/s and seconds.

    Parameters
    ----------
    name : str
        Name of the profile.
    memory_bytes : int
        Device memory.
    device_bandwidth, device_random_rate, device_atomic_rate : float
        Sequential bytes/s; random 4-byte reads/s; atomics/s; all in device memory.
    copy_to_device, copy_to_host : float
        Copies of pinned memory, bytes/s.
    remote_bandwidth, remote_write_bandwidth : float
        Host memory read and written in place by the GPU, sequentially, bytes/s.
    remote_random_rate, remote_atomic_rate : float
        Random 4-byte reads/s and atomics/s on managed memory that stays on the host.
    pinned_random_rate : float
        Random 4-byte reads/s on page-locked host memory of 1 GiB.
    pinned_reach_bytes : int
        Bytes of page-locked host memory, and of pages, that are read at random as fast as managed
        memory: the device keeps so many of their addresses at hand. 0 where nothing is known, and
        `pinned_random_rate` counts whatever the size.
    pinned_missed_rate : float
        Random 4-byte reads/s of such memory beyond that.
    prefetch_to_device, prefetch_to_host, prefetch_duplicate : float
        Explicit prefetches, bytes/s; the last one of read-mostly memory, first time.
    migrate_to_device, evict_to_host : float
        The copies alone that the driver makes for a fault or an eviction, bytes/s.
    fault_batch_seconds : float
        Fetching, sorting, replaying and flushing a batch of faults.
    block_service_seconds : float
        Serving one 2 MiB block of a batch, without its copies.
    cpu_fault_seconds : float
        One page fault of the host on managed memory, without its copy.
    launch_seconds, readback_seconds : float
        One kernel launch; one launch whose result is read back.
    fault_wake_seconds : float
        From a fault until the driver is at work, where it was not already.
    prefetch_call_seconds : float
        One explicit prefetch, without its copies.
    step_seconds : float
        A step of a kernel that does next to nothing: a few accesses, each of which the last one led
        to, and a barrier.
    operation_rate : float
        Single-precision operations/s of kernels that do nothing else.
    arrival_seconds : float
        A block's arrival at a barrier in host memory while others look whether all are there.
    faults_in_flight : int
        Touches of different pages that may wait for the driver at one time while kernels stream;
        random accesses fill a batch of faults.
    cache_bytes : int
        The device's last cache: arrays that fit are read at random faster than larger ones.
    peer_bandwidth, peer_copy_bandwidth : float
        Memory of another GPU of the host read in place, and copied, sequentially, bytes/s; 0 where
        nothing is known, and the host's memory stands for it.
    peer_random_rate, peer_atomic_rate : float
        Random 4-byte reads/s of such memory, and atomics/s.
    gpus : int
        GPUs of this kind that the simulator may use, 1 … 8.
    peer_link : {"none", "pcie", "nvlink"}
        What joins them: over a link they read each other's memory and copy from it, otherwise pages
        go by way of the host.
    beyond : {"host", "peer"}
        Whose figures those of host memory are: after `with_peer`, another GPU's.
    host : Machine, optional
        After `with_peer`, the machine with the host's own figures; profiles have none.
    coherent : bool
        The host reaches device memory in place (NVLink-C2C), not over PCIe.
    host_page_bytes : int
        Of the host's pages, by which it faults and the GPU maps its memory: 4 KiB to 2 MiB.
    notes : mapping of str to str
        Where figures come from: a field's name, or "all", and its source.

    Raises
    ------
    OptionError
        A figure is not positive.
    """

    name: str
    memory_bytes: Bytes
    device_bandwidth: Rate
    device_random_rate: Rate
    device_atomic_rate: Rate
    copy_to_device: Rate
    copy_to_host: Rate
    remote_bandwidth: Rate
    remote_write_bandwidth: Rate
    remote_random_rate: Rate
    remote_atomic_rate: Rate
    pinned_random_rate: Rate
    prefetch_to_device: Rate
    prefetch_to_host: Rate
    prefetch_duplicate: Rate
    migrate_to_device: Rate
    evict_to_host: Rate
    fault_batch_seconds: Seconds
    block_service_seconds: Seconds
    cpu_fault_seconds: Seconds
    launch_seconds: Seconds
    readback_seconds: Seconds
    fault_wake_seconds: MaybeSeconds = 0.0
    prefetch_call_seconds: MaybeSeconds = 0.0
    step_seconds: Seconds = 8e-6
    arrival_seconds: Seconds = 10e-6
    operation_rate: Rate = 30e12
    faults_in_flight: Annotated[int, Within(1, 1 << 24)] = 256
    cache_bytes: Bytes = 50 << 20
    coherent: bool = False
    host_page_bytes: Bytes = PAGE
    pinned_reach_bytes: MaybeBytes = 0
    pinned_missed_rate: MaybeRate = 0.0
    peer_bandwidth: MaybeRate = 0.0
    peer_copy_bandwidth: MaybeRate = 0.0
    peer_random_rate: MaybeRate = 0.0
    peer_atomic_rate: MaybeRate = 0.0
    gpus: Annotated[int, Within(1, MOST_GPUS)] = 1
    peer_link: Literal["none", "pcie", "nvlink"] = "none"
    beyond: Literal["host", "peer"] = "host"
    host: Machine | None = None
    notes: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        try:
            check_fields(self, "machine profile")
        except ValueError as error:
            raise OptionError(remedy=str(error)) from None
        for item in fields(self):
            if item.type == "MaybeRate" and 0 < (rate := getattr(self, item.name)) < 1:
                remedy = f"machine profile.{item.name} must be 0 or lie in 1 … 1e+18, not {rate}"
                raise OptionError(remedy=remedy)
        if not self.name:
            raise OptionError(remedy="machine profile: name must be a text")
        if bool(self.pinned_reach_bytes) != bool(self.pinned_missed_rate):
            raise OptionError(
                remedy="machine profile: pinned_reach_bytes and pinned_missed_rate go together"
            )
        if self.host_page_bytes.bit_count() != 1 or not PAGE <= self.host_page_bytes <= BLOCK:
            raise OptionError(
                remedy="machine profile: host_page_bytes must be a power of two from 4,096 to 2 MiB"
            )
        if not all(isinstance(text, str) for note in self.notes.items() for text in note):
            raise OptionError(remedy="machine profile: notes must be a table of texts")

    @property
    def bytes_for_runs(self) -> int:
        """Bytes of its memory that a run may take: all but a context's.

        Raises
        ------
        OptionError
            There are none.
        """
        if self.memory_bytes <= CONTEXT:
            raise OptionError(
                remedy=f"machine {self.name} has {size(self.memory_bytes)} of device memory, of "
                f"which a CUDA context takes {size(CONTEXT)}, so that a run has none; name another "
                "machine, or correct memory_bytes in its file"
            )
        return self.memory_bytes - CONTEXT

    def with_peer(self) -> Machine:
        """Return the machine with another GPU's memory in the place of the host's.

        Examples
        --------
        >>> from louvain_um.placement.machine.profiles import H200
        >>> H200.with_peer().remote_bandwidth / H200.remote_bandwidth > 5
        True
        """
        if self.host is not None:
            return self
        return replace(
            self,
            beyond="peer",
            host=self,
            copy_to_device=self.peer_copy_bandwidth or self.copy_to_device,
            copy_to_host=self.peer_copy_bandwidth or self.copy_to_host,
            remote_bandwidth=self.peer_bandwidth or self.remote_bandwidth,
            remote_write_bandwidth=self.peer_bandwidth or self.remote_write_bandwidth,
            remote_random_rate=self.peer_random_rate or self.remote_random_rate,
            pinned_random_rate=self.peer_random_rate or self.pinned_random_rate,
            pinned_reach_bytes=0 if self.peer_random_rate else self.pinned_reach_bytes,
            pinned_missed_rate=0.0 if self.peer_random_rate else self.pinned_missed_rate,
            remote_atomic_rate=self.peer_atomic_rate or self.remote_atomic_rate,
        )

    def at(self, placement: Placement) -> Machine:
        """Return the machine with the figures of memory where a placement puts it.

        Examples
        --------
        >>> from louvain_um.placement.machine.profiles import H200
        >>> from louvain_um.placement.policy.policy import Placement
        >>> H200.with_peer().at(Placement("pinned")) is H200
        True
        """
        if placement.kind == "peer":
            return self.with_peer()
        return self if placement.kind == "split" or self.host is None else self.host

    def random_rate(self, nbytes: float, *, pinned: bool) -> float:
        """Return random 4-byte reads/s of so many bytes of the host, page-locked or managed.

        Examples
        --------
        >>> from louvain_um.placement.machine.profiles import H200
        >>> small, large = (H200.random_rate(size, pinned=True) for size in (1 << 29, 1 << 32))
        >>> small == H200.remote_random_rate > 8 * large
        True
        """
        if not pinned:
            return self.remote_random_rate
        if not self.pinned_reach_bytes:
            return self.pinned_random_rate
        near = min(1.0, self.pinned_reach_bytes / max(nbytes, 1))
        return 1 / (near / self.remote_random_rate + (1 - near) / self.pinned_missed_rate)

    def refuse_peer(self, placements: Iterable[Placement]) -> None:
        """Raise `OptionError` if one is in another GPU's memory, and no such GPU is named.

        Examples
        --------
        >>> from louvain_um.placement.machine.profiles import H200
        >>> from louvain_um.placement.policy.policy import Placement
        >>> H200.with_peer().refuse_peer([Placement("peer")])
        """
        if self.host is None and any(placement.kind == "peer" for placement in placements):
            raise OptionError(
                remedy="peer places arrays in another GPU's memory; name one that has room, as in "
                "peer_memory='cuda:1', or place them elsewhere"
            )

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain data, in the order in which they are documented."""
        names = (item.name for item in fields(self) if item.name != "host")
        values: dict[str, Any] = {name: getattr(self, name) for name in names}
        values["notes"] = dict(self.notes)
        if self.host_page_bytes == PAGE:  # as of profiles and sweeps without it
            del values["host_page_bytes"]
        if self.gpus == 1 and self.peer_link == "none":
            del values["gpus"], values["peer_link"]
        if not self.pinned_reach_bytes:
            del values["pinned_reach_bytes"], values["pinned_missed_rate"]
        return values

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write the profile as TOML (a name ending in .toml) or JSON (any other), whole or not."""
        values = self.to_dict()
        toml = Path(path).suffix == ".toml"
        text = _toml(values) if toml else json.dumps(values, indent=2, default=as_json)
        write_text(path, text.rstrip("\n") + "\n", force=force)


def _toml(values: Mapping[str, Any]) -> str:
    """Write flat figures and one table of notes; JSON's texts and numbers are TOML's, too."""
    figures = {name: value for name, value in values.items() if name != "notes"}
    lines = [f"{name} = {json.dumps(v, default=as_json)}" for name, v in figures.items()]
    notes = [f"{json.dumps(name)} = {json.dumps(v)}" for name, v in values["notes"].items()]
    return "\n".join([*lines, "", "[notes]", *notes])
