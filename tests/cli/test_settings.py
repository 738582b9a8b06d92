"""Every saved result records the options on which its labels depend."""

import json

import numpy as np
import pytest
from pyarrow import parquet

import louvain_um as lu
from louvain_um.options import OF_DETECTION, Options

CHOSEN = {"effort": "fast", "n_iterations": 2, "best_of": 2, "seed": 3}
FLAGS = "--effort=fast", "--n-iterations=2", "--best-of=2", "--seed=3", "--device=cpu"
OF_RUN = {"resolution": 0.9, "threshold": 1e-5, "max_level": 4, "max_size": 20}


@pytest.fixture(scope="module")
def result():
    g = lu.read_graph("example:karate")
    return lu.louvain(g, **CHOSEN, **OF_RUN, initial=np.arange(34), fixed=[0], device="cpu")


def test_a_result_records_all_options_of_detection(result, tmp_path):
    found = result.provenance["options"]
    assert set(found) == {"method", *OF_DETECTION}
    assert found | CHOSEN | OF_RUN == found
    assert found["initial"]
    assert found["fixed"]
    result.save(tmp_path / "r.npz")
    assert lu.Communities.load(tmp_path / "r.npz").provenance["options"] == found


@pytest.mark.parametrize("effort", ["default", "best"])
def test_what_initial_communities_were_is_recorded_in_whatever_form_they_came(effort):
    g = lu.read_graph("example:karate")
    forms = np.arange(34) // 2, {v: v // 2 + 7 for v in range(34)}, np.arange(34) // 3
    one, same, other = (
        lu.louvain(g, initial=form, effort=effort, device="cpu").provenance["options"]["initial"]
        for form in forms
    )
    assert one == same != other


def test_label_files_record_the_options(result, tmp_path):
    for suffix in ("json", "npz", "parquet"):
        lu.write_labels(result, tmp_path / f"l.{suffix}")
    meta = parquet.read_schema(tmp_path / "l.parquet").metadata
    for about in (
        json.loads((tmp_path / "l.json").read_text()),
        json.loads(np.load(tmp_path / "l.npz")["settings"].item()),
        json.loads(meta[b"louvain-um"]),
    ):
        assert about["options"] == result.provenance["options"]


def test_trackers_and_ensembles_record_theirs():
    g = lu.read_graph("example:karate")
    found = lu.ensemble(g, runs=2, **CHOSEN, device="cpu").consensus.provenance["options"]
    assert found | CHOSEN == found
    tracker = lu.Tracker(lu.DynamicGraph(g), **CHOSEN, renew=0.5)
    found = tracker.communities.provenance["options"]
    assert found | CHOSEN | {"renew": 0.5} == found


def test_commands_record_the_options(run, tmp_path):
    def of_json(command, *more):
        return run(command, "example:karate", *FLAGS, "--json", "-q", *more).json["options"]

    profile = tmp_path / "profile"
    asked = Options(**CHOSEN).settings()
    assert of_json("detect") == asked | {"initial": None, "fixed": None}
    assert of_json("ensemble", "--runs", "2") | asked == of_json("ensemble", "--runs", "2")
    written = of_json("resolution", "--points", "2", "--runs", "1", "-o", profile)
    assert written == {name: asked[name] for name in asked if name != "resolution"}
    assert json.loads((profile / "profile.json").read_text())["options"] == written


def test_sessions_and_their_pages_record_the_options(run, tmp_path):
    from louvain_um.profiling import load

    session, page, drawn = (tmp_path / name for name in ("s.npz", "s.html", "d.html"))
    printed = run("profile", "example:karate", *FLAGS, "-o", session, "--json").json["options"]
    assert load(session).metadata["options"] == printed == printed | CHOSEN
    assert run("report", session, "-o", page).code == 0
    assert run("draw", "example:karate", *FLAGS, "-o", drawn).code == 0
    for text in (page.read_text(), drawn.read_text()):
        assert all(
            said in text for said in ("effort fast", "n iterations 2", "best of 2", "seed 3")
        )
