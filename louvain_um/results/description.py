"""What distinguishes communities: attributes of vertices that are over-represented in them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from louvain_um.results.display import SHOWN, Rows, count, cut, html_table, listable, require_pandas
from louvain_um.results.frame import community_table, hub_members
from louvain_um.results.partition import Result
from louvain_um.results.quality import quality

if TYPE_CHECKING:
    import pandas as pd

HUBS: Final = 3
"""Members of highest degree that are shown."""

CERTAIN: Final = 0.01
"""Largest p-value, corrected for the number of tests, of what is reported."""

CATEGORIES: Final = 1000
"""Different texts up to which a column holds categories, if they repeat twice on average."""

TERMS: Final = 20_000
"""Terms of texts that are looked at, the most frequent ones."""

ROUNDING: Final = 1e-9
"""Difference, as a share, of two weights that are equal but for rounding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What distinguishes a community.

    Parameters
    ----------
    community : int
    column : str
    value : str
        A category or term; "high" or "low" for numbers.
    inside, overall : float
        Share of its vertices and of all vertices with the category; median of numbers; weight of a
        term.
    p : float
        Hypergeometric for categories, of ranks for numbers, corrected for the number of tests in
        the column (Benjamini and Hochberg); NaN for terms.
    """

    community: int
    column: str
    value: str
    inside: float
    overall: float
    p: float

    def __str__(self) -> str:
        if self.value in ("high", "low"):
            inside, overall = (f"{float(f'{x:.3g}'):,.12g}" for x in (self.inside, self.overall))
            return f"{self.column} {self.value} ({inside}, {overall} overall)"
        if np.isnan(self.p):
            return f"{self.column}: {self.value}"
        return f"{self.column} {self.value} ({self.inside:.0%}, {self.overall:.0%} overall)"


@dataclass(frozen=True, eq=False, kw_only=True)
class Description:
    """Communities and what distinguishes each.

    Parameters
    ----------
    communities : Communities
    findings : tuple of Finding
        By community, the least p-value first; terms last.
    notes : tuple of str
        Rows and columns that were left out, and why.
    """

    communities: Result
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]

    @cached_property
    def labels(self) -> list[str]:
        """One line for each community: up to three findings; empty without any."""
        lines: list[list[str]] = [[] for _ in range(self.communities.n_communities)]
        for each in self.findings:
            if len(lines[each.community]) < 3:
                lines[each.community].append(str(each))
        return ["; ".join(line) for line in lines]

    def by_vertex(self) -> NDArray[Any]:
        """Return the line of each vertex's community, as `write_graph` takes attributes."""
        return np.array(self.labels, object)[self.communities.labels]

    def __repr__(self) -> str:
        said = count(len(self.findings), "finding", "findings")
        return f"Description({self.communities!r}, {said})"

    def __str__(self) -> str:
        lines = [f"{number}: {line}" for number, line in enumerate(self.labels) if line]
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])

    @property
    def head(self) -> tuple[str, ...]:
        """Columns of `rows`; the last only where anything distinguishes a community."""
        last = ("distinguished by",) if self.findings else ()
        return ("community", "size", "density", "cut", "hubs", *last)

    def rows(self, most: int = SHOWN) -> Rows:
        """Return a row of text, by `head`, for each of the `most` largest communities."""
        found, graph = self.communities, self.communities.graph
        lines = self.labels[:most]
        figures = [("", "", "")] * len(lines)
        if graph is not None:
            of = quality(graph, found.labels, found.resolution, objective=found.objective)
            hubs = hub_members(graph, found.labels, HUBS)[:most]
            figures = [
                (f"{of.density[c]:.3g}", f"{of.cut[c]:,.6g}", self._names(members[members >= 0]))
                for c, members in enumerate(hubs)
            ]
        texts = [(line,) if self.findings else () for line in lines]
        return [(str(c), f"{found.sizes[c]:,}", *figures[c], *text) for c, text in enumerate(texts)]

    def _names(self, vertices: NDArray[np.int64]) -> str:
        names = self.communities.names
        return ", ".join(map(cut, listable(vertices if names is None else names[vertices])))

    def _repr_html_(self) -> str:
        """Show in a notebook the largest communities and what was left out."""
        notes = "".join(f"<p>{escape(note)}</p>" for note in self.notes)
        return html_table(self.head, self.rows()) + notes

    def to_frame(self) -> pd.DataFrame:
        """Return `Communities.table` with the column ``label``."""
        found = self.communities
        return community_table(found.require_graph(), found, HUBS).assign(label=self.labels)


def describe(found: Result, nodes: Any) -> Description:
    """Describe communities by attributes of their vertices; see `Communities.describe`."""
    from louvain_um.formats.attributes import attributes_of

    notes = list[str]()
    attributes = {} if found.graph is None else found.graph.attributes or {}
    if nodes is not None:
        attributes, notes = attributes_of(nodes, found.names, found.n_vertices)
    findings = list[Finding]()
    for title, array in attributes.items():
        column = require_pandas().Series(array)
        there = column.notna().to_numpy()
        values, of = column[there].infer_objects(), found.labels[there].astype(np.int64)
        if values.empty:
            continue
        kind = _kind(values)
        if _are_communities(values, of, kind):
            notes.append(f"column {title} is left out: it holds the communities")
        elif kind == "numbers":
            findings += _numbers(str(title), values.to_numpy(np.float64), of)
        elif kind == "categories":
            findings += _categories(str(title), values.astype(str).to_numpy(), of)
        elif kind == "texts":
            findings += _terms(str(title), values.astype(str).tolist(), of, notes)
        else:
            notes.append(f"column {title} is left out: its values hardly repeat")
    findings.sort(key=lambda each: (each.community, np.isnan(each.p), each.p))
    return Description(communities=found, findings=tuple(findings), notes=tuple(notes))


def _are_communities(values: Any, labels: NDArray[np.int64], kind: str) -> bool:
    """Return whether a column holds the communities themselves."""
    if kind == "numbers":
        return bool((values.to_numpy() == labels).all())
    first = str(values.iloc[0]) == str(labels[0])
    return first and bool((values.astype(str) == labels.astype(str)).all())


def _kind(values: Any) -> str:
    """Return what a column holds: numbers, categories, texts or nothing that repeats."""
    if values.dtype.kind in "iuf":
        return "numbers"
    texts = values.astype(str)
    different = texts.nunique()
    if different <= CATEGORIES and 2 * different <= len(texts):
        return "categories"
    words = texts.str.count(r"\s").mean() + 1
    return "texts" if words >= 2 else ""


def _corrected(p: NDArray[np.float64]) -> NDArray[np.float64]:
    from scipy.stats import false_discovery_control

    return false_discovery_control(p) if len(p) else p


def _categories(column: str, values: NDArray[Any], labels: NDArray[np.int64]) -> Iterator[Finding]:
    """Yield the categories that a community has more of than so many vertices by chance."""
    from scipy.stats import hypergeom

    names, codes = np.unique(values, return_inverse=True)
    pairs, counts = np.unique(labels * len(names) + codes, return_counts=True)
    of, code = np.divmod(pairs, len(names))
    sizes, totals, n = np.bincount(labels), np.bincount(codes), len(labels)
    p = _corrected(hypergeom.sf(counts - 1, n, totals[code], sizes[of]))
    for at in np.flatnonzero(p <= CERTAIN):
        yield Finding(
            community=int(of[at]), column=column, value=str(names[code[at]]),
            inside=counts[at] / sizes[of[at]], overall=totals[code[at]] / n, p=float(p[at]),
        )  # fmt: skip


def _numbers(
    column: str, values: NDArray[np.float64], labels: NDArray[np.int64]
) -> Iterator[Finding]:
    """Yield the communities whose numbers rank higher or lower than the others'."""
    from scipy.stats import norm, rankdata

    ranks, n = rankdata(values), len(values)
    sizes = np.bincount(labels)
    ties = np.unique(values, return_counts=True)[1].astype(np.float64)  # their cubes exceed int64
    spread = (n + 1 - ((ties**3 - ties).sum() / max(n * (n - 1), 1))) / 12
    u = np.bincount(labels, ranks) - sizes * (sizes + 1) / 2
    deviation = np.sqrt(np.maximum(sizes * (n - sizes) * spread, 0))
    some = np.flatnonzero(deviation > 0)
    z = (u[some] - sizes[some] * (n - sizes[some]) / 2) / deviation[some]
    p = _corrected(2 * norm.sf(np.abs(z)))
    order = np.lexsort((values, labels))
    begins = np.cumsum(sizes) - sizes
    median = float(np.median(values))
    for at in np.flatnonzero(p <= CERTAIN):
        community = int(some[at])
        mine = values[order[begins[community] :][: sizes[community]]]
        yield Finding(
            community=community, column=column, value="high" if z[at] > 0 else "low",
            inside=float(np.median(mine)), overall=median, p=float(p[at]),
        )  # fmt: skip


def _terms(
    column: str, texts: list[str], labels: NDArray[np.int64], notes: list[str]
) -> Iterator[Finding]:
    """Yield the terms whose tf-idf is larger in a community than overall, by descending gap."""
    try:
        from sklearn.feature_extraction.text import TfidfVectorizer
    except ImportError:
        notes.append(f"column {column} is left out: its terms need scikit-learn")
        return
    from scipy.sparse import csr_array

    vectors = TfidfVectorizer(max_features=TERMS, stop_words="english", min_df=2)
    try:
        matrix = vectors.fit_transform(texts)
    except ValueError:  # no term is there twice
        return
    sizes = np.bincount(labels)
    member = csr_array((np.ones(len(labels)), (labels, np.arange(len(labels)))))
    means = (member @ matrix).tocsr()
    overall = np.asarray(matrix.mean(axis=0)).ravel()
    terms = vectors.get_feature_names_out()
    for community in np.flatnonzero(sizes).tolist():
        row = means[[community]]
        weights = row.data / sizes[community]
        gain = weights - overall[row.indices]
        for at in np.argsort(-gain, kind="stable")[:3]:
            if gain[at] > ROUNDING * weights[at]:
                yield Finding(
                    community=community, column=column, value=str(terms[row.indices[at]]),
                    inside=float(weights[at]), overall=float(overall[row.indices[at]]), p=np.nan,
                )  # fmt: skip
