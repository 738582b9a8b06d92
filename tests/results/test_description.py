import json
import math
from collections import Counter

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from scipy import stats

import louvain_um as lu
from louvain_um.results.description import Finding


@pytest.fixture(scope="module")
def found():
    graph = nx.planted_partition_graph(4, 50, 0.4, 0.01, seed=1)
    edges = [(f"c{u:03}", f"c{v:03}") for u, v in graph.edges]
    return lu.louvain(nx.Graph(edges), device="cpu")


def table(found, **columns):
    return pd.DataFrame({"id": found.names, **columns})


def test_categories_are_those_of_a_hypergeometric_test(found):
    random = np.random.default_rng(3)
    segment = np.where(random.random(200) < 0.6, found.labels % 2, random.integers(0, 5, 200))
    description = found.describe(table(found, segment=[f"s{s}" for s in segment]))
    expected, tests = {}, []
    for community in range(found.n_communities):
        for value in np.unique(segment):
            mine = found.labels == community
            both = int((mine & (segment == value)).sum())
            if both:
                total = int((segment == value).sum())
                p = stats.hypergeom.sf(both - 1, 200, total, int(mine.sum()))
                tests.append((community, f"s{value}"))
                expected[tests[-1]] = p
    corrected = stats.false_discovery_control([expected[test] for test in tests])
    wanted = {test: p for test, p in zip(tests, corrected, strict=True) if p <= 0.01}
    assert {(f.community, f.value): f.p for f in description.findings} == pytest.approx(wanted)
    assert len(wanted) >= 4


def test_numbers_are_those_of_mann_and_whitney(found):
    values = np.random.default_rng(1).integers(0, 30, 200) + 8 * (found.labels == 2)
    description = found.describe(table(found, age=values))
    p = [
        stats.mannwhitneyu(
            values[found.labels == c], values[found.labels != c], use_continuity=False,
            method="asymptotic",
        ).pvalue
        for c in range(found.n_communities)
    ]  # fmt: skip
    corrected = stats.false_discovery_control(p)
    wanted = {c: corrected[c] for c in range(len(p)) if corrected[c] <= 0.01}
    assert {f.community: f.p for f in description.findings} == pytest.approx(wanted)
    assert 2 in wanted
    assert description.labels[2].startswith("age high (")


def attributes(found, kind):
    """Return the same attributes as a table or a graph of a library."""
    colours = [["red", "blue"][label % 2] for label in found.labels.tolist()]
    if kind == "index":
        return pd.DataFrame({"colour": colours}, index=found.names)
    if kind in ("polars", "pyarrow"):
        library = pytest.importorskip(kind)
        make = library.DataFrame if kind == "polars" else library.table
        return make({"id": found.names.tolist(), "colour": colours})
    if kind == "networkx":
        graph = found.to_networkx()
        nx.set_node_attributes(graph, dict(zip(found.names, colours, strict=True)), "colour")
        return graph
    if kind == "igraph":
        graph = found.to_igraph()
        graph.vs["colour"] = colours
        return graph
    anndata = pytest.importorskip("anndata")
    return anndata.AnnData(obs=pd.DataFrame({"colour": colours}, index=found.names))


def test_millions_of_equal_numbers_hide_no_others():
    labels = np.zeros(2_100_000, np.uint32)
    labels[:3] = 1
    values = labels + np.float64(1)  # no column of communities
    graph = lu.Graph.from_edges([], [], n_vertices=len(labels)).renewed(attributes={"x": values})
    found = lu.Communities.of(graph, labels).describe().findings
    assert [(each.community, each.value) for each in found] == [(0, "low"), (1, "high")]


@pytest.mark.parametrize("kind", ["index", "polars", "pyarrow", "networkx", "igraph", "anndata"])
def test_attributes_are_taken_from_where_they_are(found, kind):
    described = found.describe(attributes(found, kind))
    assert described.findings == found.describe(attributes(found, "index")).findings
    assert described.labels[0].startswith("colour red (100%, ")
    own = kind in ("networkx", "igraph")  # these hold the communities, too
    assert list(described.notes) == ["column community is left out: it holds the communities"] * own


@pytest.mark.parametrize("index", ["numbers", "nested"])
def test_an_index_that_names_no_vertex_gives_way_to_the_first_column(found, index):
    frame = attributes(found, "index")
    columns = pd.DataFrame({"who": found.names, "colour": frame["colour"].to_numpy()})
    places = np.arange(len(columns)) + 0.5
    columns.index = places if index == "numbers" else pd.MultiIndex.from_arrays([places, places])
    assert found.describe(columns).findings == found.describe(frame).findings


def test_what_distinguishes_communities_is_shown_as_text_and_in_a_notebook(found):
    described = found.describe(attributes(found, "index"))
    assert str(described).splitlines()[1] == f"1: {described.labels[1]}"
    assert repr(described) == f"Description({found!r}, 4 findings)"
    shown = described._repr_html_()
    assert shown.count("<tr>") == 1 + found.n_communities
    assert 'left">colour red (100%, ' in shown


def test_terms_of_texts(found):
    pytest.importorskip("sklearn")
    words = ["wine cheese", "steel iron", "music dance", "goal ball"]
    texts = [f"likes {words[c]} number{v}" for v, c in enumerate(found.labels)]
    described = found.describe(table(found, about=texts))
    assert all(w.split()[0] in label for w, label in zip(words, described.labels, strict=True))
    # tf-idf written out, of terms that occur twice: idf is ln((1 + n) / (1 + df)) + 1.
    documents = [text.split()[:-1] for text in texts]
    frequency = Counter(term for document in documents for term in document)
    rows = []
    for document in documents:
        weights = {t: math.log((1 + len(texts)) / (1 + frequency[t])) + 1 for t in document}
        length = math.hypot(*weights.values())
        rows.append({term: weight / length for term, weight in weights.items()})
    for each in described.findings:
        members = np.flatnonzero(found.labels == each.community)
        inside = sum(rows[v].get(each.value, 0) for v in members) / len(members)
        overall = sum(row.get(each.value, 0) for row in rows) / len(rows)
        assert (each.inside, each.overall) == pytest.approx((inside, overall))
    assert {each.value for each in described.findings} == set(" ".join(words).split())


def test_nothing_distinguishes_random_attributes(found):
    random = np.random.default_rng(5)
    columns = {"a": random.integers(0, 3, 200).astype(str), "b": random.random(200)}
    assert found.describe(table(found, **columns)).findings == ()


def test_rows_and_columns_that_are_left_out_are_noted(found, tmp_path):
    frame = table(
        found, side=[f"s{label}" for label in found.labels], key=[f"k{v}" for v in range(200)]
    )
    frame = pd.concat([frame[5:], pd.DataFrame({"id": ["007"], "side": ["x"], "key": ["z"]})])
    for path, write in (("n.csv", frame.to_csv), ("n.parquet", frame.to_parquet)):
        write(tmp_path / path, index=False)
        description = found.describe(tmp_path / path)
        assert description.notes == (
            "1 row is of no vertex, such as '007'",
            "5 vertices have no row",
            "column key is left out: its values hardly repeat",
        )
        assert description.to_frame()["label"].str.startswith("side ").all()


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        (pd.DataFrame({"id": ["c001", "c001"], "x": [1, 2]}), "vertex 'c001' has two rows"),
        (pd.DataFrame({"id": ["elsewhere"], "x": [1]}), "such as 'elsewhere', is a vertex"),
        (pd.DataFrame({"id": [], "x": []}), "has no rows"),
        (pd.DataFrame([["c001", 5]], columns=["id", "id"]), "two columns are named 'id'"),
        (pd.DataFrame({"c001": ["c002"], "5": [6]}), "begins with the vertex 'c001'; add a header"),
        ("missing.csv", r"missing\.csv: cannot be read"),
        ([1, 2], "are a table"),
    ],
)
def test_bad_tables_are_refused(found, nodes, message):
    with pytest.raises(lu.GraphError, match=message):
        found.describe(nodes)


def test_the_command_prints_a_line_for_each_community(tmp_path):
    from typer.testing import CliRunner

    from louvain_um.cli import app

    nx.write_edgelist(nx.barbell_graph(12, 0), tmp_path / "g.txt", data=False)
    lines = [f"{v},{'left' if v < 12 else 'right'}\n" for v in range(24)]
    (tmp_path / "n.csv").write_text("vertex,side\n" + "".join(lines))
    words = ["detect", f"{tmp_path}/g.txt", "--device", "cpu", "--nodes", f"{tmp_path}/n.csv"]
    row = "0    12        1    1  11, 0, 1    side left (100%, 50% overall)"
    assert row in CliRunner().invoke(app, words).stdout
    alone = CliRunner().invoke(app, [*words[:-2], "--describe"]).stdout
    assert "0    12        1    1  11, 0, 1" in alone
    assert "distinguished" not in alone
    asked = CliRunner().invoke(app, [*words, "--json"]).stdout
    first = json.loads(asked)["descriptions"][0]
    assert (first["hubs"], first["label"]) == ([11, 0, 1], "side left (100%, 50% overall)")


def test_numbers_are_written_with_three_digits_and_no_exponent():
    finding = Finding(
        community=0, column="turnover", value="low", inside=2534.6, overall=0.12345, p=0
    )
    assert str(finding) == "turnover low (2,530, 0.123 overall)"


def test_a_table_that_is_read_with_the_graph_describes_it(found, tmp_path):
    frame = table(found, side=[f"s{label}" for label in found.labels])
    other = pd.DataFrame({"id": ["elsewhere"], "side": ["x"]})
    pd.concat([frame[1:], other]).to_csv(tmp_path / "n.csv", index=False)
    nx.write_weighted_edgelist(found.graph.to_networkx(), tmp_path / "g.txt")
    with pytest.warns(lu.GraphWarning) as warned:
        graph = lu.read_graph(tmp_path / "g.txt", nodes=tmp_path / "n.csv")
    reported = ("1 row is of no vertex, such as 'elsewhere'", "1 vertex has no row")
    assert graph.notes[:2] == reported
    assert {str(each.message) for each in warned} == set(reported)
    sides = graph.attributes["side"]
    assert sides[1:].tolist() == [f"s{label}" for label in found.labels[1:]]
    mine = lu.Communities.of(graph, found.labels)
    assert mine.describe().findings == found.describe(frame[1:]).findings
    assert mine.subgraph(1).attributes["side"].tolist() == ["s1"] * mine.sizes[1]
    with pytest.raises(lu.GraphError, match="cannot be read"):
        lu.read_graph("no such graph", nodes="no such table.csv")
    assert lu.as_graph(found.graph, nodes=frame).attributes["side"][0] == frame["side"][0]
    assert found.graph.attributes is None


@pytest.mark.parametrize("kind", ["networkx", "igraph", "anndata", "graphml", "gml"])
def test_attributes_come_along(found, kind, tmp_path):
    if kind == "anndata":
        source = attributes(found, kind)
        source.obsp["connectivities"] = found.graph.to_scipy().astype(float)
    elif kind in ("graphml", "gml"):
        source = tmp_path / f"g.{kind}"
        getattr(nx, f"write_{kind}")(attributes(found, "networkx"), source)
    else:
        source = attributes(found, kind)
    again = lu.as_graph(source)
    assert again.names.tolist() == found.names.tolist()
    described = lu.Communities.of(again, found.labels).describe()
    assert described.findings == found.describe(attributes(found, "index")).findings
    assert again.to_networkx().nodes["c000"]["colour"] in ("red", "blue")


def test_a_graph_without_attributes_is_described_by_its_edges(found):
    described = found.describe()
    assert described.labels == [""] * found.n_communities
    assert described.to_frame()["density"].tolist() == found.quality().density.tolist()
    hubs = ", ".join(found.table().loc[0, "hubs"])
    density, cut = found.quality().density[0], found.quality().cut[0]
    assert described.rows(1) == [("0", "50", f"{density:.3g}", f"{cut:.0f}", hubs)]


def test_values_of_every_kind_become_columns():
    graph = nx.path_graph(4)
    columns = {"a": [1, 2.5, None, 3], "b": [True, False, True, None], "c": [1, 2]}
    for name, values in columns.items():
        nx.set_node_attributes(graph, dict(enumerate(values)), name)
    found = lu.as_graph(graph).attributes
    assert [found[name].dtype.kind for name in "abc"] == ["f", "O", "O"]
    assert found["b"].tolist() == [True, False, True, None]
    nx.set_node_attributes(graph, {0: [1, 2], 1: [3, 4], 2: [5, 6], 3: [7, 8]}, "place")
    assert lu.as_graph(graph).attributes["place"].tolist() == [[1, 2], [3, 4], [5, 6], [7, 8]]
    assert lu.as_graph(nx.path_graph(3)).attributes is None


LARGE = 2**53 + 1
"""A whole number that is not a float."""


@pytest.mark.parametrize("suffix", ["csv", "tsv", "2024.tsv", "TSV", "tsv.gz", "PARQUET"])
def test_tables_keep_ids_and_whole_numbers_as_they_are(suffix, tmp_path):
    names = ["NA", "None", "007", "z"]
    frame = pd.DataFrame({"id": names[:3], "n": pd.array([LARGE, None, 34], "Int64")})
    path = tmp_path / f"people.{suffix}"
    if suffix == "PARQUET":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, sep="," if suffix == "csv" else "\t", index=False)
    edges = (["NA", "None", "007"], ["None", "007", "z"])
    with pytest.warns(lu.GraphWarning, match="1 vertex has no row"):
        graph = lu.as_graph(edges, nodes=path)
    given = dict(zip(graph.names.tolist(), graph.attributes["n"].tolist(), strict=True))
    assert given == {"NA": LARGE, "None": None, "007": 34, "z": None}
    nodes = graph.to_networkx().nodes
    assert dict(nodes(data=True)) == {"NA": {"n": LARGE}, "007": {"n": 34}, "None": {}, "z": {}}
    assert type(nodes["007"]["n"]) is int
    assert dict(lu.as_graph(graph.to_networkx()).to_networkx().nodes(data=True)) == dict(
        nodes(data=True)
    )


def test_fields_beyond_the_header_shift_no_columns(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("id,x\n1,2,\n2,3,\n3,1,\n")
    with pytest.raises(lu.GraphError, match="more fields than the header"):
        lu.as_graph(([1, 2], [2, 3]), nodes=path)


def test_numbers_that_begin_with_a_zero_are_codes(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("id,zip,m,n\n1,02134,1,0.5\n2,,0,1\n3,10115,30,0\n")
    found = lu.as_graph((["1", "2"], ["2", "3"]), nodes=path).attributes
    assert {name: values.tolist() for name, values in found.items()} == {
        "zip": ["02134", None, "10115"], "m": [1, 0, 30], "n": [0.5, 1, 0],
    }  # fmt: skip


def test_missing_rows_are_missing_values_of_every_type():
    moments = pd.to_datetime(["2024-01-01", None])
    frame = pd.DataFrame({"f": [0.5, np.nan], "m": moments, "b": [True, False], 1: [1, 2]})
    frame["1"] = pd.array([None, LARGE], "UInt64")
    with pytest.warns(lu.GraphWarning, match="1 vertex has no row"):
        graph = lu.as_graph(([0, 1], [1, 2]), nodes=frame.assign(id=["0", "2"]))
    found = {name: values.tolist() for name, values in graph.attributes.items()}
    assert np.isnan(found.pop("f")[1:]).all()
    assert found == {
        "m": [moments[0], None, None], "b": [True, None, False], "1": [1, None, 2],
        "1_2": [None, None, LARGE],
    }  # fmt: skip


def test_categories_of_numbers_are_no_numbers_and_whole_numbers_with_gaps_are(found):
    ages = pd.array(found.labels.astype(int) * 10 + np.arange(200) % 5, "Int64")
    ages[0] = None
    frame = table(found, group=pd.Categorical(found.labels % 2), age=ages)
    described = found.describe(frame)
    assert {each.value for each in described.findings if each.column == "group"} == {"0", "1"}
    assert {each.value for each in described.findings if each.column == "age"} == {"high", "low"}


def test_an_attribute_called_name_does_not_rename_vertices_of_igraph():
    pytest.importorskip("igraph")
    people = pd.DataFrame({"id": ["a", "b", "c"], "name": ["Ann", "Bo", "Ann"], "x": [1, 2, None]})
    graph = lu.as_graph((["a", "b"], ["b", "c"]), nodes=people)
    made = graph.to_igraph()
    assert made.vs["name"] == ["a", "b", "c"]
    assert made.vs["name_2"] == ["Ann", "Bo", "Ann"]
    assert made.vs["x"] == [1, 2, None]
    assert lu.as_graph(made).names.tolist() == ["a", "b", "c"]


@pytest.mark.parametrize("named", [True, False])
def test_igraph_describes_by_name_or_number_and_never_by_label(named):
    igraph = pytest.importorskip("igraph")
    source = igraph.Graph([(0, 1), (1, 2)])
    source.vs["label"], source.vs["x"] = ["2", "1", "0"], [5, None, LARGE]
    if named:
        source.vs["Name"] = ["c", "b", "a"]
    graph = lu.as_graph(source)
    plain = lu.as_graph(graph.to_scipy()) if not named else lu.as_graph((["c", "b"], ["b", "a"]))
    again = lu.as_graph(plain, nodes=source)
    assert again.attributes["x"].tolist() == ([LARGE, None, 5] if named else [5, None, LARGE])


def test_a_quiet_command_prints_the_description_that_was_asked_for(tmp_path):
    from typer.testing import CliRunner

    from louvain_um.cli import app

    nx.write_edgelist(nx.barbell_graph(12, 0), tmp_path / "g.txt", data=False)
    words = ["detect", f"{tmp_path}/g.txt", "--device", "cpu", "--quiet", "--force"]
    words += ["-o", f"{tmp_path}/labels.csv"]
    assert CliRunner().invoke(app, words).stdout == ""
    assert "11, 0, 1" in CliRunner().invoke(app, [*words, "--describe"]).stdout
