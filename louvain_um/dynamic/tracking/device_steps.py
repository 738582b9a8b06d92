"""The steps of following on a device: arrays, kernels and what they count."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from louvain_um.core import rules
from louvain_um.dynamic.change import Change
from louvain_um.dynamic.graph import DynamicGraph
from louvain_um.dynamic.tracking import partition as steps
from louvain_um.dynamic.tracking.listed_identity import Listed
from louvain_um.dynamic.tracking.partition import Partition, Work
from louvain_um.gpu.dynamic import follow_arrays
from louvain_um.gpu.dynamic.batch_arrays import long_rows
from louvain_um.gpu.dynamic.follow_arrays import (
    COUNTS,
    DIFFERING,
    FOLLOW,
    KEPT,
    SCRATCH,
    STATE,
)
from louvain_um.gpu.move.arguments import CONTROL, MOVE_RULE, SWEEPS
from louvain_um.gpu.move.hub_tables import HUB_TABLES, hub_arrays
from louvain_um.gpu.runtime.structs import Struct
from louvain_um.options import Options

LISTING_BYTES: Final = 160
"""Bytes per renamed vertex that grouping on the device takes: keys, their order, sums, entries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Members:
    """A partition on a device, with its sums and those of its communities by name."""

    partition: Partition
    sizes: Any
    masses: Any
    communities: int
    differing: int
    listed: Listed | None

    @property
    def unlisted(self) -> Members:
        """The same without `listed`."""
        return replace(self, listed=None)


class DeviceSteps:
    """The kernels that carry a partition along, and their arrays."""

    def __init__(self, graph: DynamicGraph, run: Options) -> None:
        self.graph, self.run = graph, run
        self.store = graph.device_store
        self.device, self.xp = self.store.device, self.store.xp
        self.members: Members | None = None
        self.counts: Any = None
        self.moved: dict[str, int] = {}
        self.results = self.xp.zeros(COUNTS.itemsize + CONTROL.itemsize, np.uint8)
        self.arrays: dict[str, Any] = {}
        self.hubs: tuple[tuple[int, int], Struct, tuple[Any, ...]] | None = None
        n = graph.n_vertices
        self.kept = {name: self.xp.zeros(n, kind) for name, kind in KEPT.items()}

    @property
    def nbytes(self) -> int:
        """Bytes on the device besides the graph."""
        held = [*self.arrays.values(), *self.kept.values(), self.results]
        if self.members is not None:
            held += [self.members.partition.names, self.members.sizes, self.members.masses]
        held += self.hubs[2] if self.hubs else ()
        return sum(array.nbytes for array in held)

    def make_room(self, n: int) -> None:
        """Let arrays of one entry per vertex have room for n."""
        xp = self.xp
        if "whole" not in self.arrays or len(self.arrays["whole"]) < n:
            self.arrays = {}
            self.arrays = {name: xp.empty(n, kind) for name, kind in SCRATCH.items()}
            most = min(n, follow_arrays.MOST_SINGLE)
            self.arrays["listed"] = xp.empty(most * DIFFERING.itemsize, np.uint8)
        if len(self.kept["touched"]) < n:
            grown = xp.zeros(n, KEPT["touched"])
            grown[: len(self.kept["touched"])] = self.kept["touched"]
            self.kept["touched"] = grown
        if len(self.arrays.get("long_rows", ())) < (count := long_rows(self.store.n_arcs)):
            self.arrays["long_rows"] = xp.empty(2 * count, np.uint64)
        sizes = follow_arrays.hub_sizes(n, self.store.n_arcs, self.store.longest)
        held = self.hubs[0] if self.hubs else (-1, -1)
        if sizes[0] > held[0] or sizes[1] > held[1]:
            self.hubs = None
            self.hubs = self._hub_tables(sizes)

    def _hub_tables(
        self, sizes: tuple[int, int]
    ) -> tuple[tuple[int, int], Struct, tuple[Any, ...]]:
        """Return memory for hubs (`hubs.cuh`)."""
        arrays = {
            name: self.xp.empty(length, kind)
            for name, (length, kind) in hub_arrays(*sizes, np.uint64).items()
        }
        at = {name: self.device.address(array) for name, array in arrays.items()}
        return sizes, Struct(HUB_TABLES, capacity=sizes[1], **at), tuple(arrays.values())

    def fields(self, n: int, change: Change | None = None) -> dict[str, Any]:
        """Return what `Follow` holds, as arrays and numbers."""
        store, before = self.store, self.members
        names = before.partition.names if before else None
        columns = dict.fromkeys(("u", "v", "before", "after"))
        if change is not None:
            columns = {name: self.xp.asarray(getattr(change, name)) for name in columns}
        return {
            "n": n,
            "n_before": 0 if names is None else len(names),
            "spans": store.spans, "targets": store.targets, "weights": store.weights,
            "degrees": store.degrees, "alive": store.alive,
            "alive_before": self.kept["alive_before"],
            "edges": 0 if change is None else len(change),
            **columns,
            "names": names,
            "whole": self.arrays["whole"], "labels": self.arrays["labels"],
            "next_names": None, "sizes": None, "masses": None,
            "sizes_before": before.sizes if before else None,
            "masses_before": before.masses if before else None,
            "members": self.arrays["move_sizes"], "totals": self.arrays["totals"],
            "marks": self.arrays["marks"], "flags": self.arrays["flags"],
            "touched": self.kept["touched"], "first": self.arrays["first"],
            "long_rows": self.arrays["long_rows"], "counts": self.results,
        }  # fmt: skip

    def _struct(self, fields: dict[str, Any]) -> Struct:
        numbers = ("n", "n_before", "edges")
        return Struct(
            FOLLOW,
            **{
                name: value if name in numbers else self.device.address(value)
                for name, value in fields.items()
            },
        )

    def launch(self, kernel: str, items: int, fields: dict[str, Any], *args: Any) -> None:
        """Run a kernel of `follow.cu`."""
        types = self.store.types if kernel == "settle_names" else ""
        self.device.launch("follow", kernel, types, items, self._struct(fields), *args)

    def split(
        self, fields: dict[str, Any], names: Any, out: Any, *, after_batch: bool = False
    ) -> None:
        """Write the connected parts of flagged communities."""
        self.launch("split_flagged", fields["n"], fields, names, out, np.int64(after_batch))

    def move(self, n: int, total: int) -> None:
        """Let marked vertices move, and those that their moves activate."""
        at, arrays, run = self.device.address, self.arrays, self.run
        assert self.hubs is not None
        rule = Struct(
            MOVE_RULE,
            offsets=at(self.store.spans), targets=at(self.store.targets),
            weights=at(self.store.weights), degrees=at(self.store.degrees),
            labels=at(arrays["labels"]), totals=at(arrays["totals"]),
            sizes=at(arrays["move_sizes"]), queue=at(arrays["queue"]),
            proposed=at(arrays["proposed"]), rate=run.resolution / total, total=float(total),
            seed=run.seed, byte_sizes=0,
        )  # fmt: skip
        sweeps = Struct(
            SWEEPS,
            n=n, start=at(arrays["whole"]), awake=at(arrays["marks"]), active=at(arrays["active"]),
            next_active=at(arrays["next_active"]), control=at(self.results) + COUNTS.itemsize,
            tolerance=rules.tolerance(0), seed_salt=rules.seed_salt(run.seed),
            cycle=steps.FOLLOWING_CYCLE, sub_rounds=rules.FRONTIER_SUB_ROUNDS,
            max_iterations=rules.MAX_ITERATIONS, full_sweeps=0, min_sweeps=rules.MIN_SWEEPS,
            queued=rules.FRONTIER_SUB_ROUNDS, summed=1,
        )  # fmt: skip
        types = f"Spans<{self.store.types}>, u64"
        self.device.launch("move", "move", types, n, rule, self.hubs[1], sweeps)

    def settle(
        self,
        fields: dict[str, Any],
        labels: Any,
        inside: int,
        *,
        moved: bool = False,
        summed: bool = False,
    ) -> Members:
        """Name communities and sum them; with `moved`, labels come from moving `whole`."""
        n, xp = fields["n"], self.xp
        names, sizes, masses = (xp.empty(n, kind) for kind in STATE.values())
        fields.update(labels=labels, next_names=names, sizes=sizes, masses=masses)
        whole, listed = self.arrays["whole"] if moved else None, self.arrays["listed"]
        most = np.int64(len(listed) // DIFFERING.itemsize)
        self.launch("settle_names", n, fields, whole, np.int64(summed), listed, most)
        self.read()
        counts = self.counts
        differing = int(counts["differing"])
        low, middle, high = counts["squares"].tolist()
        if moved:
            inside += int(counts["inside"])
        return Members(
            partition=Partition(
                names=names, inside=inside, squares=low + (middle << 32) + (high << 64)
            ),
            sizes=sizes,
            masses=masses,
            communities=int(counts["communities"]),
            differing=differing,
            listed=Listed(listed[: differing * DIFFERING.itemsize].copy())
            if differing <= most
            else None,
        )

    def listed(self, fields: dict[str, Any], found: Members, room: int | None = None) -> Listed:
        """List the vertices whose community has another name than before the batch."""
        n, count, xp = fields["n"], found.differing, self.xp
        fields.update(next_names=found.partition.names, sizes=found.sizes, masses=found.masses)
        self.device.clear(self.results)
        vertices, keys = xp.empty(count, np.uint32), xp.empty(count, np.uint64)
        self.launch("key_differing", n, fields, vertices, keys)
        if room is not None and count * LISTING_BYTES > room:
            by_key = self.device.get(vertices), self.device.get(keys)
            del vertices, keys
            return self._listed_by_host(fields, *by_key)
        order = xp.argsort(keys)
        keys, vertices = keys[order], vertices[order]
        begins = xp.ones(count, np.bool_)
        xp.not_equal(keys[1:], keys[:-1], out=begins[1:])
        first = xp.flatnonzero(begins)
        degrees = xp.cumsum(self.store.degrees[vertices], dtype=np.uint64)
        groups = len(first)
        entries = xp.empty(groups * DIFFERING.itemsize, np.uint8)
        self.launch(
            "list_groups", groups, fields, vertices, np.int64(count), first, np.int64(groups),
            degrees, entries,
        )  # fmt: skip
        return Listed(entries, grouped=True)

    def _listed_by_host(self, fields: dict[str, Any], vertices: Any, keys: Any) -> Listed:
        """List groups of vertices of the same key; the device describes the first of each."""
        order = np.argsort(keys)
        keys, vertices = keys[order], vertices[order]
        first = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
        listed = self.arrays["listed"]
        most = len(listed) // DIFFERING.itemsize
        entries = np.empty(len(first), DIFFERING)
        for begin in range(0, len(first), most):
            some = self.xp.asarray(vertices[first[begin : begin + most]])
            k = len(some)
            each, none = self.xp.arange(k, dtype=np.int64), self.xp.zeros(k, np.uint64)
            self.launch(
                "list_groups", k, fields, some, np.int64(k), each, np.int64(k), none, listed
            )
            part = self.device.get(listed[: k * DIFFERING.itemsize])
            entries[begin : begin + k] = part.view(DIFFERING)
        entries["members"] = np.diff(np.append(first, len(vertices)))
        degrees = self.device.get(self.store.degrees)[vertices]
        entries["degree"] = np.add.reduceat(degrees, first)
        return Listed(entries.view(np.uint8), grouped=True, on_host=True)

    def settle_labels(
        self, fields: dict[str, Any], labels: Any, inside: int | None = None
    ) -> Members:
        """Settle labels that come from elsewhere, with the weight inside if it is known."""
        n = fields["n"]
        self.device.clear(self.results)
        if inside is not None:
            return self.settle(fields, labels, inside)
        # Moving every vertex out of a community of its own gains all that is inside.
        alone = self.arrays["whole"]
        alone[:n] = self.xp.arange(n, dtype=np.uint32)
        return self.settle(fields, labels, self._loops(), moved=True)

    def _loops(self) -> int:
        """Return the weight of loops, which are inside any community."""
        return 2 * int(self.store.loops.sum())

    def split_left(self, fields: dict[str, Any], found: Members, work: Work) -> Members:
        """Split the communities that vertices left."""
        names, before = found.partition.names, int(self.counts["checked"])
        fields.update(next_names=names)
        self.launch("flag_left", fields["n"], fields)
        parts = self.xp.empty(fields["n"], np.uint32)
        self.split(fields, names, parts)
        settled = self.settle(fields, parts, found.partition.inside)
        work.arcs_checked += int(self.counts["checked"]) - before
        return settled

    def read(self) -> None:
        """Read what kernels counted; waits for them."""
        found = self.device.read(self.results).copy()
        self.counts = found[: COUNTS.itemsize].view(COUNTS)[0]
        control = found[COUNTS.itemsize :].view(CONTROL)[0]
        self.moved = {name: int(control[name]) for name in ("visited", "total_moves")}
