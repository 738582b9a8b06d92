"""Lines of timed edges: which column is what, and the columns of a text."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from louvain_um.dynamic.edge_lines import EdgeLines, refuse_broken_lines
from louvain_um.errors import GraphError
from louvain_um.formats.column_roles import Roles, choose, is_time
from louvain_um.formats.edge_list.first_lines import DATE
from louvain_um.formats.edge_list.sniff import THOUSANDS
from louvain_um.formats.file_types import SUFFIXES, first_line_of, other_content, require, suffix_of
from louvain_um.formats.graph_file import GraphFile
from louvain_um.formats.ids import is_number as is_plain_id
from louvain_um.formats.parse_errors import DECIMAL_COMMA
from louvain_um.formats.read_options import ReadOptions

SEPARATORS: Final = ("\t", ";", ",")
"""Separators of fields, in the order in which they are looked for; else any white space."""

BLANKS: Final = r"\s+"
"""Any white space, as pandas takes it."""

REWRITTEN: Final = re.compile(rb"(?<![^\s,;|\"])(?:\+|0)[0-9]")
"""A field that may be an id such as 007, which no number gives back."""

Columns = dict[str, NDArray[Any]]
Line = Callable[[Any], int | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedLines:
    """How the lines of a text are split, found out from its first ones."""

    file: GraphFile
    separator: str
    places: dict[str, int]
    first: int
    sample: bytes
    in_order: bool = False
    ids: str = "auto"

    @classmethod
    def begin(cls, file: GraphFile, options: ReadOptions, *, first: int = 1) -> Self:
        """Read comments and the first line that is none; `first` is the number of the next."""
        line, read = first - 1, b""
        while not EdgeLines.of(read).text:
            read = file.read_line("surrogateescape").encode("utf-8", "surrogateescape")
            line += 1
            if not read:
                raise file.error("has no edges; expected lines such as: 1 2 1082040961", line)
        text = read.decode("utf-8", "replace")
        separator = options.separator or separator_of(text)
        separator = BLANKS if separator == " " else separator
        refuse_broken_lines(file, EdgeLines.of(read, line), separator)
        titles = fields_of(text, separator)
        header = options.header
        if header is None:
            header = not any(is_number(title) or DATE.match(title) for title in titles)
        try:
            roles = roles_of(titles if header else None, len(titles), options)
        except GraphError as error:
            if not header or options.header:
                raise
            hint = f"; if line {line} is an edge, pass header=False (--no-header)"
            raise GraphError(f"{error}{hint}") from None
        places = places_of(roles)
        return cls(
            file=file,
            separator=separator,
            places=places,
            first=line + int(header),
            sample=b"" if header else read,
            in_order=not header and not options.names_columns,
            ids=options.ids,
        )

    def columns(
        self, text: bytes, first: int, *, names: bool = False
    ) -> tuple[Columns, Callable[[Any], int]]:
        """Return the columns of some lines, of which the first has a given number."""
        lines = EdgeLines.of(text, first)
        if not lines.text:
            raise self.file.error("has no edges; expected lines such as: 1 2 1082040961", first)
        table = self._table(lines, names=names or self.ids == "text")
        ends = [self.places["source"], self.places["target"]]
        kinds = {str(table[place].dtype) for place in ends if place < len(table.columns)}
        if kinds != {"int64"} and any(kind[0] in "iufb" for kind in kinds):
            table = self._table(lines, names=True)  # 7 is the same vertex in both columns
        elif kinds == {"int64"} and self.ids == "auto" and REWRITTEN.search(lines.text):
            texts = self._table(lines, names=True)
            if not all(map(is_plain_id, pandas_texts(texts, ends))):
                table = texts
        for role, place in self.places.items():
            if place >= len(table.columns):
                raise self.file.error(
                    f"has {len(table.columns)} fields, none for the {role}; complete the line",
                    lines.line(0),
                )
            missing = table[place].isna().to_numpy()
            if missing.any():
                raise self.file.error(
                    f"the {role} is missing; the file may be truncated: download it again, or "
                    "complete the line",
                    lines.line(np.argmax(missing)),
                )
        for place in ends:
            if table[place].dtype != np.int64:  # blanks before a separator belong to no name
                table[place] = table[place].str.rstrip(" \t")
        columns = {role: table[place].to_numpy() for role, place in self.places.items()}
        if "weight" in columns and self.separator != ",":
            columns["weight"] = without_decimal_commas(columns["weight"])
        return columns, lines.line

    def _table(self, lines: EdgeLines, *, names: bool) -> Any:
        """Return a frame of some lines, one row for each."""
        file, places = self.file, self.places
        pandas = require("pandas", file.name)
        ends = {places["source"]: str, places["target"]: str} if names else None
        try:
            table = pandas.read_csv(
                io.BytesIO(lines.text), sep=self.separator, header=None, dtype=ends,
                skipinitialspace=True, engine="c", low_memory=False, skip_blank_lines=False,
                keep_default_na=False, na_values=[""],  # NA and null are names
            )  # fmt: skip
        except UnicodeDecodeError:
            raise file.error(
                "is not UTF-8 text; convert it, or correct the line",
                lines.line(_undecodable(lines.text)),
            ) from None
        except Exception as error:  # pandas raises several types
            refuse_broken_lines(file, lines, self.separator)
            longer = re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", str(error))
            if longer is None:
                raise file.error(
                    f"cannot be split into columns ({first_line_of(error)}); pass separator=…"
                ) from None
            raise file.error(
                f"has {longer[3]} fields instead of {longer[1]}; correct the line",
                lines.line(int(longer[2]) - 1),
            ) from None
        if len(table) != len(lines):
            refuse_broken_lines(file, lines, self.separator)
            raise file.error(
                f"cannot be split into columns ({len(lines):,} lines become {len(table):,} rows); "
                "check how lines end, or pass separator=…"
            )
        return table


def pandas_texts(table: Any, places: Sequence[int]) -> set[str]:
    """Return the different texts of some columns of a frame."""
    return {text.strip() for place in places for text in table[place].dropna().unique()}


def _undecodable(text: bytes) -> int:
    """Return how many lines come before the first that is not UTF-8."""
    try:
        text.decode()
    except UnicodeDecodeError as error:
        return text.count(b"\n", 0, error.start)
    return 0


def roles_of(titles: Sequence[str] | None, width: int, options: ReadOptions) -> Roles:
    """Return which columns are what: by name, or else u, v, time and weight in this order."""
    if titles is None and not options.names_columns:
        if width < 3:
            raise GraphError(f"has {width} columns; a timed edge list needs u, v and time")
        return Roles(source=0, target=1, time=2, weight=3 if width > 3 else None)
    if options.time is None:
        known = next((title for title in titles or () if is_time(title)), None)
        options = replace(options, time=known)
    roles = choose(titles, width, options)
    if roles.time is None:
        raise GraphError("has no column named time; pass time=… to choose one")
    return roles


def places_of(roles: Roles) -> dict[str, int]:
    """Return the columns that have a role."""
    places = {"source": roles.source, "target": roles.target, "time": roles.time}
    places |= {"weight": roles.weight} if roles.weight is not None else {}
    return {role: place for role, place in places.items() if place is not None}


def separator_of(line: str) -> str:
    """Return what separates the fields of a line, whatever is between quotes."""
    bare = re.sub(r'"[^"]*"', "", line)
    return next((each for each in SEPARATORS if each in bare), BLANKS)


def fields_of(line: str, separator: str) -> list[str]:
    """Return the fields of a line, without quotes and surrounding blanks."""
    if separator == BLANKS:
        line, separator = " ".join(line.split()), " "
    fields = next(csv.reader([line.strip("\r\n")], delimiter=separator, skipinitialspace=True))
    return [field.strip() for field in fields]


def without_decimal_commas(weights: NDArray[Any]) -> NDArray[Any]:
    """Return weights as numbers if they have decimal commas that cannot mean thousands."""
    if weights.dtype.kind in "biuf":
        return weights
    texts = [str(weight) for weight in weights]
    commas = [text for text in texts if DECIMAL_COMMA.fullmatch(text)]
    if all(THOUSANDS.fullmatch(text) for text in commas):  # or none
        return weights
    if not all(text.isdecimal() or DECIMAL_COMMA.fullmatch(text) for text in texts):
        return weights
    return np.array([float(text.replace(",", ".")) for text in texts])


def is_number(text: str) -> bool:
    """Return whether a text is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def refuse_graphs(file: GraphFile) -> None:
    """Raise for a file of a format for graphs, whose edges have no times, or of no edges at all."""
    head = file.peek(64)
    if problem := other_content(head):
        raise file.error(problem)
    format = SUFFIXES.get(suffix_of(file.name), "edges")
    if head.startswith(b"%%MatrixMarket"):
        format = "matrixmarket"
    if format not in ("edges", "parquet"):
        raise file.error(
            f"a {format} file holds a graph without times; pass timed edges: lines u v time, CSV "
            "or Parquet"
        )
