"""What a result shows of itself."""

from __future__ import annotations

import louvain_um as lu
from louvain_um.results.display import listable, size_rows


def test_names_with_commas_are_quoted_in_lists() -> None:
    assert listable(["Smith, J.", "Bob", 7]) == ['"Smith, J."', "Bob", "7"]
    graph = lu.as_graph((["Smith, J.", "Bob"], ["Bob", "Cid"]))
    assert size_rows(lu.louvain(graph, device="cpu"))[0][2] == 'Bob, Cid, "Smith, J."'
