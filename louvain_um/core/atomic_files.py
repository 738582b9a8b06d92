"""Write files atomically: a reader never finds half of one."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from louvain_um.errors import LouvainUmError


def check_output(path: str | Path, *, force: bool = False) -> Path:
    """Return where a file will be written, links followed, or raise if it cannot be written.

    Raises
    ------
    LouvainUmError
        The file exists and `force` is off, it is no regular file, or its folder is missing
        or is not writable.
    """
    real = Path(os.path.realpath(path))
    if real.is_dir():
        raise LouvainUmError(f"{path}: is a folder; name a file in it")
    if real.exists():
        if not real.is_file():
            raise LouvainUmError(f"{path}: is not a regular file; choose another name")
        if not force:
            raise LouvainUmError(f"{path}: exists already; pass --force (force=True) to replace it")
    if not real.parent.is_dir():
        raise LouvainUmError(f"{path}: there is no folder {real.parent}; create it first")
    if not os.access(real.parent, os.W_OK | os.X_OK):
        raise LouvainUmError(
            f"{path}: the folder {real.parent} cannot be written; choose another one"
        )
    return real


@contextmanager
def replacing(path: str | Path, *, force: bool = False) -> Iterator[Path]:
    """Yield a temporary path beside `path`, and rename it to `path` on success.

    On any failure, including an interrupt, the temporary file is removed and `path` is
    unchanged.

    Raises
    ------
    LouvainUmError
        See `check_output`; or the system refused, for instance because the disk is full.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from louvain_um.core.atomic_files import replacing
    >>> target = pathlib.Path(tempfile.mkdtemp(), "a.txt")
    >>> with replacing(target) as part:
    ...     _ = part.write_text("whole")
    >>> target.read_text()
    'whole'
    """
    real = check_output(path, force=force)
    part = real.with_name(f".{real.name[:100]}.{secrets.token_hex(4)}.part")
    try:
        yield part
        os.replace(part, real)
    except BaseException as error:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise LouvainUmError(f"{path}: {_reason(error)}; nothing was written") from error
        raise


def read_text(path: Path, most: int) -> str:
    """Return the text of a small UTF-8 file, whether or not it begins with a byte-order mark.

    Raises
    ------
    OSError
        It cannot be read.
    ValueError
        It is not UTF-8 text, or longer than `most` characters; the rest is not read.
    """
    with path.open(encoding="utf-8-sig") as file:
        text = file.read(most + 1)
    if len(text) > most:
        raise ValueError(f"longer than {most:,} characters")
    return text


def _reason(error: OSError) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "the disk is full"
    text = error.strerror or str(error) or type(error).__name__
    return text.splitlines()[0].lower()
