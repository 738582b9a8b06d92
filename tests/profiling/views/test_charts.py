from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from louvain_um.errors import LouvainUmError
from louvain_um.profiling.session import Session
from louvain_um.profiling.views.charts import charts, save
from louvain_um.profiling.views.sweep import Sweep
from tests.profiling.views.made import cpu_run, paged_run, sweep_rows

pytest.importorskip("matplotlib")


def test_the_charts_of_a_run():
    found = charts([paged_run(), cpu_run()])
    assert list(found) == ["access-by-group", "faults-by-group", "access-map", "fault-map",
                           "iteration-times", "residency"]  # fmt: skip
    # All groups and one panel each, as in the thesis, with the names of arrays beside them.
    panels = [axes for axes in found["fault-map"].axes if axes.images]
    assert [axes.get_title() for axes in panels][:2] == ["All groups", "Graph's CSR"]
    assert "targets.0" in [tick.get_text() for tick in panels[0].get_yticklabels()]
    drawn = np.ma.getdata(panels[0].images[0].get_array())
    assert drawn.sum() == paged_run().summary()["gpu_faults"]
    assert len(found["iteration-times"].axes[0].lines) == 2
    assert "measured (engine)" in found["iteration-times"].axes[0].get_ylabel()
    shares = found["faults-by-group"].axes[0].patches
    assert sum(patch.get_width() for patch in shares) == pytest.approx(100)


def test_a_run_without_a_gpu_has_fewer():
    assert list(charts([cpu_run()])) == ["iteration-times", "residency"]
    assert charts([Session()]) == {}


def test_files_are_written_whole(tmp_path: Path):
    paths = save([cpu_run()], tmp_path / "charts", suffix=".svg")
    assert [path.name for path in paths] == ["iteration-times.svg", "residency.svg"]
    assert all(path.read_text().rstrip().endswith("</svg>") for path in paths)
    with pytest.raises(LouvainUmError, match="exists already"):
        save([cpu_run()], tmp_path / "charts", suffix=".svg")


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
    bars = found["times-0-uk-2002-like"].axes[0].patches
    assert len(bars) == 6  # adv9 was not feasible
