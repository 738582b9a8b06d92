"""Check plain data, as JSON and TOML hold it, and read NumPy archives that may be damaged.

The annotations of a dataclass are the schema of the files that hold it: types, `Literal` values,
optional fields, tuples of others, and bounds as ``Annotated[int, Within(0, 9)]``. A library
(pydantic, msgspec) would be one more dependency of the core for these few rules, and would not
check arrays.
"""

from __future__ import annotations

import errno
import json
import math
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, fields, is_dataclass
from functools import cache
from pathlib import Path
from tokenize import TokenError
from types import NoneType, UnionType
from typing import IO, Annotated, Any, Final, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from louvain_um.core.atomic_files import replacing
from louvain_um.core.headroom import check_host_memory
from louvain_um.errors import GraphError, LouvainUmError, reason_of, warn

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
        raise LouvainUmError(f"{path}: {reason_of(error)}; check the path") from None
    except DAMAGED:
        raise LouvainUmError(refusal) from None


def write_archive(
    path: str | Path, arrays: Mapping[str, NDArray[Any]], *, force: bool, compressed: bool = False
) -> None:
    """Write arrays as an archive, whole or not at all."""
    save: Any = np.savez_compressed if compressed else np.savez
    with replacing(path, force=force) as part, part.open("wb") as file:
        save(file, **arrays)


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


MOST_WHOLE: Final = 1 << 62
"""Bound of whole numbers: two of them add up within int64."""

MOST_SHOWN: Final = 40
"""Characters of a value that an error shows."""

Check = Callable[[Any, str], Any]


@dataclass(frozen=True, slots=True)
class Within:
    """Bounds of a number, both included."""

    least: float = -MOST_WHOLE
    most: float = MOST_WHOLE


Whole = Annotated[int, Within(0)]
Finite = Annotated[float, Within(-1e300, 1e300)]


def parse(text: str | bytes) -> Any:
    """Return the values of JSON."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def read_json(path: Path) -> dict[str, Any] | None:
    """Return what a file of JSON holds; None if it is not there, damaged or no object."""
    try:
        found = parse(path.read_bytes())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def to_bytes(value: object) -> NDArray[np.uint8]:
    """Return values as JSON, whose bytes archives hold; what JSON has no type for as `as_json`."""
    return np.frombuffer(json.dumps(value, default=as_json).encode(), np.uint8)


def names_to_bytes(names: Sequence[Any]) -> NDArray[np.uint8]:
    """Return names of vertices as JSON; a warning says if some become text."""
    written = to_bytes(list(names))
    if {type(name) for name in names} <= {str, int, float, NoneType}:
        return written
    for name, read in zip(names, names_of_bytes(written), strict=True):
        if name == name and name != read:
            warn(
                f"the file names vertices by text: {read!r} stands for {name!r}; rename them "
                "before detection if they are needed as they are"
            )
            break
    return written


def names_of_bytes(written: NDArray[np.uint8]) -> list[Any]:
    """Return what `names_to_bytes` wrote; lists were tuples."""

    def hashable(name: Any) -> Any:
        return tuple(map(hashable, name)) if isinstance(name, list) else name

    try:
        return list(map(hashable, parse(written.tobytes())))
    except RecursionError:
        raise ValueError("nested too deeply") from None


def build(declared: Any, values: object, where: str) -> Any:
    """Return a dataclass made of a mapping's values, each checked."""
    if not isinstance(values, Mapping):
        raise ValueError(f"{where} must be a table of names and values, not {shown(values)}")
    checks = _checks(declared)
    for name in values:
        if name not in checks:
            raise ValueError(f"{where} has an unknown entry {shown(name)}")
    for name in _required(declared):
        if name not in values:
            raise ValueError(f"{where} lacks {name!r}")
    return declared(**{name: checks[name](value, f"{where}.{name}")
                       for name, value in values.items()})  # fmt: skip


def check_fields(instance: Any, where: str) -> None:
    """Check the values of a dataclass that a program made."""
    for name, check in _checks(instance.__class__).items():
        check(getattr(instance, name), f"{where}.{name}")


def check_known(values: Mapping[str, Any], hints: Mapping[str, Any], where: str) -> None:
    """Check those of a table's entries that have a hint; others may be anything."""
    for name in hints.keys() & values.keys():
        _check_of(hints[name])(values[name], f"{where}.{name}")


@cache
def _checks(declared: Any) -> dict[str, Check]:
    hints = get_type_hints(declared, include_extras=True)
    return {item.name: _check_of(hints[item.name]) for item in fields(declared)}


@cache
def _required(declared: Any) -> tuple[str, ...]:
    return tuple(
        item.name
        for item in fields(declared)
        if item.default is MISSING and item.default_factory is MISSING
    )


def _check_of(hint: Any) -> Check:
    """Return the check of an annotation."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Annotated and isinstance(parts[1], type):
        return _check_of(parts[1])  # narrower for type checkers than for files
    if origin is Annotated:
        bounds = next((part for part in parts[1:] if isinstance(part, Within)), Within())
        return _number(parts[0], bounds) if parts[0] in (int, float) else _check_of(parts[0])
    if origin in (Union, UnionType):
        return _either([part for part in parts if part is not NoneType], NoneType in parts)
    if origin is Literal:
        return _choice(parts)
    if origin is Mapping and parts[1] is not Any:
        return _table(_check_of(parts[1]))
    if origin is tuple and parts[1:] == (...,):
        return _several(_check_of(parts[0]))
    if origin is tuple:
        return _each([_check_of(part) for part in parts])
    if hint in (int, float):
        return _number(hint, Within())
    if isinstance(hint, type) and hasattr(hint, "__dataclass_fields__"):
        return lambda value, where: value if isinstance(value, hint) else build(hint, value, where)
    kind = origin or hint
    return _instance(kind) if isinstance(kind, type) else lambda value, where: value


def _number(kind: type, bounds: Within) -> Check:
    what = "a whole number" if kind is int else "a number"
    kinds = (int, np.integer) if kind is int else (int, float, np.integer, np.floating)

    def check(value: Any, where: str) -> Any:
        if isinstance(value, bool) or not isinstance(value, kinds):
            raise ValueError(f"{where} must be {what}, not {shown(value)}")
        if not bounds.least <= value <= bounds.most:
            inside = f"lie in {bounds.least:.4g} … {bounds.most:.4g}"
            rule = "be positive" if value <= 0 < bounds.least else inside
            raise ValueError(f"{where} must {rule}, not {shown(value)}")
        return value

    return check


def _either(kinds: list[Any], optional: bool) -> Check:
    checks = [_check_of(kind) for kind in kinds]

    def check(value: Any, where: str) -> Any:
        if (value is None and optional) or type(value) in kinds:
            return value
        for each in checks[:-1]:
            try:
                return each(value, where)
            except ValueError:
                continue
        return checks[-1](value, where)

    return check


def _choice(values: tuple[Any, ...]) -> Check:
    known = ", ".join(map(str, values))

    def check(value: Any, where: str) -> Any:
        if not isinstance(value, str | int) or value not in values:
            raise ValueError(f"{where} must be one of {known}, not {shown(value)}")
        return value

    return check


def _several(each: Check) -> Check:
    def check(value: Any, where: str) -> Any:
        if not isinstance(value, list | tuple):
            raise ValueError(f"{where} must be a list, not {shown(value)}")
        return tuple(each(item, f"{where}[{number}]") for number, item in enumerate(value))

    return check


def _table(each: Check) -> Check:
    table = _instance(Mapping)

    def check(value: Any, where: str) -> Any:
        return {name: each(item, f"{where}.{name}") for name, item in table(value, where).items()}

    return check


def _each(checks: list[Check]) -> Check:
    def check(value: Any, where: str) -> Any:
        if not isinstance(value, list | tuple) or len(value) != len(checks):
            raise ValueError(f"{where} must be a list of {len(checks)}, not {shown(value)}")
        pairs = zip(checks, value, strict=True)
        return tuple(one(item, f"{where}[{number}]") for number, (one, item) in enumerate(pairs))

    return check


def _instance(kind: type) -> Check:
    names = {str: "a text", bool: "true or false", Mapping: "a table of names and values"}
    what = names.get(kind, f"a {kind.__name__}")

    def check(value: Any, where: str) -> Any:
        if not isinstance(value, kind):
            raise ValueError(f"{where} must be {what}, not {shown(value)}")
        return value

    return check


def shown(value: object) -> str:
    """Return a value for a message, in one line, however long it is."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, int) and not -MOST_WHOLE < value < MOST_WHOLE:
        return "so large a number"
    if isinstance(value, Mapping | list | tuple):
        return "a table" if isinstance(value, Mapping) else "a list"
    text = repr(value[:MOST_SHOWN]) if isinstance(value, str) else repr(value)
    return " ".join(text.split())[: MOST_SHOWN + 2]


EXACT: Final = 1 << 53
"""Integers up to here are exact as float64."""


def plain_array(values: Any, what: str) -> NDArray[Any]:
    """Return values as NumPy does, but refuse masked entries and lists of different lengths."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):  # not pandas' own
        raise GraphError(f"{what} has masked entries; fill them, or leave them out")
    try:
        return np.asarray(values)
    except ValueError:
        raise GraphError(f"{what} must be an array, not lists of different lengths") from None


def objects(values: Sequence[Any]) -> NDArray[Any]:
    """Return an array that keeps each value as it is."""
    array = np.empty(len(values), object)
    array[:] = values
    return array


def number_array(values: Any) -> NDArray[Any]:
    """Return values as NumPy does, but lists of large integers not as float64."""
    # Integers keep their values: as int64 or uint64, or as objects where neither holds all.
    array = plain_array(values, "an array")
    if array.dtype.kind != "f" or array.ndim != 1 or hasattr(values, "dtype"):
        return array
    with np.errstate(invalid="ignore"):
        large = bool((np.abs(array) >= EXACT).any())
    return exact_numbers(list(values)) if large else array


def collected(table: Any) -> Any:
    """Return what a lazy frame of Polars computes; anything else as it is."""
    lazy = type(table).__module__.partition(".")[0] == "polars" and hasattr(table, "collect")
    return table.collect() if lazy else table


REAL: Final = (float, np.floating)


def is_real(value: object) -> bool:
    """Return whether a value is an integer or a real number; durations and complex ones are not."""
    number = isinstance(value, (int, float, np.integer, np.floating, np.bool_))
    return number and not isinstance(value, np.timedelta64)


def exact_numbers(values: list[Any]) -> NDArray[Any]:
    """Return numbers as int64, uint64 or float64, whichever keeps integers; else as objects."""
    whole = [int(value) for value in values if is_real(value) and not isinstance(value, REAL)]
    if len(whole) == len(values):
        low, high = min(whole, default=0), max(whole, default=0)
        for dtype in (np.int64, np.uint64):
            if np.iinfo(dtype).min <= low and high <= np.iinfo(dtype).max:
                return np.array(whole, dtype)
    elif all(abs(value) <= EXACT or _is_double(value) for value in whole):
        return np.array(values, np.float64)
    return objects(values)


def _is_double(value: int) -> bool:
    try:
        return int(float(value)) == value
    except OverflowError:
        return False


def is_missing(value: Any) -> bool:
    """Return whether a value stands for none: None, NaN, or pandas' NA and NaT."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    try:
        return bool(value != value)
    except ArithmeticError:  # a decimal NaN that signals
        return True
    except (TypeError, ValueError):  # arrays
        return False


def as_json(value: Any) -> Any:
    """Return a value in JSON's types; non-finite numbers become null."""
    if isinstance(value, Mapping):
        return {str(key): as_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(item) for item in value]
    if isinstance(value, np.ndarray | np.generic):
        return as_json(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, str | int | float):
        return value
    if is_dataclass(value) and not isinstance(value, type):
        return as_json(asdict(value))
    return str(value)
