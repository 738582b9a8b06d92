"""Files as exporters and people write them: read as what was meant, or refused with a remedy."""

import json
import warnings
from pathlib import Path

import pytest

from louvain_um.errors import GraphFormatError
from louvain_um.formats import read_graph

FOLDER = Path(__file__).parents[1] / "corpus" / "inputs"

EXPECTED = {
    name: wanted["sum"] if isinstance(wanted, dict) else wanted
    for name, wanted in json.loads((FOLDER / "expected.json").read_text()).items()
}
"""File → vertices, edges, sum of the weights, names; or in words what must happen."""

READ = {
    "dimacs_e_only.txt": [4, 4, 4.0, None],
    "vg_edges.txt": [4, 4, 4.0, None],
    "dimacs_noc.txt": [4, 4, 977.0, None],
    "dimacs_sp.txt": [4, 3, 970.0, None],
    "dimacs_weighted_e.txt": [4, 4, 19.0, None],
    "road.txt": [4, 3, 970.0, None],
    "clique.txt": [4, 4, 4.0, None],
    "triples.tsv": [4, 5, 5.0, ["ann", "bob", "cid", "dee"]],
    "cyto_sif2.txt": [4, 4, 4.0, ["ann", "bob", "cid", "dee"]],
    "cyto.sif": [5, 4, 4.0, ["ann", "bob", "cid", "dee", "eve"]],
    "rdf_nt.txt": [3, 3, 3.0, ["<http://x/a>", "<http://x/b>", "<http://x/c>"]],
    "lgl_weighted.txt": [4, 4, 8.5, ["ann", "bob", "cid", "dee"]],
    "ig_lgl.txt": [4, 3, 10.5, ["ann", "bob", "cid", "dee"]],
    "labelled_matrix_comma.csv": [4, 4, 7.0, ["ann", "bob", "cid", "dee"]],
    "labelled_matrix_r.txt": [4, 4, 7.0, ["ann", "bob", "cid", "dee"]],
    "labelled_matrix_tab.tsv": [4, 4, 7.0, ["ann", "bob", "cid", "dee"]],
    "weight_string.graphml": [3, 2, 3.5, ["a", "b", "c"]],
    "attr_noname.graphml": [3, 2, 3.5, ["a", "b", "c"]],
    "gexf12_nodraft.gexf": [3, 2, 3.5, ["Ann", "Bob", "Cid"]],
    "gexf12_https.gexf": [3, 2, 3.5, ["Ann", "Bob", "Cid"]],
    "gml_multiline_string.gml": [2, 1, 2.0, ["Ann\nSmith", "b"]],
    "gml_nan_inf.gml": [2, 1, 2.0, ["a", "b"]],
    "duck_huge.parquet": [5, 4, 6.0, None],
    "duck_uuid.parquet": [3, 2, 2.0, None],
    "array_sym.mtx": [3, 3, 6.0, None],
    "pajek_edges.net": [4, 3, 6.5, ["Ann", "Bob", "Cid", "Dee"]],
    "ucinet_edgelist.dl": [4, 3, 6.0, ["ann", "bob", "cid", "dee"]],
    "yed_groups.graphml": [4, 2, 2.0, ["Ann", "Bob", "Cid", "Team"]],
}
"""What is read of the files of which `expected.json` speaks in words."""

NOTED = {
    "nx_data_color_weight.edgelist": "weight='4'",
    "labelled_matrix_float.csv": "loops='drop'",
    "gephi12_dynamic_weight.gexf": "weights change in time",
    "two_graphs.graphml": "the first of 2 graphs",
    "names_dup.graphml": "2 vertices have the label 'ann'",
}
"""Notes on files of which a part or a guess is read."""

REFUSED = {
    "gephi_matrix.csv": "symmetrize=True",
    "pajek_arcs_edges.net": "symmetrize=True",
    "snap_cmty.txt": "members of a community",
    "cyto_edges.csv": "source=… (--source) and target=…",
    "incidence.csv": "format='incidence'",
    "nvprof_old.sqlite": "louvain-um report",
}
"""Errors, and what they advise."""


def read(path, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return read_graph(path, **options)


def found(graph):
    edges = graph.to_pandas()
    weight = float(edges["weight"].sum()) if graph.weighted else float(len(edges))
    names = None if graph.names is None else sorted(map(str, graph.names.tolist()))
    return [graph.n_vertices, len(edges), weight, names]


def test_every_file_has_its_answer():
    answered = {name for name, wanted in EXPECTED.items() if isinstance(wanted, list)}
    assert not answered & {*READ, *NOTED, *REFUSED}
    assert answered | {*READ, *NOTED, *REFUSED} == set(EXPECTED)
    wrong = []
    for name, wanted in (EXPECTED | READ).items():
        if name in NOTED or name in REFUSED:
            continue
        n, _, weight, names = found(read(FOLDER / name))
        right = n == wanted[0] and abs(weight - wanted[2]) < 1e-9
        if not right or (wanted[3] is not None and names != sorted(wanted[3])):
            wrong.append((name, [n, weight, names], wanted))
    assert wrong == []


def test_what_is_not_read_is_noted():
    for name, words in NOTED.items():
        assert any(words in note for note in read(FOLDER / name).notes), name


def test_what_is_refused_has_a_remedy():
    for name, words in REFUSED.items():
        with pytest.raises(GraphFormatError) as caught:
            read(FOLDER / name)
        assert words in str(caught.value), name


def test_advice_leads_to_the_right_graph():
    assert found(read(FOLDER / "gephi_matrix.csv", symmetrize=True))[:2] == [5, 5]
    assert found(read(FOLDER / "pajek_arcs_edges.net", symmetrize=True))[:3] == [4, 3, 6.5]
    clubs = read(FOLDER / "incidence.csv", format="incidence")
    assert found(clubs)[:3] == [6, 6, 6.0]
    assert "clubA" in clubs.names.tolist()
    loops = read(FOLDER / "labelled_matrix_float.csv", loops="drop")
    assert found(loops)[:2] == [3, 3]
    assert not loops.loops.any()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("g.dl", "dl n='4 format=edgelist1\ndata:\n1 2\n"),
        ("g.dl", "dl n=² format=edgelist1\ndata:\n1 2\n"),
        ("g.net", "*Vertices ²\n*Edges\n1 2\n"),
        ("g.mtx", "%%MatrixMarket matrix coordinate pattern symmetric\n² 2 1\n2 1\n"),
    ],
)
def test_sizes_that_are_no_numbers_are_errors(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    with pytest.raises(GraphFormatError, match=name):
        read_graph(tmp_path / name)
