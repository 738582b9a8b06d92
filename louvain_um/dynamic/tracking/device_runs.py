"""Runs of the GPU engine for a tracker: from nothing, and single cycles from given communities."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from louvain_um.core import hierarchy
from louvain_um.core.hierarchy import Run, Stopwatch
from louvain_um.core.search import search
from louvain_um.dynamic.graph import DynamicGraph
from louvain_um.dynamic.tracking.following import Report
from louvain_um.dynamic.tracking.host_steps import FOLLOWING_CYCLE, RELEASED
from louvain_um.errors import MemoryBudgetError
from louvain_um.events import ignore
from louvain_um.options import Options
from louvain_um.results.communities import Communities


class Runs(Protocol):
    """Runs on a graph's rows; labels are on its device, any number below n for a community."""

    def detect(self, graph: DynamicGraph, options: Options, report: Report) -> Any:
        """Return the labels of a run from single vertices."""

    def cycle(
        self, graph: DynamicGraph, start: Any, awake: Any, options: Options, report: Report
    ) -> tuple[Any, int] | None:
        """Run one cycle of levels; see `following.Steps.renew`."""


class DeviceRuns:
    """Runs on the current device, on a compressed copy of the rows."""

    def detect(self, graph: DynamicGraph, options: Options, report: Report) -> Any:
        """Return the labels of a run from single vertices."""
        import cupy

        from louvain_um.gpu.engine import GpuEngine

        def run(options: Options) -> Communities:
            with GpuEngine(options, ignore) as engine:
                return hierarchy.detect(engine, graph.snapshot(), options, ignore)

        found = search(run, self._options(options))
        report.arcs_visited += sum(level.arcs_visited for level in found.levels)
        return cupy.asarray(found.labels)

    def cycle(
        self, graph: DynamicGraph, start: Any, awake: Any, options: Options, report: Report
    ) -> tuple[Any, int] | None:
        """Run one cycle of levels from given communities, or from single vertices."""
        import cupy

        from louvain_um.gpu.engine import GpuEngine
        from louvain_um.gpu.relabel import relabel

        run_options = self._options(options)
        with GpuEngine(run_options, ignore) as engine:
            level = engine.load(graph.snapshot())
            plan = engine.plan
            if plan and engine.prepared.blocks is not None and awake is not None:
                raise MemoryBudgetError(
                    plan.in_core_bytes,
                    plan.limit or 0,
                    remedy="raise device_budget, or follow the graph on the CPU",
                )
            run = Run(engine, run_options, Stopwatch(ignore), renews=start is not None)
            cycle = 0 if start is None else FOLLOWING_CYCLE
            level.cycle, level.start, level.awake = cycle, start, awake
            run.best = RELEASED
            path = run.cycle(level, cycle)
            if len(path) == 1:
                return None
            report.arcs_visited += sum(level.arcs_visited for level in run.levels)
            labels = cupy.empty(graph.n_vertices, np.uint32)
            relabel.compose(path, labels)
            return labels, engine.sums(path[-1]).inside

    def _options(self, options: Options) -> Options:
        """Return options of a run on the device."""
        from louvain_um.placement.policy.find import find_policy

        memory = find_policy(options.memory)
        return replace(options, device="cuda", memory=memory)
