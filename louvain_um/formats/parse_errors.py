"""What is wrong with a line, and what to do about it, in one line."""

from __future__ import annotations

import csv
import re
from typing import Any

from numpy.typing import NDArray

from louvain_um.formats.edge_list.scan import TWO_IDS, WEIGHT

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?(inf|infinity|nan)", re.I | re.A)
DECIMAL_COMMA = re.compile(r"\d+,\d+", re.A)
WHOLE = re.compile(r"\d{1,18}", re.A)


def split(line: bytes, separator: int) -> list[str]:
    """Return a line's fields without the blanks and quotes around them."""
    text = line.decode("utf-8", "backslashreplace").strip()
    if separator == 32 and '"' not in text:
        return text.split()
    reader = csv.reader([text], delimiter=chr(separator), skipinitialspace=True)
    return [name.strip() for name in next(reader, [])]


def line_at(data: NDArray[Any], start: int) -> bytes:
    """Return the line of a block that starts at a byte, or its first 4,000 bytes."""
    return data[start : start + 4000].tobytes().split(b"\n", 1)[0]


def looks_binary(text: bytes) -> bool:
    """Return whether bytes are no text: they hold control characters other than blanks."""
    return any(c < 9 or 13 < c < 32 or c == 127 for c in text)


def about_line(
    line: bytes, separator: int, shape: int, least: int, most: int, place: int = 2
) -> str:
    """Return why a line is no edge, and the remedy."""
    if looks_binary(line) or not _utf8(line):
        return "is not text; is the file compressed, or of another format (format=…)?"
    fields = split(line, separator)
    if len(fields) < 2:
        return (
            f"one field ({short(line)}) where an edge needs two ids; delete the line, start it "
            "with #, or name the separator"
        )
    for name in fields[:2]:
        if complaint := _about_id(name, least, most):
            return complaint
    return about_shape(line, fields, shape, place)


def about_named(line: bytes, separator: int, shape: int, place: int = 2) -> str:
    """Return why a line with words for ids is no edge, and the remedy."""
    fields = split(line, separator)
    if len(fields) >= 2 and not (fields[0] and fields[1]):
        return "an id is empty; write it, or delete the line"
    if len(fields) < 2:
        return about_line(line, separator, shape, 0, 0)
    return about_shape(line, fields, shape, place)


def about_shape(line: bytes, fields: list[str], shape: int, place: int) -> str:
    """Return why a line with two good ids is no edge."""
    if shape == TWO_IDS and len(fields) > 2:
        return (
            f"{len(fields)} fields where the lines before have 2; "
            "pass weighted=False (--unweighted) to read only the ids"
        )
    if shape >= WEIGHT:
        if len(fields) <= place:
            return (
                "no weight where other lines have one; add it, or pass weighted=False "
                "(--unweighted)"
            )
        if complaint := about_weight(fields[place].encode()):
            return complaint
        if shape == WEIGHT and len(fields) > place + 1:
            return f"{len(fields)} fields where the lines before have {place + 1}; correct the line"
    return f"is no edge ({short(line)}); two ids, then perhaps a weight, were expected"


def about_weight(token: bytes) -> str:
    """Return why a weight is refused, or nothing."""
    name = short(token)
    text = token.decode("utf-8", "replace")
    if not text:
        return "an empty weight; write one, or pass weighted=False (--unweighted)"
    if DECIMAL_COMMA.fullmatch(text):
        return (
            f"weight {name} has a decimal comma; write {text.replace(',', '.')}, or pass "
            "weighted=False (--unweighted)"
        )
    if not NUMBER.fullmatch(text):
        return f"weight {name} is no number; correct it, or pass weighted=False (--unweighted)"
    value = float(text)
    if value != value:
        return f"weight {name} is not a number; correct it, or pass weighted=False (--unweighted)"
    if value in (float("inf"), float("-inf")):
        return f"weight {name} is infinite; correct it, or pass weighted=False (--unweighted)"
    if value < 0:
        return f"weight {name} is negative; modularity needs weights of at least 0"
    return ""


def _about_id(name: str, least: int, most: int) -> str:
    if WHOLE.fullmatch(name):
        if int(name) < least:
            return (
                f"id {name} in a list whose ids count from {least}; pass one_based=False "
                "(--zero-based)"
            )
        if int(name) > most:
            return f"id {name} is above {most}, the largest announced; correct it or the header"
        return ""
    shown = short(name.encode())
    if not name:
        return "an id is empty; write it, or delete the line"
    if re.fullmatch(r"\d+", name, re.A):
        return f"id {shown} is too large (at most 18 digits); read ids as names with ids='text'"
    if re.fullmatch(r"-\d+", name, re.A):
        return f"id {shown} is negative; number vertices from 0, or read ids as names: ids='text'"
    if NUMBER.fullmatch(name):
        return f"id {shown} is not a whole number; correct it, or read ids as names: ids='text'"
    return (
        f"id {shown} is no number as the ids before are; correct it, skip a header with "
        "header=True (--header), or read ids as names: ids='text'"
    )


def short(text: bytes) -> str:
    """Return a readable excerpt in quotes."""
    shown = text.strip().decode("utf-8", "backslashreplace")
    return repr(shown if len(shown) <= 40 else shown[:39] + "…")


def _utf8(text: bytes) -> bool:
    try:
        text[:3000].decode("utf-8")
    except UnicodeDecodeError as error:
        return error.start > 2990
    return True
