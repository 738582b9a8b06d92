"""Columns of types that few tables have: the right answer, or one line."""

import datetime
import tempfile
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from packaging.version import Version

import louvain_um as lu
from louvain_um.errors import GraphError, LouvainUmError
from louvain_um.results.comparison import compare

TEXTS = pa.dictionary(pa.int32(), pa.string())
PANDAS = {
    "interval": pd.Series(pd.interval_range(0, 3)),
    "period": pd.Series(pd.period_range("2020-01", "2020-03", freq="M")),
    "zoned": pd.Series(pd.date_range("2020-01-01", periods=3, tz="UTC")),
    "span": pd.Series(pd.to_timedelta([1, 2, 3], unit="s")),
    "category": pd.Series(["a", "b", "c"], dtype="category"),
    "category_missing": pd.Series(["a", None, "c"], dtype="category"),
    "integer_missing": pd.Series([1, None, 3], dtype="Int64"),
    "boolean_missing": pd.Series([True, False, None], dtype="boolean"),
    "boolean": pd.Series([True, False, True]),
    "string_missing": pd.Series(["a", None, "c"], dtype="string"),
    "sparse": pd.Series(pd.arrays.SparseArray([1, 2, 3])),
    "complex": pd.Series([1j, 2, 3]),
    "lists": pd.Series([[1], [2], [3]]),
    "dicts": pd.Series([{}, {1: 2}, {}]),
    "arrays": pd.Series([np.arange(2)] * 3),
    "missing": pd.Series([pd.NA, "b", "c"], dtype=object),
    "decimal": pd.Series([Decimal(1), Decimal(2), Decimal("3.5")]),
    "signalling": pd.Series([Decimal("sNaN"), Decimal(2), Decimal(3)]),
    "bytes": pd.Series([b"a", b"b", b"c"]),
    "dictionary": pd.Series(list("abc"), dtype=pd.ArrowDtype(TEXTS)),
    "null": pd.Series([None] * 3, dtype=pd.ArrowDtype(pa.null())),
    "large": pd.Series(np.array([1, 2, 2**64 - 1], np.uint64)),
}
ARROW = {
    "dictionary": pa.array(["a", "b", "c"]).dictionary_encode(),
    "dictionary_missing": pa.array(["a", None, "c"]).dictionary_encode(),
    "decimal": pa.array([Decimal(1), Decimal(2), Decimal("3.5")]),
    "null": pa.nulls(3),
    "date": pa.array([datetime.date(2020, 1, day) for day in (1, 2, 3)]),
    "clock": pa.array([datetime.time(hour) for hour in (1, 2, 3)]),
    "calendar": pa.array([(1, 2, 3)] * 3, pa.month_day_nano_interval()),
    "boolean": pa.array([True, False, True]),
    "large_text": pa.array(["a", "b", "c"], pa.large_string()),
    "run_ends": pa.RunEndEncodedArray.from_arrays([1, 3], [5, 6]),
    "lists": pa.array([[1], [2], [3]]),
}


def polars_columns(polars):
    return {
        "object": polars.Series([object(), object(), object()], dtype=polars.Object),
        "category": polars.Series(["a", "b", "c"], dtype=polars.Categorical),
        "null": polars.Series([None] * 3),
        "decimal": polars.Series([Decimal("1.0"), Decimal("2.0"), Decimal("3.5")]),
        "lists": polars.Series([[1], [2], [3]]),
        "records": polars.Series([{"a": 1}, {"a": 2}, {"a": 3}]),
        "arrays": polars.Series([[1, 2]] * 3, dtype=polars.Array(polars.Int64, 2)),
        "missing": polars.Series(["a", None, "c"]),
    } | (
        # Earlier versions panic as they hand these over.
        {"wide": polars.Series([1, 2, 3], dtype=polars.Int128)}
        if Version(polars.__version__) >= Version("2.1")
        else {}
    )


Table = Callable[..., Any]


def as_ends(table, column, numbers):
    return lu.as_graph(table(source=column, target=column))


def as_end(table, column, numbers):
    return lu.as_graph(table(source=numbers, target=column))


def as_weight(table, column, numbers):
    return lu.as_graph(table(source=numbers, target=numbers, weight=column))


def as_time(table, column, numbers):
    return lu.read_stream(table(source=numbers, target=numbers, time=column), sort=True)


def as_end_of_a_stream(table, column, numbers):
    return lu.read_stream(table(source=column, target=numbers, time=numbers))


def as_batch(table, column, numbers):
    return lu.DynamicGraph(0).apply(insert=table(source=column, target=column))


def as_labels(table, column, numbers):
    return lu.modularity(lu.Graph.from_edges([0, 1], [1, 2]), column)


def as_table_of_labels(table, column, numbers):
    return compare(table(vertex=numbers, community=column), {1: 0, 2: 1, 3: 1})


def as_compared(table, column, numbers):
    return compare(column, [0, 1, 1])


def as_written(table, column, numbers):
    with tempfile.TemporaryDirectory() as folder:
        lu.write_labels(column, Path(folder, "a.csv"))
        return lu.read_labels(Path(folder, "a.csv"))


USES = (
    as_ends, as_end, as_weight, as_time, as_end_of_a_stream, as_batch, as_labels,
    as_table_of_labels, as_compared, as_written,
)  # fmt: skip


def said(table, column, numbers):
    """Return what each use says, "" where it takes the column; anything but one line fails."""
    found = {}
    for use in USES:
        try:
            use(table, column, numbers)
            found[use.__name__] = ""
        except LouvainUmError as error:
            found[use.__name__] = str(error)
    assert all("\n" not in text for text in found.values())
    return found


TAKEN_TEXT = {use.__name__ for use in USES} - {"as_weight", "as_time"}

pytestmark = pytest.mark.filterwarnings("ignore::louvain_um.errors.GraphWarning")


@pytest.mark.parametrize("kind", PANDAS)
def test_columns_of_pandas(kind):
    found = said(lambda **columns: pd.DataFrame(columns), PANDAS[kind], pd.Series([1, 2, 3]))
    if "missing" in kind or kind == "null":
        assert all(found.values()), found
    if kind in ("interval", "period"):  # Arrow would read months since 1970
        assert "is of type" in found["as_time"]
        assert "is of type" in found["as_end_of_a_stream"]
    if kind in ("category", "dictionary"):
        assert {use for use, error in found.items() if not error} == TAKEN_TEXT


@pytest.mark.parametrize("kind", ARROW)
def test_columns_of_arrow(kind):
    found = said(lambda **columns: pa.table(columns), ARROW[kind], pa.array([1, 2, 3]))
    if "missing" in kind or kind == "null":
        assert all(found.values()), found
    if kind in ("dictionary", "large_text"):
        assert {use for use, error in found.items() if not error} == TAKEN_TEXT


def test_columns_of_polars():
    polars = pytest.importorskip("polars")
    for kind, column in polars_columns(polars).items():
        numbers = polars.Series([1, 2, 3])
        found = said(lambda **columns: polars.DataFrame(columns), column, numbers)
        if kind in ("null", "missing"):
            assert all(found.values()), (kind, found)


def test_truth_values_are_not_the_vertex_1():
    with pytest.raises(GraphError, match="truth values"):
        lu.as_graph(pd.DataFrame({"source": [1, 2], "target": [True, False]}))


def test_integers_beyond_63_bits_are_written_as_they_are(tmp_path):
    large = np.array([1, 2**64 - 1], np.uint64)
    for number, labels in enumerate((large.tolist(), large, pd.Series(large))):
        lu.write_labels(labels, tmp_path / f"{number}.csv")
        assert lu.read_labels(tmp_path / f"{number}.csv").communities.tolist()[1] == 2**64 - 1


@pytest.mark.parametrize("kind", [pa.Table, pa.RecordBatch], ids=["table", "batch"])
def test_tables_of_arrow_are_batches_and_communities(kind):
    g = lu.DynamicGraph()
    g.apply(insert=kind.from_pydict({"source": ["ann", "bob"], "target": ["bob", "cid"]}))
    assert g.has_edges(["ann"], ["bob"]).tolist() == [True]
    table = kind.from_pydict({"vertex": ["cid", "ann", "bob"], "community": [1, 0, 0]})
    assert lu.modularity(g.snapshot(), table) == lu.modularity(g.snapshot(), [0, 0, 1])
