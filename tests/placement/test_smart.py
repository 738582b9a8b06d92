import gc
import subprocess
import sys

import numpy as np
import pytest
from fake_cuda import GIB

from louvain_um.errors import DeviceUnavailableError, MemoryBudgetError, OptionError
from louvain_um.placement.hardware import BLOCK, LARGE_PAGE
from louvain_um.placement.machine.profiles import H200
from louvain_um.placement.model.cost import PAGEABLE
from louvain_um.placement.program.device_backend import DeviceBackend
from louvain_um.placement.smart import (
    Work,
    decide,
    host_residency,
    initialise,
    is_host_resident,
    placement_of,
    smart_malloc,
)

MANY = 10**7
ONCE = {"stream": MANY}
OFTEN = {"gather": 100 * MANY}


@pytest.fixture(autouse=True)
def _fake_device(request, monkeypatch):
    if "cuda" in request.fixturenames:
        monkeypatch.setattr("louvain_um.placement.smart.backend_of", DeviceBackend)


def test_copies_come_again_for_what_does_not_fit_and_launches_add_up():
    work = Work(touches={"stream": 10 * MANY}, copies=1, passes=10)
    fits = host_residency(MANY, "u4", work, H200, 8 * MANY)
    not_all = host_residency(MANY, "u4", work, H200, MANY)
    assert not_all.tau == pytest.approx(10 * fits.tau)
    assert fits.sigma == 0
    assert not_all.sigma == pytest.approx(10 * 4 * H200.launch_seconds)
    assert is_host_resident(MANY, "u4", Work(touches=OFTEN), H200, MANY)


def test_copies_on_demand_are_fault_groups_and_unique_pages():
    work = Work(touches=OFTEN, copies=1, share=0.2)
    placement, terms, paged = decide(MANY, "u4", work, H200, GIB)
    assert placement.kind == "managed"
    assert paged.unique == pytest.approx(0.2 * 4 * MANY / LARGE_PAGE, rel=0.01)
    faults = (
        paged.fault_groups * H200.fault_batch_seconds
        + paged.blocks * H200.block_service_seconds
        + paged.unique * LARGE_PAGE / H200.migrate_to_device
    )
    assert terms["managed"].phi == 0
    assert terms["managed"].tau == pytest.approx(4 * MANY / PAGEABLE - faults, rel=0.01)


def test_managed_memory_is_taken_where_its_pages_fit():
    work = Work(touches=OFTEN, copies=1, passes=10, share=0.2)
    pages = int(decide(MANY, "u4", work, H200, GIB).paged.blocks * BLOCK) + 1
    beyond = decide(MANY, "u4", work, H200, pages)
    assert beyond.placement.kind == "managed"
    assert beyond.estimates["managed"].tau > decide(MANY, "u4", work, H200, GIB).estimates[
        "managed"].tau  # fmt: skip
    assert decide(MANY, "u4", work, H200, pages - BLOCK).placement.kind == "host_mapped"
    assert decide(MANY, "u4", work, H200, pages, managed=False).placement.kind == "host_mapped"
    with pytest.raises(OptionError, match="share"):
        Work(touches=OFTEN, share=0)


def test_arrays_are_numpys_without_cupy():
    code = """if True:
        import sys
        sys.modules["cupy"] = None
        import numpy as np
        from louvain_um.placement.smart import smart_malloc
        x = smart_malloc(8, "u4", touches={"stream": 8}, source=np.arange(5, dtype="u4"))
        print(isinstance(x, np.ndarray), x[:5].sum())
    """
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert found.stdout.split() == ["True", "10"], found.stderr


def test_decisions_without_a_device_are_those_for_its_machine():
    array = smart_malloc(MANY, "u4", touches=ONCE, copies=2, machine=H200, device="cpu")
    initialise(array, 7)
    assert (placement_of(array).kind, int(array.max())) == ("host_mapped", 7)
    with pytest.raises(DeviceUnavailableError):
        smart_malloc(MANY, "u4", touches=ONCE, device=99)
    with pytest.raises(ValueError, match="not made by smart_malloc"):
        placement_of(np.zeros(3))


CASES = [(OFTEN, 0, "device"), (ONCE, 2, "host_mapped"), (OFTEN, 2, "managed")]


@pytest.mark.parametrize(("touches", "copies", "kind"), CASES)
def test_arrays_land_where_the_model_says(cuda, touches, copies, kind):
    array = smart_malloc(MANY, "u4", touches=touches, copies=copies, machine=H200, device=0)
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
