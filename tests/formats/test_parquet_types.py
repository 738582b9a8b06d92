"""Types of the columns of a Parquet table."""

from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import louvain_um as lu
from louvain_um.errors import GraphFormatError


def graph(folder, u, v, **more):
    path = folder / "edges.parquet"
    pq.write_table(pa.table({"source": u, "target": v, **more}), path)
    return lu.read_graph(path)


def test_bytes_and_decimals_are_text_and_numbers(tmp_path):
    found = graph(tmp_path, pa.array([b"ann", b"bob"]), pa.array([b"bob", b"cid"]))
    assert found.names.tolist() == ["ann", "bob", "cid"]
    whole = pa.decimal128(10, 0)
    weights = pa.array([Decimal("1.50"), Decimal("2.25")])
    found = graph(tmp_path, pa.array([1, 2], whole), pa.array([2, 3], whole), weight=weights)
    assert found.n_vertices == 3
    assert found.total_weight == 2 * 3.75 * found.scale


@pytest.mark.parametrize(
    ("column", "reported"),
    [
        (pa.array([[1], [2]]), "column source is of type list"),
        (pa.array([{"a": 1}, {"a": 2}]), "column source is of type struct"),
        (pa.array([b"\xff", b"a"]), "column source holds bytes that are not UTF-8"),
    ],
)
def test_other_types_are_refused_by_name(tmp_path, column, reported):
    with pytest.raises(GraphFormatError, match=reported):
        graph(tmp_path, column, pa.array([1, 2]))
