"""The driver's decisions, as test vectors; `about` in each file says what its fields mean."""

import json
from pathlib import Path

import numpy as np
from numba import njit

from louvain_um.profiling.simulator import Access, Array, HostTouches, Touches, Trace, simulate
from louvain_um.profiling.simulator.driver import constants as c
from louvain_um.profiling.simulator.driver.prefetcher import add_dense
from louvain_um.profiling.simulator.driver.residency import (
    DISABLED,
    DUPLICATE,
    ENABLED,
    MIGRATE,
    UNSET,
    Advice,
    choose,
)

PROCESSORS = {0: c.ON_HOST, 1: c.ON_GPU, None: 0}
NAMES = {"host": c.ON_HOST, "gpu": c.ON_GPU, None: 0}
DUPLICATION = {"disabled": DISABLED, "unset": UNSET, "enabled": ENABLED}

chosen = njit(lambda *args: choose(*args))


def cases(name):
    path = Path(__file__).parent / "vectors" / f"{name}.json"
    return list(json.loads(path.read_text())["cases"])


def bits_of(mask):
    value = int(mask, 16)
    return np.array([value >> page & 1 for page in range(c.BLOCK_PAGES)], np.uint8)


def test_pages_are_where_the_driver_has_them_after_a_fault():
    wrong, tried = [], 0
    for case in cases("residency"):
        topology, on, processor, access, preferred, by, duplication, pin, cause, *expected = case
        if topology == "two GPUs" or cause not in ("fault", "counters"):
            continue  # not modelled
        tried += 1
        advice = Advice(
            PROCESSORS[preferred], sum(PROCESSORS[each] for each in by), DUPLICATION[duplication]
        )
        outcome = chosen(
            PROCESSORS[processor], sum(PROCESSORS[each] for each in on), advice, PROCESSORS[pin],
            access in ("read", "prefetch"), topology == "coherent", cause == "counters",
        )  # fmt: skip
        here = outcome in (MIGRATE, DUPLICATE)
        found = [processor if here else 1 - processor, int(outcome == DUPLICATE)]
        if found != expected:
            wrong.append((case, found))
    assert tried == 228
    assert not wrong


def test_pages_come_along_as_the_driver_brings_them():
    wrong, tried = [], 0
    for case in cases("prefetch"):
        if case["group"] in ("pages64k", "min_faults") or "preferred" in case:
            continue  # pages of 64 KiB and a module parameter are not modelled; advice see below
        tried += 1
        low, count = case["first"], case["pages"]
        here = NAMES[case["dest"]]
        faulted, there = bits_of(case["faulted"]), bits_of(case["here"])
        pages, want, barred = (np.zeros(c.BLOCK_PAGES, np.uint8) for _ in range(3))
        pages[low : low + count] = there[:count] * here
        want[low : low + count] = faulted[:count] * c.FAULTED
        barred[low : low + count] = bits_of(case.get("thrashing", "0"))[:count]
        tree = np.zeros((c.TREE_ROWS, c.TREE_COLUMNS), np.int64)
        add_dense(
            (pages, pages.view(np.uint64)), (want, want.view(np.uint64)), (tree, barred), low,
            count, here, case.get("threshold", 51), bool(barred.any()),
        )  # fmt: skip
        found = want[low : low + count] == c.BROUGHT
        # Pages that are here already need no copy, and are not listed.
        expected = (bits_of(case["prefetch"])[:count] == 1) & (there[:count] == 0)
        if not np.array_equal(found, expected):
            wrong.append(case["id"])
    assert tried == 155
    assert not wrong


def test_a_first_touch_where_the_host_is_preferred_makes_all_of_a_block():
    for placement, once in (("preferred_host", True), ("none", False)):
        data = Array(name="data", group="g", nbytes=2 << 20, starts="nowhere")
        touches = Touches.runs(0, [3, 0], [1, data.pages], Access.WRITE)
        run = simulate(
            Trace((data,), (HostTouches(touches=touches),)), "p4000", placements={"data": placement}
        )
        assert (run.total("host_faults") == 1) == once, placement
