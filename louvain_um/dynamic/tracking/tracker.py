"""Communities that follow a changing graph."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from louvain_um.core.interrupts import uninterrupted
from louvain_um.dynamic.change import Change
from louvain_um.dynamic.graph import DynamicGraph
from louvain_um.dynamic.tracking import following, tracker_file
from louvain_um.dynamic.tracking.device_following import DeviceFollower, Pending
from louvain_um.dynamic.tracking.device_runs import DeviceRuns, Runs
from louvain_um.dynamic.tracking.following import (
    Connected,
    Followed,
    FollowOptions,
    Mode,
    Report,
)
from louvain_um.dynamic.tracking.history import History, row_of
from louvain_um.dynamic.tracking.identity import NO_EVENTS, Identity, succeed
from louvain_um.dynamic.tracking.partition import Work, detect
from louvain_um.dynamic.tracking.tracked import DeviceTracked, HostTracked, TrackedCommunities
from louvain_um.errors import GraphError, OptionError
from louvain_um.options import Method, Options

if TYPE_CHECKING:
    import pandas as pd


class Tracker:
    """Communities that follow a `DynamicGraph`, batch by batch.

    After each batch, communities that fell apart are split, and vertices next to what changed move
    (a *frontier*). That alone would rot; so each time a share `renew` of the weight has turned
    against the communities, a *renewal* frees the vertices of whose own weight as large a share
    has, and runs a cycle of Leiden from there; its result is taken unless modularity is lower. An
    *audit* compares with a run from nothing, the sooner the more renewals regain. Modularity is
    exact after every batch. The result depends on the graph at the beginning, its batches, their
    boundaries, the options and the seed: not on threads or the store.

    Parameters
    ----------
    graph : DynamicGraph
        Every batch applied to it is to be passed to `update`. Communities of a graph on a device
        are followed there, with the same results; other modes than "follow" copy its rows.
    seed : int
        0 … 2³² − 1.
    renew : float
        Share of 2m that may turn against the communities (weight lost inside them or gained
        between them) before they are renewed.
    audit : float or None
        Relative lead in modularity from which the communities of an audit are taken, and which
        trackers may lose on average between two audits; None for no audits.
    method : {"leiden", "louvain"}
        Of renewals and audits. With "leiden" no community is disconnected after a renewal.
    resolution : float
        γ; larger values give smaller communities.
    connected : {"renewal", "always"}
        Whether communities that vertices left are split after renewals only, or after every
        batch.
    mode : {"follow", "frontier", "screening", "naive", "static"}
        "follow" as above. The others are there to be compared with: Louvain from the communities
        before, at first with the vertices next to the change active ("frontier": Dynamic Frontier,
        Sahu 2024), also their neighbours and communities ("screening": delta-screening,
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
            mode=mode, renew=renew, audit=audit, connected=connected, run=run
        )
        if graph.device_store is not None and mode == "follow":
            if graph.device_store.chained:
                raise OptionError(
                    remedy=f"communities follow contiguous rows on a device, not {graph.store!r}: "
                    "use store='rows'"
                )
            self._follow_there(graph, DeviceRuns())
            return
        view = graph.view()
        partition = detect(view, run, Work())
        if self.options.splits_runs:
            partition = following.split_all(view, partition, Work())
        state = Followed(partition=partition, touched=np.zeros(view.n_vertices, np.uint64))
        self._begin(
            graph, state, Identity.of(partition.names, graph.alive, view.degrees), History()
        )

    def _begin(
        self,
        graph: DynamicGraph,
        state: Followed,
        identity: Identity,
        rows: History,
    ) -> None:
        """Set out from a state that was found or saved."""
        self.graph = graph
        self.epoch = graph.epoch
        """Epoch of the graph that the communities are of."""
        self._there: DeviceFollower | None = None
        self._state, self._identity, self._rows = state, identity, rows
        self._total = graph.total_weight
        self.communities = self._result(np.zeros(0, np.uint32), NO_EVENTS, {})
        """The communities as they are now."""

    def _follow_there(self, graph: DynamicGraph, runs: Runs) -> None:
        """Set out on the device that the graph is on."""
        self.graph, self.epoch = graph, graph.epoch
        with graph.device_store.device.errors():
            self._there = DeviceFollower(graph, self.options, runs)
        self._rows = History()
        self._total = graph.total_weight
        self.communities = self._result_there(self._there.current, {})

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write tracker and graph to one file, from which `load` goes on.

        Parameters
        ----------
        path : path
            Ends in ``.npz``.
        force : bool
            Whether an existing file is replaced.

        Raises
        ------
        LouvainUmError
            The file exists or cannot be written, or the graph is ahead of the tracker.
        """
        if self.graph.epoch != self.epoch:
            raise GraphError(
                f"the graph is at batch {self.graph.epoch}, the tracker at {self.epoch}; call "
                "update before save"
            )
        parts = tracker_file.Following(
            graph=self.graph,
            options=self.options,
            state=self.state,
            identity=self.identity,
            rows=self.rows,
        )
        tracker_file.save(parts, path, force=force)

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
            The file is no saved tracker, is damaged or cannot be read.

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
        saved = tracker_file.load(path, threads)
        tracker = cls.__new__(cls)
        tracker.options = saved.options
        tracker._begin(saved.graph, saved.state, saved.identity, saved.rows)
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
        since = time.perf_counter()
        if self._there is not None:
            self._update_there(self._there, change, since)
        else:
            self._update_here(change, since)
        return self.communities

    def _update_here(self, change: Change, since: float) -> None:
        """Follow a batch on the CPU."""
        view = self.graph.view()
        change = change.to_host()
        state, report = following.follow_batch(view, self._state, change, self.options)
        names, alive = state.partition.names, self.graph.alive
        known, changed, events = succeed(self._identity, names, alive, view.degrees, change)
        with uninterrupted():
            self._state, self._identity, self._total = state, known, view.total_weight
            self.epoch = change.epoch
            seconds = time.perf_counter() - since
            self.communities = self._result(changed, events, {"total": seconds})
            self._record(report, len(change), len(changed), seconds)

    def _update_there(self, follower: DeviceFollower, change: Change, since: float) -> None:
        """Follow a batch on the graph's device, which the follower and the tracker take as one."""
        with uninterrupted():
            with follower.device.errors():
                report, batch = follower.follow(change)
            self._total, self.epoch = self.graph.total_weight, change.epoch
            seconds = time.perf_counter() - since
            self.communities = self._result_there(batch, {"total": seconds})
            batch.row = self._record(report, len(change), -1, seconds)

    def _record(self, report: Report, edges: int, changed: int, seconds: float) -> np.void:
        """Add a batch to the history; return its row."""
        found = self.communities
        columns = self.epoch, found.modularity, found.n_communities, edges, changed, seconds
        return self._rows.add(row_of(report, *columns))

    @property
    def state(self) -> Followed:
        """What the next batch is followed from, in host memory."""
        return self._state if self._there is None else self._there.host_state()

    @property
    def identity(self) -> Identity:
        """The ids of the communities, in host memory."""
        return self._identity if self._there is None else self._there.host_identity()

    @property
    def rows(self) -> History:
        """The history, one row per batch, to be read like a list of dicts; see `to_frame`."""
        if self._there is not None:
            self._there.resolve()
        return self._rows

    @property
    def modularity(self) -> float:
        """Modularity of the communities, exact."""
        state = self._state if self._there is None else self._there.state
        return state.partition.quality(self._total, self.options.run.resolution)

    @property
    def following_bytes(self) -> int:
        """Bytes on the graph's device that following takes; 0 on the CPU."""
        return 0 if self._there is None else self._there.nbytes

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
            decided), `arcs_checked` (read to find what fell apart), `seconds`.
        """
        import pandas as pd

        return pd.DataFrame(self.rows.array())

    def _result(
        self, changed: NDArray[np.uint32], events: NDArray[np.void], timings: dict[str, float]
    ) -> TrackedCommunities:
        facts = self._facts(timings, "cpu")
        if facts["vertex_names"] is not None:  # vertices may have been added before it was saved
            facts["vertex_names"] = facts["vertex_names"][: len(self._identity.names)]
        return HostTracked(self._identity, **facts, changed=changed, events=events)

    def _result_there(self, batch: Pending, timings: dict[str, float]) -> TrackedCommunities:
        assert self._there is not None
        return DeviceTracked(self._there, batch, **self._facts(timings, "cuda"))

    def _facts(self, timings: dict[str, float], device: str) -> dict[str, Any]:
        """Return what a result says besides its arrays."""
        run = self.options.run
        return {
            "graph": None,
            "modularity": self.modularity,
            "resolution": run.resolution,
            "method": run.method,
            "timings": timings,
            "vertex_names": self.graph.names,
            "provenance": {"device": device, "seed": run.seed, "mode": self.options.mode},
            "epoch": self.epoch,
        }
