"""Which GPU each rank of a cluster uses, agreed on before anything is read."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace

import numpy as np

from louvain_um.distributed.communicator import Communicator, Exchange
from louvain_um.errors import DeviceUnavailableError
from louvain_um.formats.file_types import first_line_of
from louvain_um.gpu.runtime.device import capabilities, pick
from louvain_um.placement.memory import cuda_calls


@dataclass(frozen=True, slots=True, kw_only=True)
class Visible:
    """The GPUs that a process sees."""

    host: str
    devices: tuple[str, ...]
    problem: str = ""
    no_nccl: str = ""


def visible_here() -> Visible:
    """Return the GPUs that this process sees, as `CUDA_VISIBLE_DEVICES` lets it."""
    host = platform.node()
    try:
        pick("cuda")
        numbers = range(len(capabilities()))
        addresses = tuple(
            str(cuda_calls.cupy_runtime().deviceGetPCIBusId(number)) for number in numbers
        )
    except DeviceUnavailableError as error:
        return Visible(host=host, devices=(), problem=error.reason)
    return Visible(host=host, devices=addresses)


def nccl_problem() -> str:
    """Return why NCCL cannot be used here; empty if it can."""
    try:
        from cupy.cuda import nccl

        if not getattr(nccl, "available", True):
            return "CuPy finds no NCCL"
        nccl.get_version()
    except Exception as error:  # CuPy without NCCL fails in several ways
        return f"CuPy finds no NCCL ({first_line_of(error)})"
    return ""


def gather_visible(ranks: Communicator, own: Visible) -> list[Visible]:
    """Return what every rank sees, by rank; every rank calls this."""
    sent = np.frombuffer(json.dumps(asdict(own)).encode(), np.uint8)
    found = [json.loads(bytes(each)) for each in ranks.allgatherv(sent)]
    return [Visible(**{**each, "devices": tuple(each["devices"])}) for each in found]


def device_of(rank: int, seen: Sequence[Visible], exchange: Exchange) -> int:
    """Return the number of the GPU that a rank uses."""
    for each, own in enumerate(seen):
        if own.problem:
            raise DeviceUnavailableError(f"{name_of(each, seen)} has no GPU: {own.problem}")
    numbers = [
        sum(other == own for other in seen[:each]) % len(own.devices)
        for each, own in enumerate(seen)
    ]
    if exchange == "nccl":
        refuse_without_nccl(seen, numbers)
    return numbers[rank]


def refuse_without_nccl(seen: Sequence[Visible], numbers: Sequence[int]) -> None:
    """Raise unless NCCL is on all ranks, and each has a GPU of its own."""
    for each, own in enumerate(seen):
        if own.no_nccl:
            raise DeviceUnavailableError(
                f"{name_of(each, seen)}: {own.no_nccl}; pip install nvidia-nccl-cu13 (or -cu12), "
                "or use exchange='host'"
            )
    taken = dict[tuple[str, str], int]()
    for each, (own, number) in enumerate(zip(seen, numbers, strict=True)):
        place = own.host, own.devices[number]
        first = taken.setdefault(place, each)
        if first != each:
            raise DeviceUnavailableError(
                f"ranks {first} and {each} would share the GPU {place[1]} of {own.host}, which "
                "NCCL refuses; start one process for each GPU, or use exchange='host'"
            )


def name_of(rank: int, seen: Sequence[Visible]) -> str:
    """Return a rank's name for messages."""
    return f"rank {rank} of {len(seen)} (on {seen[rank].host})"


@contextmanager
def on_device(ranks: Communicator, exchange: Exchange) -> Iterator[int]:
    """Make this rank's GPU current, once all ranks have one; yield its number."""
    own = visible_here()
    if exchange == "nccl" and not own.problem:  # to ask makes CuPy warn where it is missing
        own = replace(own, no_nccl=nccl_problem())
    device = device_of(ranks.rank, gather_visible(ranks, own), exchange)
    with cuda_calls.current(device):
        cuda_calls.bind(device)
        yield device
