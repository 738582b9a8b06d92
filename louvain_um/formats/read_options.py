"""Options of reading, the same for every format, and errors that advise them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, Self

from louvain_um.errors import (
    GraphError,
    GraphFormatError,
    OptionError,
    check_choice,
    check_switch,
)
from louvain_um.formats.file_types import check_separator

if TYPE_CHECKING:
    from louvain_um.graph.limits import Duplicates, GraphKind

Column = str | int
"""A column: its name, or its number from 1."""

KINDS = ("symmetrize", "directed", "signed", "bipartite")
"""Options of which at most one applies."""

SWITCHES = (*KINDS, "weighted", "one_based", "header", "trusted", "allow_rounding")
"""Options that are True or False."""

NUMBERED = ("edges", "parquet", "feather", "jsonl")
"""Formats that may number vertices from 0 or from 1."""

COLUMNS = ("source", "target", "weight", "time")
"""Options that name a column."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """Options of `read_graph`, which documents them."""

    source: Column | None = None
    target: Column | None = None
    weight: Column | None = None
    time: Column | None = None
    weighted: bool | None = None
    duplicates: Duplicates | None = None
    symmetrize: bool = False
    directed: bool = False
    signed: bool = False
    bipartite: bool | None = None
    one_based: bool | None = None
    header: bool | None = None
    separator: str | None = None
    ids: Literal["auto", "number", "text"] = "auto"
    trusted: bool = False
    allow_rounding: bool = False
    loops: Literal["keep", "drop"] = "keep"

    @classmethod
    def of(cls, arguments: Mapping[str, Any]) -> Self:
        """Return the options among the arguments of a function."""
        return cls(**{f.name: arguments[f.name] for f in fields(cls) if f.name in arguments})

    def __post_init__(self) -> None:
        for option in COLUMNS:
            value = getattr(self, option)
            whole = isinstance(value, int) and not isinstance(value, bool) and value >= 0
            if value is not None and not whole and not isinstance(value, str):
                raise OptionError(option, value, "must be a column's name or its number from 1")
        for option in SWITCHES:
            value = getattr(self, option)
            if value is not None:
                object.__setattr__(self, option, check_switch(option, value))
        if self.weight is not None and self.weighted is False:
            raise OptionError(
                "weight",
                self.weight,
                "drop one",
                problem="weight=… (--weight) contradicts weighted=False (--unweighted)",
            )
        chosen = [f"{name}=True (--{name})" for name in KINDS if getattr(self, name)]
        if len(chosen) > 1:
            raise OptionError(remedy="drop one", problem=f"{chosen[0]} contradicts {chosen[1]}")
        if self.separator is not None:
            check_separator(self.separator)
        check_choice("loops", self.loops, ("keep", "drop"))
        check_choice("ids", self.ids, ("auto", "number", "text"))

    @property
    def kind(self) -> GraphKind:
        """What a graph keeps in addition to symmetric rows."""
        if self.directed:
            return "directed"
        if self.signed:
            return "signed"
        return "bipartite" if self.bipartite else "undirected"

    @property
    def names_columns(self) -> bool:
        """Whether any column is given."""
        return any(getattr(self, option) is not None for option in COLUMNS)

    def unsuited(self, what: str, *, but: tuple[str, ...] = ()) -> str:
        """Return an error if options for tables of edges are set, else an empty string."""
        for option in COLUMNS:
            if option not in but and getattr(self, option) is not None:
                return f"{what} has no columns to choose; drop {option}=… (--{option})"
        if self.bipartite and "bipartite" not in but:
            return (
                f"{what} cannot be read as bipartite, only lists and tables of edges; drop "
                "bipartite=True (--bipartite)"
            )
        return ""

    def unsuited_to(self, kind: str) -> str:
        """Return an error if options of edge lists are set for another format, else ""."""
        if kind == "edges":
            return ""
        bases = {None: "", True: "True (--one-based)", False: "False (--zero-based)"}
        heads = {None: "", True: "True (--header)", False: "False (--no-header)"}
        given = {
            "header": heads[self.header],
            "separator": "" if self.separator is None else "… (--separator)",
            "ids": "" if self.ids == "auto" else f"'{self.ids}' (--ids {self.ids})",
            "one_based": "" if kind in NUMBERED else bases[self.one_based],
        }
        for name, value in given.items():
            if value:
                return f"only edge lists take {name}={value}, and this is {kind}; drop it"
        return ""

    def unsuited_to_names(self) -> str:
        """Return an error if ids that are names are to begin at a number, else an empty string."""
        if self.one_based is None:
            return ""
        option = "True (--one-based)" if self.one_based else "False (--zero-based)"
        return f"ids are names, not numbers from {int(self.one_based)}; drop one_based={option}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedOptions(ReadOptions):
    """Options of `read_stream`, which documents them."""

    date_format: str | None = None

    def __post_init__(self) -> None:
        super(TimedOptions, self).__post_init__()
        if self.date_format is None:
            return
        try:
            written = datetime(2026, 1, 31).strftime(self.date_format)
            datetime.strptime(written, self.date_format)
            if written == self.date_format:
                raise ValueError("no directive")
        except (TypeError, ValueError):
            raise OptionError(
                "date_format", self.date_format, "must be a format of dates, such as %d.%m.%Y"
            ) from None


FILES = {"format", "header", "ids", "one_based", "separator", "trusted"}
"""Options of `read_graph` that `as_graph` lacks."""

READING = FILES | {field.name for field in fields(ReadOptions)}
ADVICE = re.compile(
    rf"(?<!_graph\(…, )\b((?:{'|'.join(sorted(READING))})=(?:True|False|'[^']*'|…))"
    r"(?: \(--[\w-]+(?: \w+)?\))?"
)
"""An option of reading, and the option of the command line that may follow it."""


@contextmanager
def named(function: str) -> Iterator[None]:
    """Let errors that advise an option of reading name the function that takes it."""
    try:
        yield
    except GraphError as error:
        error.args = tuple(_named(str(text), function) for text in error.args)
        if isinstance(error, GraphFormatError):
            error.message = _named(error.message, function)
        raise


def where_taken(arguments: Iterable[str]) -> str:
    """Return which function takes an option of reading, to end an error; "" for other options."""
    for name in arguments:
        if name in READING:
            return f"; pass {'read' if name in FILES else 'as'}_graph(…, {name}=…)"
    return ""


def _named(text: str, function: str) -> str:
    return ADVICE.sub(rf"{function}(…, \1)", text)
