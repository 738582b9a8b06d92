"""Communities that follow a changing graph."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from louvain_um.core.interrupts import uninterrupted
from louvain_um.dynamic.batches.changes import Change
from louvain_um.dynamic.graph import DynamicGraph
from louvain_um.dynamic.tracking import tracker_file
from louvain_um.dynamic.tracking.device_steps import DeviceRuns, DeviceSteps, Runs
from louvain_um.dynamic.tracking.following import (
    BatchReport,
    Connected,
    Followed,
    Follower,
    FollowOptions,
    Mode,
    Pending,
)
from louvain_um.dynamic.tracking.host_steps import HostSteps
from louvain_um.dynamic.tracking.tracked import ROW, History, LazyCommunities, TrackedCommunities
from louvain_um.errors import GraphError, OptionError, checks_kinds
from louvain_um.options import Effort, Method, Options

if TYPE_CHECKING:
    import pandas as pd


REPORTED: Final = tuple(name for name in ROW.names or () if name in BatchReport.__slots__)
"""Columns of a history that are of the steps."""


class Tracker:
    """Communities that follow a `DynamicGraph`, batch by batch.

    After each batch, disconnected communities are split, and vertices next to changes move (a
    *frontier*). By this alone, modularity would decay. Once a share `renew` of the weight has
    changed against the communities, a *renewal* therefore frees each vertex of whose weight that
    share has changed, and runs a cycle of Leiden from there; its result is taken unless modularity
    is lower. An *audit* compares with a run from single vertices; the more renewals regain, the
    sooner it comes. Modularity is exact after every batch. The result depends on the graph at the
    beginning, its batches, their boundaries, the options and the seed, not on threads or the store.

    Parameters
    ----------
    graph : DynamicGraph
        Pass every batch applied to it to `update`. Communities of a graph on a device
        are followed there, with the same results; other modes than "follow" copy its rows.
    seed : int
        0 … 2³² − 1.
    renew : float
        Share of 2m that may change against the communities (weight lost inside them or gained
        between them) before they are renewed.
    audit : float or None
        Relative lead in modularity from which the communities of an audit are taken, and which
        trackers may lose on average between two audits; None for no audits.
    method : {"leiden", "louvain"}
        Method of renewals and audits. With "leiden" no community is disconnected after a renewal.
    resolution : float
        γ; larger values give smaller communities.
    connected : {"renewal", "always"}
        Whether communities that vertices left are split after renewals only, or after every
        batch.
    effort : {"fast", "default", "best"}
    n_iterations : int, optional
    best_of : int
        Of the run at the beginning and of audits; see `louvain`.
    mode : {"follow", "frontier", "screening", "naive", "static"}
        "follow" as above. The others serve for comparison: Louvain from the previous
        communities, at first with the vertices next to the change active ("frontier": Dynamic
        Frontier, Sahu 2024), also their neighbours and communities ("screening": delta-screening,
        Zarayeneh and Kalyanaraman 2021), or all ("naive": Aynaud and Guillaume 2010); or the
        method from single vertices after each batch ("static").
    threads : int, optional
        All cores by default. Labels do not depend on it.

    Raises
    ------
    OptionError
        A value outside its range.

    Examples
    --------
    >>> import louvain_um as lu
    >>> g = lu.DynamicGraph(lu.Graph.from_edges([0, 1, 2, 3, 4, 5], [1, 2, 0, 4, 5, 3]))
    >>> t = lu.Tracker(g)
    >>> t.communities.ids.tolist()
    [0, 0, 0, 1, 1, 1]
    >>> r = t.update(g.apply(insert=([2, 2], [4, 5]), delete=([2, 2], [0, 1])))
    >>> r.ids.tolist(), r.changed.tolist(), r.events["kind"].tolist()
    ([0, 0, 1, 1, 1, 1], [2], ['shrank', 'grew'])
    """

    @checks_kinds
    def __init__(
        self,
        graph: DynamicGraph,
        seed: int = 0,
        renew: float = 0.02,
        audit: float | None = 0.003,
        *,
        method: Method = "leiden",
        resolution: float = 1.0,
        connected: Connected = "renewal",
        effort: Effort = "default",
        n_iterations: int | None = None,
        best_of: int = 1,
        mode: Mode = "follow",
        threads: int | None = None,
    ) -> None:
        if not isinstance(graph, DynamicGraph):
            raise OptionError(
                remedy=f"communities follow a DynamicGraph, not {type(graph).__name__}; "
                "pass Tracker(DynamicGraph(graph))"
            )
        run = Options(
            method=method, resolution=resolution, seed=seed, device="cpu", threads=threads
        )
        self.options = FollowOptions(
            mode=mode, renew=renew, audit=audit, connected=connected, effort=effort,
            n_iterations=n_iterations, best_of=best_of, run=run,
        )  # fmt: skip
        with graph.unchanged():
            self._begin_following(graph)

    def _begin_following(self, graph: DynamicGraph) -> None:
        """Begin with the communities of a first run, where the graph is."""
        if graph.device_store is None or self.options.mode != "follow":
            self._begin(Follower(graph, self.options, HostSteps(graph, self.options)), History())
        elif graph.device_store.chained:
            raise OptionError(
                remedy=f"communities follow contiguous rows on a device, not {graph.store!r}: "
                "use store='rows'"
            )
        else:
            self._follow_on_device(graph, DeviceRuns())

    def _follow_on_device(self, graph: DynamicGraph, runs: Runs) -> None:
        """Begin on the device that the graph is on."""
        with graph.device_store.device.errors():
            steps = DeviceSteps(graph, self.options, runs)
            follower = Follower(graph, self.options, steps)
        self._begin(follower, History())

    def _begin(self, follower: Follower, history: History) -> None:
        """Begin with communities that were found or saved."""
        self.graph, self._follower, self._history = follower.graph, follower, history
        self.epoch = self.graph.epoch
        """Epoch of the graph that the communities are of."""
        self._total = self.graph.total_weight
        self.communities: TrackedCommunities = self._result(follower.current, {})
        """The communities as they are now."""

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write tracker and graph to one file, from which `load` continues.

        Parameters
        ----------
        path : path
            Ends in ``.npz``.
        force : bool
            Whether an existing file is replaced.

        Warns
        -----
        GraphWarning
            Names of vertices, such as dates, that are text when they are loaded.

        Raises
        ------
        LouvainUmError
            The file exists or cannot be written, or the tracker lacks batches of the graph.
        """
        with self.graph.unchanged():
            if self.graph.epoch != self.epoch:
                raise GraphError(
                    f"the graph is at batch {self.graph.epoch}, the tracker at {self.epoch}; call "
                    "update before save"
                )
            self._follower.resolve()
            tracker_file.save(self._follower, self.rows, path, force=force)

    @classmethod
    def load(cls, path: str | Path, *, threads: int | None = None) -> Self:
        """Return a tracker that was saved; its graph is `tracker.graph`.

        What follows is as if it had never been saved.

        Parameters
        ----------
        path : path
        threads : int, optional

        Raises
        ------
        LouvainUmError
            The file is not a saved tracker, is damaged or cannot be read.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> import louvain_um as lu
        >>> t = lu.Tracker(lu.DynamicGraph(lu.Graph.from_edges([0, 1, 2], [1, 2, 0])))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     t.save(pathlib.Path(folder, "state.npz"))
        ...     t = lu.Tracker.load(pathlib.Path(folder, "state.npz"))
        >>> t.update(t.graph.apply(insert=([0], [0]))).ids.tolist()
        [0, 0, 0]
        """
        follower, history = tracker_file.load(path, threads)
        tracker = cls.__new__(cls)
        tracker.options = follower.options
        tracker._begin(follower, history)
        return tracker

    def update(self, change: Change) -> TrackedCommunities:
        """Follow a batch that was just applied to the graph.

        Parameters
        ----------
        change : Change
            What `apply` or `remove_vertices` returned.

        Returns
        -------
        TrackedCommunities

        Raises
        ------
        GraphError
            The change is not the next one, or the graph has changed again since. The tracker is
            as it was.
        """
        if not isinstance(change, Change):
            raise GraphError(
                f"update takes what DynamicGraph.apply returned, not {type(change).__name__}"
            )
        with self.graph.unchanged():
            self._check(change)
            self._follow(change)
            return self.communities

    def _check(self, change: Change) -> None:
        """Raise an error unless a change is the next one."""
        if change.epoch != self.epoch + 1:
            raise GraphError(
                f"the change is batch {change.epoch}, but the tracker has followed {self.epoch}; "
                "pass each change once, in order, or start another Tracker"
            )
        if self.graph.epoch != change.epoch:
            raise GraphError(
                f"the graph has been changed since batch {change.epoch}; call update after each "
                "batch, or start another Tracker"
            )
        # A copy of the graph has its origin.
        same = change.total_weight == self.graph.total_weight
        if change.origin != self.graph.origin or not same:
            raise GraphError(
                "the change is another graph's; pass what tracker.graph.apply returned"
            )

    def _follow(self, change: Change) -> None:
        """Follow a change that was checked."""
        since = time.perf_counter()
        follower = self._follower
        with follower.steps.guarded():
            found = follower.follow(change)
            with uninterrupted():
                follower.take(found)
                self._total, self.epoch = self.graph.total_weight, change.epoch
                seconds = time.perf_counter() - since
                self.communities = self._result(found.batch, {"total": seconds})
                found.batch.row = self._history.add(
                    {
                        "epoch": self.epoch,
                        "modularity": self.communities.modularity,
                        "communities": found.batch.communities,
                        "edges_changed": len(change),
                        "changed": -1,  # not worked out yet
                        "seconds": seconds,
                        **{name: getattr(found.report, name) for name in REPORTED},
                    }
                )

    @property
    def state(self) -> Followed:
        """What the next batch is followed from, in host memory."""
        return self._follower.host_state()

    @property
    def rows(self) -> History:
        """The history, one row per batch, to be read like a list of dicts; see `to_frame`."""
        self._follower.resolve()
        return self._history

    @property
    def modularity(self) -> float:
        """Modularity of the communities, exact."""
        partition = self._follower.state.partition
        return partition.quality(self._total, self.options.run.resolution)

    @property
    def following_bytes(self) -> int:
        """Bytes on the graph's device that following takes; 0 on the CPU."""
        there = isinstance(self._follower.steps, DeviceSteps)
        return self._follower.nbytes if there else 0

    def __repr__(self) -> str:
        return (
            f"Tracker(epoch {self.epoch}: {self.communities.n_communities:,} communities, "
            f"modularity {self.modularity:.4f}, {self.options.run.method})"
        )

    def to_frame(self) -> pd.DataFrame:
        """Return the history: one row per batch.

        Returns
        -------
        DataFrame
            `epoch`, `modularity`, `communities`, `edges_changed`, `marked` (vertices),
            `split` (vertices of parts that fell off), `moves`, `changed` (vertices with another
            id), `renewed`, `audit_lead` (NaN without an audit), `arcs_visited` (of vertices that
            decided), `arcs_checked` (read to find disconnected communities), `seconds`.
        """
        import pandas as pd

        return pd.DataFrame(self.rows.array())

    def _result(self, batch: Pending, timings: dict[str, float]) -> TrackedCommunities:
        """Return communities whose arrays come when asked for."""
        run, names = self.options.run, self.graph.names
        there = isinstance(self._follower.steps, DeviceSteps)
        device = "cuda" if there else "cpu"
        return LazyCommunities(
            batch,
            graph=None,
            modularity=self.modularity,
            resolution=run.resolution,
            method=run.method,
            timings=timings,
            # Vertices may have been added before it was saved.
            vertex_names=None if names is None else names[: len(batch.names)],
            provenance={
                "device": device,
                "seed": run.seed,
                "mode": self.options.mode,
                "options": self.options.settings(),
            },
            epoch=self.epoch,
        )
