"""Orders of eviction and prefetchers of one's own, and migration by access counters."""

from dataclasses import replace

import numpy as np
import pytest

from louvain_um.errors import LouvainUmError, OptionError
from louvain_um.placement.machine.profiles import load_machine
from louvain_um.profiling.session.events import Cause, Kind
from louvain_um.profiling.simulator import (
    Access,
    Array,
    Driver,
    Launch,
    Touches,
    Trace,
    eviction,
    prefetcher,
    simulate,
)
from louvain_um.profiling.simulator.driver import constants as c
from louvain_um.profiling.simulator.driver.user_functions import load_functions

MIB = 1 << 20


@eviction
def own_driver(blocks, head, keep):
    return head if head != keep else blocks[head, c.NEXT]


@eviction
def own_lru(blocks, head, keep):
    best, block = -1, head
    while block >= 0:
        older = best < 0 or blocks[block, c.LAST_USE] < blocks[best, c.LAST_USE]
        if block != keep and older:
            best = block
        block = blocks[block, c.NEXT]
    return best


@eviction
def out_of_range(blocks, head, keep):
    return len(blocks)


@eviction
def raising(blocks, head, keep):
    if head >= 0:
        raise ValueError("no")
    return -1


@prefetcher
def nothing(pages, faulted, low, high, bring):
    pass


@prefetcher
def everything(pages, faulted, low, high, bring):
    bring[:] = 1


def trace(seed=0):
    rng = np.random.default_rng(seed)
    arrays = (
        Array(name="a", group="graph", nbytes=20 * MIB),
        Array(name="b", group="scratch", nbytes=9 * MIB + 12_345),
    )
    steps = []
    for _ in range(6):
        pages = rng.integers(0, arrays[1].pages, 3000)
        steps.append(Launch(touches=Touches.runs(0, 0, arrays[0].pages)))
        steps.append(Launch(touches=Touches.of(1, pages, Access.GATHER)))
    return Trace(arrays, tuple(steps))


def totals(driver):
    found = simulate(trace(), capacity=16 * MIB, driver=driver).by_array.tolist()
    return found


def test_an_order_of_ones_own_does_what_the_drivers_does():
    assert totals(Driver(eviction="own_driver")) == totals(Driver())
    assert totals(Driver(eviction="own_lru")) != totals(Driver())


def test_a_prefetcher_of_ones_own_brings_what_it_marks():
    assert totals(Driver(prefetch="nothing")) == totals(Driver(prefetcher=False))
    run = simulate(
        Trace((trace().arrays[1],), (Launch(touches=Touches.of(0, [0, 700])),)),
        driver=Driver(prefetch="everything"),
    )
    assert run.bytes_to_device == 4 * MIB
    assert run.total("bytes_in_density") == 4 * MIB - 2 * c.PAGE_BYTES


@pytest.mark.parametrize(
    ("name", "reported"), [("out_of_range", "chose no block"), ("raising", "raised an exception")]
)
def test_a_function_that_fails_ends_in_one_line(name, reported):
    with pytest.raises(LouvainUmError, match=f"{name}.*{reported}"):
        totals(Driver(eviction=name))


def test_unknown_names_are_refused():
    with pytest.raises(OptionError, match="own_lru"):
        Driver(eviction="newest")
    with pytest.raises(OptionError, match="density"):
        Driver(prefetch="newest")
    with pytest.raises(OptionError):
        Driver(access_counters=-1)

    @eviction
    def not_compiled(blocks, head, keep):
        return {"a": object()}

    with pytest.raises(OptionError, match="not_compiled"):
        totals(Driver(eviction="not_compiled"))


def test_functions_come_from_files(tmp_path):
    path = tmp_path / "orders.py"
    path.write_text(
        "from louvain_um.profiling.simulator import eviction\n"
        "@eviction\ndef from_file(blocks, head, keep):\n    return -1\n"
    )
    assert load_functions(f"{path}:from_file") == "from_file"
    assert totals(Driver(eviction="from_file")) == totals(Driver())
    assert load_functions("lru") == "lru"
    for given, reported in ((f"{path}:other", "other"), (f"{tmp_path}/none.py:f", "none.py")):
        with pytest.raises(OptionError, match=reported):
            load_functions(given)
    path.write_text("1 / 0\n")
    with pytest.raises(OptionError, match="ZeroDivisionError"):
        load_functions(f"{path}:from_file")


def test_access_counters_bring_what_is_read_over_the_bus():
    data = Array(name="a", group="graph", nbytes=8 * MIB)
    gather = Launch(touches=Touches.of(0, np.arange(0, 512), Access.GATHER))
    steps = (gather,) * 4
    settings = {"capacity": 64 * MIB, "placements": {"a": "accessed_by"}}
    never = simulate(Trace((data,), steps), **settings)
    assert never.bytes_to_device == 0
    assert never.total("remote_accesses") == 4 * 512
    counted = simulate(Trace((data,), steps), driver=Driver(access_counters=1024), **settings)
    assert counted.bytes_to_device == counted.total("bytes_in_counted") == 2 * MIB
    assert counted.total("remote_accesses") == 2 * 512
    moved = counted.events.where(Kind.HTOD)
    assert set(counted.events["cause"][moved].tolist()) == {int(Cause.ACCESS_COUNTERS)}
    # Advice that prefers the host keeps it there.
    kept = simulate(
        Trace((data,), steps),
        capacity=64 * MIB,
        placements={"a": "host_mapped"},
        driver=Driver(access_counters=1024),
    )
    assert kept.bytes_to_device == 0


def test_counted_migration_evicts_where_there_is_no_room():
    data = Array(name="a", group="graph", nbytes=16 * MIB)
    gather = Launch(touches=Touches.of(0, np.arange(0, data.pages), Access.GATHER))
    run = simulate(
        Trace((data,), (gather,) * 5),
        capacity=8 * MIB,
        placements={"a": "accessed_by"},
        driver=Driver(access_counters=1),
    )
    assert run.total("evictions") > 0
    assert run.peak_bytes <= 8 * MIB
    assert run.total("touches") == 5 * data.pages


def test_access_counters_are_on_where_host_and_gpu_are_coherent():
    data = Array(name="a", group="graph", nbytes=2 * MIB)
    hot = Launch(touches=Touches.of(0, np.full(256, 40), Access.GATHER))
    moved = []
    for coherent, page in ((False, 64 << 10), (True, 4 << 10), (True, 64 << 10)):
        machine = replace(load_machine("h200"), coherent=coherent, host_page_bytes=page)
        run = simulate(Trace((data,), (hot, hot)), machine, placements={"a": "accessed_by"})
        moved.append(run.bytes_to_device)
    assert moved == [0, 0, 64 << 10]  # one hot page brings its region, not its block
