"""What is swept (graphs, policies, oversubscriptions, machines), parsed from text, as points."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from louvain_um.errors import OptionError, is_number
from louvain_um.graph.graph import Graph
from louvain_um.options import Budget, Method, Options
from louvain_um.placement.hardware import size
from louvain_um.placement.machine.machine import Machine
from louvain_um.placement.policy.find import find_policy
from louvain_um.placement.policy.policy import AUTO, Policy
from louvain_um.placement.program import Program
from louvain_um.profiling.access.recorded_plans import program_of, trace_of
from louvain_um.profiling.simulator import Driver, Trace


def parse_rates(text: str) -> tuple[float, ...]:
    """Return oversubscriptions in percent, as in "0,10,30"."""
    parts = [part.strip() for part in text.split(",")]
    try:
        rates = tuple(float(part.rstrip("%")) for part in parts)
    except ValueError:
        rates = ()
    if not rates or not all(0 <= rate < 100 for rate in rates):
        raise OptionError(
            "oversubscription",
            text,
            "must be a list of percentages from 0 to below 100, like 0,10,30",
        )
    for part, rate in zip(parts, rates, strict=True):
        if 0 < rate < 1 and not part.endswith("%"):
            raise OptionError(
                "oversubscription",
                part,
                f"write {100 * rate:g} for {100 * rate:g} %, or {rate:g}% if that is meant",
                problem=f"oversubscription is in percent, and {part} is less than one percent",
            )
    return tuple(dict.fromkeys(rates))


def parse_sizes(
    rates: str | None, budgets: str | None, default: str
) -> tuple[float, ...] | tuple[Budget, ...]:
    """Return oversubscriptions, or the budgets that are given instead."""
    if budgets is None:
        return parse_rates(default if rates is None else rates)
    if rates is not None:
        raise OptionError(remedy="pass --oversubscription or --device-budget, not both")
    found = tuple(dict.fromkeys(Budget.parse(part.strip()) for part in budgets.split(",")))
    if any(budget.fraction is not None and budget.fraction > 1 for budget in found):
        raise OptionError("device_budget", budgets, "must be sizes or shares of at most 100%")
    return found


def rates_of(
    sizes: tuple[float, ...] | tuple[Budget, ...], peak: int | None = None
) -> tuple[float, ...]:
    """Return oversubscriptions in percent; bytes become a share of the peak in core."""
    rates = []
    for given in sizes:
        if not isinstance(given, Budget):
            rates.append(given)
        elif given.fraction is not None:
            rates.append(round(100 * (1 - given.fraction), 9))
        elif peak is None:
            raise OptionError(
                "device_budget", size(given.nbytes or 0), "must be a share here, such as 70%"
            )
        else:
            # Half a byte more, as a share of the peak is rounded down to bytes.
            rates.append(max(0.0, 100 * (1 - ((given.nbytes or 0) + 0.5) / peak)))
    return tuple(dict.fromkeys(rates))


def parse_policies(text: str) -> tuple[str, ...]:
    """Return names of policies, as in "base,adv2"; "all" stands for the thesis's ten and auto."""
    every = ("base", *(f"adv{i}" for i in range(1, 10)), AUTO.name)
    names = [name.strip() for name in text.split(",") if name.strip()]
    policies = tuple(
        dict.fromkeys(n for name in names for n in (every if name == "all" else (name,)))
    )
    known: dict[str, tuple[str, Policy]] = {}
    for name in policies or ("",):
        policy = find_policy(name)
        first, same = known.setdefault(policy.name, (name, policy))
        if policy != same:
            raise OptionError(
                remedy=f"{first} and {name} are both called {policy.name}; rename one"
            )
    return tuple(name for name, _ in known.values())


FOOTPRINT = "share of the plan's in-core footprint"
"""Distinguishes points from those whose memory was a share of the recorded arrays."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A graph of a sweep, and how its page accesses are recorded.

    Parameters
    ----------
    name : str
    graph : Graph or Program
        A graph; or a program of one's own, which is simulated as it was declared.
    record : callable, optional
        Returns what a GPU run of the graph would touch; by default `recorder.record`.
    program : str
        The program whose arrays and kernels are recorded, if not this engine.
    scale : float, optional
        Size of a stand-in relative to its original.
    rates : tuple of float, optional
        Its oversubscriptions, in place of those of the settings.
    """

    name: str
    graph: Graph | Program
    record: Callable[[], Trace] | None = None
    program: str = "louvain-um"
    scale: float | None = None
    rates: tuple[float, ...] | None = None
    digest: str = field(init=False, repr=False, compare=False)
    """Of the graph: graphs of one name and size are distinguished by it."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "digest", digest_of(self.graph))
        if isinstance(self.graph, Program):
            declared = self.graph
            object.__setattr__(self, "program", "declared")
            if self.record is None:
                object.__setattr__(self, "record", lambda: trace_of(declared))

    @property
    def size(self) -> tuple[int | None, int | None]:
        """Vertices and arcs of the graph; a program has none."""
        graph = self.graph
        return (None, None) if isinstance(graph, Program) else (graph.n_vertices, graph.n_arcs)


def subject_of(name: str, graph: Graph, program: str | None) -> Subject:
    """Return a graph as a sweep takes it; of an algorithm, its declared accesses are replayed."""
    if program is None:
        return Subject(name=name, graph=graph)
    from louvain_um.algorithms.programs import program_for

    return Subject(
        name=name,
        graph=graph,
        record=lambda: trace_of(program_for(program, graph)),
        program=program,
    )


def subject_of_trace(name: str, trace: Trace) -> Subject:
    """Return a recorded trace as a sweep takes it."""
    return Subject(name=name, graph=program_of(trace), record=lambda: trace)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What is swept.

    Parameters
    ----------
    policies : tuple of str, path or Policy
        Names, TOML files or objects; all of different names.
    rates : tuple of float
        Oversubscriptions in percent: 30 for 30 %.
    gpus : tuple of str
        Profiles or files of machines to simulate; may be empty if a device is named.
    device : str, optional
        CUDA device to measure on.
    method : {"louvain", "leiden"}
    seed : int
    driver : Driver
        Of the simulated machines.
    energy : bool
        Whether measured points are repeated for 2 s to measure their energy.
    ballast : int or str, optional
        Device memory to occupy during measured runs.
    allow_driver_eviction : bool
        Whether they continue where the ballast makes the driver evict.
    """

    policies: tuple[str | Path | Policy, ...]
    rates: tuple[float, ...]
    gpus: tuple[str, ...] = ()
    device: str | None = None
    method: Method = "louvain"
    seed: int = 0
    driver: Driver = field(default_factory=Driver)
    energy: bool = False
    ballast: int | str | None = None
    allow_driver_eviction: bool = False

    def __post_init__(self) -> None:
        for option in ("energy", "ballast", "allow_driver_eviction"):
            value = getattr(self, option)
            if value is not None and value is not False and self.device is None:
                raise OptionError(
                    option, value, "omit {option}, or name the device cuda",
                    problem=f"{option} needs runs on a GPU",
                )  # fmt: skip
        Options(
            method=self.method,
            seed=self.seed,
            device=self.device or "auto",
            ballast=self.ballast,
            allow_driver_eviction=self.allow_driver_eviction,
        )  # checks them
        if not self.gpus and self.device is None:
            raise OptionError(
                remedy="a sweep needs a GPU: a device to measure on, or a machine profile"
            )
        names = [policy_name(policy) for policy in self.policies]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise OptionError(remedy=f"two policies are called {twice}; rename one")
        for rate in self.rates:
            if not is_number(rate) or not 0 <= rate < 100:
                raise OptionError("rates", rate, "must be percentages from 0 to below 100")


def points(
    subject: Subject, settings: Settings, machines: dict[str, Machine]
) -> Iterator[dict[str, Any]]:
    """Yield the key of each point of a graph, base first."""
    order = sorted(settings.policies, key=lambda policy: policy_name(policy) != "base")
    vertices, arcs = subject.size
    places = [(gpu, "modelled") for gpu in settings.gpus]
    if settings.device is not None:
        places.append((device_name(settings.device), "measured"))
    for gpu, evidence in places:
        for policy in order:
            about: list[Any] = [
                settings.method, settings.seed, subject.program, subject.digest
            ]  # fmt: skip
            about.append(_policy(policy))
            if evidence == "measured" and settings.energy:
                about.append("energy")
            if evidence == "measured" and settings.ballast is not None:
                about.append(f"ballast of {settings.ballast}")
            if evidence == "modelled":
                about += [machines[gpu].to_dict(), asdict(settings.driver)]
                if subject.record is None and settings.driver.eviction != "program":
                    about.append(FOOTPRINT)
            text = json.dumps(about, sort_keys=True, default=str)
            for rate in settings.rates if subject.rates is None else subject.rates:
                yield {
                    "graph": subject.name,
                    "vertices": vertices,
                    "arcs": arcs,
                    "policy": policy_name(policy),
                    "oversubscription": rate,
                    "gpu": machines[gpu].name if gpu in machines else gpu,
                    "evidence": evidence,
                    "setup": hashlib.sha256(text.encode()).hexdigest()[:12],
                    "source": (policy, gpu),
                }


def places_of(machines: Sequence[str], device: str) -> tuple[tuple[str, ...], str | None]:
    """Return the machines to simulate and the device to measure on, if there is one."""
    from louvain_um.gpu.runtime.device import pick

    chosen = pick("cpu" if device == "auto" and machines else device)
    measured = str(chosen) if chosen.kind == "cuda" else None
    return tuple(machines) or (() if measured else ("h200",)), measured


def digest_of(graph: Graph | Program) -> str:
    """Return a digest of a graph's arrays, or of what a program declares."""
    found = hashlib.blake2b(digest_size=8)
    if isinstance(graph, Program):
        declared = graph.name, *graph.arrays, *graph.phases
        found.update(repr(declared).encode())  # with the kinds of accesses
        return found.hexdigest()
    for array in (graph.offsets, graph.targets, graph.weights, graph.loops):
        if array is not None:
            found.update(f"{array.dtype.str} {array.size};".encode())
            found.update(np.ascontiguousarray(array).data)
    return found.hexdigest()


def policy_name(policy: str | Path | Policy) -> str:
    """Return a policy's name, also if it was given as a file or an object."""
    return find_policy(policy).name


def _policy(policy: str | Path | Policy) -> dict[str, str]:
    parsed = find_policy(policy)
    places: list[tuple[str, object]] = [*parsed.placements.items(), *parsed.arrays.items()]
    if parsed.pages_per_warp is not None:
        places.append(("pages_per_warp", parsed.pages_per_warp))
    return {str(name): str(placement) for name, placement in places}


def device_name(device: str) -> str:
    """Return the product name of a CUDA device."""
    from cupy.cuda import runtime

    from louvain_um.gpu.runtime.device import pick

    return str(runtime.getDeviceProperties(pick(device).index)["name"].decode())
