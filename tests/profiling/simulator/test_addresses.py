"""Traces from tables of addresses."""

import numpy as np
import pandas as pd
import pytest

from louvain_um.errors import LouvainUmError, OptionError
from louvain_um.profiling.simulator import (
    HostTouches,
    Launch,
    load_trace,
    read_addresses,
    simulate,
    trace_of_addresses,
)

PAGE = 4096


def test_accesses_become_touches_of_pages_in_the_order_of_time():
    trace = trace_of_addresses(
        [0x7000, 0x5000, 0x5008, 0x6000],
        times=[3, 0, 1, 2],
        writes=[False, False, False, True],
        arrays={"x": (0x5000, 3 * PAGE)},
        groups={"x": "graph"},
    )
    (array,) = trace.arrays
    assert (array.name, array.group, array.nbytes) == ("x", "graph", 3 * PAGE)
    (step,) = trace.steps
    assert isinstance(step, Launch)
    t = step.touches
    assert np.repeat(t.first, t.length).tolist() == [0, 1, 2]
    assert t.amount[0] == 2
    assert trace.touches == 3


def test_kernels_and_the_host_cut_launches():
    trace = trace_of_addresses(
        np.arange(6) * PAGE, kernels=["a", "a", "b", "b", "b", "a"], host=[0, 0, 0, 1, 1, 0]
    )
    kinds = [(type(step).__name__, getattr(step, "kernel", "")) for step in trace.steps]
    assert kinds == [("Launch", "a"), ("Launch", "b"), ("HostTouches", ""), ("Launch", "a")]
    assert isinstance(trace.steps[2], HostTouches)
    assert simulate(trace).total("touches") == 6


def test_gaps_separate_arrays():
    far = 10 << 20
    trace = trace_of_addresses([far, 0, PAGE, far + 600 * PAGE])
    assert [array.nbytes // PAGE for array in trace.arrays] == [2, 1, 1]
    assert trace_of_addresses([]).arrays == ()


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_tables_are_read_saved_and_replayed(tmp_path, suffix):
    rng = np.random.default_rng(0)
    at = 0x7F00_0000_0000 + rng.integers(0, 4 << 20, 5000)
    table = pd.DataFrame(
        {"time": np.arange(5000), "address": at, "write": rng.integers(0, 2, 5000)}
    )
    arrays = pd.DataFrame({"name": ["x"], "address": ["0x7f0000000000"], "nbytes": [4 << 20]})
    path, listed = tmp_path / f"trace{suffix}", tmp_path / f"arrays{suffix}"
    write = "to_csv" if suffix == ".csv" else "to_parquet"
    getattr(table, write)(path, index=False)
    getattr(arrays, write)(listed, index=False)
    trace = read_addresses(path, listed)
    direct = trace_of_addresses(
        at, writes=table["write"], arrays={"x": (0x7F00_0000_0000, 4 << 20)}
    )
    assert simulate(trace).by_array.tolist() == simulate(direct).by_array.tolist()
    trace.save(tmp_path / "saved.npz")
    again = load_trace(tmp_path / "saved.npz")
    assert simulate(again).by_array.tolist() == simulate(trace).by_array.tolist()


@pytest.mark.parametrize(
    ("arguments", "reported"),
    [
        ({"addresses": [5, -1]}, "whole numbers.* not -1"),
        ({"addresses": [2**62]}, "less than 2.62"),
        ({"addresses": [0.5]}, "whole numbers.* not 0.5"),
        ({"addresses": [1, 2], "writes": [0]}, "one entry"),
        ({"addresses": [1], "times": [float("nan")]}, "numbers, not nan"),
        ({"addresses": [1], "times": ["soon"]}, "numbers, not 'soon'"),
        ({"addresses": [9999], "arrays": {"x": (0, 10)}}, "0x270f"),
        ({"addresses": [1], "arrays": {"x": (0, 10), "y": (5, 10)}}, "page"),
        ({"addresses": [1], "arrays": {"x": (0, 0)}}, "above 0"),
    ],
)
def test_bad_accesses_are_refused(arguments, reported):
    with pytest.raises(OptionError, match=reported):
        trace_of_addresses(**arguments)


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("time,write\n0,1\n", "address"),
        ("time,address\n0,home\n", "whole numbers"),
        ("time,address\n0,18446744073709551615\n", "below 2.63"),
        ("time,address\n", "no rows"),
        ("time,address,write\n0,1,2\n", "0 and 1"),
        ("", "not a table"),
    ],
)
def test_bad_tables_are_refused_in_one_line(tmp_path, text, reported):
    path = tmp_path / "trace.csv"
    path.write_text(text)
    with pytest.raises(LouvainUmError, match=reported):
        read_addresses(path)
    with pytest.raises(LouvainUmError, match="check the path"):
        read_addresses(tmp_path / "none.csv")
