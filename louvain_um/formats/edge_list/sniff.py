"""Detect the format of an edge list from its first lines: separator, header, columns, sizes."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from louvain_um.formats import parse_errors
from louvain_um.formats.edge_list import columns
from louvain_um.formats.graph_file import GraphFile
from louvain_um.formats.parse_errors import DECIMAL_COMMA, NUMBER, WHOLE, split

SAMPLE_LINES = 64
SAMPLE_BYTES = 1 << 16
MAX_SAMPLE_BYTES = 1 << 24
"""Bytes searched for the first edge after a long comment."""

COMMA_WEIGHT = re.compile(rb"\s*[^\s,]+\s+[^\s,]+\s+\d+,\d+\s*")
"""An edge separated by blanks whose weight has a decimal comma."""

ANNOUNCED = re.compile(rb"nodes:?\s*([\d,]+)", re.I)


@dataclass(slots=True)
class DetectedFormat:
    """The format of an edge list, detected from its beginning.

    Parameters
    ----------
    separator : int
        Byte between fields; 32 stands for any run of blanks.
    columns : int
        Fields per line: the median of the sample.
    named : bool
        Whether ids are names.
    weights : {"unnamed", "weight", "named", "time", "other", ""}
        The column after the ids, or the one named as a weight: numbers without a column name,
        with the name of a weight, with another name, with that of a time; no numbers; none.
    place : int
        Index of that column.
    names : list of str
        Column names in lower case, from a header or a comment.
    header : str or None
        The header line; `skip` and `lines` are the bytes and lines up to its end.
    announced : int or None
        Number of vertices that a comment announces.
    sampled : int
        Lines examined that are not comments.
    """

    separator: int = 32
    columns: int = 2
    named: bool = False
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
    """Lines that are not comments, and the position and line number of each line's end."""

    text: list[bytes]
    past: list[int]
    number: list[int]
    announced: int | None
    names: list[str]


def sniff(
    file: GraphFile, *, header: bool | None, separator: str | None, ids: str
) -> DetectedFormat:
    """Detect the format of an edge list without consuming it."""
    sample = _sample(file)
    detected = DetectedFormat(announced=sample.announced, names=sample.names)
    if not sample.text:
        detected.columns = max(2, len(detected.names))
        detected.place = columns.weight_column(detected.names) or 2
        return detected
    detected.sampled = len(sample.text)
    detected.separator = ord(separator) if separator else _separator(sample.text)
    if detected.separator == 9 and all(b'"' not in line for line in sample.text):
        plain = all(len(line.split()) == len(split(line, 9)) for line in sample.text)
        detected.separator = 32 if plain else 9
    rows = [split(line, detected.separator) for line in sample.text]
    has_header = header if header is not None else columns.has_header(rows)
    if not has_header and header is None:
        first_line = _unrepeated_first_line(file, rows, detected.separator)
        has_header = first_line == "header"
        if first_line == "edge":
            detected.notes.append(
                f"line {sample.number[0]} ({_text(sample.text[0])!r}) is read as an edge; if it "
                "is a header, pass header=True (--header)"
            )
    if has_header:
        detected.header = _text(sample.text[0])
        detected.skip, detected.lines = sample.past[0], sample.number[0]
        detected.names = [name.lower() for name in rows[0]]
        rows = rows[1:]
    if not rows:
        detected.columns = max(2, len(detected.names))
        detected.place = columns.weight_column(detected.names) or 2
        return detected
    detected.columns = sorted(map(len, rows))[len(rows) // 2]
    quoted = any(line.lstrip().startswith(b'"') for line in sample.text[1 if has_header else 0 :])
    n_named = sum(any(columns.is_word(name) for name in row[:2]) for row in rows)
    detected.named = ids == "text" or (ids == "auto" and (quoted or 2 * n_named > len(rows)))
    _detect_weights(detected, rows)
    if has_header and header is None:
        _check_names(file, detected)
    return detected


def declares_directed(file: GraphFile, detected: DetectedFormat) -> int | None:
    """Return the number of the first sampled line whose column ``Type`` is ``Directed``."""
    if "type" not in detected.names[2:]:
        return None
    place = detected.names.index("type", 2)
    head = _whole_lines(file)
    for number, line in enumerate(head, 1):
        row = split(line, detected.separator)
        if number > detected.lines and len(row) > place and row[place].lower() == "directed":
            return number
    return None


def _detect_weights(detected: DetectedFormat, rows: list[list[str]]) -> None:
    """Find the weight column and what it contains."""
    place = columns.weight_column(detected.names)
    if place is not None:
        # Expected in short lines too: they get an error with line and remedy.
        detected.weights, detected.place = "weight", place
        detected.columns = max(detected.columns, place + 1)
        return
    cells = [row[2] for row in rows if len(row) > 2]
    if not cells:
        return
    # A few bad weights do not make a column of words: reading reports them.
    numbers = sum(bool(NUMBER.fullmatch(cell) or DECIMAL_COMMA.fullmatch(cell)) for cell in cells)
    if 2 * numbers <= len(cells):
        detected.weights = "other"
    elif len(detected.names) <= 2:
        detected.weights = "unnamed"
    else:
        detected.weights = "time" if detected.names[2] in columns.TIMES else "named"


def _check_names(file: GraphFile, detected: DetectedFormat) -> None:
    """Raise an error for a table that would be misread according to its header."""
    line, names = detected.lines, detected.names
    if columns.are_labels(names):
        raise file.error(
            columns.LABELS_NOT_EDGES + "read it as edges with header=True (--header)", line
        )
    ends = columns.misplaced_ends(names)
    if ends is not None:
        first, second = (place + 1 for place in ends)
        raise file.error(
            f"{names[ends[0]]!r} and {names[ends[1]]!r} are columns {first} and {second} of "
            f"{len(names)}; move them to the front",
            line,
        )
    if len(names) < detected.columns:
        raise file.error(
            f"{len(names)} column names, but lines have {detected.columns} fields; write decimals "
            "with a point and quote fields that contain a separator, or skip the line with "
            "header=True (--header)",
            line,
        )


def possible_counts(file: GraphFile, separator: int) -> list[int] | None:
    """Return the numbers of the first line that is not a comment, if it has two or three."""
    sample = _sample(file)
    if not sample.text:
        return None
    row = split(sample.text[0], separator)
    if len(row) not in (2, 3) or not all(map(WHOLE.fullmatch, row)):
        return None
    return [int(name) for name in row]


def skip_first_line(file: GraphFile, detected: DetectedFormat) -> None:
    """Consume the first line that is not a comment."""
    sample = _sample(file)
    detected.skip, detected.lines = sample.past[0], sample.number[0]
    file.read(detected.skip)


def _sample(file: GraphFile) -> Sample:
    """Return the first lines that are not comments."""
    size = SAMPLE_BYTES
    while True:
        head = file.peek(size)
        sample = _sample_of(file, head, len(head) < size)
        if sample.text or len(head) < size or size >= MAX_SAMPLE_BYTES:
            return sample
        size *= 8


def _sample_of(file: GraphFile, head: bytes, complete: bool) -> Sample:
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


def _whole_lines(file: GraphFile) -> list[bytes]:
    """Return the complete lines within the first bytes."""
    head = file.peek(SAMPLE_BYTES)
    return (head if len(head) < SAMPLE_BYTES else head[: head.rfind(b"\n") + 1]).splitlines()


def _text(line: bytes) -> str:
    return line.decode("utf-8", "replace").strip()


def _separator(lines: list[bytes]) -> int:
    """Return the byte that separates fields in all lines of the sample; blanks come last."""
    for byte in b"\t;|,":
        if all(byte in line for line in lines):
            # The comma is the decimal comma of the weights.
            if byte == 44 and all(map(COMMA_WEIGHT.fullmatch, lines)):
                return 32
            return byte
    if all(len(line.split()) >= 2 for line in lines):
        return 32
    # A bad line must not change how the others are read: the last line decides.
    for byte in b"\t;|,:":
        if byte in lines[-1]:
            return byte
    return 32


def _unrepeated_first_line(file: GraphFile, rows: list[list[str]], separator: int) -> str:
    """Classify a first line of names that do not occur again; an empty string otherwise.

    It is a "header" if the list is short and all other names occur again; else an "edge",
    and a note reports it.
    """
    if len(rows) < 4 or len(rows[0]) < 2 or not all(map(columns.is_word, rows[0][:2])):
        return ""
    lines = [line for line in _whole_lines(file) if line.strip() and line[:1] not in b"#%"]
    times = Counter(name for line in lines for name in split(line, separator)[:2])
    if any(times[name] > 1 for name in rows[0][:2]):
        return ""
    whole = len(file.peek(SAMPLE_BYTES)) < SAMPLE_BYTES
    repeated = sum(count > 1 for count in times.values())
    return "header" if whole and repeated == len(times) - 2 else "edge"
