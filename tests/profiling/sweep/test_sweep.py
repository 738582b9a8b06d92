import csv
import json
from dataclasses import replace

import numpy as np
import pytest

from louvain_um.errors import LouvainUmError, OptionError
from louvain_um.generators import lfr
from louvain_um.placement.machine.profiles import load_machine
from louvain_um.placement.policy.policy import Policy
from louvain_um.profiling.access.recorded_plans import auto_placements, declared, peak_of
from louvain_um.profiling.access.recorder import record
from louvain_um.profiling.access.recordings import recording_in
from louvain_um.profiling.record.profiler import profile
from louvain_um.profiling.simulator import Access, Array, Launch, Touches, Trace, simulate
from louvain_um.profiling.sweep.files import SweepFolder, is_partial, read
from louvain_um.profiling.sweep.points import parse_policies, parse_rates
from louvain_um.profiling.sweep.replay import Point, replay, run
from louvain_um.profiling.sweep.replay_tables import in_hindsight, iterations, remarks
from louvain_um.profiling.sweep.run import Settings, Subject, sweep
from louvain_um.profiling.thesis.stand_ins import GRAPHS, NON_FITTING_GRAPHS, stand_in
from louvain_um.profiling.views.sweep.cost_breakdown import fastest

RATES = (0.0, 50.0, 70.0)


@pytest.fixture(scope="module")
def graph():
    return lfr(60_000, seed=1).graph


@pytest.fixture(scope="module")
def trace(graph):
    return record(graph)


@pytest.fixture(scope="module")
def rows(trace):
    machine = load_machine("p4000")
    known = {}
    return {
        (policy, rate): replay(
            trace,
            Point(graph="g", policy=policy, oversubscription=rate, gpu="p4000"),
            machine,
            known=known,
        )[0]
        for policy in parse_policies("all,device")
        for rate in RATES
    }


def test_auto_is_the_plans_choice_and_hindsight_a_row_of_its_own(rows):
    best = {row["oversubscription"]: row for row in in_hindsight(list(rows.values()))}
    assert set(best) == set(RATES)
    for rate in RATES:
        auto = rows["auto", rate]
        assert auto["chosen"] == "plan"
        assert auto["seconds"] == auto["seconds_of_plan"]
        assert best[rate]["policy"] == "best"
        assert best[rate]["seconds"] == min(
            row["seconds"] for (_, at), row in rows.items() if at == rate and row["feasible"]
        )
        assert best[rate]["seconds"] == rows[best[rate]["chosen"], rate]["seconds"]
        assert auto["seconds"] <= 1.1 * rows["base", rate]["seconds"]


def test_hindsight_has_a_row_where_auto_cannot_run(rows):
    tried = [dict(rows[policy, 70.0]) for policy in ("auto", "adv2", "adv7")]
    tried[0] |= {"feasible": False, "seconds": None}
    (best,) = in_hindsight(tried)
    assert best["seconds"] == min(row["seconds"] for row in tried[1:])
    assert in_hindsight(tried[:1]) == []
    assert in_hindsight([{**row, "feasible": False} for row in tried]) == []


def test_a_run_has_at_most_the_memory_of_its_machine(trace):
    peak = peak_of(trace)
    small = replace(load_machine("h200"), name="small", memory_bytes=(512 << 20) + peak // 2)
    rows = []
    for rate in (0.0, 30.0, 50.0, 70.0):
        point = Point(graph="g", policy="auto", oversubscription=rate, gpu="small")
        rows.append(replay(trace, point, small)[0])
    assert [row["budget_bytes"] for row in rows] == [peak // 2] * 3 + [int(0.3 * peak)]
    assert {row["machine_bytes"] for row in rows} == {peak // 2}
    reported = [text for text in remarks(rows) if "that small has for a run" in text]
    assert [text.split(":")[0] for text in reported] == ["g at 0 to 30 %"]
    whole = replay(trace, replace(point, policy="device", oversubscription=0.0), small)[0]
    assert "machine small has no more: name another machine" in whole["reason"]
    tiny = replace(small, memory_bytes=64 << 20)
    with pytest.raises(OptionError, match="name another machine"):
        replay(trace, replace(point, gpu="tiny"), tiny)


def test_a_recording_is_declared_as_the_engine_does(trace, graph):
    arrays = {array.name: array for array in declared(trace)}
    targets = arrays["targets.0"]
    assert targets.size == graph.n_arcs
    assert "load" in targets.stages
    assert targets.accesses["move", "stream"] > graph.n_arcs
    assert "load" not in arrays["queue"].stages
    assert arrays["totals"].accesses["move", "atomic"] > 0
    low_scratch = auto_placements(
        tuple(arrays.values()), load_machine("p4000"), trace.peak_bytes // 2
    )
    assert low_scratch["labels"] == "device"
    away = {name for name, where in low_scratch.items() if where != "device"}
    assert away & {"targets.0", "aggregate_chunk_targets", "aggregate_chunk_weights"}


def test_what_is_loaded_is_distinguished(trace):
    plain = simulate(trace, "p4000", record=False)
    assert (plain.bytes_loaded, plain.load_seconds) == (0, 0.0)
    placed = simulate(trace, "p4000", placements={"graph": "device"}, record=False)
    pages = sum(a.pages for a in trace.arrays if a.group == "graph" and a.starts == "host")
    assert 0 < placed.bytes_loaded <= 4096 * pages
    assert 0 < placed.load_seconds < placed.seconds
    assert placed.load_seconds + placed.launch_seconds.sum() == pytest.approx(placed.seconds)


def test_times_of_iterations_add_up(trace):
    found = simulate(trace, "p4000", record=False)
    rows = iterations("g", found, 0.0)
    launched = sum(row["seconds"] for row in rows)
    assert launched == pytest.approx(found.seconds, rel=0.05)
    assert [row["number"] for row in rows] == list(range(1, len(rows) + 1))


def test_a_sweep_goes_on_where_it_was_killed(graph, tmp_path, monkeypatch):
    subject = Subject(name="g", graph=graph)
    settings = Settings(policies=("auto", "base", "adv2"), rates=(0.0, 50.0), gpus=("p4000",))
    reported = []

    def stop(progress):
        reported.append(progress)
        if progress.done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sweep([subject], settings, tmp_path, tell=stop)
    lines = (tmp_path / "points.jsonl").read_text().splitlines()
    assert len(lines) == 3
    stopped = read(tmp_path)
    assert len(stopped.results) == 3
    assert "3 of 6 points are finished; missing are 3 of g modelled on p4000" in stopped.unfinished
    assert "repeat its command" in str(fastest(stopped))
    assert any(note.startswith("modelled: ") for note in stopped.notes)
    with (tmp_path / "points.jsonl").open("a") as file:
        file.write('{"row": {"gra')  # as a kill leaves it
    reported.clear()
    found = sweep([subject], settings, tmp_path, tell=reported.append)
    assert reported[-1].done == reported[-1].total == 6
    assert sum(step.text.startswith("g ") for step in reported) == 3
    assert any(step.left is not None for step in reported)
    assert [row["policy"] for row in found.results[:2]] == ["base", "base"]
    again = (tmp_path / "points.jsonl").read_text().splitlines()
    assert again[:3] == lines
    assert all(json.loads(line) for line in again)
    with (tmp_path / "results.csv").open() as file:
        written = [row["policy"] for row in csv.DictReader(file)]
    assert len(written) == 6 + written.count("best") == 8
    assert {row["group"] for row in found.groups} == {"graph", "hash", "community", "scratch"}
    assert "report.html" in {path.name for path in tmp_path.iterdir()}
    assert read(tmp_path) == found
    assert (found.unfinished, is_partial(tmp_path)) == ("", False)

    # A finished sweep replays nothing; another policy adds its points.
    monkeypatch.setattr("louvain_um.profiling.sweep.run.replay", None)
    assert sweep([subject], settings, tmp_path).results == found.results
    more = replace(settings, policies=(*settings.policies, "adv7"))
    with pytest.raises(TypeError):
        sweep([subject], more, tmp_path)
    assert "6 of 8 points are finished" in read(tmp_path).unfinished


@pytest.mark.parametrize(
    ("points", "unfinished", "reported"),
    [("", None, "no point of the sweep is finished"), ("hello\n", None, ":1: is damaged"),
     ('{"setup": {}}\n', None, ":1: is damaged, or another command's"),
     ("", "{}", "unfinished.json: is damaged"), ("", "[", "unfinished.json: is damaged")],
)  # fmt: skip
def test_what_cannot_be_read_of_a_stopped_sweep_is_reported(tmp_path, points, unfinished, reported):
    (tmp_path / "points.jsonl").write_text(points)
    if unfinished is not None:
        (tmp_path / "unfinished.json").write_text(unfinished)
    with pytest.raises(LouvainUmError, match=reported):
        read(tmp_path)


def test_one_command_measures_and_models_side_by_side(graph, tmp_path, monkeypatch):
    from louvain_um.profiling.sweep import measure, points

    def measured(graph, policy, rate, settings):
        return {"feasible": True, "reason": None, "seconds": 1.0, "bytes_to_device": 1 << 20,
                "bytes_to_host": 0, "bytes_remote": None, "fault_groups": 5, "faults": 9,
                "evictions": None}  # fmt: skip

    monkeypatch.setattr(points, "device_name", lambda device: "NVIDIA H200")
    monkeypatch.setattr(measure, "warm_up", lambda *_: None)
    monkeypatch.setattr(measure, "measure", measured)
    settings = Settings(policies=("base",), rates=(0.0, 50.0), gpus=("h200",), device="cuda:0")
    found = sweep([Subject(name="g", graph=graph)], settings, tmp_path)
    assert [row["evidence"] for row in found.results] == ["modelled"] * 2 + ["measured"] * 2
    assert found.results[0]["bytes_loaded"] == 0
    page = (tmp_path / "report.html").read_text()
    assert all(f"seconds {how}</p>" in page for how in ("measured, NVIDIA H200", "modelled, h200"))
    assert "The model against the machine" in page


def test_groups_are_reported_where_base_could_run(graph, tmp_path, monkeypatch):
    from louvain_um.profiling.sweep import run as module

    def refusing(trace, point, machine, **options):
        row, found = replay(trace, point, machine, **options)
        refused = point.policy == "base" and point.oversubscription > 0
        return ({**row, "feasible": False, "seconds": None}, None) if refused else (row, found)

    monkeypatch.setattr(module, "replay", refusing)
    settings = Settings(policies=("base",), rates=(0.0, 30.0), gpus=("h200",))
    found = sweep([Subject(name="g", graph=graph)], settings, tmp_path / "refused")
    assert {row["oversubscription"] for row in found.groups} == {0.0}
    assert len(found.groups) == 4
    monkeypatch.setattr(module, "replay", replay)
    found = sweep([Subject(name="g", graph=graph)], settings, tmp_path / "ran")
    assert [row["oversubscription"] for row in found.groups] == [30.0] * 4


def test_a_folder_of_something_else_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(LouvainUmError, match="holds other files"):
        SweepFolder(tmp_path)
    with (
        SweepFolder(tmp_path / "new") as store,
        pytest.raises(LouvainUmError, match="another run is writing"),
    ):
        SweepFolder(store.folder)


def test_settings_need_a_gpu_and_graphs_their_names(graph, tmp_path):
    with pytest.raises(OptionError, match="GPU"):
        Settings(policies=("base",), rates=(0.0,))
    settings = Settings(policies=("base",), rates=(0.0,), gpus=("p4000",))
    with pytest.raises(OptionError, match="rename"):
        sweep([Subject(name="g", graph=graph)] * 2, settings, tmp_path)


@pytest.mark.parametrize("text", ["", "a", "100", "-1", "10,,20", "nan"])
def test_oversubscriptions_are_percentages(text):
    with pytest.raises(LouvainUmError, match="percentages"):
        parse_rates(text)


def test_policies_may_be_objects_and_files(trace, graph, tmp_path):
    files = [tmp_path / "half.toml", tmp_path / "bus.toml"]
    files[0].write_text('graph = "split(0.5)"\n')
    files[1].write_text('graph = "host_mapped"\n')
    mine = Policy(name="mine", placements={"graph": "split(0.5)"})
    machine = load_machine("p4000")
    found = []
    for policy in (mine, files[0], str(files[0])):
        point = Point(graph="g", policy=policy, oversubscription=0.0, gpu="p4000")
        row = replay(trace, point, machine)[0]
        assert row["policy"] == (mine.name if policy is mine else "half")
        alone = simulate(trace, machine, policy=policy, capacity=row["budget_bytes"], record=False)
        found += [
            row["seconds"],
            alone.seconds,
            run(trace, policy, machine, row["budget_bytes"]).seconds,
        ]
    assert len({*found}) == 1
    settings = Settings(
        policies=(mine, files[0], str(files[1]), "base"), rates=(0.0,), gpus=("p4000",)
    )
    swept = sweep([Subject(name="g", graph=graph)], settings, tmp_path / "out")
    assert [row["policy"] for row in swept.results] == ["base", "mine", "half", "bus"]
    with pytest.raises(OptionError, match="two policies are called half"):
        replace(settings, policies=(files[0], str(files[0])))


def test_simulate_refuses_what_is_no_policy_of_its_own(trace):
    for options, reported in (
        ({"policy": "auto"}, "sweep.replay.run"),
        ({"policy": "adv10"}, "no memory policy"),
        ({"policy": "base", "placements": {"graph": "device"}}, "not both"),
    ):
        with pytest.raises(OptionError, match=reported):
            simulate(trace, "p4000", **options)


def other_program():
    """A program with groups and phases of its own: a hot array and a cold one, in two phases."""
    hot = Array(name="hot", group="mine", nbytes=8 << 20)
    cold = Array(name="cold", group="yours", nbytes=32 << 20)
    scan = Touches.runs(1, 0, cold.pages)
    jump = Touches.runs(0, 0, hot.pages, Access.GATHER, 5000)
    steps = [Launch(touches=scan, phase="begin")]
    steps += [Launch(touches=jump, phase="iterate", iteration=at) for at in range(5)]
    return Trace((hot, cold), tuple(steps))


def test_policies_place_the_arrays_of_every_program():
    trace = other_program()
    peak = trace.peak_bytes
    results = {
        name: run(trace, name, load_machine("h200"), peak).provenance["placements"]
        for name in ("base", "adv1", "device")
    }
    assert results == {
        name: {"hot": kind, "cold": kind}
        for name, kind in (("base", "managed"), ("adv1", "host_mapped"), ("device", "device"))
    }
    roles = Policy(name="mine", groups={"yours": "pinned"}, others="managed")
    run_ = run(trace, roles, load_machine("h200"), peak)
    assert run_.provenance["placements"] == {"hot": "managed", "cold": "pinned"}
    assert {run_.events.phases[p] for p in run_.events["phase"]} <= {"begin", "iterate"}


def test_auto_decides_for_another_programs_arrays_together():
    trace = other_program()
    point = Point(graph="mine", policy="auto", oversubscription=70, gpu="h200")
    row, simulation = replay(trace, point, load_machine("h200"))
    assert row["feasible"]
    assert row["chosen"] == "plan"
    assert simulation.provenance["placements"]["hot"] == "device"
    rival = replay(trace, replace(point, policy="base"), load_machine("h200"))[0]
    assert row["seconds"] <= rival["seconds"]


def test_policies_are_known(tmp_path):
    assert parse_policies("all")[0] == "base"
    assert parse_policies("adv2, adv2,base") == ("adv2", "base")
    paths = [tmp_path / folder / "mine.toml" for folder in "abc"]
    for path, where in zip(paths, ("device", "device", "pinned"), strict=True):
        path.parent.mkdir()
        path.write_text(f'graph = "{where}"\n')
    assert parse_policies(f"{paths[0]},{paths[1]}") == (str(paths[0]),)
    with pytest.raises(OptionError, match="both called mine"):
        parse_policies(f"{paths[0]},{paths[2]}")
    with pytest.raises(OptionError):
        parse_policies("adv10")
    with pytest.raises(OptionError):
        parse_policies(" , ")


def test_a_session_is_replayed_from_its_maps(graph, tmp_path):
    session = profile(graph, device="cpu")
    session.save(tmp_path / "s.npz")
    trace = recording_in(tmp_path / "s.npz")
    assert {"targets.0", "labels.0.0"} <= {array.name for array in trace.arrays}
    assert simulate(trace, "p4000", record=False).seconds > 0
    np.savez(tmp_path / "graph.npz", offsets=[0])
    assert recording_in(tmp_path / "graph.npz") is None


def test_stand_ins_have_their_originals_shape():
    for original in (*GRAPHS, *NON_FITTING_GRAPHS):
        graph = original.make(1 / 512)
        assert (graph.weights is not None) == original.weighted
        assert graph.n_arcs / graph.n_vertices == pytest.approx(original.degree, rel=0.35)
    with pytest.raises(OptionError, match="audikw_1"):
        stand_in("karate")


@pytest.mark.parametrize(
    "about",
    [{}, {"vertices": -1}, {"vertices": "x", "arcs": 1, "skew": 1}, {"vertices": 1, "skew": 1e300}],
)
def test_recordings_with_damaged_data_of_their_graph_are_refused(about):
    trace = Trace((Array(name="x", group="graph", nbytes=4096),), (), 1.0, about)
    with pytest.raises(LouvainUmError, match="record the graph again"):
        peak_of(trace)
