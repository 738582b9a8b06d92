"""What distinguishes communities: attributes of vertices that are over-represented in them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from louvain_um.errors import GraphError
from louvain_um.results.communities import Communities, check_communities
from louvain_um.results.display import SHOWN, count, html_table, require_pandas, size_rows

if TYPE_CHECKING:
    import pandas as pd

ID_COLUMNS: Final = ("vertex", "id", "node", "name", "label")
"""Columns that may hold the vertices, whatever the case; otherwise the first column does."""

CERTAIN: Final = 0.01
"""Largest p-value, corrected for the number of tests, of what is reported."""

CATEGORIES: Final = 1000
"""Different texts up to which a column holds categories, if they repeat twice on average."""

TERMS: Final = 20_000
"""Terms of texts that are looked at, the most frequent ones."""


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

    communities: Communities
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
        return "\n".join(f"{number}: {line}" for number, line in enumerate(self.labels) if line)

    def _repr_html_(self) -> str:
        """Show in a notebook what distinguishes each of the largest communities."""
        sizes = size_rows(self.communities)
        lines = [*self.labels[:SHOWN], ""]
        rows = [(*row[:2], line) for row, line in zip(sizes, lines, strict=False)]
        return html_table(("community", "size", "distinguished by"), rows)

    def to_frame(self) -> pd.DataFrame:
        """Return `Communities.table` with the column ``label``."""
        return self.communities.table().assign(label=self.labels)


def describe(found: Communities, nodes: Any) -> Description:
    """Describe communities by attributes of their vertices.

    Parameters
    ----------
    found : Communities
    nodes : table, graph, AnnData or path
        A row for each vertex: a table of pandas, Arrow or Polars, or a CSV, TSV or Parquet file.
        Vertices, as the graph names them, are in the column vertex, id, node, name or label, else
        in an index that is not of numbers, else in the first column. Of a networkx or igraph graph,
        or an AnnData, the attributes of its vertices or cells.

    Returns
    -------
    Description

    Raises
    ------
    OptionError
        `found` is no result.
    GraphError
        A vertex has two rows, or no row is that of a vertex.

    References
    ----------
    Benjamini, Hochberg: Controlling the false discovery rate, 1995. Mann, Whitney: On a test of
    whether one of two random variables is stochastically larger than the other, 1947.

    Examples
    --------
    >>> import louvain_um as lu, pandas as pd
    >>> edges = [(f"{side}{i}", f"{side}{j}") for side in "ab" for i in range(9) for j in range(i)]
    >>> r = lu.louvain(edges + [("a0", "b0")], device="cpu")
    >>> sides = pd.DataFrame({"id": r.names, "side": [name[0] for name in r.names]})
    >>> lu.describe(r, sides).labels
    ['side a (100%, 50% overall)', 'side b (100%, 50% overall)']
    """
    check_communities("found", found)
    frame, notes = _joined(found, nodes)
    findings = list[Finding]()
    known = frame.index.to_numpy()
    labels = found.labels[known].astype(np.int64)
    for title in frame.columns:
        column = frame[title]
        there = column.notna().to_numpy()
        values, of = column[there], labels[there]
        if values.empty:
            continue
        if str(values.iloc[0]) == str(of[0]) and (values.astype(str) == of.astype(str)).all():
            notes.append(f"column {title} is left out: it holds the communities")
            continue
        kind = _kind(values)
        if kind == "numbers":
            findings += _numbers(str(title), values.to_numpy(np.float64), of)
        elif kind == "categories":
            findings += _categories(str(title), values.astype(str).to_numpy(), of)
        elif kind == "texts":
            findings += _terms(str(title), values.astype(str).tolist(), of, notes)
        else:
            notes.append(f"column {title} is left out: its values hardly repeat")
    findings.sort(key=lambda each: (each.community, np.isnan(each.p), each.p))
    return Description(communities=found, findings=tuple(findings), notes=tuple(notes))


def _joined(found: Communities, nodes: Any) -> tuple[pd.DataFrame, list[str]]:
    """Return the rows of vertices, indexed by their places, and notes on the others."""
    frame, where = _attributes(nodes)
    ids = frame.index.astype(str)
    if ids.has_duplicates:
        raise GraphError(f"vertex {ids[ids.duplicated()][0]!r} has two rows; keep one")
    names = found.names if found.names is not None else range(len(found.labels))
    place = {str(name): at for at, name in enumerate(names) if name is not None}
    places = np.array([place.get(each, -1) for each in ids], np.int64)
    matched = places >= 0
    if not matched.any():
        raise GraphError(
            f"no value of {where}, such as {ids[0]!r}, is a vertex of the graph, such as "
            f"{next(iter(place), '')!r}"
            if len(ids)
            else "the table of vertices has no rows"
        )
    notes = list[str]()
    if not matched.all():
        rows = count(int(np.count_nonzero(~matched)), "row is", "rows are")
        notes.append(f"{rows} of no vertex, such as {ids[~matched][0]!r}")
    if missing := len(place) - int(matched.sum()):
        notes.append(f"{count(missing, 'vertex has', 'vertices have')} no row")
    return frame.loc[matched].set_axis(places[matched], axis=0), notes


def _attributes(nodes: Any) -> tuple[pd.DataFrame, str]:
    """Return attributes indexed by vertex, and what names the vertices."""
    pandas = require_pandas()
    if isinstance(nodes, str | Path):
        nodes = read_attributes(nodes)
    elif hasattr(nodes, "obsp"):  # an AnnData
        return nodes.obs, "obs_names"
    elif hasattr(nodes, "is_multigraph"):  # of networkx
        index = pandas.Index([str(vertex) for vertex in nodes])
        return pandas.DataFrame([row for _, row in nodes.nodes(data=True)], index), "the graph"
    elif hasattr(nodes, "get_vertex_dataframe"):  # of igraph
        nodes = nodes.get_vertex_dataframe()
        unique = [key for key in ("label", "name") if key in nodes and nodes[key].is_unique]
        return (nodes.set_index(unique[0]) if unique else nodes), "the graph"
    elif hasattr(nodes, "to_pandas"):  # of Arrow or Polars
        nodes = nodes.to_pandas()
    if not isinstance(nodes, pandas.DataFrame) or not len(nodes.columns):
        raise GraphError("attributes of vertices are a table with one row for each vertex")
    by_name = {str(title).lower(): title for title in reversed(list(nodes.columns))}
    key = next((by_name[name] for name in ID_COLUMNS if name in by_name), None)
    numbers = pandas.api.types.is_numeric_dtype(nodes.index) or nodes.index.nlevels > 1
    if key is None and not numbers:
        return nodes, "the index"
    key = nodes.columns[0] if key is None else key
    return nodes.set_index(key), f"column {key!r}"


def read_attributes(path: str | Path) -> pd.DataFrame:
    """Read a table of vertices, whose ids stay as they are written."""
    pandas, path = require_pandas(), Path(path)
    try:
        if path.suffix == ".parquet":
            return pandas.read_parquet(path)
        separator = "\t" if path.suffixes[:1] == [".tsv"] else ","
        titles = pandas.read_csv(path, sep=separator, nrows=0).columns
        wanted = [title for title in titles if title.lower() in ID_COLUMNS] or titles[:1]
        return pandas.read_csv(path, sep=separator, dtype=dict.fromkeys(wanted, str))
    except Exception as error:  # of many types
        line = next(iter(str(error).splitlines()), type(error).__name__)
        raise GraphError(f"{path}: cannot be read as a table ({line})") from None


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
    _, ties = np.unique(values, return_counts=True)
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
            if gain[at] > 0:
                yield Finding(
                    community=community, column=column, value=str(terms[row.indices[at]]),
                    inside=float(weights[at]), overall=float(overall[row.indices[at]]), p=np.nan,
                )  # fmt: skip
