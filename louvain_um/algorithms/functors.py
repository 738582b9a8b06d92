"""What operators call: a Python function of scalars, or CUDA C++ for a device."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Self

import numpy as np

from louvain_um.cpu.algorithms.functors import inferred
from louvain_um.errors import OptionError

ITEMS: Final = ("bool", "int32", "uint32", "int64", "float32", "float64")
"""Types of the arrays that functors take: those whose arithmetic is the same on both sides."""


@dataclass(frozen=True, slots=True)
class Cuda:
    """A functor in CUDA C++: the body of a function that answers true or false.

    Parameters
    ----------
    body : str
        Statements, which may ``return`` whether the vertex is kept; by default it is. Parameters
        of the operator are ``long long``. Nothing checks what is written where.
    *names : str
        What further parameters are called: an array is a pointer, a number ``long long`` or
        ``double``.

    Examples
    --------
    >>> from louvain_um.algorithms.operators import Cuda
    >>> relax = Cuda("return atomicMin(d + v, d[u] + w) > d[u] + w;", "d")
    >>> relax.names
    ('d',)
    """

    body: str
    names: tuple[str, ...]

    def __init__(self, body: str, *names: str) -> None:
        object.__setattr__(self, "body", body)
        object.__setattr__(self, "names", names)
        wrong = [name for name in names if not (name.isidentifier() and name.isascii())]
        if wrong or not isinstance(body, str):
            raise OptionError("names", names, "must be names of C++, after a text")


@dataclass(frozen=True, slots=True, kw_only=True)
class Functor:
    """A function as an operator calls it: what is compiled once serves all equal ones.

    Parameters
    ----------
    option : str
        What the caller calls it.
    leading : tuple of str
        The parameters that the operator gives.
    function : function, or Cuda
    kinds : tuple of (str, bool)
        Types of further arguments, and whether they are arrays.
    sums : bool
        Whether numbers that it returns are added up; else it says whether something is kept.
    used : tuple
        What the function uses from around it, by name: numbers, or the identity of others.
    captured : mapping
        The same with the values themselves.
    answers : bool
        Whether it returns values.
    names : mapping
        Numba's types of its names, arrays left out.
    """

    option: str
    leading: tuple[str, ...]
    function: Any
    kinds: tuple[tuple[str, bool], ...]
    sums: bool
    used: tuple[tuple[str, Any], ...]
    captured: Mapping[str, Any] = field(compare=False)
    answers: bool = field(default=True, compare=False)
    names: Mapping[str, set[str]] = field(default_factory=dict, compare=False)

    @classmethod
    def of(
        cls, option: str, leading: tuple[str, ...], function: Any, arguments: tuple[Any, ...], *,
        sums: bool = False,
    ) -> Self:  # fmt: skip
        """Return a functor for arguments as `taken` returns them, or refuse it."""
        function = getattr(function, "py_func", function)
        python = isinstance(function, types.FunctionType)
        if not python and not isinstance(function, Cuda):
            raise OptionError(option, function, "must be a Python function or Cuda(...)")
        captured = captured_by(function, option) if python else {}
        found = cls(
            option=option,
            leading=leading,
            function=function,
            kinds=tuple((each.dtype.name, bool(each.ndim)) for each in arguments),
            sums=sums,
            used=tuple(
                (name, (type(value), value) if isinstance(value, int | float) else id(value))
                for name, value in sorted(captured.items())
            ),
            captured=captured,
        )
        if python:
            code = function.__code__
            simple = not code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
            count: Any = code.co_argcount if simple and not code.co_kwonlyargcount else "other"
        else:
            count = len(leading) + len(function.names)
        given = len(leading) + len(arguments)
        if count != given:
            more = f" and {len(arguments)} more" if arguments else ""
            raise found.refused(f"it takes {count} parameters, not {', '.join(leading)}{more}")
        if not python:
            return found
        known = inferred(found)
        if sums and not known.answers:
            raise found.refused("it returns nothing; return a number to add up")
        return replace(found, answers=known.answers, names=known.names)

    @property
    def source(self) -> Cuda | None:
        """The functor, if it is CUDA C++."""
        return self.function if isinstance(self.function, Cuda) else None

    def refused(self, reason: str) -> OptionError:
        """Return an error for a functor that cannot be compiled."""
        return OptionError(
            self.option, self.function, "see what {option} may be in the reference of operators",
            problem=f"{self.option} cannot be compiled: {reason}",
        )  # fmt: skip

    def failed(self, what: str) -> OptionError:
        """Return an error for a functor that went wrong, perhaps after it has changed arrays."""
        return OptionError(
            self.option, self.function, "mend {option}, and fill the arrays that it changes again",
            problem=f"{self.option} {what}",
        )  # fmt: skip


def captured_by(function: Callable[..., Any], option: str) -> dict[str, Any]:
    """Return the values that a function uses from around it; changes of arrays would be missed."""
    around = inspect.getclosurevars(function)
    found = {**around.globals, **around.nonlocals}
    for name, value in found.items():
        if isinstance(value, np.generic):
            found[name] = value.item()
        elif hasattr(value, "__array_interface__") or hasattr(value, "__cuda_array_interface__"):
            raise OptionError(
                option, function, f"pass {name} as an argument",
                problem=f"{option} uses the array {name} from around it",
            )  # fmt: skip
    return found


def taken(arguments: tuple[Any, ...], xp: Any) -> tuple[Any, ...]:
    """Return arguments as functors take them: arrays of one module, int64, float64 and bool."""
    return tuple(_taken(number, given, xp) for number, given in enumerate(arguments, 1))


def _taken(number: int, given: Any, xp: Any) -> Any:
    if isinstance(given, xp.ndarray) and not isinstance(given, np.ma.MaskedArray):
        if given.dtype.name not in ITEMS or given.ndim != 1 or not given.dtype.isnative:
            raise OptionError(
                "arguments", given.dtype, f"use one dimension of {', '.join(ITEMS)}",
                problem=f"argument {number} is an array of {given.dtype}, shape {given.shape}",
            )  # fmt: skip
        return given
    value = given.item() if isinstance(given, np.generic) else given
    for kind, made in ((bool, np.bool_), (int, np.int64), (float, np.float64)):
        if type(value) is kind and (kind is not int or -(2**63) <= value < 2**63):
            return made(value)
    raise OptionError(
        "arguments", given, f"pass numbers of 64 bits, and arrays of {xp.__name__}",
        problem=f"argument {number} is {type(given).__name__}",
    )  # fmt: skip
