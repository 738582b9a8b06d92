"""Whether the first line of an edge list is a header."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from itertools import takewhile

from louvain_um.formats.edge_list.columns import ENDS, PAIRS, TIMES, WEIGHTS, are_labels
from louvain_um.formats.edge_list.roles import find_ends, is_measure
from louvain_um.formats.parse_errors import DECIMAL_COMMA, NUMBER, WHOLE
from louvain_um.formats.two_modes import different_kinds

DATE = re.compile(r"\d{4}-\d\d")
"""How a date begins."""

Row = list[str]


def is_word(name: str) -> bool:
    """Return whether a field is not a number."""
    return not NUMBER.fullmatch(name)


def is_number(name: str) -> bool:
    """Return whether a field is a number, also with a decimal comma."""
    return bool(NUMBER.fullmatch(name) or DECIMAL_COMMA.fullmatch(name))


def has_header(rows: list[Row]) -> bool:
    """Return whether the first line is a header: words above numbers, or known column names."""
    first, others = rows[0], rows[1:]
    if len(first) < 2:
        return False
    names = [name.lower() for name in first]
    if set(names[:2]) <= ENDS and any(is_word(name) for name in first[:2]):
        return True
    if are_labels(names) or any(set(pair) <= set(names) for pair in PAIRS):
        return True
    if not others or len(others[0]) < 2:
        return False
    ends = find_ends(first)
    if ends is not None and not _are_ids(first, ends, others):
        return True
    numeric = all(WHOLE.fullmatch(name) for name in others[0][:2])
    if numeric and all(is_word(name) for name in first[:2]):
        return True
    below = zip(first, others[0], strict=False)
    if all(map(is_word, first)) and any(
        is_measure(name) and (is_number(cell) or DATE.match(cell)) for name, cell in below
    ):
        return True
    return (
        len(first) > 2
        and len(others[0]) > 2
        and all(map(is_word, first[:2]))
        and (
            (not is_number(first[2]) and is_number(others[0][2]))
            or names[2] in WEIGHTS
            or names[2] in TIMES
        )
    )


def _are_ids(first: Row, ends: tuple[int, int], others: list[Row]) -> bool:
    """Return whether two names occur below, or others with the same beginning, such as user3."""
    names = [first[place] for place in ends]
    cells = [row[place] for row in others for place in ends if place < len(row)]
    begin = "".join(takewhile(bool, (a if a == b else "" for a, b in zip(*names, strict=False))))
    return any(cell in names or (len(begin) > 1 and cell.startswith(begin)) for cell in cells)


def unrepeated_first_line(
    rows: list[Row], ends: tuple[int, int], all_rows: Callable[[], tuple[list[Row], bool]]
) -> str:
    """Classify a first line of names that do not occur again; an empty string otherwise."""
    first = _ids(rows[0], ends)
    if len(first) < 2 or not all(map(is_word, first)):
        return ""
    kinds = different_kinds(*first)
    if len(rows) < (2 if kinds else 4):
        return ""
    others, whole = all_rows()
    times = Counter(name for row in others for name in _ids(row, ends))
    if any(times[name] > 1 for name in first):
        return ""
    if kinds:
        return "header"
    repeated = sum(count > 1 for count in times.values())
    return "header" if whole and repeated == len(times) - 2 else "edge"


def _ids(row: Row, ends: tuple[int, int]) -> Row:
    return [row[place] for place in ends if place < len(row)]
