"""Figures of the device at hand are of the right order and hang together."""

import json

import pytest
from typer.testing import CliRunner

from louvain_um.placement.memory.guard import guard

pytestmark = [pytest.mark.gpu, pytest.mark.alone]


def test_figures_hang_together(gpu, tmp_path, monkeypatch):
    from louvain_um.cli import app
    from louvain_um.placement.machine.profiles import machine_for

    monkeypatch.setenv("LOUVAIN_UM_MACHINES", str(tmp_path / "machines"))
    runner = CliRunner()
    done = runner.invoke(app, ["calibrate", "--json", "-q"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["seconds"] < 60
    m = machine_for(0)
    assert m.name == found["machine"]["name"]
    assert m.device_bandwidth > 3 * m.remote_bandwidth
    assert m.remote_bandwidth > 0.85 * m.copy_to_device
    assert m.device_random_rate > m.remote_random_rate
    assert m.device_atomic_rate > m.remote_atomic_rate
    assert m.migrate_to_device < 1.1 * m.copy_to_device
    assert m.launch_seconds < m.readback_seconds < 1e-3
    assert 1e-6 < m.fault_batch_seconds + m.block_service_seconds < 1e-3
    assert not guard.ranges
    again = runner.invoke(app, ["calibrate", "-q"])
    assert again.exit_code == 1
    assert "--force" in again.output
