import numpy as np
import pytest

from louvain_um.errors import LouvainUmError
from louvain_um.profiling import Session
from louvain_um.profiling.simulator import Array, Launch, Touches, Trace, simulate
from louvain_um.profiling.simulator.to_session import session_of
from louvain_um.profiling.sweep.results import Sweep
from louvain_um.profiling.views.charts import DOTS, charts, save, share_chart
from louvain_um.profiling.views.html.sweep_parts import sweep_parts
from louvain_um.profiling.views.session.analysis import SessionAnalysis
from louvain_um.profiling.views.session.tables import by_group
from louvain_um.profiling.views.sweep.cost_breakdown import fastest
from tests.profiling.views.made import cpu_run, paged_run, sweep_rows

pytest.importorskip("matplotlib")


def test_the_charts_of_a_run():
    found = charts([paged_run(), cpu_run()])
    assert list(found) == ["access-by-group", "faults-by-group", "access-map", "fault-map",
                           "level-times", "iteration-times", "residency"]  # fmt: skip
    # All groups and one panel each, as in the thesis, with the names of arrays next to them.
    panels = [axes for axes in found["fault-map"].axes if axes.images]
    assert [axes.get_title() for axes in panels][:2] == ["All groups", "Graph's CSR"]
    assert "targets.0" in [tick.get_text() for tick in panels[0].get_yticklabels()]
    drawn = np.ma.getdata(panels[0].images[0].get_array())
    assert drawn.sum() == paged_run().summary()["gpu_faults"]
    # No cell is lost between dots, in whichever panel.
    found["fault-map"].set_dpi(DOTS)
    found["fault-map"].draw_without_rendering()
    for axes in panels:
        rows, columns = axes.images[0].get_array().shape
        box = axes.get_window_extent()
        assert rows <= box.height
        assert columns <= box.width
    assert len(found["iteration-times"].axes[0].lines) == 2
    assert "measured (engine)" in found["iteration-times"].axes[0].get_ylabel()
    shares = found["faults-by-group"].axes[0].patches
    assert sum(patch.get_width() for patch in shares) == pytest.approx(100)


def test_one_session_has_every_form_of_the_thesis(tmp_path):
    data = Array(name="targets.0", group="graph", nbytes=8 << 20)
    queue = Array(name="queue", group="scratch", nbytes=2 << 20, starts="nowhere")
    scan = Touches.runs([0, 1], 0, [data.pages, queue.pages])
    steps = [Launch(touches=scan, phase="move", level=0, iteration=at) for at in range(3)]
    trace = Trace((data, queue), (*steps, Launch(touches=scan, phase="aggregate", level=0)))
    run = session_of(trace, simulate(trace, "p4000", capacity=4 << 20), policy="base")
    found = charts([run])
    assert list(found) == ["access-by-group", "faults-by-group", "access-map", "fault-map",
                           "level-times", "iteration-times", "residency"]  # fmt: skip
    drawn = np.ma.getdata(found["access-map"].axes[0].images[0].get_array())
    assert drawn.sum() == pytest.approx(4 * (10 << 20) / 4)
    table = by_group(SessionAnalysis(run))
    assert {row["group"]: row["accesses"] for row in table.rows} == {
        "graph": 4 * (8 << 20) // 4, "scratch": 4 * (2 << 20) // 4,
    }  # fmt: skip


def test_a_run_without_a_gpu_has_fewer():
    assert list(charts([cpu_run()])) == ["level-times", "iteration-times", "residency"]
    assert charts([Session()]) == {}


def test_files_are_written_whole(tmp_path):
    paths = save([cpu_run()], tmp_path / "charts", suffixes=[".svg"])
    assert [path.name for path in paths] == [
        "level-times.svg",
        "iteration-times.svg",
        "residency.svg",
    ]
    assert all(path.read_text().rstrip().endswith("</svg>") for path in paths)
    with pytest.raises(LouvainUmError, match="exists already"):
        save([cpu_run()], tmp_path / "charts", suffixes=[".svg"])


def test_the_charts_of_a_sweep():
    groups = [
        {"graph": "uk-2002-like", "group": name, "peak_bytes": 5, "accesses": 10, "gpu_faults": 4}
        for name in ("graph", "scratch")
    ]
    iterations = [
        {"graph": "karate", "oversubscription": rate, "number": at, "seconds": 0.1 * at}
        for rate in (0, 30) for at in (1, 2)
    ]  # fmt: skip
    sweep = Sweep.of(sweep_rows(), groups=groups, iterations=iterations)
    found = charts([], sweep)
    assert list(found) == ["gains", "times-0-uk-2002-like", "times-1-karate", "access-shares",
                           "fault-shares", "iterations-0-karate"]  # fmt: skip
    lines = found["times-0-uk-2002-like"].axes[0].lines
    assert [line.get_label() for line in lines] == ["base", "adv2", "auto"]  # adv9 was not feasible


def test_means_of_a_study_leave_out_graphs_of_one_oversubscription():
    large = [
        row | {"graph": "sk-2005", "oversubscription": 75}
        for row in sweep_rows()
        if row["graph"] == "karate" and row["oversubscription"] == 30
    ]
    assert large
    for scale, rates in ((0.125, {0, 30}), (None, {0, 30, 75})):
        sweep = Sweep.of([row | {"scale": scale} for row in (*sweep_rows(), *large)])
        lines = charts([], sweep)["gains"].axes[0].lines
        assert {
            x for line in lines if line.get_label() == "auto" for x in line.get_xdata()
        } == rates
        assert ("75 %" in fastest(sweep).finding) == (75 in rates)
        shown = {item.name: item for part in sweep_parts(sweep) for item in part.items}
        assert ("75 %" in shown["gain-heat-0"].svg) == (75 in rates)


def test_groups_of_every_bar_are_in_the_legend():
    chart = share_chart({"a": {"graph": 1, "hash": 2}, "b": {"scratch": 1}}, "accesses", "counted")
    assert len(chart.axes[0].get_legend().get_texts()) == 3


def test_every_machine_has_a_panel_and_every_line_its_name():
    policies = [f"adv{i}" for i in range(1, 10)] + ["base", "auto"]
    rows = [{**sweep_rows()[0], "policy": policy, "oversubscription": rate, "gpu": gpu,
             "seconds": 1.0 + at / 100}
            for gpu in ("p4000", "rtx3060ti") for at, policy in enumerate(policies)
            for rate in (0, 30)]  # fmt: skip
    figure = charts([], Sweep.of(rows))["times-0-uk-2002-like"]
    assert [axes.get_title() for axes in figure.axes] == ["modelled, p4000", "modelled, rtx3060ti"]
    assert len({axes.get_ylim() for axes in figure.axes}) == 1
    for axes in figure.axes:
        names = {text.get_text(): text.get_position()[1] for text in axes.texts}
        assert set(names) == {line.get_label() for line in axes.lines} == set(policies)
        places = sorted(names.values())
        assert min(np.diff(places)) > 0
