"""What the first lines of an edge list tell: separator, header, columns, announced sizes."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from louvain_um.formats import complain
from louvain_um.formats.complain import NUMBER, WHOLE, split
from louvain_um.formats.source import Source

SAMPLE_LINES = 64
LOOK_AHEAD = 1 << 16
MOST_AHEAD = 1 << 24
"""Bytes searched for the first edge behind a long comment."""

ENDS = {
    "source", "target", "src", "dst", "dest", "from", "to", "u", "v", "head", "tail", "node1",
    "node2", "node_1", "node_2", "id1", "id2", "id_1", "id_2", "fromnodeid", "tonodeid", "i", "j",
    "from_node", "to_node", "vertex1", "vertex2", "start", "end", "row", "col",
}  # fmt: skip
"""Words that name a column of ids, in lower case."""

TIMES = {"time", "timestamp", "unixtime", "unixts", "date", "datetime", "ts", "t"}
"""Words that name a column of times."""

WEIGHTS = {"weight", "weights", "w"}
"""Words that name a column of weights."""

ANNOUNCED = re.compile(rb"nodes:?\s*([\d,]+)", re.I)


@dataclass(slots=True)
class Sniffed:
    """What the beginning of an edge list looks like.

    Parameters
    ----------
    separator : int
        Byte between fields; 32 stands for any run of blanks.
    columns : int
        Fields of an edge's line, as most lines of the sample have them.
    textual : bool
        Whether ids are words.
    third : {"number", "weight", "time", "other", ""}
        What the third column holds; "weight" if it is named so.
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
    third: str = ""
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


def sniff(source: Source, *, header: bool | None, separator: str | None, ids: str) -> Sniffed:
    """Look at the beginning of an edge list without consuming it."""
    sample = _sample(source)
    found = Sniffed(announced=sample.announced)
    if not sample.text:
        found.columns = 3 if sample.names and sample.names[2] in WEIGHTS else 2
        return found
    found.sampled = len(sample.text)
    found.separator = ord(separator) if separator else _separator(sample.text)
    if found.separator == 9 and all(b'"' not in line for line in sample.text):
        plain = all(len(line.split()) == len(split(line, 9)) for line in sample.text)
        found.separator = 32 if plain else 9
    rows = [split(line, found.separator) for line in sample.text]
    if header is None:
        header = _has_header(rows)
    if header:
        found.header = sample.text[0].decode("utf-8", "replace").strip()
        found.skip, found.lines = sample.past[0], sample.number[0]
        names = [name.lower() for name in rows[0]]
        rows = rows[1:]
    else:
        names = sample.names
    if not rows:
        found.columns = 3 if len(names) > 2 and names[2] in WEIGHTS else 2
        return found
    found.columns = sorted(map(len, rows))[len(rows) // 2]
    quoted = any(line.lstrip().startswith(b'"') for line in sample.text[1 if header else 0 :])
    wordy = sum(any(_is_word(name) for name in row[:2]) for row in rows)
    found.textual = ids == "text" or (ids == "auto" and (quoted or 2 * wordy > len(rows)))
    third = [row[2] for row in rows if len(row) > 2]
    if third:
        numbers = all(NUMBER.fullmatch(name) for name in third)
        found.third = "number" if numbers else "other"
        if numbers and len(names) > 2 and names[2] in WEIGHTS:
            found.third = "weight"
        if len(names) > 2 and names[2] in TIMES:
            found.third = "time"
    if "weight" in names[3:]:
        found.notes.append(
            "the column 'weight' is not the third and was not read; make it the third to use it"
        )
        found.third = "other"
    return found


def may_be_counts(source: Source, separator: int) -> list[int] | None:
    """Return the numbers of the first line that is no comment, if it has two or three."""
    sample = _sample(source)
    if not sample.text:
        return None
    row = split(sample.text[0], separator)
    if len(row) not in (2, 3) or not all(map(WHOLE.fullmatch, row)):
        return None
    return [int(name) for name in row]


def pass_first(source: Source, found: Sniffed) -> None:
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
        if complain.looks_binary(line):
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
            if len(words) == 3 and set(words[:2]) <= ENDS and words[2] in WEIGHTS | TIMES:
                sample.names = words
        elif text:
            sample.text.append(line.rstrip(b"\r\n"))
            sample.past.append(place)
            sample.number.append(number)
            if len(sample.text) == SAMPLE_LINES:
                break
    return sample


def _separator(lines: list[bytes]) -> int:
    """Return the byte that separates fields in every line of the sample, blanks at last."""
    for byte in b"\t,;|":
        if all(byte in line for line in lines):
            return byte
    if all(len(line.split()) >= 2 for line in lines):
        return 32
    # A faulty line must not change how the others are read: ask the last of them.
    for byte in b"\t,;|:":
        if byte in lines[-1]:
            return byte
    return 32


def _is_word(name: str) -> bool:
    return not NUMBER.fullmatch(name)


def _has_header(rows: list[list[str]]) -> bool:
    """Return whether the first line names columns: words over numbers, or well-known words."""
    first, others = rows[0], rows[1:]
    if len(first) < 2:
        return False
    if {name.lower() for name in first[:2]} <= ENDS and any(_is_word(n) for n in first[:2]):
        return True
    if not others or len(others[0]) < 2:
        return False
    numeric = all(WHOLE.fullmatch(name) for name in others[0][:2])
    if numeric and all(_is_word(name) for name in first[:2]):
        return True
    return (
        len(first) > 2
        and len(others[0]) > 2
        and (_is_word(first[2]) and not _is_word(others[0][2]) and all(map(_is_word, first[:2])))
    )
