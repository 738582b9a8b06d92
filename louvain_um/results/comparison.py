"""Communities compared: with others of the same vertices, and with those of random graphs.

Agreement of two partitions or covers is NMI, ARI, AMI, ONMI and the omega index.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from louvain_um.core.numbering import dense_uint32, number_by_size
from louvain_um.core.plain_data import objects
from louvain_um.errors import GraphError, warn
from louvain_um.results.agreement import measures
from louvain_um.results.covers import (
    Cover,
    cover_of,
    omega_index,
    one_each,
    overlapping_nmi,
    same_cover,
)
from louvain_um.results.given_labels import (
    FORMS,
    Given,
    indexed_communities,
    is_indexed,
    label_array,
    named_labels,
    numbered,
    plain_communities,
)
from louvain_um.results.partition import Partition

CHANCE: Final = 0.05
"""p-value above which communities are no more than chance gives."""


@dataclass(frozen=True, slots=True, eq=False)
class Labels:
    """Communities by vertex, as a file lists them.

    Parameters
    ----------
    vertices : array of length n
        Names or ids; all different, unless communities overlap.
    communities : array of length n
        Any integers or strings.
    """

    vertices: NDArray[Any]
    communities: NDArray[Any]

    def __len__(self) -> int:
        return len(self.vertices)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Agreement:
    """Agreement of partitions or covers A and B on the vertices they share.

    `nmi`, `ari` and `ami` are of partitions; `onmi_mgh`, `onmi_lfk` and `omega` of communities that
    overlap in A or B. The others are NaN, and so are `ami` and `omega` where computing them would
    take over 10 s.

    Parameters
    ----------
    nmi : float
        Normalised mutual information, arithmetic mean: 1 for the same partition.
    ari : float
        Rand index adjusted for chance.
    ami : float
        Mutual information adjusted for chance.
    onmi_mgh : float
        Overlapping NMI of McDaid, Greene and Hurley: by the larger entropy.
    onmi_lfk : float
        That of Lancichinetti, Fortunato and Kertész: each community by its entropy.
    omega : float
        Pairs of vertices together in as many communities of both, adjusted for chance.
    identical : bool
        Whether the partitions are the same up to the communities' labels.
    vertices : int
        Vertices compared.
    communities : (int, int)
        Communities of A and B among these vertices.
    unmatched : (int, int)
        Vertices that only A, only B has; left out.
    """

    nmi: float = math.nan
    ari: float = math.nan
    ami: float = math.nan
    onmi_mgh: float = math.nan
    onmi_lfk: float = math.nan
    omega: float = math.nan
    identical: bool
    vertices: int
    communities: tuple[int, int]
    unmatched: tuple[int, int] = (0, 0)

    @property
    def measures(self) -> tuple[str, ...]:
        """Names of the measures that apply."""
        overlap = not math.isnan(self.onmi_mgh)
        return ("onmi_mgh", "onmi_lfk", "omega") if overlap else ("nmi", "ari", "ami")

    def __repr__(self) -> str:
        measures = ", ".join(f"{name} {getattr(self, name):.4f}" for name in self.measures)
        one, other = self.communities
        what = f"{one:,} and {other:,} communities of {self.vertices:,} vertices"
        return f"Agreement({measures}; {what})"


def compare(a: Given | Labels, b: Given | Labels) -> Agreement:
    """Compare two partitions, or communities that overlap.

    Parameters
    ----------
    a, b : Communities, Labels, dict of vertex and community, list of sets, or array
        Or a result of igraph, leidenalg, cdlib, Infomap, NetworKit or graph-tool. Communities may
        overlap: sets with common members, a dict of vertex and list of communities, or a matrix of
        `Communities.memberships`, in which each entry but 0 is a membership.
        Two that name their vertices, as the index of a pandas Series does, are matched by name and
        compared on the vertices both have. A plain array is taken in vertex order and must have the
        other's length.

    Returns
    -------
    Agreement

    Warns
    -----
    GraphWarning
        Ids that seem to differ by one: one partition counts vertices from 0, the other from 1.

    Raises
    ------
    GraphError
        Unequal lengths, or no vertex in common.

    References
    ----------
    Vinh, Epps, Bailey: Information theoretic measures for clusterings comparison, 2010. McDaid,
    Greene, Hurley: Normalized mutual information to evaluate overlapping community finding
    algorithms, 2011. Lancichinetti, Fortunato, Kertész: Detecting the overlapping and hierarchical
    community structure in complex networks, 2009. Collins, Dent: Omega: a general formulation of
    the Rand index of cluster recovery suitable for non-disjoint solutions, 1988.

    Examples
    --------
    >>> from louvain_um.results.comparison import compare
    >>> agreement = compare([0, 0, 1, 1], [5, 5, 7, 7])
    >>> agreement.nmi, agreement.identical
    (1.0, True)
    >>> agreement
    Agreement(nmi 1.0000, ari 1.0000, ami 1.0000; 2 and 2 communities of 4 vertices)
    >>> agreement = compare([{0, 1, 2}, {2, 3, 4}], [{0, 1, 2}, {3, 4}])
    >>> round(agreement.onmi_mgh, 3), round(agreement.omega, 3)
    (0.716, 0.615)
    """
    one, two = cover_of(a), cover_of(b)
    if one is not None:
        return _compare_covers(one, _with_one_each(b, one) if two is None else two)
    if two is not None:
        return _compare_covers(_with_one_each(a, two), two)
    a, b = plain_communities(a), plain_communities(b)
    a, b = _by_index(a, b), _by_index(b, a)
    (names_a, first), (names_b, second) = _named(a), _named(b)
    # A dict has its own order: labels in vertex order are those of vertices 0 … n − 1.
    if names_a is None and named_labels(b, lists=False):
        names_a = np.arange(len(first))
    if names_b is None and named_labels(a, lists=False):
        names_b = np.arange(len(second))
    unmatched = (0, 0)
    if names_a is not None and names_b is not None:
        first, second, unmatched = _matched(names_a, first, names_b, second)
    elif len(first) != len(second):
        raise GraphError(
            f"{len(first)} labels against {len(second)}; both must have the same length"
        )
    (x, many), (y, several) = _small_numbers(first), _small_numbers(second)
    identical = many == several and np.array_equal(number_by_size(x), number_by_size(y))
    nmi, ari, ami = (1.0, 1.0, 1.0) if identical else measures(x, y)
    return Agreement(
        nmi=nmi,
        ari=ari,
        ami=ami,
        identical=identical,
        vertices=len(x),
        communities=(many, several),
        unmatched=unmatched,
    )


def _compare_covers(one: Cover, two: Cover) -> Agreement:
    """Compare covers; a partition among them is one whose communities share no vertex."""
    sizes = one.matrix.shape[0], two.matrix.shape[0]
    if one.names is None and two.names is None and sizes[0] != sizes[1]:
        raise GraphError(f"communities of {sizes[0]} vertices against {sizes[1]}")
    places = [np.arange(size) for size in sizes]
    names = [
        place if each.names is None else each.names
        for each, place in zip((one, two), places, strict=True)
    ]
    at, to, unmatched = _matched(names[0], places[0], names[1], places[1])
    first, second = one.rows(at), two.rows(to)
    identical = same_cover(first, second)
    mgh, lfk = (1.0, 1.0) if identical else overlapping_nmi(first, second)
    return Agreement(
        onmi_mgh=mgh,
        onmi_lfk=lfk,
        omega=1.0 if identical else omega_index(first, second),
        identical=identical,
        vertices=len(at),
        communities=(first.shape[1], second.shape[1]),
        unmatched=unmatched,
    )


def _with_one_each(given: Given | Labels, other: Cover) -> Cover:
    """Return a partition as a cover, to compare with another one."""
    partition = plain_communities(given)
    if is_indexed(partition):
        known = None if other.names is None else other.names.tolist()
        partition = indexed_communities(partition, known)
    names, labels = _named(partition)
    if other.names is None and isinstance(partition, Partition):
        names = None  # both are in vertex order
    return Cover(names, one_each(_small_numbers(labels)[0]))


def _small_numbers(labels: NDArray[Any]) -> tuple[NDArray[np.uint32], int]:
    """Return communities as numbers below twice their count, and how many there are."""
    if labels.dtype.kind not in "biu":
        labels = np.unique(labels, return_inverse=True)[1]
    dense = dense_uint32(labels)
    return dense, int(np.count_nonzero(np.bincount(dense)))


def _by_index(partition: Given | Labels, other: Given | Labels) -> Given | Labels:
    """Return a column of pandas as labels of the vertices that its index names."""
    if not is_indexed(partition):
        return partition
    names: Any = None
    if isinstance(other, Labels):
        names = other.vertices.tolist()
    elif isinstance(other, Partition):
        names = None if other.names is None else other.names.tolist()
    elif is_indexed(other):
        column: Any = other
        names = column.index.tolist()
    elif (pairs := named_labels(other, lists=False)) is not None:
        names = pairs[0].tolist()
    return indexed_communities(partition, names)


def _named(partition: Given | Labels) -> tuple[NDArray[Any] | None, NDArray[Any]]:
    """Return names, or None for a plain array, and labels."""
    if isinstance(partition, Labels):
        return partition.vertices, partition.communities
    if isinstance(partition, Partition):
        names = partition.names
        return (np.arange(partition.n_vertices) if names is None else names), partition.labels
    if (pairs := named_labels(partition, lists=False)) is not None:
        return pairs
    labels = label_array(partition)
    if labels.ndim != 1:
        raise GraphError(f"labels must be one-dimensional, not of shape {labels.shape}; {FORMS}")
    if labels.dtype.kind == "O":
        labels = numbered(labels.tolist())
    return None, labels


def _matched(
    names_a: NDArray[Any], a: NDArray[Any], names_b: NDArray[Any], b: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any], tuple[int, int]]:
    """Bring labels into the order of their common names."""
    if len(names_a) == len(names_b) and np.array_equal(names_a, names_b):
        return a, b, (0, 0)
    names_a, names_b = _signed(names_a), _signed(names_b)
    if not (names_a.dtype.kind == "i" and names_b.dtype.kind == "i"):
        names_a, names_b = _texts(names_a), _texts(names_b)
    if not (len(names_a) and len(names_b)):
        raise GraphError("no vertex in common: one partition is empty, the other is not")
    common, at_a, at_b = np.intersect1d(names_a, names_b, return_indices=True)
    hint = _hint(names_a, names_b, len(common))
    if len(common) == 0:
        raise GraphError(
            f"no vertex in common: one partition has {names_a[0]!s}, …, the other "
            f"{names_b[0]!s}, …; {hint or 'both must use the same names'}"
        )
    if hint:
        warn(hint)
    return a[at_a], b[at_b], (len(names_a) - len(common), len(names_b) - len(common))


def _signed(names: NDArray[Any]) -> NDArray[Any]:
    """Return unsigned ids as int64 if that holds them: NumPy compares both kinds as float64."""
    fits = names.dtype.kind == "u" and names.max(initial=0) < 2**63
    return names.astype(np.int64) if fits else names


def _texts(names: NDArray[Any]) -> NDArray[Any]:
    """Return names as strings; as objects, since NumPy's text drops NUL characters at the end."""
    return objects(list(map(str, names.tolist())))


def _hint(names_a: NDArray[Any], names_b: NDArray[Any], common: int) -> str:
    """Return a warning if one partition seems to number from 0 and the other from 1, else ""."""
    if not (names_a.dtype.kind in "iu" and names_b.dtype.kind in "iu"):
        return ""
    firsts = int(names_a.min()), int(names_b.min())
    if sorted(firsts) != [0, 1]:
        return ""
    zero, one = (names_a, names_b) if firsts[0] == 0 else (names_b, names_a)
    if len(np.intersect1d(zero.astype(np.int64) + 1, one.astype(np.int64))) <= common:
        return ""
    which = "first" if firsts[0] == 0 else "second"
    return (
        f"ids start at {firsts[0]} in the first partition and at {firsts[1]} in the second, as "
        f"if they differed by one; if they are, add 1 to the ids of the {which}"
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class Significance:
    """Communities of a graph compared with those of random graphs with the same degrees.

    Parameters
    ----------
    modularity : float
        Of the graph.
    null : float64[graphs]
        Modularity that the same detection finds in each random graph.
    communities : float64[k]
        p-value of each community: the share of communities of random graphs, of half to twice its
        volume, that keep as large a share of their edges inside; NaN where there are none.

    Examples
    --------
    >>> import louvain_um as lu
    >>> r = lu.louvain(lu.read_graph("example:les-miserables"), device="cpu")
    >>> found = r.significance(graphs=20)
    >>> bool(found.z > 2), round(found.p_value, 3), len(found.communities) == r.n_communities
    (True, 0.048, True)
    """

    modularity: float
    null: NDArray[np.float64]
    communities: NDArray[np.float64]

    @property
    def z(self) -> float:
        """Standard deviations between the modularity and the mean of random graphs."""
        spread = float(self.null.std(ddof=1)) if len(self.null) > 1 else 0.0
        gap = self.modularity - float(self.null.mean())
        return gap / spread if spread else float(np.copysign(np.inf, gap)) if gap else 0.0

    @property
    def p_value(self) -> float:
        """Share of graphs, this one included, whose modularity is at least as large."""
        return float((1 + np.count_nonzero(self.null >= self.modularity)) / (1 + len(self.null)))

    def summary(self) -> dict[str, Any]:
        """Return what ``detect --json`` prints."""
        return {
            "graphs": len(self.null),
            "mean": float(self.null.mean()),
            "z": self.z,
            "p_value": self.p_value,
            "communities": [None if np.isnan(p) else p for p in self.communities.tolist()],
        }

    def __str__(self) -> str:
        mean, graphs = float(self.null.mean()), len(self.null)
        if self.p_value > CHANCE and graphs >= 1 / CHANCE - 1:
            return (
                f"modularity {self.modularity:.4f} is what random graphs of the same degrees give: "
                f"{mean:.4f} on average of {graphs}"
            )
        return (
            f"modularity {self.modularity:.4f}, against {mean:.4f} on average of {graphs} random "
            f"graphs of the same degrees (z {self.z:.1f}, p {self.p_value:.3g})"
        )
