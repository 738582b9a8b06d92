"""The first lines of an edge list, and the character between their fields."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import takewhile

from louvain_um.formats import column_roles as columns
from louvain_um.formats import parse_errors
from louvain_um.formats.column_roles import (
    ENDS,
    MISSING,
    PAIRS,
    TIMES,
    WEIGHTS,
    are_labels,
    find_ends,
    is_measure,
    is_record,
)
from louvain_um.formats.graph_file import GraphFile
from louvain_um.formats.parse_errors import DECIMAL_COMMA, NUMBER
from louvain_um.formats.two_modes import different_kinds

SAMPLE_LINES = 64
SAMPLE_BYTES = 1 << 16
MAX_SAMPLE_BYTES = 1 << 24
"""Bytes searched for two lines, after a long comment or of long names."""

COMMA_WEIGHT = re.compile(rb"\s*[^\s,]+\s+[^\s,]+\s+\d+,\d+\s*")
"""An edge separated by blanks whose weight has a decimal comma."""

KONECT = re.compile(rb"%\s*(sym|asym|dir|undir|bip)\s+[a-z]+\s*")
"""First line of KONECT's files: kind of the graph, and of its weights."""

ANNOUNCED = re.compile(rb"nodes:?\s*([\d,]+)", re.I)


@dataclass(slots=True)
class Sample:
    """Lines that are not comments, where each ends and its number, and comments with theirs."""

    text: list[bytes]
    past: list[int]
    number: list[int]
    announced: int | None
    names: list[str]
    comments: list[tuple[int, bytes]]
    comment: bytes = b""
    konect: str = ""
    last_line: int = 0


def sample_of(file: GraphFile) -> Sample:
    """Return the first lines that are not comments."""
    size = SAMPLE_BYTES
    while True:
        head = file.peek(size)
        sample = _from_head(file, head, len(head) < size)
        # A first line alone may be a header, and says little about what separates fields.
        if len(sample.text) > 1 or len(head) < size or size >= MAX_SAMPLE_BYTES:
            return sample
        size *= 8


def _from_head(file: GraphFile, head: bytes, complete: bool) -> Sample:
    sample = Sample([], [], [], None, [], [])
    place = 0
    for number, line in enumerate(head.splitlines(keepends=True), 1):
        place += len(line)
        sample.last_line = number
        if not line.endswith(b"\n") and not complete:
            break
        if parse_errors.looks_binary(line):
            raise file.error(parse_errors.NOT_TEXT, number)
        text = line.strip()
        if text.startswith((b"#", b"%", b"//")):
            match = ANNOUNCED.search(text)
            if match and sample.announced is None:
                digits = match[1].replace(b",", b"")
                sample.announced = int(digits) if 0 < len(digits) < 19 else None
            if not sample.text and (kind := KONECT.fullmatch(text)):
                sample.konect = kind[1].decode()
            words = text.lstrip(b"#%/ ").decode("utf-8", "replace").lower().split()
            sample.comments.append((number, text))
            if not sample.text:
                sample.comment = text.lstrip(b"#%/ \t")
            behind = {*columns.WEIGHTS, *columns.TIMES}
            if len(words) == 3 and set(words[:2]) <= columns.ENDS and words[2] in behind:
                sample.names = words
        elif text:
            sample.text.append(line.rstrip(b"\r\n"))
            sample.past.append(place)
            sample.number.append(number)
            if len(sample.text) == SAMPLE_LINES:
                break
    return sample


def whole_lines(file: GraphFile) -> list[bytes]:
    """Return the complete lines within the first bytes."""
    head = file.peek(SAMPLE_BYTES)
    return (head if len(head) < SAMPLE_BYTES else head[: head.rfind(b"\n") + 1]).splitlines()


def text_of(line: bytes) -> str:
    """Return a line as text without surrounding blanks."""
    return line.decode("utf-8", "replace").strip()


def separator_of(lines: list[bytes]) -> int:
    """Return the byte that separates fields in all lines of the sample; blanks come last."""
    for byte in b"\t;|,":
        if all(byte in line for line in lines):
            # The comma is the decimal comma of the weights.
            if byte == 44 and all(map(COMMA_WEIGHT.fullmatch, lines)):
                return 32
            return byte
    blanks = [len(line.split()) >= 2 for line in lines]
    if all(blanks):
        return 32
    # A bad line must not change how the others are read: most lines decide, then the last one.
    found = {byte: [byte in line for line in lines] for byte in b"\t;|,"}
    found |= {32: blanks, 58: [b":" in line for line in lines]}
    most = max(found, key=lambda byte: (sum(found[byte]), found[byte][-1]))
    return most if any(found[most]) else 32


DATE = re.compile(r"\d{4}-\d\d")
"""How a date begins."""

ANY_DATE = re.compile(r"\d{4}-\d\d|\d{1,4}[./-]\d{1,2}[./-]\d{1,4}")
"""How a date begins that a format describes, too."""

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
    numeric = all(map(is_number, others[0][:2]))
    if numeric and all(is_word(name) for name in first[:2]):
        weights = len(first) > 2 and len(others[0]) > 2 and is_number(first[2])
        if not weights and not _are_ids(first, (0, 1), others):
            return True
    below = zip(first, others[0], strict=False)
    if all(map(is_word, first)) and any(
        (is_measure(name) or (is_record(name) and len(first) > 2))
        and (is_number(cell) or DATE.match(cell))
        for name, cell in below
    ):
        return True
    return (
        len(first) > 2
        and len(others[0]) > 2
        and all(map(is_word, first[:2]))
        and (
            (not is_number(first[2]) and first[2] not in MISSING and is_number(others[0][2]))
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
