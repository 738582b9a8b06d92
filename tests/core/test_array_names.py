"""Roles and levels of the engines' arrays."""

import pytest

from louvain_um.core.array_spec import ROLES, level_of, role_of
from louvain_um.placement.policy.find import read_policy
from louvain_um.profiling.simulator import Array, Trace, load_trace
from louvain_um.profiling.simulator.layout import placements_of
from louvain_um.profiling.sweep.replay_tables import unknown_arrays


def test_names_are_in_snake_case():
    for name in ROLES:
        assert name.replace("_", "").isalnum()
        assert name == name.lower()


def test_roles_and_levels_follow_from_names():
    assert (role_of("weights.1"), level_of("weights.1")) == ("weights", 1)
    assert (role_of("labels.2.0"), level_of("labels.2.0")) == ("labels", None)
    assert (role_of("weights.partial"), level_of("weights.partial")) == ("weights", None)
    assert (role_of("mine.7"), level_of("mine.7")) == ("other", None)


@pytest.mark.parametrize("name", ["targets", "blocks", "targets.0"])
def test_policies_place_arrays_of_other_programs_by_name(tmp_path, name):
    file = tmp_path / "mine.toml"
    file.write_text(f'others = "managed"\n[arrays]\n"{name}" = "host_mapped"\n')
    assert set(read_policy(file).arrays) == {name}
    mine = Array(name=name, group="graph", nbytes=4096)
    other = Array(name="other", group="graph", nbytes=4096)
    Trace((mine, other), ()).save(tmp_path / "mine.npz")
    trace = load_trace(tmp_path / "mine.npz")
    assert placements_of(trace.arrays, str(file)) == {name: "host_mapped", "other": "managed"}
    assert unknown_arrays(trace, [str(file)], "g") == []
    file.write_text('[groups]\ngrph = "pinned"\n[roles]\ntragets = "pinned"\n')
    lost = unknown_arrays(trace, [str(file)], "g")
    assert [text.partition(" places ")[2] for text in lost] == [
        "groups that the recording does not have: grph",
        "roles that the recording does not have: tragets",
    ]
