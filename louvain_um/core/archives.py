"""Read NumPy archives (`.npz`) that may be damaged or crafted, within the host's memory."""

from __future__ import annotations

import errno
import math
import zipfile
import zlib
from pathlib import Path
from tokenize import TokenError
from typing import IO, Any, Final

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from louvain_um.core.headroom import check_host_memory
from louvain_um.errors import LouvainUmError

MOST_MEMBERS: Final = 1 << 20
"""Arrays of one archive."""

MOST_DEFLATED: Final = 1032
"""Bytes that deflate makes of one byte, at most."""

DAMAGED: Final = (
    KeyError, ValueError, TypeError, AttributeError, IndexError, EOFError, OverflowError,
    RuntimeError, MemoryError, SyntaxError, TokenError, zlib.error, zipfile.BadZipFile,
)  # fmt: skip
"""What NumPy and `zipfile` raise where a file is no archive of plain arrays."""


def read_archive(path: str | Path, refusal: str) -> dict[str, NDArray[Any]]:
    """Return the arrays of an archive by name; nothing is unpickled."""
    try:
        with open(path, "rb") as file, zipfile.ZipFile(file) as archive:
            _check_size(archive, path)
            return {
                info.filename.removesuffix(".npy"): _read(archive, info)
                for info in archive.infolist()
            }
    except OSError as error:
        if error.errno == errno.EINVAL:  # a damaged archive points to no place
            raise LouvainUmError(refusal) from None
        reason = (error.strerror or "cannot be read").lower()
        raise LouvainUmError(f"{path}: {reason}; check the path") from None
    except DAMAGED:
        raise LouvainUmError(refusal) from None


def _check_size(archive: zipfile.ZipFile, path: str | Path) -> None:
    """Refuse what the archive's directory shows to be damaged or too large, before reading."""
    members = archive.infolist()
    if len(members) > MOST_MEMBERS:
        raise ValueError("too many arrays")
    for info in members:
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ValueError("not compressed as NumPy does")
        if info.file_size > MOST_DEFLATED * (info.compress_size + 1):
            raise ValueError("more bytes than so few can hold")
    needed = sum(info.file_size for info in members)
    check_host_memory(needed, f"{path}: reading it", "use a machine with more memory")


def _read(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> NDArray[Any]:
    """Read an array whose header claims as many bytes as the archive holds of it."""
    with archive.open(info) as member:
        shape, dtype, begin = array_header(member)
        if dtype.hasobject or begin + math.prod(shape) * dtype.itemsize != info.file_size:
            raise ValueError("another size than its header says")
    with archive.open(info) as member:
        array: NDArray[Any] = npy.read_array(member, allow_pickle=False)
        member.read(1)  # at its end the checksum is compared
    return array


def array_header(member: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any], int]:
    """Return shape and type of an array, and where its bytes begin."""
    readers = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
    version = npy.read_magic(member)
    if version not in readers:
        raise ValueError("a version of NumPy's format that is not written here")
    shape, _, dtype = readers[version](member)
    return shape, dtype, member.tell()
