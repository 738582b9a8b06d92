"""Arrays that the cost model places: where they land, with which values, and that they go."""

import gc

import numpy as np
import pytest

from louvain_um.placement.machine.calibrate import Probes
from louvain_um.placement.memory import cuda_calls
from louvain_um.placement.memory.guard import guard
from louvain_um.placement.smart import initialise, placement_of, smart_malloc

pytestmark = pytest.mark.gpu

COUNT = 32 << 20
ONCE = {"stream": COUNT}
OFTEN = {"gather": 100 * COUNT}


CASES = [(ONCE, 9, True, "host_mapped"), (OFTEN, 1, True, "device"), (OFTEN, 1, False, "managed")]


@pytest.mark.parametrize(("touches", "copies", "given", "kind"), CASES)
def test_values_are_written_where_the_array_lives(gpu, touches, copies, given, kind):
    import cupy

    values = np.random.default_rng(0).integers(0, 1 << 32, COUNT, np.uint32)
    source = values if given else None
    array = smart_malloc(COUNT, np.uint32, touches=touches, copies=copies, source=source)
    if not given:
        array.set(values)
    assert placement_of(array).kind == kind
    # On demand, the first of several reads brings the pages.
    probes = Probes(gpu.index)
    rates = [array.nbytes / probes.read(array.data.ptr, array.nbytes) for _ in range(3)]
    assert (max(rates) < 150e9) == (kind == "host_mapped")
    assert np.array_equal(array.get(), values)
    array += np.uint32(1)
    initialise(array, 12345)
    assert int(array.min()) == int(array.max()) == 12345
    part = array[5:10]
    del array
    gc.collect()
    assert cupy.asnumpy(part).tolist() == [12345] * 5
    del part
    gc.collect()
    cuda_calls.synchronize()
    assert not guard.ranges


def test_what_has_no_room_is_read_over_the_bus(gpu):
    array = smart_malloc(COUNT, np.uint32, touches=OFTEN, room=COUNT)
    assert placement_of(array).kind == "host_mapped"
    array.fill(3)
    assert int(array.astype(np.uint64).sum()) == 3 * COUNT
