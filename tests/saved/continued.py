"""Folders in which an interrupted run goes on, and tables of other programs: for the fuzz."""

import importlib.util
import shutil

import numpy as np
import pandas as pd

import louvain_um as lu
from louvain_um.analysis.profile import ProfileStore
from louvain_um.analysis.resolution import resolution_profile
from louvain_um.analysis.store_comparison import Comparison, compare_stores
from louvain_um.drawing.reports import write_report
from louvain_um.dynamic.streams import EdgeStream
from louvain_um.dynamic.timed_edges import TimedEdges
from louvain_um.dynamic.tracking.stream_folder import StreamFolder
from louvain_um.generators import lfr
from louvain_um.options import Options
from louvain_um.profiling.simulator.addresses import read_addresses
from tests.distributed.threads import detect_in_threads, run_threads
from tests.profiling.sources.test_nsys import an_export
from tests.saved.saved_files import Saved, read_recording, read_report

GRAPH = lfr(120, seed=1).graph
OPTIONS = Options(method="leiden", device="cpu")


def resume_ranks(folder):
    """Go on with what two ranks left; the labels are those of a run without checkpoints."""
    found = detect_in_threads(GRAPH, OPTIONS, ranks=2, collapse_arcs=300, checkpoint=folder)
    assert np.array_equal(found.labels, lu.leiden(GRAPH, device="cpu").labels), "other labels"


def edges():
    at = np.arange(60)
    u, v = (at % 12).astype(np.uint32), ((at * 7 + 1) % 12).astype(np.uint32)
    return EdgeStream(TimedEdges(u=u, v=v, times=at, weights=None, n_vertices=12, names=None))


def resume_stream(folder, batches=None):
    """Follow a stream from where its folder is; stop after some batches."""
    stream = edges()
    followed = StreamFolder(folder, {"every": 10})
    try:
        tracker = followed.resume(1)
        if tracker is None:
            tracker = lu.Tracker(stream.graph(threads=1), threads=1)
        for number, step in enumerate(stream.steps(every=10), 1):
            if tracker.epoch < number <= (batches or number):
                found = tracker.update(step.apply(tracker.graph))
                followed.add(step.time, 10 * number, found, tracker.rows[-1])
        followed.save(tracker)
    finally:
        followed.close()


def draw_stream(folder):
    """Write the page of a followed stream."""
    write_report(folder, "title", force=True)


def resume_profile(folder):
    with ProfileStore(folder, {"seed": 0}) as store:
        found = resolution_profile(
            GRAPH, points=3, runs=1, device="cpu", known=store.points, on_point=store.add
        )
        store.write(found)


def resume_comparison(folder):
    settings = Comparison(stores=("csr",), batches=(10,), steps=1)
    compare_stores([("g", GRAPH)], settings, folder)


def read_partitions(path):
    graph = lu.read_partitioned(path)
    run_threads(graph.rows, 2)


def read_table_of_addresses(path):
    trace = path.with_suffix(".npz")
    read_addresses(path).save(trace, force=True)
    read_recording(trace)


def tables(folder):
    """Yield tables of edges for ranks, of addresses, and of NVIDIA's profiler."""
    for name in ("edges.csv", "edges.parquet"):
        lu.write_graph(folder / name, GRAPH)
        yield Saved(f"partitions {name}", folder / name, folder / name, read_partitions)
    found = pd.DataFrame({"time": range(9), "address": 4096 * np.arange(9) % 5, "write": 1})
    found.to_csv(folder / "addresses.csv", index=False)
    found.to_parquet(folder / "addresses.parquet")
    for name in ("addresses.csv", "addresses.parquet"):
        yield Saved(name, folder / name, folder / name, read_table_of_addresses)
    path = an_export(folder)
    yield Saved("nsys", path, path, read_report)
    if importlib.util.find_spec("anndata"):
        yield from cells(folder)


def cells(folder):
    """Yield AnnData's files, with the neighbours of cells as graphs of both layouts."""
    import anndata

    near = GRAPH.to_scipy().astype(np.float32)
    for name, matrix in (("csr.h5ad", near.tocsr()), ("csc.h5ad", near.tocsc())):
        data = anndata.AnnData(np.zeros((GRAPH.n_vertices, 1), np.float32))
        data.obsp["connectivities"] = matrix
        data.uns["neighbors"] = {"connectivities_key": "connectivities"}
        data.write_h5ad(folder / name)
        yield Saved(f"anndata {name}", folder / name, folder / name, lu.read_graph)


def continued(folder):
    """Yield one of each kind, for each of its files."""
    for name, write in (
        ("checkpoint", resume_ranks), ("followed", lambda path: resume_stream(path, 3)),
        ("resolutions", resume_profile), ("stores", resume_comparison),
    ):  # fmt: skip
        write(folder / name)
    shutil.copytree(folder / "followed", folder / "drawn")
    for name, read in (
        ("checkpoint", resume_ranks), ("followed", resume_stream), ("drawn", draw_stream),
        ("resolutions", resume_profile), ("stores", resume_comparison),
    ):  # fmt: skip
        for file in sorted((folder / name).glob("*.csv" if name == "drawn" else "*")):
            yield Saved(f"{name} {file.name}", folder / name, file, read)
    yield from tables(folder)
