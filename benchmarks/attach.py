"""What does attach cost, and is its policy as good as the best that one writes by hand?

    python benchmarks/attach.py -o benchmarks/results/attach.json

Compiles the CUDA programs of `benchmarks/programs` with nvcc and runs each: alone, attached,
attached under nine policies written by hand, and under `--policy auto` decided from the attached
run. Prints seconds of the fastest of `--repeat` runs, and checks that the output is the same. At 30
to 70 % oversubscription the policies are replayed by `louvain-um simulate`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

from common import HERE, machine, save

from louvain_um.profiling import load

PROGRAMS = ("stencil", "hash_join", "frontier")
ATTACH = (sys.executable, "-m", "louvain_um", "attach", "-q", "--force")
RATES = "30,50,70"


def hand_made(sites: Sequence[str]) -> dict[str, str]:
    """Return nine policies as TOML: one placement for all, and the largest site another way."""
    kinds = ("managed", "prefetched", "host_mapped")
    found = {}
    for largest, others in product(kinds, kinds):
        text = f'others = "{others}"\n[groups]\n{json.dumps(sites[0])} = "{largest}"\n'
        found[f"{largest}-{others}"] = text
    return found


def timed(command: Sequence[str], repeat: int) -> tuple[float, str]:
    """Return the seconds of the fastest run, and what it printed."""
    seconds, output = [], ""
    for _ in range(repeat):
        begin = time.perf_counter()
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        seconds.append(time.perf_counter() - begin)
        if output and done.stdout != output:
            raise SystemExit(f"{command}: printed {done.stdout!r} instead of {output!r}")
        output = done.stdout
    return min(seconds), output


def replayed(session: Path, policies: Sequence[str]) -> list[dict[str, Any]]:
    """Return the modelled rows of policies with less memory."""
    command = [sys.executable, "-m", "louvain_um", "simulate", str(session), "--json"]
    command += ["--policies", ",".join(policies), "--oversubscription", RATES]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    rows: list[dict[str, Any]] = json.loads(done.stdout)["results"]
    return rows


def measure(name: str, folder: Path, repeat: int) -> dict[str, Any]:
    """Return seconds of one program: alone, attached, under each policy."""
    program = folder / name
    source = HERE / "programs" / f"{name}.cu"
    subprocess.run(["nvcc", "-O3", "-lineinfo", "-g", str(source), "-o", str(program)], check=True)
    alone, printed = timed([str(program)], repeat)
    session = folder / f"{name}.npz"
    kernels = {}
    rows = {"alone": alone}

    def attached(label: str, target: Path, *options: str) -> None:
        rows[label], output = timed(
            [*ATTACH, *options, "-o", str(target), "--", str(program)], repeat
        )
        if output != printed:
            raise SystemExit(f"{name} under {label} printed {output!r} instead of {printed!r}")
        events = load(target).events
        kernels[label] = float(events["duration"][events["kind"] == 64].sum() / 1e9)

    attached("attached", session)
    arrays = sorted(load(session).lifetimes, key=lambda life: -life.nbytes)
    sites = list(dict.fromkeys(life.group for life in arrays))
    files = []
    for label, text in hand_made(sites).items():
        file = folder / f"{name}-{label}.toml"
        file.write_text(text)
        files.append(str(file))
        attached(label, folder / "run.npz", "--policy", str(file))
    auto = folder / f"{name}-auto.npz"
    attached("auto", auto, "--policy", "auto", "--from", str(session))
    files.append("auto")
    return {"seconds": rows, "kernel_seconds": kernels, "replayed": replayed(session, files),
            "policy": auto.with_suffix(".toml").read_text()}  # fmt: skip


def main() -> None:
    """Measure all programs."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("programs", nargs="*", default=PROGRAMS)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in options.programs:
            found[name] = measure(name, Path(folder), options.repeat)
            print(name, json.dumps(found[name]["seconds"]), flush=True)
    record = {"machine": machine(), "programs": found}
    print(save("attach", record, options.output, device="cuda"))


if __name__ == "__main__":
    main()
