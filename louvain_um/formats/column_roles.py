"""Which columns of a table are its ends, its weight, its time, and what else a column can be.

`RULES` is the table of rules that every reader follows, and that the guide shows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from louvain_um.errors import GraphError, Taken, Uncertain
from louvain_um.formats.read_options import Column, ReadOptions

ENDS = {
    "source", "target", "src", "dst", "dest", "destination", "from", "to", "u", "v", "head",
    "tail", "node", "node1", "node2", "node_1", "node_2", "id1", "id2", "id_1", "id_2",
    "fromnodeid", "tonodeid", "i", "j", "from_node", "to_node", "from_id", "to_id", "source_id",
    "target_id", "vertex1", "vertex2", "start", "end", "row", "col", "person", "person1",
    "person2", "friend", "user", "user1", "user2", "user_1", "user_2", "follower", "followee",
    "following", "sender", "receiver", "recipient", "author", "author1", "author2", "coauthor",
    "neighbor", "neighbour", "citing", "cited", "subject", "object", "start_id", "end_id",
}  # fmt: skip
"""Names of id columns, in lower case."""

PAIRS = (
    ("source", "target"), ("src", "dst"), ("from", "to"), ("u", "v"), ("node1", "node2"),
    ("source", "destination"), ("id1", "id2"), ("i", "j"), ("head", "tail"),
    ("subject", "object"), ("start_id", "end_id"),
)  # fmt: skip
"""Names of the two columns of ids, in lower case."""

TIMES = {
    "time", "timestamp", "timestamps", "unixtime", "unix_time", "unixts", "epoch", "date",
    "datetime", "ts", "t", "year", "month", "day", "since", "when", "created", "created_at",
}  # fmt: skip
"""Names of columns of times."""

TIME_ENDINGS = re.compile(
    r"(start|end|event|begin|created|updated)_?(time|date|ts)|.*_(timestamp|datetime|date|ts|at)"
)
"""Other names of columns of times, in lower case."""

WEIGHTS = (
    "weight", "weights", "w", "wt", "edge_weight", "edgeweight", "value", "strength", "count",
    "counts", "frequency", "freq", "n", "score", "similarity", "intensity", "amount", "volume",
)  # fmt: skip
"""Names of weight columns; of several, the first in this order is read."""

RELATIONS = {
    "relation", "relations", "relationship", "relationship_type", "rel", "predicate", "property",
    "interaction", "interaction_type", "shared_interaction", "edge_type", "edgetype", "link_type",
    "type", "kind", "label", "edge_label",
}  # fmt: skip
"""Names of columns that say how two ends are related, as `plain` returns them."""

RECORDS = {
    "suid", "id", "index", "networkx", "row", "edge", "record", "line", "order",
    "invoice", "transaction", "receipt", "ticket", "booking", "payment", "call", "message",
    "event", "session", "trip", "rental", "sale", "purchase", "visit", "shipment",
}  # fmt: skip
"""Names of columns that number the records of a table, without ``no`` or ``key`` at the end."""

FLAGS = {"selected", "directed", "direction", "name", "shared_name", "comment", "description"}
"""Names of columns that describe an edge: never one of its ends unless asked for."""

ADDRESSES = {"address", "addr", "vaddr", "virtual_address"}
"""Names of columns of addresses in memory."""

CLOCKS = {"cycle", "cycles", "tick", "ticks", "pc", "time_ns", "time_us"}
"""Names of columns of traces that say when an access was."""

RECORD_MARKERS = {"e", "a", "edge", "arc", "link", "edges", "arcs"}
"""Words, in lower case, that begin each line of an edge in files whose records have types."""

NAMES = ("label", "name", "shared_name", "title")
"""Attributes that name vertices, in lower case; the first whose values are all different."""

MISSING = (
    "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN",
    "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null",
)  # fmt: skip
"""Texts that are no value in a table, as pandas reads it."""

VERTEX_NAMES, COMMUNITY_NAMES = (
    {"vertex", "node", "id", "name"},
    {"community", "communities", "label"},
)
"""Names of the two columns of a label file."""


class ColumnRule(NamedTuple):
    """How a role of a column is recognised, and what is done with such a column."""

    role: str
    names: str
    otherwise: str
    done: str


def _listed(names: Any) -> str:
    return ", ".join(f"`{name}`" for name in names)


RULES = (
    ColumnRule(
        "source and target",
        "; ".join(f"`{one}` and `{other}`" for one, other in PAIRS)
        + "; pairs such as `user_id` and `friend_id`, `customer_a` and `customer_b`",
        "the first two columns that have no other role; with three columns of words, the two that "
        "have ids in common",
        "the ends of each edge",
    ),
    ColumnRule(
        "weight",
        _listed(WEIGHTS) + ", in any case",
        "the only numeric column or attribute without another role; without a header, the third",
        "the weight; a note names the column if its name is none of these",
    ),
    ColumnRule(
        "time",
        _listed(sorted(TIMES)) + ", and names such as `start_time`",
        "a third column without a name that holds Unix times or years",
        "not read (`louvain-um stream` reads it)",
    ),
    ColumnRule(
        "relation",
        _listed(sorted(RELATIONS)),
        "words between two columns that have ids in common",
        "not read",
    ),
    ColumnRule(
        "number of a record",
        _listed(sorted(RECORDS)) + ", with or without `id` or `no`",
        "",
        "never an end if each line has another, unless `source` or `target` names it",
    ),
    ColumnRule(
        "record marker",
        _listed(sorted(RECORD_MARKERS)),
        "",
        "skipped if it begins every line: `e 1 2`, `edge,1,2`",
    ),
)
"""Roles of columns, for every reader of tables, lists of edges and edge attributes."""

LABELS_NOT_EDGES = (
    "lists the community or label of each vertex, not edges; pass the graph itself, or "
)
"""Error for a label file passed as a graph; the caller adds how to read it as edges."""

NEO4J = re.compile(r"[^:]*:(START_ID|END_ID|TYPE|LABEL|ID)(\([^)]*\))?", re.ASCII)
"""A column of Neo4j's exports whose role is in its name."""

NEO4J_TYPED = re.compile(
    r"([^:]+):(int|long|float|double|boolean|byte|short|char|string|point|date|localtime|time|"
    r"localdatetime|datetime|duration)(\[\])?",
    re.ASCII,
)
"""A column of Neo4j's exports with its type."""

YEARS = 1800, 2100
"""Whole numbers that all lie in this range are years."""

UNIX_TIMES = 10**8, 5 * 10**12
"""Unix times from 1973 on in seconds, up to 2128 in milliseconds."""


def are_labels(names: Sequence[str]) -> bool:
    """Return whether names, in lower case, are those of a label file."""
    return len(names) == 2 and names[0] in VERTEX_NAMES and names[1] in COMMUNITY_NAMES


def title_of(name: Any) -> str:
    """Return a column's name without the type and the colon of Neo4j's exports."""
    text = str(name)
    if found := NEO4J.fullmatch(text):
        return found[1].lower() + (found[2] or "" if found[1].endswith("_ID") else "")
    found = NEO4J_TYPED.fullmatch(text)
    return found[1] if found else text


def is_time(name: str) -> bool:
    """Return whether a column's name says that it holds times."""
    return name.lower() in TIMES or TIME_ENDINGS.fullmatch(plain(name)) is not None


def weight_word(name: str) -> str:
    """Return a column's name as `WEIGHTS` spells it: in lower case, words joined by ``_``."""
    return re.sub(r"[\W_]+", "_", name.lower()).strip("_")


def are_times(low: float, high: float) -> str:
    """Return what whole numbers between two bounds are if not weights: times or years, or ""."""
    for (least, most), what in ((UNIX_TIMES, "Unix times"), (YEARS, "years")):
        if low >= least and high <= most and low < high:
            return what
    return ""


def choose_weight(
    numeric: Sequence[str], names: Sequence[str], options: ReadOptions, what: str = "column"
) -> tuple[str | None, list[str]]:
    """Return which of the numeric columns or attributes is the weight, and notes on all of them."""
    if options.weighted is False:
        return None, []
    ranks = {word: rank for rank, word in enumerate(WEIGHTS)}
    known = sorted(
        (ranks[word], title)
        for title in names
        if (word := weight_word(title)) in ranks
        and (title in numeric or what == "column" or word == "weight")
    )
    candidates = [title for title in numeric if not is_time(title) and not is_record(title)]
    if known:
        title = known[0][1]
        plain_name = title.lower() == "weight"
        notes = [] if plain_name else [f"weights are read from the {what} {title!r}"]
        others = [other for other in candidates if other != title]
        return title, [*notes, *([unread_numbers(others, what, uncertain=False)] if others else [])]
    if len(candidates) == 1:
        return candidates[0], [taken(candidates[0], what)]
    if options.weighted:
        shown = ", ".join(map(repr, candidates[:8]))
        raise GraphError(
            f"has several numeric {what}s, of which none is named weight ({shown}); pass one as "
            "weight=… (--weight)"
            if candidates
            else f"has no {what} of weights; drop weighted=True (--weighted)"
        )
    uncertain = not options.names_columns
    return None, [unread_numbers(candidates, what, uncertain=uncertain)] if candidates else []


def taken(title: str, what: str = "column") -> Taken:
    """Return the note on a weight that is read although its name is unknown."""
    return Taken(
        f"weights are read from the {what} {title!r}, the only numeric one; weighted=False reads "
        "none"
    )


def unread_numbers(titles: Sequence[str], what: str = "column", *, uncertain: bool) -> str:
    """Return the note on numeric columns that are not read; uncertain if one may be the weight."""
    shown = ", ".join(map(repr, titles[:8])) + (", …" if len(titles) > 8 else "")
    many = len(titles) > 1
    text = f"numeric {what}{'s' if many else ''} {shown} {'are' if many else 'is'} not read"
    if not uncertain:
        return text
    reads = "reads one" if many else "reads it"
    return Uncertain(f"{text}; weight={titles[0]!r} {reads} as the weight")


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
"""What distinguishes two columns of the same kind of id, before or after the kind."""

KINDS = {
    "account", "actor", "address", "agent", "airport", "artist", "author", "bank", "borrower",
    "bus", "cell", "character", "city", "client", "club", "company", "concept", "contact",
    "country", "customer", "device", "document", "employee", "entity", "gene", "host", "ip",
    "individual", "item", "judge", "keyword", "member", "movie", "name", "neuron", "node",
    "object", "organisation", "organization", "page", "paper", "patient", "person", "place",
    "player", "product", "protein", "region", "residue", "router", "site", "species", "station",
    "stop", "student", "tag", "team", "term", "token", "topic", "user", "vertex", "wallet",
    "website", "word", "zone", "interactor", "partner", "participant", "party", "endpoint",
    "symbol", "atom", "profile", "handle", "peer", "port", "junction", "intersection", "compound",
    "trader", "firm", "branch", "phone", "number", "email", "element", "component",
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
    relation: int | None = None
    marker: int | None = None
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
    return name.lower() in (*ROW_NUMBERS, "id", "index", "key") or name.lower().endswith("_id")


def is_record(name: str) -> bool:
    """Return whether a column's name says that it numbers the records of a table."""
    word = re.sub(r"_?(no|nr|num|number|key)$", "", plain(name))
    return name.lower() in ROW_NUMBERS or word in RECORDS or is_id(name)


def is_measure(name: str) -> bool:
    """Return whether a column's name says that it holds weights or times."""
    return len(name) > 1 and (weight_word(name) in WEIGHTS or is_time(name))


def find_ends(names: Sequence[str]) -> tuple[int, int] | None:
    """Return the indices of the two columns of ids, if their names are known."""
    exact = [re.sub(r"\(.*\)$", "", name.lower()) for name in names]
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
    free = [(weight_word(name), place) for place, name in enumerate(names) if place not in taken]
    places = dict(reversed(free))
    return next((places[word] for word in WEIGHTS if word in places), None)


def choose(
    columns: Sequence[Any] | None,
    width: int,
    options: ReadOptions,
    rows: Sequence[Sequence[str]] = (),
) -> Roles:
    """Return the roles of the columns of a table, of which `rows` are some lines as text."""
    names = [title_of(name) for name in columns or ()]
    asked = {
        option: index_of(getattr(options, option), option, columns or (), width)
        for option in ("source", "target", "weight", "time")
        if getattr(options, option) is not None
    }
    for option, place in asked.items():
        other = next(name for name, where in asked.items() if where == place)
        if other != option:
            raise GraphError(
                f"{other} and {option} are the same column; pass another {option}=… (--{option})"
            )
    if not asked:
        _refuse_addresses(names, rows)
    ends = _ends(names, width, asked, options, rows)
    time = asked.get("time")
    unread = (ends.relation, ends.marker)
    taken = [place for place in (ends.source, ends.target, time, *unread) if place is not None]
    weight = asked.get("weight")
    if weight is None and options.weighted is not False:
        weight = find_weight(names, taken)
    used = (ends.source, ends.target, weight, time)
    others = [i for i, name in enumerate(names) if i not in used and not is_time(name)]
    relation, marker = (None if place in used else place for place in unread)
    return Roles(
        ends.source, ends.target, weight, time, relation, marker, ends.guessed and bool(others)
    )


def choose_timed(
    columns: Sequence[Any] | None,
    width: int,
    options: ReadOptions,
    rows: Sequence[Sequence[str]] = (),
    *,
    konect: bool = False,
) -> Roles:
    """Return the roles of columns of timed edges: by name, or else u, v, time and weight."""
    if columns is None and not options.names_columns:
        if width < 3:
            raise GraphError(f"has {width} columns; a timed edge list needs u, v and time")
        if konect and width > 3:
            return Roles(0, 1, weight=2, time=3)
        weighted = width > 3 and options.weighted is not False
        return Roles(0, 1, time=2, weight=3 if weighted else None)
    if options.time is None:
        known = next((title for title in columns or () if is_time(title)), None)
        options = replace(options, time=known)
    roles = choose(columns, width, options, rows)
    if roles.time is None:
        raise GraphError("has no column named time; pass time=… to choose one")
    return roles


def _refuse_addresses(names: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Raise an error for a table that lists accesses to memory."""
    place = next((p for p, name in enumerate(names) if name.lower() in ADDRESSES), None)
    if place is None or not any(is_time(name) or name.lower() in CLOCKS for name in names):
        return
    if all(re.fullmatch(r"0x[0-9a-f]+|\d+", row[place], re.I) for row in rows if place < len(row)):
        raise GraphError(
            f"column {names[place]!r} seems to list addresses of memory, which is not a graph; "
            "louvain-um simulate replays such a table if its columns are named time and address; "
            "else name the ends of edges with source=… (--source) and target=… (--target)"
        )


def _ends(
    names: Sequence[str],
    width: int,
    asked: dict[str, int],
    options: ReadOptions,
    rows: Sequence[Sequence[str]],
) -> Roles:
    """Return the two ends, never a measure or a number of records, and what was found with them."""
    source, target = asked.get("source"), asked.get("target")
    if source is not None and target is not None:
        return Roles(source, target)
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
        return Roles(given, other) if target is None else Roles(other, given)
    if named and not set(named) & others:
        return Roles(*named)
    free = [place for place in range(width) if place not in others]
    if not options.bipartite:  # either end of a two-mode table may be a year, say
        free = _without_other_roles(names, free, rows)
    if len(free) < 2:
        raise GraphError(
            "an edge table needs two columns of ids, such as source and target; name them with "
            "source=… (--source) and target=… (--target)"
        )
    return _by_contents(free, rows) or Roles(free[0], free[1], guessed=True)


def _without_other_roles(
    names: Sequence[str], free: Sequence[int], rows: Sequence[Sequence[str]]
) -> list[int]:
    """Return the columns that can be ends by their names; raise an error if only one is left."""
    if not names or are_labels([name.lower() for name in names]):
        return [*free]

    def records(place: int) -> bool:
        cells = [row[place] for row in rows if place < len(row)]
        differ = len(cells) > 2 and len(set(cells)) == len(cells)
        return is_record(names[place]) and (
            differ or names[place].lower() in (*ROW_NUMBERS, "suid")
        )

    known = [place for place in free if place < len(names)]
    relation = [place for place in known if plain(names[place]) in RELATIONS]
    flags = [place for place in known if plain(names[place]) in FLAGS]
    measures = [place for place in known if is_measure(names[place])]
    numbers = [place for place in known if records(place)] if len(free) > 1 else []
    if len(free) == 2 and numbers == [free[0]] and is_id(names[free[0]]):
        numbers = []
    ids = [p for p in free if p not in (*measures, *relation, *numbers)]
    if len(ids) > 2:
        ids = [place for place in ids if place not in flags] if len(ids) - len(flags) > 1 else ids
    if len(ids) < 2 <= len(free):
        place = next(p for p in free if p in (*measures, *relation, *numbers))
        what = (
            "is a weight or a time by its name"
            if place in measures
            else "says how ends are related"
            if place in relation
            else "numbers the records of the table"
        )
        shown = ", ".join(names[:SHOWN])
        raise GraphError(
            f"column {names[place]!r} {what}, and no two others can be the ends of edges; name "
            f"these with source=… (--source) and target=… (--target) out of {shown}"
        )
    if relation and len(ids) > 2 and len([p for p in ids if p not in flags]) < 2:
        raise GraphError(_ambiguous(names, ids))
    return ids


def _ambiguous(names: Sequence[str], places: Sequence[int]) -> str:
    """Return the error for a table of which no two columns are certainly the ends."""
    shown = ", ".join(repr(names[p]) if p < len(names) else str(p + 1) for p in places)
    return (
        f"columns {shown} do not say which two are the ends of the edges; name these with "
        "source=… (--source) and target=… (--target)"
    )


def _by_contents(free: Sequence[int], rows: Sequence[Sequence[str]]) -> Roles | None:
    """Return the ends of lines whose fields show them: markers in front, relations between."""
    if len(free) < 3 or len(rows) < 2:
        return None
    columns = {place: [row[place] for row in rows if place < len(row)] for place in free}
    first, second, third = free[:3]
    if any(len(columns[place]) < len(rows) for place in (first, second, third)):
        return None
    words = {p: 2 * sum(not _is_number(cell) for cell in columns[p]) > len(rows) for p in free}
    values = {place: set(columns[place]) for place in free}
    constant = len(values[first]) == 1 and words[first] and len(rows) > 2
    shared = bool(values[second] & values[third])
    if constant and not values[first] & (values[second] | values[third]):
        whole = all(map(_is_whole, (*columns[second], *columns[third])))
        marker = columns[first][0].lower() in RECORD_MARKERS
        if marker and (whole or (words[second] and words[third])):
            return Roles(second, third, marker=first)
        if shared and (whole or words[second]):
            raise GraphError(
                f"each line begins with {columns[first][0]!r}; if this is not an edge's end, pass "
                f"source='{second + 1}', target='{third + 1}', else source='{first + 1}', "
                f"target='{second + 1}' (--source, --target)"
            )
    if not (words[second] and words[third] == words[first]):
        return None
    ends, adjacent = bool(values[first] & values[third]), bool(values[first] & values[second])
    if words[first] and shared and not adjacent:
        return Roles(second, third, guessed=True) if not ends else None
    if ends and not adjacent and not shared:
        return Roles(first, third, relation=second)
    if adjacent or not words[first]:
        return None
    few = len(values[second])
    if 4 * few <= len(rows) and min(len(values[first]), len(values[third])) >= 2 * few:
        return Roles(first, third, relation=second, guessed=True)
    if 4 * len(values[third]) <= len(rows):
        return None
    raise GraphError(
        "three columns of words without ids in common can be an edge and its kind; choose the ends "
        f"with source='{first + 1}', target='{second + 1}', or, if the second says how the others "
        f"are related, target='{third + 1}' (--source, --target)"
    )


def _is_whole(cell: str) -> bool:
    return cell.isascii() and cell.isdigit()


def _is_number(cell: str) -> bool:
    try:
        float(cell.replace(",", "."))
    except ValueError:
        return False
    return True


def index_of(column: Column, option: str, columns: Sequence[Any], width: int) -> int:
    """Return the index of a column given by its name or its number from 1."""
    for place, name in enumerate(columns):
        if type(name) is type(column) and name == column:
            return place
    names = [str(name) for name in columns]
    shown_names = [title_of(name) for name in columns]
    if str(column) in shown_names and str(column) not in names:
        return shown_names.index(str(column))
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
