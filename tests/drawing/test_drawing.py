import json
import re
import sys
import threading
from concurrent.futures import ThreadPoolExecutor, wait
from itertools import pairwise
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings

import louvain_um as lu
from louvain_um.drawing import layout
from louvain_um.drawing.layout import draw_communities, draw_vertices
from louvain_um.drawing.over_time import Stays
from louvain_um.drawing.plots import (
    KINDS,
    OTHERS,
    colour,
    figure,
    figure_axes,
    named,
    small_picture,
    svg_of,
)
from louvain_um.drawing.reports import chart, page
from louvain_um.errors import LouvainUmError
from louvain_um.results.communities import Communities
from louvain_um.results.display import cut
from tests.graphs import graphs

pytest.importorskip("matplotlib")


def novel():
    return lu.louvain(lu.read_graph("example:les-miserables"), device="cpu")


@settings(max_examples=30)
@given(graphs())
def test_every_vertex_and_edge_has_its_place(graph):
    result = lu.louvain(graph, device="cpu")
    drawing = draw_vertices(graph, result, 0)
    assert drawing.positions.shape == (graph.n_vertices, 2)
    assert np.isfinite(drawing.positions).all()
    assert len(drawing.ends) == graph.n_arcs // 2
    assert drawing.communities.tolist() == result.labels.tolist()
    whole = draw_communities(graph, result, 0)
    assert len(whole.names) == result.n_communities
    again = draw_communities(graph, result, 0)
    assert np.array_equal(whole.positions, again.positions)


def test_circles_do_not_overlap():
    result = novel()
    drawing = draw_communities(result.require_graph(), result, 0)
    gaps = drawing.positions[:, None] - drawing.positions
    distance = np.hypot(gaps[..., 0], gaps[..., 1]) + 9 * np.eye(len(gaps))
    assert (distance >= drawing.radii[:, None] + drawing.radii).all()


def test_members_are_nearer_than_others():
    result = novel()
    drawing = draw_vertices(result.require_graph(), result, 0)
    gaps = drawing.positions[:, None] - drawing.positions
    distance = np.hypot(gaps[..., 0], gaps[..., 1])
    same = result.labels[:, None] == result.labels
    assert distance[same].mean() < 0.6 * distance[~same].mean()


def test_parts_without_edges_between_them_stay_in_sight():
    pairs = np.arange(40)
    graph = lu.Graph.from_edges(2 * pairs, 2 * pairs + 1, n_vertices=90)
    drawing = draw_vertices(graph, lu.louvain(graph, device="cpu"), 0)
    assert np.ptp(drawing.positions, axis=0).max() < 4
    assert len(np.unique(drawing.positions.round(6), axis=0)) == 90


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("edges", [([0, 1, 2, 4], [1, 2, 0, 4]), ([], []), ([0], [0])])
def test_every_kind_is_drawn_of_small_graphs(kind, edges):
    graph = lu.Graph.from_edges(*edges)
    drawn, axes = figure(kind)
    lu.louvain(graph, device="cpu").plot(kind, ax=axes)
    drawn.canvas.draw()
    assert "modularity" in axes.get_title()


def test_a_dendrogram_has_a_leaf_per_vertex_with_members_side_by_side():
    result = novel()
    axes = figure("dendrogram")[1]
    result.plot("dendrogram", ax=axes)
    leaves = [text.get_text() for text in axes.get_xticklabels()]
    assert sorted(leaves) == sorted(result.names.tolist())
    communities = [result.to_dict()[name] for name in leaves]
    assert sum(a != b for a, b in pairwise(communities)) == 5


def test_parts_of_a_dendrogram_join_at_the_modularity_of_what_they_form():
    result = novel()
    axes = figure("dendrogram")[1]
    result.plot("dendrogram", ax=axes)
    levels = [np.arange(77), *result.hierarchy()]
    values = [lu.modularity(result.graph, labels) for labels in levels]
    drawn = {round(float(y), 9) for line in axes.lines for y in line.get_ydata()}
    assert drawn == {round(value, 9) for value in values}
    assert axes.get_yticks()[-1] == pytest.approx(result.modularity)


def test_communities_are_named_by_their_hubs():
    result = novel()
    drawing = draw_communities(result.graph, result, 0)
    assert drawing.names[0] == "Valjean"
    assert drawing.names == [hubs[0] for hubs in result.table(hubs=1)["hubs"]]


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("Valjean", "Valjean"),
        ("Mademoiselle Baptistine of Digne", "Mademoiselle Baptistine…"),
        ("https://example.org/long/path/to", "https://example.org…"),
        ("x" * 30, "x" * 23 + "…"),
    ],
)
def test_names_end_at_a_word(name, shown):
    assert cut(name) == shown


def test_36_communities_have_colours_that_differ():
    colours = [colour(k) for k in range(36)]
    assert len(set(colours)) == 36
    assert OTHERS not in colours
    assert colour(36) == OTHERS


@pytest.mark.parametrize("n", [60, 400])
def test_a_notebook_shows_a_picture(n):
    result = lu.louvain(lu.generators.planted(n, blocks=2, seed=1).graph, device="cpu")
    text = small_picture(result, result.graph)
    assert ElementTree.fromstring(text).tag.endswith("svg")
    assert text in result._repr_html_()
    assert small_picture(result, None) == ""


def test_a_notebook_without_matplotlib_shows_the_table(monkeypatch):
    result = novel()
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert "<svg" not in result._repr_html_()
    assert "<table>" in result._repr_html_()


def test_a_histogram_counts_every_community():
    axes = figure("sizes")[1]
    result = novel()
    result.plot("sizes", ax=axes)
    assert sum(bar.get_height() for bar in axes.patches) == result.n_communities


def test_auto_draws_what_no_kind_draws():
    axes = [novel().plot(*kind, ax=figure("graph")[1]) for kind in ((), ("auto",), ("graph",))]
    assert len({len(ax.texts) for ax in axes}) == 1
    assert axes[0].texts


def test_kinds_are_checked_and_graphs_too_large_refused():
    with pytest.raises(lu.OptionError, match="kind must be one of graph, communities"):
        novel().plot("tree")
    ring = lu.Graph.from_edges(np.arange(2000), (np.arange(2000) + 1) % 2000)
    result = lu.louvain(ring, device="cpu")
    with pytest.raises(lu.LouvainUmError, match="too many to draw"):
        result.plot("graph", ax=figure("graph")[1])
    axes = figure("communities")[1]
    result.plot(ax=axes)
    assert len(axes.collections[1].get_offsets()) <= 60
    with pytest.raises(lu.GraphError, match="without its graph"):
        Communities(graph=None, labels=np.zeros(2, np.uint32), modularity=0.0).plot()


def test_names_that_would_cover_each_other_are_left_out():
    result = novel()
    drawing = draw_vertices(result.require_graph(), result, 0)
    places = named(drawing)
    assert 20 < len(places) < 77
    assert "Valjean" in [drawing.names[place] for place in places]


def data_of(text):
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    return json.loads(found[1])


def test_a_page_holds_both_views_and_needs_no_network():
    result = novel()
    text = page(result, result.require_graph(), "les-miserables", 0)
    assert not re.search(r"(src|href)=|https?://|@import|url\(", text)
    views = data_of(text)
    assert views["vertices"]["name"] == result.names.tolist()
    assert len(views["vertices"]["from"]) == 254
    assert views["vertices"]["community"] == result.labels.tolist()
    assert len(views["communities"]["x"]) == 6
    assert "Valjean, Marius, Cosette" in text
    assert text == page(result, result.require_graph(), "les-miserables", 0)


def test_a_page_of_a_large_graph_shows_communities_only():
    pairs = np.arange(3000)
    graph = lu.Graph.from_edges(2 * pairs, 2 * pairs + 1)
    text = page(lu.louvain(graph, device="cpu"), graph, "pairs", 0)
    assert list(data_of(text)) == ["communities"]
    assert "and 2,800 smaller communities" in text
    assert "2,940 smaller communities are not drawn" in text


def test_more_communities_than_a_dendrogram_can_show_are_refused():
    result = lu.louvain(lu.Graph.from_edges([0], [1], n_vertices=200), device="cpu")
    with pytest.raises(lu.LouvainUmError, match="199 communities are too many for a dendrogram"):
        result.plot("dendrogram")


@pytest.mark.parametrize(("cliques", "rotation"), [(8, 0), (12, 90)])
def test_a_dendrogram_with_too_many_leaves_to_read_names_its_communities(cliques, rotation):
    graph = lu.generators.ring_of_cliques(cliques, size=25).graph
    result = lu.louvain(graph, device="cpu")
    axes = figure("dendrogram")[1]
    result.plot("dendrogram", ax=axes)
    assert len(axes.get_xticks()) == 0
    assert len(axes.texts) == result.n_communities
    assert {text.get_rotation() for text in axes.texts} == {rotation}


def test_a_dendrogram_without_a_partition_that_can_be_seen_is_refused():
    graph = lu.generators.ring_of_cliques(3, size=400).graph
    result = lu.Communities.of(graph, np.arange(1200) // 400)
    with pytest.raises(lu.LouvainUmError, match="no partition of at most 1,000 parts"):
        result.plot("dendrogram")


@pytest.mark.parametrize("prepare", [
    lambda axes: None, lambda axes: axes.set(xscale="log", yscale="log"),
    lambda axes: axes.set(xticks=[0.5], yticks=[0.5]),
])  # fmt: skip
def test_sizes_are_drawn_on_axes_that_have_ticks_or_scales_of_their_own(prepare):
    drawn, axes = figure("sizes")
    prepare(axes)
    labels = np.repeat(np.arange(40), [*range(4, 14), *[5] * 30])
    lu.Communities.of(lu.Graph.from_edges([], [], n_vertices=len(labels)), labels).plot(
        "sizes", ax=axes
    )
    drawn.canvas.draw()
    for ticks in (axes.get_xticks(), axes.get_yticks()):
        assert len(ticks) > 2
        assert all(tick == round(tick) for tick in ticks)


def test_lines_are_as_wide_as_their_weights_say_and_thinner_the_more_there_are(monkeypatch):
    monkeypatch.setattr(layout, "MANY_LINES", 100)

    def widths(edges, weights):
        graph = lu.Graph.from_edges(np.arange(edges), np.arange(edges) + 1, weights)
        return draw_vertices(graph, lu.louvain(graph, device="cpu"), 0).widths

    assert set(widths(5, None)) == {0.8}
    assert widths(0, None).tolist() == []
    few, many = widths(5, [1, 2, 3, 4, 5]), widths(140, np.arange(140) % 5 + 1)
    assert (np.diff(few) > 0).all()
    assert few.max() == 3 > many.max()


def test_sums_of_negative_weights_have_circles_and_places():
    graph = lu.Graph.from_edges([0, 1], [1, 2], [-1, 4], kind="signed")
    result = lu.louvain(graph, objective="signed", device="cpu")
    for draw in (draw_vertices, draw_communities):
        drawing = draw(graph, result, 0)
        assert np.isfinite(drawing.positions).all()
        assert (drawing.radii > 0).all()


def test_a_missing_library_is_an_error_that_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(lu.LouvainUmError, match=r"pip install .*\[charts\]'"):
        chart("Sizes", "", 3, lambda axes: None)


@pytest.mark.parametrize("objective", ["directed", "signed", "bipartite", "cpm"])
@pytest.mark.filterwarnings("error")
def test_results_of_every_objective_are_drawn_and_listed(objective):
    ends = [0, 1, 2, 3, 4, 5, 1], [3, 4, 5, 4, 5, 3, 3]
    weights = [1.0, 2.0, 1.0, 2.0, 1.0, 3.0, -2.0] if objective == "signed" else None
    if objective == "bipartite":
        ends = [0, 1, 2, 0, 1, 2], [3, 4, 5, 4, 3, 4]
    kind = "undirected" if objective == "cpm" else objective
    graph = lu.Graph.from_edges(*ends, weights, kind=kind)
    result = lu.louvain(graph, objective=objective, device="cpu")
    for kind in KINDS:
        assert result.plot(kind, ax=figure(kind)[1]).get_title()
    drawing = draw_vertices(graph, result, 0)
    assert np.isfinite(drawing.positions).all()
    assert len(page(result, graph, "graph", 0)) > 1000
    frame = result.table()
    assert frame["size"].sum() == graph.n_vertices


def test_changes_at_a_time_that_the_history_lacks_are_an_error():
    pandas = pytest.importorskip("pandas")
    changes = pandas.DataFrame({"time": [9, 19], "vertex": [1, 2], "community": [0, 0]})
    with pytest.raises(LouvainUmError, match="the time 19, which the history lacks"):
        Stays.of(changes, np.array([9]))


def test_threads_that_write_figures_leave_each_other_their_settings():
    from matplotlib import rcParams

    first_ended, salts = threading.Event(), []

    class First:
        def savefig(self, out, **how):
            wait([other.submit(svg_of, Second(), "second")], 0.3)
            out.write(b"<svg")

    class Second:
        def savefig(self, out, **how):
            first_ended.wait(0.3)
            salts.append(rcParams["svg.hashsalt"])
            out.write(b"<svg")

    with ThreadPoolExecutor(1) as other:
        svg_of(First(), "first")
        first_ended.set()
    assert salts == ["second"]
    assert rcParams["svg.hashsalt"] is None


def test_threads_draw_on_figures_of_their_own(monkeypatch):
    from matplotlib import pyplot

    pyplot.switch_backend("agg")
    monkeypatch.setitem(pyplot.rcParams, "figure.max_open_warning", 0)
    together, before = threading.Barrier(6), sys.getswitchinterval()

    def draw(_):
        together.wait()
        return figure_axes().figure

    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(6) as pool:
            assert len({*pool.map(draw, range(120))}) == 120
    finally:
        sys.setswitchinterval(before)
        pyplot.close("all")
