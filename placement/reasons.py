"""Why each group has its placement: the model's terms, and what is said of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from louvain_um.core.array_spec import STAGES, ArraySpec, peak_bytes
from louvain_um.core.ledger import GROUPS, Group
from louvain_um.errors import MemoryBudgetError
from louvain_um.placement.hardware import BLOCK, seconds, size
from louvain_um.placement.layout import (
    HELD_BLOCKS,
    MANAGED,
    capacity,
    device_bytes,
    guarded_bytes,
    needed_by_group,
    placed,
    size_of,
)
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
from louvain_um.placement.policy.auto import Candidate, Request
from louvain_um.placement.policy.policy import AUTO, Placement

HOST = Placement("host_mapped")


@dataclass(frozen=True, slots=True)
class Reason(Estimate):
    """The terms of a group on the host instead of the device, in seconds, and a sentence."""

    sentence: str = ""


def estimate(
    arrays: Sequence[ArraySpec],
    room: int,
    work: Workload,
    scales: Scales,
    host: Placement = HOST,
    *,
    in_pages: bool = False,
) -> dict[str, Estimate]:
    """Return the terms of every array, were it on the host, with so much room on the device."""
    machine, core = work.machine, work.core
    found = dict[str, Estimate]()
    for array in arrays:
        remote = remote_seconds(array, host, machine, work.mean_degree, scales)
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


def explain(
    choice: Candidate, work: Workload, limit: int, placements: Mapping[Group, Placement]
) -> dict[Group, Reason]:
    """Return why each group of a choice has its placement."""
    arrays, layout, in_blocks = choice.form.arrays, choice.layout, choice.fitted.out_of_core
    there = {
        group: sum(
            in_blocks.get(s.name, device_bytes(s.placement, s.capacity))
            for s in layout
            if s.group == group
        )
        for group in GROUPS
    }
    if any(spec.group is None for spec in layout):
        there = {group: _there(choice, group) for group in GROUPS}
    found = dict[Group, Reason]()
    small = choice.form.low_scratch
    scales = work.scales(arrays, coming=coming(layout, in_blocks), low_scratch=small)
    for group in GROUPS:
        mine = [array for array in arrays if array.group == group and array.nbytes]
        others = sum(there.values()) - there[group]
        room = max(0, limit - others - capacity(a for a in mine if not a.holds_input_arcs))
        kind = placements[group].kind
        host = Placement(kind) if kind in ("pinned", "peer") else HOST
        terms = estimate(mine, room, work, scales, host, in_pages=choice.in_pages)
        whole = sum(terms.values(), Estimate())
        why = _sentence(choice, work, group, placements[group], whole, there[group])
        found[group] = Reason(whole.phi, whole.tau, whole.sigma, why)
    return found


def _sentence(
    choice: Candidate,
    work: Workload,
    group: Group,
    placement: Placement,
    terms: Estimate,
    there: int,
) -> str:
    """Return why a group has its placement."""
    arrays, policy = choice.form.arrays, choice.policy.name
    if not peak_bytes(arrays)[group]:
        return "is empty"
    bus = f"{seconds(terms.phi)} on the bus"
    saved = seconds(terms.tau + terms.sigma)
    blocked = [
        s.name for s in choice.layout if s.group == group and s.name in choice.fitted.out_of_core
    ]
    if blocked:
        moved = seconds(sum(choice.expected.out_of_core.values()))
        return (
            f"{' and '.join(blocked)} {'do' if len(blocked) > 1 else 'does'} not fit: "
            f"{choice.expected.blocks} vertex blocks per pass, {moved} of transfers in all; host "
            f"placement of the group would cost {bus}"
        )
    if policy != AUTO.name:
        why = f"set by policy {policy}"
        if placement.on_device == 1:
            return f"{why}; host placement would cost {bus} and save {saved}"
        return f"{why}; costs up to {bus} and saves {saved}"
    if choice.like:
        return f"{placement}, as in policy {choice.like}, the fastest that fits"
    cost = f"host placement would cost {bus} and save {saved}"
    names = [a.name for a in arrays if a.group == group and _leaves_device(choice, a)]
    arcs = any(a.group == group and a.holds_input_arcs for a in arrays)
    if choice.in_pages and arcs and not names:
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
    peer = work.machine.beyond == "peer"
    place, way = ("other GPU", "link between them") if peer else ("host", "bus")
    fitting = f"{size(there)} of the group fit"
    if choice.in_pages:  # levels follow each other there
        fitting = f"at least {100 * placement.on_device:.0f} % of the group fits"
    return (
        f"{', '.join(names)} {'cost' if len(names) > 1 else 'costs'} least time per byte on the "
        f"{place}: {fitting}, the rest is read in place over the {way}"
    )


def _there(choice: Candidate, group: Group) -> int:
    """Return the most bytes of a group that are on the device at one stage, in shared arenas."""
    held = dict.fromkeys(STAGES, 0)
    for array in choice.form.arrays:
        if array.group == group:
            nbytes = int(placed(array, choice.policy).on_device * array.nbytes)
            for stage in array.stages:
                held[stage] += nbytes
    return max(held.values())


def _leaves_device(choice: Candidate, array: ArraySpec) -> bool:
    placement = choice.policy.placement_of(array.name, array.group)
    return bool(array.nbytes) and not array.device_only and placement.on_device < 1


def notes(choice: Candidate, work: Workload, request: Request) -> tuple[str, ...]:
    """Return what the figures are based on."""
    machine, kind, policy = work.machine, work.kind, choice.policy.name
    there = {array.name for array in choice.form.arrays}
    lost = [name for name in request.policy.arrays if name not in there]
    unused = f"policy {policy} names arrays that this run does not have: "
    others = [*request.policy.groups, *request.policy.roles]
    elsewhere = f"policy {policy} names groups and roles, which only other programs have: "
    return (
        f"machine {machine.name}: {machine.notes.get('profile', machine.notes.get('all', ''))}",
        f"kind of graph: {kind.name} ({kind.about}); moving visits each arc about "
        f"{work.visited:.1f} times",
        *([unused + ", ".join(lost)] if lost else []),
        *([elsewhere + ", ".join(others)] if others else []),
        *_compact(choice),
        *_beyond(choice, request.free),
    )


def _compact(choice: Candidate) -> tuple[str, ...]:
    """Return how the input takes fewer bytes."""
    if not choice.form.compact:
        return ()
    input_arrays = [a for a in choice.form.arrays if a.level == 0]
    width = next(a.itemsize for a in input_arrays if a.role == "targets")
    found = [f"targets {width:.1f} instead of 4"] if width < 4 else []
    if any(a.role == "weights" for a in input_arrays):
        found.append("weights 2")
    if any(a.role == "offsets" and a.itemsize == 4 for a in input_arrays):
        found.append("offsets 4 instead of 8")
    if not any(a.role == "degrees" for a in input_arrays):
        found.append("no degrees, which follow from offsets")
    return (f"level 0 takes fewer bytes: {', '.join(found)}",)


def _beyond(choice: Candidate, free: int | None) -> tuple[str, ...]:
    """Return what happens if managed memory, with all other memory, exceeds what is free."""
    managed = [spec for spec in choice.layout if spec.placement.kind in MANAGED]
    if not managed or free is None:
        return ()
    wanted = sum(
        size_of(spec) for spec in choice.layout if spec.placement.kind not in ("pinned", "peer")
    )
    if free and wanted <= free:
        return ()
    few = f"since {wanted:,} bytes in all exceed the {free:,} bytes free"
    why = few if free else "which the device lacks"
    if guarded_bytes(choice.layout) <= free:
        return (f"some host memory is page-locked, no managed memory, {why}",)
    return (f"a run is refused: it needs managed memory, {why}; use memory='auto'",)


def refusal(
    found: Candidate, request: Request, max_degree: int, auto: Callable[[], Candidate]
) -> MemoryBudgetError:
    """Return the error of a candidate that needs more than the limit."""
    limit = request.limit

    def here(array: ArraySpec) -> bool:
        return placed(array, found.policy).on_device == 1

    needed = found.fitted.needed
    groups = needed_by_group(found.layout, found.fitted, max_degree)
    if any(spec.group is None for spec in found.layout):
        groups = {
            g: capacity(a for a in found.form.arrays if a.group == g and here(a)) for g in GROUPS
        }
    group = max(groups, key=lambda g: groups[g])
    blocks = {spec.name for spec in found.layout if spec.out_of_core}
    there = [(a.name, a.nbytes) for a in found.form.arrays if here(a) and a.name not in blocks]
    # To the next MiB, so that the budget named is enough.
    least = -(-needed >> 20)
    said = (
        f"that is the least for {found.policy.name}, {size(groups[group])} of it for group "
        f"{group}; "
    )
    said += (
        f"raise the budget to {least}MiB"
        if request.budgeted
        else f"use a device with {least}MiB free"
    )
    if found.policy.name != AUTO.name and auto().fitted.within(limit):
        said += " or let memory='auto' choose"
    return MemoryBudgetError(needed, limit, there, said)
