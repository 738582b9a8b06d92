"""`louvain-um attach` against a stand-in driver: names, endings, replay, policies."""

import _ctypes
import ast
import ctypes
import json
import os
import re
import signal
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from louvain_um.errors import LouvainUmError
from louvain_um.placement.machine.profiles import H200
from louvain_um.placement.policy.find import find_policy
from louvain_um.placement.policy.policy import Placement, Policy
from louvain_um.placement.program import Phase, Program, ProgramArray, Stream
from louvain_um.placement.program.cost import ProgramCost
from louvain_um.placement.program.solver import fits, solve
from louvain_um.profiling import load
from louvain_um.profiling.access.recorded_plans import program_of
from louvain_um.profiling.access.recordings import of_session
from louvain_um.profiling.attach import policy as attach_policy
from louvain_um.profiling.attach import program, tracing
from louvain_um.profiling.attach import sites as attach_sites
from louvain_um.profiling.attach.accesses import (
    Launched,
    constant_arguments,
    declare,
    gathered,
    over_launches,
)
from louvain_um.profiling.attach.policy import Candidates, answer, decide, filled
from louvain_um.profiling.attach.program import SOURCE
from louvain_um.profiling.attach.records import SLOT
from louvain_um.profiling.attach.sites import RUNTIME, Sites
from louvain_um.profiling.attach.to_session import _inputs
from louvain_um.profiling.session import Lifetime, PageMap, SessionData
from louvain_um.profiling.session.events import EventTable, Kind, Source
from louvain_um.profiling.simulator import Array, HostTouches, Launch, Touches, Trace, simulate
from louvain_um.profiling.simulator.simulate import seconds_within
from louvain_um.profiling.sweep.replay import run as replay
from tests.paths import ROOT
from tests.profiling.attach.conftest import HERE

MB = 1 << 20


def line_of(comment):
    """Return the name of the allocation that a comment of the program marks."""
    lines = (HERE / "app.c").read_text().splitlines()
    return next(f"app.c:{at}" for at, line in enumerate(lines, 1) if f"/* {comment} */" in line)


READ, TABLE, OUT = map(line_of, ("read", "table", "out"))
KEPT, SCRATCH, FIRST, SECOND = map(line_of, ("kept", "scratch", "first", "second"))
BEFORE, AFTER = map(line_of, ("before", "after"))
TRACED = tuple(map(line_of, ("traced read", "traced table", "traced out")))


@pytest.fixture(scope="module")
def three(stand_in, tmp_path_factory):
    """Record the program with three managed arrays, once."""
    path = tmp_path_factory.mktemp("three") / "s.npz"
    done = stand_in.attach("-o", path, "--", stand_in.program, "three")
    return path, done


def test_the_session_names_arrays_by_call_site(three):
    path, done = three
    assert (done.returncode, done.stdout) == (3, "checksum 42\n")
    session = load(path)
    lives = {life.name: life for life in session.lifetimes}
    assert {name: life.nbytes // MB for name, life in lives.items()} | {"": 0} == {
        READ: 64, TABLE: 128, OUT: 64, "": 0,
        **{name: lives[name].nbytes // MB for name in lives if name not in (READ, TABLE, OUT)},
    }  # fmt: skip
    kinds = session.metadata["memory_kinds"]
    assert sorted(kinds.values()) == ["device", "managed", "managed", "managed", "pinned", "pool"]
    groups = session.summary()["by_group"]
    assert groups[TABLE]["bytes_to_device"] == 128 * MB
    assert groups[OUT]["bytes_to_device"] == 0
    assert groups[READ]["gpu_faults"] == 320
    assert session.metadata["sources"]["cupti"] == "measured"
    assert session.metadata["complete"]
    assert lives[READ].end_ns < lives[TABLE].end_ns  # the program frees it


def test_events_have_the_number_of_their_gpu(three):
    events = load(three[0]).events
    assert set(events["kind"]) > {Kind.HTOD, Kind.GPU_FAULT_GROUP, Kind.KERNEL, Kind.COPY_TO_DEVICE}
    assert set(events["device"]) == {2}


def test_accesses_are_declared_from_arguments_and_the_order_of_faults(three):
    about = load(three[0]).metadata["about_sources"]["launches"]
    assert about["launches"] == 5
    assert about["gathered"] == [TABLE]
    reads, writes, _ = about["accesses"][READ]
    assert (reads, writes) == (5 * 16 * MB, 0)
    assert about["accesses"][OUT][:2] == [0, 5 * 16 * MB]


@pytest.mark.system
def test_views_and_replay_take_the_session(three, stand_in, tmp_path):
    path, _ = three
    policy = tmp_path / "mine.toml"
    policy.write_text(f'others = "managed"\n[groups]\n"{TABLE}" = "host_mapped"\n')
    run = [sys.executable, "-m", "louvain_um"]
    options = {"env": stand_in.variables, "check": True, "capture_output": True, "text": True}
    report = subprocess.run([*run, "report", str(path), "--json"], **options)
    assert READ in report.stdout
    done = subprocess.run(
        [*run, "simulate", str(path), "--policies", f"base,{policy},auto", "--oversubscription",
         "0,30", "--json"], **options,
    )  # fmt: skip
    rows = json.loads(done.stdout)["results"]
    by_policy = {(row["policy"], row["oversubscription"]): row for row in rows}
    assert by_policy["mine", 0]["bytes_remote"] > by_policy["base", 0]["bytes_remote"] == 0
    assert by_policy["auto", 30]["seconds"] <= by_policy["base", 30]["seconds"]


@pytest.mark.system
@pytest.mark.parametrize("length", [1, 200])
def test_a_policy_is_applied_before_the_first_launch(stand_in, tmp_path, length):
    temporary = tmp_path / (length * "t")
    temporary.mkdir()
    policy, log = tmp_path / "mine.toml", tmp_path / "log"
    policy.write_text(
        f'others = "managed"\n[groups]\n"{TABLE}" = "host_mapped"\n"{READ}" = "prefetched"\n'
        f'[arrays]\n"{OUT}" = "split(0.5)"\n'
    )
    variables = stand_in.variables | {"STAND_IN_LOG": str(log), "TMPDIR": str(temporary)}
    done = stand_in._replace(variables=variables).attach(
        "--policy", policy, "-o", tmp_path / "s.npz", "--", stand_in.program, "three"
    )
    assert (done.returncode, done.stdout) == (3, "checksum 42\n")
    # Blocks of 2 MiB from the first array on: preferred 3, accessed by 5, the host −1.
    assert log.read_text().splitlines() == [
        "advise 0 3 0", "advise 32 3 -1", "advise 32 5 0", "advise 96 3 0", "advise 112 3 -1",
        "advise 112 5 0", "prefetch 0 64 0", "prefetch 96 32 0",
    ]  # fmt: skip
    assert load(tmp_path / "s.npz").metadata["policy"] == "mine"
    assert not list(temporary.iterdir())


@pytest.mark.system
def test_auto_writes_a_policy_that_reads_back(three, stand_in, tmp_path):
    output = tmp_path / "t.npz"
    arguments = ("--policy", "auto", "--from", three[0], "-o", output, "--device-budget", "50%")
    # Without a cache the simulator is compiled.
    done = stand_in.attach(*arguments, "--", stand_in.program, "three", timeout=600)
    assert done.returncode == 3, done.stderr
    file = output.with_suffix(".toml")
    groups = tomllib.loads(file.read_text())["groups"]
    assert set(groups) == {READ, TABLE, OUT}
    assert groups[TABLE] != "host_mapped"  # gathers over the bus cost most
    assert {"host_mapped"} & set(groups.values())
    assert find_policy(str(file)).groups.keys() == groups.keys()
    assert "cudaMemAdviseSetAccessedBy, gpu" in output.with_suffix(".c").read_text()
    again = stand_in.attach(*arguments, "--", stand_in.program, "three")
    assert again.returncode == 1
    assert "--force" in again.stderr


def test_where_all_fits_the_host_has_to_gain_by_far(three):
    session = load(three[0])
    found = decide(session, H200, None, "mine")
    assert {str(where) for where in found.groups.values()} == {"prefetched"}
    assert found.groups.keys() == {READ, TABLE, OUT}
    # An array's last page takes a block: where that is one too many, less goes to the device.
    lives = [
        replace(life, nbytes=life.nbytes + 4096 * (life.name == TABLE))
        for life in session.lifetimes
    ]
    found = decide(replace(session, lifetimes=tuple(lives)), H200, str(129 * MB), "mine")
    held = [
        -(-found.placement_in(life.name, life.group).on_device * life.nbytes // (2 * MB))
        for life in lives if life.name in (READ, TABLE, OUT)
    ]  # fmt: skip
    assert sum(held) <= 129 // 2


@pytest.fixture(scope="module")
def in_turns():
    """Return a session of a program that reads one array of 64 MiB often, then another."""
    lives = tuple(
        Lifetime(name=name, group=name, address=at << 40, nbytes=64 * MB, start_ns=0, end_ns=400)
        for at, name in enumerate(("first", "then"), 1)
    )
    launches = [
        Launched(f"read {name}", start, start + 5, 1, {name: False})
        for start, name in zip(range(0, 400, 10), ["first"] * 20 + ["then"] * 20, strict=True)
    ]
    found = declare(launches, lives, set())
    metadata = {
        "memory_kinds": {life.name: "managed" for life in lives}, "inputs": ["first", "then"],
        "about_sources": {"launches": {"accesses": found.accesses, "gathered": []}},
    }  # fmt: skip
    return SessionData(metadata=metadata, lifetimes=lives, phases=found.phases, maps=found.maps)


def test_where_the_driver_may_evict_arrays_take_turns_on_the_device(in_turns):
    trace, capacity = of_session(in_turns), 72 * MB

    def seconds(policy):
        found = replay(trace, policy, H200, capacity)
        return found.seconds, found.total("evictions")

    stays, evicts = (
        seconds(decide(in_turns, H200, str(capacity), "mine", evicts=each))
        for each in (False, True)
    )
    kinds = ("managed", "prefetched", "host_mapped")
    best = min(
        seconds(Policy(name="by-hand", others=others, groups={"first": first}))
        for first in kinds for others in kinds
    )  # fmt: skip
    assert evicts <= best < stays
    assert evicts[1] > stays[1] == 0


def test_a_replay_that_takes_longer_than_it_may_ends_early(in_turns):
    trace, placements = of_session(in_turns), dict.fromkeys(("first", "then"), "managed")
    given = trace, H200, placements, 72 * MB
    whole = simulate(trace, H200, placements=placements, capacity=72 * MB)
    every = whole.seconds, whole.total("evictions")
    assert seconds_within(whole.seconds, *given) == pytest.approx(every)
    early, evictions = seconds_within(whole.seconds / 4, *given)
    assert whole.seconds / 4 < early < whole.seconds / 2
    assert evictions == 0


def test_few_touches_of_candidates_are_replayed(in_turns, monkeypatch):
    trace, replays = of_session(in_turns), []

    def counted(*given):
        replays.append(given[3])
        return seconds_within(*given)

    monkeypatch.setattr(attach_policy, "seconds_within", counted)
    made = program_of(trace)
    candidates = Candidates(
        trace=trace, program=made, machine=H200, capacity=72 * MB, room=72 * MB, evicts=True,
        best={name: Placement("host_mapped") for name in ("first", "then")},
        left=3 * trace.touches,
    )  # fmt: skip
    assert candidates.each == trace.touches
    candidates.fastest(made.arrays)
    assert len(replays) == 3
    assert replays[0] == {"first": "host_mapped", "then": "host_mapped"}


def test_replays_count_what_is_simulated(in_turns):
    array = Array(name="data", group="mine", nbytes=64 * MB)
    whole = Touches.runs(0, 0, array.pages)
    steps = (HostTouches(touches=whole), Launch(touches=whole), Launch(touches=whole, repeats=9))
    trace = Trace((array,), steps)
    best = {"data": Placement("managed")}
    candidates = Candidates(
        trace=trace, program=program_of(of_session(in_turns)), machine=H200, capacity=32 * MB,
        room=32 * MB, evicts=True, best=best, left=4 * array.pages - 1,
    )  # fmt: skip
    assert candidates.each == 4 * array.pages
    assert candidates.replayed(best) == np.inf
    candidates.left += 1
    assert 0 < candidates.replayed(best) < np.inf


def test_a_run_on_two_gpus_is_decided_without_replays(in_turns):
    events = EventTable(
        {"time": [0, 210], "duration": [200, 190], "device": [0, 1],
         "kind": [Kind.KERNEL] * 2, "source": [Source.CUPTI] * 2}
    )  # fmt: skip
    session = replace(in_turns, events=events)
    assert of_session(session).devices == 2
    assert decide(session, H200, str(72 * MB), "mine").groups.keys() == {"first", "then"}
    # What no source says to be of another GPU is of the one that ran the kernels.
    device = np.where(events["time"] > 0, 0, 1)
    source = np.where(events["time"] > 0, Source.TRACER, Source.CUPTI)
    one = EventTable({**events.columns, "device": device, "source": source})
    assert one.devices == [1]
    assert of_session(replace(in_turns, events=one)).devices == 1


def test_little_memory_is_filled_with_what_loses_nothing_there():
    arrays = [
        ProgramArray(name="read", shape=16 * MB, reads=Stream(5), from_host=1),
        ProgramArray(name="written", shape=16 * MB, writes=Stream(5), to_host=1),
    ]
    program = Program(name="copy", arrays=arrays, phases=[Phase(name="go")])
    cost = ProgramCost(program=program, machine=H200)
    chosen, found = solve(cost, 70 * MB), filled(cost, 70 * MB)
    assert "pinned" in {where.kind for where in chosen.values()}
    assert "pinned" not in {where.kind for where in found.values()}
    assert sum(where.on_device > 0 for where in found.values()) == 1
    assert fits(program, found, 70 * MB)


def test_what_the_host_touches_only_after_a_kernel_is_no_input():
    lives = [
        Lifetime(name=name, group=name, address=at << 30, nbytes=4096, start_ns=0, end_ns=99)
        for at, name in enumerate("abc", 1)
    ]
    kinds = [Kind.CPU_FAULT, Kind.CPU_FAULT, Kind.HTOD]
    events = EventTable({"kind": kinds, "time": [5, 25, 15]})
    launches = [Launched("k", start, start + 5, 1, {"a": False, "b": True}) for start in (10, 30)]
    assert _inputs(events, np.arange(3, dtype=np.int32), tuple(lives), launches) == {"a", "c"}


def test_each_launch_accesses_an_array_as_large_as_it_is_then():
    lives = [
        Lifetime(name="a", group="a", address=MB, nbytes=nbytes, start_ns=start, end_ns=start + 9)
        for start, nbytes in ((0, MB), (10, 4096))
    ]
    launches = [
        Launched("k", life.start_ns, life.end_ns, 1, {"a": True}, {"a": life.nbytes})
        for life in lives
    ]
    assert declare(launches, lives, set()).accesses == {"a": [0.0, (MB + 4096) / 4, 0.0]}


def test_a_traced_bin_is_divided_over_the_launches_that_got_the_array():
    launches = [
        Launched("k", start, start + 10, 1, {name: True}, {name: 8192})
        for start, name in ((0, "a"), (20, "b"), (40, "a"), (100, "a"))
    ]
    counts = np.array([[4, 0, 3], [2, 0, 0]], np.uint32)
    page = PageMap(array="a", page_bytes=4096, edges=np.array([0, 50, 90, 99]), counts=counts)
    found = over_launches(page, launches)
    assert found.edges.tolist() == [0, 20, 40, 100, 111]
    # The last launch begins after the bin that has its accesses: clocks differ.
    assert found.counts.tolist() == [[2, 0, 2, 3], [1, 0, 1, 0]]
    assert over_launches(replace(page, array="c"), launches).counts is counts


def arrivals(pages, kernel=(0, 1000)):
    """Return events of a kernel, and of pages of 64 KiB that come one by one from time 1 on."""
    begin, end = kernel
    count = len(pages)
    return EventTable(
        {
            "kind": [Kind.KERNEL, *[Kind.GPU_FAULT_GROUP] * count],
            "time": [begin, *range(1, count + 1)],
            "duration": [end - begin, *[0] * count],
            "address": [0, *(1 << 30 | page << 16 for page in pages)],
        }
    )


@pytest.mark.parametrize(
    ("pages", "kernel", "expected"),
    [
        (range(64), (0, 1000), False),
        # Four parts of the threads, one after the other, each with a quarter of every part.
        ([16 * k + 4 * part + i for part in range(4) for k in range(4) for i in range(4)],
         (0, 1000), False),
        (np.random.default_rng(1).permutation(64), (0, 1000), True),
        (range(64), (500, 1000), True),  # before any kernel, as by cudaMemset
        (np.random.default_rng(1).permutation(9), (0, 1000), False),  # too few to tell
    ],
)  # fmt: skip
def test_the_order_of_pages_distinguishes_gathers_from_streams(pages, kernel, expected):
    events = arrivals(pages, kernel)
    owners = np.where(events["kind"] == Kind.KERNEL, -1, 0).astype(np.int32)
    assert gathered(events, owners, 0) is expected


def decided_in_the_run(stand_in, path, program):
    """Attach with --policy auto and half the memory; return calls, session and groups.

    The programs take no time: their launches wait for decisions.
    """
    log = path.with_suffix(".log")
    variables = stand_in.variables | {"STAND_IN_LOG": str(log), "LOUVAIN_UM_ATTACH_WAIT": "50000"}
    done = stand_in._replace(variables=variables).attach(
        "--policy", "auto", "--device-budget", "50%", "-o", path, "--", stand_in.program, program
    )
    assert done.returncode == 0, done.stderr
    groups = tomllib.loads(path.with_suffix(".toml").read_text())["groups"]
    return log.read_text().splitlines(), load(path), groups


@pytest.mark.system
def test_auto_decides_in_the_run_and_places_later_allocations(stand_in, tmp_path):
    calls, session, groups = decided_in_the_run(stand_in, tmp_path / "s.npz", "phases")
    # The kernels before have ended when the stream is asked for the third time.
    assert "the policy was decided after 6, 18 launches" in session.notes
    assert groups[SCRATCH] == "host_mapped"
    assert groups[KEPT].startswith("split")
    # The table is blocks 0 to 63, scratch of each two launches the next 32.
    on_host = [call for call in calls if re.fullmatch(r"advise \d+ 3 -1", call)]
    assert on_host[-8:] == [f"advise {64 + 32 * k} 3 -1" for k in range(2, 10)]
    assert "prefetch 128 64 -1" in calls  # that of the fifth and sixth launch goes home
    assert tmp_path.joinpath("s.c").read_text().count("cudaMemAdviseSetAccessedBy, gpu") >= 2


@pytest.mark.system
def test_a_later_decision_takes_the_earlier_advice_back(stand_in, tmp_path):
    calls, _, groups = decided_in_the_run(stand_in, tmp_path / "s.npz", "shift")
    assert groups == {FIRST: "host_mapped", SECOND: "prefetched"}
    at = calls.index("advise 0 4 0")  # no longer preferred on the device
    assert calls[0] == "advise 0 3 0"
    assert calls[at - 1 : at + 5] == [
        "advise 0 2 0", "advise 0 4 0", "advise 0 6 0", "advise 0 3 -1", "advise 0 5 0",
        "prefetch 0 128 -1",
    ]  # fmt: skip
    assert calls[-2:] == ["advise 64 3 0", "prefetch 64 128 0"]


LAUNCHES = """
import ctypes, time
cuda, at = ctypes.CDLL("libcuda.so.1"), ctypes.c_uint64()
cuda.cuInit(0)
cuda.cuMemAllocManaged(ctypes.byref(at), ctypes.c_size_t(1 << 26), 1)
values = (ctypes.c_void_p * 1)(ctypes.addressof(at))
for _ in range(10):
    cuda.cuLaunchKernel(b"_Z4readPKf s", 1, 1, 1, 32, 1, 1, 0, None, values, None)
time.sleep(1)
"""


@pytest.mark.system
def test_a_program_goes_on_while_a_policy_is_decided(stand_in, tmp_path):
    script = tmp_path / "launches.py"
    script.write_text(LAUNCHES)
    path = tmp_path / "s.npz"
    done = stand_in.attach("--policy", "auto", "-o", path, "--", sys.executable, script)
    assert done.returncode == 0, done.stderr
    notes = " ".join(load(path).notes)
    assert re.search(r"decided after \d+ launches; the program ended before", notes)
    assert tomllib.loads((tmp_path / "s.toml").read_text())["groups"]


@pytest.mark.system
def test_auto_says_why_nothing_was_placed(stand_in, tmp_path):
    arguments = ("--policy", "auto", "-o", tmp_path / "s.npz", "--", stand_in.program, "several")
    done = stand_in.attach(*arguments)
    assert done.returncode == 0
    assert "nothing was placed in this run: it ended before a policy was decided" in done.stderr
    assert sorted(os.listdir(tmp_path)) == ["s.npz"]


@pytest.mark.system
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM])
def test_a_killed_program_leaves_a_session_and_its_signal(stand_in, tmp_path, number):
    path = tmp_path / "s.npz"
    variables = stand_in.variables | {"TMPDIR": str(tmp_path)}
    done = stand_in._replace(variables=variables).attach(
        "-q", "-o", path, "--", stand_in.program, "kill", int(number)
    )
    assert (done.returncode, done.stderr) == (-number, "")
    assert os.listdir(tmp_path) == ["s.npz"]
    session = load(path)
    assert not session.metadata["complete"]
    assert [life.nbytes for life in session.lifetimes] == [4 * MB]


RECORD = """
import shutil, sys
from louvain_um.profiling.attach import program
ended = program._ended
def kept(folder, *more):
    shutil.copytree(folder, sys.argv[1], ignore=lambda folder, names: {"answers"} & {*names})
    return ended(folder, *more)
program._ended = kept
program.run(sys.argv[2:])
"""


@pytest.mark.system
def test_the_next_run_removes_what_a_killed_one_left(stand_in, tmp_path):
    variables = stand_in.variables | {"TMPDIR": str(tmp_path)}
    stand_in = stand_in._replace(variables=variables)
    command = [sys.executable, "-m", "louvain_um", "attach", "--", str(stand_in.program), "wait"]
    options = {"stdout": subprocess.PIPE, "start_new_session": True, "cwd": tmp_path}
    with subprocess.Popen(command, env=variables, **options) as killed:
        assert killed.stdout.readline() == b"ready\n"
        (left,) = tmp_path.iterdir()
        assert left.stat().st_mode & 0o777 == 0o700
        os.killpg(killed.pid, signal.SIGKILL)
    assert list(tmp_path.iterdir()) == [left]
    stand_in.attach("-o", tmp_path / "s.npz", "--", stand_in.program, "loop", 1)
    assert list(tmp_path.iterdir()) == [tmp_path / "s.npz"]


@pytest.mark.system
def test_records_that_a_program_wrote_over_are_an_error(stand_in, tmp_path):
    kept = tmp_path / "kept"
    command = [sys.executable, "-c", RECORD, str(kept), str(stand_in.program), "three"]
    subprocess.run(command, env=stand_in.variables, check=True, capture_output=True)
    (file,) = kept.glob("*.record")
    whole, chance, damaged = np.fromfile(file, SLOT), np.random.default_rng(1), 0
    whole = whole[: np.flatnonzero(whole["kind"])[-1] + 1]
    for _ in range(150):
        changed = whole.copy()
        for _ in range(3):
            name = chance.choice(SLOT.names)
            values = (0, 1, np.iinfo(SLOT[name]).max, np.iinfo(SLOT[name]).min, 50)
            changed[name][chance.integers(len(changed))] = values[chance.integers(5)]
        changed.tofile(file)
        try:
            program._ended(kept, 0, 1, ["app"], None, None, 1.0)
        except LouvainUmError as error:
            damaged += "is damaged" in str(error)
    assert damaged


def default_signals():
    """Let a process have signals that a shell ignores in what it runs in the background."""
    for number in (signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)


@pytest.mark.system
@pytest.mark.parametrize("name", ["SIGINT", "SIGQUIT", "SIGTERM", "SIGHUP", "SIGUSR1"])
def test_a_signal_reaches_the_program(stand_in, tmp_path, name):
    path, number = tmp_path / "s.npz", getattr(signal, name)
    command = [sys.executable, "-m", "louvain_um", "attach", "-q", "-o", str(path), "--"]
    with subprocess.Popen(
        [*command, str(stand_in.program), "wait"],
        env=stand_in.variables | {"TMPDIR": str(tmp_path)},
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=default_signals,
    ) as running:
        assert running.stdout.readline() == b"ready\n"
        running.send_signal(number)
        assert running.wait(30) == -number
    assert load(path).lifetimes
    assert not {"s.npz"} ^ {name for name in os.listdir(tmp_path) if "core" not in name}


def test_a_signal_before_the_child_is_known_is_sent_later(monkeypatch):
    sent, handlers = [], {}
    monkeypatch.setattr(program.signal, "signal", handlers.setdefault)
    monkeypatch.setattr(program.signal, "getsignal", lambda number: signal.SIG_DFL)
    with program.passing_on() as to:
        handlers[signal.SIGTERM](signal.SIGTERM, None)
        to(SimpleNamespace(send_signal=sent.append))
        handlers[signal.SIGHUP](signal.SIGHUP, None)
    assert sent == [signal.SIGTERM, signal.SIGHUP]


COUNTS = """
import ctypes, signal, sys, time
cuda, at, got = ctypes.CDLL("libcuda.so.1"), ctypes.c_uint64(), []
signal.signal(int(sys.argv[1]), lambda *_: got.append(1))
cuda.cuInit(0)
cuda.cuMemAllocManaged(ctypes.byref(at), ctypes.c_size_t(1 << 22), 1)
print("ready", flush=True)
while not got:
    time.sleep(0.05)
time.sleep(1)
print(len(got))
"""


@pytest.mark.system
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGUSR1, signal.SIGTERM])
def test_what_is_sent_to_a_group_comes_once(stand_in, tmp_path, number):
    script = tmp_path / "counts.py"
    script.write_text(COUNTS)
    command = [sys.executable, "-m", "louvain_um", "attach", "-q", "-o", str(tmp_path / "s.npz")]
    with subprocess.Popen(
        [*command, "--", sys.executable, str(script), str(int(number))], env=stand_in.variables,
        stdout=subprocess.PIPE, text=True, start_new_session=True, preexec_fn=default_signals,
    ) as running:  # fmt: skip
        assert running.stdout.readline() == "ready\n"
        os.killpg(running.pid, number)
        assert running.stdout.readline() == "1\n"
    assert running.returncode == 0


@pytest.mark.system
def test_managed_memory_beyond_the_device_ends_the_program(stand_in, tmp_path):
    arguments = ("-o", tmp_path / "s.npz", "--", stand_in.program, "large")
    done = stand_in.attach("-q", *arguments)
    assert (done.returncode, done.stdout) == (1, "half\n")
    assert done.stderr.count("\n") == 1
    assert "--allow-driver-eviction" in done.stderr
    done = stand_in.attach("--force", "--allow-driver-eviction", *arguments)
    assert (done.returncode, done.stdout) == (0, "half\nwhole\n")


@pytest.mark.system
def test_several_arrays_of_a_site_are_numbered_and_a_loop_reuses_its_name(stand_in, tmp_path):
    names = {}
    for what in ("several", "loop"):
        path = tmp_path / f"{what}.npz"
        assert not stand_in.attach("-o", path, "--", stand_in.program, what, 3).returncode
        names[what] = [life.name for life in load(path).lifetimes]
    site = names["several"][0]
    assert names["several"] == [site, f"{site} (2)", f"{site} (3)"]
    assert len(set(names["loop"])) == 1


@pytest.mark.system
def test_a_cooperative_launch_has_no_buffer_of_arguments(stand_in, tmp_path):
    path = tmp_path / "s.npz"
    assert not stand_in.attach("-o", path, "--", stand_in.program, "together").returncode
    about = load(path).metadata["about_sources"]["launches"]
    assert (about["launches"], len(about["accesses"])) == (1, 1)


@pytest.mark.system
def test_another_kernel_at_the_address_of_an_unloaded_one_is_recognised(stand_in, tmp_path):
    path = tmp_path / "s.npz"
    assert not stand_in.attach("-o", path, "--", stand_in.program, "reload").returncode
    session = load(path)
    accesses = session.metadata["about_sources"]["launches"]["accesses"]
    assert accesses[BEFORE][:2] == [MB, 0]
    assert accesses[AFTER][:2] == [0, MB]


@pytest.mark.system
@pytest.mark.parametrize("how", ["module", "library", "fat", "destroy"])
def test_kernels_that_come_as_ptx_are_traced(stand_in, tmp_path, how):
    path, tool = tmp_path / "s.npz", tmp_path / "cuobjdump"
    tool.write_text("#!/bin/sh\ntail -c +17 image.fatbin | tr -d '\\000' > image.sm_75.ptx\n")
    tool.chmod(0o755)
    variables = stand_in.variables | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    stand_in = stand_in._replace(variables=variables)
    done = stand_in.attach("--trace", "-o", path, "--", stand_in.program, "traced", how)
    assert (done.returncode, done.stdout) == (3, "checksum 42\n"), done.stderr
    session = load(path)
    assert session.metadata["sources"]["tracer"] == "measured"
    about = session.metadata["about_sources"]["tracer"]
    assert (about["launches"], about["instrumented_places"]) == (5, 2)
    # Eight accesses of each page in each launch: the second array's pages are four times as large.
    expected = [[5 * 8 << 14, 0, 0], [5 * 8 << 13, 0, 0], [0, 5 * 8 << 10, 0]]
    assert about["accesses"] == dict(zip(TRACED, expected, strict=True))
    maps = {page.array: page for page in session.maps}
    assert [maps[name].page_bytes for name in TRACED] == [4096, 16384, 4096]
    assert all(maps[name].total == sum(uses) for name, uses in about["accesses"].items())
    assert maps[TRACED[0]].edges[0] >= 0
    assert np.count_nonzero(maps[TRACED[0]].counts.sum(axis=0)) > 1
    assert int(maps[TRACED[0]].edges[-1]) < 2e9 * session.metadata["seconds"]


@pytest.mark.system
@pytest.mark.parametrize(
    ("how", "variables", "words"),
    [
        ("module", {"STAND_IN_REFUSES": "1"}, "the driver refused the instrumented code"),
        ("fat", {"PATH": "/usr/bin:/bin", "CUDA_HOME": "/none"}, "cuobjdump"),
        ("three", {}, "their modules hold machine code alone"),
    ],
)
def test_what_cannot_be_traced_runs_as_it_is(stand_in, tmp_path, how, variables, words):
    path, arguments = tmp_path / "s.npz", ("three",) if how == "three" else ("traced", how)
    stand_in = stand_in._replace(variables=stand_in.variables | variables)
    done = stand_in.attach("--trace", "-o", path, "--", stand_in.program, *arguments)
    assert (done.returncode, done.stdout) == (3, "checksum 42\n"), done.stderr
    session = load(path)
    assert session.metadata["sources"]["tracer"].startswith("not available")
    assert [note for note in session.notes if note.startswith("not traced: gather: ")]
    assert words in " ".join(session.notes)
    assert session.metadata["about_sources"]["launches"]["accesses"]  # declared


def test_ptx_of_the_newest_device_is_chosen(monkeypatch):
    texts = [f".version 8.0\n.target sm_{name}\n" for name in ("75", "80", "90a", "100")]
    monkeypatch.setattr(tracing, "_texts", lambda image: iter(texts))
    chosen = {at: tracing._ptx(tracing.FAT, at).split("sm_")[1].strip() for at in (75, 86, 90, 120)}
    assert chosen == {75: "75", 86: "80", 90: "90a", 120: "100"}
    with pytest.raises(LouvainUmError, match="carries no PTX"):
        tracing._ptx(tracing.FAT, 70)
    texts.append(texts[1])
    with pytest.raises(LouvainUmError, match="linked from 2 parts"):
        tracing._ptx(tracing.FAT, 80)


def test_kernels_are_bounded_unless_they_say_how(tmp_path):
    text = ".visible .entry a(.param .u64 x) {ret;}\n.entry b() .maxntid 64, 1, 1 {ret;}\n"
    assert tracing.bounded(text) == text.replace("x) {", "x)\n.maxntid 1024, 1, 1\n{")


@pytest.mark.system
def test_a_forked_child_does_not_write_into_the_session(stand_in, tmp_path):
    path = tmp_path / "s.npz"
    assert not stand_in.attach("-o", path, "--", stand_in.program, "fork").returncode
    assert [life.nbytes for life in load(path).lifetimes] == [4 * MB]


@pytest.mark.system
def test_what_a_process_becomes_by_exec_is_recorded(stand_in, tmp_path):
    path = tmp_path / "s.npz"
    done = stand_in.attach("-o", path, "--", stand_in.program, "exec")
    assert (done.returncode, done.stdout) == (3, "checksum 42\n")
    session = load(path)
    assert session.metadata["complete"]
    assert {READ, TABLE, OUT} <= {life.name for life in session.lifetimes}


@pytest.mark.system
@pytest.mark.parametrize("policy", [False, True])
def test_descriptors_that_a_program_closes_and_uses_again_are_its_own(stand_in, tmp_path, policy):
    path, own, file = tmp_path / "s.npz", tmp_path / "own", tmp_path / "mine.toml"
    file.write_text('others = "prefetched"\n')
    options = ("--policy", file) if policy else ()
    done = stand_in.attach(*options, "-o", path, "--", stand_in.program, "close", own)
    assert done.returncode == 0, done.stderr
    assert own.read_text() == "mine\n"
    session = load(path)
    assert session.metadata["complete"]
    assert 8 * MB in {life.nbytes for life in session.lifetimes}
    assert not session.metadata["about_sources"]["cupti"]["dropped"]
    assert policy == any("answers ended early" in note for note in session.notes)


@pytest.mark.system
def test_threads_lose_no_allocation(stand_in, tmp_path):
    path = tmp_path / "s.npz"
    assert not stand_in.attach("-o", path, "--", stand_in.program, "threads").returncode
    lives = load(path).lifetimes
    assert len({life.address for life in lives}) == 800


@pytest.mark.system
@pytest.mark.parametrize(
    ("program", "code", "words"),
    [
        ("{app} none -o x", 7, "used no CUDA"),
        ("{folder}/absent", 2, "there is no program"),
        ("{folder}/plain", 2, "is not executable"),
        ("{folder}", 2, "there is no program"),
        ("{folder}/broken", 1, "cannot be run"),
    ],
)
def test_bad_programs_are_one_line(stand_in, tmp_path, program, code, words):
    (tmp_path / "plain").write_text("text")
    (tmp_path / "broken").write_text("text")
    (tmp_path / "broken").chmod(0o755)
    command = program.format(app=stand_in.program, folder=tmp_path).split()
    done = stand_in.attach("-o", tmp_path / "s.npz", "--", *command)
    assert done.returncode == code
    assert done.stderr.count("\n") == 1
    assert words in done.stderr
    assert not (tmp_path / "s.npz").exists()


@pytest.mark.system
def test_of_several_processes_the_largest_is_the_session(stand_in, tmp_path):
    path, app = tmp_path / "s.npz", stand_in.program
    done = stand_in.attach("-o", path, "--", "sh", "-c", f"{app} several; {app} three; exit 4")
    assert (done.returncode, done.stdout) == (4, "checksum 42\n")
    assert TABLE in {life.name for life in load(path).lifetimes}
    assert any(note.startswith("1 other process") for note in load(path).notes)


@pytest.mark.system
@pytest.mark.parametrize(("place", "words"), [("pinned", "can place"), ("nowhere", "must be one")])
def test_policies_that_managed_memory_cannot_follow_are_refused(stand_in, tmp_path, place, words):
    policy = tmp_path / "mine.toml"
    policy.write_text(f'others = "{place}"\n')
    done = stand_in.attach("--policy", policy, "--", stand_in.program, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert words in done.stderr


@pytest.mark.system
def test_without_driver_or_compiler_a_line_says_so(stand_in, tmp_path):
    arguments = ("-o", tmp_path / "s.npz", "--", stand_in.program)
    empty = {"PATH": str(tmp_path), "LOUVAIN_UM_CACHE": str(tmp_path), "CC": ""}
    done = stand_in._replace(variables=stand_in.variables | empty).attach(*arguments)
    assert done.returncode == 1
    assert "install gcc" in done.stderr
    away = {"LD_LIBRARY_PATH": ""}
    done = stand_in._replace(variables=stand_in.variables | away, forks=None).attach(*arguments)
    assert done.returncode == 3
    assert "no NVIDIA driver" in done.stderr


def test_a_prebuilt_library_is_used_if_it_loads(tmp_path, monkeypatch):
    monkeypatch.setattr(program, "PREBUILT", tmp_path / "inject.so")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CC", "")
    for content in (None, b"no library"):
        if content:
            program.PREBUILT.write_bytes(content)
        with pytest.raises(LouvainUmError, match="install gcc"):
            program.compiled()
    program.PREBUILT.write_bytes(Path(_ctypes.__file__).read_bytes())  # loads, and hides no driver
    assert program.compiled() == program.PREBUILT
    build = re.search(r"^OPTIONS = (.+)$", (ROOT / "setup.py").read_text(), re.MULTILINE)
    assert ast.literal_eval(build[1]) == program.OPTIONS


@pytest.mark.system
def test_the_library_is_not_loaded_from_a_shared_folder(stand_in, tmp_path):
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels").chmod(0o777)
    variables = stand_in.variables | {"LOUVAIN_UM_CACHE": str(tmp_path)}
    arguments = ("-q", "-o", tmp_path / "s.npz", "--", stand_in.program)
    done = stand_in._replace(variables=variables).attach(*arguments)
    assert done.returncode == 1
    assert "others can write there" in done.stderr


@pytest.mark.system
def test_a_program_at_a_fixed_address_has_the_same_names(three, stand_in, tmp_path):
    path = tmp_path / "s.npz"
    assert stand_in.attach("-o", path, "--", stand_in.folder / "fixed", "three").returncode == 3
    names = [[life.name for life in load(each).lifetimes] for each in (three[0], path)]
    assert names[0] == names[1]


def test_cupti_knows_every_call_that_the_library_records():
    found = [
        Path("/usr/local/cuda/lib64/libcupti.so"),
        *Path("/usr/local").glob("cuda*/lib64/libcupti.so*"),
    ]
    library = next((file for file in found if file.exists()), None)
    if library is None:
        pytest.skip("needs CUPTI")
    name, known = ctypes.c_char_p(), set()
    get = ctypes.CDLL(str(library)).cuptiGetCallbackName
    for number in range(1, 2000):
        if get(1, number, ctypes.byref(name)) == 0 and name.value:
            known.add(name.value.decode())
    wanted = set(re.findall(r'\{"(cu\w+)", DO_', SOURCE.read_text()))
    assert len(wanted) > 40
    assert wanted <= known


@pytest.mark.parametrize(
    ("function", "skipped"),
    [
        ("cudaMallocManaged", True),
        ("cudaError cudaMallocManaged<float>(float**, unsigned long)", True),
        ("__cudart516", True),
        ("cudaError allocate<float>(float**)", False),
        ("main", False),
    ],
)
def test_functions_of_the_runtime_are_skipped(function, skipped):
    assert bool(RUNTIME.match(function)) is skipped


@pytest.mark.system
def test_python_frames_name_allocations(stand_in, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import ctypes\ncuda = ctypes.CDLL('libcuda.so.1')\ncuda.cuInit(0)\n"
        "def make():\n    at = ctypes.c_uint64()\n"
        "    cuda.cuMemAllocManaged(ctypes.byref(at), ctypes.c_size_t(1 << 22), 1)\n"
        "make()\nmake()\n"
    )
    path = tmp_path / "s.npz"
    done = stand_in.attach("-o", path, "--", sys.executable, script)
    assert done.returncode == 0, done.stderr
    names = [life.name for life in load(path).lifetimes]
    assert names == ["script.py:6", "script.py:6 < script.py:8"]


MEASURED = (
    "import resource, subprocess, sys; code = subprocess.call(sys.argv[1:]);"
    "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss); sys.exit(code)"
)
"""A program that runs a command, and prints the most memory that a process of it took."""


@pytest.mark.system
def test_many_allocations_stay_within_bounds(stand_in, tmp_path):
    path = tmp_path / "s.npz"
    done = stand_in.attach("-o", path, "--", stand_in.program, "many", 200_000, before=MEASURED)
    assert done.returncode == 0, done.stderr
    session = load(path)
    assert len(session.lifetimes) == 1024
    assert any("198,976 smaller allocations" in note for note in session.notes)
    assert path.stat().st_size < MB
    assert int(done.stdout.splitlines()[-1]) < 1 << 20  # KiB


@pytest.mark.system
def test_records_that_find_no_room_are_counted(stand_in, tmp_path):
    path = tmp_path / "s.npz"
    variables = stand_in.variables | {"LOUVAIN_UM_ATTACH_LIMIT": str(8 * MB)}
    arguments = ("-o", path, "--", stand_in.program, "many", 200_000)
    assert not stand_in._replace(variables=variables).attach(*arguments).returncode
    session = load(path)
    assert session.metadata["complete"]
    dropped = session.metadata["about_sources"]["cupti"]["dropped"]
    assert 200_000 - 8 * MB // 64 <= dropped < 200_000
    assert any(note.startswith(f"{dropped:,} records found no room") for note in session.notes)


@pytest.mark.system
def test_a_full_temporary_folder_is_reported(stand_in, tmp_path):
    path = tmp_path / "s.npz"
    full = "import resource, os, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, -1));"
    full += "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
    full += "os.execvp(sys.argv[1], sys.argv[1:])"
    done = stand_in.attach("-o", path, "--", sys.executable, "-c", full, stand_in.program, "three")
    assert (done.returncode, done.stdout) == (3, "checksum 42\n")
    assert done.stderr.count("\n") == 1
    assert "records cannot be read; if " in done.stderr
    assert "TMPDIR" in done.stderr
    assert not path.exists()


def test_demanglers_say_which_arguments_are_constant():
    assert constant_arguments("f(float const*, unsigned int*, unsigned long)") == [
        True, False, False,
    ]  # fmt: skip
    assert constant_arguments("void f<g<int, 2>>(pair<int, int> const*, char*)") == [True, False]
    assert constant_arguments("plain") is None


def test_sites_without_debug_information_keep_symbol_or_offset(monkeypatch):
    monkeypatch.setattr(attach_sites.shutil, "which", lambda name: None)
    sites = Sites()
    runtime = "/x/app+0x90 cudaMallocManaged\n"
    assert sites.name(1, f"{runtime}/x/app+0x10 main\n") == "app:main+0x10"
    assert sites.name(2, "/x/app+0x20 \n") == "app+0x20"
    assert sites.name(3, "") == "allocation 3"


@pytest.mark.system
def test_one_process_resolves_the_addresses_of_a_file(stand_in, tmp_path):
    listed = subprocess.run(["nm", stand_in.folder / "fixed"], capture_output=True, text=True)
    at = {row.split()[2]: f"0x{row.split()[0]}" for row in listed.stdout.splitlines()
          if len(row.split()) == 3}  # fmt: skip
    resolver = attach_sites.Resolver(str(stand_in.folder / "fixed"))
    process = resolver.process
    for name in ("three", "phases", "shift", "three"):
        function, place = resolver.lines(at[name])
        assert function == name
        assert "app.c:" in place
    assert resolver.lines("0x1") == ["??", "??:0"]
    assert resolver.process is process
    resolver.close()
    assert process.returncode is not None
    assert resolver.lines(at["three"]) == []
    absent = attach_sites.Resolver(str(tmp_path / "none"))
    assert absent.lines("0x1") == []


def test_answers_place_numbered_arrays_by_name(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text('others = "managed"\n[arrays]\n"a.cu:1 (2)" = "read_mostly"\n')
    assert answer(find_policy(str(file)), "a.cu:1") == "-1 0 1.000000\n1 3 1.000000\n"
