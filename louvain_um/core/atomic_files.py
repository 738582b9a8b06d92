"""Write files atomically: a reader never finds half of one."""

from __future__ import annotations

import atexit
import errno
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import IO, Any, Final

from louvain_um.errors import LouvainUmError, check_path, check_switch, reason_of

NOT_SUPPORTED: Final = (
    errno.EINVAL, errno.EPERM, errno.EACCES, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP,
    errno.EMLINK, errno.EXDEV,
)  # fmt: skip
"""Answers of file systems without hard links, or that cannot flush or exchange."""

EXISTS: Final = (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR)
"""Answers if the name of a new file or folder is taken."""

MOST_LINKS: Final = 40
"""Links on the way to one file, as Linux has it."""

_temporary_files: dict[Path, int] = {}
"""Files and folders that must not outlive the process, with its number."""


def check_output(path: str | Path, *, force: bool = False) -> Path:
    """Return where a file will be written, links followed, or raise if it cannot be written."""
    check_switch("force", force)
    check_path("path", path)
    real = resolved(path)
    if real.is_dir():
        raise LouvainUmError(f"{path}: is a folder; name a file in it")
    if real.exists():
        if not real.is_file():
            raise LouvainUmError(f"{path}: is not a regular file; choose another name")
        if not force:
            raise LouvainUmError(f"{path}: exists already; pass --force (force=True) to replace it")
    check_parent(path, real.parent)
    return real


def check_parent(path: str | Path, folder: Path) -> None:
    """Raise if nothing can be made in the folder of a path."""
    if not folder.is_dir():
        raise LouvainUmError(f"{path}: there is no folder {folder}; create it first")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise LouvainUmError(f"{path}: the folder {folder} cannot be written; choose another one")


def resolved(path: str | Path) -> Path:
    """Return where a path to be written leads, or raise if it is by a link that may be planted."""
    # As Linux with `protected_symlinks`, this trusts links of the user and of the folder's owner in
    # folders where everybody can write. Each link is opened once, so that none can take its place.
    if not hasattr(os, "geteuid"):  # Windows
        return Path(os.path.realpath(path))
    left = list(reversed(Path(path).absolute().parts))
    here, followed = Path(left.pop()), 0
    while left:
        name = left.pop()
        here = here.parent if name == ".." else here / name
        link = None if name == ".." else _link(here)
        if link is None:
            continue
        target, owner = link
        folder = here.parent.stat()
        if folder.st_mode & stat.S_IWOTH and owner not in (os.geteuid(), folder.st_uid):
            raise LouvainUmError(
                f"{path}: {here} is a link of another user in a folder where everybody can write; "
                "choose another name"
            )
        followed += 1
        if followed > MOST_LINKS:
            raise LouvainUmError(f"{path}: its links lead in a circle; choose another name")
        left += reversed(target.parts)
        here = Path(left.pop()) if target.is_absolute() else here.parent
    return here


def _link(path: Path) -> tuple[Path, int] | None:
    """Return where a link leads and its owner; None if it is not a link, or missing."""
    with suppress(OSError):
        if not hasattr(os, "O_PATH"):  # macOS
            return Path(os.readlink(path)), path.lstat().st_uid
        descriptor = os.open(path, os.O_PATH | os.O_NOFOLLOW)
        try:
            found = os.fstat(descriptor)
            if stat.S_ISLNK(found.st_mode):
                return Path(os.readlink("", dir_fd=descriptor)), found.st_uid
        finally:
            os.close(descriptor)
    return None


def open_resolved(path: str | Path, mode: str, encoding: str | None = None) -> IO[Any]:
    """Open a file to be changed where its path leads; links that come later are not followed."""
    flag = getattr(os, "O_NOFOLLOW", 0)
    return open(
        resolved(path),
        mode,
        encoding=encoding,
        opener=lambda name, flags: os.open(name, flags | flag, 0o666),
    )


@contextmanager
def replacing(path: str | Path, *, force: bool = False) -> Iterator[Path]:
    """Yield an empty temporary file in `path`'s folder; give it the name `path` on success."""
    real = check_output(path, force=force)
    with _temporary(path, real) as part:
        mode = _mode(real)
        # Never more readable than the file that it replaces.
        make = partial(os.open, part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, _writable(mode))
        with _held(part, make):
            yield part
            if mode is not None:
                os.chmod(part, _writable(mode))
            flush(part)
            if mode is not None:
                os.chmod(part, mode)
            if force:
                os.replace(part, real)
            else:
                _rename_to_new(part, real)
        flush_folder(real.parent)


@contextmanager
def replacing_folder(path: str | Path, *, force: bool = False) -> Iterator[Path]:
    """Yield an empty temporary folder, and give it the name `path` on success; see `replacing`."""
    real = resolved(path)
    with _temporary(path, real) as part:
        with _held(part, partial(_made_folder, part, 0o777)):
            yield part
            for file in part.iterdir():
                flush(file)
            flush_folder(part)
            mode = _mode(real)
            if mode is not None:
                os.chmod(part, mode)
            try:
                os.rename(part, real)
            except OSError as error:
                if not force or error.errno not in EXISTS:
                    raise
                if not _exchange(part, real):
                    _step_aside(part, real)
        flush_folder(real.parent)


@contextmanager
def temporary_folder(name: str) -> Iterator[Path]:
    """Yield a private temporary folder, removed in the end; if killed, by the next of that name."""
    path = Path(tempfile.gettempdir(), name)
    with _temporary(path, path) as part, _held(part, partial(_made_folder, part, 0o700)):
        yield part


def _made_folder(part: Path, mode: int) -> int | None:
    """Make a folder and open it, where the system opens folders."""
    while True:
        part.mkdir(mode)
        if os.name == "nt":
            return None
        with suppress(FileNotFoundError):  # another process removed it before it was open
            return os.open(part, os.O_RDONLY)


def is_empty(folder: Path) -> bool:
    """Return whether a folder holds nothing but files that a killed process left unfinished."""
    names = (path.name for path in folder.iterdir())
    return all(name.startswith(".") and name.endswith(".part") for name in names)


def remove_temporary_files() -> None:
    """Remove what an interrupt left of files that were being written."""
    for part, process in list(_temporary_files.items()):
        if process == os.getpid():  # a forked child leaves its parent's alone
            _remove(part)


def flush(path: Path) -> None:
    """Wait until a file's content is on the disk."""
    # Windows flushes only what is open for writing.
    descriptor = os.open(path, os.O_RDWR)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in NOT_SUPPORTED:
            raise
    finally:
        os.close(descriptor)


def flush_folder(path: Path) -> None:
    """Wait until the names in a folder are on the disk, where the system supports it."""
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def read_text(path: Path, most: int) -> str:
    """Return the text of a small UTF-8 file, whether or not it begins with a byte-order mark."""
    with path.open(encoding="utf-8-sig") as file:
        text = file.read(most + 1)
    if len(text) > most:
        raise ValueError(f"longer than {most:,} characters")
    return text


def write_text(path: str | Path, text: str, *, force: bool = False) -> None:
    """Write a text file, whole or not at all."""
    with replacing(path, force=force) as part:
        part.write_text(text, encoding="utf-8")


def write_csv(
    path: str | Path, rows: Sequence[Mapping[str, Any]], columns: Iterable[str] = (), *,
    force: bool = False, line_end: str = "\r\n",
) -> None:  # fmt: skip
    """Write rows as CSV, whole or not at all; without `columns`, with those of any row."""
    import csv
    import io

    text = io.StringIO()
    names = columns or dict.fromkeys(name for row in rows for name in row)
    writer = csv.DictWriter(text, list(names), lineterminator=line_end)
    writer.writeheader()
    writer.writerows(rows)
    with replacing(path, force=force) as part:
        part.write_text(text.getvalue(), encoding="utf-8", newline="")


@contextmanager
def appending(path: str | Path) -> Iterator[None]:
    """Let the system's errors name a file to which a command that can resume appends."""
    try:
        yield
    except OSError as error:
        problem, remedy = _reason(error, "check the disk")
        raise LouvainUmError(f"{path}: {problem}; {remedy}, and run again to continue") from error


def _reason(error: OSError, remedy: str = "choose another folder") -> tuple[str, str]:
    """Return what the system refused, and what to do."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "the disk is full", "free some space"
    return reason_of(error), remedy


@contextmanager
def _temporary(path: str | Path, real: Path) -> Iterator[Path]:
    """Yield a name in the folder of `real`; remove what has it in the end; errors name `path`."""
    begin = f".{real.name[:100]}."
    _remove_abandoned(real.parent, begin)
    part = real.with_name(f"{begin}{secrets.token_hex(4)}.part")
    _temporary_files[part] = os.getpid()
    try:
        yield part
    except OSError as error:
        if error.errno in EXISTS and real.exists():
            raise LouvainUmError(
                f"{path}: exists already, written by another program meanwhile; "
                "pass --force (force=True) to replace it"
            ) from error
        problem, remedy = _reason(error)
        raise LouvainUmError(f"{path}: {problem}; nothing was written; {remedy}") from error
    finally:
        _remove(part)


@contextmanager
def _held(part: Path, make: Callable[[], int | None]) -> Iterator[None]:
    """Keep what `make` makes and opens locked, which shows others that its process lives."""
    descriptor = make()
    if os.name == "nt" and descriptor is not None:  # where nothing open can be renamed
        os.close(descriptor)
        descriptor = None
    while descriptor is not None:
        lock(descriptor, wait=True)
        if _is_open(part, descriptor):
            break
        os.close(descriptor)  # another process removed it before it was locked
        descriptor = make()
    try:
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _is_open(path: Path, descriptor: int) -> bool:
    """Return whether a path still names what was opened by it."""
    with suppress(FileNotFoundError):
        return os.path.samestat(os.lstat(path), os.fstat(descriptor))
    return False


def _remove_abandoned(folder: Path, begin: str) -> None:
    """Remove temporary files of a name whose process was killed."""
    if os.name == "nt":  # locks nothing
        return
    with suppress(OSError):
        for old in os.listdir(folder):
            if old.startswith(begin) and old.endswith(".part"):
                with suppress(OSError), _opened(folder / old) as descriptor:
                    if lock(descriptor) and _is_open(folder / old, descriptor):
                        _remove(folder / old)


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _remove(part: Path) -> None:
    with suppress(OSError):
        if part.is_dir():
            shutil.rmtree(part, ignore_errors=True)
        else:
            part.unlink(missing_ok=True)
        _temporary_files.pop(part, None)


def _mode(path: Path) -> int | None:
    """Return the permissions of what has a name, if anything has."""
    with suppress(FileNotFoundError):
        return stat.S_IMODE(path.stat().st_mode)
    return None


def _writable(mode: int | None) -> int:
    return 0o666 if mode is None else mode | stat.S_IRUSR | stat.S_IWUSR


def _rename_to_new(part: Path, real: Path) -> None:
    """Give a file a name that must not exist."""
    if os.name == "nt":
        os.rename(part, real)  # which replaces nothing there
        return
    try:
        os.link(part, real)  # fails if the name exists; a rename would replace
    except OSError as error:
        if error.errno not in NOT_SUPPORTED:
            raise
        with _locked(real.parent):
            if os.path.lexists(real):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST)) from None
            os.replace(part, real)


def lock(descriptor: int, *, wait: bool = False) -> bool:
    """Lock an open file or folder until it is closed; return False if another process has it."""
    # Where the system cannot lock, nothing is locked.
    try:
        import fcntl
    except ImportError:  # Windows
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError as error:
        return error.errno not in (errno.EACCES, errno.EAGAIN)
    return True


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Keep other processes of this program from naming files in a folder, where that works."""
    with _opened(folder) as descriptor:
        lock(descriptor, wait=True)
        yield


class LockedFolder:
    """A folder that one run at a time writes to, where the system supports that."""

    def __init__(self, path: str | Path) -> None:
        self._descriptor: int | None = None
        self._path = resolved(path)
        self._made = [p for p in (self._path, *self._path.parents) if not os.path.lexists(p)]
        try:
            self._path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise LouvainUmError(f"{path}: {reason_of(error)}; name another folder") from None
        with suppress(OSError):  # Windows opens no folders
            self._descriptor = os.open(self._path, os.O_RDONLY)
            if not lock(self._descriptor):
                self.close()
                raise LouvainUmError(
                    f"{path}: another run is writing there; wait for it, or name another folder"
                )

    def close(self) -> None:
        """Let others write to the folder."""
        with suppress(OSError):  # it holds something
            while self._made:
                self._made.pop(0).rmdir()
        self._made = []
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def __enter__(self) -> LockedFolder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _exchange(part: Path, real: Path) -> bool:
    """Exchange two names in one step; return False where the system cannot."""
    import ctypes

    at_fdcwd, rename_exchange = -100, 2
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2  # Linux
    except (AttributeError, OSError, TypeError):
        return False
    names = os.fsencode(part), os.fsencode(real)
    if rename(at_fdcwd, names[0], at_fdcwd, names[1], rename_exchange) == 0:
        return True
    number = ctypes.get_errno()
    if number in NOT_SUPPORTED:
        return False
    raise OSError(number, os.strerror(number))


def _step_aside(part: Path, real: Path) -> None:
    """Replace a folder in two renames; what fails between them is undone."""
    before = part.with_suffix(".before")
    try:
        os.replace(real, before)
        os.replace(part, real)
    finally:
        if before.exists():
            if real.exists():
                shutil.rmtree(before, ignore_errors=True)
            else:
                os.replace(before, real)


atexit.register(remove_temporary_files)
