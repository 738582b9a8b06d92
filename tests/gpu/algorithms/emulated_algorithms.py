"""A device on which algorithms run: emulated kernels; arrays are NumPy's, of a Placer or not.

A Placer without a device places nothing: names, sizes and types are those that programs declare.
"""

import ctypes
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np

from louvain_um.algorithms import running
from louvain_um.gpu.algorithms import launches, workspace
from louvain_um.gpu.algorithms.workspace import KernelRows
from louvain_um.gpu.runtime import launch as launching
from louvain_um.gpu.runtime.kernel_list import ROWS
from tests.algorithms.test_algorithms import Gapped


class Launches:
    """Kernels of a library, each launched on one emulated block or on three."""

    def __init__(self, library):
        self.library, self.launched = library, list[tuple[str, bool]]()
        self.random = np.random.default_rng(0)

    def __call__(self, source, name, types=""):
        kernel = getattr(self.library, f"call_{name}")
        weight_bytes = 4 * types.startswith("u32") or 8 * types.startswith("u64")
        rows = types.rpartition(" ")[2]
        kind = ROWS.index(rows) if rows in ROWS else 0

        def launch(view, *arguments):
            self.launched.append((name, rows == "HostRows"))
            blocks = int(self.random.choice((1, 3)))
            kernel(blocks, weight_bytes, kind, *map(passed, (view, *arguments)))

        return launch


def passed(argument):
    if isinstance(argument, np.ndarray):
        return ctypes.c_void_p(argument.ctypes.data)
    return np.ctypeslib.as_ctypes_type(argument.dtype)(argument.item())


class Rows(Gapped):
    """A graph whose rows are in the device's memory, with gaps between them."""

    def device_view(self):
        rows = self.view()
        weights, loops = map(workspace.unsigned, (rows.weights, rows.loops))
        return KernelRows(
            begins=rows.begins, ends=rows.ends, targets=rows.targets, weights=weights,
            loops=loops if rows.loops.any() else None, n_arcs=rows.n_arcs,
            total_weight=rows.total_weight,
        )  # fmt: skip


class HostWorkspace(workspace.Workspace):
    def empty(self, name, size, dtype):
        return np.full(size, 0xA5, np.dtype(dtype))

    def filled(self, name, values):
        return values

    def sorting(self):
        return nullcontext(False)

    def get(self, name, array):
        return array


class NoDevice:
    """Stands for a GPU; its Placer places nothing."""

    kind = "cuda"

    def current(self):
        return nullcontext()

    def __str__(self):
        return "cpu"


def emulate(monkeypatch, library):
    """Let algorithms on "cuda" run on emulated kernels; return what is launched."""
    launcher, cpu = Launches(library), SimpleNamespace(kind="cpu")
    monkeypatch.setattr(launches, "Launcher", launcher)
    monkeypatch.setattr(
        launching, "address", lambda array: 0 if array is None else array.ctypes.data
    )
    monkeypatch.setattr(workspace, "PLAIN", HostWorkspace())
    monkeypatch.setattr(running, "device_errors", lambda chosen: nullcontext())
    monkeypatch.setattr(running, "pick", lambda device: NoDevice() if device == "cuda" else cpu)
    return launcher
