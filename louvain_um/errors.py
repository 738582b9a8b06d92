"""The toolkit's errors: one line each that ends in what to do next."""

from __future__ import annotations

import functools
import importlib
import re
import sys
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping
from inspect import Signature, signature
from numbers import Number, Real
from os import PathLike
from pathlib import Path
from typing import Any, Final, TypeGuard, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

MOST_NAMED: Final = 5
"""Arrays that an error lists."""

MOST_SHOWN: Final = 40
"""Characters of a value that an error shows."""

MOST_QUOTED: Final = 3
"""Choices that an error quotes; it lists more of them plainly."""

READ_AGAIN: Final = "; check its permissions and its disk, or copy it to another"
"""What to do about a file that the system cannot read."""


class LouvainUmError(Exception):
    """Base of the toolkit's errors; the text is one line that a user can act on."""

    def __str__(self) -> str:
        # What a user passed, such as a file's name, is quoted in messages and may break lines.
        return " ".join(super().__str__().splitlines())


class OptionError(LouvainUmError, ValueError):
    """An option has a value outside its range, or options contradict each other.

    Parameters
    ----------
    option : str
        Name of the option in Python, such as "device_budget"; "" where no single one is wrong.
    value : object
        Its value.
    remedy : str
        What the option must be, to follow its name: "must be at least 1"; after a problem, or
        without an option, the complete message. After a problem, `{option}` in it stands for the
        option's name.
    problem : str
        What is wrong, where that is more than the value.

    Examples
    --------
    >>> from louvain_um.errors import OptionError
    >>> error = OptionError("max_level", 0, "must be at least 1")
    >>> str(error), error.message("--max-level")
    ('max_level must be at least 1, not 0', '--max-level must be at least 1, not 0')
    """

    def __init__(
        self, option: str = "", value: object = None, remedy: str = "", problem: str = ""
    ) -> None:
        super().__init__(option, value, remedy, problem)
        self.option = option
        self.value = value
        self.remedy = remedy
        self.problem = problem

    def message(self, name: str) -> str:
        """Return the message with the option under another name."""
        if self.problem:
            return f"{self.problem}; {self.remedy.replace('{option}', name)}"
        return f"{name} {self.remedy}, not {shown(self.value)}" if name else self.remedy

    def __str__(self) -> str:
        return self.message(self.option)


def is_switch(value: object) -> bool:
    """Whether a value is True or False; 1 and 0 are, and NumPy's too."""
    try:
        return bool(value in (True, False))
    except (TypeError, ValueError):  # an array
        return False


def check_switch(option: str, value: object) -> bool:
    """Return an option that is True or False as Python's own; raise an OptionError for others.

    Examples
    --------
    >>> from louvain_um.errors import check_switch
    >>> check_switch("sort", "no")
    Traceback (most recent call last):
    louvain_um.errors.OptionError: sort must be True or False, not 'no'
    """
    if not is_switch(value):
        raise OptionError(option, value, "must be True or False")
    return bool(value)


def is_number(value: object) -> TypeGuard[float]:
    """Whether a value is a real number that a float can hold; a truth value is none."""
    try:
        return isinstance(value, Real) and not isinstance(value, bool) and float(value) is not None
    except OverflowError:
        return False


def check_number(option: str, value: object) -> None:
    """Raise an OptionError unless an option is a real number."""
    if not is_number(value):
        raise OptionError(option, value, "must be a number")


def check_choice(option: str, value: object, choices: Collection[str]) -> None:
    """Raise an OptionError unless an option is one of some texts."""
    if not among(value, *choices):
        if len(choices) > MOST_QUOTED:
            raise OptionError(option, value, f"must be one of {', '.join(choices)}")
        *others, last = map(repr, choices)
        listed = f"{', '.join(others)} or {last}" if others else last
        raise OptionError(option, value, f"must be {listed}")


def check_function(option: str, value: object) -> None:
    """Raise an OptionError unless an option can be called."""
    if not callable(value):
        raise OptionError(option, value, "must be a function")


def check_path(option: str, value: object) -> None:
    """Raise an OptionError unless an option is a path that a file can have."""
    if not isinstance(value, str | PathLike) or "\0" in str(value):
        raise OptionError(option, value, "must be a path")


def check_table(option: str, value: object) -> None:
    """Raise an OptionError unless an option is a dict, or another mapping."""
    if not isinstance(value, Mapping):
        raise OptionError(option, value, "must be a dict")


def check_texts(option: str, value: object) -> None:
    """Raise an OptionError unless an option is a list, a tuple or another sequence."""
    try:
        iter(value)  # type: ignore[call-overload]
    except TypeError:
        raise OptionError(option, value, "must be a list") from None


KINDS: Final = {
    r"bool": check_switch,
    r"float": check_number,
    r"Observer|Callable\[.*": check_function,
    r"str \| (Path|os\.PathLike\[str\])": check_path,
    r"Mapping\[.*": check_table,
    r"Sequence\[(Phase \| )?str\]": check_texts,
}
"""Annotation of a parameter, without None → what looks at its values."""


def kind_checks(of: Signature) -> dict[str, Callable[[str, Any], object]]:
    """Return what looks at the values of the parameters whose annotation is in `KINDS`."""
    found: dict[str, Callable[[str, Any], object]] = {}
    for name, parameter in of.parameters.items():
        known = str(parameter.annotation).removesuffix(" | None")
        for pattern, check in KINDS.items():
            if re.fullmatch(pattern, known):
                found[name] = _or_none(check) if known != parameter.annotation else check
    return found


def _or_none(check: Callable[[str, Any], object]) -> Callable[[str, Any], object]:
    """Return a check that lets None pass."""
    return lambda option, value: None if value is None else check(option, value)


def checks_kinds(call: Function) -> Function:
    """Raise an OptionError for arguments of another kind than a function's annotations say."""
    parameters = signature(call).parameters
    checks = kind_checks(signature(call))

    @functools.wraps(call)
    def checked(*args: Any, **named: Any) -> Any:
        for name, value in (*zip(parameters, args, strict=False), *named.items()):
            if name in checks:
                checks[name](name, value)
        return call(*args, **named)

    return checked  # type: ignore[return-value]


def shown(value: object, most: int = MOST_SHOWN) -> str:
    """Return a value for a message, cut where it is long."""
    if isinstance(value, Number):
        text = str(value)
        return text if len(text) <= most else f"{text[:most]}…"
    if isinstance(value, str):
        return repr(value if len(value) <= most else f"{value[:most]}…")
    text = " ".join(repr(value).split())
    return text if len(text) <= 4 * most else f"{text[: 4 * most]}…"


def among(value: object, *choices: str | None) -> bool:
    """Return whether a value is one of some texts; an array, which has no one answer, is none."""
    return (value is None or isinstance(value, str)) and value in choices


class GraphError(LouvainUmError, ValueError):
    """Input that does not describe an undirected graph with non-negative weights."""


class GraphFormatError(GraphError):
    """A file that cannot be read as a graph.

    Parameters
    ----------
    message : str
        The problem and the remedy.
    file : str or Path
        The file as the user named it.
    line : int, optional
        1-based number of the first offending line, where one is known.
    """

    def __init__(self, message: str, file: str | Path, line: int | None = None) -> None:
        where = f"{file}:{line}" if line is not None else f"{file}"
        super().__init__(f"{where}: {message}")
        self.message = message
        self.file = str(file)
        self.line = line

    def __reduce__(self) -> tuple[type[GraphFormatError], tuple[str, str, int | None]]:
        return type(self), (self.message, self.file, self.line)


class DeviceUnavailableError(LouvainUmError):
    """The requested device is not available; `reason` says why."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class MemoryBudgetError(LouvainUmError):
    """A run does not fit.

    Parameters
    ----------
    needed, budget : int
        Bytes the run needs and bytes it may use.
    largest : iterable of (str, int)
        Arrays and their bytes; the largest that have any are named.
    remedy : str
        What to do next.
    """

    def __init__(
        self,
        needed: int,
        budget: int,
        largest: Iterable[tuple[str, int]] = (),
        remedy: str = "raise the budget or choose another memory policy",
    ) -> None:
        named = tuple(sorted((item for item in largest if item[1]), key=lambda item: -item[1]))
        named = named[:MOST_NAMED]
        arrays = ", ".join(f"{name} {_size(bytes_)}" for name, bytes_ in named)
        detail = f" (largest: {arrays})" if arrays else ""
        super().__init__(
            f"needs {_size(needed)}, {needed - budget:,} bytes more than the "
            f"{_size(budget)} it may use{detail}; {remedy}"
        )
        self.needed = needed
        self.budget = budget
        self.largest = named
        self.remedy = remedy

    def __reduce__(
        self,
    ) -> tuple[type[MemoryBudgetError], tuple[int, int, tuple[tuple[str, int], ...], str]]:
        return type(self), (self.needed, self.budget, self.largest, self.remedy)


class HostMemoryError(LouvainUmError):
    """Host memory is too small; raised before any of it is allocated.

    Parameters
    ----------
    what : str
        What needs the memory.
    needed, free : int
        Bytes that it needs at least, and bytes that can be had.
    remedy : str
        What to do next.
    """

    def __init__(self, what: str, needed: int, free: int, remedy: str) -> None:
        super().__init__(
            f"{what} needs {needed:,} bytes of host memory, {free:,} are free; {remedy}"
        )
        self.what = what
        self.needed = needed
        self.free = free
        self.remedy = remedy

    def __reduce__(self) -> tuple[type[HostMemoryError], tuple[str, int, int, str]]:
        return type(self), (self.what, self.needed, self.free, self.remedy)


def _size(nbytes: int) -> str:
    """Return bytes as text: MiB, and smaller units below 1 MiB."""
    if nbytes >= 10 << 20:
        return f"{nbytes / 2**20:,.0f} MiB"
    if nbytes >= 1 << 20:
        return f"{nbytes / 2**20:.1f} MiB"
    return f"{nbytes / 1024:.1f} KiB" if nbytes >= 1 << 10 else f"{nbytes} bytes"


class PlacementError(LouvainUmError):
    """A device or its driver rejects a placement; the run stops instead of using another."""


class WorkerLostError(LouvainUmError):
    """A rank of a distributed run is gone, failed or did not answer; the others have stopped."""


class KernelCompileError(LouvainUmError):
    """A CUDA kernel did not compile; `log` is the compiler's output."""

    __str__ = Exception.__str__  # a log has lines

    def __init__(self, log: str) -> None:
        super().__init__(
            f"CUDA kernels failed to compile: {log.strip()}; update the driver, CUDA or CuPy, or "
            "use device='cpu'"
        )
        self.log = log


class GraphWarning(UserWarning):
    """A remark on a graph that was read nevertheless."""


def warn(text: str) -> None:
    """Warn with a `GraphWarning`, at the first line outside the package."""
    frame, level = sys._getframe(1), 2
    while frame.f_back and str(frame.f_globals.get("__name__")).startswith("louvain_um."):
        frame, level = frame.f_back, level + 1
    warnings.warn(GraphWarning(text), stacklevel=level)


class Uncertain(str):
    """A note of a graph on a guess that may be wrong; `read_graph` and `as_graph` also warn."""

    __slots__ = ()


class Taken(Uncertain):
    """The last note of a graph: which column is the weight although its name is unknown."""

    __slots__ = ()


class Underflow(str):
    """A note of a graph on positive weights that round to 0: their edges are left out.

    `Graph.from_edges`, which makes the graphs of all inputs, also warns.
    """

    __slots__ = ()


def install_hint(extras: str) -> str:
    """Return the command that installs extras from where louvain-um was installed.

    That is a clone's folder, an archive or a repository, or else a package index.
    """
    import json
    from importlib.metadata import PackageNotFoundError, distribution
    from urllib.parse import unquote, urlparse

    try:
        found = json.loads(distribution("louvain-um").read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, ValueError):
        found = {}
    url = found.get("url", "")
    if found.get("dir_info", {}).get("editable"):
        return f"pip install -e '{unquote(urlparse(url).path)}[{extras}]'"
    if "vcs_info" in found:
        url = f"{found['vcs_info']['vcs']}+{url}"
    return f"pip install 'louvain-um[{extras}]{url and f' @ {url}'}'"


def reason_of(error: OSError) -> str:
    """Return what the system refused, in one line."""
    text = error.strerror or str(error) or type(error).__name__
    return text.splitlines()[0].lower()


def needed(module: str, what: str, extras: str) -> Any:
    """Import a library; the error says what needs it, and how to install it."""
    try:
        importlib.import_module(module.partition(".")[0])  # a part may be left of one that is gone
        return importlib.import_module(module)
    except (ImportError, RuntimeError):  # as mpi4py raises without an MPI library
        raise LouvainUmError(f"{what}; install it with {install_hint(extras)}") from None


def missing_packages(*modules: str) -> list[str]:
    """Return those of some modules that are not installed, without importing them."""
    import sys
    from importlib.util import find_spec

    def lacks(module: str) -> bool:
        # None among loaded modules stands for one that cannot be imported.
        return sys.modules[module] is None if module in sys.modules else find_spec(module) is None

    return [module for module in modules if lacks(module)]


def require_packages(what: str, *modules: str) -> None:
    """Raise if modules that something needs are not installed, before any work is done."""
    if missing := missing_packages(*modules):
        remedy = f"install it with pip install {' '.join(missing)}"
        raise LouvainUmError(f"{what} needs {' and '.join(missing)}; {remedy}")
