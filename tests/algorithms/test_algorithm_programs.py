from __future__ import annotations

import pytest

import louvain_um as lu
from louvain_um.algorithms.programs import BUILDERS, program_for, program_of
from louvain_um.errors import GraphError, OptionError


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", BUILDERS)
def test_every_program_can_be_planned(name: str, weighted: bool) -> None:
    program = program_of(name, n_vertices=10**6, n_arcs=10**8, weighted=weighted)
    whole = lu.plan(program, machine="h200")
    assert whole.fits
    short = lu.plan(program, machine="h200", device_budget="60%")
    assert short.seconds > whole.seconds


def test_an_empty_graph_has_a_program() -> None:
    for name in BUILDERS:
        assert lu.plan(program_of(name, n_vertices=0, n_arcs=0), machine="h200").fits


def test_unknown_programs() -> None:
    with pytest.raises(OptionError, match="must be one of bfs, sssp"):
        program_of("dfs", n_vertices=1, n_arcs=1)
    with pytest.raises(OptionError, match="negative"):
        program_of("bfs", n_vertices=1, n_arcs=-1)


def test_a_signed_graph_is_no_program() -> None:
    signed = lu.as_graph(([0, 1], [1, 2], [1, -1]), signed=True)
    with pytest.raises(GraphError, match="without negative weights"):
        program_for("sssp", signed)
