"""Options of reading, the same for every format."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from louvain_um.graph.limits import Duplicates


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """Options of `read_graph`, which documents them."""

    weighted: bool | None = None
    duplicates: Duplicates | None = None
    symmetrize: bool = False
    one_based: bool | None = None
    header: bool | None = None
    separator: str | None = None
    ids: Literal["auto", "number", "text"] = "auto"
    trusted: bool = False
