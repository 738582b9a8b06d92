r"""What do profiling and attach cost, and is attach's policy as good as the best by hand?

    python benchmarks/attach.py --parts profile --graphs lfr22 --memory base --budgets none,50%
    python benchmarks/attach.py --parts policies overhead scripts --sessions folder
    python benchmarks/attach.py --parts replayed --sessions folder \
        -o benchmarks/results/attach_h200.json                              # needs no GPU

`profile` runs Louvain without profiling, with each source and, with `--tracer`, with instrumented
kernels. The fastest of `--repeat` runs counts, and all find the same communities. Seconds exclude
compiling and loading of cached kernels, which the tracer does in each run. In a resident run
everything fits (`none`, `--memory device`); a fault-bound run has half of that.

`policies` compiles the CUDA programs of `benchmarks/programs` with nvcc and runs each attached,
without advice, under nine policies written by hand, and under `--policy auto`, decided from the
attached run and in the run. The thesis's program has the thesis's own ten. `sessions` only attaches
programs, without advice. `replayed` replays these sessions at 30 to 70 % oversubscription, under
the policies and those that `auto` decides for so much memory, also where the driver may evict.
`overhead` compares programs that run kernels most of the time with themselves attached: one of long
kernels, one of short ones. `scripts` does so for Python programs, `traced` for programs whose
accesses are counted. Seconds are those of the fastest of `--repeat` runs: of the program from
loading CUDA to its end, of its process, and of the whole command, which then writes the session.
Runs under several policies take turns. Output and exit code have to be the same in all runs. Rows
of what is not run stay in the record.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any, cast

from common import HERE, host_graph, kept, machine, parser, replaced, save

import louvain_um as lu
from louvain_um.core.ledger import Group
from louvain_um.placement.machine.profiles import load_machine
from louvain_um.placement.policy.find import find_policy
from louvain_um.profiling import load
from louvain_um.profiling.access.recorded_plans import peak_of
from louvain_um.profiling.access.recordings import of_session
from louvain_um.profiling.attach.policy import decide
from louvain_um.profiling.record.capture import Recording
from louvain_um.profiling.record.profiler import profile
from louvain_um.profiling.session import SessionData
from louvain_um.profiling.session.events import Kind
from louvain_um.profiling.sweep.replay import run

Row = dict[str, Any]
PROGRAMS = ("three", "stencil", "hash_join", "frontier", "rundemanen")
KERNEL_BOUND = {"long kernels": ("8192", "20000"), "short kernels": ("512", "100000")}
"""Sides of the stencil, and its steps."""

SCRIPTS = ("with_cupy", "with_torch", "with_louvain")
ATTACH = (sys.executable, "-m", "louvain_um", "attach", "-q", "--force")
RATES = (30, 50, 70)
WATCHED: dict[str, tuple[str, ...]] = {
    "nvml": ("nvml",),
    "uvm": ("uvm",),
    "uvm-light": ("uvm-light",),
    "light (--light)": ("uvm-light", "cupti", "nvml"),
    "cupti alone": ("cupti",),
    "default": ("uvm", "cupti", "nvml"),
}
"""Sources of a profiled run."""


def hand_made(sites: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield nine policies as TOML: one placement for all, and the largest site another way."""
    for largest, others in product(("managed", "prefetched", "host_mapped"), repeat=2):
        text = f'others = "{others}"\n[groups]\n{json.dumps(sites[0])} = "{largest}"\n'
        yield f"{largest}, others {others}", text


def thesis_groups() -> dict[str, Group]:
    """Return the group of each call site of the thesis's program, which stands in its source."""
    lines = (HERE / "programs" / "rundemanen.cu").read_text().splitlines()
    return {f"rundemanen.cu:{number}": cast(Group, found[1]) for number, line in enumerate(lines, 1)
            if (found := re.search(r"NEW\(.*, (\w+)\);", line))}  # fmt: skip


def of_thesis(sites: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the thesis's ten policies of its program as TOML."""
    group = thesis_groups()
    for name in ("base", *(f"adv{k}" for k in range(1, 10))):
        policy = find_policy(name)
        rows = {site: policy.placements[group[site]] for site in sites if site in group}
        text = "".join(f"{json.dumps(site)} = {json.dumps(str(to))}\n" for site, to in rows.items())
        yield name, f'others = "managed"\n[groups]\n{text}'


def timed(command: Sequence[str]) -> tuple[float, tuple[int, str]]:
    """Return the seconds of a command, its exit code, and what it printed."""
    begin = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode < 0 or not done.stdout:
        raise SystemExit(f"{' '.join(command)} failed: {done.stderr.strip()[-400:]}")
    return time.perf_counter() - begin, (done.returncode, done.stdout)


class Runs:
    """Runs of a program, alone and attached, that all have to print the same and end alike."""

    def __init__(self, name: str, command: Sequence[str], folder: Path, repeat: int) -> None:
        self.name, self.command, self.folder, self.repeat = name, command, folder, repeat
        self.spent: dict[str, list[tuple[float, float, float]]] = {}
        self.alone, self.printed = min(timed(command) for _ in range(repeat))

    def once(self, label: str = "none", *options: str) -> Path:
        """Run the program attached; return the session's file."""
        path = self.folder / f"{self.name}-{label}.npz"
        spent, printed = timed([*ATTACH, *options, "-o", str(path), "--", *self.command])
        if printed != self.printed:
            raise SystemExit(f"{self.name}, {label}: {printed!r} instead of {self.printed!r}")
        about = load(path).metadata
        self.spent.setdefault(label, []).append((about["seconds"], about["process_seconds"], spent))
        return path

    def row(self, label: str, session: SessionData) -> Row:
        """Return a row of the fastest run; `session` is the last run's."""
        seconds, process, whole = zip(*self.spent[label], strict=True)
        events = session.events
        kernels = events["kind"] == Kind.KERNEL
        row = {
            "program": self.name, "policy": label, "alone": self.alone, "seconds": min(seconds),
            "median_seconds": statistics.median(seconds), "runs": len(seconds),
            "process_seconds": min(process), "command_seconds": min(whole),
            "ratio": min(process) / self.alone,
            "kernels": int(kernels.sum()), "arrays": len({x.name for x in session.lifetimes}),
            "kernel_seconds": float(events["duration"][kernels].sum() / 1e9),
        }  # fmt: skip
        print(json.dumps(row), flush=True)
        return row

    def attached(self, label: str = "none", *options: str) -> tuple[Row, Path, SessionData]:
        """Return the row, file and session of some runs that follow each other."""
        path = [self.once(label, *options) for _ in range(self.repeat)][-1]
        session = load(path)
        return self.row(label, session), path, session


def command_of(name: str, folder: Path) -> list[str]:
    """Return the command of a program or script."""
    if name in PROGRAMS:
        return [compiled(name, folder)]
    library = compiled("managed_allocator", folder, "-shared", "-Xcompiler", "-fPIC")
    return [sys.executable, str(HERE / "programs" / f"{name}.py"), library]


def compiled(name: str, folder: Path, *options: str) -> str:
    """Return the path of a program, or library, made by nvcc."""
    target = folder / name
    source = HERE / "programs" / f"{name}.cu"
    command = ["nvcc", "-O3", "-lineinfo", "-g", *options, str(source), "-o", str(target)]
    subprocess.run(command, check=True)
    return str(target)


def by_hand(name: str, session: SessionData, folder: Path) -> dict[str, Path]:
    """Return files of the policies written by hand for the arrays of a session."""
    arrays = sorted(session.lifetimes, key=lambda life: -life.nbytes)
    sites = list(dict.fromkeys(life.group for life in arrays))
    found = dict[str, Path]()
    texts = of_thesis(sites) if name == "rundemanen" else hand_made(sites)
    for number, (label, text) in enumerate(texts):
        found[label] = folder / f"by_hand_{number}.toml"
        found[label].write_text(text)
    return found


def replayed(name: str, session: SessionData, folder: Path) -> Iterator[Row]:
    """Yield modelled rows with less memory: of policies, and of what `auto` decides for it."""
    trace, gpu = of_session(session), load_machine("h200")
    files = by_hand(name, session, folder)
    written = {label: find_policy(str(file)) for label, file in files.items()}
    for rate in RATES:
        capacity = int((1 - rate / 100) * peak_of(trace))
        chosen = {
            label: decide(session, gpu, str(capacity), "decided", evicts=evicts)
            for label, evicts in (("auto", False), ("auto, evicting", True))
        }
        for label, policy in (written | chosen).items():
            found = run(trace, policy, gpu, capacity)
            yield {
                "program": name, "policy": label, "oversubscription": rate,
                "seconds": found.seconds, "evictions": found.total("evictions"),
                "accesses": session.metadata["sources"]["tracer"].partition(":")[0],
            }  # fmt: skip


def policies(name: str, folder: Path, repeat: int) -> Iterator[tuple[str, Row]]:
    """Yield rows of one program under each policy."""
    runs = Runs(name, command_of(name, folder), folder, repeat)
    recorded = shutil.copy(runs.once(), folder / "from.npz")
    options: dict[str, tuple[str, ...]] = {"none": ()}
    for label, file in by_hand(name, load(recorded), folder).items():
        options[label] = ("--policy", str(file))
    options["auto"] = ("--policy", "auto", "--from", str(recorded))
    options["auto, in the run"] = ("--policy", "auto")
    # In turns: a slower minute is then one for all.
    paths = [
        {label: runs.once(label, *each) for label, each in options.items()} for _ in range(repeat)
    ]
    for label, path in paths[-1].items():
        yield "policies", runs.row(label, load(path))


def traced(runs: Runs) -> Row:
    """Return a row of a traced program: what was counted, and what was not."""
    row, _, session = runs.attached("traced", "--trace")
    about = session.metadata["about_sources"].get("tracer", {})
    names = ("launches", "instrumented_places", "accesses", "elsewhere")
    return row | {
        "tracer": session.metadata["sources"]["tracer"], "notes": list(session.notes),
        **{name: about.get(name) for name in names},
        "maps": {page.array: [page.page_bytes, *page.counts.shape] for page in session.maps},
    }  # fmt: skip


def profiled(name: str, budget: str, asked: argparse.Namespace) -> Row:
    """Return seconds of Louvain by what watches it, and their ratios to those without."""
    graph = host_graph(name)
    options = {"device": "cuda", "memory": asked.memory}
    options["device_budget"] = None if budget == "none" else budget

    def plain(**more: Any) -> tuple[float, Row]:
        result = lu.louvain(graph, **options, **more)
        return result.timings["total"], {"modularity": result.modularity}

    def recorded() -> tuple[float, Row]:
        with Recording([]) as recording:
            return plain(observer=recording)

    def watched(sources: Sequence[str], tracer: bool = False) -> tuple[float, Row]:
        session = profile(graph, sources=sources, tracer=tracer, **options)
        about, summary = session.metadata, session.summary()
        return about["seconds"], {
            "compile_seconds": about["timings"]["total"] - about["seconds"],
            "modularity": about["modularity"], "about_sources": about["about_sources"],
            "figures": {k: v for k, v in summary.items() if k not in ("sources", "notes")},
            "notes": list(session.notes),
        }  # fmt: skip

    ways: dict[str, Callable[[], tuple[float, Row]]] = {"none": plain, "recording alone": recorded}
    ways |= {name: lambda s=sources: watched(s) for name, sources in WATCHED.items()}
    ways |= {"tracer": lambda: watched((), True)} if asked.tracer else {}
    # Once more at the end: the machine may warm up, or be shared.
    ways["none, again"] = plain
    rows: Row = {}
    for way, call in ways.items():
        if way in ("none", "tracer"):
            call()  # compiles
        found = [call() for _ in range(1 if way == "tracer" else asked.repeat)]
        seconds = min(taken for taken, _ in found)
        rows[way] = {"seconds": seconds, **found[-1][1]}
        rows[way]["ratio"] = seconds / rows["none"]["seconds"]
        assert rows[way]["modularity"] == rows["none"]["modularity"], f"{way}: another result"
        print(name, asked.memory, budget, way, f"{seconds:.3f} s {rows[way]['ratio']:.3f} ×")
    about = {"graph": name, "arcs": graph.n_arcs, "policy": asked.memory, "budget": budget}
    return about | {"by_source": rows}


def against_best(rows: Sequence[Row]) -> list[Row]:
    """Return, of each program and memory, auto's time over that of the best policy by hand."""
    cases: dict[tuple[str, int], list[Row]] = {}
    for row in rows:
        cases.setdefault((row["program"], row.get("oversubscription", 0)), []).append(row)
    found = []
    for (program, rate), mine in cases.items():
        written = [row for row in mine if row["policy"].partition(",")[0] not in ("none", "auto")]
        if not written:
            continue
        best = min(written, key=lambda row: row["seconds"])
        found += [
            {
                "program": program, "oversubscription": rate, "policy": row["policy"],
                "best": best["policy"], "over_best": row["seconds"] / best["seconds"],
            }
            for row in mine if row["policy"].startswith("auto")
        ]  # fmt: skip
    return found


def measured(options: argparse.Namespace, folder: Path) -> Iterator[tuple[str, Row]]:
    """Yield rows, each with the part of the record that it belongs to."""
    parts, repeat = options.parts, options.repeat
    for name in options.programs if "policies" in parts else ():
        yield from policies(name, folder, repeat)
    for name in options.programs if "sessions" in parts else ():
        Runs(name, command_of(name, folder), folder, 1).attached()
    if "overhead" in parts:
        program = compiled("stencil", folder)
        for name, sizes in KERNEL_BOUND.items():
            yield "overhead", Runs(name, [program, *sizes], folder, repeat).attached()[0]
    for name in options.programs if "traced" in parts else ():
        yield "traced", traced(Runs(name, command_of(name, folder), folder, repeat))
    for name in options.programs if "replayed" in parts else ():
        found = (folder / f"{name}-{label}.npz" for label in ("none", "traced"))
        for row in replayed(name, load(next(filter(Path.exists, found))), folder):
            yield "replayed", row
    for name in SCRIPTS if "scripts" in parts else ():
        row, _, session = Runs(name, command_of(name, folder), folder, repeat).attached()
        names = sorted({life.name for life in session.lifetimes})
        row["by_line"] = sum(f"{name}.py:" in each for each in names)
        yield "scripts", row | {"names": names[:8]}


def main() -> None:
    """Measure some parts."""
    given = parser(__doc__)
    parts = ("policies", "sessions", "replayed", "overhead", "traced", "scripts", "profile")
    given.add_argument("--parts", nargs="+", choices=parts, default=parts[:-1])
    given.add_argument("--sessions", type=Path, help="folder that keeps the sessions")
    given.add_argument("--programs", nargs="+", choices=PROGRAMS + SCRIPTS, default=PROGRAMS)
    given.add_argument("--repeat", type=int, default=3)
    given.add_argument("--graphs", nargs="+", default=["lfr22"], help="of part profile")
    given.add_argument("--memory", default="base", help="policy of part profile")
    given.add_argument("--budgets", default="none,50%", help="of part profile")
    given.add_argument("--tracer", action="store_true", help="profile with it, too")
    options = given.parse_args()
    if "profile" in options.parts:
        record = kept("profile_overhead", options.output, "cuda") | {"machine": machine()}
        for name in options.graphs:
            for budget in options.budgets.split(","):
                row = profiled(name, budget, options)
                record["runs"] = replaced(record.get("runs", []), row, "graph", "policy", "budget")
                save("profile_overhead", record, options.output, device="cuda")
        return
    record = kept("attach", options.output, "cuda")
    if set(options.parts) != {"replayed"}:
        record["machine"] = machine()
    renewed = set[tuple[str, str]]()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.sessions or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for part, row in measured(options, folder):
            rows, program = record.setdefault(part, []), row["program"]
            if (part, program) not in renewed:
                renewed.add((part, program))
                rows[:] = [other for other in rows if other["program"] != program]
            rows.append(row)
            record["over_best"] = against_best(
                record.get("policies", []) + record.get("replayed", [])
            )
            save("attach", record, options.output, device="cuda")


if __name__ == "__main__":
    main()
