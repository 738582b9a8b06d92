import gc

import pytest
from fake_cuda import GIB

from louvain_um.errors import MemoryBudgetError
from louvain_um.placement.machine.profiles import H200
from louvain_um.placement.smart import (
    Work,
    host_residency,
    is_host_resident,
    placement_of,
    smart_malloc,
)

MANY = 10**7
ONCE = {"stream": MANY}
OFTEN = {"gather": 100 * MANY}


def test_computing_hides_the_bus():
    hidden = Work(touches=ONCE, computing=1.0)
    plain = Work(touches=ONCE)
    terms = [host_residency(MANY, "u4", work, H200, GIB) for work in (hidden, plain)]
    assert terms[0].phi < terms[1].phi


def test_copies_come_again_for_what_does_not_fit_and_launches_add_up():
    work = Work(touches={"stream": 10 * MANY}, copies=1, passes=10)
    fits = host_residency(MANY, "u4", work, H200, 8 * MANY)
    not_all = host_residency(MANY, "u4", work, H200, MANY)
    assert not_all.tau == pytest.approx(10 * fits.tau)
    assert fits.sigma == 0
    assert not_all.sigma == pytest.approx(10 * 4 * H200.launch_seconds)
    assert is_host_resident(MANY, "u4", Work(touches=OFTEN), H200, MANY)


@pytest.mark.parametrize(("touches", "kind"), [(OFTEN, "device"), (ONCE, "host_mapped")])
def test_arrays_land_where_the_model_says(cuda, touches, kind):
    array = smart_malloc(MANY, "u4", touches=touches, copies=2, machine=H200, device=0)
    assert placement_of(array).kind == kind
    del array
    gc.collect()
    assert not cuda.alive


def test_what_does_not_fit_lives_on_the_host(cuda):
    array = smart_malloc(MANY, "u4", touches=OFTEN, machine=H200, room=MANY, device=0)
    assert placement_of(array).kind == "host_mapped"
    cuda.attributes[89] = 0
    other = smart_malloc(MANY, "u4", touches=OFTEN, machine=H200, room=MANY, device=0)
    assert placement_of(other).kind == "pinned"
    del array, other
    gc.collect()
    assert not cuda.alive


def test_no_room_on_either_side(cuda):
    cuda.fail_after = 0
    with pytest.raises(MemoryBudgetError):
        smart_malloc(MANY, "u4", touches=OFTEN, machine=H200, room=MANY, device=0)
    assert not cuda.alive
