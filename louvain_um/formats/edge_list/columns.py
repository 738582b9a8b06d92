"""Column names of edge tables and their meaning."""

from __future__ import annotations

from collections.abc import Sequence

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
