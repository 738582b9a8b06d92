"""One detection of all ranks, as each of them runs it."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from louvain_um.core.hierarchy import detect, search
from louvain_um.core.objective import takes_extended_rule
from louvain_um.cpu.engine import CpuEngine
from louvain_um.cpu.level import Host
from louvain_um.distributed.checkpoint import Checkpoint
from louvain_um.distributed.communicator import Communicator, Exchange, RankTimes, version_digest
from louvain_um.distributed.engine import COLLAPSE_ARCS, RankEngine
from louvain_um.distributed.files.writing import RankParts
from louvain_um.distributed.host_steps import RankHostSteps
from louvain_um.distributed.partition import RowBlock, join_blocks
from louvain_um.errors import DeviceUnavailableError, LouvainUmError, OptionError
from louvain_um.events import Observer, ignore
from louvain_um.formats.file_types import first_line_of
from louvain_um.gpu.runtime.device import capabilities, pick, refuse_high_degrees
from louvain_um.options import Options
from louvain_um.placement.memory import cuda_calls
from louvain_um.results.communities import Communities

if TYPE_CHECKING:
    from louvain_um.distributed.device_steps import RankDeviceSteps


def detect_on_rank(
    ranks: Communicator,
    block: RowBlock,
    options: Options,
    observer: Observer = ignore,
    *,
    checkpoint: str | Path | None = None,
    collapse_arcs: int = COLLAPSE_ARCS,
    labels: str | None = None,
    force: bool = False,
    exchange: Exchange = "host",
) -> Communities:
    """Detect communities with all ranks, each of which calls this with its own rows."""
    refuse_extended_rule(options)
    if checkpoint is not None and options.best_of > 1:
        problem = "a checkpoint is of one run"
        raise OptionError("best_of", options.best_of, "drop {option} or checkpoint", problem)
    refuse_mixed_versions(ranks)
    with ExitStack() as outer:
        if options.device == "cuda":
            refuse_high_degrees(block)
        parts = None if labels is None else RankParts(ranks, labels, force=force)
        if parts is not None:
            outer.callback(parts.close)
        graph = join_blocks(ranks, block)

        def on_ranks(options: Options) -> Communities:
            local = CpuEngine(options, observer, shows=False)
            steps: RankHostSteps | RankDeviceSteps = RankHostSteps(local.host, ranks)
            others = ranks
            with ExitStack() as stack:
                if options.device == "cuda":
                    others, steps = device_steps(stack, ranks, local.host, exchange)
                saved = checkpoint and Checkpoint(checkpoint, others, graph, options)
                engine = RankEngine(
                    local, steps, others, collapse_arcs=collapse_arcs, checkpoint=saved or None
                )
                times = RankTimes(others.traffic, observer)
                result = detect(engine, graph, options, times)
                found = {"replayed": engine.replayed, "by_rank": times.of_all(others)}
                return replace(result, provenance={**result.provenance, **found})

        result = replace(search(on_ranks, options), vertex_names=block.names)
        found: dict[str, Any] = {"exchange": exchange} if options.device == "cuda" else {}
        if block.notes:
            found["notes"] = list(block.notes)
        if parts is not None:
            found["files"] = parts.write(result, block)
        return replace(result, provenance={**result.provenance, **found})


def device_steps(
    stack: ExitStack, ranks: Communicator, host: Host, exchange: Exchange
) -> tuple[Communicator, RankDeviceSteps]:
    """Take this rank's GPU until a stack ends; return how ranks exchange, and the steps there."""
    from louvain_um.distributed.carriers.nccl import NcclCommunicator, NcclLink
    from louvain_um.distributed.device_steps import RankDeviceSteps, StagedLink

    device = stack.enter_context(on_device(ranks, exchange))
    if exchange == "host":
        steps = RankDeviceSteps(host, device, StagedLink(ranks))
    else:
        ranks = nccl = stack.enter_context(NcclCommunicator(ranks))
        steps = RankDeviceSteps(host, device, NcclLink(nccl))
    stack.callback(steps.close)
    return ranks, steps


def refuse_mixed_versions(ranks: Communicator) -> None:
    """Raise unless all ranks run the same rules and kernels."""
    local = np.frombuffer(bytes.fromhex(version_digest()), np.uint8)
    every = ranks.allgatherv(local)
    if any(not np.array_equal(one, local) for one in every):
        raise LouvainUmError(
            "the ranks run different versions of louvain-um; install the same one everywhere"
        )


def refuse_extended_rule(options: Options) -> None:
    """Raise for what ranks do not do: other objectives, and constraints."""
    if takes_extended_rule(options):
        raise OptionError(
            remedy="detect in one process",
            problem="ranks maximise modularity only, without constraints",
        )
    if options.effort == "best":
        problem = "effort='best' starts from given communities, and ranks from single vertices"
        raise OptionError("best_of", options.best_of, "pass {option}=10 instead", problem)


def refuse_policies(options: Options) -> None:
    """Raise for what runs on several devices do not do: policies, budgets, a neighbour's memory."""
    policy = options.memory if isinstance(options.memory, str) else options.memory.name
    given = {
        "memory": None if policy in ("auto", "device") else policy,
        "device_budget": options.device_budget,
        "peer_memory": options.peer_memory,
        "ballast": options.ballast,
    }
    for option, value in given.items():
        if value is not None:
            problem = "several devices hold everything in their own memory"
            raise OptionError(option, value, "drop {option}, or use one device", problem=problem)


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


def gather_visible(ranks: Communicator, visible: Visible) -> list[Visible]:
    """Return what every rank sees, by rank; every rank calls this."""
    sent = np.frombuffer(json.dumps(asdict(visible)).encode(), np.uint8)
    found = [json.loads(bytes(each)) for each in ranks.allgatherv(sent)]
    return [Visible(**{**each, "devices": tuple(each["devices"])}) for each in found]


def device_of(rank: int, seen: Sequence[Visible], exchange: Exchange) -> int:
    """Return the number of the GPU that a rank uses."""
    for each, visible in enumerate(seen):
        if visible.problem:
            raise DeviceUnavailableError(f"{name_of(each, seen)} has no GPU: {visible.problem}")
    numbers = [
        sum(other == visible for other in seen[:each]) % len(visible.devices)
        for each, visible in enumerate(seen)
    ]
    if exchange == "nccl":
        refuse_without_nccl(seen, numbers)
    return numbers[rank]


def refuse_without_nccl(seen: Sequence[Visible], numbers: Sequence[int]) -> None:
    """Raise unless NCCL is on all ranks, and each has a GPU of its own."""
    for each, visible in enumerate(seen):
        if visible.no_nccl:
            raise DeviceUnavailableError(
                f"{name_of(each, seen)}: {visible.no_nccl}; pip install nvidia-nccl-cu13 "
                "(or -cu12), or use exchange='host'"
            )
    taken = dict[tuple[str, str], int]()
    for each, (visible, number) in enumerate(zip(seen, numbers, strict=True)):
        place = visible.host, visible.devices[number]
        first = taken.setdefault(place, each)
        if first != each:
            raise DeviceUnavailableError(
                f"ranks {first} and {each} would share the GPU {place[1]} of {visible.host}, which "
                "NCCL refuses; start one process for each GPU, or use exchange='host'"
            )


def name_of(rank: int, seen: Sequence[Visible]) -> str:
    """Return a rank's name for messages."""
    return f"rank {rank} of {len(seen)} (on {seen[rank].host})"


@contextmanager
def on_device(ranks: Communicator, exchange: Exchange) -> Iterator[int]:
    """Make this rank's GPU current, once all ranks have one; yield its number."""
    visible = visible_here()
    if exchange == "nccl" and not visible.problem:  # to ask makes CuPy warn where it is missing
        visible = replace(visible, no_nccl=nccl_problem())
    device = device_of(ranks.rank, gather_visible(ranks, visible), exchange)
    with cuda_calls.current(device):
        cuda_calls.bind(device)
        yield device
