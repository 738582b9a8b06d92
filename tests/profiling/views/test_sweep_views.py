import re

import pandas as pd
import pytest

from louvain_um.errors import LouvainUmError
from louvain_um.profiling.sweep.files import is_results, read
from louvain_um.profiling.sweep.results import Sweep, gains
from louvain_um.profiling.thesis import tables
from louvain_um.profiling.views import terminal
from louvain_um.profiling.views.html import render
from louvain_um.profiling.views.sweep import cost_breakdown
from tests.profiling.views.made import sweep_rows

GROUPS = [
    {"graph": "uk-2002-like", "group": name, "peak_bytes": size, "accesses": 10 * size,
     "gpu_faults": size, "oversubscription": 30, "evidence": "modelled"}
    for name, size in (("graph", 1000), ("hash", 10), ("community", 100), ("scratch", 500))
]  # fmt: skip


def test_every_part_of_a_wide_table_distinguishes_its_rows():
    table = tables.all_runs(Sweep.of(sweep_rows()))
    parts, _ = terminal.layout(table, 70)
    assert len(parts) > 1
    for columns in parts:
        reported = [tuple(row.get(c.key) for c in columns if c in parts[1]) for row in table.rows]
        assert "oversubscription" in [column.key for column in columns]
        assert len(set(reported)) == len(table.rows)


def test_modelled_runs_are_listed_with_their_range():
    def listed(rows):
        return [column.head for column in tables.all_runs(Sweep.of(rows)).used()]

    ranges = [row | {"least_seconds": 0.5, "most_seconds": 2.0} for row in sweep_rows()]
    at = listed(ranges).index("seconds")
    assert listed(ranges)[at + 1 : at + 3] == ["least seconds", "most seconds"]
    assert "least seconds" not in listed(sweep_rows())  # as of measured ones


def test_gains_are_means_over_graphs():
    rows = sweep_rows()
    assert gains(Sweep.of(rows).results) == {
        "adv2": {0.0: 0.5, 30.0: 8.0}, "auto": {0.0: 1.0, 30.0: 16.0},
    }  # fmt: skip
    for row in rows:
        if row["graph"] == "karate" and row["policy"] == "adv2":
            row["seconds"] /= 3
    assert gains(Sweep.of(rows).results)["adv2"][30.0] == pytest.approx((8 + 24) / 2)


def test_loading_counts_in_gains_of_measured_runs():
    rows = [row | {"evidence": "measured", "load_seconds": 1.0} for row in sweep_rows()]
    assert gains(row for row in rows if row["graph"] != "karate") == {
        "adv2": {0: 2 / 3, 30: 9 / 2}, "auto": {0: 1.0, 30: 9 / 1.5},
    }  # fmt: skip
    modelled = [row | {"load_seconds": 0.25} for row in sweep_rows()]
    assert gains(modelled)["auto"][30] == 16.0


def test_measured_and_modelled_are_never_mixed():
    rows = sweep_rows()
    measured = [{**row, "evidence": "measured", "seconds": row["seconds"] and row["seconds"] / 2,
                 "gpu": "H200"} for row in rows if row["policy"] != "base"]  # fmt: skip
    table = tables.mean_gains(Sweep.of([*rows, *measured]))
    assert {row["from"] for row in table.rows} == {"modelled"}
    grids = tables.grids(Sweep.of([*rows, *measured]))
    assert [grid.evidence for grid in grids if "karate" in grid.title] == [
        "seconds measured, H200", "seconds modelled",
    ]  # fmt: skip
    page = render((), sweep=Sweep.of([*rows, *measured]))
    # A panel for each, with one scale, and every line named at its end.
    panels = re.findall(r'<figure id="time-chart-.*?</figure>', page, re.DOTALL)
    assert [re.search(r'evidence">([^<]*)', panel)[1] for panel in panels] == [
        "seconds measured, H200", "seconds modelled",
    ] * 2  # fmt: skip
    assert [[name for _, name in ends(panel)[0]] for panel in panels[2:]] == [
        ["adv2", "auto"], ["base", "adv2", "auto"],
    ]  # fmt: skip


def test_the_thesis_s_figures_are_shown_on_its_study_alone():
    rows = [{**row, "graph": row["graph"].replace("-like", ""), "gpu": "p4000"}
            for row in sweep_rows()]  # fmt: skip
    named = Sweep.of(rows, groups=[{**row, "graph": "uk-2002"} for row in GROUPS])
    study = Sweep.of([{**row, "scale": 0.125} for row in rows], groups=named.groups)
    for sweep, shown in ((named, False), (study, True)):
        assert ("published" in render((), sweep=sweep)) is shown
        found = {table.name: table for table in tables.tables(sweep)}
        own = {"in-core": "2.1", "machines": "4.1", "datasets": "4.2", "policies": "4.5"}
        for name, number in own.items():
            assert (name in found) is shown
            assert (f"Table {number}" in render((), sweep=sweep)) is shown
        for name, figure in (("gains", "4.6"), ("peaks", "4.3"), ("accesses", "4.4")):
            froms = {str(row["from"]).split()[0] for row in found[name].rows}
            assert ("published" in froms) is shown
            assert (figure in found[name].title) is shown


def test_why_a_policy_won():
    rows = [
        {**row, "seconds_faults": (row["seconds"] or 0) * share, "seconds_remote_random": 0.25,
         "seconds_of_plan": 9.0, "seconds_hidden": 9.0}
        for row in sweep_rows() for share in ([0.9] if row["policy"] == "base" else [0.1])
    ]  # fmt: skip
    sweep = Sweep.of(rows)
    assert cost_breakdown.terms(sweep.results[0]) == {"faults": 0.9, "remote random": 0.25}
    first, second = cost_breakdown.explanations(sweep)
    assert first == "At 0 % (modelled), nothing beat base."
    assert second.startswith("At 30 % (modelled), auto took 750.00 ms against base's 12.00 s")
    assert "saved 10.73 s of faults" in second  # of 8 and 16 s by base, 0.5 and 1 by auto
    assert "remote" not in second
    assert cost_breakdown.explanations(Sweep.of(sweep_rows())) == ()
    page = render((), sweep=sweep)
    assert "Cost breakdown at 30 %" in page
    assert "saved 10.73 s of faults" in page


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_folder_comes_back(tmp_path, suffix):
    for name, table in (("results", sweep_rows()), ("groups", GROUPS)):
        frame = pd.DataFrame(table)
        path = tmp_path / f"{name}{suffix}"
        frame.to_csv(path, index=False) if suffix == ".csv" else frame.to_parquet(path)
    (tmp_path / "notes.txt").write_text("scaled down to 1/100\n")
    assert is_results(tmp_path)
    sweep = read(tmp_path)
    assert sweep == read(tmp_path / f"results{suffix}")
    assert sweep.notes == ("scaled down to 1/100",)
    ours = Sweep.of(sweep_rows(), groups=GROUPS)
    assert [dict(row) for row in sweep.results] == [dict(row) for row in ours.results]
    assert sweep.groups == ours.groups
    assert [row["feasible"] for row in sweep.results][-1] is False
    assert sweep.results[-1]["seconds"] is None


def test_any_table_will_do():
    rows = sweep_rows()
    frame = pd.DataFrame(rows)
    columns = {key: [row[key] for row in rows] for key in rows[0]}
    assert Sweep.of(frame) == Sweep.of(rows) == Sweep.of(columns)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"seconds": "soon"}, "seconds of row 1 is 'soon'; run the sweep again"),
        ({"feasible": "perhaps"}, "feasible of row 1 is 'perhaps'; run the sweep again"),
    ],
)
def test_damage_is_named(change, said):
    with pytest.raises(LouvainUmError, match=said):
        Sweep.of([{**sweep_rows()[0], **change}])
    missing = sweep_rows()[0]
    del missing["evidence"]
    with pytest.raises(LouvainUmError, match="no column 'evidence'"):
        Sweep.of([missing])


def ends(page):
    charts = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    return [re.findall(r'class="end" data-colour="(#\w+)"[^>]*>([^<]*)', one) for one in charts]


def test_figures_of_several_graphs_are_means():
    terms = ("faults", "migration", "write_back", "hidden", "remote_sequential", "remote_random",
             "remote_atomic", "remote_barrier")  # fmt: skip

    def run(graph, policy, seconds, faults, evictions, remote):
        return dict.fromkeys((f"seconds_{term}" for term in terms), 0.0) | {
            "graph": graph, "policy": policy, "oversubscription": 30.0, "gpu": "h200",
            "feasible": True, "seconds": seconds, "seconds_faults": faults,
            "evictions": evictions, "bytes_remote": remote, "bytes_to_device": 0,
            "bytes_to_host": 0, "fault_groups": 0, "evidence": "modelled",
        }  # fmt: skip

    rows = [run("a", "base", 2.0, 1.0, 100, 0), run("b", "base", 4.0, 3.0, 40, 0),
            run("a", "adv2", 1.0, 0.0, 20, 1 << 20),
            run("b", "adv2", 1.0, 0.0, 0, 3 << 20)]  # fmt: skip
    (both,) = cost_breakdown.explanations(Sweep.of(rows))
    assert "adv2 took 1.00 s against base's 3.00 s on average: it saved 2.00 s of faults" in both
    assert both.endswith("; evictions: 10 instead of 70; read in place: 2.0 MiB.")
    (one,) = cost_breakdown.explanations(Sweep.of(rows[::2]))
    assert "saved 1.00 s of faults; evictions: 20 instead of 100; read in place: 1.0 MiB." in one


def test_without_pyarrow_the_csv_is_read(tmp_path, monkeypatch):
    from louvain_um.profiling.sweep import files

    pd.DataFrame(sweep_rows()).to_csv(tmp_path / "results.csv", index=False)
    (tmp_path / "results.parquet").write_bytes(b"never looked at")
    monkeypatch.setattr(files, "find_spec", lambda name: None)
    assert len(read(tmp_path).results) == len(sweep_rows())


def test_a_heat_table_marks_what_was_not_run():
    from louvain_um.profiling.views.html import svg

    chart = str(svg.heat(["<a>"], ["0 %", "30 %"], [[2.0, float("nan")]]))
    assert "&lt;a&gt; at 30 %: not run" in chart
    assert chart.count("<rect") == 2
