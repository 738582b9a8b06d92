"""The parts of a page on one session, and on two compared."""

from __future__ import annotations

from typing import Any

from louvain_um.profiling.views.html import session_figures
from louvain_um.profiling.views.html.parts import Part, cards, missing, non_empty
from louvain_um.profiling.views.html.payload import ROOM, map_payload
from louvain_um.profiling.views.session import phase_tables, tables, traffic
from louvain_um.profiling.views.session.analysis import SessionAnalysis
from louvain_um.profiling.views.session.blocks import ping_pong
from louvain_um.profiling.views.session.compare import comparison_tables, difference
from louvain_um.profiling.views.session.lines import data_sources
from louvain_um.profiling.views.session.verdict import Verdict, verdict


def session_parts(analysis: SessionAnalysis, data: dict[str, Any], room: int = ROOM) -> list[Part]:
    """Return the parts on one session; what the script draws goes into `data`."""
    session = analysis.original
    group, phase = tables.by_group(analysis), phase_tables.by_phase(analysis)
    parts = [
        Part(
            anchor="summary",
            title="Summary",
            verdict=verdict(analysis),
            cards=cards(session),
            items=session_figures.overview_chart(analysis),
            notes=(*missing(session), *session.notes),
        ),
        Part(
            anchor="time",
            title="Where the time went",
            items=session_figures.time_items(analysis, phase),
        ),
        Part(
            anchor="groups",
            title="Groups of arrays",
            items=session_figures.group_items(analysis, group),
        ),
    ]
    maps = map_payload(analysis, room)
    if maps is not None:
        data["maps"] = maps
        parts.append(
            Part(
                anchor="pages",
                title="Pages over time",
                texts=(
                    "Rows are the bytes of the arrays, columns the time of the run, and the band "
                    "above shows its phases. Empty cells: no events. Accesses are the "
                    "thesis's Figures 4.2 to 4.9 for this run, faults its Figures 4.12 to 4.19.",
                ),
                map="maps",
            )
        )
    causes = tables.by_cause(analysis)
    if causes.rows:
        parts.append(
            Part(
                anchor="migrations",
                title="Migrations",
                items=[session_figures.cause_bars(causes), causes, *non_empty(ping_pong(analysis))],
            )
        )
    more = [traffic.kernels(analysis), traffic.copies(analysis)]
    if any(table.rows for table in more):
        parts.append(Part(anchor="kernels", title="Kernels", items=non_empty(*more)))
    power = session_figures.power(analysis.session)
    if power is not None:
        parts.append(Part(anchor="energy", title="Energy", items=[power]))
    parts.append(
        Part(
            anchor="sources",
            title="Sources",
            texts=("What each source recorded, and what is missing:",),
            notes=data_sources(session) or ("the session lists no source",),
        )
    )
    return parts


def comparison(
    first: SessionAnalysis, second: SessionAnalysis, data: dict[str, Any], room: int
) -> list[Part]:
    """Return the parts that compare a second session with the first."""
    parts = [
        Part(
            anchor="comparison",
            title="Comparison",
            verdict=_compared(first, second),
            items=[*comparison_tables(first, second)],
        )
    ]
    maps = map_payload(second, room)
    if maps is not None:
        data["second"] = maps
        parts.append(
            Part(anchor="second-pages", title="Pages over time, the second session", map="second")
        )
    return parts


def _compared(first: SessionAnalysis, second: SessionAnalysis) -> Verdict:
    """Return the difference of two sessions, and what held the second one back."""
    found, text = verdict(second), difference(first, second)
    if not text:
        return found
    return Verdict(
        finding=text,
        remedy=f"Second run: {found.finding} {found.remedy}",
        grounds=f"second run: {found.grounds}",
    )
