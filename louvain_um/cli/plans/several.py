"""``louvain-um plan --ranks`` and ``--devices``: runs that share a graph."""

from __future__ import annotations

from collections.abc import Mapping

from louvain_um.cli import common
from louvain_um.cli.exit_codes import print_note
from louvain_um.errors import OptionError

Size = tuple[int | None, int | None, bool, str | None]
"""Vertices, arcs, whether arcs have weights, and the kind of graph."""


def refuse_given(what: str, given: Mapping[str, object]) -> None:
    """Raise for options that a plan would ignore.

    Parameters
    ----------
    what : str
        The plan.
    given : mapping of str to object
        Values that are false unless the option was given.
    """
    named = [name for name, value in given.items() if value]
    if named:
        raise OptionError(remedy=f"{what} takes no {', '.join(named)}; leave out what it ignores")


def numbers_of(size: Size, option: str) -> tuple[int, int]:
    """Return vertices and arcs, which must be given."""
    vertices, arcs = size[:2]
    if vertices is None or arcs is None:
        raise OptionError(remedy=f"pass --vertices and --arcs with {option}")
    return vertices, arcs


def plan_ranks(
    size: Size,
    ranks: int,
    link: str,
    cores: int,
    rank_memory: str | None,
    *,
    json: bool,
    quiet: bool,
) -> None:
    """Print what 1, 2, 4 … ranks take."""
    vertices, arcs = numbers_of(size, "--ranks")
    from louvain_um.cli.plans.tables import print_ranks, ranks_summary
    from louvain_um.distributed.plan import choices, least_ranks, link_bytes, most_speedup
    from louvain_um.distributed.plan_sizes import DEFAULT_KIND
    from louvain_um.options import parse_bytes

    memory = None if rank_memory is None else parse_bytes(rank_memory, "rank_memory")
    _, _, weighted, kind = size
    values = {"weighted": weighted, "kind": kind, "link": link_bytes(link), "threads": cores}
    plans = choices(vertices, arcs, ranks, **values)
    least = least_ranks(vertices, arcs, memory, ranks, **values) if memory else None
    found = ranks_summary(plans, memory, least, most_speedup(vertices, arcs, **values))
    if json:
        common.print_json(found)
    else:
        print_ranks(found, vertices, arcs)
        if not (kind or quiet):
            print_note(f"kind of graph: {DEFAULT_KIND} is assumed; pass another one as --kind")


def plan_devices(size: Size, devices: int | None, *, json: bool, quiet: bool) -> None:
    """Print what 1, 2, 4 … GPUs of one host take."""
    vertices, arcs = numbers_of(size, "--devices")
    from louvain_um.cli.plans.tables import devices_summary, print_devices
    from louvain_um.distributed.device_plan import device_choices, most_speedup
    from louvain_um.distributed.plan_sizes import DEFAULT_KIND

    _, _, weighted, kind = size
    plans = device_choices(vertices, arcs, devices or 0, weighted=weighted, kind=kind)
    found = devices_summary(plans, most_speedup(kind))
    if json:
        common.print_json(found)
    else:
        print_devices(found, vertices, arcs)
        if not (kind or quiet):
            print_note(
                f"kind of graph: {DEFAULT_KIND} is assumed; pass another one as --kind. A plan "
                "without --devices assumes no kind, so its seconds of one GPU differ"
            )
