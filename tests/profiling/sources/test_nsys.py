import sqlite3
import sys

import pytest

from louvain_um.errors import LouvainUmError
from louvain_um.formats import read_graph
from louvain_um.profiling import import_nsys, load
from louvain_um.profiling.access.recordings import recording_in
from louvain_um.profiling.session import Lifetime
from louvain_um.profiling.session.events import Cause, Kind, Source
from louvain_um.profiling.simulator import Launch
from louvain_um.profiling.sources import nsys
from louvain_um.profiling.sweep.replay import run
from louvain_um.profiling.views.session.analysis import SessionAnalysis
from louvain_um.profiling.views.session.tables import by_cause
from louvain_um.profiling.views.session.verdict import verdict

# As in NVIDIA's "SQLite Export Schema Reference"; columns that nothing here reads are left out.
SCHEMA = """
CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE TARGET_INFO_GPU (id INT, name TEXT);
CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INT, utcTime TEXT, localTime TEXT);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT NOT NULL, end INT NOT NULL, deviceId INT,
    correlationId INT, demangledName INT NOT NULL, shortName INT NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INT NOT NULL, end INT NOT NULL, deviceId INT,
    bytes INT NOT NULL, copyKind INT NOT NULL, migrationCause INT, virtualAddress INT);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start INT NOT NULL, end INT NOT NULL, bytes INT);
CREATE TABLE NVTX_EVENTS (start INT NOT NULL, end INT, eventType INT NOT NULL, text TEXT,
    textId INT);
"""
FAULTS = """
CREATE TABLE CUDA_UM_GPU_PAGE_FAULT_EVENTS (start INT NOT NULL, end INT NOT NULL, globalPid INT,
    deviceId INT, address INT NOT NULL, numberOfPageFaults INT NOT NULL, faultAccessType INT);
CREATE TABLE CUDA_UM_CPU_PAGE_FAULT_EVENTS (start INT NOT NULL, globalPid INT,
    address INT NOT NULL, originalFaultPc INT);
"""
BASE = 0x7F00_0000_0000


Row = tuple[str, tuple[object, ...]]


def database(path, *scripts, rows=()):
    with sqlite3.connect(path) as base:
        for script in scripts:
            base.executescript(script)
        for table, values in rows:
            marks = ", ".join("?" * len(values))
            base.execute(f"INSERT INTO {table} VALUES ({marks})", values)
    base.close()
    return path


@pytest.fixture
def export(tmp_path):
    return an_export(tmp_path)


def an_export(folder):
    """Write an export with a row of every table."""
    rows = [
        ("StringIds", (1, "void move_tile<unsigned int>(Level)")),
        ("StringIds", (2, "move_tile")),
        ("StringIds", (3, "move 0")),
        ("TARGET_INFO_GPU", (0, "NVIDIA H200")),
        ("TARGET_INFO_SESSION_START_TIME", (1, "2026-01-02T03:04:05", "")),
        ("CUPTI_ACTIVITY_KIND_KERNEL", (1000, 9000, 0, 1, 1, 2)),
        ("CUPTI_ACTIVITY_KIND_MEMCPY", (500, 600, 0, 77, 1, None, None)),  # a plain copy
        ("CUPTI_ACTIVITY_KIND_MEMCPY", (2000, 2100, 0, 65536, 11, 2, BASE)),
        ("CUPTI_ACTIVITY_KIND_MEMCPY", (3000, 3100, 0, 4096, 11, 3, BASE + 65536)),
        ("CUPTI_ACTIVITY_KIND_MEMCPY", (9500, 9900, 0, 2 << 20, 12, 4, BASE)),
        ("CUPTI_ACTIVITY_KIND_MEMSET", (100, 110, 32)),
        ("CUDA_UM_GPU_PAGE_FAULT_EVENTS", (1500, 2500, 0, 0, BASE, 9, 1)),
        ("CUDA_UM_CPU_PAGE_FAULT_EVENTS", (9400, 0, BASE + 4096, 0)),
        ("NVTX_EVENTS", (900, 9200, 59, None, 3)),
        ("NVTX_EVENTS", (9300, 9950, 60, "fetch", None)),
        ("NVTX_EVENTS", (9300, None, 34, "a mark", None)),
    ]
    return database(folder / "run.sqlite", SCHEMA, FAULTS, rows=rows)


def test_an_export_becomes_a_session(export):
    array = Lifetime(
        name="targets.0", group="graph", address=BASE, nbytes=4 << 20, start_ns=0, end_ns=10_000
    )
    session = import_nsys(export, arrays=[array])
    events = session.events
    assert set(events["source"]) == {Source.NSYS}
    assert events.total(Kind.HTOD) == 65536 + 4096
    assert events.total(Kind.HTOD, Cause.COHERENCE) == 65536
    assert events.total(Kind.DTOH, Cause.EVICTION) == 2 << 20
    assert events.total(Kind.COPY_TO_DEVICE) == 77
    assert events.total(Kind.COPY) == 32
    assert events.total(Kind.GPU_FAULT_GROUP, column="count") == 9
    assert events.total(Kind.CPU_FAULT, column="count") == 1
    kernel = events.select(events.where(Kind.KERNEL))
    assert events.kernels[kernel["kernel"][0]] == "move_tile"
    assert kernel["duration"][0] == 8000
    assert [(span.phase, span.level) for span in session.phases] == [("move", 0), ("fetch", -1)]
    inside = events.select(events.where(Kind.HTOD))
    assert [events.phases[p] for p in inside["phase"]] == ["move", "move"]
    assert inside["level"].tolist() == [0, 0]
    assert session.unattributed == 0
    assert session.metadata["device"] == "NVIDIA H200"
    assert session.metadata["created"] == "2026-01-02T03:04:05"
    figures = session.summary()
    assert figures["by_group"]["graph"]["bytes_to_device"] == 65536 + 4096
    assert figures["gpu_fault_groups"] == 1
    assert figures["sources"] == {"nsys": "measured"}
    assert session.notes == ()
    # A report takes an export as it takes a session.
    assert load(export).events.total(Kind.HTOD) == 65536 + 4096


def test_a_range_numbered_beyond_any_level_has_none(export):
    rows = [("NVTX_EVENTS", (100, 200, 59, f"batch {at}", None)) for at in (7, 40_000)]
    session = load(database(export, rows=rows))
    assert [(span.phase, span.level) for span in session.phases[:2]] == [
        ("batch", 7),
        ("batch", -1),
    ]


def test_an_older_export_without_faults_and_causes_says_what_is_missing(tmp_path):
    schema = SCHEMA.replace(", migrationCause INT, virtualAddress INT", "")
    rows = [("CUPTI_ACTIVITY_KIND_MEMCPY", (2000, 2100, 0, 65536, 11))]
    session = import_nsys(database(tmp_path / "old.sqlite", schema, rows=rows))
    assert session.events.total(Kind.HTOD, Cause.UNKNOWN) == 65536
    assert len(session.notes) == 2
    assert all("page-faults true" in note for note in session.notes)


def test_other_files_are_refused_in_a_line(tmp_path):
    text = tmp_path / "a.sqlite"
    text.write_text("no database")
    other = database(tmp_path / "b.sqlite", "CREATE TABLE songs (name TEXT)")
    empty = database(tmp_path / "c.sqlite", SCHEMA)
    broken = tmp_path / "d.sqlite"
    broken.write_bytes(other.read_bytes()[:200])
    for path, remedy in (
        (text, "nsys export"),
        (other, "nsys export"),
        (empty, "nsys profile"),
        (broken, "export it again"),
        (tmp_path / "absent.sqlite", "no such file"),
    ):
        with pytest.raises(LouvainUmError, match=remedy) as error:
            import_nsys(path)
        assert "\n" not in str(error.value)


ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c)"


@pytest.mark.parametrize(
    "script",
    [
        f"""DROP TABLE CUPTI_ACTIVITY_KIND_KERNEL;
        CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS {ENDLESS}
        SELECT x AS start, x AS end, 1 AS shortName, 1 AS demangledName FROM c;""",
        f"""DROP TABLE StringIds;
        CREATE VIEW StringIds AS {ENDLESS} SELECT x AS id, 'a' AS value FROM c;""",
        f"""DROP TABLE TARGET_INFO_GPU;
        CREATE VIEW TARGET_INFO_GPU AS {ENDLESS} SELECT sum(x) AS name FROM c;""",
    ],
)
def test_views_are_not_run(export, script):
    session = load(database(export, script))
    assert session.events.total(Kind.HTOD) == 65536 + 4096


def test_generated_columns_are_not_computed(tmp_path):
    slow = "instr(zeroblob(9000000), x'01')"
    schema = SCHEMA.replace("bytes INT);", f"bytes INT AS ({slow}));")
    rows = [("CUPTI_ACTIVITY_KIND_MEMCPY", (2000, 2100, 0, 7, 11, 0, BASE))]
    path = database(tmp_path / "slow.sqlite", schema, rows=rows)
    with sqlite3.connect(path) as base:
        insert = "INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET (start, end) VALUES (?, ?)"
        base.executemany(insert, [(1, 2)] * 9)
    base.close()
    assert len(load(path).events) == 1


def test_reading_that_costs_too_much_is_stopped(export, monkeypatch):
    for name, most in (("STEPS", 0), ("STEPS_PER_BYTE", 0), ("STEPS_AT_ONCE", 1)):
        monkeypatch.setattr(nsys, name, most)
    assert "interrupted" in str(refusal(export))


def refusal(path):
    with pytest.raises(LouvainUmError) as caught:
        load(path)
    return caught.value


@pytest.mark.parametrize(
    ("table", "values"),
    [
        ("CUPTI_ACTIVITY_KIND_MEMSET", (1, 2, 1 << 62)),
        ("CUPTI_ACTIVITY_KIND_MEMSET", (1, 2, -5)),
        ("CUPTI_ACTIVITY_KIND_MEMSET", (-(1 << 63), (1 << 63) - 1, 5)),
        ("CUPTI_ACTIVITY_KIND_MEMSET", ((1 << 63) - 1, (1 << 63) - 1, 5)),
        ("CUPTI_ACTIVITY_KIND_MEMSET", (b"x", 2, 5)),
        ("CUPTI_ACTIVITY_KIND_MEMCPY", (500, 600, 0, "many", 1, None, None)),
        ("CUPTI_ACTIVITY_KIND_KERNEL", (b"\xff", 600, 0, 0, 1, 2)),
        ("NVTX_EVENTS", (1.5, 9, 59, "move 0", None)),
        ("NVTX_EVENTS", ("a", 2, 59, "move 0", None)),
        ("NVTX_EVENTS", (1, 2, 59, b"\xff", None)),
        ("NVTX_EVENTS", (1, b"x", 59, "move", None)),
        ("NVTX_EVENTS", (1, 2, 59, f"move {'9' * 5000}", None)),
        ("StringIds", (2, b"move_tile")),
    ],
)
def test_values_beyond_all_bounds_are_one_line(export, table, values):
    with sqlite3.connect(export) as base:
        base.execute("DELETE FROM StringIds WHERE id = 2")
    base.close()
    times = 1 if table == "StringIds" else 2
    error = str(refusal(database(export, rows=[(table, values)] * times)))
    assert "\n" not in error
    assert error.endswith("export it again")


def test_values_that_are_null_are_refused_or_read_as_none(tmp_path):
    schema = SCHEMA.replace(" NOT NULL", "")
    rows = [
        ("CUPTI_ACTIVITY_KIND_MEMCPY", (None,) * 7),
        ("CUPTI_ACTIVITY_KIND_KERNEL", (None,) * 6),
    ]
    assert len(load(database(tmp_path / "a.sqlite", schema, rows=rows)).events) == 2
    for table, width in (("NVTX_EVENTS", 5), ("StringIds", 2)):
        path = database(tmp_path / f"{table}.sqlite", schema, rows=rows)
        database(path, rows=[(table, (None,) * width)])
        assert len(load(path).events) == 2
    broken = [*rows, ("NVTX_EVENTS", (None, 5, 59, "move", None))]
    assert "damaged" in str(refusal(database(tmp_path / "b.sqlite", schema, rows=broken)))


def test_what_has_no_table_was_not_recorded(tmp_path):
    kernel = ("CUPTI_ACTIVITY_KIND_KERNEL", (1000, 9000, 0, 1, 1, 1))
    kernels_alone = SCHEMA.split("CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY")[0]
    figures = import_nsys(database(tmp_path / "a.sqlite", kernels_alone, rows=[kernel])).summary()
    unknown = ("bytes_to_device", "bytes_evicted", "gpu_faults", "cpu_faults", "remote_maps")
    assert [figures[name] for name in unknown] == [None] * 5
    session = import_nsys(tmp_path / "a.sqlite")
    assert "Whether pages moved was not recorded" in str(verdict(SessionAnalysis(session)))
    fault = ("CUDA_UM_GPU_PAGE_FAULT_EVENTS", (1100, 8900, 0, 0, BASE, 9, 1))
    faults = database(tmp_path / "b.sqlite", SCHEMA, FAULTS, rows=[kernel, fault])
    session = import_nsys(faults)
    assert session.summary()["bytes_to_device"] == 0
    found = str(verdict(SessionAnalysis(session)))
    assert "GPU page faults (1 group; no page moved to the device)" in found


def test_causes_of_no_name_have_a_row(tmp_path):
    copy = "CUPTI_ACTIVITY_KIND_MEMCPY"
    causes = (2, 9, None, 6, 4)
    rows = [(copy, (k, k + 1, 0, 4096, 11, why, BASE)) for k, why in enumerate(causes)]
    session = import_nsys(database(tmp_path / "a.sqlite", SCHEMA, rows=rows))
    table = by_cause(SessionAnalysis(session))
    assert sum(row["bytes"] for row in table.rows) == session.summary()["bytes_to_device"]
    assert {row["cause"]: row["copies"] for row in table.rows}["unknown cause"] == 3


@pytest.mark.parametrize(
    ("names", "title"), [("AA", "2 × A"), ("AB", "A, B"), ("A", "A")], ids=["equal", "two", "one"]
)
def test_the_title_names_every_gpu_in_use(tmp_path, names, title):
    kernel = "CUPTI_ACTIVITY_KIND_KERNEL"
    rows = [("TARGET_INFO_GPU", (k, name)) for k, name in enumerate(names)]
    rows += [(kernel, (k, k + 1, k, 1, 1, 1)) for k in range(len(names))]
    rows.append(("TARGET_INFO_GPU", (7, "unused")))
    session = import_nsys(database(tmp_path / "a.sqlite", SCHEMA, rows=rows))
    assert session.metadata["device"] == title


def as_parquet(path):
    """Write the tables of an export into a folder, as `nsys export --type parquetdir` does."""
    import pyarrow
    from pyarrow import parquet

    folder = path.with_suffix(".parquet")
    folder.mkdir()
    with sqlite3.connect(path) as base:
        for (name,) in base.execute("SELECT name FROM sqlite_master WHERE type = 'table'"):
            rows = base.execute(f"SELECT * FROM {name}")
            names = [column[0] for column in rows.description]
            columns = list(zip(*rows, strict=True)) or [[] for _ in names]
            table = pyarrow.table(dict(zip(names, columns, strict=True)))
            parquet.write_table(table, folder / f"{name}.parquet")
    base.close()
    return folder


def test_a_folder_of_parquet_files_needs_pyarrow(export, monkeypatch):
    folder = as_parquet(export)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(LouvainUmError, match="this format needs pyarrow; install it"):
        load(folder)


def test_a_folder_of_parquet_files_is_the_same_export(export):
    database, folder = load(export), load(as_parquet(export))
    for name in ("time", "kind", "bytes", "address", "count", "cause"):
        assert folder.events[name].tolist() == database.events[name].tolist()
    assert folder.events.kernels == database.events.kernels
    assert folder.phases == database.phases
    assert folder.metadata["device"] == "NVIDIA H200"


MIB = 1 << 20


def a_program(path):
    """Write an export of kernels: one reads two arrays three times, one only the second."""
    kernel, copy = "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY"
    faults = "CUDA_UM_GPU_PAGE_FAULT_EVENTS"
    rows = [("StringIds", (1, "both")), ("StringIds", (2, "second"))]
    # The first launch brings what the host wrote, block by block; the second array is new.
    rows += [(kernel, (10_000 * k, 10_000 * k + 9_000, 0, k, 1, 1)) for k in (1, 2, 3, 5)]
    rows += [(kernel, (40_000, 49_000, 0, 4, 2, 2))]
    for block in range(4):
        at = 10_000 + 1000 * block
        rows.append((copy, (at, at + 10, 0, 2 * MIB, 11, 2, BASE + 2 * MIB * block)))
        rows.append((faults, (at, at + 5, 0, 0, BASE + (1 << 30) + 2 * MIB * block, 999, 2)))
    # The host reads a page of the first, and the program prefetches a block back.
    rows.append((copy, (36_000, 36_100, 0, 4096, 12, 2, BASE)))
    rows.append(("CUDA_UM_CPU_PAGE_FAULT_EVENTS", (35_900, 0, BASE, 0)))
    rows.append((copy, (49_500, 49_600, 0, 2 * MIB, 11, 1, BASE)))
    return database(path, SCHEMA, FAULTS, rows=rows)


@pytest.mark.parametrize("form", ["sqlite", "parquet"])
def test_kernels_of_an_export_access_what_they_brought(tmp_path, form):
    path = a_program(tmp_path / "run.sqlite")
    trace = recording_in(path if form == "sqlite" else as_parquet(path))
    assert [(a.name, a.nbytes // MIB, a.starts) for a in trace.arrays] == [
        ("range 0", 8, "host"), ("range 1", 8, "nowhere"),
    ]  # fmt: skip
    found = [
        (step.kernel, step.touches.touches, step.repeats, step.compute_seconds)
        if isinstance(step, Launch) else type(step).__name__ for step in trace.steps
    ]  # fmt: skip
    pages = 16 * MIB // 4096
    assert found == [
        ("both", pages, 1.0, 9e-6), ("both", pages, 1.0, 9e-6), "HostTouches",
        ("both", pages, 1.0, 9e-6), ("second", 0, 1.0, 9e-6), "Prefetch",
        ("both", pages, 1.0, 9e-6),
    ]  # fmt: skip
    assert run(trace, "base", "h200", 16 * MIB).total("faults") > 0
    # The host touches an array that lies on the device, so a block is kept free for it.
    assert run(trace, "auto", "h200", 8 * MIB).total("evictions") == 0


@pytest.mark.deep
def test_kernels_of_two_gpus_stay_separate(tmp_path):
    kernel, copy = "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY"
    # Of two kernels at one time, GPU 3 brings a block from the host, and GPU 5 takes it.
    rows = [("StringIds", (1, "one")), ("StringIds", (2, "other"))]
    rows += [(kernel, (0, 9_000, 3, 1, 1, 1)), (kernel, (100, 20_000, 5, 2, 2, 2))]
    rows += [
        (copy, (500, 600, 3, 2 * MIB, 11, 2, BASE)),
        (copy, (8_000, 8_100, 5, 2 * MIB, 13, 2, BASE)),
    ]
    rows += [(copy, (30_000, 30_100, 5, MIB, 11, 1, BASE))]
    trace = recording_in(database(tmp_path / "run.sqlite", SCHEMA, FAULTS, rows=rows))
    pages = 2 * MIB // 4096
    first, second, prefetch = trace.steps
    assert (first.kernel, first.device, first.touches.touches) == ("one", 0, pages)
    assert (second.kernel, second.device, second.touches.touches) == ("other", 1, pages)
    assert (prefetch.device, prefetch.pages) == (1, pages // 2)
    found = run(trace, "base", "h200-x2", 16 * MIB)
    assert (found.bytes_to_device, found.bytes_between) == (2 * MIB, 2 * MIB)


@pytest.mark.parametrize(("destination", "device"), [(5, 5), (None, 3)])
def test_a_copy_between_gpus_is_of_its_destination(tmp_path, destination, device):
    # The export says where a copy takes place, and, of newer versions, where it goes.
    table = "CUPTI_ACTIVITY_KIND_MEMCPY"
    schema = f"{SCHEMA}ALTER TABLE {table} ADD COLUMN dstDeviceId INT;"
    rows = [
        (table, (0, 100, 3, 2 * MIB, 13, 2, BASE, destination)),
        (table, (200, 300, 3, 2 * MIB, 12, 2, BASE, 0)),  # of the host, whatever it is called
    ]
    events = import_nsys(database(tmp_path / "run.sqlite", schema, FAULTS, rows=rows)).events
    assert events["device"].tolist() == [device, 3]


def test_more_gpus_than_a_simulation_has_are_refused(tmp_path):
    for count in (8, 9):
        rows = [("StringIds", (1, "one"))]
        for gpu in range(count):
            rows += [
                ("CUPTI_ACTIVITY_KIND_KERNEL", (0, 9_000, gpu, 1, 1, 1)),
                ("CUPTI_ACTIVITY_KIND_MEMCPY",
                 (500, 600, gpu, 2 * MIB, 11, 2, BASE + 2 * MIB * gpu)),
            ]  # fmt: skip
        path = database(tmp_path / f"{count}.sqlite", SCHEMA, FAULTS, rows=rows)
        if count == 8:
            assert recording_in(path).devices == 8
        else:
            with pytest.raises(LouvainUmError, match=r"^\S*9\.sqlite: has events of 9 GPUs"):
                recording_in(path)


def test_what_cannot_be_replayed_or_read_says_why(tmp_path, export):
    nvprof = database(tmp_path / "old.sqlite", "CREATE TABLE StringTable (_id_ INT, value TEXT)")
    for read in (import_nsys, recording_in):
        with pytest.raises(LouvainUmError, match="is an export of nvprof, which is not read"):
            read(nvprof)
    rows = [("CUPTI_ACTIVITY_KIND_KERNEL", (1, 2, 0, 1, 1, 1))]
    with pytest.raises(LouvainUmError, match="no kernel that brought managed memory"):
        recording_in(database(tmp_path / "plain.sqlite", SCHEMA, rows=rows))
    after = ("CUPTI_ACTIVITY_KIND_MEMCPY", (5, 6, 0, 4096, 11, 2, BASE))
    with pytest.raises(LouvainUmError, match="no kernel that brought managed memory"):
        recording_in(database(tmp_path / "after.sqlite", SCHEMA, rows=[*rows, after]))
    report = tmp_path / "stats.csv"
    report.write_text("Start (ns),Duration (ns),CorrId,Name\n1,2,3,kernel\n")
    with pytest.raises(LouvainUmError, match="a report of nsys stats"):
        recording_in(report)
    addresses = tmp_path / "trace.csv"
    addresses.write_text("time,address,write\n0,0x1000,0\n1,0x2000,1\n")
    assert recording_in(addresses) is not None
    with pytest.raises(LouvainUmError, match="seems to list addresses of memory"):
        read_graph(addresses)
