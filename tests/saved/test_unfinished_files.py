"""What a killed process left unfinished in a folder does not keep the next one from going on."""

import pytest

from louvain_um.core.atomic_files import is_empty
from louvain_um.profiling.sweep.points import Settings, Subject
from louvain_um.profiling.sweep.run import sweep
from tests.saved.continued import GRAPH, resume_comparison, resume_profile, resume_stream


def resume_sweep(folder):
    settings = Settings(policies=("base",), rates=(0.0,), gpus=("p4000",))
    sweep([Subject(name="g", graph=GRAPH)], settings, folder)


@pytest.mark.parametrize("resume", [resume_stream, resume_profile, resume_comparison, resume_sweep])
def test_unfinished_files_do_not_count(tmp_path, resume):
    (tmp_path / ".results.json.0a1b2c3d.part").write_text("half of it")
    resume(tmp_path)
    assert not is_empty(tmp_path)


def test_other_files_count(tmp_path):
    assert is_empty(tmp_path)
    (tmp_path / ".results.json.0a1b2c3d.part").touch()
    assert is_empty(tmp_path)
    (tmp_path / ".hidden").touch()
    assert not is_empty(tmp_path)
