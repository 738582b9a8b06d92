"""Save a tracker with its graph to one `.npz` file and load them again."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from louvain_um.core.numbering import distinct
from louvain_um.core.plain_data import (
    Within,
    build,
    names_of_bytes,
    names_to_bytes,
    parse,
    read_archive,
    to_bytes,
    write_archive,
)
from louvain_um.dynamic.graph import DynamicGraph
from louvain_um.dynamic.tracking.following import (
    MOST_PERIOD,
    Connected,
    Followed,
    Follower,
    FollowOptions,
    Mode,
)
from louvain_um.dynamic.tracking.host_steps import HostSteps, named, partition_of
from louvain_um.dynamic.tracking.identity import CommunityIds
from louvain_um.dynamic.tracking.tracked import ROW, History
from louvain_um.errors import LouvainUmError
from louvain_um.formats.file_types import path_text
from louvain_um.formats.ids import name_array
from louvain_um.graph.graph import Graph
from louvain_um.options import Effort, Method, Options

SCHEMA: Final = "louvain-um/tracker"
VERSION: Final = 1

REFUSAL: Final = "is not a saved tracker, or is damaged; write it with Tracker.save"

Whole = Annotated[int, Within(0)]
Positive = Annotated[float, Within(0)]
Share = Annotated[float, Within(0, 1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """What a file says in addition to its arrays."""

    schema: Literal["louvain-um/tracker"]
    schema_version: Literal[1]
    store: str
    weighted: bool
    scale: float
    epoch: Whole
    mode: Mode
    renew: Share
    audit: Share | None
    connected: Connected
    method: Method
    effort: Effort = "default"
    n_iterations: Annotated[int, Within(-1)] | None = None
    best_of: Annotated[int, Within(1)] = 1
    resolution: float
    seed: Whole
    turned: Whole
    changed: Positive
    regained: Positive
    period: Annotated[int, Within(1, MOST_PERIOD)]
    next_id: Whole


FOLLOWING: Final = (
    "mode", "renew", "audit", "connected", "effort", "n_iterations", "best_of",
)  # fmt: skip
OF_RUN: Final = ("method", "resolution", "seed")
"""Options of following, and of its runs, that a file says."""


def values_of(held: Any, names: tuple[str, ...]) -> dict[str, Any]:
    """Return some attributes of an object by name."""
    return {name: getattr(held, name) for name in names}


def save(tracker: Follower, history: History, path: str | Path, *, force: bool = False) -> None:
    """Write a tracker's parts; `Tracker.save` documents the arguments."""
    path = path_text(path)
    if Path(path).suffix != ".npz":
        raise LouvainUmError(f"{path}: a tracker is saved as .npz; choose such a name")
    options, state, get = tracker.options, tracker.host_state(), tracker.steps.memory.get
    graph, snapshot = tracker.graph, tracker.graph.host_snapshot()
    head = Head(
        schema=SCHEMA,
        schema_version=VERSION,
        store=graph.store,
        weighted=graph.weighted,
        scale=graph.scale,
        epoch=graph.epoch,
        **values_of(options, FOLLOWING),
        **values_of(options.run, OF_RUN),
        turned=state.turnover,
        changed=state.changed,
        regained=state.regained,
        period=state.period,
        next_id=tracker.identity.next_id,
    )
    arrays: dict[str, NDArray[Any]] = {
        "offsets": snapshot.offsets,
        "targets": snapshot.targets,
        "loops": snapshot.loops,
        "alive": graph.alive,
        "removed": graph.removed,
        "names": state.partition.names,
        "touched": get(tracker.steps.touched),
        "ids": get(tracker.identity.of_name),
        "head": to_bytes(dataclasses.asdict(head)),
        "history": history.array(),
    }
    if snapshot.weights is not None:
        arrays["weights"] = snapshot.weights
    if graph.names is not None:
        arrays["vertex_names"] = names_to_bytes(graph.names.tolist())
    write_archive(path, arrays, force=force)


def load(path: str | Path, threads: int | None = None) -> tuple[Follower, History]:
    """Read what `save` wrote.

    Raises
    ------
    LouvainUmError
        The file is no tracker, is damaged or cannot be read.
    """
    path = path_text(path)
    refusal = f"{path}: {REFUSAL}"
    arrays = read_archive(path, refusal)
    try:
        return _saved(arrays, threads)
    except (LouvainUmError, KeyError, TypeError, ValueError, IndexError, OverflowError):
        raise LouvainUmError(refusal) from None


def _saved(arrays: dict[str, NDArray[Any]], threads: int | None) -> tuple[Follower, History]:
    head: Head = build(Head, parse(arrays["head"].tobytes()), "tracker")
    weights = arrays.get("weights")
    if (weights is not None) != head.weighted:
        raise ValueError("weights are missing or too many")
    rows = (arrays["offsets"], arrays["targets"], weights, arrays["loops"], head.scale)
    graph = DynamicGraph.restored(
        Graph(*rows, _names(arrays)),
        arrays["alive"],
        head.epoch,
        arrays.get("removed"),  # older files have none
        store=head.store,
        threads=threads,
    )
    view, names, touched, ids = graph.view(), arrays["names"], arrays["touched"], arrays["ids"]
    n = len(names)  # vertices that were added since the last batch are in no community yet
    for array, dtype in ((names, np.uint32), (touched, np.uint64), (ids, np.int64)):
        if array.dtype != dtype or array.shape != (n,) or n > graph.n_vertices:
            raise ValueError("an array has another length or type")
    if n and (names.max() >= n or not np.array_equal(named(names), names)):
        raise ValueError("communities are not named after their smallest members")
    history = arrays["history"]
    if history.dtype != ROW or history.ndim != 1:
        raise ValueError("the history has other columns")
    new = np.arange(n, graph.n_vertices, dtype=np.uint32)
    sums = partition_of(view, np.concatenate([names, new]))
    alive, degrees = ids[names] >= 0, view.degrees[:n]
    alone = np.flatnonzero(~alive)
    given = ids[distinct(names[alive])]
    if (
        (alive & ~graph.alive[:n]).any()
        or (names[alone] != alone).any()
        or degrees[alone].any()
        or np.count_nonzero(ids >= 0) != len(given)
        or (ids < -1).any()
        or (given >= head.next_id).any()
        or len(distinct(given)) != len(given)
    ):
        raise ValueError("ids do not fit the communities")
    run = Options(device="cpu", threads=threads, **values_of(head, OF_RUN))
    options = FollowOptions(run=run, **values_of(head, FOLLOWING))
    state = Followed(
        partition=dataclasses.replace(sums, names=names),
        turnover=head.turned,
        changed=head.changed,
        regained=head.regained,
        period=head.period,
    )
    steps = HostSteps(graph, options, (names, touched, alive))
    saved = state, CommunityIds(ids, head.next_id)
    return Follower(graph, options, steps, saved), History(history)


def _names(arrays: dict[str, NDArray[Any]]) -> NDArray[Any] | None:
    """Return the vertices' names, None for removed vertices; None for a graph without names."""
    if "vertex_names" not in arrays:
        return None
    return name_array(names_of_bytes(arrays["vertex_names"]))
