"""One detection of all ranks, as each of them runs it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from louvain_um.core.hierarchy import detect
from louvain_um.core.objective import takes_extended_rule
from louvain_um.core.search import search
from louvain_um.cpu.engine import CpuEngine
from louvain_um.cpu.level import Host
from louvain_um.distributed.carriers.threads import Meeting, ThreadCommunicator, run_threads
from louvain_um.distributed.checkpoint import Checkpoint
from louvain_um.distributed.communicator import Communicator, Exchange, RankTimes, version_digest
from louvain_um.distributed.engine import COLLAPSE_ARCS, RankEngine, Steps
from louvain_um.distributed.files.writing import RankParts
from louvain_um.distributed.host_steps import HostSteps
from louvain_um.distributed.partition import RowBlock, blocks_of, join_blocks
from louvain_um.errors import LouvainUmError, OptionError
from louvain_um.events import Observer, ignore
from louvain_um.gpu.runtime.device import refuse_high_degrees
from louvain_um.graph.graph import Graph
from louvain_um.options import Options
from louvain_um.results.communities import Communities


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
            steps: Steps = HostSteps(local.host, ranks)
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
) -> tuple[Communicator, Steps]:
    """Take this rank's GPU until a stack ends; return how ranks exchange, and the steps there."""
    from louvain_um.distributed.carriers.nccl import NcclCommunicator, NcclLink
    from louvain_um.distributed.device_steps import DeviceSteps, StagedLink
    from louvain_um.distributed.visible import on_device

    device = stack.enter_context(on_device(ranks, exchange))
    if exchange == "host":
        steps = DeviceSteps(host, device, StagedLink(ranks))
    else:
        ranks = own = stack.enter_context(NcclCommunicator(ranks))
        steps = DeviceSteps(host, device, NcclLink(own))
    stack.callback(steps.close)
    return ranks, steps


def refuse_mixed_versions(ranks: Communicator) -> None:
    """Raise unless all ranks run the same rules and kernels."""
    own = np.frombuffer(bytes.fromhex(version_digest()), np.uint8)
    every = ranks.allgatherv(own)
    if any(not np.array_equal(one, own) for one in every):
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


def detect_in_threads(
    graph: Graph,
    options: Options,
    observer: Observer = ignore,
    *,
    ranks: int,
    patience: float = 600.0,
    communicator: Callable[[Meeting, int], ThreadCommunicator] = ThreadCommunicator,
    **values: Any,
) -> Communities:
    """Detect communities with ranks that are threads of this process."""
    blocks = blocks_of(graph, ranks)
    options = replace(options, threads=options.threads or 1)

    def task(own: ThreadCommunicator) -> Communities:
        rank = own.rank
        watcher = ignore if rank else observer
        return detect_on_rank(own, blocks[rank], options, watcher, **values)

    results = run_threads(task, ranks, patience=patience, communicator=communicator)
    return replace(results[0], graph=graph)
