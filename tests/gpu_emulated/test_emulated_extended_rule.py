"""The extended rule's kernels, emulated on the CPU, give the results of the CPU engine."""

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from louvain_um.core import rules
from louvain_um.cpu.engine import CpuEngine
from louvain_um.events import ignore
from louvain_um.generators import lfr, rmat
from louvain_um.graph.graph import Graph
from louvain_um.options import Options

pytestmark = pytest.mark.deep

SEED = 3


class Input(ctypes.Structure):
    _fields_ = (
        ("n", ctypes.c_int64),
        *(
            (name, ctypes.c_void_p)
            for name in (
                "offsets", "targets", "weights", "masses", "second", "members", "fixed",
            )
        ),
        *((name, ctypes.c_double) for name in ("rate", "second_rate", "total", "most_gain")),
        ("max_size", ctypes.c_uint64),
        ("seed", ctypes.c_uint64),
    )  # fmt: skip


def address(array):
    return None if array is None or len(array) == 0 else array.ctypes.data


def ends(graph):
    u = np.repeat(np.arange(graph.n_vertices), np.diff(graph.offsets))
    upper = u < graph.targets
    return u[upper], graph.targets[upper].astype(np.int64)


def of_kind(kind):
    """Return what makes a graph with hubs, of a kind."""

    def made():
        u, v = ends(rmat(10, edge_factor=10, seed=SEED).graph)
        random, n = np.random.default_rng(SEED), 1024
        hub = random.choice(np.arange(1, n), 1000, replace=False)
        more = random.choice(np.arange(2, n), 1010, replace=False)
        u = np.concatenate([u, np.zeros(1000, np.int64), np.ones(1010, np.int64)])
        v = np.concatenate([v, hub, more])
        if kind == "bipartite":
            return Graph.from_edges(u, v + n, n_vertices=2 * n, kind=kind)
        weights = random.integers(1, 9, len(u)) * random.choice([1, 1, -1], len(u))
        return Graph.from_edges(
            u, v, weights if kind == "signed" else None, n_vertices=n + 3, kind=kind
        )

    return made


def communities():
    return lfr(900, max_degree=200, min_community=20, max_community=200, seed=SEED).graph


BLOCKS_OF_20: Any = [v // 20 for v in range(900)]

CASES: dict[str, tuple[Callable[[], Graph], dict[str, Any]]] = {
    "cpm": (communities, {"objective": "cpm", "resolution": 0.05}),
    "directed": (of_kind("directed"), {"objective": "directed"}),
    "bipartite": (of_kind("bipartite"), {"objective": "bipartite"}),
    "signed": (of_kind("signed"), {"objective": "signed"}),
    "signed cpm": (of_kind("signed"), {"objective": "cpm", "resolution": 0.02}),
    "size": (communities, {"max_size": 7}),
    "size of hubs": (of_kind("directed"), {"objective": "directed", "max_size": 30}),
    "start": (communities, {"initial": BLOCKS_OF_20}),
    "fixed": (communities, {"initial": BLOCKS_OF_20, "fixed": list(range(0, 900, 7))}),
    "all": (
        communities,
        {
            "objective": "cpm",
            "resolution": 0.1,
            "initial": BLOCKS_OF_20,
            "fixed": list(range(0, 900, 50)),
            "max_size": 22,
        },
    ),
}


def as_u64(array):
    return array.astype(np.int64).view(np.uint64) if len(array) else None


@pytest.mark.parametrize("blocks", [1, 3])
@pytest.mark.parametrize("name", CASES)
def test_moving_and_refining_on_three_levels(emulated, name, blocks):
    make, options = CASES[name]
    engine = CpuEngine(Options(method="leiden", seed=SEED, **options), ignore)
    level = engine.load(make())
    engine.split_disconnected(level)
    for _ in range(3):
        check_level(emulated["extended"], engine, level, blocks)
        level = engine.aggregate(level)


def check_level(library, engine, level, blocks):
    """Compare moving and refining on a level, which the CPU engine does, too."""
    n, objective = level.vertices, engine.problem.objective
    weights = as_u64(level.weights)
    masses, second, members, fixed = (
        as_u64(array) for array in (level.degrees, level.second, level.members, level.fixed)
    )
    given = Input(
        n, address(level.offsets), address(level.targets), address(weights), address(masses),
        address(second), address(members), address(fixed), objective.rate, objective.second_rate,
        objective.total, rules.most_gain(n), engine.problem.max_size or 0, SEED,
    )  # fmt: skip
    labels, counts = np.zeros(n, np.uint32), np.zeros(4, np.uint64)
    totals, second_totals = np.zeros(n, np.uint64), np.zeros(n, np.uint64)
    full_sweeps = rules.FULL_SWEEPS if level.start is None else 0
    schedule = np.array([
        rules.seed_salt(SEED), level.cycle, rules.SUB_ROUNDS, rules.MAX_ITERATIONS, full_sweeps,
        rules.MIN_SWEEPS,
    ], np.uint32)  # fmt: skip
    library.move_extended(
        blocks, ctypes.byref(given), ctypes.c_void_p(address(level.start)
            if level.start is not None else None),
        ctypes.c_void_p(address(labels)), ctypes.c_void_p(address(totals)),
        ctypes.c_void_p(address(second_totals)),
        ctypes.c_void_p(address(schedule)),
        ctypes.c_int64(rules.tolerance(level.number)), ctypes.c_void_p(address(counts)),
    )  # fmt: skip
    moved = engine.move(level)
    np.testing.assert_array_equal(labels, level.labels)
    np.testing.assert_array_equal(totals.view(np.int64), level.totals)
    assert counts.tolist() == [moved.iterations, moved.moves, moved.arcs_visited, moved.gain]
    if second is not None:
        np.testing.assert_array_equal(second_totals.view(np.int64), level.second_totals)

    engine.refine(level)
    refined = np.zeros(n, np.uint32)
    salt = rules.salt(level.cycle, rules.REFINE_SWEEP, SEED)
    schedule = np.array([salt, 0, rules.SUB_ROUNDS], np.uint32)
    library.refine_extended(
        blocks, ctypes.byref(given), ctypes.c_void_p(address(labels)),
        ctypes.c_void_p(address(totals)), ctypes.c_void_p(address(second_totals)),
        ctypes.c_void_p(address(refined)),
        ctypes.c_void_p(address(schedule)),
    )  # fmt: skip
    np.testing.assert_array_equal(refined, level.refined)
