"""Names of arrays: those of earlier versions are understood wherever files are read."""

from __future__ import annotations

import numpy as np
import pytest

from louvain_um.core.array_names import EARLIER, ROLES, current_name, level_of, role_of
from louvain_um.placement.policy.policy_files import read_policy
from louvain_um.profiling.simulator import Array, Launch, Touches, Trace, load_trace
from louvain_um.profiling.simulator.layout import placements_of
from louvain_um.profiling.sweep.replay_tables import unknown_arrays


@pytest.mark.parametrize(
    ("name", "now"),
    [("parts.0.1", "refined.0.1"), ("giant keys", "hub_keys"), ("woken", "next_active"),
     ("aggregate room_targets.2", "aggregate_chunk_targets.2"), ("targets.1.3", "targets.1.3"),
     ("mine", "mine")],
)  # fmt: skip
def test_earlier_names_are_brought_up_to_date(name, now):
    assert current_name(name) == now
    assert current_name(now) == now


def test_names_are_in_snake_case_and_lead_nowhere_twice():
    for now in (*EARLIER.values(), *ROLES):
        assert now.replace("_", "").isalnum()
        assert now == now.lower()
        assert now not in EARLIER


def test_roles_and_levels_follow_from_names():
    assert (role_of("weights.1"), level_of("weights.1")) == ("weights", 1)
    assert (role_of("labels.2.0"), level_of("labels.2.0")) == ("labels", None)
    assert (role_of("weights.partial"), level_of("weights.partial")) == ("weights", None)
    assert (role_of("mine.7"), level_of("mine.7")) == ("other", None)


def test_policies_and_traces_of_earlier_versions_are_read(tmp_path):
    file = tmp_path / "old.toml"
    file.write_text('[arrays]\n"parts" = "host_mapped"\n"targets.0" = "split(0.5)"\n')
    assert set(read_policy(file).arrays) == {"refined", "targets.0"}
    array = Array(name="giant keys", group="hash", nbytes=4096)
    steps = (Launch(touches=Touches.runs(0, 0, 1)),)
    Trace((array,), steps, about={"method": "louvain"}).save(tmp_path / "old.npz")
    found = load_trace(tmp_path / "old.npz")
    assert found.arrays[0].name == "hub_keys"
    assert np.array_equal(found.steps[0].touches.array, [0])
    Trace((array,), steps).save(tmp_path / "other.npz")
    assert load_trace(tmp_path / "other.npz").arrays == (array,)  # of another program


@pytest.mark.parametrize("name", ["parts", "cuts", "goals", "blocks", "parts.0"])
def test_policies_place_arrays_of_other_programs_under_their_own_names(tmp_path, name):
    file = tmp_path / "mine.toml"
    file.write_text(f'others = "managed"\n[arrays]\n"{name}" = "host_mapped"\n')
    mine = Array(name=name, group="graph", nbytes=4096)
    other = Array(name="other", group="graph", nbytes=4096)
    Trace((mine, other), ()).save(tmp_path / "mine.npz")
    trace = load_trace(tmp_path / "mine.npz")
    assert placements_of(trace.arrays, str(file)) == {name: "host_mapped", "other": "managed"}
    assert unknown_arrays(trace, [str(file)], "g") == []


def test_policies_tell_an_earlier_name_and_the_present_one_apart(tmp_path):
    file = tmp_path / "both.toml"
    file.write_text('[arrays]\n"parts" = "host_mapped"\n"refined" = "managed"\n')
    arrays = [Array(name=name, group="hash", nbytes=4096) for name in ("parts", "refined")]
    assert placements_of(arrays, str(file)) == {"parts": "host_mapped", "refined": "managed"}
