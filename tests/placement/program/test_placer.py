import gc
import itertools
import re
from types import SimpleNamespace

import numpy as np
import pytest

import louvain_um as lu
from louvain_um.errors import (
    DeviceUnavailableError,
    LouvainUmError,
    MemoryBudgetError,
    OptionError,
    PlacementError,
)
from louvain_um.events import observing
from louvain_um.placement.machine.profiles import H200
from louvain_um.placement.memory.cuda_calls import CudaError
from louvain_um.placement.placer import Placer
from louvain_um.placement.program import Gather, Phase, ProgramArray, Stream
from louvain_um.placement.program.device_backend import DeviceBackend

MIB = 1 << 20


@pytest.fixture
def place(cuda, monkeypatch):
    """A Placer of the fake device; arrays are only addresses."""
    monkeypatch.setattr(
        "louvain_um.placement.placer.backend_of", lambda device, peer: DeviceBackend(0)
    )

    def make(budget=None, **options):
        return Placer(budget, machine=H200, **options)

    return make


def on_host(**options):
    return lu.Placer(device="cpu", machine=H200, **options)


def test_the_same_code_runs_on_a_laptop():
    with on_host(budget="1MiB") as place:
        x = place.array("x", (4, 3), "f8", source=np.arange(12.0).reshape(4, 3), reads=Stream())
        y = place.array("y", (4, 3), "f8", writes=Stream(), phases=["double"])
        print(place.solve())
        with place.phase("double") as run:
            assert run is place
            y[...] = x * 2
            x += 1
            np.add(y, 1, out=y)
            total = np.concatenate([x, y]).sum()
        assert total == (np.arange(12) + 1).sum() + (2 * np.arange(12) + 1).sum()
        assert isinstance(x, np.ndarray)
        assert x.shape == (4, 3)
        assert type(x + x) is type(x[1:]) is type(x.host) is np.ndarray
        x.host[0, 0] = 7
        assert x[0, 0] == 7
        assert x.get()[0, 0] == 7


def test_arrays_without_memory_say_what_to_do():
    with on_host() as place:
        x = place.array("x", 3, phases=["first"], writes=Stream())
        y = place.array("y", 3, writes={"second": Stream()})
        for use in (lambda: x[0], lambda: x + 1, lambda: np.sum(x), lambda: x.host, x.get):
            with pytest.raises(PlacementError, match=re.escape("call solve() of its Placer")):
                use()
        place.solve()
        y[...] = 1
        with pytest.raises(PlacementError, match="lives only in phase first"):
            x[...] = 1
        with place.phase("first"):
            x[...] = 1
        with place.phase("second"), pytest.raises(PlacementError, match="lives only in phase"):
            y += x
    with pytest.raises(PlacementError, match="its Placer was closed"):
        y.sum()


def nested(place):
    with place.phase("a"), place.phase("a"):
        pass


@pytest.mark.parametrize(
    ("mistake", "said"),
    [
        (lambda place: place.array("x", 3), "must be new"),
        (lambda place: place.array("y", 3, source=np.zeros(4)), "source of array y must fit"),
        (lambda place: place.array("y", -1), "shape"),
        (lambda place: place.array("y", 3, reads=3), "Stream"),
        (lambda place: (place.solve(), place.array("y", 3)), "comes too late"),
        (lambda place: place.phase("nothing").__enter__(), "has no phase 'nothing'; use one of a"),
        (lambda place: (place.close(), place.solve()), "closed"),
        (nested, "phase 'a' is running"),
        (lambda place: lu.Placer("much", device="cpu"), "device_budget"),
        (lambda place: lu.Placer(memory="nothing", device="cpu"), "no memory policy"),
        (lambda place: lu.Placer(phases="run"), r"phases must be a list, like \['run'\]"),
        (lambda place: place.array("y", True), "shape of array y must be whole numbers"),
        (lambda place: place.array("y", 3, source=5), "source of array y must be an array of"),
    ],
)
def test_mistakes_are_refused_in_one_line(mistake, said):
    with on_host() as place:
        place.array("x", 3, phases=["a"])
        with pytest.raises(OptionError, match=said) as error:
            mistake(place)
    assert "\n" not in str(error.value)


def test_without_phases_the_first_name_is_the_only_one():
    with on_host() as place:
        place.array("x", 3)
        with pytest.raises(OptionError, match="phase must be a word"), place.phase(5):
            pass
        for _ in range(2):
            with place.phase("iterate"):
                pass
        with pytest.raises(OptionError, match="no phase 'typo' was declared") as error:
            place.phase("typo").__enter__()
        assert "use 'iterate' again" in str(error.value)


def test_a_device_that_is_not_there():
    with pytest.raises(DeviceUnavailableError, match="use device='cpu'"):
        lu.Placer(device="cuda:99")


def hot_and_cold(place, order):
    for name in order:
        passes = {"hot": 50, "warm": 40, "cold": 2}[name]
        place.array(name, 16 * MIB, reads=Stream(passes))
    return place.solve()


@pytest.mark.parametrize("order", list(itertools.permutations(("hot", "warm", "cold"))))
def test_of_three_arrays_the_two_that_pay_are_on_the_device(place, cuda, order):
    with place("128MiB") as placer:
        plan = hot_and_cold(placer, order)
        assert {n: w.on_device for n, w in plan.placements.items()} == {
            "hot": 1, "warm": 1, "cold": 0,
        }  # fmt: skip
        assert sum(n for kind, n in cuda.alive.values() if kind == "malloc") < 129 * MIB
        assert all(slot.array.data.ptr for slot in placer.slots.values())
    gc.collect()
    assert not cuda.alive


def test_arrays_of_a_phase_come_and_go(place, cuda):
    with place("64MiB", phases=["one", "two"]) as placer:
        for name in ("one", "two"):
            placer.array(name, 16 * MIB, reads=Stream(9), phases=[name])
        assert {w.kind for w in placer.solve().placements.values()} == {"device"}
        assert not cuda.alive
        for name, other in (("one", "two"), ("two", "one")):
            with placer.phase(name):
                assert placer.slots[name].array.data.ptr
                assert not placer.slots[other].array.data.ptr
            gc.collect()
            assert not cuda.alive


def test_what_must_be_on_the_device_is_refused_to_the_byte(place, cuda):
    with place(8 * MIB - 1) as placer:
        placer.array("x", 2 * MIB, on_device=True)
        with pytest.raises(MemoryBudgetError, match="1 bytes more") as error:
            placer.solve()
        assert (error.value.needed, error.value.largest) == (8 * MIB, (("x", 8 * MIB),))
        assert placer.slots["x"].state == "declared"
    assert not cuda.alive


@pytest.mark.parametrize("allocations", range(4))
def test_nothing_is_leaked_if_an_allocation_fails(place, cuda, allocations):
    with place("128MiB") as placer:
        cuda.fail_after = allocations
        try:
            hot_and_cold(placer, ("hot", "warm", "cold"))
            assert allocations >= 3
        except LouvainUmError:
            assert placer.plan is None
            gc.collect()
            assert not cuda.alive
    gc.collect()
    assert not cuda.alive


def test_without_managed_memory_the_host_part_is_page_locked(place, cuda):
    cuda.attributes[89] = 0
    with place("128MiB") as placer:
        plan = hot_and_cold(placer, ("hot", "warm", "cold"))
        assert plan.placements["cold"].kind == "pinned"
        assert {kind for kind, _ in cuda.alive.values()} == {"malloc", "registered"}


@pytest.mark.parametrize("policy", ["base", "adv1", "device", "zero_copy"])
def test_policies_place_arrays_of_a_placer(place, cuda, policy):
    with place(memory=policy) as placer:
        placer.array("x", MIB, group="graph")
        placer.array("y", MIB, group="mine")
        kinds = {"base": "managed managed", "adv1": "host_mapped host_mapped",
                 "device": "device device", "zero_copy": "host_mapped device"}  # fmt: skip
        assert " ".join(str(w) for w in placer.solve().placements.values()) == kinds[policy]
    gc.collect()
    assert not cuda.alive


class FakeClock:
    """Time passes only where a test lets it."""

    def __init__(self, monkeypatch):
        self.now = 0.0
        clock = SimpleNamespace(perf_counter=lambda: self.now)
        monkeypatch.setattr("louvain_um.placement.placer.time", clock)


def test_measured_time_moves_what_pays_from_then_on(place, cuda, monkeypatch):
    clock = FakeClock(monkeypatch)
    with place("256MiB", phases=[Phase(name="iterate", passes=10)]) as placer:
        x = placer.array("x", 32 * MIB, reads=Stream(0.1), source=None, from_host=1)
        assert placer.solve().placements["x"].kind == "host_mapped"
        before = x.data.ptr
        with placer.phase("iterate"):
            clock.now += 0.2
        assert placer.plan.placements["x"].on_device == 1
        assert placer.moved == [("x", "host_mapped", str(placer.plan.placements["x"]))]
        assert placer.plan.measured == {"iterate": pytest.approx(0.2)}
        assert x.data.ptr not in (0, before)
        with placer.phase("iterate"):
            clock.now += 0.001
        assert len(placer.moved) == 1
    gc.collect()
    assert not cuda.alive


def test_measured_time_as_predicted_moves_nothing(place, monkeypatch):
    clock = FakeClock(monkeypatch)
    with place("256MiB", phases=[Phase(name="iterate", passes=10)]) as placer:
        placer.array("x", 32 * MIB, reads=Stream(0.1), from_host=1)
        predicted = placer.solve().phase_seconds["iterate"] / 10
        with placer.phase("iterate"):
            clock.now += predicted
        assert placer.moved == []


class CountsAccesses:
    """A counter that saw what a test sets."""

    def __init__(self, **pages):
        self.pages = {name: np.array(counts) for name, counts in pages.items()}
        self.seen = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def observe(self, event):
        self.seen.append(event.name)

    def result(self):
        counts = {n: SimpleNamespace(reads=int(p.sum()), writes=0, atomics=0)
                  for n, p in self.pages.items()}  # fmt: skip
        maps = [SimpleNamespace(array=n, counts=p[:, None], kind="access")
                for n, p in self.pages.items()]  # fmt: skip
        return SimpleNamespace(counts=counts, maps=maps)


def test_counted_accesses_replace_declared_ones(place, cuda):
    rng = np.random.default_rng(0)
    random = rng.multinomial(50_000_000, rng.dirichlet(np.ones(64)))
    counter = CountsAccesses(hot=random, cold=np.full(64, 1000), other=np.ones(3))
    with place("64MiB", phases=[Phase(name="iterate", passes=20)]) as placer:
        for name in ("hot", "cold", "quiet"):
            placer.array(name, 16 * MIB)
        first = placer.solve().placements
        assert {name: where.on_device for name, where in first.items()} == {
            "cold": 1, "hot": 0, "quiet": 0,
        }  # fmt: skip
        with placer.learn("iterate", counter):
            pass
        assert counter.seen == ["hot", "cold", "quiet"]
        gathered = placer.slots["hot"].spec.reads["iterate"]
        assert [type(access) for access in gathered] == [Gather]
        assert gathered[0].count == 20 * 50_000_000
        assert placer.slots["cold"].spec.reads["iterate"][0].passes == pytest.approx(
            20 * 64_000 / (16 * MIB)
        )
        assert placer.plan.placements["hot"].on_device == 1
        assert placer.plan.placements["cold"].on_device == 0
        assert placer.plan.measured == {}


@pytest.mark.parametrize("computes", [False, True])
def test_what_a_counted_phase_takes_longer_it_computes(place, monkeypatch, computes):
    """Long computing hides the bus; what is as short as predicted computes nothing."""
    clock = FakeClock(monkeypatch)
    counter = CountsAccesses(x=np.full(64, 32 * MIB // 64))
    phases = [Phase(name="iterate", passes=2)]
    with place("256MiB", phases=phases) as placer:
        placer.array("x", 32 * MIB, from_host=1, to_host=9, reads=Stream(0.001))
        assert placer.solve().placements["x"].on_device == 0
        with placer.learn("iterate", counter):
            clock.now += 60
        predicted = placer.plan.phase_seconds["iterate"] / 2
        with placer.phase("iterate"):
            clock.now += 1.0 if computes else predicted
        operations = placer.program.phases[0].operations
        assert operations == (pytest.approx(2 * H200.operation_rate) if computes else 0)
        terms = placer.plan.reasons["x"]
        assert terms.phi < 1e-6 if computes else terms.phi > 1e-4
        assert placer.plan.measured == ({"iterate": pytest.approx(1.0)} if computes else {})


def test_phases_and_arrays_are_announced():
    seen = []
    with observing(seen.append), on_host() as place:
        place.array("x", 3, group="mine")
        place.array("y", 3, phases=["a"])
        with place.phase("a"):
            pass
    assert [(e.kind, e.name or e.phase) for e in seen] == [
        ("array", "x"), ("array", "y"), ("start", "a"), ("end", "a"), ("freed", "y"),
        ("freed", "x"),
    ]  # fmt: skip
    assert seen[0].group == "mine"
    assert seen[0].nbytes == 12


def test_a_failing_kernel_is_reported_with_the_arrays_of_other_phases(place, cuda, monkeypatch):
    with place(phases=["a", "b"]) as placer:
        placer.array("x", 3, phases=["a"])

        def fails():
            raise CudaError("deviceSynchronize", "cudaErrorIllegalAddress", 700)

        with (
            pytest.raises(PlacementError, match=r"phase .b. failed .*arrays of other phases are x"),
            placer.phase("b"),
        ):
            monkeypatch.setattr(placer.backend, "wait", fails)


def test_an_error_in_a_phase_frees_its_arrays(place, cuda):
    with place() as placer:
        placer.array("x", MIB, phases=["a"])
        with pytest.raises(ZeroDivisionError), placer.phase("a"):
            _ = 1 / 0
        gc.collect()
        assert not cuda.alive
        with placer.phase("a"):
            assert cuda.alive


def test_arrays_of_a_program_are_added_filled_and_fetched():
    spec = ProgramArray(name="x", shape=4, dtype="f8", reads=Stream(2))
    with on_host() as place:
        x = place.add(spec, np.arange(4))
        for use in (lambda: place.get("x"), lambda: place.fill("x", np.ones(4))):
            with pytest.raises(PlacementError, match="call solve"):
                use()
        place.solve()
        with pytest.raises(OptionError, match="comes too late"):
            place.add(ProgramArray(name="y", shape=4))
        assert place.get("x").tolist() == [0, 1, 2, 3]
        place.fill("x", np.full(4, 7))
        copy = place.get("x")
        x[0] = 1
    assert copy.tolist() == [7, 7, 7, 7]


def test_without_feedback_arrays_stay_where_they_are(place, monkeypatch):
    clock = FakeClock(monkeypatch)
    with place("256MiB", phases=[Phase(name="iterate", passes=10)], feedback=False) as placer:
        placer.array("x", 32 * MIB, reads=Stream(0.1), from_host=1)
        assert placer.solve().placements["x"].kind == "host_mapped"
        with placer.phase("iterate"):
            clock.now += 0.2
        assert placer.moved == []


def test_a_machine_may_be_a_name_as_for_plans(tmp_path):
    H200.save(tmp_path / "mine.toml")
    for machine in ("p4000", H200, tmp_path / "mine.toml"):
        with lu.Placer(device="cpu", machine=machine) as place:
            place.array("x", 1000, reads=Stream(2))
            assert place.solve().seconds > 0
    with pytest.raises(LouvainUmError, match="a100"):
        lu.Placer(device="cpu", machine="a100")


def test_launches_saved_are_believable_where_all_memory_is_taken():
    with on_host(budget="8MiB", phases=[Phase(name="go", passes=10)]) as place:
        place.array("x", 1 << 20, np.float64, reads=Stream(10))
        place.array("y", 1 << 20, np.float64, writes=Stream(10), reads=Gather(1 << 20))
        plan = place.solve()
    assert {str(p) for p in plan.placements.values()} == {"pinned", "device"}
    assert abs(plan.reasons["x"].sigma) < plan.seconds
