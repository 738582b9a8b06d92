from dataclasses import replace

import pytest

from louvain_um.errors import LouvainUmError
from louvain_um.placement.machine import profiles
from louvain_um.placement.machine.profiles import calibrated_file, load_machine, machine_for


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("LOUVAIN_UM_MACHINES", str(tmp_path))


@pytest.mark.parametrize(
    ("name", "profile"),
    [
        ("NVIDIA H200", "h200"),
        ("NVIDIA GH200 480GB", "gh200"),
        ("NVIDIA H200 NVL", "h200"),
        ("Quadro P4000", "p4000"),
        ("NVIDIA GeForce RTX 3060 Ti", "rtx3060ti"),
    ],
)
def test_known_devices_have_their_own_profile(name, profile):
    chosen = machine_for(name)
    assert chosen.name == profile
    assert "shipped" in chosen.notes["profile"]


@pytest.mark.parametrize("name", ["NVIDIA GB200", "NVIDIA GeForce RTX 3060", "", "A100"])
def test_others_get_an_h200s_figures_and_a_note(name):
    chosen = machine_for(name)
    assert chosen.name == "h200"
    assert "is assumed; run louvain-um calibrate" in chosen.notes["profile"]


def test_a_calibrated_file_goes_before_everything(tmp_path):
    machine = replace(load_machine("h200"), name="mine", remote_bandwidth=1e9)
    machine.save(calibrated_file("NVIDIA H200"))
    assert machine_for("NVIDIA H200").remote_bandwidth == 1e9
    assert str(tmp_path) in machine_for("NVIDIA H200").notes["profile"]
    calibrated_file("NVIDIA H200").write_text("{")
    with pytest.raises(LouvainUmError, match="not a machine profile"):
        machine_for("NVIDIA H200")


def test_without_a_gpu_an_h200_stands_in(monkeypatch):
    monkeypatch.setattr(profiles, "present", lambda device: (None, None))
    assert "no GPU here" in machine_for().notes["profile"]


def test_an_unknown_device_keeps_its_own_memory(monkeypatch):
    monkeypatch.setattr(profiles, "present", lambda device: ("NVIDIA A10", 24 << 30))
    assert machine_for(0).memory_bytes == 24 << 30
