"""Arrays as an engine might declare them, few, with every way of being used; and their plans."""

from dataclasses import fields

from louvain_um.core.array_spec import STAGES, ArraySpec, identity
from louvain_um.placement.detection_plan import make_plan
from louvain_um.placement.machine.profiles import H200
from louvain_um.placement.model.workload import Facts
from louvain_um.placement.policy.auto import DeclaredRun

VISITED = 4.0


FACTS = frozenset(field.name for field in fields(Facts))


def arrays(low_scratch=False, *, arcs=100_000_000, degree=40):
    """Return the arrays of a graph of so many arcs; by default about a gigabyte."""
    n = arcs // degree
    room = arcs // (16 if low_scratch else 4)

    def array(name, group, itemsize, size, stages, accesses=None, **more):
        return ArraySpec(
            **identity(name), group=group, itemsize=itemsize, size=size, stages=stages,
            accesses=accesses or {}, **more,
        )  # fmt: skip

    moved = {("move", "stream"): VISITED * arcs, ("aggregate", "stream"): 2 * arcs}
    return (
        array("offsets.0", "graph", 8, n + 1, STAGES, {("move", "stream"): VISITED * n}),
        array("targets.0", "graph", 4, arcs, STAGES, moved),
        array("targets.1", "graph", 4, arcs // 3, ("aggregate", "coarse"),
              {("coarse", "stream"): arcs}),
        array("labels", "community", 4, n, ("move", "aggregate", "coarse"),
              {("move", "gather"): VISITED * arcs}),
        array("totals", "community", 4, n, ("move",),
              {("move", "gather"): arcs, ("move", "atomic"): n}),
        array("queue", "scratch", 4, n, ("move",), {("move", "stream"): VISITED * n}),
        array("room", "scratch", 8, room, ("aggregate",), {("aggregate", "stream"): arcs}),
        array("control", "scratch", 1, 4096, ("move",), device_only=True),
        array("hub_keys", "hash", 4, arcs // 64, ("move",), {("move", "atomic"): arcs / 8}),
    )  # fmt: skip


def plan(policy="auto", budget=None, machine=H200, **more):
    more = {"skew": 340, "source": "device", **more}
    facts = Facts(**{name: more.pop(name) for name in list(more) if name in FACTS})
    placed = {name: more.pop(name) for name in ("free", "managed") if name in more}
    return make_plan(DeclaredRun(arrays=arrays, **more), policy, machine, budget, facts, **placed)
