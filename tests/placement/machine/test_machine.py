import json
from dataclasses import fields, replace

import numpy as np
import pytest

from louvain_um.errors import LouvainUmError, OptionError
from louvain_um.placement.machine.machine import GIB, Machine
from louvain_um.placement.machine.profiles import PROFILES, load_machine


@pytest.mark.parametrize("name", PROFILES)
def test_profiles_say_where_their_figures_come_from(name):
    machine = load_machine(name)
    assert machine.name == name
    assert "all" in machine.notes
    assert set(machine.notes) - {"all"} <= {item.name for item in fields(Machine)}
    assert machine.remote_bandwidth < machine.copy_to_device < machine.device_bandwidth
    assert machine.migrate_to_device < machine.prefetch_to_device


def test_cards_of_the_thesis_have_eight_gigabytes():
    assert load_machine("p4000").memory_bytes == load_machine("rtx3060ti").memory_bytes == 8 * GIB


@pytest.mark.parametrize("name", ["m.toml", "m.json"])
def test_files_give_back_what_was_saved(tmp_path, name):
    machine = replace(
        load_machine("h200"), name='a "b" \\ ü', coherent=True, notes={"all": "line\nline"},
        memory_bytes=np.int64(8 * GIB),
    )  # fmt: skip
    machine.save(tmp_path / name)
    assert load_machine(tmp_path / name) == machine
    with pytest.raises(LouvainUmError, match="exists"):
        machine.save(tmp_path / name)


def test_a_profile_of_one_gpu_keeps_its_link():
    machine = replace(load_machine("h200"), peer_link="nvlink")
    assert Machine(**machine.to_dict()) == machine


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"device_bandwidth": 0}, "device_bandwidth"),
        ({"launch_seconds": "fast"}, "launch_seconds"),
        ({"memory_bytes": 1.5}, "memory_bytes"),
        ({"remote_atomic_rate": float("nan")}, "remote_atomic_rate"),
        ({"faults_in_flight": True}, "faults_in_flight"),
        ({"coherent": 1}, "coherent"),
        ({"name": ""}, "name"),
        ({"launch_seconds": 10**400}, "launch_seconds"),
        ({"faults_in_flight": 10**30}, "faults_in_flight"),
        ({"faults_in_flight": 10**12}, "faults_in_flight"),
        ({"memory_bytes": 1 << 62}, "memory_bytes"),
        ({"copy_to_device": 5e-324}, "copy_to_device"),
        ({"device_random_rate": 1e300}, "device_random_rate"),
        ({"launch_seconds": 1e300}, "launch_seconds"),
        ({"peer_bandwidth": 5e-324}, "peer_bandwidth must be 0 or lie in 1"),
        ({"launch_seconds": ["x" * 99] * 99}, "a list"),
        ({"notes": {"all": {}}}, "notes"),
    ],
)
def test_bad_figures_are_named(change, said):
    with pytest.raises(OptionError, match=said):
        replace(load_machine("h200"), **change)


def test_bad_files_are_named(tmp_path):
    good = load_machine("h200").to_dict()
    lacking = {name: value for name, value in good.items() if name != "copy_to_host"}
    texts = {
        "a.json": "{",
        "b.toml": "= 1",
        "c.json": "[]",
        "d.json": json.dumps(lacking),
        "e.json": json.dumps({**good, "horses": 3}),
        "f.json": json.dumps({**good, "launch_seconds": -1}),
        "g.json": json.dumps({**good, "notes": 3}),
        "h.json": "[" * 200_000,
        "i.json": " " * (2 << 20) + json.dumps(good),
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
        with pytest.raises(LouvainUmError, match=name):
            load_machine(tmp_path / name)
    with pytest.raises(LouvainUmError, match="h200"):
        load_machine("h201")


def test_what_a_context_leaves_nothing_of_is_no_room_for_runs():
    assert replace(load_machine("h200"), memory_bytes=1 << 30).bytes_for_runs == 512 << 20
    for memory in (300 << 20, 512 << 20):
        small = replace(load_machine("h200"), name="small", memory_bytes=memory)
        with pytest.raises(OptionError, match=r"small has .* MiB of device memory, of .*; name"):
            _ = small.bytes_for_runs


@pytest.mark.parametrize("name", [0, 1.5, [], {}, b"h200", True, object(), "", "a\0b"])
def test_what_names_no_machine_is_refused_in_a_line(name):
    with pytest.raises(LouvainUmError, match=r"must name a profile .* not") as caught:
        load_machine(name)
    assert "\n" not in str(caught.value)


def test_a_name_in_capitals_is_understood_enough_to_ask():
    with pytest.raises(LouvainUmError, match="did you mean h200"):
        load_machine("H200")
