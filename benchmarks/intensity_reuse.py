"""Demand paging and zero copy against device memory, by operational intensity and reuse.

The first figure of Hope, Nag and Qasem: a kernel that does so many operations an element goes over
three arrays so often. Seconds count from values that the host has written to results that it can
read; beside each, those that the cost model predicts.

python benchmarks/intensity_reuse.py [--mib 64] [--beside FILE] [--chart FILE.svg] [--out FILE]

With --beside, predictions are made anew for the seconds of an earlier record; needs no GPU.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path
from typing import Any

import common
import numpy as np

import louvain_um as lu
from louvain_um.placement.machine.machine import Machine
from louvain_um.placement.machine.machine_choice import machine_for
from louvain_um.placement.machine.machine_files import load_machine
from louvain_um.placement.memory import cuda_calls
from louvain_um.placement.policy.policy import Kind, Placement, Policy
from louvain_um.placement.program import Phase, Program, ProgramArray, Stream
from louvain_um.placement.program.cost import ProgramCost, joined

INTENSITIES = (1, 4, 16, 64, 256, 1024, 4096)
"""Multiply-adds an element and visit."""

REUSES = (1, 2, 4, 8, 16, 32)
KINDS: tuple[Kind, ...] = ("device", "host_mapped", "managed")
RUNS = 3
NAMES = ("left", "right", "out")

SOURCE = r"""
extern "C" __global__ void visit(const float* left, const float* right, float* out,
                                 unsigned long long count, int intensity) {
  unsigned long long step = gridDim.x * (unsigned long long)blockDim.x;
  for (unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x; i < count;
       i += step) {
    float x = left[i], y = right[i], sum = out[i];
    for (int k = 0; k < intensity; ++k) sum = fmaf(x, sum, y);
    out[i] = sum;
  }
}
"""
"""The operations depend on each other, as those of a graph's visits mostly do."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mib", type=int, default=64, help="size of each of the three arrays")
    parser.add_argument("--beside", type=Path, help="an earlier record, to predict anew")
    parser.add_argument("--chart", type=Path)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    if args.beside:
        earlier = json.loads(args.beside.read_text())
        about, count = earlier["machine"], earlier["bytes_of_each_array"] // 4
        rows, machine = earlier["results"], load_machine(earlier["profile"])
    else:
        about, count, machine = common.machine(), (args.mib << 20) // 4, machine_for()
        rows = grid(count)
    for row in rows:
        row["model"] = model(count, row["intensity"], row["reuse"], machine)
    record = {
        "machine": about,
        "profile": machine.name,
        "bytes_of_each_array": 4 * count,
        "runs": RUNS,
        "fitted": fitted(rows, 4 * count, machine),
        "agreement": agreement(rows),
        "results": rows,
    }
    print(common.save("intensity_reuse_h200", record, args.out))
    if args.chart:
        chart(rows, args.chart)


def grid(count: int) -> list[dict[str, Any]]:
    """Return measured seconds of every intensity and reuse."""
    seconds = {kind: measured(kind, count) for kind in KINDS}
    return [
        {
            "intensity": intensity,
            "reuse": reuse,
            "kernel_seconds": seconds["device"]["kernels"][intensity, reuse],
            "seconds": {k: seconds[k]["whole"][intensity, reuse] for k in KINDS},
        }
        for intensity in INTENSITIES
        for reuse in REUSES
    ]


def measured(kind: Kind, count: int) -> dict[str, dict[tuple[int, int], float]]:
    """Return seconds by intensity and reuse, of the whole and of kernels alone."""
    import cupy

    kernel = cupy.RawKernel(SOURCE, "visit")
    grid = (8 * cupy.cuda.Device().attributes["MultiProcessorCount"],)
    values = np.random.default_rng(0).random(count, np.float32)
    policy = Policy(name="grid", groups={"arrays": Placement(kind)})
    whole, alone = {}, {}
    with lu.Placer(memory=policy, machine=machine_for()) as place:
        arrays = [place.array(name, count) for name in NAMES]
        place.solve()
        slots = [place.slots[name] for name in NAMES]
        for intensity in INTENSITIES:
            for reuse in REUSES:
                runs, launches = [], []
                for _ in range(RUNS + (intensity == INTENSITIES[0])):
                    written(kind, slots, values)
                    cuda_calls.synchronize()
                    since = time.perf_counter()
                    if kind == "device":
                        for array in arrays:
                            array.set(values)
                        cuda_calls.synchronize()
                    began = time.perf_counter()
                    for _ in range(reuse):
                        arguments = (*arrays, np.uint64(count), np.int32(intensity))
                        kernel(grid, (256,), arguments)
                    cuda_calls.synchronize()
                    launches.append(time.perf_counter() - began)
                    if kind == "device":
                        arrays[-1].get()
                    if kind == "managed":
                        at = slots[-1].memory.arena.address
                        cuda_calls.prefetch(at, 4 * count, cuda_calls.HOST)
                        cuda_calls.synchronize()
                    runs.append(time.perf_counter() - since)
                whole[intensity, reuse] = statistics.median(runs[-RUNS:])
                alone[intensity, reuse] = statistics.median(launches[-RUNS:])
    return {"whole": whole, "kernels": alone}


def written(kind: Kind, slots: list[Any], values: np.ndarray) -> None:
    """Let the host write all arrays, where it shares their memory with the device; not timed."""
    from louvain_um.placement.memory import host

    if kind == "device":
        return
    for slot in slots:
        at, nbytes = slot.memory.arena.address, slot.spec.nbytes
        if kind == "managed":
            cuda_calls.prefetch(at, nbytes, cuda_calls.HOST)
            cuda_calls.synchronize()
        host.copy(at, values.ctypes.data, nbytes)


def model(count: int, intensity: int, reuse: int, machine: Machine) -> dict[str, float]:
    """Return predicted seconds by placement."""
    reads = Stream(passes=reuse)
    arrays = [
        ProgramArray(
            name=name,
            shape=count,
            dtype="f4",
            reads=reads,
            writes=reads if name == "out" else (),
            from_host=1,
            to_host=float(name == "out"),
        )
        for name in NAMES
    ]
    phase = Phase(name="visit", passes=reuse, operations=2.0 * intensity * count * reuse)
    cost = ProgramCost(program=Program(name="grid", arrays=arrays, phases=[phase]), machine=machine)
    return {kind: cost.seconds(dict.fromkeys(NAMES, Placement(kind))) for kind in KINDS}


def fitted(rows: list[dict[str, Any]], nbytes: int, machine: Machine) -> dict[str, Any]:
    """Return the rate of operations, and the exponent of `joined` that fits zero copy best."""
    most = max(rows, key=lambda row: row["intensity"] * row["reuse"])
    operations = 2.0 * most["intensity"] * nbytes / 4 * most["reuse"]
    bus = 3 * nbytes / machine.remote_bandwidth  # beside which the writes go the other way
    best, least = 0.0, float("inf")
    for exponent in np.arange(1.0, 24.01, 0.25):
        errors = [
            np.log(both(row["kernel_seconds"], bus * row["reuse"], exponent)
                   / row["seconds"]["host_mapped"]) ** 2
            for row in rows
        ]  # fmt: skip
        if sum(errors) < least:
            best, least = float(exponent), float(sum(errors))
    return {
        "operation_rate": operations / most["kernel_seconds"],
        "overlap": best,
        "overlap_error": float(np.sqrt(least / len(rows))),
        "error_of_the_model": float(
            np.sqrt(
                np.mean([
                    np.log(joined(row["kernel_seconds"], bus * row["reuse"])
                           / row["seconds"]["host_mapped"]) ** 2
                    for row in rows
                ])
            )
        ),
    }  # fmt: skip


def both(work: float, bus: float, exponent: float) -> float:
    most = max(work, bus)
    return most * float(1 + (min(work, bus) / most) ** exponent) ** (1 / exponent)


def agreement(rows: list[dict[str, Any]]) -> dict[str, float]:
    """Return how often the model names the fastest placement, and what following it costs."""
    right, lost = 0, []
    for row in rows:
        chosen = min(KINDS, key=lambda kind: row["model"][kind])
        fastest = min(row["seconds"].values())
        right += row["seconds"][chosen] == fastest
        lost.append(row["seconds"][chosen] / fastest)
    return {"right": right / len(rows), "mean_loss": float(np.mean(lost)), "worst": max(lost)}


def chart(rows: list[dict[str, Any]], path: Path) -> None:
    """Draw the speed-up over device memory with copies: measured above, modelled below."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 6), layout="constrained")
    axes = figure.subplots(2, 2)
    for across, kind in enumerate(KINDS[1:]):
        for down, (source, title) in enumerate((("seconds", "measured"), ("model", "modelled"))):
            cells = np.array([row[source]["device"] / row[source][kind] for row in rows])
            grid = np.log2(cells.reshape(len(INTENSITIES), len(REUSES)).T)
            place = axes[down][across]
            image = place.imshow(grid, origin="lower", cmap="RdBu", vmin=-4, vmax=4, aspect="auto")
            for (y, x), value in np.ndenumerate(grid):
                place.text(x, y, f"{2**value:.2g}", ha="center", va="center", fontsize=7)
            place.set_xticks(range(len(INTENSITIES)), map(str, INTENSITIES))
            place.set_yticks(range(len(REUSES)), map(str, REUSES))
            place.set_title(f"{kind}, {title}", fontsize=9)
            place.set_xlabel("operations an element and visit")
            place.set_ylabel("visits")
    figure.colorbar(image, ax=axes, label="log2 of the speed-up over device memory with copies")
    figure.savefig(path)


if __name__ == "__main__":
    main()
