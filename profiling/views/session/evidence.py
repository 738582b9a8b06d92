"""Evidence: whether a number is measured, modelled or not available."""

from __future__ import annotations

from typing import Literal

import numpy as np

from louvain_um.profiling.session import SessionData
from louvain_um.profiling.session.events import Kind, Source

Matter = Literal["time", "memory", "access", "in_place", "energy", "kernel"]
"""What a number is about."""

SOURCES: dict[Matter, tuple[str, ...]] = {
    "time": ("engine", "cupti", "nsys", "simulator"),
    "memory": ("uvm", "cupti", "nsys", "simulator"),
    "access": ("tracer", "recorder", "simulator"),
    "in_place": ("in_place", "simulator"),
    "energy": ("nvml",),
    "kernel": ("cupti", "nsys", "simulator"),
}
"""Sources that record each kind of number, the most direct first."""

KINDS: dict[Matter, tuple[Kind, ...]] = {
    "memory": tuple(kind for kind in Kind if kind <= Kind.DTOD),
    "access": (Kind.ACCESS,),
    "in_place": (Kind.REMOTE_ACCESS,),
    "kernel": (Kind.KERNEL,),
}


def evidence(session: SessionData, matter: Matter) -> str:
    """Return whether a kind of numbers was measured or modelled, and by which source."""
    sources = session.metadata.get("sources", {})
    known = [(name, sources[name]) for name in SOURCES[matter] if name in sources]
    for name, status in known:
        if status in ("measured", "modelled"):
            return f"{status} ({name})"
    if matter == "access" and session.maps:
        return "measured (page by page)"
    # Sessions made by hand list no sources, but each event names its own.
    seen = np.unique(
        session.events["source"][np.isin(session.events["kind"], KINDS.get(matter, ()))]
    )
    for number in seen if matter in KINDS else ():
        name = Source(number).name.lower() if number in tuple(Source) else "unknown source"
        return f"{'modelled' if number == Source.SIMULATOR else 'measured'} ({name})"
    if known:
        return str(known[0][1])
    return "not available: no source recorded it"


def overall(*sessions: SessionData) -> str:
    """Return how the numbers of sessions came about as a whole: one word for a page's title."""
    texts = [evidence(session, matter) for session in sessions for matter in SOURCES]
    kinds = {text.partition(" ")[0] for text in texts} & {"measured", "modelled"}
    return kinds.pop() if len(kinds) == 1 else "mixed" if kinds else ""


def is_available(session: SessionData, matter: Matter) -> bool:
    """Say whether a kind of numbers is available at all."""
    return not evidence(session, matter).startswith("not available")
