from __future__ import annotations

import json

import pytest

from louvain_um.gpu.runtime import device
from louvain_um.placement.machine import calibrate
from louvain_um.placement.machine.profiles import H200


@pytest.fixture
def card(monkeypatch, tmp_path):
    """A GPU whose measurement returns at once."""
    monkeypatch.setattr(device, "pick", lambda text: device.Choice("cuda", 0, "asked for"))
    monkeypatch.setattr(device, "describe", lambda index: {"name": "Some Card 9"})
    monkeypatch.setattr(calibrate, "calibrate", lambda index, progress, peer=None: H200)
    monkeypatch.setenv("LOUVAIN_UM_MACHINES", str(tmp_path / "machines"))
    return tmp_path


def test_figures_are_kept_where_plans_look(run, card):
    done = run("calibrate")
    kept = card / "machines" / "some-card-9.json"
    assert json.loads(kept.read_text())["remote_bandwidth"] == 51.3e9
    assert "51.3 GB/s" in done.out
    assert str(kept) in done.err
    refused = run("calibrate")
    assert (refused.code, "--force" in refused.complaint()) == (1, True)
    assert run("calibrate", "--force", "-q").code == 0


def test_figures_go_to_a_file(run, card):
    target = card / "m.toml"
    found = run("calibrate", "-o", str(target), "--json").json
    assert found["path"] == str(target)
    assert found["machine"]["name"] == "h200"
    assert not (card / "machines").exists()
    refused = run("calibrate", "-o", str(target))
    assert (refused.code, "--force" in refused.complaint()) == (1, True)


def test_nothing_is_measured_for_a_file_that_cannot_be_written(run, card, monkeypatch):
    monkeypatch.setattr(calibrate, "calibrate", lambda *_: pytest.fail("measured"))
    refused = run("calibrate", "-o", str(card / "none" / "m.json"))
    assert (refused.code, "no folder" in refused.complaint()) == (1, True)


@pytest.mark.parametrize("name", ["cpu", "cuda:x", "gpu", "auto"])
def test_only_gpus_are_calibrated(run, name):
    refused = run("calibrate", "--device", name)
    assert (refused.code, "--device" in refused.complaint()) == (2, True)


def test_without_a_gpu(run, monkeypatch):
    from louvain_um.errors import DeviceUnavailableError

    def none():
        raise DeviceUnavailableError("no NVIDIA driver; use device='cpu'")

    monkeypatch.setattr(device, "capabilities", none)
    refused = run("calibrate")
    assert (refused.code, "no NVIDIA driver" in refused.complaint()) == (3, True)
    assert "--device cpu" not in refused.complaint()
    assert "--machine h200" in refused.complaint()
