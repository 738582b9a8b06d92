"""Seeded damage to saved files: to their bytes, arrays, JSON and text."""

import contextlib
import copy
import gzip
import io
import json
import sqlite3
import zipfile
from typing import Any

import numpy as np

DEEP = "\0deep\0"
"""Stands for lists nested deeper than a parser follows."""

VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 1, 7, 0.5, -0.5, 1 << 15, 1 << 31, 1 << 40, 1 << 62, (1 << 63) - 1, 1 << 64,
    10**30, 1e18, 1e308, float("nan"), float("inf"), "", "x", "x" * 5000, "a\nb", "\0", "-1", "nan",
    [], [[]], {}, {"x": {}}, [1] * 9, DEEP,
)  # fmt: skip
PARQUET_VALUES: tuple[Any, ...] = (
    None, True, -1, 1 << 62, 0.5, float("nan"), "", "x", "7", b"\xff", [1, 2], {"a": 1},
)  # fmt: skip
TYPES = (np.int8, np.uint8, np.int16, np.int64, np.uint64, np.float64, np.bool_, "S3", "U2")


def nodes(value, at=()):
    """Return the paths of all values inside JSON data."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    found = []
    for key, item in list(items):
        found.append((*at, key))
        if isinstance(item, dict | list):
            found += nodes(item, (*at, key))
    return found


def any_value(rng):
    """Return a value that files seldom hold."""
    return copy.deepcopy(rng.choice(VALUES))


def in_json(rng, value):
    """Return JSON data with a value replaced, removed, added or repeated."""
    value = json.loads(json.dumps(value))
    for _ in range(rng.choice((1, 1, 1, 3))):
        paths = nodes(value)
        if not paths:
            return any_value(rng)
        *head, key = rng.choice(paths)
        place = value
        for step in head:
            place = place[step]
        what = rng.randrange(6)
        if what == 0:
            del place[key]
        elif what == 1 and isinstance(place, list):
            place.insert(key, place[key])
        elif what == 1:
            place[rng.choice(("unknown", "", "x" * 300))] = any_value(rng)
        else:
            place[key] = any_value(rng)
    return value


def dumped(value):
    """Return JSON as text, with nests as deep as they stand for."""
    deep = "[" * 100_000 + "]" * 100_000
    return json.dumps(value).replace(json.dumps(DEEP), deep)


def in_bytes(rng, data):
    """Return bytes cut, flipped, overwritten, repeated or removed."""
    whole = bytearray(data)
    at = rng.randrange(len(whole))
    what = rng.randrange(5)
    if what == 0:
        return bytes(whole[:at])
    if what == 1:
        for _ in range(rng.choice((1, 3, 20))):
            whole[rng.randrange(len(whole))] ^= 1 << rng.randrange(8)
    elif what == 2:
        width = rng.choice((1, 2, 4, 8))
        whole[at : at + width] = rng.choice((b"\xff", b"\0", b"\x7f")) * width
    elif what == 3:
        whole[at:at] = whole[at : at + rng.choice((1, 40, 4000))]
    else:
        del whole[at : at + rng.choice((1, 40, 4000))]
    return bytes(whole)


def in_array(rng, array):
    """Return an array of other length, shape, type or values; of a table, in one column."""
    what = rng.randrange(6)
    if array.dtype.names and what in (3, 5):
        name = rng.choice(array.dtype.names)
        column = in_array(rng, array[name])
        if column.shape != array.shape:
            return column
        kinds = [(each, column.dtype if each == name else kind) for each, kind in array.dtype.descr]
        table = np.empty(array.shape, kinds)
        for each in array.dtype.names:
            table[each] = column if each == name else array[each]
        return table
    if what == 0:
        return array[: rng.randrange(len(array) + 1)] if array.ndim else array
    if what == 1:
        return np.concatenate([array, array])
    if what == 2:
        return array.reshape(rng.choice(((1, -1), (-1, 1), (-1,))))
    if what == 3:
        return array.astype(rng.choice(TYPES))
    if what == 4:
        return np.array(rng.choice((0, "x", 1.5)))
    array = array.copy()
    if array.size:
        limits = np.iinfo(array.dtype) if array.dtype.kind in "iu" else None
        low, high = (limits.min, limits.max) if limits else (-1, 1)
        value = rng.choice((low, high, high // 2, 0, 1, high - 1))
        array.reshape(-1)[rng.randrange(array.size)] = value
    return array


def in_archive(rng, data):
    """Return an archive with a member, its header of JSON or a claimed shape changed."""
    with np.load(io.BytesIO(data)) as found:
        arrays = dict(found)
    name = rng.choice(list(arrays))
    plain = [key for key, array in arrays.items() if array.dtype == np.uint8 and _is_json(array)]
    if plain and rng.random() < 0.6:
        name = rng.choice(plain)
        text = dumped(in_json(rng, json.loads(arrays[name].tobytes())))
        arrays[name] = np.frombuffer(text.encode(), np.uint8)
    elif rng.random() < 0.15:
        del arrays[name]
    else:
        arrays[name] = in_array(rng, arrays[name])
    out = io.BytesIO()
    np.savez(out, **arrays)
    if rng.random() < 0.1:
        return claiming(rng, out.getvalue())
    return out.getvalue()


def _is_json(array):
    """Return whether bytes are JSON with values inside."""
    try:
        return bool(json.loads(array.tobytes()))
    except (ValueError, RecursionError):
        return False


def claiming(rng, data):
    """Return an archive in which an array claims to be huge."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
        chosen = rng.choice(old.namelist())
        for name in old.namelist():
            part = old.read(name)
            if name == chosen:
                size = rng.choice((1 << 33, 1 << 45, 1 << 62, -1))
                head = f"{{'descr': '<i8', 'fortran_order': False, 'shape': ({size},), }}"
                text = head.ljust(117).encode() + b"\n"
                part = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + part[128:]
            new.writestr(name, part)
    return out.getvalue()


def in_text(rng, data):
    """Return text with words and lines replaced, removed and repeated."""
    words = data.decode().replace("=", " = ").replace(",", " , ").split(" ")
    lines = data.decode().split("\n")
    what = rng.randrange(4)
    if what == 0:
        at = rng.randrange(len(lines))
        lines[at : at + 1] = rng.choice(([], [lines[at]] * 2, ["x" * 70_000], ["[" * 50_000]))
        return "\n".join(lines).encode()
    word = rng.choice([word for word in words if word.strip()] or ["x"]).strip()
    value = rng.choice([value for value in VALUES if value != DEEP])
    return data.replace(word.encode(), dumped(value).encode()[:6000], rng.choice((1, 1, -1)))


def in_lines(rng, data):
    """Return lines of JSON, one of them changed."""
    lines = data.decode().splitlines()
    at = rng.randrange(len(lines))
    lines[at] = dumped(in_json(rng, json.loads(lines[at])))
    return ("\n".join(lines) + "\n").encode()


def in_whole_json(rng, data):
    """Return a file of JSON, changed."""
    return dumped(in_json(rng, json.loads(data))).encode()


def in_numpy(rng, data):
    """Return a file of one array, changed."""
    out = io.BytesIO()
    np.save(out, in_array(rng, np.load(io.BytesIO(data))))
    return out.getvalue()


def in_parquet(rng, data):
    """Return a file of a table, changed."""
    from pyarrow import parquet

    out = io.BytesIO()
    parquet.write_table(in_table(rng, parquet.read_table(io.BytesIO(data))), out)
    return out.getvalue()


def in_feather(rng, data):
    """Return a file of a table, changed, as Arrow writes it, packed or not."""
    from pyarrow import feather

    out = io.BytesIO()
    table = in_table(rng, feather.read_table(io.BytesIO(data)))
    feather.write_feather(table, out, compression=rng.choice(("uncompressed", "lz4", "zstd")))
    return out.getvalue()


def in_table(rng, table):
    """Return a table with a column or its metadata changed."""
    import pyarrow as pa

    at = rng.randrange(max(table.num_columns, 1))
    what = rng.randrange(6)
    if what == 0:
        table = table.remove_column(at)
    elif what == 1:
        names = [*table.column_names]
        names[at] = rng.choice((*names, "", "x", "weight", "time", "a\nb"))
        table = table.rename_columns(names)
    elif what == 2:
        table = table.slice(rng.randrange(table.num_rows + 1), rng.choice((0, 1, table.num_rows)))
    elif what == 3:
        about = {
            key: rng.choice((b"", b"-1", b"x", b"9" * 30)) for key in table.schema.metadata or ()
        }
        table = table.replace_schema_metadata(about or {"louvain_um_vertices": "7"})
    else:
        values = table.column(at).to_pylist()
        if what == 4 and values:
            values[rng.randrange(len(values))] = rng.choice((None, -1, 1 << 62, 0.5, "x", b"x"))
        else:
            values = [rng.choice(PARQUET_VALUES)] * len(values)
        with contextlib.suppress(pa.ArrowException, OverflowError):
            table = table.set_column(at, table.column_names[at], pa.array(values))
    return table


def in_hdf5(rng, data):
    """Return a file of HDF5 with an array or an attribute changed or removed."""
    import h5py

    out = io.BytesIO(data)
    with h5py.File(out, "r+") as file:
        found = []
        file.visit(found.append)
        name = rng.choice(found)
        node, what = file[name], rng.randrange(4)
        if what == 0:
            del file[name]
        elif what == 1 and node.attrs:
            key = rng.choice(sorted(node.attrs))
            with contextlib.suppress(TypeError, ValueError):
                node.attrs[key] = rng.choice((-1, 1 << 62, 0.5, "x", "csr_matrix", [7, 7], [1.5]))
        elif what == 2 and node.attrs:
            del node.attrs[rng.choice(sorted(node.attrs))]
        elif isinstance(node, h5py.Dataset) and node.dtype.kind in "iuf":
            attributes, array = dict(node.attrs), in_array(rng, node[()])
            if array.dtype.kind != "U":
                del file[name]
                file[name] = array
                file[name].attrs.update(attributes)
    return out.getvalue()


def in_gzip(rng, data):
    """Return a packed file, its text changed."""
    return gzip.compress(in_bytes(rng, gzip.decompress(data)), 1)


def in_database(rng, data):
    """Return a SQLite database with a value, a column or a table changed."""
    base = sqlite3.connect(":memory:")
    base.deserialize(data)
    tables = [row[0] for row in base.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    table = rng.choice(tables)
    columns = [row[1] for row in base.execute(f'PRAGMA table_info("{table}")')]
    column = rng.choice(columns)
    what = rng.randrange(8)
    if what == 0:
        change, values = f'DROP TABLE "{table}"', ()
    elif what == 1:
        change, values = f'ALTER TABLE "{table}" DROP COLUMN "{column}"', ()
    elif what == 2:
        change, values = f'DELETE FROM "{table}"', ()
    else:
        value = rng.choice((None, -1, 0, 1 << 62, -(1 << 63), 0.5, "x", "", b"x", "a" * 5000))
        where = rng.choice(("", " WHERE rowid = 1", " WHERE rowid % 2"))
        change, values = f'UPDATE "{table}" SET "{column}" = ?{where}', (value,)
    with contextlib.suppress(sqlite3.Error):  # a key must stay one
        base.execute(change, values)
    base.commit()
    return base.serialize()


def ways_of(path):
    """Return how a file can be damaged, by its name."""
    ways = {
        ".npz": in_archive, ".toml": in_text, ".csv": in_text, ".txt": in_text,
        ".json": in_whole_json, ".cyjs": in_whole_json, ".jsonl": in_lines, ".npy": in_numpy,
        ".parquet": in_parquet, ".feather": in_feather, ".arrow": in_feather, ".gz": in_gzip,
        ".sqlite": in_database, ".h5ad": in_hdf5,
    }  # fmt: skip
    way = ways.get(path.suffix)
    return (way, way, way, in_bytes) if way else (in_bytes,)


def damage(rng, path):
    """Return what a file holds, damaged."""
    return rng.choice(ways_of(path))(rng, path.read_bytes())
