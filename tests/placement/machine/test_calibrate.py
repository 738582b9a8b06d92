import json
from dataclasses import replace

import pytest

from louvain_um.errors import MemoryBudgetError
from louvain_um.placement.machine import calibrate as module
from louvain_um.placement.machine.calibrate import NARROW, WIDE, calibrate, fit_faults, fit_reach
from louvain_um.placement.machine.machine import GIB
from louvain_um.placement.machine.profiles import H200, load_machine


class Watch:
    """A device that takes as long as an H200's profile says."""

    name = "Test Card"
    cache_bytes = 1 << 20
    pages_in_flight = 264

    def __init__(self, device):
        self.device = device
        self.asked = []

    def read(self, at, nbytes, first=False):
        self.asked.append(nbytes)
        return 0.0829 * nbytes / GIB if first else nbytes / 51e9

    def write(self, at, nbytes, first=False):
        return 0.041 * nbytes / GIB if first else nbytes / 52e9

    def gather(self, at, nbytes, count, first=False):
        return ({True: 0.0993, False: 0.0396}[count > 10_000]) if first else count / 1e9

    def atomics(self, at, nbytes, count):
        return count / 1e8

    def copy(self, target, source, nbytes):
        return nbytes / 55e9

    def launch(self):
        return 4e-6

    def readback(self):
        return 15e-6

    def wall(self, work):
        work()
        return 0.02


@pytest.fixture
def watch(cuda, monkeypatch):
    monkeypatch.setattr(module, "Probes", Watch)
    monkeypatch.setattr(module, "populate", lambda address, nbytes: None)
    monkeypatch.setattr(module._Bench, "cpu_fault", lambda self, rate: 2e-5)
    return cuda


def test_every_figure_is_measured_fitted_or_said_to_be_assumed(watch, tmp_path):
    steps = []
    machine = calibrate(0, lambda what, done, of: steps.append((done, of)))
    assert machine.name == "Test Card"
    assert machine.remote_bandwidth == pytest.approx(51e9)
    assert machine.fault_batch_seconds == pytest.approx(H200.fault_batch_seconds, rel=0.05)
    assert "assumed" in machine.notes["evict_to_host"]
    assert [done for done, _ in steps] == list(range(len(steps)))
    assert steps[-1][0] == steps[-1][1]
    assert not watch.alive
    machine.save(tmp_path / "m.json")
    assert load_machine(tmp_path / "m.json") == machine
    assert json.loads((tmp_path / "m.json").read_text())["coherent"] is False


def test_without_managed_memory_the_rest_is_measured_all_the_same(watch):
    watch.attributes[89] = 0
    machine = calibrate(0)
    assert machine.remote_bandwidth == pytest.approx(51e9)
    assert "page-locked" in machine.notes["remote_bandwidth"]
    assert "assumed, from h200" in machine.notes["prefetch_to_host"]
    assert machine.prefetch_to_host == H200.prefetch_to_host
    assert not any(kind == "mallocManaged" for kind, _ in watch.log if isinstance(kind, str))


def test_a_device_that_is_nearly_full_is_refused(watch):
    watch.free_bytes = 256 << 20
    with pytest.raises(MemoryBudgetError, match="close other programs"):
        calibrate(0)


def test_a_small_device_is_measured_on_less(watch):
    watch.free_bytes = 2 * GIB
    assert calibrate(0).copy_to_device == pytest.approx(55e9)


@pytest.mark.parametrize("wide", [True, False])
def test_costs_that_times_were_made_from_are_found_again(wide):
    costs = 30e-6, 10e-6, GIB / 25.6e9
    table = WIDE if wide else NARROW
    seconds = {
        name: sum(n * cost for n, cost in zip(row, costs, strict=True))
        for name, row in table.items()
    }
    found = fit_faults(seconds, wide=wide)
    assert list(found.values()) == pytest.approx([30e-6, 10e-6, 25.6e9])


def test_costs_are_positive_whatever_was_measured():
    found = fit_faults({"scan": 0.01, "random": 0.9, "few": 0.001, "first write": 0.5}, wide=True)
    assert all(value > 0 for value in found.values())


def test_pages_come_no_faster_than_copies_whatever_was_measured():
    seconds = {"scan": 0.07, "random": 0.14, "few": 0.06, "first write": 0.056}
    assert fit_faults(seconds, wide=True)["migrate_to_device"] > 55e9
    found = fit_faults(seconds, wide=True, copying=55e9)
    assert found["migrate_to_device"] == pytest.approx(55e9, rel=1e-6)


def test_its_kernels_compile():
    from louvain_um.errors import DeviceUnavailableError
    from louvain_um.gpu.runtime.compile_cache import compile_source, compiler

    try:
        compiler()
    except DeviceUnavailableError as error:
        pytest.skip(error.reason)
    from pathlib import Path

    source = Path(module.__file__).with_name("probes.cu").read_text(encoding="utf-8")
    options = ("--std=c++17", "--gpu-architecture=sm_80")
    code = compile_source("probes.cu", source, {}, (), options).code
    assert all(name in code for name in (b"read_words", b"write_words", b"add_random"))


def test_rates_of_three_sizes_tell_how_much_is_reached_at_full_rate():
    measured = {256: 565e6, 768: 196e6, 1024: 111e6}
    found = fit_reach({size << 20: rate for size, rate in measured.items()})
    machine = replace(H200, **found, remote_random_rate=565e6)
    for size, rate in measured.items():
        assert machine.random_rate(size << 20, pinned=True) == pytest.approx(rate, rel=0.01)
    assert not fit_reach({1 << 28: 5e8, 3 << 28: 4.9e8, 1 << 30: 4.8e8})
    assert not fit_reach({1 << 28: 5e8, 3 << 28: 5.1e8, 1 << 30: 5e8})
