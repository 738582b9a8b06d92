"""What the first lines of an edge list tell: separator, header, columns, announced sizes."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from louvain_um.formats import parse_errors
from louvain_um.formats.edge_list import columns
from louvain_um.formats.parse_errors import DECIMAL_COMMA, NUMBER, WHOLE, split
from louvain_um.formats.source import Source

SAMPLE_LINES = 64
LOOK_AHEAD = 1 << 16
MOST_AHEAD = 1 << 24
"""Bytes searched for the first edge behind a long comment."""

COMMA_WEIGHT = re.compile(rb"\s*[^\s,]+\s+[^\s,]+\s+\d+,\d+\s*")
"""An edge between blanks whose weight has a decimal comma."""

ANNOUNCED = re.compile(rb"nodes:?\s*([\d,]+)", re.I)


@dataclass(slots=True)
class DetectedFormat:
    """What the beginning of an edge list looks like.

    Parameters
    ----------
    separator : int
        Byte between fields; 32 stands for any run of blanks.
    columns : int
        Fields of an edge's line, as most lines of the sample have them.
    textual : bool
        Whether ids are words.
    weights : {"unnamed", "weight", "named", "time", "other", ""}
        What the column behind the ids holds, or the one named as a weight: numbers without a
        name, with a weight's, with another name, with that of a time; no numbers; nothing.
    place : int
        Which column that is, from 0.
    names : list of str
        Of the columns, in lower case, where a header or a comment tells them.
    header : str or None
        Text of the line that is a header; `skip` bytes and `lines` lines reach past it.
    announced : int or None
        Vertices a comment announces.
    sampled : int
        Lines looked at that are no comments.
    """

    separator: int = 32
    columns: int = 2
    textual: bool = False
    weights: str = ""
    place: int = 2
    names: list[str] = field(default_factory=list)
    header: str | None = None
    skip: int = 0
    lines: int = 0
    announced: int | None = None
    sampled: int = 0
    notes: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Sample:
    """Lines that are no comments, with where each ends: bytes and lines from the start."""

    text: list[bytes]
    past: list[int]
    number: list[int]
    announced: int | None
    names: list[str]


def sniff(
    source: Source, *, header: bool | None, separator: str | None, ids: str
) -> DetectedFormat:
    """Look at the beginning of an edge list without consuming it."""
    sample = _sample(source)
    found = DetectedFormat(announced=sample.announced, names=sample.names)
    if not sample.text:
        found.columns = max(2, len(found.names))
        found.place = columns.weight_column(found.names) or 2
        return found
    found.sampled = len(sample.text)
    found.separator = ord(separator) if separator else _separator(sample.text)
    if found.separator == 9 and all(b'"' not in line for line in sample.text):
        plain = all(len(line.split()) == len(split(line, 9)) for line in sample.text)
        found.separator = 32 if plain else 9
    rows = [split(line, found.separator) for line in sample.text]
    sure = header if header is not None else columns.has_header(rows)
    if not sure and header is None:
        lone = _stands_alone(source, rows, found.separator)
        sure = lone == "header"
        if lone == "edge":
            found.notes.append(
                f"line {sample.number[0]} ({_text(sample.text[0])!r}) is read as an edge; if it "
                "names the columns, skip it with header=True (--header)"
            )
    if sure:
        found.header = _text(sample.text[0])
        found.skip, found.lines = sample.past[0], sample.number[0]
        found.names = [name.lower() for name in rows[0]]
        rows = rows[1:]
    if not rows:
        found.columns = max(2, len(found.names))
        found.place = columns.weight_column(found.names) or 2
        return found
    found.columns = sorted(map(len, rows))[len(rows) // 2]
    quoted = any(line.lstrip().startswith(b'"') for line in sample.text[1 if sure else 0 :])
    wordy = sum(any(columns.is_word(name) for name in row[:2]) for row in rows)
    found.textual = ids == "text" or (ids == "auto" and (quoted or 2 * wordy > len(rows)))
    _settle_weights(found, rows)
    if sure and header is None:
        _check_names(source, found)
    return found


def declares_directed(source: Source, found: DetectedFormat) -> int | None:
    """Return the first line near the beginning whose column ``Type`` says that it is directed."""
    if "type" not in found.names[2:]:
        return None
    place = found.names.index("type", 2)
    head = _whole_lines(source)
    for number, line in enumerate(head, 1):
        row = split(line, found.separator)
        if number > found.lines and len(row) > place and row[place].lower() == "directed":
            return number
    return None


def _settle_weights(found: DetectedFormat, rows: list[list[str]]) -> None:
    """Find the column of weights, and what it holds."""
    place = columns.weight_column(found.names)
    if place is not None:
        # Read even where lines are too short: that is an error with a line and a remedy.
        found.weights, found.place = "weight", place
        found.columns = max(found.columns, place + 1)
        return
    cells = [row[2] for row in rows if len(row) > 2]
    if not cells:
        return
    # A faulty weight or two make no column of words: they are named when they are read.
    numbers = sum(bool(NUMBER.fullmatch(cell) or DECIMAL_COMMA.fullmatch(cell)) for cell in cells)
    if 2 * numbers <= len(cells):
        found.weights = "other"
    elif len(found.names) <= 2:
        found.weights = "unnamed"
    else:
        found.weights = "time" if found.names[2] in columns.TIMES else "named"


def _check_names(source: Source, found: DetectedFormat) -> None:
    """Refuse tables whose header says that they would be misread."""
    line, names = found.lines, found.names
    if columns.are_labels(names):
        raise source.error(columns.LABELS + "read it as edges with header=True (--header)", line)
    ends = columns.misplaced_ends(names)
    if ends is not None:
        first, second = (place + 1 for place in ends)
        raise source.error(
            f"{names[ends[0]]!r} and {names[ends[1]]!r} are columns {first} and {second} of "
            f"{len(names)}; put them first",
            line,
        )
    if len(names) < found.columns:
        raise source.error(
            f"{len(names)} names over lines of {found.columns} fields; write decimals with a "
            "point and quote fields that hold a separator, or skip the line with header=True "
            "(--header)",
            line,
        )


def may_be_counts(source: Source, separator: int) -> list[int] | None:
    """Return the numbers of the first line that is no comment, if it has two or three."""
    sample = _sample(source)
    if not sample.text:
        return None
    row = split(sample.text[0], separator)
    if len(row) not in (2, 3) or not all(map(WHOLE.fullmatch, row)):
        return None
    return [int(name) for name in row]


def pass_first(source: Source, found: DetectedFormat) -> None:
    """Consume the first line that is no comment."""
    sample = _sample(source)
    found.skip, found.lines = sample.past[0], sample.number[0]
    source.read(found.skip)


def _sample(source: Source) -> Sample:
    """Return the first lines that are no comments."""
    size = LOOK_AHEAD
    while True:
        head = source.peek(size)
        sample = _cut(source, head, len(head) < size)
        if sample.text or len(head) < size or size >= MOST_AHEAD:
            return sample
        size *= 8


def _cut(source: Source, head: bytes, complete: bool) -> Sample:
    sample = Sample([], [], [], None, [])
    place = 0
    for number, line in enumerate(head.splitlines(keepends=True), 1):
        place += len(line)
        if not line.endswith(b"\n") and not complete:
            break
        if parse_errors.looks_binary(line):
            raise source.error(
                "is not text (control characters); is it compressed, or of another format "
                "(format=…)?",
                number,
            )
        text = line.strip()
        if text.startswith((b"#", b"%", b"//")):
            match = ANNOUNCED.search(text)
            if match and sample.announced is None:
                sample.announced = int(match[1].replace(b",", b""))
            words = text.lstrip(b"#%/ ").decode("utf-8", "replace").lower().split()
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


def _whole_lines(source: Source) -> list[bytes]:
    """Return the lines that lie near the beginning as a whole."""
    head = source.peek(LOOK_AHEAD)
    return (head if len(head) < LOOK_AHEAD else head[: head.rfind(b"\n") + 1]).splitlines()


def _text(line: bytes) -> str:
    return line.decode("utf-8", "replace").strip()


def _separator(lines: list[bytes]) -> int:
    """Return the byte that separates fields in every line of the sample, blanks at last."""
    for byte in b"\t;|,":
        if all(byte in line for line in lines):
            # Blanks, then: the comma stands in the weights.
            if byte == 44 and all(map(COMMA_WEIGHT.fullmatch, lines)):
                return 32
            return byte
    if all(len(line.split()) >= 2 for line in lines):
        return 32
    # A faulty line must not change how the others are read: ask the last of them.
    for byte in b"\t;|,:":
        if byte in lines[-1]:
            return byte
    return 32


def _stands_alone(source: Source, rows: list[list[str]], separator: int) -> str:
    """Return what a first line of words is that do not occur again, or nothing.

    A "header" if the list is short and all other names occur again; else an "edge", which
    the reader should know.
    """
    if len(rows) < 4 or len(rows[0]) < 2 or not all(map(columns.is_word, rows[0][:2])):
        return ""
    lines = [line for line in _whole_lines(source) if line.strip() and line[:1] not in b"#%"]
    times = Counter(name for line in lines for name in split(line, separator)[:2])
    if any(times[name] > 1 for name in rows[0][:2]):
        return ""
    whole = len(source.peek(LOOK_AHEAD)) < LOOK_AHEAD
    again = sum(count > 1 for count in times.values())
    return "header" if whole and again == len(times) - 2 else "edge"
