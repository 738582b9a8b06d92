import numpy as np

from louvain_um.profiling.access.recordings import BINS, ROWS, access_maps
from louvain_um.profiling.simulator import Access, Array, Launch, Touches, Trace
from louvain_um.profiling.simulator.touches import concatenate_touches
from louvain_um.profiling.simulator.trace import Allocate

PAGE = 4096


def test_every_access_is_in_the_cell_of_its_page_and_launch():
    data = Array(name="targets", group="graph", nbytes=4 * PAGE)
    table = Array(name="table", group="hash", nbytes=100, itemsize=8)
    first = concatenate_touches([Touches.runs(0, 1, 2), Touches.runs(1, 0, 1, Access.ATOMIC, 7)])
    last = Touches.runs(0, 3, 1, Access.WRITE, 8)
    steps = (Launch(touches=first), Allocate(array=1), Launch(touches=last))
    found = {m.array: m for m in access_maps(Trace((data, table), steps), np.array([0, 5, 5, 9]))}
    assert found["targets"].edges.tolist() == [0, 5, 5, 9]
    assert found["targets"].counts.tolist() == [[0, 0, 0], [1024, 0, 0], [1024, 0, 0], [0, 0, 2]]
    assert found["table"].counts.tolist() == [[7, 0, 0]]


def test_maps_stay_bounded_and_lose_nothing():
    data = Array(name="targets", group="graph", nbytes=(3 << 20) + 1)
    scan = Touches.runs(0, 0, data.pages)
    launches = 2 * BINS + 1
    trace = Trace((data,), tuple(Launch(touches=scan) for _ in range(launches)))
    (found,) = access_maps(trace, np.arange(launches + 1) * 10)
    rows, bins = found.counts.shape
    assert rows <= ROWS
    assert bins <= BINS
    assert found.edges[-1] == launches * 10
    assert found.total == launches * data.pages * PAGE // 4


def test_a_program_of_nothing_has_no_maps():
    assert access_maps(Trace((), ()), np.array([0])) == ()
