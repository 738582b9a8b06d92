"""Notes of readers on columns: what was guessed, and what was not read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from louvain_um.errors import Uncertain
from louvain_um.formats.column_roles import Roles, are_times, taken, unread_numbers
from louvain_um.formats.two_modes import different_kinds

if TYPE_CHECKING:
    from louvain_um.formats.edge_list.edges import EdgeList
    from louvain_um.formats.edge_list.sniff import DetectedFormat
    from louvain_um.formats.read_options import ReadOptions

OTHERS = "name others with source=… and target=…"

AS_WEIGHT = "weighted=True reads it as the weight"


def notes_on_ends(roles: Roles, titles: Sequence[str], *, moved: bool) -> list[str]:
    """Return notes on the columns of ids and times."""
    notes: list[str] = []

    def column(place: int) -> str:
        return f"column {place + 1}" + (f" ({titles[place]!r})" if place < len(titles) else "")

    first, second = column(roles.source), column(roles.target)
    if roles.marker is not None:
        notes.append(
            f"{column(roles.marker)} marks each line as an edge; edges are read from {first} and "
            f"{second}"
        )
    elif roles.relation is not None:
        note = f"{column(roles.relation)} says how {first} and {second} are related and is not read"
        notes.append(Uncertain(f"{note}; {OTHERS}") if roles.guessed else note)
    elif roles.guessed:
        ends = [titles[i] for i in (roles.source, roles.target) if i < len(titles)]
        if len(ends) < 2 or not different_kinds(*ends):
            notes.append(
                Uncertain(f"{first} and {second} are read as the ends of each edge; {OTHERS}")
            )
    elif moved:
        notes.append(f"edges are read from {first} and {second}")
    if roles.time is not None:
        notes.append(f"{column(roles.time)} holds times, which a graph without time does not use")
    return notes


def notes_on_weights(edges: EdgeList, options: ReadOptions, detected: DetectedFormat) -> list[str]:
    """Drop weights that are times; return notes on weights and other numbers."""
    w = edges.w
    further = [detected.title(place) for place in detected.numeric]
    uncertain = not options.names_columns
    if w is None:
        if options.weighted is False or detected.columns < 3:
            return []
        if detected.weights == "named":
            return [unread_numbers(further, uncertain=uncertain)] if further else []
        what = "contains times" if detected.weights == "time" else "is not a weight"
        # A column of words cannot be read as the weight.
        advice = "" if detected.weights == "other" else f"; {AS_WEIGHT}"
        notes: list[str] = [f"{detected.column(2)} {what} and is not read{advice}"]
        return [*notes, *([unread_numbers(further, uncertain=uncertain)] if further else [])]
    notes = [*edges.notes]
    if detected.weights == "weight" and detected.order[detected.place] != 2:
        notes.append(f"weights are read from {detected.column(detected.place)}")
    if detected.decimal_comma:
        notes.append("weights have decimal commas: 1,5 is read as 1.5")
    further = [title for title in further if title != detected.title(detected.place)]
    if further:
        notes.append(unread_numbers(further, uncertain=False))
    unnamed = detected.weights in ("unnamed", "taken")
    if not options.weighted and unnamed and len(w) > 1 and w.dtype == np.int64:
        what = are_times(int(w.min()), int(w.max()))
        if what:
            edges.w = None
            where = detected.column(detected.place)
            note = f"{where} looks like {what} and is not read; {AS_WEIGHT}"
            # Numbers of ten digits in this range are hardly anything else.
            return [Uncertain(note) if what == "years" else note]
    if detected.weights == "taken":
        notes.append(taken(detected.title(detected.place)))
    if options.weighted or detected.weights != "unnamed" or len(w) < 2:
        return notes
    if detected.columns > 3:
        commas = " (write decimals with a point)" if detected.separator == ord(",") else ""
        column = detected.column(2).removesuffix(" column")
        note = (
            f"lines have {detected.width} fields: {column} is read as the weight, the others are "
            f"not read{commas}; weighted=False reads the ids only"
        )
        return [*edges.notes, Uncertain(note) if detected.numeric else note]
    return notes
