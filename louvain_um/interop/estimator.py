"""Community detection as a scikit-learn estimator."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Self, Unpack

import numpy as np
from numpy.typing import NDArray

from louvain_um.core.plain_data import plain_array
from louvain_um.errors import GraphError, OptionError
from louvain_um.graph.graph import Graph
from louvain_um.options import (
    Method,
    ObjectiveName,
    Options,
    OptionValues,
    takes_options,
    with_entries,
)

if TYPE_CHECKING:
    from louvain_um.results.communities import Communities


class Louvain:
    """Cluster the vertices of a graph, given by its adjacency matrix.

    Follows scikit-learn's conventions (`fit`, `fit_predict`, `get_params`, `clone`) without
    importing it.

    Parameters
    ----------
    method : {"louvain", "leiden"}
        "leiden" returns connected communities.
    **options
        The options of a run; see `louvain_um.options.Options`.
    symmetrize : bool
        Take a matrix that is not symmetric as undirected; otherwise it is an error, unless each
        row lists as many neighbours, as those of `KNeighborsTransformer` do: then a pair counts if
        either is a neighbour of the other, and a note says so.

    Attributes
    ----------
    labels_ : int64[n]
        Community of each vertex, by descending size.
    n_communities_ : int
    modularity_ : float
    n_iter_ : int
        Levels.
    n_features_in_ : int
        Vertices.
    communities_ : Communities
        The whole result.

    Examples
    --------
    >>> import numpy as np
    >>> from louvain_um.interop.estimator import Louvain
    >>> adjacency = np.kron(np.eye(2), np.ones((3, 3)) - np.eye(3))
    >>> Louvain(device="cpu").fit_predict(adjacency).tolist()
    [0, 0, 0, 1, 1, 1]
    """

    @takes_options()
    def __init__(
        self,
        *,
        method: Method = "louvain",
        symmetrize: bool = False,
        **options: Unpack[OptionValues],
    ) -> None:
        # Stored unchanged: scikit-learn's clone compares parameters by identity.
        given = {"method": method, "symmetrize": symmetrize, **options}
        for name, default in _parameters().items():
            setattr(self, name, given.get(name, default))

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: N803
        """Detect communities.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n), Graph, or anything `as_graph` takes
            Symmetric, unless the objective is "directed", and with non-negative weights, unless it
            is "signed". A square array is an adjacency matrix. Real
            entries that differ from their transpose by rounding alone (1e-10 of the largest) are
            averaged.
        y : ignored

        Raises
        ------
        OptionError
            A parameter outside its range.
        GraphError
            No square matrix, not symmetric, or weights that are negative or not finite.
        """
        from louvain_um.api import run

        parameters = self.get_params()
        symmetrize = parameters.pop("symmetrize")
        options = Options(**parameters)
        result = run(_graph(X, symmetrize, options.objective), options)
        self.communities_: Communities = result
        self.labels_: NDArray[np.int64] = result.labels.astype(np.int64)
        self.n_communities_ = result.n_communities
        self.modularity_ = result.modularity
        self.n_iter_ = len(result.levels)
        self.n_features_in_ = result.n_vertices
        return self

    def fit_predict(self, X: Any, y: Any = None) -> NDArray[np.int64]:  # noqa: N803
        """Detect communities and return `labels_`; `fit` documents the arguments."""
        return self.fit(X).labels_

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name; `deep` makes no difference."""
        return {name: getattr(self, name) for name in _parameters()}

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name.

        Raises
        ------
        OptionError
            There is no such parameter.
        """
        for name, value in params.items():
            if name not in _parameters():
                known = ", ".join(_parameters())
                raise OptionError(
                    name, value, f"use {known}", problem=f"Louvain has no parameter {name!r}"
                )
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        changed = (
            f"{name}={getattr(self, name)!r}"
            for name, default in _parameters().items()
            if getattr(self, name) != default
        )
        return f"Louvain({', '.join(changed)})"

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "labels_")

    def __sklearn_tags__(self) -> Any:
        # Asked by scikit-learn alone, which is imported then.
        from sklearn.utils import InputTags, Tags, TargetTags

        return Tags(
            estimator_type="clusterer",
            target_tags=TargetTags(required=False),
            input_tags=InputTags(sparse=True, pairwise=True, positive_only=True),
        )


Louvain.__doc__ = with_entries(Louvain.__doc__)


def _parameters() -> dict[str, Any]:
    """Return the parameters' names and defaults."""
    signature = inspect.signature(Louvain.__init__)
    return {name: p.default for name, p in signature.parameters.items() if name != "self"}


def _graph(adjacency: Any, symmetrize: bool, objective: ObjectiveName) -> Graph:
    if isinstance(adjacency, Graph):
        return adjacency
    directed, signed = objective == "directed", objective == "signed"
    from scipy.sparse import issparse

    from louvain_um.formats import as_graph
    from louvain_um.formats.matrices import sparse
    from louvain_um.formats.neighbours import without_rounding

    columns = getattr(adjacency, "columns", None)
    if type(columns).__name__ == "RangeIndex" and len(set(adjacency.shape)) == 1:
        adjacency = adjacency.to_numpy()
    if isinstance(adjacency, np.ndarray | list):
        adjacency = sparse(_checked(plain_array(adjacency, "X"), signed))
    if issparse(adjacency):
        if adjacency.format in ("dia", "dok", "lil"):
            adjacency = adjacency.tocsr()
        _check_values(adjacency.data, signed)
        if not symmetrize and not directed:
            adjacency = without_rounding(adjacency)
    graph: Graph = as_graph(
        adjacency, symmetrize=symmetrize and not directed, directed=directed, signed=signed
    )
    return graph


def _checked(matrix: NDArray[Any], signed: bool) -> NDArray[Any]:
    """Return a dense square matrix of numbers."""
    if matrix.dtype == object:
        try:
            matrix = matrix.astype(np.float64)
        except TypeError as error:
            raise TypeError(f"X must hold numbers: {error}") from None
    _check_values(matrix, signed)
    if matrix.ndim == 2 and matrix.shape[1] == 0 < matrix.shape[0]:
        given = "=".join(("shape", str(matrix.shape)))  # no argument of ours
        raise OptionError(
            problem=f"X has 0 feature(s) ({given}) while a minimum of 1 is required",
            remedy="pass a square adjacency matrix",
        )
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise OptionError("X", matrix.shape, "must be a square adjacency matrix")
    return matrix


def _check_values(values: NDArray[Any], signed: bool) -> None:
    """Raise an error unless weights are real, finite and, if not `signed`, not negative."""
    problem = ""
    if values.dtype.kind == "c":
        problem = "Complex data not supported"
    elif values.dtype.kind == "f" and np.isnan(values).any():
        problem = "X contains NaN"
    elif values.dtype.kind not in "biuf":
        problem = f"X must hold numbers, not {values.dtype}"
    elif values.dtype.kind == "f" and np.isinf(values).any():
        problem = "X contains infinity"
    elif not signed and values.dtype.kind in "if" and (values < 0).any():
        problem = "Negative values in data passed to Louvain"
    if problem:
        raise GraphError(f"{problem}; weights must be real, finite and not negative")
