"""The first lines of an edge list, and the character between their fields."""

from __future__ import annotations

import re
from dataclasses import dataclass

from louvain_um.formats import parse_errors
from louvain_um.formats.edge_list import columns
from louvain_um.formats.graph_file import GraphFile

SAMPLE_LINES = 64
SAMPLE_BYTES = 1 << 16
MAX_SAMPLE_BYTES = 1 << 24
"""Bytes searched for the first edge after a long comment."""

COMMA_WEIGHT = re.compile(rb"\s*[^\s,]+\s+[^\s,]+\s+\d+,\d+\s*")
"""An edge separated by blanks whose weight has a decimal comma."""

ANNOUNCED = re.compile(rb"nodes:?\s*([\d,]+)", re.I)


@dataclass(slots=True)
class Sample:
    """Lines that are not comments, and the position and line number of each line's end."""

    text: list[bytes]
    past: list[int]
    number: list[int]
    announced: int | None
    names: list[str]
    comment: bytes = b""


def sample_of(file: GraphFile) -> Sample:
    """Return the first lines that are not comments."""
    size = SAMPLE_BYTES
    while True:
        head = file.peek(size)
        sample = _from_head(file, head, len(head) < size)
        if sample.text or len(head) < size or size >= MAX_SAMPLE_BYTES:
            return sample
        size *= 8


def _from_head(file: GraphFile, head: bytes, complete: bool) -> Sample:
    sample = Sample([], [], [], None, [])
    place = 0
    for number, line in enumerate(head.splitlines(keepends=True), 1):
        place += len(line)
        if not line.endswith(b"\n") and not complete:
            break
        if parse_errors.looks_binary(line):
            raise file.error(
                parse_errors.NOT_TEXT,
                number,
            )
        text = line.strip()
        if text.startswith((b"#", b"%", b"//")):
            match = ANNOUNCED.search(text)
            if match and sample.announced is None:
                digits = match[1].replace(b",", b"")
                sample.announced = int(digits) if 0 < len(digits) < 19 else None
            words = text.lstrip(b"#%/ ").decode("utf-8", "replace").lower().split()
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
