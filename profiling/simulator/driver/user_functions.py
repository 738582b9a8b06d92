"""Behaviour of the simulated driver: its options, and functions that users write for it.

The simulated driver calls them by address, so that it need not be compiled again for each.
"""

from __future__ import annotations

import runpy
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Final, Literal, get_args

import numba
from llvmlite import ir
from numba import cfunc, njit, types
from numba.core.errors import NumbaError
from numba.extending import intrinsic

from louvain_um.core.plain_data import Within, check_fields
from louvain_um.errors import OptionError, check_choice, reason_of
from louvain_um.profiling.simulator.driver import constants as c
from louvain_um.profiling.simulator.driver.thrashing import MOST_MOVES, MOST_NAPS

FAILED: Final = -2
"""What a function that raised an exception returns to the driver."""

Function = Callable[..., Any]

# Looked up by its name in compiled code, so it must be Numba's own.
carray: Any = numba.carray  # type: ignore[attr-defined]

_EVICTIONS: dict[str, Function] = {}
_PREFETCHERS: dict[str, Function] = {}


def eviction(function: Function) -> Function:
    """Register an order of eviction under the function's name, for ``Driver(eviction=...)``.

    Parameters
    ----------
    function : callable
        ``function(blocks, head, keep) -> int``, which Numba must be able to compile. `blocks` is
        int64[n, columns], a row per 2 MiB block of managed memory; its columns are named in
        `louvain_um.profiling.simulator.driver.constants`: `FIRST` page, `PAGES`, `OWNER` (number
        of the array), `NEXT` (the block that arrived after it, −1 at the end), `RESIDENT` (pages
        on the device), `USES` (touches since it came, a run of neighbouring pages counts once)
        and `LAST_USE` (rises with every use of any block). `head` is the block that arrived
        first. To return: the block to evict next, never `keep`; −1 for the driver's own choice.

    Returns
    -------
    callable
        The function itself.

    Examples
    --------
    >>> from louvain_um.profiling.simulator import (
    ...     Array, Driver, Launch, Touches, Trace, eviction, simulate)
    >>> from louvain_um.profiling.simulator.driver.constants import NEXT
    >>> @eviction
    ... def last_come(blocks, head, keep):
    ...     found = head
    ...     while blocks[found, NEXT] >= 0 and blocks[found, NEXT] != keep:
    ...         found = blocks[found, NEXT]
    ...     return found
    >>> data = Array(name="data", group="graph", nbytes=16 << 20)
    >>> scan = Launch(touches=Touches.runs(0, 0, data.pages))
    >>> for order in ("driver", "last_come"):
    ...     run = simulate(
    ...         Trace((data,), (scan,) * 4), capacity=12 << 20, driver=Driver(eviction=order))
    ...     print(order, run.total("evictions"))
    driver 26
    last_come 11
    """
    return _register(_EVICTIONS, function, "eviction")


def prefetcher(function: Function) -> Function:
    """Register a prefetcher under the function's name, for ``Driver(prefetch=...)``.

    Parameters
    ----------
    function : callable
        ``function(pages, faulted, low, high, bring)``, which Numba must be able to compile. All
        three arrays are uint8[512], by page of a block of 2 MiB: the state of `pages` (bit 1: on
        the device, bit 2: on the host), 1 where a page has `faulted`, and `bring`, all 0, where
        the function sets 1 for the pages that are to come along. The block is `low` … `high` of
        them.

    Examples
    --------
    >>> from louvain_um.profiling.simulator import (
    ...     Array, Driver, Launch, Touches, Trace, prefetcher, simulate)
    >>> @prefetcher
    ... def whole_block(pages, faulted, low, high, bring):
    ...     bring[low:high] = 1
    >>> data = Array(name="data", group="graph", nbytes=4 << 20)
    >>> first = Launch(touches=Touches.of(0, [0, 600]))
    >>> run = simulate(Trace((data,), (first,)), driver=Driver(prefetch="whole_block"))
    >>> run.bytes_to_device == data.nbytes
    True
    """
    return _register(_PREFETCHERS, function, "prefetcher")


def _register(known: dict[str, Function], function: Function, what: str) -> Function:
    name = getattr(function, "__name__", "")
    if not callable(function) or not name.isidentifier():
        raise OptionError(what, function, "must be a function with a name")
    known[name] = function
    return function


def load_functions(given: str) -> str:
    """Return the name of a registered function."""
    path, colon, name = given.rpartition(":")
    if not colon or not path.endswith(".py"):
        return given
    try:
        runpy.run_path(path, run_name=Path(path).stem)
    except OSError as error:
        raise OptionError(remedy=f"{path}: {reason_of(error)}; check the path") from None
    except Exception as error:
        raise OptionError(
            remedy=f"{path}: raises {type(error).__name__}: {error}; run it with Python first"
        ) from None
    if name not in _EVICTIONS and name not in _PREFETCHERS:
        raise OptionError(
            remedy=f"{path}: registers no {name!r}; decorate it with "
            "louvain_um.profiling.simulator.eviction or prefetcher"
        )
    return name


def eviction_address(name: str) -> int:
    """Return where the compiled order lies; 0 for the driver's."""
    return 0 if name not in _EVICTIONS else _compiled_eviction(_EVICTIONS[name])[0]


def prefetcher_address(name: str) -> int:
    """Return where the compiled prefetcher lies; 0 for the driver's."""
    return 0 if name not in _PREFETCHERS else _compiled_prefetcher(_PREFETCHERS[name])[0]


@cache
def _compiled_eviction(function: Function) -> tuple[int, Any]:
    """Return a compiled order's address, and what keeps it alive."""
    inner: Any = function if hasattr(function, "py_func") else njit(function)

    def call(blocks, count, head, keep):
        rows = carray(blocks, (count, c.BLOCK_COLUMNS))
        try:
            return inner(rows, head, keep)
        except Exception:  # the driver reports it
            return FAILED

    signature = types.int64(types.CPointer(types.int64), types.int64, types.int64, types.int64)
    return _compile(signature, call, function)


@cache
def _compiled_prefetcher(function: Function) -> tuple[int, Any]:
    """Return a compiled prefetcher's address, and what keeps it alive."""
    inner: Any = function if hasattr(function, "py_func") else njit(function)
    size = (c.BLOCK_PAGES,)

    def call(pages, faulted, bring, low, high):
        try:
            inner(carray(pages, size), carray(faulted, size), low, high, carray(bring, size))
        except Exception:
            return FAILED
        return 0

    bytes_ = types.CPointer(types.uint8)
    signature = types.int64(bytes_, bytes_, bytes_, types.int64, types.int64)
    return _compile(signature, call, function)


def _compile(signature: Any, call: Function, function: Function) -> tuple[int, Any]:
    try:
        compiled = cfunc(signature)(call)
    except NumbaError as error:
        first = str(error).strip().splitlines()[0]
        raise OptionError(
            remedy=f"{function.__name__}: Numba cannot compile it ({first}); use numbers, loops "
            "and its arguments only"
        ) from None
    address: Any = compiled.address
    return int(address), compiled


def _caller(*, counted: bool) -> Any:
    """Return the code generation of a call by address with arrays as pointers."""

    def generate(context, builder, signature, args):
        found = []
        for kind, value in zip(signature.args[1:], args[1:], strict=True):
            if isinstance(kind, types.Array):
                array = context.make_array(kind)(context, builder, value)
                found.append(array.data)
                if counted:
                    found.append(builder.extract_value(array.shape, 0))
            else:
                found.append(value)
        kind = ir.FunctionType(ir.IntType(64), [value.type for value in found])
        function = builder.inttoptr(args[0], kind.as_pointer())
        return builder.call(function, found)

    return generate


@intrinsic
def _choose(typing_context, address, blocks, head, keep):
    """Call an order of eviction by its address."""
    signature = types.int64(types.int64, blocks, types.int64, types.int64)
    return signature, _caller(counted=True)


@intrinsic
def _mark(typing_context, address, pages, faulted, bring, low, high):
    """Call a prefetcher by its address."""
    signature = types.int64(types.int64, pages, faulted, bring, types.int64, types.int64)
    return signature, _caller(counted=False)


# Type checkers see the typing context that Numba passes; callers do not.
choose: Any = _choose
mark: Any = _mark

Eviction = Literal["driver", "lru", "lfu", "second_chance", "tree_pre", "program"]
COUNTER_THRESHOLD = 256
"""Accesses over the bus of which coherent systems notify the driver."""

EVICTIONS: tuple[Eviction, ...] = get_args(Eviction)
VERSIONS = ("580", "595")


@dataclass(frozen=True, slots=True, kw_only=True)
class Driver:
    """Settings of the simulated driver; the defaults are NVIDIA's.

    Parameters
    ----------
    version : {"595", "580"}
        Which driver's rules: since 590, the time within which migrations count as thrashing
        adapts. All other rules are those of 595.
    eviction : {"driver", "lru", "lfu", "second_chance", "tree_pre", "program"} or str
        Order of eviction: by last migration (NVIDIA's), by last access, by number of accesses,
        by last migration with a second chance for what was touched, or NVIDIA's order with
        sparse neighbourhoods evicted in advance. "program" leaves nothing to evict, as this program
        does: arrays share arenas, and what exceeds the device goes back before others come. Or
        the name of a function given to `louvain_um.profiling.simulator.eviction`.
    hold : tuple of str
        Arrays or groups that are evicted only when nothing else is left.
    prefetcher : bool
        Whether neighbours of faulting pages come along.
    prefetch : str
        Which do: "density", NVIDIA's rule, or the name of a function given to
        `louvain_um.profiling.simulator.prefetcher`.
    access_counters : int, optional
        Accesses over the bus to a block of 2 MiB after which its regions of 64 KiB that were
        accessed migrate to the device, and with them what density adds; 0 is never. By default as
        in NVIDIA's driver: 256 on coherent machines, unless the host has pages of 4 KiB, and 0 on
        others.
    density_percent : int
        A subtree is filled when more than this share of it is resident or asked for.
    min_faults : int
        Pages of a block that fault, of one processor in a row, before neighbours come along.
    batch_size : int
        Faults fetched at a time.
    batches_per_service : int
        Batches after which the driver returns to wait for the next interrupt.
    prefetch_passes : int
        Walks of an explicit prefetch over its range; 2 moves what does not fit twice.
    thrashing : bool
        Whether pages that host and GPU take from each other are throttled and pinned.
    thrash_events, thrash_throttles : int
        Migrations in a row that make a page a thrashing one; naps before it is pinned.
    thrash_window_seconds, thrash_pin_seconds : float
        Time within which migrations count, which is that of a nap, too; how long a page stays
        pinned.

    Raises
    ------
    OptionError
        A setting is outside its range.
    """

    version: str = "595"
    eviction: Eviction | str = "driver"
    hold: tuple[str, ...] = ()
    prefetcher: bool = True
    prefetch: str = "density"
    access_counters: int | None = None
    density_percent: int = 51
    min_faults: int = 1
    batch_size: int = 256
    batches_per_service: int = 20
    prefetch_passes: int = 2
    thrashing: bool = True
    thrash_events: int = 3
    thrash_throttles: int = 10
    thrash_window_seconds: Annotated[float, Within(0, 1e9)] = 500e-6
    thrash_pin_seconds: Annotated[float, Within(0, 1e9)] = 150e-3

    def __post_init__(self) -> None:
        try:
            check_fields(self, "driver")
        except ValueError as error:
            raise OptionError(remedy=str(error)) from None
        check_choice("version", self.version, VERSIONS)
        check_choice("eviction", self.eviction, (*EVICTIONS, *_EVICTIONS))
        check_choice("prefetch", self.prefetch, ("density", *_PREFETCHERS))
        if self.access_counters is not None and not 0 <= self.access_counters < 2**31:
            raise OptionError("access_counters", self.access_counters, "must be 0 to 2^31 - 1")
        if not 0 <= self.density_percent <= 100:
            raise OptionError("density_percent", self.density_percent, "must be 0 to 100")
        for name in (
            "min_faults", "batch_size", "batches_per_service", "prefetch_passes",
            "thrash_events", "thrash_throttles",
        ):  # fmt: skip
            if getattr(self, name) < 1:
                raise OptionError(name, getattr(self, name), "must be at least 1")
        if self.thrash_events > MOST_MOVES:
            raise OptionError("thrash_events", self.thrash_events, f"must be 1 to {MOST_MOVES}")
        if self.thrash_throttles > MOST_NAPS:
            raise OptionError(
                "thrash_throttles", self.thrash_throttles, f"must be 1 to {MOST_NAPS}"
            )
