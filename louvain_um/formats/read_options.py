"""Options of reading, the same for every format."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from louvain_um.errors import OptionError
from louvain_um.formats.file_types import check_separator

if TYPE_CHECKING:
    from louvain_um.graph.limits import Duplicates

Column = str | int
"""A column: its name, or its number from 1."""

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
    bipartite: bool = False
    one_based: bool | None = None
    header: bool | None = None
    separator: str | None = None
    ids: Literal["auto", "number", "text"] = "auto"
    trusted: bool = False

    def __post_init__(self) -> None:
        for option in COLUMNS:
            value = getattr(self, option)
            whole = isinstance(value, int) and not isinstance(value, bool) and value >= 0
            if value is not None and not whole and not isinstance(value, str):
                raise OptionError(option, value, "must be a column's name or its number from 1")
        if self.weight is not None and self.weighted is False:
            raise OptionError(
                "weight",
                self.weight,
                "drop one",
                problem="weight=… (--weight) contradicts weighted=False (--unweighted)",
            )
        if self.separator is not None:
            check_separator(self.separator)
        if self.ids not in ("auto", "number", "text"):
            raise OptionError("ids", self.ids, "must be 'auto', 'number' or 'text'")

    @property
    def names_columns(self) -> bool:
        """Whether any column is given."""
        return any(getattr(self, option) is not None for option in COLUMNS)

    def unsuited(self, what: str, *, but: tuple[str, ...] = ()) -> str:
        """Return an error if options for tables of edges are set, else an empty string.

        Parameters
        ----------
        what : str
            The input, which has no columns to choose.
        but : tuple of str
            Options that apply nevertheless.
        """
        for option in COLUMNS:
            if option not in but and getattr(self, option) is not None:
                return f"{what} has no columns to choose; drop {option}=… (--{option})"
        if self.bipartite and "bipartite" not in but:
            return (
                f"{what} cannot be read as bipartite, only lists and tables of edges; drop "
                "bipartite=True (--bipartite)"
            )
        return ""
