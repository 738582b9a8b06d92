"""Edges between two kinds of vertices, such as users and items, whose ids are independent."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from louvain_um.core.numbering import distinct
from louvain_um.core.plain_data import objects
from louvain_um.errors import GraphError, shown
from louvain_um.formats.column_roles import PAIRS, plain
from louvain_um.formats.edge_list.number_vertices import number_vertices
from louvain_um.formats.parse_errors import NUMBER
from louvain_um.graph.limits import MAX_VERTICES

PEOPLE = {
    "account", "actor", "artist", "author", "buyer", "client", "customer", "employee", "individual",
    "member", "patient", "person", "player", "reader", "researcher", "student", "subscriber",
    "user", "viewer", "visitor", "voter", "worker",
}  # fmt: skip
"""Kinds of people: two of them in one table may be the same people."""

THINGS = {
    "album", "article", "artwork", "asin", "basket", "board", "book", "brand", "category",
    "channel", "committee", "community", "company", "conference", "country", "course", "disease",
    "document", "domain", "drug", "event", "feature", "film", "forum", "game", "gene", "genre",
    "group", "hashtag", "hotel", "ingredient", "invoice", "isbn", "item", "job", "journal",
    "keyword", "language", "location", "meeting", "merchant", "movie", "order", "organisation",
    "organization", "page", "paper", "patent", "place", "playlist", "podcast", "post", "product",
    "project", "publisher", "query", "recipe", "repo", "repository", "restaurant", "sample",
    "school", "session", "shop", "show", "site", "skill", "song", "store", "subreddit", "symptom",
    "tag", "team", "term", "thread", "title", "topic", "track", "url", "venue", "video", "website",
    "word",
}  # fmt: skip
"""Kinds of things: two different ones never have the same ids."""

LEAST_EDGES, LEAST_IDS = 32, 4
"""Edges, and ids at each end, from which disjoint ranges of ids are no coincidence."""

BIPARTITE = "bipartite=True"


def kind_of(title: str) -> str:
    """Return the kind of vertex that a column's name says, or an empty string."""
    word = plain(title).rpartition("_")[2]
    for noun in (word, word.removesuffix("s")):
        if noun in PEOPLE:
            return "people"
        if noun in THINGS:
            return noun
    return ""


def different_kinds(first: str, second: str) -> bool:
    """Return whether two columns hold ids of different kinds, by their names."""
    groups = [re.fullmatch(r"\w+_id\((.+)\)", title) for title in (first, second)]
    if groups[0] and groups[1]:  # spaces of ids of Neo4j
        return groups[0][1] != groups[1][1]
    kinds = kind_of(first), kind_of(second)
    return all(kinds) and kinds[0] != kinds[1]


def is_incidence(titles: Sequence[str], labels: Sequence[str], cells: NDArray[Any]) -> bool:
    """Return whether numbers say for each row and column how often these belong together."""
    lower = {title.lower() for title in titles}
    words = [*titles, *labels]
    if any(set(pair) <= lower for pair in PAIRS) or any(map(NUMBER.fullmatch, words)):
        return False
    if len(set(words)) < len(words) or len(titles) < 2 or not cells.size:
        return False
    zeros = cells.size - int(np.count_nonzero(cells))
    return bool(cells.min() >= 0 and (4 * zeros >= cells.size or (zeros and cells.max() == 1)))


class Numbered(NamedTuple):
    """Edges by the numbers of their ends, the number of vertices, their names, and notes."""

    u: NDArray[Any]
    v: NDArray[Any]
    n: int
    names: NDArray[Any] | None
    notes: tuple[str, ...] = ()


def modes_of(
    numbered: Numbered,
    titles: tuple[str, str],
    *,
    mixed: bool = False,
    declared: bool = False,
    one: bool = False,
) -> Numbered:
    """Return vertices numbered by column if the columns hold ids of different kinds."""
    # `declared` says that the source calls itself bipartite, `one` that it is not to be split.
    u, v, n, names, _ = numbered
    if are_one_kind(u, v, titles, mixed=mixed, declared=declared, one=one):
        return numbered
    kinds = different_kinds(*titles)
    if kinds or declared:
        seen = np.zeros(n, np.uint8)
        seen[u] = 1
        both = int(np.count_nonzero(seen[v])) if len(u) else 0
        looks = (
            f"columns {titles[0]!r} and {titles[1]!r} hold different kinds of vertices"
            if kinds
            else "the file calls itself bipartite"
        )
        if both:
            u, v, n, names = split_modes(u, v, names, titles)
            example = shown(str(names[0]))
            note = f"{looks}: equal ids are two vertices, named by their column as in {example}"
            return Numbered(u, v, n, names, (f"{note}; bipartite=False reads them as one",))
        note = f"{looks}; {BIPARTITE} names vertices by their column"
        return numbered._replace(notes=(note,))
    if min(len(distinct(u)), len(distinct(v))) < LEAST_IDS:
        return numbered
    note = (
        "no id occurs in both columns, as if they were two kinds of vertices; "
        f"{BIPARTITE} names vertices by their column"
    )
    return numbered._replace(notes=(note,))


def are_one_kind(
    u: Any, v: Any, titles: tuple[str, str], *, mixed: bool, declared: bool, one: bool
) -> bool:
    """Return whether names of columns and ranges of ids show vertices of one kind alone."""
    if (declared or different_kinds(*titles)) and not one:
        return False
    if any(titles) or len(u) < LEAST_EDGES or one:
        return True
    return not (mixed or u.max() < v.min() or v.max() < u.min())


def split_modes(
    u: NDArray[Any], v: NDArray[Any], names: NDArray[Any] | None, titles: tuple[str, str]
) -> tuple[NDArray[np.uint32], NDArray[np.uint32], int, NDArray[Any]]:
    """Give each column numbers of its own, the first column the lower ones."""
    first, second = titles
    if not first or not second or first == second:
        first, second = "source", "target"
    left, n_left, left_names = _numbered(u, names)
    right, n_right, right_names = _numbered(v, names)
    if n_left + n_right > MAX_VERTICES:
        raise GraphError(
            f"{n_left + n_right} vertices; at most {MAX_VERTICES} are supported: read a part"
        )
    right = right + np.uint32(n_left)
    both = _prefixed(first, left_names), _prefixed(second, right_names)
    return left, right, n_left + n_right, np.concatenate(both)


def _numbered(
    ids: NDArray[Any], names: NDArray[Any] | None
) -> tuple[NDArray[np.uint32], int, NDArray[Any]]:
    """Return the ids numbered 0 … n − 1, n, and the id or name of each number."""
    whole = ids.astype(np.uint32 if ids.dtype == np.uint32 else np.int64)
    numbers, _, n, found = number_vertices(whole, whole.copy())
    places = np.arange(n) if found is None else found
    return numbers, n, places if names is None else names[places]


def _prefixed(title: str, values: NDArray[Any]) -> NDArray[Any]:
    """Return ``title:value`` of each value."""
    if values.dtype != object:
        texts: NDArray[Any] = np.char.add(f"{title}:", values.astype(np.str_))
        return texts
    return objects([f"{title}:{value}" for value in values.tolist()])
