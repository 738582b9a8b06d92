"""The host's side of counting: rows, maps, and what a tracer asks for."""

from itertools import pairwise

import numpy as np
import pytest

from louvain_um.errors import LouvainUmError, OptionError
from louvain_um.profiling.sources.tracer import Tracer
from louvain_um.profiling.sources.tracer.counter_rows import CounterRows, Maps
from louvain_um.profiling.sources.tracer.snippet import COPIES, RANGES


def test_pages_grow_until_the_rows_fit_and_there_is_always_room_for_another():
    ranges = CounterRows(4096, 1024 + COPIES)
    known = [ranges.enter(f"a{k}", (k + 1) << 32, 1 << 31) for k in range(8)]
    entered = [each for each in known if each is not None]
    assert len(entered) == 8
    assert [each.rows for each in entered] == [512, 256, 128, 64, 32, 16, 8, 4]
    assert all(each.rows << each.shift == 1 << 31 for each in entered)
    assert [each.copies for each in entered] == [1] * 8
    rows = sorted((each.row, each.row + each.rows) for each in entered)
    assert rows[0][0] == COPIES
    assert all(end <= start for (_, end), (start, _) in pairwise(rows))
    assert ranges.end <= 1024 + COPIES


def test_a_small_array_has_copies_of_its_rows():
    ranges = CounterRows(4096, 10_000)
    sizes = {"one": 1, "ten": 40_960, "many": 1_000 * 4096}
    entered = {
        name: ranges.enter(name, (1 + k) << 32, size)
        for k, (name, size) in enumerate(sizes.items())
    }
    found = {name: (each.rows, each.copies) for name, each in entered.items() if each}
    assert found == {"one": (1, COPIES), "ten": (10, COPIES), "many": (1000, 1)}
    assert ranges.free.in_use == 256 * (COPIES + 10 * COPIES + 1000)


def test_rows_of_freed_arrays_are_kept_until_they_are_read():
    ranges = CounterRows(4096, 100 + COPIES)
    first = ranges.enter("a", 1 << 20, 50 * 4096)
    ranges.leave("a", now=7)
    assert ranges.crowded
    assert first.until == 7
    again = ranges.enter("a", 1 << 20, 4096)
    assert again.row > first.row
    assert ranges.known == [first, again]
    ranges.release(first)
    assert not ranges.crowded
    ranges.release(again)
    assert ranges.known == []
    assert ranges.free.in_use == 0


def test_the_table_is_sorted_by_address_and_full_at_some_time():
    ranges = CounterRows(4096, 10_000)
    for k in range(RANGES - 1):
        assert ranges.enter(str(k), (1000 - k) << 20, 100) is not None
    assert ranges.enter("one more", 1 << 50, 1) is None
    table, count = ranges.pack()
    assert count == RANGES == len(table)
    assert table[0].tolist() == (0, 0, 0, 63, COPIES - 1, 1)
    assert (np.diff(table["start"].astype(np.int64)) > 0).all()


def test_an_empty_array_hides_no_other():
    ranges = CounterRows(4096, 1000)
    ranges.enter("a", 1 << 20, 100)
    ranges.enter("nothing", 1 << 20, 0)
    table, count = ranges.pack()
    assert count == 2
    assert table[1]["nbytes"] == 100


def test_runs_that_overlap():
    ranges = CounterRows(4096, 100)
    ranges.enter("a", 1000, 100)
    assert ranges.overlapping(1099, 1) == ["a"]
    assert ranges.overlapping(1100, 50) == []
    assert ranges.overlapping(900, 100) == []
    assert ranges.overlapping(900, 101) == ["a"]


def test_maps_stay_within_their_bytes_and_lose_nothing():
    maps = Maps(4 * 1000)
    rng = np.random.default_rng(0)
    expected = {}
    for name, rows in (("large", 4096), ("small", 3), ("middle", 100)):
        counts = rng.integers(0, 9, (rows, 4))
        maps.add(name, 12, counts)
        expected[name] = counts.sum(axis=0)
    assert sum(counts.nbytes for _, counts in maps.found.values()) <= 4000
    for name, (shift, counts) in maps.found.items():
        assert counts.sum(axis=0).tolist() == expected[name].tolist()
        assert len(counts) << shift >= {"large": 4096, "small": 3, "middle": 100}[name] << 12


def test_bins_are_joined_in_pairs():
    maps = Maps(1 << 20)
    maps.add("a", 12, np.array([[1, 2, 3, 4]]))
    maps.fold()
    assert maps.found["a"][1].tolist() == [[3, 7, 0, 0]]


def test_bins_without_any_count_are_cut_off():
    maps = Maps(1 << 20)
    maps.add("a", 12, np.array([[0, 2, 0, 0]]))
    maps.add("b", 12, np.array([[0, 0, 3, 0]]))
    first, second = maps.page_maps(np.array([0, 10, 20, 30, 40]))
    assert first.edges.tolist() == second.edges.tolist() == [10, 20, 30]
    assert (first.counts.tolist(), second.counts.tolist()) == ([[2, 0]], [[0, 3]])


def test_a_count_too_large_is_cut_and_said():
    maps = Maps(1 << 20)
    maps.add("a", 12, np.array([[2**32 - 1, 1]], np.uint64))
    assert not maps.saturated
    maps.fold()
    assert maps.saturated
    assert maps.found["a"][1].tolist() == [[2**32 - 1, 0]]


@pytest.mark.parametrize(
    "options",
    [
        {"page_bytes": 5000},
        {"page_bytes": 16},
        {"bins": 100},
        {"bins": 1},
        {"counter_bytes": 1000},
        {"period": -1},
        {"period": 1 << 32},
        {"records": 0},
        {"seconds": 0.0},
    ],
)
def test_options_that_make_no_sense(options):
    with pytest.raises(OptionError):
        Tracer(**options)


def test_a_result_comes_at_the_end():
    with pytest.raises(LouvainUmError, match="leave its block"):
        Tracer().result()
