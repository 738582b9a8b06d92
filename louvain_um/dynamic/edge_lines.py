"""Lines of a text that hold edges: not its comments, nor its blank lines."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from louvain_um.formats.graph_file import GraphFile

SKIPPED: Final = re.compile(rb"^[ \t\r]*(?:(?:[#%]|//)[^\n]*)?(?:\n|\Z)", re.MULTILINE)
"""A comment or a blank line; comments are those of `formats.edge_list.scan`."""

RETURN: Final = re.compile(rb"\r(?!\r*(?:\n|\Z))")
"""A carriage return within a line."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EdgeLines:
    r"""Lines that hold edges, and their numbers in the text that they are from."""

    text: bytes
    first: int
    skipped: NDArray[np.int64]

    @classmethod
    def of(cls, text: bytes, first: int = 1) -> Self:
        """Return the lines of a text that hold edges."""
        parts, skipped = [], []
        end = count = 0
        for found in SKIPPED.finditer(text):
            if found.end() > found.start():
                parts.append(text[end : found.start()])
                count += parts[-1].count(b"\n")
                skipped.append(count)
                end = found.end()
        whole = b"".join((*parts, text[end:])) if skipped else text
        return cls(text=whole, first=first, skipped=np.array(skipped, np.int64))

    def line(self, place: Any) -> int:
        """Return the number of one of these lines, given by its place among them."""
        before = np.searchsorted(self.skipped, place, side="right")
        return self.first + int(place) + int(before)

    def __len__(self) -> int:
        """Return the number of lines."""
        return self.text.count(b"\n") + (not self.text.endswith(b"\n"))


def refuse_broken_lines(file: GraphFile, lines: EdgeLines, separator: str) -> None:
    """Raise if a line ends within quotes, or goes on after a carriage return."""
    for pattern, problem in (
        (open_quote(separator), "has a quote that is not closed; close it, or remove it"),
        (RETURN, "has a carriage return within it; remove it, or end the line there"),
    ):
        if found := pattern.search(lines.text):
            at = lines.text.count(b"\n", 0, found.start())
            raise file.error(problem, lines.line(at))


def open_quote(separator: str) -> re.Pattern[bytes]:
    r"""Return the pattern of a line that ends within quotes."""
    blanks = " \t".replace(separator, "")
    one = re.escape(separator) if len(separator) == 1 else " \t"
    gap = one if len(separator) == 1 else "[ \t]++"
    quoted = '"(?:[^"\\n]|"")*+'
    field = f'[{blanks}]*+(?:{quoted}"[^{one}\\n]*+|[^"{one}\\n][^{one}\\n]*+|)'
    return re.compile(f"^(?:{field}{gap})*+[{blanks}]*+{quoted}$".encode(), re.MULTILINE)
