"""Why each group has its placement: the model's terms, and what is said of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from louvain_um.core.array_spec import STAGES, ArraySpec
from louvain_um.core.ledger import GROUPS, Group
from louvain_um.placement.arena_spec import MANAGED, device_bytes, guarded_bytes, size_of
from louvain_um.placement.decision import Decision
from louvain_um.placement.hardware import BLOCK
from louvain_um.placement.layout import HELD_BLOCKS, capacity, placed
from louvain_um.placement.model.cost import (
    Estimate,
    Scales,
    copying_rate,
    exposed,
    launches,
    overlaps,
    remote_seconds,
)
from louvain_um.placement.model.forecast import coming
from louvain_um.placement.model.workload import Workload
from louvain_um.placement.policy.policy import AUTO, Placement
from louvain_um.placement.units import seconds, size

HOST = Placement("host_mapped")


@dataclass(frozen=True, slots=True)
class Reason:
    """The terms of a group on the host instead of the device, in seconds, and a sentence."""

    phi: float
    tau: float
    sigma: float
    sentence: str

    @property
    def net(self) -> float:
        """P_d = φ − τ − σ: below 0, the host pays."""
        return self.phi - self.tau - self.sigma


def estimate(
    arrays: Sequence[ArraySpec],
    room: int,
    work: Workload,
    scales: Scales,
    hosted: Placement = HOST,
    *,
    in_pages: bool = False,
) -> dict[str, Estimate]:
    """Return the terms of every array, were it on the host, with so much room on the device."""
    machine, core = work.machine, work.core
    found = dict[str, Estimate]()
    for array in arrays:
        remote = remote_seconds(array, hosted, machine, work.mean_degree, scales)
        bus = {stage: work.bus_scale * s for stage, s in remote.items()}
        phi = exposed(core, bus, sorted_rows=overlaps(array, machine))
        given = work.source == "host" and array.group == "graph" and "load" in array.stages
        copies, extra, rate = (1.0 if given else 0.0), 0, copying_rate(machine)
        if array.holds_input_arcs and in_pages:
            copies, rate = float(work.kind.methods[work.method].cycles), machine.copy_to_device
        elif array.holds_input_arcs and array.nbytes > room:
            copies, rate = work.passes, machine.copy_to_device
            extra = launches(array.nbytes, max(room // HELD_BLOCKS, BLOCK)) - 1
        found[array.name] = Estimate(
            phi=phi,
            tau=work.bus_scale * copies * array.nbytes / rate,
            sigma=work.passes * extra * machine.launch_seconds,
        )
    return found


def explain(plan: Decision) -> dict[Group, Reason]:
    """Return a reason for each group."""
    there = {
        group: sum(
            plan.out_of_core.get(s.name, device_bytes(s.placement, s.capacity))
            for s in plan.layout
            if s.group == group
        )
        for group in GROUPS
    }
    if any(spec.group is None for spec in plan.layout):
        there = {group: _there(plan, group) for group in GROUPS}
    found = dict[Group, Reason]()
    in_blocks = coming(plan.layout, plan.out_of_core)
    scales = plan.work.scales(plan.arrays, coming=in_blocks, low_scratch=plan.low_scratch)
    for group in GROUPS:
        mine = [array for array in plan.arrays if array.group == group and array.nbytes]
        others = sum(there.values()) - there[group]
        room = max(0, plan.limit - others - capacity(a for a in mine if not a.holds_input_arcs))
        own = plan.placements[group].kind
        hosted = Placement(own) if own in ("pinned", "peer") else HOST
        terms = estimate(mine, room, plan.work, scales, hosted, in_pages=plan.in_pages)
        whole = sum(terms.values(), Estimate())
        found[group] = Reason(
            whole.phi, whole.tau, whole.sigma, _sentence(plan, group, whole, there[group])
        )
    return found


def _sentence(plan: Decision, group: Group, terms: Estimate, there: int) -> str:
    """Return why a group has its placement."""
    placement = plan.placements[group]
    nbytes = plan.peak_bytes[group]
    if not nbytes:
        return "is empty"
    bus = f"{seconds(terms.phi)} on the bus"
    saved = seconds(terms.tau + terms.sigma)
    blocked = [
        spec.name for spec in plan.layout if spec.group == group and spec.name in plan.out_of_core
    ]
    if blocked:
        moved = seconds(sum(plan.expected.out_of_core.values()))
        return (
            f"{' and '.join(blocked)} {'do' if len(blocked) > 1 else 'does'} not fit: "
            f"{plan.blocks} vertex blocks per pass, {moved} of transfers in all; host placement "
            f"of the group would cost {bus}"
        )
    if plan.policy != AUTO.name:
        why = f"set by policy {plan.policy}"
        if placement.on_device == 1:
            return f"{why}; host placement would cost {bus} and save {saved}"
        return f"{why}; costs up to {bus} and saves {saved}"
    if plan.like:
        return f"{placement}, as in policy {plan.like}, the fastest that fits"
    cost = f"host placement would cost {bus} and save {saved}"
    names = [a.name for a in plan.arrays if a.group == group and _is_hosted(plan, a)]
    arcs = any(a.group == group and a.holds_input_arcs for a in plan.arrays)
    if plan.in_pages and arcs and not names:
        part = (
            ""
            if placement.on_device == 1
            else f" ({100 * placement.on_device:.0f} % fits at least)"
        )
        return (
            f"level 0 fits, with a copy on the host; its arcs give way to coarse levels as far "
            f"as these need the device{part}, and are read over the bus meanwhile; {cost}"
        )
    if placement.on_device == 1:
        return f"fits; {cost}"
    peer = plan.work.machine.beyond == "peer"
    place, way = ("other GPU", "link between them") if peer else ("host", "bus")
    return (
        f"{', '.join(names)} {'cost' if len(names) > 1 else 'costs'} least time per byte on the "
        f"{place}: {size(there)} of the group fit, the rest is read in place over the {way}"
    )


def _there(plan: Decision, group: Group) -> int:
    """Return the most bytes of a group that are on the device at one stage, in shared arenas."""
    held = dict.fromkeys(STAGES, 0)
    for array in plan.arrays:
        if array.group == group:
            nbytes = int(placed(array, plan.chosen).on_device * array.nbytes)
            for stage in array.stages:
                held[stage] += nbytes
    return max(held.values())


def _is_hosted(plan: Decision, array: ArraySpec) -> bool:
    placement = plan.chosen.placement_of(array.name, array.group)
    return bool(array.nbytes) and not array.device_only and placement.on_device < 1


def verdict(plan: Decision) -> str:
    """Return the plan in one sentence."""
    took = seconds(plan.seconds)
    whole = plan.in_core and plan.policy in (AUTO.name, "device")
    # In pages, arcs give way where the device does not hold all that may be needed.
    least = plan.in_core_bytes if plan.in_pages else plan.device_in_core
    if whole and least <= plan.limit:
        small = ", with scratch as small as possible" if plan.low_scratch else ""
        return f"Runs in core within {size(plan.limit)}{small}: about {took}."
    times = plan.seconds / plan.seconds_in_core if plan.seconds_in_core else 1.0
    if plan.in_core_bytes <= plan.limit:
        fits = "Would fit in core"
    elif plan.fits:
        fits = "Would fit in core at its smallest, with what is expected of coarse levels"
    else:
        fits = (
            f"Needs {size(plan.in_core_bytes)} in core, more than the {size(plan.limit)} available"
        )
    return (
        f"{fits}. Under {plan.policy}: about {took} "
        f"({times:.1f} times as long as in core), with {size(plan.device_bytes)} on the device."
    )


def notes(plan: Decision) -> tuple[str, ...]:
    """Return what the figures are based on."""
    machine, kind = plan.work.machine, plan.work.kind
    there = {array.name for array in plan.arrays}
    lost = [name for name in plan.request.policy.arrays if name not in there]
    unused = f"policy {plan.policy} names arrays that this run does not have: "
    others = [*plan.request.policy.groups, *plan.request.policy.roles]
    elsewhere = f"policy {plan.policy} names groups and roles, which only other programs have: "
    return (
        f"machine {machine.name}: {machine.notes.get('profile', machine.notes.get('all', ''))}",
        f"kind of graph: {kind.name} ({kind.about}); moving visits each arc about "
        f"{plan.work.visited:.1f} times",
        *([unused + ", ".join(lost)] if lost else []),
        *([elsewhere + ", ".join(others)] if others else []),
        *_compact(plan),
        *_beyond(plan),
    )


def _compact(plan: Decision) -> tuple[str, ...]:
    """Return how the input takes fewer bytes."""
    if not plan.compact:
        return ()
    own = [a for a in plan.arrays if a.level == 0]
    width = next(a.itemsize for a in own if a.role == "targets")
    found = [f"targets {width:.1f} instead of 4"] if width < 4 else []
    if any(a.role == "weights" for a in own):
        found.append("weights 2")
    if any(a.role == "offsets" and a.itemsize == 4 for a in own):
        found.append("offsets 4 instead of 8")
    if not any(a.role == "degrees" for a in own):
        found.append("no degrees, which follow from offsets")
    return (f"level 0 takes fewer bytes: {', '.join(found)}",)


def _beyond(plan: Decision) -> tuple[str, ...]:
    """Return what happens if managed memory, with all other memory, exceeds what is free."""
    free = plan.request.free
    managed = [spec for spec in plan.layout if spec.placement.kind in MANAGED]
    if not managed or free is None:
        return ()
    wanted = sum(
        size_of(spec) for spec in plan.layout if spec.placement.kind not in ("pinned", "peer")
    )
    if free and wanted <= free:
        return ()
    few = f"since {wanted:,} bytes in all exceed the {free:,} bytes free"
    why = few if free else "which the device lacks"
    if guarded_bytes(plan.layout) <= free:
        return (f"some host memory is page-locked, no managed memory, {why}",)
    return (f"a run is refused: it needs managed memory, {why}; use memory='auto'",)
