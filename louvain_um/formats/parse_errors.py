"""Error messages for lines that cannot be read: what is wrong and the remedy, in one line."""

from __future__ import annotations

import csv
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from louvain_um.formats.edge_list.scan import TWO_IDS, WEIGHT, LineFormat, end_of_line
from louvain_um.formats.graph_file import GraphFile
from louvain_um.formats.ids import is_number

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?(inf|infinity|nan)", re.I | re.A)
DECIMAL_COMMA = re.compile(r"\d+,\d+", re.A)
WHOLE = re.compile(r"\d{1,18}", re.A)

NOT_TEXT = "is not text; check whether it is compressed or in another format (format=…)"

CLOSING = {"(": ")", "[": "]", "{": "}"}
"""The bracket that closes each."""

OPEN_QUOTE = "has a quote that is not closed; close it in the same line, or remove it"


def opens_quote(line: bytes, separator: int) -> bool:
    """Return whether a field of a line begins with a quote that is not closed."""
    text = np.frombuffer(line + b"\n", np.uint8)
    return b'"' in line and bool(end_of_line(text, 0, separator) < 0)


def refuse_brackets(file: GraphFile, rows: list[list[str]], line: int) -> None:
    """Raise an error if every row begins with a bracket that another field closes."""
    if rows and all(row[0][:1] in CLOSING and CLOSING[row[0][0]] not in row[0] for row in rows):
        raise file.error(
            f"{rows[0][0]!r} begins with a bracket that another field closes; delete the brackets "
            "around edges, or quote ids that contain separators",
            line,
        )


def split(line: bytes, separator: int) -> list[str]:
    """Return a line's fields without surrounding blanks and quotes."""
    # The csv module refuses carriage returns inside a line; readers take them for blanks.
    text = line.decode("utf-8", "backslashreplace").replace("\r", " ").rstrip()
    text = text.lstrip(" " if separator == 9 else None)  # the first field may be empty
    if separator == 32 and '"' not in text:
        # Blanks of other scripts belong to names, as for readers.
        return [name.decode("utf-8", "backslashreplace") for name in line.split()]
    # Readers take a carriage return inside a line for a blank.
    line_end = text.replace("\r", " ").replace("\n", " ")
    reader = csv.reader([line_end], delimiter=chr(separator), skipinitialspace=True)
    try:
        return [name.strip() for name in next(reader, [])]
    except csv.Error:  # a field longer than its limit
        return [name.strip() for name in line_end.split(chr(separator))]


def line_at(data: NDArray[Any], start: int) -> bytes:
    """Return the line of a block that starts at a byte, or its first MiB."""
    return data[start : start + (1 << 20)].tobytes().split(b"\n", 1)[0]


def looks_binary(text: bytes) -> bool:
    """Return whether bytes contain control characters other than white space."""
    return any(c < 9 or 13 < c < 32 or c == 127 for c in text)


def line_error(line: bytes, expected: LineFormat) -> str:
    """Return why a line is not an edge, and the remedy."""
    if looks_binary(line) or not _utf8(line):
        return NOT_TEXT
    if opens_quote(line, expected.separator):
        return OPEN_QUOTE
    fields = split(line, expected.separator)
    if len(fields) < 2:
        return (
            f"one field ({excerpt(line)}), but an edge needs two ids; delete the line, start it "
            "with #, or pass separator=…"
        )
    for name in fields[:2]:
        if error := _id_error(name, expected.min_id, expected.max_id):
            return error
    return shape_error(line, fields, expected)


def named_line_error(line: bytes, expected: LineFormat) -> str:
    """Return why a line whose ids are names is not an edge, and the remedy."""
    fields = split(line, expected.separator)
    if len(fields) < 2 or opens_quote(line, expected.separator):
        return line_error(line, expected)
    if not (fields[0] and fields[1]):
        return "empty id; fill it in or delete the line"
    return shape_error(line, fields, expected)


def shape_error(line: bytes, fields: list[str], expected: LineFormat) -> str:
    """Return why a line with two valid ids is not an edge."""
    shape, place = expected.shape, expected.place
    if shape == TWO_IDS and len(fields) > 2:
        return (
            f"{len(fields)} fields, but earlier lines have 2; "
            "pass weighted=False (--unweighted) to read only the ids"
        )
    if shape >= WEIGHT:
        if len(fields) <= place:
            return "missing weight; add it, or pass weighted=False (--unweighted)"
        if error := weight_error(fields[place].encode()):
            return error
        if shape == WEIGHT and len(fields) > place + 1:
            return f"{len(fields)} fields, but earlier lines have {place + 1}; correct the line"
    return f"not an edge ({excerpt(line)}); expected two ids and, optionally, a weight"


def weight_error(token: bytes, decimal_comma: bool = False) -> str:
    """Return why a weight is invalid; an empty string if it is valid."""
    if decimal_comma and b"," in token:
        written = excerpt(token.translate(bytes.maketrans(b",.", b".,")))
        return (
            f"weight {written} has a point, but others have decimal commas; write all in one way, "
            "or pass weighted=False (--unweighted)"
        )
    name = excerpt(token)
    text = token.decode("utf-8", "replace")
    if not text:
        return "empty weight; fill it in, or pass weighted=False (--unweighted)"
    if DECIMAL_COMMA.fullmatch(text):
        return (
            f"weight {name} has a decimal comma; write {text.replace(',', '.')}, or pass "
            "weighted=False (--unweighted)"
        )
    if not NUMBER.fullmatch(text):
        return f"weight {name} is not numeric; correct it, or pass weighted=False (--unweighted)"
    value = float(text)
    if value != value:
        return f"weight {name} is not a number; correct it, or pass weighted=False (--unweighted)"
    if value in (float("inf"), float("-inf")):
        return f"weight {name} is infinite; correct it, or pass weighted=False (--unweighted)"
    if value < 0:
        return (
            f"weight {name} is negative; correct it, or, to detect with objective='signed', pass "
            "signed=True (--signed)"
        )
    return ""


def _id_error(name: str, min_id: int, max_id: int) -> str:
    """Return why an id is invalid; an empty string if it is valid."""
    if WHOLE.fullmatch(name):
        if int(name) < min_id:
            return (
                f"id {name} is below {min_id}, the first id; correct it, or for an edge list "
                "pass one_based=False (--zero-based)"
            )
        if int(name) > max_id:
            return (
                f"id {name} exceeds {max_id}, the number of vertices in the header; correct either"
            )
        return ""
    shown = excerpt(name.encode())
    if not name:
        return "empty id; fill it in or delete the line"
    if re.fullmatch(r"\d+", name, re.A):
        return f"id {shown} has more than 18 digits; read ids as names with ids='text'"
    if re.fullmatch(r"-\d+", name, re.A):
        return (
            f"id {shown} is negative; number vertices from 0, or read ids as names with ids='text'"
        )
    if NUMBER.fullmatch(name):
        return f"id {shown} is not a whole number; correct it, or read ids as names with ids='text'"
    return (
        f"id {shown} is not a number; correct it, read ids as names with ids='text', or, if the "
        "line is a header, skip it with header=True (--header)"
    )


def excerpt(text: bytes) -> str:
    """Return a readable excerpt in quotes."""
    shown = text.strip().decode("utf-8", "backslashreplace")
    return repr(shown if len(shown) <= 40 else shown[:39] + "…")


def textual_id(line: bytes, separator: int) -> str:
    """Return the first id of a line that is text, not a number; "" if the line is no edge."""
    if looks_binary(line) or not _utf8(line):
        return ""
    ends = split(line, separator)[:2]
    if len(ends) < 2 or not all(ends) or any(re.fullmatch(r"-\d+", end, re.A) for end in ends):
        return ""
    return next((end for end in ends if not is_number(end)), "")


def _utf8(text: bytes) -> bool:
    try:
        text[:3000].decode("utf-8")
    except UnicodeDecodeError as error:
        return error.start > 2990
    return True
