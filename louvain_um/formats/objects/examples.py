"""Small social networks by name, such as ``example:les-miserables``, through networkx."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from louvain_um.errors import LouvainUmError, OptionError

EXAMPLES: Mapping[str, str] = {
    "les-miserables": "les_miserables_graph",
    "karate": "karate_club_graph",
    "florentine-families": "florentine_families_graph",
    "southern-women": "davis_southern_women_graph",
}
"""Names of examples, and the networkx functions that build them."""

PREFIX = "example:"


def is_example(source: str) -> bool:
    """Return whether a source names an example; a file of that name comes first."""
    return source.startswith(PREFIX) and not os.path.exists(source)


def example(source: str) -> Any:
    """Return an example as a networkx graph."""
    name = source.removeprefix(PREFIX)
    if name not in EXAMPLES:
        raise OptionError(
            "example",
            name,
            f"choose from {', '.join(EXAMPLES)}",
            problem=f"unknown example {name!r}",
        )
    try:
        import networkx
    except ImportError:
        raise LouvainUmError("examples need NetworkX: pip install 'louvain-um[formats]'") from None
    build: Callable[[], Any] = getattr(networkx, EXAMPLES[name])
    return build()
