"""Files are written whole or not at all, and replaced only if that was asked for."""

import errno
import os
import stat
import threading
import time
from contextlib import suppress
from functools import partial
from types import SimpleNamespace

import pytest

from louvain_um.core import atomic_files, private_files
from louvain_um.core.atomic_files import LockedFolder, open_resolved, replacing, replacing_folder
from louvain_um.errors import GraphWarning, LouvainUmError, OptionError

pytestmark = pytest.mark.skipif(os.name == "nt", reason="permissions and links of POSIX")


def no_links(*_, **__):
    raise OSError(errno.EPERM, "Operation not permitted")


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def write_file(target, text, *, force, meet):
    with replacing(target, force=force) as part:
        part.write_text(text)
        meet.wait(10)


def write_folder(target, text, *, force, meet):
    with replacing_folder(target, force=force) as part:
        (part / "a").write_text(text)
        meet.wait(10)


def race(write, target, *, force, writers=6):
    """Return the errors of writers that all finish writing at the same time."""
    meet, errors = threading.Barrier(writers), []

    def one(number):
        try:
            write(target, str(number), force=force, meet=meet)
        except LouvainUmError as error:
            errors.append(str(error))

    threads = [threading.Thread(target=one, args=(n,)) for n in range(writers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors


@pytest.mark.parametrize("write", [write_file, write_folder])
def test_writers_leave_alone_what_others_are_writing(tmp_path, write):
    again = SimpleNamespace(wait=lambda _: None)
    errors = []
    for _ in range(30):
        errors += race(partial(again_and_again, write, again), tmp_path / "a", force=True)
    assert errors == []
    assert names(tmp_path) == ["a"]


def again_and_again(write, again, target, text, *, force, meet):
    for _ in range(3):
        write(target, text, force=force, meet=again)


@pytest.mark.parametrize("mode", [0o777, 0o1777])
def test_links_that_others_planted_are_not_followed(tmp_path, mode):
    if os.geteuid() != 0:
        pytest.skip("only root can make links of others")
    mine, shared = tmp_path / "mine", tmp_path / "shared"
    for folder in (mine, shared):
        folder.mkdir()
    (mine / "kept.csv").write_text("before")
    for name, target in (("out.csv", mine / "kept.csv"), ("new.csv", mine / "x"), ("run", mine)):
        (shared / name).symlink_to(target)
        os.chown(shared / name, 12345, 12345, follow_symlinks=False)
    (mine / "over").symlink_to(shared / "out.csv")  # one's own link to such a link
    shared.chmod(mode)
    for path in (shared / "out.csv", shared / "new.csv", shared / "run" / "a.csv", mine / "over"):
        with (
            pytest.raises(LouvainUmError, match=r"shared/\w+(.csv)? is a link of another user"),
            replacing(path, force=True),
        ):
            pass
    for enter in (LockedFolder, lambda path: replacing_folder(path, force=True).__enter__()):
        with pytest.raises(LouvainUmError, match="shared/run is a link of another user"):
            enter(shared / "run")
    assert names(mine) == ["kept.csv", "over"]
    assert (mine / "kept.csv").read_text() == "before"

    os.chown(shared / "out.csv", 0, 0, follow_symlinks=False)
    with replacing(mine / "over", force=True) as part:
        part.write_text("after")
    assert (mine / "kept.csv").read_text() == "after"
    shared.chmod(0o755)
    with replacing(shared / "new.csv") as part:
        part.write_text("new")
    assert names(mine) == ["kept.csv", "over", "x"]


@pytest.mark.skipif(not hasattr(os, "O_PATH"), reason="macOS cannot look at a link once")
def test_a_link_that_comes_after_the_look_is_not_followed(tmp_path, monkeypatch):
    kept, out, look = tmp_path / "kept", tmp_path / "out", atomic_files._link

    def plant(path):
        found = look(path)
        if path == out and not out.is_symlink():
            out.symlink_to(kept)
        return found

    kept.write_text("before")
    monkeypatch.setattr(atomic_files, "_link", plant)
    with replacing(out, force=True) as part:
        part.write_text("after")
    assert not out.is_symlink()
    out.unlink()
    with pytest.raises(OSError, match="out"):
        open_resolved(out, "a")
    assert kept.read_text() == "before"


def test_links_in_a_circle_end(tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(LouvainUmError, match="a: "), replacing(tmp_path / "a") as part:
        part.write_text("x")


@pytest.mark.parametrize("links", [True, False])
def test_one_of_several_writers_succeeds(tmp_path, monkeypatch, links):
    if not links:
        monkeypatch.setattr(os, "link", no_links)
    errors = race(write_file, tmp_path / "a.txt", force=False)
    assert len(errors) == 5
    assert all("a.txt: exists already" in error and "--force" in error for error in errors)
    assert names(tmp_path) == ["a.txt"]
    assert (tmp_path / "a.txt").read_text() in "012345"


def test_one_of_several_folder_writers_succeeds(tmp_path):
    errors = race(write_folder, tmp_path / "a", force=False)
    assert len(errors) == 5
    assert all("a: exists already" in error and "--force" in error for error in errors)
    assert names(tmp_path) == ["a"]


@pytest.mark.parametrize("write", [write_file, write_folder])
def test_with_force_every_writer_succeeds(tmp_path, write):
    assert race(write, tmp_path / "a", force=True) == []
    assert names(tmp_path) == ["a"]


@pytest.mark.parametrize("write", [replacing, replacing_folder])
def test_what_a_killed_writer_left_is_removed_by_the_next(tmp_path, write):
    target = tmp_path / "out"
    for name in (".out.0a1b2c3d.part", ".out.txt.0a1b2c3d.part", ".other.0a1b2c3d.part"):
        (tmp_path / name).mkdir() if write is replacing_folder else (tmp_path / name).touch()
    (tmp_path / ".out.11111111.part").symlink_to(tmp_path / "nowhere")
    with suppress(LouvainUmError), write(target) as first:
        kept = {".other.0a1b2c3d.part", ".out.11111111.part", first.name}
        assert kept <= {*names(tmp_path)}
        assert ".out.0a1b2c3d.part" not in names(tmp_path)
        with write(target):  # another writer of the name lives
            assert kept <= {*names(tmp_path)}
    assert names(tmp_path) == [".other.0a1b2c3d.part", ".out.11111111.part", "out"]


def test_only_true_replaces(tmp_path):
    (tmp_path / "a").write_text("old")
    with (
        pytest.raises(OptionError, match="force must be True or False"),
        replacing(tmp_path / "a", force="no"),
    ):
        raise AssertionError
    assert (tmp_path / "a").read_text() == "old"


def test_a_replaced_file_keeps_its_permissions(tmp_path):
    target = tmp_path / "a.txt"
    for mode in (0o600, 0o640, 0o444, 0o755):
        target.touch()
        target.chmod(mode)
        with replacing(target, force=True) as part:
            assert stat.S_IMODE(part.stat().st_mode) & 0o077 & ~mode == 0
            part.write_text("new")
        assert stat.S_IMODE(target.stat().st_mode) == mode
        assert target.read_text() == "new"
        target.unlink()


def test_content_is_on_the_disk_before_it_has_its_name(tmp_path, monkeypatch):
    steps = []
    target = tmp_path / "a.txt"
    real = os.fsync

    def fsync(descriptor):
        folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        steps.append(("folder" if folder else "file", target.exists()))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    with replacing(target) as part:
        part.write_text("new")
    assert steps == [("file", False), ("folder", True)]


@pytest.mark.parametrize("exchange", [True, False])
def test_a_folder_is_replaced_whole(tmp_path, monkeypatch, exchange):
    if not exchange:
        monkeypatch.setattr(atomic_files, "_exchange", lambda *_: False)
    target = tmp_path / "a"
    with replacing_folder(target) as part:
        (part / "old").write_text("1")
    with replacing_folder(target, force=True) as part:
        (part / "new").write_text("2")
        assert names(target) == ["old"]
    assert names(target) == ["new"]
    assert names(tmp_path) == ["a"]


def test_a_rename_that_fails_brings_the_old_folder_back(tmp_path, monkeypatch):
    target = tmp_path / "a"
    with replacing_folder(target) as part:
        (part / "old").write_text("1")
    real, calls = os.replace, []

    def replace(*names):
        calls.append(names)
        if len(calls) == 2:
            raise OSError(errno.EIO, "Input/output error")
        real(*names)

    monkeypatch.setattr(atomic_files, "_exchange", lambda *_: False)
    monkeypatch.setattr(os, "replace", replace)
    with (
        pytest.raises(LouvainUmError, match="input/output error"),
        replacing_folder(target, force=True) as part,
    ):
        (part / "new").write_text("2")
    assert names(tmp_path) == ["a"]
    assert names(target) == ["old"]


def test_what_an_interrupt_leaves_is_removed_in_the_end(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(atomic_files, "_remove", lambda _: None)
        with pytest.raises(KeyboardInterrupt), replacing(tmp_path / "a"):
            raise KeyboardInterrupt
    assert len(names(tmp_path)) == 1
    atomic_files.remove_temporary_files()
    assert names(tmp_path) == []


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.setattr(private_files, "_warned", False)
    path = tmp_path / "deep" / "cache" / "entry"
    private_files.write(path, b"code")
    return path


def test_only_the_user_can_write_a_cache(file):
    assert private_files.read(file) == b"code"
    assert [file.parent.stat().st_mode & 0o777, file.stat().st_mode & 0o777] == [0o700, 0o600]
    assert [path.name for path in file.parent.iterdir()] == ["entry"]


@pytest.mark.parametrize("mode", [0o770, 0o777, 0o1777])
def test_a_folder_of_others_is_not_used_and_named_once(file, mode):
    file.parent.chmod(mode)
    with pytest.warns(GraphWarning, match=r"cache: others can write there.*remove"):
        assert private_files.read(file) is None
    private_files.write(file.with_name("other"), b"code")
    assert private_files.read(file) is None
    assert [path.name for path in file.parent.iterdir()] == ["entry"]


def test_a_file_of_others_is_not_read(file):
    file.chmod(0o620)
    assert private_files.read(file) is None
    file.chmod(0o600)
    (file.parent / "link").symlink_to(file)
    assert private_files.read(file.parent / "link") is None
    assert private_files.read(file.parent / "missing") is None


def test_others_wait_for_what_is_made(file, monkeypatch):
    new, order, started = file.with_name("new"), list[str](), threading.Event()

    def make():
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
    with (
        private_files.made_once(new),
        pytest.warns(GraphWarning, match="does not finish"),
        private_files.made_once(new),
    ):
        assert not private_files._patient
