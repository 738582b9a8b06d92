"""Which columns of an edge table are its two ends, its weight and its time."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from louvain_um.errors import GraphError
from louvain_um.formats.read_options import Column, ReadOptions

ENDS = {
    "source", "target", "src", "dst", "dest", "destination", "from", "to", "u", "v", "head",
    "tail", "node", "node1", "node2", "node_1", "node_2", "id1", "id2", "id_1", "id_2",
    "fromnodeid", "tonodeid", "i", "j", "from_node", "to_node", "from_id", "to_id", "source_id",
    "target_id", "vertex1", "vertex2", "start", "end", "row", "col", "person", "person1",
    "person2", "friend", "user", "user1", "user2", "user_1", "user_2", "follower", "followee",
    "following", "sender", "receiver", "recipient", "author", "author1", "author2", "coauthor",
    "neighbor", "neighbour", "citing", "cited",
}  # fmt: skip
"""Names of id columns, in lower case."""

PAIRS = (
    ("source", "target"), ("src", "dst"), ("from", "to"), ("u", "v"), ("node1", "node2"),
    ("source", "destination"), ("id1", "id2"), ("i", "j"),
)  # fmt: skip
"""Names of the two columns of ids, in lower case."""

TIMES = {
    "time", "timestamp", "unixtime", "unixts", "date", "datetime", "ts", "t", "year", "month",
    "day", "since", "when", "created", "created_at",
}  # fmt: skip
"""Names of columns of times."""

WEIGHTS = (
    "weight", "weights", "w", "wt", "edge_weight", "edgeweight", "value", "strength", "count",
    "counts", "frequency", "freq", "n", "score", "similarity", "intensity", "amount", "volume",
)  # fmt: skip
"""Names of weight columns; of several, the first in this order is read."""

VERTEX_NAMES, COMMUNITY_NAMES = (
    {"vertex", "node", "id", "name"},
    {"community", "communities", "label"},
)
"""Names of the two columns of a label file."""

LABELS_NOT_EDGES = (
    "lists the community or label of each vertex, not edges; pass the graph itself, or "
)
"""Error for a label file passed as a graph; the caller adds how to read it as edges."""


def are_labels(names: Sequence[str]) -> bool:
    """Return whether names, in lower case, are those of a label file."""
    return len(names) == 2 and names[0] in VERTEX_NAMES and names[1] in COMMUNITY_NAMES


PLAIN_PAIRS = (
    *PAIRS, ("source", "dest"), ("src", "dest"), ("src", "target"), ("origin", "destination"),
    ("sender", "receiver"), ("sender", "recipient"), ("user", "friend"), ("person", "friend"),
    ("follower", "followee"), ("follower", "following"), ("follower", "followed"),
    ("user", "follower"), ("citing", "cited"), ("author", "coauthor"), ("buyer", "seller"),
    ("caller", "callee"), ("payer", "payee"), ("node", "neighbor"), ("node", "neighbour"),
)  # fmt: skip
"""Names of the two columns of ids, as `plain` returns them."""

MARKERS = (
    ("from", "to"), ("source", "target"), ("source", "dest"), ("source", "destination"),
    ("src", "dst"), ("src", "dest"), ("origin", "destination"), ("1", "2"), ("a", "b"),
    ("x", "y"), ("i", "j"), ("u", "v"), ("left", "right"), ("0", "1"),
)  # fmt: skip
"""What tells two columns of the same kind of id apart, before or after the kind."""

KINDS = {
    "account", "actor", "address", "agent", "airport", "artist", "author", "bank", "borrower",
    "bus", "cell", "character", "city", "client", "club", "company", "concept", "contact",
    "country", "customer", "device", "document", "employee", "entity", "gene", "host", "ip",
    "individual", "item", "judge", "keyword", "member", "movie", "name", "neuron", "node",
    "object", "organisation", "organization", "page", "paper", "patient", "person", "place",
    "player", "product", "protein", "region", "residue", "router", "site", "species", "station",
    "stop", "student", "tag", "team", "term", "token", "topic", "user", "vertex", "wallet",
    "website", "word", "zone",
}  # fmt: skip
"""What ids are ids of, in names such as ``customer_a`` or ``from_node_id``."""

ROW_NUMBERS = ("", "unnamed: 0")
"""Names of the column of row numbers that pandas and R write before the others."""

SHOWN = 12
"""Columns that an error lists."""


@dataclass(frozen=True, slots=True)
class Roles:
    """Columns of an edge table, by index from 0."""

    source: int
    target: int
    weight: int | None = None
    time: int | None = None
    guessed: bool = False


def plain(name: str) -> str:
    """Return a column's name in lower case, words joined by ``_``, without a final ``id``."""
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
    name = re.sub(r"[\W_]+", "_", name).strip("_")
    name = re.sub(r"(?<=[a-z0-9])_ids?(?=_|$)", "", name)
    short = re.sub(r"id(?=_?\d?$)", "", name)
    known = KINDS | ENDS
    return short if short != name and re.sub(r"_?\d$", "", short) in known else name


def is_id(name: str) -> bool:
    """Return whether a column's name says that its numbers are ids."""
    return name.lower() in (*ROW_NUMBERS, "id", "index") or name.lower().endswith("_id")


def is_measure(name: str) -> bool:
    """Return whether a column's name says that it holds weights or times."""
    return len(name) > 1 and name.lower() in {*WEIGHTS, *TIMES}


def find_ends(names: Sequence[str]) -> tuple[int, int] | None:
    """Return the indices of the two columns of ids, if their names are known."""
    exact = [name.lower() for name in names]
    for one, other in PAIRS:
        if one in exact and other in exact:
            return exact.index(one), exact.index(other)
    if len(names) > 1 and set(exact[:2]) <= ENDS:
        return 0, 1
    words = [plain(name) for name in names]
    for one, other in PLAIN_PAIRS:
        if one in words and other in words:
            return words.index(one), words.index(other)
    return next(_marked(words), None)


def _marked(words: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield pairs of columns such as ``customer_a`` and ``customer_b``, ``from_x`` and ``to_x``."""
    for first, second in MARKERS:
        for place, word in enumerate(words):
            for kind, other in _counterparts(word, first, second):
                noun = kind.rpartition("_")[2]
                known = noun in KINDS or noun.removesuffix("s") in KINDS
                if known and other in words and other != word:
                    yield place, words.index(other)


def _counterparts(word: str, first: str, second: str) -> Iterator[tuple[str, str]]:
    """Yield what a column is the id of and the name of its counterpart, if it has the marker."""
    gap = "_" if f"_{first}" in word or f"{first}_" in word else ""
    if not gap and not first.isdigit():
        return
    if word.endswith(gap + first):
        kind = word.removesuffix(gap + first)
        yield kind, kind + gap + second
    if word.startswith(first + gap):
        kind = word.removeprefix(first + gap)
        yield kind, second + gap + kind


def find_weight(names: Sequence[str], taken: Sequence[int]) -> int | None:
    """Return the index of the column named as a weight that has no other role."""
    free = [(name.lower(), place) for place, name in enumerate(names) if place not in taken]
    places = dict(reversed(free))
    return next((places[word] for word in WEIGHTS if word in places), None)


def choose(columns: Sequence[Any] | None, width: int, options: ReadOptions) -> Roles:
    """Return the roles of the columns of a table."""
    names = [str(name) for name in columns or ()]
    asked = {
        option: index_of(getattr(options, option), option, columns or (), width)
        for option in ("source", "target", "weight", "time")
        if getattr(options, option) is not None
    }
    for option, place in asked.items():
        twin = next(name for name, other in asked.items() if other == place)
        if twin != option:
            raise GraphError(
                f"{twin} and {option} are the same column; pass another {option}=… (--{option})"
            )
    # Either end of a two-mode table may be a year, say.
    measures = () if options.bipartite else [i for i, n in enumerate(names) if is_measure(n)]
    source, target, guessed = _ends(names, width, asked, measures)
    time = asked.get("time")
    taken = [place for place in (source, target, time) if place is not None]
    weight = asked.get("weight")
    if weight is None and options.weighted is not False:
        weight = find_weight(names, taken)
    used = (source, target, weight, time)
    others = [i for i, name in enumerate(names) if i not in used and name.lower() not in TIMES]
    return Roles(source, target, weight, time, guessed and bool(others))


def _ends(
    names: Sequence[str], width: int, asked: dict[str, int], measures: Sequence[int]
) -> tuple[int, int, bool]:
    """Return the indices of the two ends, never `measures`, and whether these are a guess."""
    source, target = asked.get("source"), asked.get("target")
    if source is not None and target is not None:
        return source, target, False
    others = {place for option, place in asked.items() if option in ("weight", "time")}
    named = find_ends(names)
    given = source if target is None else target
    if given is not None:
        free = [place for place in range(width) if place != given and place not in others]
        ends = named if named and given in named else (given, *free)
        if len(ends) != 2:
            missing = "target" if target is None else "source"
            raise GraphError(
                f"only one end of the edges is named; pass {missing}=… (--{missing}) too"
            )
        other = ends[0] if ends[1] == given else ends[1]
        return (given, other, False) if target is None else (other, given, False)
    if named and not set(named) & others:
        return (*named, False)
    free = [place for place in range(width) if place not in others]
    if len(free) > 2 and free[0] < len(names) and names[free[0]].lower() in ROW_NUMBERS:
        free = free[1:]
    ids = [place for place in free if place not in measures]
    if len(ids) < 2 <= len(free):
        measured = names[next(place for place in free if place in measures)]
        raise GraphError(
            f"column {measured!r} is a weight or a time by its name, and no two others can be the "
            "ends of edges; name these with source=… (--source) and target=… (--target)"
        )
    if len(free) < 2:
        raise GraphError(
            "an edge table needs two columns of ids, such as source and target; name them with "
            "source=… (--source) and target=… (--target)"
        )
    return ids[0], ids[1], True


def index_of(column: Column, option: str, columns: Sequence[Any], width: int) -> int:
    """Return the index of a column given by its name or its number from 1."""
    for place, name in enumerate(columns):
        if type(name) is type(column) and name == column:
            return place
    names = [str(name) for name in columns]
    if str(column) in names:
        return names.index(str(column))
    lower = [name.lower() for name in names]
    if str(column).lower() in lower:
        return lower.index(str(column).lower())
    text = str(column)
    if text.isdecimal() and text.isascii() and len(text) < 10:
        if 1 <= int(text) <= width:
            return int(text) - 1
        raise GraphError(
            f"there is no column {text}: lines have {width} columns, counted from 1; pass another "
            f"{option}=… (--{option})"
        )
    if not names:
        raise GraphError(
            f"there is no column {text!r}, because no header names the columns; pass its number, "
            f"counted from 1, as {option}=… (--{option})"
        )
    shown = ", ".join(names[:SHOWN]) + (", …" if len(names) > SHOWN else "")
    raise GraphError(
        f"there is no column {text!r} among {shown}; pass one of these as {option}=… (--{option})"
    )
