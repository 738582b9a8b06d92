"""The arrays of a changing graph on a device, declared before there is one, for `lu.plan`."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Final

import numpy as np

from louvain_um.errors import OptionError
from louvain_um.gpu.dynamic.batch_arrays import MOST_LISTED, scratch_places
from louvain_um.gpu.dynamic.follow_arrays import follow_bytes
from louvain_um.gpu.dynamic.pool import SLACK
from louvain_um.placement.program import Phase, Program, ProgramArray, Stream
from louvain_um.placement.program.accesses import Accesses

PAGES: Final = 1.25
"""Places of a pool by its arcs: pages of 4·2ᵏ and 6·2ᵏ arcs, of which few are free."""

PHASES: Final = ("update", "rebuild", "renew")


@dataclass(frozen=True, slots=True, kw_only=True)
class DynamicSize:
    """The size of a graph on a device that will change; its plan tells bytes, not times.

    Parameters
    ----------
    n_vertices, n_arcs : int
        At the beginning; an undirected edge is two arcs.
    growth : float
        Arcs at most, relative to the beginning.
    batch : int
        Edges of a batch, at most.
    weighted : bool
        Whether arcs have weights, of 32 bits.
    follow : bool
        Whether a `Tracker` follows.
    hub : int
        Arcs of the longest row; they count for following.

    Examples
    --------
    >>> import louvain_um as lu
    >>> from louvain_um.dynamic.declared import DynamicSize
    >>> size = DynamicSize(n_vertices=1 << 22, n_arcs=156_000_000, batch=1_000_000)
    >>> {phase: held >> 20 for phase, held in lu.plan(dynamic=size).device_bytes.items()}
    {'update': 1092, 'rebuild': 1882}
    """

    n_vertices: int
    n_arcs: int
    growth: float = 1.0
    batch: int = 10_000
    weighted: bool = False
    follow: bool = False
    hub: int = 0

    def __post_init__(self) -> None:
        for name in ("n_vertices", "n_arcs", "batch", "hub"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 0:
                raise OptionError(name, value, "must be a whole number of at least 0")
        if self.batch > MOST_LISTED:
            raise OptionError("batch", self.batch, f"must be at most {MOST_LISTED:,}")
        if not 1 <= self.growth < 1e6:
            raise OptionError("growth", self.growth, "must be a number of at least 1")


def declare(size: DynamicSize) -> Program:
    """Return the arrays as a program with the phases update, rebuild and, if followed, renew."""
    n, arcs = size.n_vertices, ceil(size.n_arcs * size.growth)
    phases = PHASES if size.follow else PHASES[:2]
    arrays = [
        *_kept("rows", (("spans", 2 * n, "i8"), ("classes", n, "u1"))),
        *_kept("vertices", (("loops", n, "u8"), ("degrees", n, "u8"), ("alive", n, "u1"))),
        *_pool(size, ceil(arcs * PAGES * (1 + SLACK))),
        *_batch(size, n, arcs),
    ]
    if size.follow:
        for name, held in follow_bytes(n, arcs, size.hub).items():
            arrays.append(_array(f"following.{name}", held, "u1", "following", None))
        arrays.append(_array("run", run_bytes(size, n, arcs), "u1", "run", ("renew",)))
    return Program(name="dynamic", arrays=arrays, phases=[Phase(name=name) for name in phases])


def run_bytes(size: DynamicSize, vertices: int, arcs: int) -> int:
    """Return what a renewal takes: a compressed copy of the rows, and a run of Leiden on it."""
    from louvain_um.gpu.memory.array_specs import declare as declare_run
    from louvain_um.gpu.memory.shape import Shape, sums_of_ones
    from louvain_um.placement.layout import device_bytes_in_core

    shape = Shape(
        vertices=vertices,
        arcs=arcs,
        weight_bytes=4 if size.weighted else 0,
        sum_bytes=8 if size.weighted else sums_of_ones(arcs),
        method="leiden",
    )
    return device_bytes_in_core(declare_run(shape))


def _array(
    name: str, shape: int, dtype: str, group: str, phases: tuple[str, ...] | None
) -> ProgramArray:
    """Return an array that must be on the device."""
    return ProgramArray(
        name=name, shape=shape, dtype=dtype, group=group, phases=phases, on_device=True
    )


def _arcs(name: str, places: int, phases: tuple[str, ...] | None, reads: Accesses) -> ProgramArray:
    """Return an array of a pool, which may end on the host."""
    return ProgramArray(
        name=name, shape=places, dtype="u4", group="graph", phases=phases, reads=reads,
        writes=Stream(),
    )  # fmt: skip


def _kept(group: str, arrays: tuple[tuple[str, int, str], ...]) -> list[ProgramArray]:
    """Return arrays that live as long as the graph."""
    return [_array(name, shape, dtype, group, None) for name, shape, dtype in arrays]


def _pool(size: DynamicSize, places: int) -> list[ProgramArray]:
    """Return targets and weights, and those that a rebuild makes before the old ones go."""
    names = ("targets", "weights") if size.weighted else ("targets",)
    return [
        *(_arcs(name, places, None, Stream()) for name in names),
        *(_arcs(f"new_{name}", places, ("rebuild",), ()) for name in names),
    ]


def _batch(size: DynamicSize, vertices: int, arcs: int) -> list[ProgramArray]:
    """Return what a batch takes while it is carried out; a rebuild is part of one."""
    places, scratch = scratch_places(
        size.batch, vertices, arcs, weighted=size.weighted, ordered=size.weighted, paged=True
    )
    del places
    phases = ("update", "rebuild")
    given = [("given", size.batch, "i8"), ("order", 2 * size.batch, "i8")]
    return [
        _array(name, shape, dtype, "batch", phases)
        for name, shape, dtype in (
            ("keys", 2 * size.batch, "u8"),
            ("sorting", 2 * size.batch, "u8"),
            *(given if size.weighted else ()),
            ("scratch", scratch, "u1"),
            ("change", 24 * size.batch, "u1"),
        )
    ]
