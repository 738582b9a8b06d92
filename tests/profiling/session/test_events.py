import numpy as np
import pytest

from louvain_um.profiling.session.events import COLUMNS, Cause, EventTable, Kind, concatenate


def test_numbers_are_cupti_s():
    assert [int(kind) for kind in list(Kind)[:8]] == list(range(1, 9))
    assert (Kind.HTOD, Kind.DTOH, Kind.GPU_FAULT_GROUP, Kind.DTOD) == (1, 2, 4, 8)
    assert (Cause.USER, Cause.COHERENCE, Cause.PREFETCH, Cause.EVICTION) == (1, 2, 3, 4)


def test_columns_left_out_are_none():
    events = EventTable({"kind": [Kind.HTOD], "bytes": [8]})
    assert list(events.columns) == list(COLUMNS)
    assert (events["kernel"][0], events["phase"][0], events["count"][0]) == (-1, -1, 1)
    assert all(events[name].dtype == dtype for name, dtype in COLUMNS.items())


def test_wrong_columns_are_refused():
    with pytest.raises(ValueError, match="colour"):
        EventTable({"colour": [1]})
    with pytest.raises(ValueError, match="length"):
        EventTable({"kind": [1], "bytes": [1, 2]})


def test_joining_sorts_by_time_and_renumbers_kernels():
    a = EventTable({"time": [5, 1], "kernel": [0, 1]}, ("move", "refine"))
    b = EventTable({"time": [3, 4], "kernel": [0, -1]}, ("refine",))
    both = concatenate([a, b])
    assert both["time"].tolist() == [1, 3, 4, 5]
    names = [both.kernels[k] if k >= 0 else None for k in both["kernel"]]
    assert names == ["refine", "refine", None, "move"]
    assert len(concatenate([])) == 0


def test_rows_are_chosen_by_kind_and_cause():
    events = EventTable({"kind": [1, 1, 2], "cause": [2, 3, 4], "bytes": [10, 20, 40]})
    assert events.total(Kind.HTOD) == 30
    assert events.total(Kind.HTOD, Cause.PREFETCH) == 20
    assert events.total(Kind.DTOH, column="count") == 1
    chosen = events.select(events.where(cause=Cause.EVICTION))
    assert np.array_equal(chosen["bytes"], [40])
