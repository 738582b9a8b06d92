"""Labels in several files, local and remote, are those of the result."""

import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import louvain_um as lu
from louvain_um.distributed import run
from louvain_um.distributed.files import part_folder, writing
from louvain_um.distributed.files.part_folder import UNFINISHED, PartFolder, files_of
from louvain_um.distributed.files.writing import PartitionedLabels, write_labels_partitioned
from louvain_um.distributed.partition import deal
from louvain_um.distributed.run import detect_on_rank
from louvain_um.errors import LouvainUmError, OptionError
from louvain_um.formats.labels import read_labels
from louvain_um.options import Options
from louvain_um.results.communities import Communities
from louvain_um.results.comparison import compare
from tests.distributed.runs import assert_equal, graph_named, one_process
from tests.distributed.threads import detect_in_threads, run_threads


def skip_without_fsspec(path):
    if "://" in path:
        pytest.importorskip("fsspec")


def read_all(files):
    if "://" in files[0]:
        import fsspec

        tables = [pq.read_table(fsspec.open(file, "rb").open()) for file in files]
    else:
        tables = [pq.read_table(file) for file in files]
    columns = (np.concatenate([t[name].to_numpy() for t in tables]) for name in NAMES)
    return tuple(column.tolist() for column in columns)


NAMES = ("vertex", "community")


@pytest.fixture
def result():
    graph = lu.Graph.from_edges([0, 1, 2, 3, 4, 5, 0], [1, 2, 0, 4, 5, 3, 3])
    return lu.louvain(graph, device="cpu")


@pytest.mark.parametrize("scheme", ["", "file://", "memory://"])
def test_parts_are_the_labels(tmp_path, result, scheme):
    skip_without_fsspec(scheme)
    folder = f"{scheme}{tmp_path}/out"
    files = write_labels_partitioned(result, folder, parts=4)
    assert len(files) == 4
    vertices, labels = read_all(files)
    assert vertices == list(range(6))
    assert labels == result.labels.tolist()
    assert PartFolder(folder).names() == [Path(file).name for file in files]


def test_a_folder_of_parts_is_read_as_one_label_file(tmp_path, result):
    write_labels_partitioned(result, tmp_path / "out", parts=4)
    found = read_labels(tmp_path / "out")
    assert found.vertices.tolist() == list(range(6))
    assert compare(found, result).identical


def test_a_local_folder_needs_no_fsspec(tmp_path, result, monkeypatch):
    monkeypatch.setitem(sys.modules, "fsspec", None)
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    files = write_labels_partitioned(result, tmp_path / "out", parts=2)
    assert read_all(files)[1] == result.labels.tolist()
    with pytest.raises(LouvainUmError, match="fsspec"):
        write_labels_partitioned(result, "memory://out")


def test_nothing_is_overwritten_unasked(tmp_path, result):
    write_labels_partitioned(result, tmp_path / "out")
    with pytest.raises(LouvainUmError, match="pass --force"):
        write_labels_partitioned(result, tmp_path / "out")
    assert len(write_labels_partitioned(result, tmp_path / "out", force=True)) == 1
    write_labels_partitioned(result, tmp_path / "out", parts=3, force=True)
    write_labels_partitioned(result, tmp_path / "out", parts=2, force=True)
    assert pq.read_table(tmp_path / "out")["vertex"].to_pylist() == list(range(6))
    with pytest.raises(OptionError, match="parts"):
        write_labels_partitioned(result, tmp_path / "other", parts=0)
    (tmp_path / "file").write_text("")
    with pytest.raises(LouvainUmError, match="check the folder"):
        write_labels_partitioned(result, tmp_path / "file" / "out")


@pytest.mark.parametrize("method", ["louvain", "leiden"])
@pytest.mark.parametrize("ranks", [1, 3, 16])
def test_every_rank_writes_its_own_vertices(tmp_path, method, ranks, monkeypatch):
    monkeypatch.setattr(writing, "PART_VERTICES", 300)
    options = Options(method=method, device="cpu")
    graph = graph_named("lfr")
    found = detect_in_threads(graph, options, ranks=ranks, labels=str(tmp_path / "out"))
    local = PartitionedLabels.of(found)
    one = one_process("lfr", method)
    assert read_all(local.files) == (list(range(graph.n_vertices)), one.labels.tolist())
    assert len(local.files) >= max(ranks, graph.n_vertices // 300)
    assert (local.n_communities, local.modularity) == (one.n_communities, one.modularity)
    assert pq.read_table(tmp_path / "out")["community"].to_pylist() == one.labels.tolist()
    with pytest.raises(LouvainUmError, match="pass --force"):
        detect_in_threads(graph, options, ranks=2, labels=str(tmp_path / "out"))
    again = detect_in_threads(graph, options, ranks=2, labels=str(tmp_path / "out"), force=True)
    assert read_all(again.provenance["files"])[1] == one.labels.tolist()
    assert len(list((tmp_path / "out").iterdir())) == len(again.provenance["files"])


def test_files_get_their_names_when_all_are_whole(tmp_path, monkeypatch):
    write = PartFolder.write

    def failing(self, part, columns):
        if part == 2:
            raise OSError("the disk is full")
        write(self, part, columns)

    monkeypatch.setattr(PartFolder, "write", failing)
    options = Options(device="cpu")
    with pytest.raises(OSError, match="full"):
        detect_in_threads(graph_named("lfr"), options, ranks=4, labels=str(tmp_path))
    assert not list(tmp_path.iterdir())
    (tmp_path / f"part-00000.parquet{UNFINISHED}").write_bytes(b"of a process that was killed")
    monkeypatch.undo()
    found = detect_in_threads(graph_named("lfr"), options, ranks=2, labels=str(tmp_path))
    assert len(list(tmp_path.iterdir())) == len(found.provenance["files"]) == 2


def test_one_run_at_a_time_writes_to_a_local_folder(tmp_path, result):
    one = PartFolder(tmp_path)
    one.claim(force=False)
    one.write(0, {"vertex": np.arange(6), "community": result.labels})
    held = sorted(path.name for path in tmp_path.iterdir())
    with pytest.raises(LouvainUmError, match="another run is writing there"):
        write_labels_partitioned(result, tmp_path, force=True)
    options = Options(device="cpu")
    with pytest.raises(LouvainUmError, match="another run is writing there"):
        detect_in_threads(graph_named("lfr"), options, ranks=2, labels=str(tmp_path))
    assert sorted(path.name for path in tmp_path.iterdir()) == held
    one.publish(1)
    one.close()
    with pytest.raises(LouvainUmError, match="pass --force"):  # which lets others write, too
        write_labels_partitioned(result, tmp_path)
    assert len(write_labels_partitioned(result, tmp_path, force=True)) == 1


def test_a_rank_that_is_late_removes_only_its_own_files(tmp_path, result):
    columns = {"vertex": np.arange(6), "community": result.labels}
    first, late, other = (PartFolder(tmp_path) for _ in range(3))
    first.claim(force=False)
    late.run = first.run
    late.write(1, columns)
    first.close()  # the first rank has failed, and gives up the folder
    other.claim(force=False)
    for part in (0, 1):
        other.write(part, columns)
    late.drop(1)
    other.publish(2)
    other.close()
    assert [path.name for path in sorted(tmp_path.iterdir())] == [
        "part-00000.parquet", "part-00001.parquet"
    ]  # fmt: skip


def test_a_file_that_is_gone_is_reported(tmp_path, result):
    one = PartFolder(tmp_path)
    one.claim(force=False)
    one.write(0, {"vertex": np.arange(6), "community": result.labels})
    with pytest.raises(LouvainUmError, match="give every run its own folder"):
        one.publish(2)
    assert not list(tmp_path.glob("*.parquet"))
    one.close()
    assert len(write_labels_partitioned(result, tmp_path)) == 1


def test_addresses_of_local_folders_are_locked_too(tmp_path, result):
    one = PartFolder(f"file://{tmp_path}")
    one.claim(force=False)
    for folder in (tmp_path, f"file://{tmp_path}"):
        with pytest.raises(LouvainUmError, match="another run is writing there"):
            write_labels_partitioned(result, folder)
    one.close()
    files = write_labels_partitioned(result, f"file://{tmp_path}", parts=2)
    assert files == [f"file://{tmp_path}/part-0000{part}.parquet" for part in (0, 1)]
    assert len(rows_in(tmp_path)) == 6


def test_a_run_that_fails_lets_others_write(tmp_path, result, monkeypatch):
    def failing(*_, **__):
        raise LouvainUmError("broken on purpose")

    with monkeypatch.context() as patch:
        patch.setattr(run, "detect", failing)
        with pytest.raises(LouvainUmError, match="on purpose"):
            detect_in_threads(
                graph_named("lfr"), Options(device="cpu"), ranks=2, labels=str(tmp_path)
            )
    assert len(write_labels_partitioned(result, tmp_path)) == 1


def test_files_are_on_the_disk_before_they_are_named(tmp_path, result, monkeypatch):
    flushed = list[str]()

    def flush(path):
        assert not list(tmp_path.glob("*.parquet"))
        flushed.append(path.name)

    monkeypatch.setattr(part_folder, "flush", flush)
    write_labels_partitioned(result, tmp_path, parts=2)
    names = [name.split(".") for name in flushed[:2]]
    assert [(name[0], name[-1]) for name in names] == [
        ("part-00000", UNFINISHED[1:]), ("part-00001", UNFINISHED[1:])
    ]  # fmt: skip
    assert flushed[2:] == [part_folder.NAMING]


class KilledError(BaseException):
    """Stands for the end of the process."""


class Mortal:
    """A file system of a process that is killed before one of its changes."""

    def __init__(self, system, changes):
        self.system, self.left = system, changes

    def __getattr__(self, name):
        if name in ("move", "delete_file", "open_output_stream"):
            self.left -= 1
            if self.left < 0:
                raise KilledError
        return getattr(self.system, name)


def rows_in(folder):
    files = [str(file) for file in sorted(folder.glob("*.parquet"))]
    return list(zip(*read_all(files), strict=True)) if files else []


@pytest.mark.parametrize("before", [0, 2, 5])
def test_a_kill_at_any_time_leaves_no_parts_of_two_results(tmp_path, result, before, monkeypatch):
    new = Communities.of(result.graph, np.arange(6))
    one, other = (list(enumerate(each.labels.tolist())) for each in (result, new))
    init, seen = PartFolder.__init__, []
    monkeypatch.setattr(PartFolder, "drop", lambda *_: None)  # the dead clean up nothing
    for changes in range(30):
        folder = tmp_path / str(changes)
        folder.mkdir()
        (folder / "notes.txt").write_text("kept")
        if before:
            write_labels_partitioned(result, folder, parts=before, force=True)

        def mortal(self, path, changes=changes):
            init(self, path)
            self.system = Mortal(self.system, changes)

        with monkeypatch.context() as patch, suppress(KilledError):
            patch.setattr(PartFolder, "__init__", mortal)
            write_labels_partitioned(new, folder, parts=3, force=True)
            seen.append("whole")
        rows = set(rows_in(folder))
        assert rows <= set(one) or rows <= set(other)
        # Another run finds the result before, or finishes the new one.
        with pytest.raises(LouvainUmError, match="pass --force"):
            write_labels_partitioned(result, folder, parts=1)
        found = rows_in(folder)
        assert found in (other, one if before else [])
        assert all(path.suffix in (".txt", ".parquet") for path in folder.iterdir())
        seen.append("new" if found == other else "before")
        if seen[-2:] == ["whole", "new"]:
            break
    assert seen[-2:] == ["whole", "new"]
    assert seen.count("new") > 3
    assert "before" in seen


@pytest.mark.parametrize("scheme", ["file://", "memory://"])
def test_ranks_read_remote_files(tmp_path, scheme):
    fsspec = pytest.importorskip("fsspec")
    folder = f"{scheme}{tmp_path}/edges"
    system, path = fsspec.core.url_to_fs(folder)
    system.makedirs(path, exist_ok=True)
    random = np.random.default_rng(5)
    u, v = random.integers(0, 40, (2, 200))
    for part in range(3):
        with system.open(f"{path}/{part}.csv", "w") as file:
            lines = zip(u[part::3].tolist(), v[part::3].tolist(), strict=True)
            file.write("".join(f"{a},{b}\n" for a, b in lines))
    source = lu.read_partitioned(f"{folder}/*.csv")
    options = Options(device="cpu", threads=1)

    def task(local):
        return detect_on_rank(local, source.rows(local), options)

    one = lu.louvain(lu.as_graph((u, v)), device="cpu")
    found = run_threads(task, 2)[0]
    assert_equal(found, one)
    assert files_of(folder) == files_of(f"{folder}/*.csv")


@pytest.mark.parametrize(
    "names", [["ann", "bob", "cy", "dee", "eve"], np.arange(1, 6), [1, "b", 3, "d", 5]]
)
def test_vertices_keep_their_names(tmp_path, names):
    graph = replace(lu.Graph.from_edges([0, 1, 2, 3], [1, 2, 0, 4]), names=names)
    found = detect_in_threads(graph, Options(device="cpu"), ranks=2, labels=str(tmp_path / "out"))
    labels = read_labels(tmp_path / "out")
    assert [str(name) for name in labels.vertices] == [str(name) for name in names]
    assert labels.communities.tolist() == found.labels.tolist()

    def rows(local):
        return deal(local, None if local.rank else graph)

    blocks = run_threads(rows, 2)
    assert [str(name) for block in blocks for name in block.local_names] == [
        str(name) for name in names
    ]


@pytest.mark.parametrize(
    "text",
    [b"99999999999 0123456789ab\n", b"2 ../../../tmp/x\n", b"\xff\n", b"9" * 5000 + b"\n"],
    ids=["version", "path", "bytes", "length"],
)
def test_what_others_put_in_a_folder_leads_nowhere(tmp_path, text):
    (tmp_path / "kept").write_text("before")
    folder = tmp_path / "labels"
    folder.mkdir()
    (folder / part_folder.NAMING).write_bytes(text)
    (folder / f"part-00000.parquet.0{UNFINISHED}").symlink_to(tmp_path / "kept")
    result = lu.louvain(graph_named("lfr"), device="cpu")
    write_labels_partitioned(result, folder, parts=2)
    assert sorted(path.name for path in folder.iterdir()) == [
        "part-00000.parquet", "part-00001.parquet"
    ]  # fmt: skip
    assert (tmp_path / "kept").read_text() == "before"
