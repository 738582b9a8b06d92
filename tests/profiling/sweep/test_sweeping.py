import networkx as nx
import pytest

import louvain_um as lu
from louvain_um.errors import LouvainUmError, OptionError
from louvain_um.placement.policy.find import find_policy
from louvain_um.placement.program import Atomic, Gather, Phase, Program, ProgramArray, Stream
from louvain_um.profiling.access.recorded_plans import trace_of
from louvain_um.profiling.sweep import Settings, Subject
from louvain_um.profiling.sweep import sweep as sweep_of
from louvain_um.profiling.sweep.files import read
from louvain_um.profiling.sweep.replay import run


def ranks(passes=5):
    return Program(
        name="ranks",
        arrays=[
            ProgramArray(name="targets", shape=4 << 20, from_host=1, reads=Stream(passes)),
            ProgramArray(name="rank", shape=1 << 20, dtype="f4", reads=Gather(1e7)),
        ],
        phases=[Phase(name="iterate", passes=passes)],
    )


def test_a_program_is_swept_as_its_runs_one_by_one():
    found = lu.sweep(
        program=ranks(), policies=["base", "adv1"], budgets=["100%", "50%"], machine="p4000"
    )
    frame = found.to_frame().set_index(["policy", "oversubscription"])
    trace = trace_of(ranks())
    for policy in ("base", "adv1"):
        alone = run(trace, policy, "p4000", trace.peak_bytes // 2)
        assert frame.loc[(policy, 50.0), "seconds"] == alone.seconds
        assert frame.loc[(policy, 50.0), "evictions"] == alone.total("evictions")
    assert set(frame.evidence) == {"modelled"}
    assert str(found) == f"Sweep({len(frame)} runs of ranks)"


def test_budgets_of_a_program_may_be_bytes():
    half = trace_of(ranks()).peak_bytes // 2
    one, other = (
        lu.sweep(program=ranks(), policies="base", budgets=budget, machine="p4000").results[0]
        for budget in (half, "50%")
    )
    assert one["budget_bytes"] == pytest.approx(other["budget_bytes"], abs=1)


def test_a_folder_keeps_programs_and_graphs(tmp_path):
    graph = lu.as_graph(nx.karate_club_graph())
    subjects = [Subject(name="karate", graph=graph), Subject(name="ranks", graph=ranks())]
    settings = Settings(policies=("base",), rates=(0.0,), gpus=("p4000",))
    found = sweep_of(subjects, settings, tmp_path / "both")
    sizes = {row["graph"]: row.get("vertices") for row in read(tmp_path / "both").results}
    assert sizes == {"karate": 34, "ranks": None}
    assert any("ranks: a program" in note for note in found.notes)
    assert "ranks" in (tmp_path / "both" / "report.html").read_text()
    again = sweep_of(subjects, settings, tmp_path / "both")
    assert again.results == found.results
    other = [subjects[0], Subject(name="ranks", graph=ranks(6))]
    assert other[1].digest != subjects[1].digest


def test_graphs_and_algorithms_are_swept_by_the_same_call(tmp_path):
    options = {"policies": "base", "budgets": "100%", "machine": "p4000"}
    graph = nx.karate_club_graph()
    one = lu.sweep(graph, **options, folder=tmp_path / "kept")
    assert (tmp_path / "kept" / "report.html").exists()
    assert one.results[0]["vertices"] == 34
    search = lu.sweep({"karate": graph, "again": graph}, program="bfs", **options)
    assert {row["graph"] for row in search.results} == {"karate", "again"}


def test_a_program_comes_first_and_texts_name_several():
    found = lu.sweep(ranks(), policies="base,auto", budgets="100%, 50%", machine="h200,p4000")
    assert {row["policy"] for row in found.results} == {"base", "auto", "best"}
    assert {row["gpu"] for row in found.results} == {"h200", "p4000"}
    same = lu.sweep(
        program=ranks(), policies=["base", "auto"], budgets=["100%", "50%"],
        machine=["h200", "p4000"],
    )  # fmt: skip
    assert found.results == same.results
    one = lu.sweep(ranks(), policies=find_policy("base"), budgets="50%", machine="h200")
    assert one.results[0]["policy"] == "base"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "or a Program of your own"),
        ({"graph": nx.path_graph(3), "program": ranks()}, "not both"),
        ({"graph": nx.path_graph(3), "program": "walk"}, "walk"),
        ({"program": ranks(), "policies": ["nothing"]}, "nothing"),
        ({"program": ranks(), "budgets": "200%"}, "at most 100%"),
        ({"program": ranks(), "budgets": "much"}, "must be a size"),
        ({"program": ranks(), "machine": "abacus"}, "abacus"),
        (
            {"graph": nx.path_graph(3), "budgets": "1GiB", "machine": "h200"},
            "a share here, such as 70%",
        ),
        ({"program": ranks(), "budgets": None}, "budgets must be text, or a list"),
        ({"program": ranks(), "policies": []}, "policies must name at least one"),
    ],
)
def test_bad_calls_are_one_line(options, message):
    with pytest.raises(LouvainUmError, match=message) as error:
        lu.sweep(**options)
    assert "\n" not in str(error.value)


def test_a_declared_program_is_not_measured(tmp_path):
    settings = Settings(policies=("base",), rates=(0.0,), device="cuda")
    with pytest.raises(OptionError, match="no kernels to measure"):
        sweep_of([Subject(name="ranks", graph=ranks())], settings, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_programs_of_other_kinds_of_accesses_are_other_programs():
    writes = Gather(5), Atomic(5), {"run": (Stream(), Gather(5))}, {"run": (Stream(), Atomic(5))}
    digests = [
        Subject(
            name="sums",
            graph=Program(name="p", arrays=[ProgramArray(name="a", shape=99, writes=each)]),
        ).digest
        for each in (*writes, *writes)
    ]
    assert len(set(digests)) == 4
    assert digests[:4] == digests[4:]
