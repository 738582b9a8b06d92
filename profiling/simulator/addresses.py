"""Traces from addresses that another program recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from louvain_um.core.numbering import distinct
from louvain_um.errors import LouvainUmError, OptionError, reason_of
from louvain_um.formats.file_types import first_line_of
from louvain_um.placement.machine.machine import MOST_GPUS
from louvain_um.profiling.simulator.driver.constants import PAGE_BYTES
from louvain_um.profiling.simulator.touches import Access, Touches
from louvain_um.profiling.simulator.trace import Array, HostTouches, Launch, Step, Trace

if TYPE_CHECKING:
    import pandas as pd

GAP_PAGES: Final = 512
"""Untouched pages, 2 MiB, that separate two arrays where none are named."""

COLUMNS: Final = ("time", "address", "write", "kernel", "host", "device")
"""Columns of a table of addresses; the first two are required."""

ARRAY_COLUMNS: Final = ("name", "address", "nbytes", "group")
"""Columns of a table of arrays; the last is optional."""


def trace_of_addresses(
    addresses: ArrayLike,
    *,
    times: ArrayLike | None = None,
    writes: ArrayLike | None = None,
    kernels: Sequence[str] | None = None,
    host: ArrayLike | None = None,
    devices: ArrayLike | None = None,
    arrays: Mapping[str, tuple[int, int]] | None = None,
    groups: Mapping[str, str] | None = None,
) -> Trace:
    """Return the trace of accesses, one address each.

    Successive accesses of one kernel on one GPU are one launch; a streamed page and one accessed at
    random are distinguished by how many accesses it gets in a row.

    Parameters
    ----------
    addresses : array of int of length a
        Byte addresses.
    times : array of length a, optional
        When; without times, accesses are in order.
    writes, host : array of bool of length a, optional
        Whether an access writes, and whether the host made it; by default neither.
    devices : array of int of length a, optional
        Number of the GPU of each access, 0 to 7; 0 by default.
    kernels : sequence of str of length a, optional
        The kernel of each access; all of one by default.
    arrays : mapping of str to (int, int), optional
        Begin and bytes of each array; accesses outside are an error. By default, every range of
        pages without a gap of 2 MiB is an array, ``range 0``, ``range 1`` and so on.
    groups : mapping of str to str, optional
        Group of each array, of those that policies place; "graph" by default.

    Returns
    -------
    Trace

    Raises
    ------
    OptionError
        Columns of unequal length, negative addresses, arrays that overlap, or an access outside
        all of them.

    Examples
    --------
    >>> from louvain_um.profiling.simulator import simulate, trace_of_addresses
    >>> trace = trace_of_addresses([0x1000, 0x1004, 0x2000, 0x80000000], writes=[0, 0, 1, 0])
    >>> [(array.name, array.nbytes) for array in trace.arrays]
    [('range 0', 8192), ('range 1', 4096)]
    >>> simulate(trace).total("faults")
    3
    """
    at = _column("addresses", addresses, None)
    wrong = at[(at < 0) | (at >= 2**62)] if at.dtype.kind in "iu" else at
    if len(wrong):
        raise OptionError(
            "addresses", wrong.tolist()[0], "must be whole numbers from 0 to less than 2^62"
        )
    at = at.astype(np.int64)
    size = len(at)
    write = _column("writes", np.zeros(size) if writes is None else writes, size).astype(np.bool_)
    on_host = _column("host", np.zeros(size) if host is None else host, size).astype(np.bool_)
    gpus = _column("devices", np.zeros(size, np.int64) if devices is None else devices, size)
    whole = gpus.dtype.kind in "iu"
    wrong = gpus[(gpus < 0) | (gpus >= MOST_GPUS)] if whole else gpus
    if len(wrong):
        raise OptionError(
            "devices", wrong.tolist()[0], f"must be whole numbers from 0 to {MOST_GPUS - 1}"
        )
    names = np.array(["kernel"] * size if kernels is None else list(kernels), np.str_)
    names = _column("kernels", names, size)
    if times is not None:
        when = _column("times", times, size)
        wrong = when[np.isnan(when)] if when.dtype.kind in "iuf" else when
        if len(wrong):
            raise OptionError("times", wrong.tolist()[0], "must be numbers")
        order = np.argsort(when, kind="stable")
        at, write, on_host, names = at[order], write[order], on_host[order], names[order]
        gpus = gpus[order]
    found = _given(arrays) if arrays is not None else _ranges(at)
    begins = np.array([begin for _, begin, _ in found], np.int64)
    owner = np.searchsorted(begins, at, side="right") - 1
    ends = np.array([begin + nbytes for _, begin, nbytes in found], np.int64)
    outside = (owner < 0) | (at >= ends[owner]) if len(found) else np.ones(size, np.bool_)
    if outside.any():
        first = int(at[np.argmax(outside)])
        raise OptionError(
            remedy=f"address {first:#x} lies in none of the arrays; name all arrays, or none"
        )
    page = at // PAGE_BYTES - begins[owner] // PAGE_BYTES
    columns = tuple(
        Array(
            name=name, group=(groups or {}).get(name, "graph"), nbytes=nbytes + begin % PAGE_BYTES
        )
        for name, begin, nbytes in found
    )
    return Trace(columns, _steps(owner, page, write, on_host, names, gpus))


def read_addresses(path: str | Path, arrays: str | Path | None = None) -> Trace:
    r"""Read a table of addresses, one access a row.

    Parameters
    ----------
    path : path
        CSV or Parquet. Columns `time` (any unit) and `address` (whole numbers, or text like
        ``0x7f00``); optional `write` and `host` (0 or 1), `kernel` (text) and `device` (number of
        the GPU).
    arrays : path, optional
        A table of the arrays: `name`, `address`, `nbytes` and optionally `group`.

    Returns
    -------
    Trace
        `save` it to replay it later; `louvain-um simulate` takes the file.

    Raises
    ------
    LouvainUmError
        A file cannot be read, or a column is missing.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from louvain_um.profiling.simulator import read_addresses
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "trace.csv")
    ...     _ = path.write_text("time,address,write\n0,0x1000,0\n1,0x2000,1\n")
    ...     len(read_addresses(path).steps)
    1
    """
    table = _read(path, COLUMNS[:2], COLUMNS)
    named = groups = None
    if arrays is not None:
        listed = _read(arrays, ARRAY_COLUMNS[:3], ARRAY_COLUMNS)
        names = listed["name"].astype(str).tolist()
        spans = zip(
            _whole(arrays, listed["address"]), _whole(arrays, listed["nbytes"]), strict=True
        )
        named = dict(zip(names, ((int(a), int(b)) for a, b in spans), strict=True))
        if len(named) < len(names):
            raise LouvainUmError(f"{arrays}: two arrays have the same name; rename one")
        if "group" in listed:
            groups = dict(zip(names, listed["group"].astype(str).tolist(), strict=True))
    flags = {name: _flags(path, table[name]) for name in ("write", "host") if name in table}
    try:
        return trace_of_addresses(
            _whole(path, table["address"]),
            times=table["time"].to_numpy(),
            writes=flags.get("write"),
            host=flags.get("host"),
            devices=_whole(path, table["device"]) if "device" in table else None,
            kernels=table["kernel"].astype(str).tolist() if "kernel" in table else None,
            arrays=named,
            groups=groups,
        )
    except OptionError as error:
        raise LouvainUmError(f"{path}: {error}") from None


def holds_addresses(path: Path) -> bool:
    """Return whether a file is a table of addresses; raise if its columns have other names."""
    if path.suffix not in (".csv", ".parquet") or not path.is_file():
        return False
    try:
        if path.suffix == ".csv":
            with path.open(encoding="utf-8") as file:
                titles = {title.strip(' "\n') for title in file.readline(1 << 12).split(",")}
        else:
            from pyarrow.parquet import read_schema

            titles = set(read_schema(path).names)
    except Exception:  # pyarrow raises several types; reading the graph gives the error
        return False
    return set(COLUMNS[:2]) <= titles


def _column(name: str, given: ArrayLike, size: int | None) -> NDArray[Any]:
    column = np.asarray(given)
    if column.ndim != 1 or (size is not None and len(column) != size):
        raise OptionError(name, column.shape, "must have one entry per address")
    return column


def _ranges(at: NDArray[np.int64]) -> list[tuple[str, int, int]]:
    """Return ranges of touched pages: name, begin, bytes."""
    pages = distinct(at // PAGE_BYTES)
    if not len(pages):
        return []
    cuts = np.flatnonzero(np.diff(pages) > GAP_PAGES) + 1
    return [
        (f"range {k}", int(part[0]) * PAGE_BYTES, int(part[-1] - part[0] + 1) * PAGE_BYTES)
        for k, part in enumerate(np.split(pages, cuts))
    ]


def _given(arrays: Mapping[str, tuple[int, int]]) -> list[tuple[str, int, int]]:
    """Return named arrays in the order of their addresses; two must not share a page."""
    found = sorted(((name, *span) for name, span in arrays.items()), key=lambda row: row[1])
    last = 0
    for name, begin, nbytes in found:
        if nbytes <= 0 or begin < 0 or begin + nbytes >= 2**62:
            raise OptionError(remedy=f"array {name!r} must have an address and bytes above 0")
        if begin // PAGE_BYTES < last:
            raise OptionError(remedy=f"array {name!r} shares a page with the one before it")
        last = -(-(begin + nbytes) // PAGE_BYTES)
    return found


def _steps(
    owner: NDArray[np.int64],
    page: NDArray[np.int64],
    write: NDArray[np.bool_],
    on_host: NDArray[np.bool_],
    names: NDArray[np.str_],
    gpus: NDArray[np.int64],
) -> tuple[Step, ...]:
    """Cut accesses into launches and touches of the host."""
    size = len(owner)
    if not size:
        return ()
    new = np.arange(size) == 0
    for column in (on_host, names, gpus):
        new[1:] |= column[1:] != column[:-1]
    starts = [*np.flatnonzero(new).tolist(), size]
    steps: list[Step] = []
    for begin, end in pairwise(starts):
        part = slice(begin, end)
        ways = np.where(write[part], Access.SCATTER, Access.GATHER)
        touches = Touches.of(owner[part], page[part], ways)
        if on_host[begin]:
            steps.append(HostTouches(touches=touches))
        else:
            steps.append(Launch(touches=touches, kernel=str(names[begin]), device=int(gpus[begin])))
    return tuple(steps)


def _read(path: str | Path, required: Sequence[str], known: Sequence[str]) -> pd.DataFrame:
    """Return a table with some columns."""
    import pandas as pd

    from louvain_um.formats.attributes import read_parquet

    try:
        table = (read_parquet if Path(path).suffix == ".parquet" else pd.read_csv)(path)
    except LouvainUmError:
        raise
    except OSError as error:
        raise LouvainUmError(f"{path}: {reason_of(error)}; check the path") from None
    except Exception as error:  # pandas and pyarrow raise several types
        raise LouvainUmError(
            f"{path}: is not a table ({first_line_of(error)}); write CSV or Parquet"
        ) from None
    missing = [name for name in required if name not in table.columns]
    if missing:
        raise LouvainUmError(
            f"{path}: lacks the column {', '.join(missing)}; known columns: {', '.join(known)}"
        )
    if table.empty:
        raise LouvainUmError(f"{path}: has no rows; record at least one")
    return table


def _whole(path: str | Path, column: pd.Series[Any]) -> NDArray[np.int64]:
    """Return whole numbers, which may be written as ``0x…``."""
    try:
        if column.dtype.kind in "iu" and column.dtype != np.uint64:
            return np.asarray(column, np.int64)
        return np.array([int(str(value), 0) for value in column], np.int64)
    except (ValueError, OverflowError):
        raise LouvainUmError(
            f"{path}: column {column.name} must hold whole numbers below 2^63, such as 4096 or "
            "0x1000"
        ) from None


def _flags(path: str | Path, column: pd.Series[Any]) -> NDArray[np.bool_]:
    """Return a column of 0 and 1."""
    values = np.asarray(column)
    if values.dtype.kind not in "biu" or not np.isin(values, (0, 1)).all():
        raise LouvainUmError(f"{path}: column {column.name} must hold 0 and 1")
    return np.asarray(values, np.bool_)
