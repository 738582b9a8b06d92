"""What the columns of a table of edges are called, and what the names mean."""

from __future__ import annotations

from collections.abc import Sequence

from louvain_um.formats.parse_errors import NUMBER, WHOLE

ENDS = {
    "source", "target", "src", "dst", "dest", "destination", "from", "to", "u", "v", "head",
    "tail", "node", "node1", "node2", "node_1", "node_2", "id1", "id2", "id_1", "id_2",
    "fromnodeid", "tonodeid", "i", "j", "from_node", "to_node", "from_id", "to_id", "source_id",
    "target_id", "vertex1", "vertex2", "start", "end", "row", "col", "person", "person1",
    "person2", "friend", "user", "user1", "user2", "user_1", "user_2", "follower", "followee",
    "following", "sender", "receiver", "recipient", "author", "author1", "author2", "coauthor",
    "neighbor", "neighbour", "citing", "cited",
}  # fmt: skip
"""Words that name a column of ids, in lower case."""

PAIRS = (
    ("source", "target"), ("src", "dst"), ("from", "to"), ("u", "v"), ("node1", "node2"),
    ("source", "destination"), ("id1", "id2"), ("i", "j"),
)  # fmt: skip
"""Names that columns of edges' ends go by, in lower case."""

TIMES = {
    "time", "timestamp", "unixtime", "unixts", "date", "datetime", "ts", "t", "year", "month",
    "day", "since", "when", "created", "created_at",
}  # fmt: skip
"""Words that name a column of times."""

WEIGHTS = (
    "weight", "weights", "w", "wt", "edge_weight", "edgeweight", "value", "strength", "count",
    "counts", "frequency", "freq", "n", "score", "similarity", "intensity", "amount", "volume",
)  # fmt: skip
"""Words that name a column of weights; where there are several, the first of these."""

VERTICES, COMMUNITIES = {"vertex", "node", "id", "name"}, {"community", "communities"}
"""Words over the two columns of a table of labels."""

LABELS = "lists the community of each vertex, not edges; give the graph it was made from, or "
"""What to say of labels given as a graph; how to insist is still to follow."""


def weight_column(names: Sequence[str]) -> int | None:
    """Return the place of the column that is named as a weight, if one behind the ends is."""
    return next((names.index(word, 2) for word in WEIGHTS if word in names[2:]), None)


def are_labels(names: Sequence[str]) -> bool:
    """Return whether names, in lower case, are those of a table of communities."""
    return len(names) == 2 and names[0] in VERTICES and names[1] in COMMUNITIES


def misplaced_ends(names: Sequence[str]) -> tuple[int, int] | None:
    """Return where the ends stand by name, if that is not in the first two columns."""
    for pair in PAIRS:
        if set(pair) <= set(names):
            places = names.index(pair[0]), names.index(pair[1])
            return None if set(places) == {0, 1} else places
    return None


def is_word(name: str) -> bool:
    """Return whether this is no number."""
    return not NUMBER.fullmatch(name)


def has_header(rows: list[list[str]]) -> bool:
    """Return whether the first line names columns: words over numbers, or well-known words."""
    first, others = rows[0], rows[1:]
    if len(first) < 2:
        return False
    names = [name.lower() for name in first]
    if set(names[:2]) <= ENDS and any(is_word(name) for name in first[:2]):
        return True
    if are_labels(names) or misplaced_ends(names):
        return True
    if not others or len(others[0]) < 2:
        return False
    numeric = all(WHOLE.fullmatch(name) for name in others[0][:2])
    if numeric and all(is_word(name) for name in first[:2]):
        return True
    return (
        len(first) > 2
        and len(others[0]) > 2
        and all(map(is_word, first[:2]))
        and (
            (is_word(first[2]) and not is_word(others[0][2]))
            or names[2] in WEIGHTS
            or names[2] in TIMES
        )
    )
