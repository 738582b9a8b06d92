import itertools
import json
import math
import re
from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import louvain_um as lu
from louvain_um.analysis.profile import ProfileStore, ValueLine, envelope, summary
from louvain_um.analysis.resolution import PRECISION, ResolutionPoint
from louvain_um.cli import app
from louvain_um.core.plain_data import build
from tests import oracle
from tests.graphs import graphs
from tests.paths import ROOT

FOOTBALL = ROOT.parent / "shared/data/football.gml"


def line(inside, expected, communities=1):
    return ValueLine(
        inside=inside, expected=expected, communities=communities, resolution=1.0, seed=0
    )


def cliques(many=6, size=8):
    """A ring of cliques."""
    edges = [
        (size * c + a, size * c + b) for c in range(many) for a in range(size) for b in range(a)
    ]
    edges += [(size * c, (size * c + size + 1) % (many * size)) for c in range(many)]
    return lu.Graph.from_edges(*zip(*edges, strict=True))


VALUES = st.floats(0, 1).map(lambda x: round(x, 3))


@given(st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=12))
def test_the_envelope_is_the_maximum_everywhere(values):
    lines = [line(inside, expected) for inside, expected in values]
    pieces = envelope(lines, 0.1, 10.0)
    assert pieces[0].low == 0.1
    assert pieces[-1].high == 10.0
    assert all(a.high == b.low for a, b in itertools.pairwise(pieces))
    assert all(a.line.expected > b.line.expected for a, b in itertools.pairwise(pieces))
    for piece in pieces:
        for at in np.linspace(piece.low, piece.high, 5):
            best = max(each.value(at) for each in lines)
            assert piece.line.value(at) == pytest.approx(best, abs=1e-9)


@pytest.mark.parametrize("low", [1e-18, 1e-100])
def test_a_low_end_near_zero_changes_no_plateau(low):
    wide, narrow = (
        lu.resolution_profile(cliques(), device="cpu", points=30, low=end, high=20.0, runs=1)
        for end in (low, 0.01)
    )
    assert wide.plateaus[0].communities == narrow.plateaus[0].communities == 1
    assert wide.plateaus[-1].communities == narrow.plateaus[-1].communities > 6
    assert wide.plateaus[0].high == pytest.approx(narrow.plateaus[0].high)
    assert math.isfinite(wide.plateaus[0].octaves)


def test_planted_cliques_are_the_widest_plateau():
    profile = lu.resolution_profile(cliques(), device="cpu", points=30)
    widest = max(profile.plateaus, key=lambda plateau: plateau.octaves)
    assert (widest.communities, widest.stability) == (6, 1.0)
    assert widest.low < 1 < widest.high
    found = profile.partition(widest.resolution)
    assert found.n_communities == 6
    assert lu.modularity(found.graph, found, widest.resolution) == pytest.approx(widest.value)


def test_values_are_those_of_the_partitions():
    graph = lu.read_graph("example:les-miserables")
    profile = lu.resolution_profile(graph, device="cpu", points=12, runs=2, seed=5)
    for point in profile.points:
        runs = [
            lu.louvain(graph, device="cpu", resolution=point.resolution, seed=seed)
            for seed in (5, 6)
        ]
        for known, run in zip(point.lines, runs, strict=True):
            assert known.communities == run.n_communities
            assert known.value(point.resolution) == pytest.approx(run.modularity)
            assert known.inside == pytest.approx(run.quality().coverage)
    best = max(run.modularity for run in runs)
    assert profile.pieces[-1].line.value(profile.high) >= best - 1e-9


def test_the_number_of_communities_rises_and_ranges_meet():
    profile = lu.resolution_profile(cliques(5, 6), device="cpu", points=20, low=0.05, high=50)
    plateaus = profile.plateaus
    assert (plateaus[0].low, plateaus[-1].high) == (0.05, 50)
    assert all(a.high == b.low for a, b in itertools.pairwise(plateaus))
    assert plateaus[0].communities == 1
    assert plateaus[-1].communities == 30
    tried = [point.resolution for point in profile.points]
    assert tried == sorted(set(tried))
    assert min(b / a for a, b in itertools.pairwise(tried)) > PRECISION - 1e-9


def test_more_points_extend_fewer():
    graph = lu.read_graph("example:les-miserables")
    few = lu.resolution_profile(graph, device="cpu", points=5, runs=1)
    many = lu.resolution_profile(graph, device="cpu", points=9, runs=1)
    assert {p.resolution for p in few.points} < {p.resolution for p in many.points}
    assert (len(few.points), len(many.points)) == (5, 9)


def test_warm_starts_find_nothing_worse():
    graph = lu.read_graph("example:les-miserables")
    profile = lu.resolution_profile(graph, device="cpu", points=8, runs=1, warm_starts=True)
    warm = [line for point in profile.points for line in point.lines if line.start is not None]
    assert len(warm) == 7
    for point in profile.points:
        cold = [known for known in point.lines if known.start is None]
        for known in point.lines:
            if known.start is not None:
                parent = next(
                    each
                    for p in profile.points
                    for each in p.lines
                    if (each.resolution, each.seed) == known.start and each.start is None
                )
                assert known.value(point.resolution) >= parent.value(point.resolution) - 1e-9
        assert cold
    for piece in profile.pieces:
        found = profile.partition(math.sqrt(piece.low * piece.high))
        assert found.n_communities == piece.line.communities


def test_cpm_has_densities_as_resolutions():
    profile = lu.resolution_profile(cliques(), device="cpu", points=15, runs=1, objective="cpm")
    assert max(profile.plateaus, key=lambda plateau: plateau.octaves).communities == 6
    assert profile.low == pytest.approx(348 / (48 * 47))
    assert profile.high == 1.0


@pytest.mark.parametrize(
    ("options", "name"),
    [({"low": 2, "high": 1}, "low"), ({"low": -1}, "low"), ({"high": math.inf}, "high"),
     ({"points": 1}, "points"), ({"runs": 0}, "runs"), ({"seed": 2**32 - 1}, "seed")],
)  # fmt: skip
def test_options_are_checked(options, name):
    with pytest.raises(lu.OptionError) as caught:
        lu.resolution_profile(cliques(), device="cpu", **options)
    assert caught.value.option == name
    with pytest.raises(TypeError, match="resolution"):
        lu.resolution_profile(cliques(), resolution=1)
    profile = lu.resolution_profile(cliques(2, 3), device="cpu", points=2, runs=1)
    with pytest.raises(lu.OptionError, match=r"must lie in 0.1 … 10"):
        profile.partition(11)


@pytest.mark.parametrize("name", ["points", "runs", "low", "high"])
@pytest.mark.parametrize("value", ["x", [1]], ids=["text", "list"])
def test_what_is_no_number_is_reported(name, value):
    with pytest.raises(lu.OptionError, match=f"{name} must be a"):
        lu.resolution_profile(cliques(), **{name: value})


def test_a_resolution_that_is_not_finite_is_refused():
    for resolution in (math.inf, math.nan, "1"):
        with pytest.raises(lu.OptionError, match="resolution must be a number"):
            lu.modularity(cliques(), [0] * 48, resolution)


@pytest.mark.parametrize("edges", [([], []), ([0], [0]), ([0], [1])])
def test_graphs_with_hardly_anything(edges):
    profile = lu.resolution_profile(lu.Graph.from_edges(*edges), device="cpu")
    assert profile.to_frame()["high"].iloc[-1] == 10
    assert re.search(r" (1 plateau|[2-9] plateaus), the widest", repr(profile))


def test_a_profile_is_drawn():
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    figure = Figure()
    axes = lu.resolution_profile(cliques(), device="cpu", points=8).plot(ax=figure.add_subplot())
    figure.canvas.draw()
    assert axes.get_xscale() == "log"


def test_points_survive_as_plain_data():
    point = ResolutionPoint(
        resolution=0.1 + 0.2,
        lines=(line(0.3, 0.7), ValueLine(inside=1 / 3, expected=0.1, communities=2, resolution=0.3,
                                    seed=4, start=(0.1, 4))),
        stability=0.25,
    )  # fmt: skip
    assert build(ResolutionPoint, json.loads(json.dumps(asdict(point))), "point") == point


def test_an_interrupted_search_continues(tmp_path):
    graph, setup = cliques(), {"graph": "cliques"}
    options = {"device": "cpu", "points": 9, "runs": 2}
    whole = lu.resolution_profile(graph, **options)
    folder = tmp_path / "profile"

    class StopError(Exception):
        pass

    done = []

    def stop(point):
        store.add(point)
        done.append(point)
        if len(done) == 4:
            raise StopError

    with ProfileStore(folder, setup) as store, pytest.raises(StopError):
        lu.resolution_profile(graph, **options, on_point=stop, known=store.points)
    with (folder / "points.jsonl").open("a") as file:
        file.write('{"resolution": 3.0, "li')  # cut short by a kill
    new = []
    with ProfileStore(folder, setup) as store:
        assert len(store.points) == 4
        again = lu.resolution_profile(graph, **options, known=store.points, on_point=new.append)
        store.write(again)
    assert len(new) == 5
    assert again.points == whole.points
    assert summary(again) == json.loads((folder / "profile.json").read_text())
    assert (folder / "plateaus.csv").read_text().startswith("low,high,octaves,communities")


def test_a_graph_of_the_same_size_is_another_graph(tmp_path):
    out, words = tmp_path / "out", ["resolution", str(tmp_path / "g.txt"), "--points", "2"]
    run = [*words, "--runs", "1", "-o", str(out), "-q"]
    (tmp_path / "g.txt").write_text("0 1\n1 2\n2 0\n3 4\n4 5\n")
    assert CliRunner().invoke(app, run).exit_code == 0
    (tmp_path / "g.txt").write_text("0 1\n1 2\n2 3\n3 4\n4 5\n")
    done = CliRunner().invoke(app, run)
    assert done.exit_code == 1
    assert "holds results of another graph or other options" in done.output


POINT = ResolutionPoint(resolution=1.0, lines=(line(1.0, 0.5),), stability=1.0)


def test_a_folder_of_a_version_without_digests_goes_on(tmp_path):
    with ProfileStore(tmp_path, {"seed": 1}) as store:
        store.add(POINT)
    with ProfileStore(tmp_path, {"seed": 1, "digest": "a"}) as store:
        assert store.points == {1.0: POINT}
    with pytest.raises(lu.LouvainUmError, match="another graph or other options"):
        ProfileStore(tmp_path, {"seed": 2, "digest": "a"})


def test_folders_of_others_are_left_alone(tmp_path):
    with ProfileStore(tmp_path / "a", {"seed": 1}) as store:
        store.add(POINT)
    with pytest.raises(lu.LouvainUmError, match="another graph or other options"):
        ProfileStore(tmp_path / "a", {"seed": 2})
    with ProfileStore(tmp_path / "a", {"seed": 2}, force=True) as store:
        assert store.points == {}
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "thesis.txt").write_text("precious")
    with pytest.raises(lu.LouvainUmError, match="holds other files"):
        ProfileStore(tmp_path / "b", {})
    (tmp_path / "a" / "points.jsonl").write_text('{"setup": {"seed": 2}}\n{"resolution": "x"}\n')
    with pytest.raises(lu.LouvainUmError, match=r"points.jsonl:2: is damaged"):
        ProfileStore(tmp_path / "a", {"seed": 2})
    with pytest.raises(lu.LouvainUmError, match="is not a folder"):
        ProfileStore(tmp_path / "b" / "thesis.txt", {})
    with ProfileStore(tmp_path / "c" / "d", {}):
        assert (tmp_path / "c" / "d" / "points.jsonl").exists()
    assert not (tmp_path / "c" / "d").exists()  # no point was found


@pytest.mark.skipif(not FOOTBALL.exists(), reason="no data")
def test_conferences_of_american_football_are_the_widest_plateau():
    profile = lu.resolution_profile(lu.read_graph(FOOTBALL), device="cpu")
    widest = max(profile.plateaus, key=lambda plateau: plateau.octaves)
    assert (widest.communities, widest.stability) == (12, 1.0)


@settings(max_examples=6)
@given(graph=graphs(), method=st.sampled_from(["louvain", "leiden"]), seed=st.integers(0, 99))
def test_profiles_are_those_of_the_oracles_partitions(graph, method, seed):
    profile = lu.resolution_profile(graph, device="cpu", method=method, points=6, runs=2, seed=seed)
    partitions = [
        oracle.detect(graph, method, resolution=point.resolution, seed=seed + run)[0]
        for point in profile.points
        for run in range(2)
    ]
    lines = [line for point in profile.points for line in point.lines]
    assert [line.communities for line in lines] == [len(set(labels)) for labels in partitions]
    for piece in profile.pieces:
        middle = math.sqrt(piece.low * piece.high)
        best = max(lu.modularity(graph, labels, middle) for labels in partitions)
        assert piece.line.value(middle) == pytest.approx(best, abs=1e-9)
