"""What a reader tells about the columns of an edge list."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from louvain_um.errors import Doubt
from louvain_um.formats.column_roles import Roles, is_id
from louvain_um.formats.edge_list.edges import EdgeList
from louvain_um.formats.edge_list.sniff import DetectedFormat
from louvain_um.formats.read_options import ReadOptions
from louvain_um.formats.two_modes import different_kinds

YEARS = 1800, 2100
"""Whole numbers that all lie in this range are years."""

UNIX_TIMES = 10**8, 5 * 10**12
"""Unix times from 1973 on in seconds, up to 2128 in milliseconds."""


OTHERS = "name others with source=… and target=…"

AS_WEIGHT = "weighted=True reads it as the weight"


def unread_numbers(titles: list[str], *, doubtful: bool) -> str:
    """Return the note on numeric columns that are not read; a doubt if one may be the weight."""
    shown = ", ".join(map(repr, titles[:8])) + (", …" if len(titles) > 8 else "")
    many = len(titles) > 1
    text = f"numeric column{'s' if many else ''} {shown} {'are' if many else 'is'} not read"
    if not doubtful:
        return text
    reads = "reads one" if many else "reads it"
    return Doubt(f"{text}; weight={titles[0]!r} {reads} as the weight")


def notes_on_ends(roles: Roles, titles: Sequence[str], *, moved: bool) -> list[str]:
    """Return notes on the columns of ids and times."""
    notes: list[str] = []
    first, second, *times = (
        f"column {i + 1} ({titles[i]!r})" if i < len(titles) else f"column {i + 1}"
        for i in (roles.source, roles.target, *([] if roles.time is None else [roles.time]))
    )
    if roles.guessed:
        ends = [titles[i] for i in (roles.source, roles.target) if i < len(titles)]
        if len(ends) < 2 or not different_kinds(*ends):
            notes.append(Doubt(f"{first} and {second} are read as the ends of each edge; {OTHERS}"))
    elif moved:
        notes.append(f"edges are read from {first} and {second}")
    return [
        *notes,
        *(f"{time} holds times, which a graph without time does not use" for time in times),
    ]


def notes_on_weights(edges: EdgeList, options: ReadOptions, detected: DetectedFormat) -> list[str]:
    """Drop weights that are times; return notes on weights and other numbers."""
    w = edges.w
    places = [detected.order[i] for i in detected.numeric]
    further = [detected.titles[i] for i in places if i < len(detected.titles)]
    if w is None:
        if options.weighted is False or detected.columns < 3:
            return []
        what = {
            "time": "contains times",
            "named": "is not named as a weight",
        }.get(detected.weights, "is not a weight")
        # A column of words cannot be read as the weight.
        advice = "" if detected.weights == "other" else f"; {AS_WEIGHT}"
        note = f"{detected.column(2)} {what} and is not read{advice}"
        chosen = options.names_columns
        doubtful = detected.weights == "named" and not is_id(detected.names[2]) and not chosen
        notes = [Doubt(note) if doubtful else note]
        return [*notes, *([unread_numbers(further, doubtful=not chosen)] if further else [])]
    notes = [*edges.notes]
    if detected.order[detected.place] != 2:
        notes.append(f"weights are read from {detected.column(detected.place)}")
    if detected.decimal_comma:
        notes.append("weights have decimal commas: 1,5 is read as 1.5")
    if further:
        notes.append(unread_numbers(further, doubtful=False))
    if options.weighted or detected.weights != "unnamed" or len(w) < 2:
        return notes
    if w.dtype == np.int64:
        low, high = int(w.min()), int(w.max())
        for (least, most), what in ((UNIX_TIMES, "Unix times"), (YEARS, "years")):
            if low >= least and high <= most and low < high:
                edges.w = None
                note = f"{detected.column(2)} looks like {what} and is not read; {AS_WEIGHT}"
                # Numbers of ten digits in this range are hardly anything else.
                return [Doubt(note) if what == "years" else note]
    if detected.columns > 3:
        commas = " (write decimals with a point)" if detected.separator == ord(",") else ""
        column = detected.column(2).removesuffix(" column")
        note = (
            f"lines have {detected.width} fields: {column} is read as the weight, the others are "
            f"not read{commas}; weighted=False reads the ids only"
        )
        notes.append(Doubt(note) if detected.numeric else note)
    return notes
