"""What moving and refining found, level by level, in a folder that all ranks can write to.

A resumed run repeats the level loop and loads instead of moving. What it loads does not depend on
how many ranks found it, so that any number of ranks can resume.
"""

from __future__ import annotations

import json
import threading
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from louvain_um.core.atomic_files import replacing, write_text
from louvain_um.core.compiled import kernel
from louvain_um.core.plain_data import DAMAGED, read_json, shown
from louvain_um.distributed.communicator import Communicator, version_digest
from louvain_um.distributed.partition import RankGraph
from louvain_um.errors import LouvainUmError
from louvain_um.generators.hashing import mix64
from louvain_um.options import Options

U32 = NDArray[np.uint32]

RUN: Final = "run.json"
DECISIVE: Final = (
    "method",
    "resolution",
    "threshold",
    "max_level",
    "effort",
    "n_iterations",
    "seed",
)
"""Options on which labels depend."""

READING: Final = threading.Lock()
"""Held while a file is read, for ranks that are threads: `numpy.load` parses headers as Python. The
parser of CPython 3.11 counts its depth for all threads together, and may raise SystemError."""


@kernel()
def add_digests(first, offsets, targets, weights, loops, total):
    """Add a digest of each arc and loop of rows from vertex `first` on to `total`."""
    weighted = len(weights) > 0
    for i in range(len(loops)):
        v = (first + np.uint64(i)) << np.uint64(32)
        total[0] += mix64(mix64(v) ^ np.uint64(loops[i]))
        for j in range(offsets[i], offsets[i + 1]):
            weight = np.uint64(weights[j]) if weighted else np.uint64(1)
            total[0] += mix64(mix64(v | np.uint64(targets[j])) + weight)


def graph_digest(ranks: Communicator, graph: RankGraph) -> str:
    """Return a digest of a graph's arcs, weights and loops that no partition changes."""
    block, total = graph.block, np.zeros(1, np.uint64)
    weights = np.zeros(0, np.uint32) if block.weights is None else block.weights
    rows = (block.offsets, block.targets, weights, block.loops)
    add_digests(np.uint64(block.first), *rows, total)
    return f"{int(ranks.sum_exact(total.view(np.int64))[0]) % 2**64:016x}"


class Checkpoint:
    """The folder of one run."""

    def __init__(
        self, folder: str | Path, ranks: Communicator, graph: RankGraph, options: Options
    ) -> None:
        self.folder = Path(folder)
        self.ranks = ranks
        found = {
            "vertices": len(graph.degrees),
            "arcs": graph.n_arcs,
            "graph": graph_digest(ranks, graph),
            "version": version_digest(),
            **{name: getattr(options, name) for name in DECISIVE},
        }
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise LouvainUmError(
                f"{folder}: cannot be created ({error.strerror}); name another folder"
            ) from error
        self._run = json.dumps(found)
        if ranks.rank == 0:
            self._claim(found)
        ranks.allgatherv(np.zeros(0, np.uint8))  # no rank writes before the folder is checked

    def _claim(self, found: Mapping[str, Any]) -> None:
        before = read_json(self.folder / RUN)
        if before is None:
            write_text(self.folder / RUN, self._run, force=True)
            return
        for name, value in found.items():
            if before.get(name) != value:
                raise LouvainUmError(
                    f"{self.folder}: holds the checkpoints of another run (its {name} is "
                    f"{shown(before.get(name))}, not {shown(value)}); name another folder or empty "
                    "this one"
                )

    def load(self, key: str, *, shared: bool) -> tuple[U32, dict[str, int]] | None:
        """Return an array and the numbers saved with it; None unless every rank can read them."""
        found = self._read(key)
        if shared:
            readable = int(self.ranks.sum_exact([found is not None])[0])
            if readable < self.ranks.size:
                return None
        return found

    def _read(self, key: str) -> tuple[U32, dict[str, int]] | None:
        seal = read_json(self.folder / f"{key}.json")
        if seal is None or seal.pop("crc", None) != self._crc(key, seal):
            return None
        parts = []
        for name, crc in seal["slices"]:
            try:
                with READING:
                    part = np.load(self.folder / name, allow_pickle=False)
            except (OSError, *DAMAGED):
                return None
            if part.dtype != np.uint32 or part.ndim != 1 or zlib.crc32(part.tobytes()) != crc:
                return None
            parts.append(part)
        return np.concatenate(parts), seal["numbers"]

    def _crc(self, key: str, seal: Mapping[str, Any]) -> int:
        """Return a checksum of a seal and of the run that it belongs to."""
        return zlib.crc32(f"{self._run} {key} {json.dumps(seal, sort_keys=True)}".encode())

    def save(
        self, key: str, first: int, values: U32, numbers: Mapping[str, int], *, shared: bool
    ) -> None:
        """Save an array, of which every rank of a shared level has the values from `first` on."""
        if not shared and self.ranks.rank:
            return
        last = first + len(values)
        name = f"{key}.{first}-{last}.npy"
        with replacing(self.folder / name, force=True) as part, part.open("wb") as file:
            np.save(file, values)
        written = np.array([first, last, zlib.crc32(values.tobytes())], np.int64)
        every = self.ranks.allgatherv(written) if shared else [written]
        if self.ranks.rank == 0:
            slices = [[f"{key}.{a}-{b}.npy", crc] for a, b, crc in map(np.ndarray.tolist, every)]
            seal = {"slices": slices, "numbers": dict(numbers)}
            sealed = json.dumps({**seal, "crc": self._crc(key, seal)})
            write_text(self.folder / f"{key}.json", sealed, force=True)
