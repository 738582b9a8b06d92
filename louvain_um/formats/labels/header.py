"""Whether the first line of a label file names its columns."""

from __future__ import annotations

from louvain_um.formats.edge_list.roles import KINDS, plain
from louvain_um.formats.labels.columns import INTEGER
from louvain_um.formats.two_modes import PEOPLE, THINGS

VERTEX_NAMES = {"vertex", "node", "id", "name"}
"""Names of the column of vertices that no list of labels begins with."""

COMMUNITY_NAMES = {
    "block", "blockmodel", "class", "cluster", "clusters", "comm", "communities", "community",
    "department", "dept", "faction", "ground_truth", "group", "infomap", "label", "labels",
    "leiden", "louvain", "member_of", "membership", "modularity_class", "module", "partition",
    "party", "planted", "true_label", "truth",
}  # fmt: skip
"""Names of the column of communities, in lower case."""

REPEATED = 4
"""Lines from which a community that only the first one has is in doubt."""


def kind_of_first_line(first: list[str], others: list[list[str]]) -> str:
    """Return "header", "doubt" (a vertex that may be a header) or "vertex"."""
    if first[0].lower() in VERTEX_NAMES:
        return "header"
    others = [row for row in others if len(row) == len(first)]
    if not others or any(map(INTEGER.fullmatch, first)) or len(first) > 2:
        return "vertex"
    integers = [all(INTEGER.fullmatch(row[i]) for row in others) for i in range(len(first))]
    if integers == [True, True] or (len(others) > 1 and any(integers)):
        return "header"
    if len(first) < 2 or any(row[0] == first[0] for row in others):
        return "vertex"
    communities = [row[1] for row in others]
    if first[1] in communities:
        return "vertex"
    named = plain(first[0]) in KINDS | PEOPLE | THINGS
    if named and plain(first[1]) in COMMUNITY_NAMES:
        return "header"
    once = any(communities.count(community) == 1 for community in set(communities))
    return "doubt" if len(others) >= REPEATED and not once else "vertex"
