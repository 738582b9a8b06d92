"""Files that are loaded as code are read only where nobody else can have written them."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest

from louvain_um.core import private_files
from louvain_um.errors import GraphWarning

pytestmark = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="POSIX says who can write")


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(private_files, "_warned", False)
    path = tmp_path / "deep" / "cache" / "entry"
    private_files.write(path, b"code")
    return path


def test_only_the_user_can_write_a_cache(file: Path) -> None:
    assert private_files.read(file) == b"code"
    assert [file.parent.stat().st_mode & 0o777, file.stat().st_mode & 0o777] == [0o700, 0o600]
    assert [path.name for path in file.parent.iterdir()] == ["entry"]


@pytest.mark.parametrize("mode", [0o770, 0o777, 0o1777])
def test_a_folder_of_others_is_not_used_and_named_once(file: Path, mode: int) -> None:
    file.parent.chmod(mode)
    with pytest.warns(GraphWarning, match=r"cache: others can write there.*remove"):
        assert private_files.read(file) is None
    private_files.write(file.with_name("other"), b"code")
    assert private_files.read(file) is None
    assert [path.name for path in file.parent.iterdir()] == ["entry"]


def test_a_file_of_others_is_not_read(file: Path) -> None:
    file.chmod(0o620)
    assert private_files.read(file) is None
    file.chmod(0o600)
    (file.parent / "link").symlink_to(file)
    assert private_files.read(file.parent / "link") is None
    assert private_files.read(file.parent / "missing") is None


def test_others_wait_for_what_is_made(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    new, order, started = file.with_name("new"), list[str](), threading.Event()

    def make() -> None:
        with private_files.made_once(new):
            started.set()
            time.sleep(0.3)
            order.append("made")

    maker = threading.Thread(target=make)
    maker.start()
    started.wait()
    with private_files.made_once(new, in_haste=lambda: True):
        order.append("in haste")
    with private_files.made_once(new):
        order.append("waited")
    maker.join()
    assert order == ["in haste", "made", "waited"]
    assert not list(file.parent.glob("*.lock"))

    monkeypatch.setattr(private_files, "WAIT_SECONDS", 0.1)
    monkeypatch.setattr(private_files, "_patient", True)
    with private_files.made_once(new), private_files.made_once(new):
        assert not private_files._patient
