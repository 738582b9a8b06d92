import numpy as np
import pytest

import louvain_um as lu
from louvain_um.errors import GraphFormatError, LouvainUmError
from louvain_um.profiling import Session
from louvain_um.profiling.access.recordings import recording_in
from louvain_um.profiling.session.data import SCHEMA
from louvain_um.profiling.views.html.svg import lines


def test_a_cut_off_archive_is_left_to_the_readers_of_graphs(tmp_path):
    path = tmp_path / "cut.npz"
    np.savez(path, u=np.arange(100), v=np.arange(100))
    path.write_bytes(path.read_bytes()[:300])
    assert recording_in(path) is None
    with pytest.raises(GraphFormatError, match="download or save it again"):
        lu.read_graph(path)


def test_a_session_of_another_version_is_no_graph(tmp_path):
    path = tmp_path / "run.npz"
    Session(metadata={"version": "9"}, schema=SCHEMA + 1).save(path)
    with pytest.raises(LouvainUmError, match="newer version"):
        recording_in(path)
    with pytest.raises(GraphFormatError, match="session or a recording"):
        lu.read_graph(path)


def test_a_graph_with_a_header_is_a_graph(tmp_path):
    path = tmp_path / "graph.npz"
    np.savez(path, u=[0, 1], v=[1, 2], header="mine")
    assert recording_in(path) is None
    assert lu.read_graph(path).n_edges == 2


def test_an_archive_of_many_arrays_is_reported_in_short(tmp_path):
    path = tmp_path / "many.npz"
    np.savez(path, **{f"a{number}": [0] for number in range(50)})
    with pytest.raises(GraphFormatError, match="and 42 more") as error:
        lu.read_graph(path)
    assert len(str(error.value)) < 250 + len(str(path))


def test_a_chart_of_decades_bears_that_nothing_is_above_zero():
    drawn = lines({"base": {0: 0.0, 50: 0.0}}, "seconds", logarithmic=True)
    assert "nan" not in drawn
