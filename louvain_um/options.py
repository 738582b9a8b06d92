"""Options of a run: every parameter and default in one place, and the signatures made of them."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, fields
from decimal import Decimal
from difflib import get_close_matches
from inspect import Parameter, Signature, cleandoc, signature
from numbers import Integral
from typing import Any, Final, Literal, TypedDict, TypeGuard, get_args

from louvain_um.errors import Function, OptionError, check_choice, check_number, kind_checks

MAX_THREADS = 4096
"""More would take memory and time only to be started."""

MAX_BYTES = 1 << 63
MAX_FRACTION = 1e9
"""Of the peak; no machine has more."""

LEAST_PLAIN = 1 << 10
"""Bytes of a budget below which a text without a unit rather means another unit, or a share."""

UNITS = {"": 1, "b": 1} | {
    f"{prefix}{infix}b": base**power
    for infix, base in (("", 1000), ("i", 1024))
    for power, prefix in enumerate("kmgt", 1)
}
"""Bytes of a unit, by its name in lower case."""

COUNTS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}
"""What a letter after a number of things stands for, in lower case."""

Method = Literal["louvain", "leiden"]

METHODS: tuple[Method, ...] = get_args(Method)

Effort = Literal["fast", "default", "best"]

EFFORTS: tuple[Effort, ...] = get_args(Effort)

MOST_RUNS = 1000
"""Maximum of `best_of`."""

ObjectiveName = Literal["modularity", "cpm", "directed", "bipartite", "signed"]

OBJECTIVES: tuple[ObjectiveName, ...] = get_args(ObjectiveName)


@dataclass(frozen=True, slots=True)
class Budget:
    """Device memory that a run may occupy.

    Parameters
    ----------
    nbytes : int, optional
        Bytes.
    fraction : float, optional
        Instead of bytes: a fraction of what the run takes in core. Without either there is no
        budget.

    Examples
    --------
    >>> from louvain_um.options import Budget
    >>> Budget.parse("8GiB"), Budget.parse("70%").resolve(1000)
    (Budget(nbytes=8589934592, fraction=None), 700)
    """

    nbytes: int | None = None
    fraction: float | None = None

    @classmethod
    def parse(cls, value: Budget | int | str | None) -> Budget:
        """Return the budget that a user gave."""
        if isinstance(value, Budget):
            return value
        if value is None:
            return cls()
        match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]*)?)\s*%\s*", str(value))
        if match is None:
            try:
                found = cls(nbytes=parse_bytes(value))
            except OptionError:
                remedy = "must be a size above 0, like '8GiB', or a share, like '70%'"
                raise OptionError("device_budget", value, remedy) from None
            if isinstance(value, str):
                refuse_plain(value.strip())
            return found
        fraction = float(match[1]) / 100
        if not fraction:
            raise OptionError("device_budget", value, "must be a share above 0 %, like '70%'")
        if fraction > MAX_FRACTION:
            raise OptionError("device_budget", value, "must be a share of at most 10¹¹ %")
        return cls(fraction=fraction)

    def resolve(self, peak: int) -> int | None:
        """Return the bytes of a run that takes `peak` in core; None without a budget."""
        if self.fraction is None:
            return self.nbytes
        return max(1, int(self.fraction * peak))


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options of one detection.

    `louvain_um.options` derives other signatures and docstrings from these fields.

    Parameters
    ----------
    method : {"louvain", "leiden"}
        "leiden" guarantees connected communities.
    resolution : float
        γ; larger values give smaller communities.
    threshold : float
        A level that raises modularity by no more than this ends the run. A further cycle continues
        only if its first move phase gains more than 100 × threshold. A third one, which only Leiden
        has, starts only if the second gained more than 10,000 × threshold or `initial` is given.
    max_level : int, optional
        Maximum number of levels.
    effort : {"fast", "default", "best"}
        "fast" ends every level earlier, and Leiden refines in its first cycle only. "best" combines
        several runs: it starts again from the communities on which the best result so far and a
        new run agree, and keeps the better result; it takes about fifteen times as long.
    n_iterations : int, optional
        Maximum number of cycles, each of which starts from the communities of the one before, as
        in igraph and leidenalg; -1 for as many as improve the result by more than `threshold`. By
        default the number follows from `threshold`, as said there.
    best_of : int
        Number of runs, with seeds `seed`, `seed` + 1 …; the best result is kept. They follow each
        other, on a GPU on one copy of the graph.
    objective : {"modularity", "cpm", "directed", "bipartite", "signed"}
        What is maximised: Newman's modularity; the constant Potts model, whose γ is a density;
        or modularity of directed (Leicht and Newman), two-mode (Barber) or signed graphs (Gómez,
        Jensen and Arenas).
    initial : array of int, dict, list of sets or Communities, optional
        Communities to start from, in any form that `modularity` takes; single vertices by default.
    fixed : array of bool, or list of vertices, optional
        Vertices that stay in their communities of `initial`: those of one community stay
        together, those of different ones in different communities.
    max_size : int, optional
        Maximum number of vertices of a community.
    seed : int
        0 … 2³² − 1. The same seed gives the same labels on every device.
    device : {"auto", "cpu", "cuda", "cuda:N", "cuda:0,1", "cuda:all"}
        "auto" takes a GPU if one is available. Only detection uses several GPUs of one host, which
        share level 0's rows.
    memory : str or Policy
        Memory policy of a GPU run: "auto", "device", "zero_copy", "base", "adv1" … "adv9", the
        name or path of a TOML file, or a `louvain_um.placement.policy.Policy`. Results do not
        depend on it.
    device_budget : int or str, optional
        Device memory that a GPU run may occupy: bytes, a size such as "8GiB", or a share of what
        the run takes in core, such as "70%". A policy that cannot keep to it ends with an error
        that names the missing bytes.
    peer_memory : str, optional
        Another GPU of this host, such as "cuda:1", in whose memory a run on one GPU places what
        does not fit, before the host's. By default no other GPU is used.
    threads : int, optional
        CPU threads of a run, and of what prepares its graph; all cores by default. Results do not
        depend on it.
    ballast : int or str, optional
        Device memory to occupy during the run, for experiments with driver eviction.
    allow_driver_eviction : bool
        Continue where the ballast makes the driver evict.

    Raises
    ------
    OptionError
        A value outside its range.

    Examples
    --------
    >>> from louvain_um.options import Options
    >>> Options(resolution=0.5).method
    'louvain'
    """

    method: Method = "louvain"
    resolution: float = 1.0
    threshold: float = 1e-7
    max_level: int | None = None
    objective: ObjectiveName = "modularity"
    initial: Any = field(default=None, repr=False, compare=False)
    fixed: Any = field(default=None, repr=False, compare=False)
    max_size: int | None = None
    effort: Effort = "default"
    n_iterations: int | None = None
    best_of: int = 1
    seed: int = 0
    device: str = "auto"
    memory: Any = "auto"
    device_budget: int | str | Budget | None = None
    peer_memory: str | None = None
    threads: int | None = None
    ballast: int | str | None = None
    allow_driver_eviction: bool = False
    budget: Budget = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_choice("method", self.method, METHODS)
        self._check_kinds()
        if not (math.isfinite(self.resolution) and self.resolution > 0):
            raise OptionError("resolution", self.resolution, "must be a number above 0")
        if not (math.isfinite(self.threshold) and self.threshold >= 0):
            raise OptionError("threshold", self.threshold, "must be a number of at least 0")
        if self.max_level is not None and self.max_level < 1:
            raise OptionError("max_level", self.max_level, "must be at least 1")
        check_choice("effort", self.effort, EFFORTS)
        if self.n_iterations is not None and self.n_iterations < 1 and self.n_iterations != -1:
            remedy = "must be at least 1, or -1 for as many as improve the result"
            raise OptionError("n_iterations", self.n_iterations, remedy)
        if not 1 <= self.best_of <= MOST_RUNS:
            raise OptionError("best_of", self.best_of, f"must lie in 1 … {MOST_RUNS}")
        check_choice("objective", self.objective, OBJECTIVES)
        if self.max_size is not None and self.max_size < 1:
            raise OptionError("max_size", self.max_size, "must be at least 1")
        if self.max_size is not None:  # no graph has as many vertices
            object.__setattr__(self, "max_size", min(self.max_size, 2**32))
        if not 0 <= self.seed < 2**32:
            raise OptionError("seed", self.seed, "must lie in 0 … 2^32 - 1")
        if self.seed + self.best_of > 2**32:
            remedy = f"must leave room for {self.best_of} seeds below 2^32"
            raise OptionError("seed", self.seed, remedy)
        if self.threads is not None and not 1 <= self.threads <= MAX_THREADS:
            raise OptionError("threads", self.threads, f"must lie in 1 … {MAX_THREADS}")
        object.__setattr__(self, "budget", Budget.parse(self.device_budget))
        if self.ballast is not None:
            parse_bytes(self.ballast, "ballast")
            if self.device == "cpu":
                raise OptionError(
                    "device", "cpu", "use device='cuda'", problem="ballast takes device memory"
                )
        elif self.allow_driver_eviction:
            raise OptionError(
                "allow_driver_eviction",
                True,
                "pass ballast with it",
                problem="the driver evicts only where ballast takes device memory",
            )
        if self.peer_memory is not None:
            self._check_peer()
        if not re.fullmatch(r"auto|cpu|cuda(:([0-9]+(,[0-9]+)*|all))?", self.device):
            raise OptionError(
                "device", self.device, "must be 'auto', 'cpu', 'cuda', 'cuda:N' or 'cuda:0,1'"
            )

    def _check_peer(self) -> None:
        """Raise unless another GPU is named, and a run on one GPU is asked for."""
        name = self.peer_memory
        if not isinstance(name, str) or not re.fullmatch(r"cuda:[0-9]+", name):
            raise OptionError("peer_memory", name, "must be another GPU, such as 'cuda:1'")
        if self.device == "cpu" or "," in self.device or self.device in ("cuda:all", name):
            problem = "peer_memory is another GPU's, for a run on one GPU"
            other = "cuda:1" if name == "cuda:0" else "cuda:0"
            raise OptionError("device", self.device, f"use device='{other}'", problem=problem)

    def _check_kinds(self) -> None:
        """Raise for values of another type; make Python's numbers of NumPy's, which overflow."""
        for name in ("resolution", "threshold"):
            value = getattr(self, name)
            check_number(name, value)
            object.__setattr__(self, name, float(value))
        for name in ("max_level", "max_size", "n_iterations", "best_of", "seed", "threads"):
            value = getattr(self, name)
            if not is_whole(value) and (value is not None or name in ("best_of", "seed")):
                raise OptionError(name, value, "must be a whole number")
            if value is not None:
                object.__setattr__(self, name, int(value))
        if not isinstance(self.device, str):
            raise OptionError("device", self.device, "must be a string such as 'cpu'")

    def settings(self) -> dict[str, Any]:
        """Return all on which labels depend, but `initial` and `fixed`, to be saved with them."""
        given = ("method", *OF_DETECTION)
        return {name: getattr(self, name) for name in given if name not in ("initial", "fixed")}

    @property
    def ballast_bytes(self) -> int:
        """Bytes of the ballast."""
        return 0 if self.ballast is None else parse_bytes(self.ballast, "ballast")


def refuse_plain(budget: str) -> None:
    """Raise for a device budget of hardly any bytes that has no unit."""
    if budget.isdecimal() and int(budget) < LEAST_PLAIN:
        raise OptionError(
            "device_budget",
            budget,
            f"pass {budget}% or {budget}MiB for {{option}} if that is meant, or {budget}B",
            problem=f"a budget of {budget} is {int(budget):,} bytes",
        )


def is_whole(value: object) -> TypeGuard[int]:
    """Whether a value is a whole number; a truth value is not."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def parse_bytes(size: int | str, option: str = "size") -> int:
    """Return a size in bytes."""
    nbytes, unit = _with_unit(size, UNITS) or (Decimal(0), "")
    if not 1 <= nbytes < MAX_BYTES:
        raise OptionError(option, size, "must be a number of bytes or a size like '8GiB'")
    if not unit and nbytes % 1:
        raise OptionError(option, size, "must be a whole number of bytes, or have a unit")
    return int(nbytes)


def parse_count(count: int | str, option: str = "count") -> int:
    """Return a whole number, which may be written as 1000000, 1e6, 1M or 1_000_000."""
    found = _with_unit(count, COUNTS)
    if found is None or (abs(found[0]) < MAX_BYTES and found[0] % 1):
        raise OptionError(option, count, "must be a whole number like 1000000, 1e6 or 1M")
    if abs(found[0]) >= MAX_BYTES:
        raise OptionError(option, count, "must be less than 2^63")
    return int(found[0])


def _with_unit(text: int | str, units: Mapping[str, int]) -> tuple[Decimal, str] | None:
    """Return a number times its unit, and the unit; None if the text is not of this form."""
    number = r"[+-]?[0-9][0-9_]*(?:\.[0-9]*)?(?:[eE][+-]?[0-9]{1,2})?"
    match = re.fullmatch(rf"\s*({number})\s*([a-zA-Z]*)\s*", str(text))
    if match is None or (unit := match[2].lower()) not in units:
        return None
    return Decimal(match[1]) * units[unit], unit


class RunValues(TypedDict, total=False):
    """Types of the options that say where a run happens."""

    device: str
    memory: Any
    device_budget: int | str | Budget | None
    peer_memory: str | None
    threads: int | None


class OptionValues(RunValues, total=False):
    """Types of the options that users pass, for static checkers; a test holds it to `Options`."""

    resolution: float
    threshold: float
    max_level: int | None
    effort: Effort
    n_iterations: int | None
    best_of: int
    objective: ObjectiveName
    initial: Any
    fixed: Any
    max_size: int | None
    seed: int


SHOWN: Final = [each.name for each in fields(Options) if each.name in OptionValues.__annotations__]
OF_DETECTION: Final = [name for name in SHOWN if name not in RunValues.__annotations__]


def unusual(settings: Mapping[str, Any]) -> list[str]:
    """Return the settings of a result that differ from the defaults, to show with it."""
    usual = Options().settings()
    return [
        f"{name.replace('_', ' ')} {value}"
        for name, value in settings.items()
        if name != "method" and value not in (None, usual.get(name))
    ]


ELSEWHERE: Final = {
    "gamma": "resolution",
    "initial_membership": "initial",
    "is_membership_fixed": "fixed",
    "max_comm_size": "max_size",
    "max_iter": "n_iterations",
    "n_jobs": "threads",
    "objective_function": "objective",
    "partition": "initial",
    "partition_type": "objective",
    "random_state": "seed",
    "resolution_parameter": "resolution",
}
"""What python-louvain, leidenalg, igraph, cuGraph and scikit-learn call an option, to name ours."""


def takes_options(*without: str, **defaults: Any) -> Callable[[Function], Function]:
    """Show the options of a run in the signature and docstring of a function with ``**options``."""
    known = {item.name: item for item in fields(Options)}
    added = [
        Parameter(
            name,
            Parameter.KEYWORD_ONLY,
            default=defaults.get(name, known[name].default),
            annotation=known[name].type,
        )
        for name in SHOWN
        if name not in without
    ]

    def decorate(function: Function) -> Function:
        shown = signature(function)
        accepted = [p for p in shown.parameters.values() if p.kind is not Parameter.VAR_KEYWORD]
        first = [p for p in accepted if p.kind is not Parameter.KEYWORD_ONLY or p.name == "method"]
        last = [p for p in accepted if p not in first]
        shown = shown.replace(parameters=[*first, *added, *last])
        # scikit-learn constructs anything; what `fit` makes of it is checked then.
        checks = {} if function.__name__ == "__init__" else kind_checks(shown)

        @functools.wraps(function)
        def wrapper(*args: Any, **values: Any) -> Any:
            try:
                bound = shown.bind(*args, **values)
            except TypeError as error:
                hint = _hint(shown, len(args), values)
                raise TypeError(f"{function.__qualname__}() {error}{hint}") from None
            for name in bound.arguments.keys() & checks.keys():
                checks[name](name, bound.arguments[name])
            return function(*args, **(defaults | values))

        found: Any = wrapper
        found.__signature__ = shown
        found.__doc__ = with_entries(function.__doc__, without)
        return found  # type: ignore[no-any-return]

    return decorate


def _hint(shown: Signature, given: int, values: Collection[str]) -> str:
    """Return what to pass instead of arguments that a function does not take, to end an error."""
    from louvain_um.formats.read_options import where_taken

    by_name = [p.name for p in shown.parameters.values() if p.kind is Parameter.KEYWORD_ONLY]
    if given > len(shown.parameters) - len(by_name):
        return f"; pass options by name, as in {by_name[0]}=…"
    for name in values:
        if name in shown.parameters:
            continue
        if read := where_taken(["weight" if name == "weights" else name]):
            return read
        # Short words resemble others by chance.
        close = get_close_matches(name, shown.parameters, 1, 0.88) if len(name) > 5 else []
        known = ELSEWHERE.get(name) or (close[0] if close else None)
        if known in shown.parameters:
            return f"; pass {known}=…"
    return ""


def with_entries(doc: str | None, without: Collection[str] = ()) -> str | None:
    """Return a docstring with its entry ``**options`` replaced by the entries of `Options`."""
    entry = re.search(r"^( *)\*\*options\n(?:\1 +[^\n]*\n)*", doc or "", re.MULTILINE)
    if doc is None or entry is None:
        return doc
    names = (name for name in SHOWN if name not in without)
    text = "".join(_entry(name, entry[1]) for name in names)
    return f"{doc[: entry.start()]}{text}{doc[entry.end() :]}"


def _entry(name: str, indent: str) -> str:
    """Return the entry of an option in the docstring of `Options`, indented."""
    doc = cleandoc(Options.__doc__ or "")
    found = re.search(rf"^{name} : [^\n]*\n(?: {{4}}[^\n]*\n)*", doc, re.MULTILINE)
    return "".join(f"{indent}{line}\n" for line in found[0].splitlines()) if found else ""
