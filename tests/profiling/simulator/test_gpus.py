"""Two GPUs, and three, that share managed memory."""

import json
from dataclasses import replace

import numpy as np
import pytest
from simulator_cases import BLOCK, KIB, PAGES, array, scan, touch
from typer.testing import CliRunner

from louvain_um.cli import app
from louvain_um.errors import MemoryBudgetError, OptionError
from louvain_um.placement.machine.profiles import load_machine
from louvain_um.placement.program import Phase, Program, ProgramArray, Stream
from louvain_um.profiling import load
from louvain_um.profiling.access.recorded_plans import trace_of
from louvain_um.profiling.access.recordings import recording_in
from louvain_um.profiling.session.events import Cause, Kind
from louvain_um.profiling.simulator import (
    Access,
    Allocate,
    Discard,
    Driver,
    Free,
    HostTouches,
    Prefetch,
    Touches,
    Trace,
    simulate,
    trace_of_addresses,
)
from louvain_um.profiling.simulator.driver import constants as c
from louvain_um.profiling.simulator.layout import lay_out
from louvain_um.profiling.simulator.simulate import Replay
from louvain_um.profiling.simulator.to_session import session_of
from louvain_um.profiling.views import timeline
from louvain_um.profiling.views.session.analysis import SessionAnalysis
from louvain_um.profiling.views.session.tables import by_gpu
from louvain_um.profiling.views.session.verdict import verdict

pytestmark = pytest.mark.deep  # the driver of several GPUs takes half a minute to compile

LINKS = ("none", "pcie", "nvlink")
CALM = Driver(thrashing=False)
WRITE = Access.WRITE


def machine(link="nvlink", gpus=2, **changes):
    found = replace(load_machine("h200-x2"), faults_in_flight=256, gpus=gpus, peer_link=link)
    return replace(found, **changes)


def run(items, steps, link="nvlink", *, gpus=2, driver=CALM, **options):
    items = items if isinstance(items, tuple) else (items,)
    return simulate(Trace(items, tuple(steps)), machine(link, gpus), driver=driver, **options)


def on(device, step):
    return replace(step, device=device)


def turns(step, times, gpus=2):
    return [on(k % gpus, step) for k in range(times)]


def moved(result):
    """Return blocks that came to GPUs from the host, went to it, and from one GPU to another."""
    found = result.bytes_to_device, result.bytes_to_host, result.bytes_between
    return tuple(size / BLOCK for size in found)


@pytest.mark.parametrize("link", LINKS)
def test_an_array_that_two_gpus_write_in_turns_goes_back_and_forth(link):
    data = array(4)
    found = run(data, turns(scan(data, way=WRITE), 4), link)
    # Without a link, each of three turns takes all by way of the host.
    assert moved(found) == ((16, 12, 0) if link == "none" else (4, 0, 12))
    # Half of a block's faults are a batch, too few for density to bring the rest.
    assert (found.batches, found.total("faults")) == (4 * 8, 4 * 4 * PAGES)
    assert found.total("faults", device=0) == found.total("faults", device=1)
    assert found.total("evictions") == 0
    kinds = {Kind(kind) for kind in found.events["kind"].tolist()}
    assert (Kind.DTOD in kinds) == (link != "none")
    assert set(found.events["device"].tolist()) == {0, 1}


def test_a_copy_between_gpus_takes_the_time_of_its_link():
    data = array(64)
    steps = turns(scan(data, way=WRITE), 8)
    near, far = (run(data, steps, link).costs["migration"] for link in ("nvlink", "none"))
    box = machine()
    each = data.nbytes / box.migrate_to_device
    between = each * box.copy_to_device / box.peer_copy_bandwidth
    assert near == pytest.approx(each + 7 * between)
    assert far == pytest.approx(8 * each + 7 * data.nbytes / box.evict_to_host)


def test_one_gpu_of_two_does_what_it_does_alone():
    data = array(6.3)
    parts = [scan(data), touch(*range(0, 3000, 7), way=WRITE), scan(data, way=Access.GATHER)]
    host = HostTouches(touches=Touches.runs(0, 0, 700, WRITE))
    steps = [*parts, host, Prefetch(array=0), *parts]
    options = {"driver": CALM, "capacity": 4 * BLOCK}
    alone = simulate(Trace((data,), tuple(steps)), machine(), **options)
    unused = on(1, touch())
    other = simulate(Trace((data,), (*steps, unused)), machine(), **options)
    assert other.by_gpu[0].tolist() == alone.by_gpu[0].tolist()
    assert not other.by_gpu[1].any()
    assert other.launch_seconds[:-1].tolist() == alone.launch_seconds.tolist()
    named = [step if step is host else on(1, step) for step in steps]
    second = simulate(Trace((data,), tuple(named)), machine(), **options)
    assert second.by_array.tolist() == alone.by_array.tolist()
    assert second.launch_seconds.tolist() == alone.launch_seconds.tolist()
    assert second.total("evictions", device=1) == alone.total("evictions") > 0


def test_both_gpus_have_a_copy_of_what_they_read():
    data, advice = array(4), {"data": "read_mostly"}
    reads = turns(scan(data), 4)
    assert moved(run(data, reads, placements=advice)) == (4, 0, 4)
    # The host has a copy, too, and without a link it is the source.
    assert moved(run(data, reads, "none", placements=advice)) == (8, 0, 0)
    write = touch(0, way=WRITE)
    after = run(data, [*reads, write, *turns(touch(0), 2), write], placements=advice)
    # The writer loses the right to write when the other reads; nobody else has lost a copy.
    assert after.bytes_between == 4 * BLOCK + 4 * KIB
    assert after.batches == 2 * 8 + 3


def test_a_copy_by_way_of_the_host_stays_there():
    data, advice = array(starts="nowhere"), {"data": "read_mostly"}
    first = [touch(*range(PAGES), way=WRITE), on(1, scan(data))]
    read = HostTouches(touches=Touches.runs(0, 0, PAGES))
    assert moved(run(data, [*first, read], "none", placements=advice)) == (1, 1, 0)
    assert moved(run(data, [*first, read], placements=advice)) == (0, 1, 1)


def test_eviction_is_from_the_gpu_that_is_full_and_to_the_host():
    items = array(4, name="a"), array(4, name="b")
    steps = [scan(items[0]), on(1, scan(items[1], 1))]
    sizes = (2 * BLOCK, 8 * BLOCK)
    found = run(items, steps, capacity=sizes)
    assert [found.total("evictions", device=device) for device in (0, 1)] == [2, 0]
    assert moved(found) == (8, 2, 0)
    # The other GPU takes two blocks from the host, two from its neighbour.
    assert moved(run(items, [*steps, on(1, scan(items[0]))], capacity=sizes)) == (10, 2, 2)


def test_what_was_taken_is_the_first_memory_to_be_used_again():
    items = array(2, name="a"), array(2, name="b")
    steps = [scan(items[0]), on(1, scan(items[0])), scan(items[1], 1)]
    found = run(items, steps, capacity=2 * BLOCK)
    assert (moved(found), found.total("evictions")) == ((4, 0, 2), 0)


def test_eviction_of_one_copy_loses_the_others():
    items = array(2, name="a"), array(2, name="b")
    steps = [*turns(scan(items[0]), 2), scan(items[1], 1), on(1, scan(items[0]))]
    found = run(items, steps, placements={"a": "read_mostly"}, capacity=2 * BLOCK)
    assert found.total("evictions") == 2
    assert found.total("bytes_copies_dropped") == 2 * BLOCK
    assert moved(found) == (2 + 2 + 2, 0, 2)


def test_a_prefetch_goes_to_the_gpu_that_it_names():
    data = array(4)
    there = Prefetch(array=0, device=1)
    found = run(data, [there, on(1, scan(data))])
    assert (found.batches, found.total("bytes_in_user", device=1)) == (0, data.nbytes)
    assert moved(run(data, [there, scan(data)])) == (4, 0, 4)
    assert moved(run(data, [scan(data), there])) == (4, 0, 4)
    assert run(data, [scan(data), there, on(1, scan(data))]).batches == 8
    assert moved(run(data, [there, Prefetch(array=0, to="host")])) == (4, 4, 0)


def test_a_page_that_prefers_the_other_gpu_goes_there_and_is_read_there():
    data, advice = array(4), {"data": "preferred_gpu:1"}
    found = run(data, [scan(data)] * 2, placements=advice)
    assert [found.total("bytes_in_demand", device=device) for device in (0, 1)] == [0, 4 * BLOCK]
    assert found.total("faults", device=0) == found.total("remote_maps", device=0) == 4 * PAGES
    assert found.total("bytes_remote", device=0) == found.total("bytes_remote_peer") == 8 * BLOCK
    assert moved(run(data, [scan(data)], "none", placements=advice)) == (4, 0, 0)
    # The other takes them, and gives them back when it may not be read there.
    back = [scan(data), on(1, scan(data)), scan(data)]
    assert moved(run(data, back, "none", placements=advice)) == (12, 8, 0)


def test_pages_that_prefer_the_other_gpu_bring_their_neighbours_there():
    data, advice = array(), {"data": "preferred_gpu:1"}
    found = run(data, [touch(*range(0, 272))], placements=advice)
    # 256 faults, then 16 more, with which more than 51 % of the block are there.
    assert moved(found) == (1, 0, 0)
    assert found.total("remote_maps") == PAGES
    fresh = run(array(starts="nowhere"), [touch(3), scan(data)], placements=advice)
    assert (fresh.total("faults"), fresh.total("remote_maps")) == (1, PAGES)


def test_a_page_that_prefers_the_host_leaves_the_gpu_that_has_it():
    data, advice = array(), {"data": "preferred_host"}
    steps = [Prefetch(array=0, device=1), touch(*range(100))]
    found = run(data, steps, placements=advice)
    assert (found.bytes_to_host, found.total("remote_maps")) == (400 * KIB, 100)
    assert found.total("bytes_remote_peer") == 0


def test_a_gpu_that_advice_gives_access_reads_its_neighbour_without_faults():
    data = array(4)
    steps = [Prefetch(array=0, device=1), scan(data)]
    found = run(data, steps, placements={"data": "accessed_by"})
    assert (found.batches, found.total("bytes_remote_peer")) == (0, data.nbytes)
    assert moved(run(data, steps, "none", placements={"data": "accessed_by"})) == (8, 4, 0)
    assert moved(run(data, steps, placements={"data": "accessed_by:1"})) == (4, 0, 4)


def test_the_times_of_reading_a_neighbour_are_those_of_its_link():
    data = array(64)
    steps = [Prefetch(array=0, device=1), scan(data)]
    advice = {"data": "accessed_by"}
    for way, term, box_rate in (
        (Access.READ, "remote_sequential", data.nbytes / machine().peer_bandwidth),
        (Access.GATHER, "remote_random", data.pages / machine().peer_random_rate),
    ):
        steps[1] = scan(data, way=way)
        assert run(data, steps, placements=advice).costs[term] == pytest.approx(box_rate)


def test_counters_bring_pages_from_a_neighbour():
    driver = Driver(thrashing=False, access_counters=256)
    steps = [Prefetch(array=0, device=1), scan(array())]
    found = run(array(), steps, driver=driver, placements={"data": "accessed_by"})
    # Regions 0, 1, 2, 4, 8 and 16 of 64 KiB are read there; density brings the others.
    assert found.bytes_remote == 6 * 64 * KIB
    assert moved(found) == (1, 0, 1)
    assert found.events.total(Kind.DTOD, Cause.ACCESS_COUNTERS) == 6 * 64 * KIB


def test_counters_leave_plain_memory_on_its_gpu():
    driver = Driver(thrashing=False, access_counters=256)
    steps = [on(1, scan(array())), scan(array())]
    found = run(array(), steps, driver=driver, placements={"data": "device"}, capacity=BLOCK)
    assert found.bytes_remote == BLOCK
    assert moved(found) == (1, 0, 0)  # loaded, once


def test_gpus_with_a_fast_link_end_in_reading_where_the_page_is():
    steps = turns(touch(0, way=WRITE), 60)
    found = run(array(), steps, driver=Driver())
    # The first move begins no clock, the first that is stamped does not count, three more do.
    assert found.total("thrashing") == 16
    assert found.total("throttling") == 0
    assert (found.bytes_to_device, found.bytes_between) == (64 * KIB, 4 * 64 * KIB)
    assert (found.total("faults"), found.total("remote_maps")) == (6, 1)


@pytest.mark.parametrize(("link", "host"), [("pcie", 0), ("none", 1)])
def test_gpus_with_a_slow_link_nap_and_pin_pages_where_all_reach_them(link, host):
    few, more = (
        run(array(), turns(touch(0, way=WRITE), times), link, driver=Driver()) for times in (60, 90)
    )
    assert few.total("throttling") > 9
    # Where a page is pinned, all that took it have it mapped; on the host, the first faults there.
    assert few.total("remote_maps") == host
    assert 0 < few.bytes_remote < more.bytes_remote
    assert few.bytes_between == more.bytes_between
    assert moved(few) == moved(more)
    read = HostTouches(touches=Touches.runs(0, 0, 1))
    steps = [*turns(touch(0, way=WRITE), 60), read]
    # Over PCIe the page stayed on a GPU, without a link on the host, from which it is read.
    found = run(array(), steps, link, driver=Driver())
    assert (found.bytes_to_host == few.bytes_to_host) == bool(host)


def test_the_host_takes_pages_from_the_gpu_that_has_them():
    data = array(2)
    steps = [on(1, scan(data)), HostTouches(touches=Touches.runs(0, 0, data.pages, WRITE))]
    found = run(data, [*steps, scan(data)])
    assert moved(found) == (4, 2, 0)
    back = found.events.where(Kind.DTOH)
    assert set(found.events["device"][back].tolist()) == {1}


def test_memory_of_one_gpu_is_read_by_the_other_over_the_link():
    items = array(4, name="a"), array(4, name="b")
    found = run(items, [scan(items[0])], placements={"a": "device:1"}, capacity=6 * BLOCK)
    assert (found.bytes_remote, found.total("bytes_in_user", device=1)) == (4 * BLOCK, 4 * BLOCK)
    with pytest.raises(MemoryBudgetError):
        run(items, [scan(items[0])], placements={"a": "device:1"}, capacity=(6 * BLOCK, BLOCK))


def test_memory_that_one_gpu_allocates_evicts_what_the_other_then_sees_on_the_host():
    items = array(3, name="a"), array(1, name="b", starts="nowhere")
    steps = [on(1, scan(items[0])), Allocate(array=1), scan(items[0])]
    found = run(items, steps, placements={"b": "device:1"}, capacity=3 * BLOCK)
    assert moved(found) == (4, 1, 2)


def test_each_gpu_holds_as_much_as_it_has():
    items = tuple(array(3, name=name) for name in "abc")
    box = machine(gpus=3, memory_bytes=4 * BLOCK)
    placements = {"a": "device", "b": "device:1", "c": "device:2"}
    found = simulate(Trace(items, (scan(items[0]),)), box, placements=placements)
    assert [found.total("bytes_in_user", device=k) for k in range(3)] == [3 * BLOCK] * 3


def test_a_page_that_one_gpu_asks_another_to_take_from_a_third_is_mapped_once():
    data = array()
    steps = [Prefetch(array=0, device=0), on(2, touch(*range(100)))]
    found = run(data, steps, gpus=3, placements={"data": "preferred_gpu:1"})
    assert found.total("remote_maps") == found.bytes_between // 4096


def test_a_write_of_one_of_three_takes_all_copies():
    data, advice = array(), {"data": "read_mostly"}
    reads = [on(device, scan(data)) for device in range(3)]
    found = run(data, [*reads, *reads], gpus=3, placements=advice)
    assert moved(found) == (1, 0, 2)
    found = run(data, [*reads, on(1, scan(data, way=WRITE)), *reads], gpus=3, placements=advice)
    assert moved(found) == (1, 0, 4)


def test_what_is_freed_or_discarded_is_so_on_all_gpus():
    data = array(2)
    for step in (Free(array=0), Discard(array=0)):
        found = run(data, [*turns(scan(data), 2), step, scan(data)])
        assert moved(found) == (2, 0, 2)


def test_a_session_names_the_gpus(tmp_path):
    data = array(8)
    result = run(data, turns(scan(data, way=WRITE), 4))
    session_of(result.trace, result).save(tmp_path / "two.npz")
    session = load(tmp_path / "two.npz")
    analysis = SessionAnalysis(session)
    rows = {row["gpu"]: row for row in by_gpu(analysis).rows}
    assert list(rows) == ["GPU 0", "GPU 1"]
    assert [row["launches"] for row in rows.values()] == [2, 2]
    assert [row["bytes_between"] // BLOCK for row in rows.values()] == [8, 16]
    assert [row["bytes_to_device"] // BLOCK for row in rows.values()] == [8, 0]
    found = verdict(analysis)
    assert "GPUs 0 and 1 took 48.0 MiB from each other, mostly data" in found.finding
    assert "preferred location" in found.remedy
    tracks = {item.track for item in timeline.items(session)}
    assert {("GPU 0 (modelled)", "kernels"), ("GPU 1 (modelled)", "kernels")} <= tracks
    assert ("memory: graph (modelled)", "between devices, GPU 1") in tracks
    # Its maps say nothing of GPUs, its kernels do.
    again = recording_in(tmp_path / "two.npz")
    assert {step.device for step in again.steps} == {0, 1}
    one = run(data, [scan(data)] * 2, gpus=1)
    assert not by_gpu(SessionAnalysis(session_of(one.trace, one))).rows


def test_programs_and_tables_say_which_gpu(tmp_path):
    path = tmp_path / "trace.csv"
    lines = (f"{k},{4096 * (k % 512)},1,{k // 512}" for k in range(1024))
    path.write_text("\n".join(["time,address,write,device", *lines]))
    trace = recording_in(path)
    assert [step.device for step in trace.steps] == [0, 1]
    assert simulate(trace, "h200-x2").bytes_between == 2 << 20
    trace.save(tmp_path / "saved.npz")
    assert recording_in(tmp_path / "saved.npz").devices == 2
    arrays = [ProgramArray(name="x", shape=1 << 20, reads=Stream(2), from_host=1)]
    phases = [Phase(name="here"), Phase(name="there", device=1)]
    declared = trace_of(Program(name="two", arrays=arrays, phases=phases))
    assert {step.phase: step.device for step in declared.steps} == {"here": 0, "there": 1}
    with pytest.raises(OptionError, match="device"):
        Phase(name="far", device=8)
    with pytest.raises(OptionError, match="devices"):
        trace_of_addresses([0], devices=[9])


def test_the_command_line_replays_two_gpus(tmp_path):
    data = array(8)
    path = str(tmp_path / "two.npz")
    Trace((data,), tuple(turns(scan(data, way=WRITE), 4))).save(path)
    options = ["simulate", path, "--policies", "base", "--oversubscription", "0", "--json"]
    done = CliRunner().invoke(app, [*options, "--machine", "h200-x2"])
    assert done.exit_code == 0, done.output
    (row,) = json.loads(done.stdout)["results"]
    assert (row["bytes_to_device"], row["bytes_between"]) == (8 * BLOCK, 24 * BLOCK)
    alone = CliRunner().invoke(app, [*options, "--machine", "h200"])
    assert alone.exit_code != 0
    assert "h200-x2" in alone.output


def test_gpus_that_there_are_not():
    data = array()
    with pytest.raises(OptionError, match="h200-x2"):
        simulate(Trace((data,), (on(1, scan(data)),)), "h200")
    with pytest.raises(OptionError, match="capacity"):
        run(data, [on(1, scan(data))], capacity=(BLOCK,))
    for size in ("8", 8.5e6, True, (BLOCK, -1), (BLOCK, "8")):
        with pytest.raises(OptionError, match="capacity"):
            run(data, [on(1, scan(data))], capacity=size)
    found = run(data, [on(1, scan(data))], capacity=np.int64(4 * BLOCK))
    assert found.capacity_bytes == 4 * BLOCK
    with pytest.raises(OptionError, match="0 to 1"):
        found.total("faults", device=2)
    with pytest.raises(OptionError, match="has 2 GPUs, and 3 are used; set gpus"):
        run(data, [on(2, scan(data))])
    for wrong in ("read_mostly:1", "device:9", "accessed_by:"):
        with pytest.raises(OptionError, match="name a GPU"):
            run(data, [scan(data)], placements={"data": wrong})


ADVICE = (
    "none",
    "read_mostly",
    "accessed_by",
    "preferred_gpu:1",
    "preferred_host",
    "host_mapped:2",
)


@pytest.mark.parametrize("seed", range(6))
def test_all_gpus_agree_where_pages_are(seed):
    rng = np.random.default_rng(seed)
    items = array(5.4, name="a"), array(3, name="b", starts="nowhere"), array(0.3, name="c")
    sizes = [5 * BLOCK, 4 * BLOCK, 9 * BLOCK]
    box = machine(LINKS[seed % 3], 3, coherent=seed == 5)
    placements = dict(zip("abc", rng.choice(ADVICE, 3).tolist(), strict=True))
    steps = []
    for _ in range(60):
        number = int(rng.integers(3))
        first = int(rng.integers(items[number].pages))
        pages = int(rng.integers(1, min(900, items[number].pages - first) + 1))
        way = Access(rng.integers(5))
        touches = Touches.runs(number, first, pages, way)
        device = int(rng.integers(3))
        steps.append(
            (
                on(device, replace(touch(), touches=touches)),
                on(device, replace(touch(), touches=touches)),
                on(device, replace(touch(), touches=touches)),
                HostTouches(touches=touches),
                Prefetch(array=number, device=device, first=first, pages=pages),
                Prefetch(array=number, to="host", first=first, pages=pages),
                Discard(array=number, first=first, pages=pages),
            )[rng.integers(7)]
        )  # fmt: skip
    trace = Trace(items, tuple(steps))
    driver = Driver(access_counters=64 if seed % 2 else 0)
    replay = Replay(trace, lay_out(items, placements), box, driver, sizes, True)
    replay.start()
    for step in steps:
        replay.step(step)
        check(replay, sizes)


def check(replay, sizes):
    """Compare the states of all GPUs."""
    pages = replay.gpus.pages
    here = pages & c.ON_GPU != 0
    for number, (state, size) in enumerate(zip(replay.states, sizes, strict=True)):
        others = np.delete(here, number, axis=0).any(axis=0)
        assert np.array_equal(pages[number] & c.ELSEWHERE != 0, others)
        assert np.array_equal(pages[number] & c.ON_HOST, pages[0] & c.ON_HOST)
        mapped = pages[number] & (c.MAP_READ | c.MAP_WRITE) != 0
        assert not (mapped & ~here[number]).any()
        alone = pages[number] & c.ANYWHERE == c.ON_GPU
        assert not (pages[number][~alone] & c.MAP_WRITE).any()
        for row in state.blocks[: state.counters[c.BLOCKS]]:
            block = slice(row[c.FIRST], row[c.FIRST] + row[c.PAGES])
            assert row[c.RESIDENT] == here[number][block].sum()
            assert row[c.CHANGED_NEXT] == c.UNCHANGED
        assert state.counters[c.USED] * c.PAGE_BYTES <= size
        assert not state.want.any()
    assert replay.state.counters[c.CHANGED] == c.NOWHERE
