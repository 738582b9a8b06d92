"""A small language of integer expressions, evaluated over arrays: ``min(x + w, 2 * y)``."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from functools import cache, reduce
from typing import Any, Final

import numpy as np

from louvain_um.errors import OptionError

MOST_CHARACTERS: Final = 500
"""Of an expression; longer ones belong into a kernel."""

BINARY: Final[Mapping[type[ast.AST], Callable[..., Any]]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.FloorDiv: np.floor_divide,
    ast.Mod: np.mod,
    ast.BitAnd: np.bitwise_and,
    ast.BitOr: np.bitwise_or,
    ast.BitXor: np.bitwise_xor,
}
UNARY: Final[Mapping[type[ast.AST], Callable[..., Any]]] = {
    ast.USub: np.negative,
    ast.Invert: np.invert,
    ast.Not: np.logical_not,
}
COMPARED: Final[Mapping[type[ast.AST], Callable[..., Any]]] = {
    ast.Eq: np.equal,
    ast.NotEq: np.not_equal,
    ast.Lt: np.less,
    ast.LtE: np.less_equal,
    ast.Gt: np.greater,
    ast.GtE: np.greater_equal,
}
CALLED: Final[Mapping[str, Callable[..., Any]]] = {"min": np.minimum, "max": np.maximum}
ALLOWED: Final = "integers, names, + - * // % & | ^ ~, comparisons, and, or, not, if, min and max"


class Expression:
    """An expression, parsed once and evaluated by whole arrays of int64.

    Arithmetic is that of 64-bit integers: what exceeds them wraps around.

    Parameters
    ----------
    text : str
    names : collection of str
        What may occur.
    option : str
        Name of the option in errors.

    Raises
    ------
    OptionError
        No expression of the language, or an unknown name.

    Examples
    --------
    >>> import numpy as np
    >>> from louvain_um.algorithms.expressions import Expression
    >>> Expression("x + 1 if x > 2 else -x", ("x",), "along").value(x=np.array([1, 5])).tolist()
    [-1, 6]
    """

    def __init__(self, text: str, names: tuple[str, ...], option: str) -> None:
        self.text, self.option = text, option
        if not isinstance(text, str) or not 0 < len(text) <= MOST_CHARACTERS:
            raise OptionError(option, text, f"must be an expression of {ALLOWED}")
        self.tree = parsed(text)
        unknown = None if self.tree is None else fault(self.tree, names)
        if self.tree is None or unknown is not None:
            raise OptionError(
                option,
                text,
                f"use {ALLOWED}; names here are {', '.join(names)}",
                problem=f"{option} {text!r} is no expression" + (f": {unknown}" if unknown else ""),
            )

    def value(self, **arrays: Any) -> Any:
        """Return the value for each entry of the arrays.

        Raises
        ------
        OptionError
            It divides by 0.
        """
        assert self.tree is not None
        try:
            with np.errstate(divide="raise", over="ignore"):
                return evaluated(self.tree, arrays)
        except FloatingPointError:
            raise OptionError(
                self.option,
                self.text,
                "keep divisors from 0, as in x // max(y, 1)",
                problem=f"{self.option} {self.text!r} divides by 0",
            ) from None


@cache
def parsed(text: str) -> ast.AST | None:
    """Return the tree of a text, None if it is none."""
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None


def fault(tree: ast.AST, names: tuple[str, ...]) -> str | None:
    """Return what is not of the language, None if all is."""
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=int(value)):  # truth values are integers, too
                good = -(2**63) <= value < 2**63
            case ast.Name(id=name):
                good = name in CALLED if id(node) in called else name in names
            case ast.Call(func=ast.Name(), args=args, keywords=keywords):
                good = len(args) >= 2 and not keywords
            case ast.BinOp(op=op):
                good = type(op) in BINARY
            case ast.UnaryOp(op=op):
                good = type(op) in UNARY
            case ast.Compare(ops=ops):
                good = all(type(op) in COMPARED for op in ops)
            case ast.BoolOp() | ast.IfExp() | ast.Load():
                good = True
            case _:
                good = isinstance(node, (*BINARY, *UNARY, *COMPARED, ast.And, ast.Or))
        if not good:
            return ast.unparse(node) if isinstance(node, ast.expr) else type(node).__name__
    return None


def evaluated(node: Any, arrays: Mapping[str, Any]) -> Any:
    """Return the value of a tree without faults."""
    match node:
        case ast.Constant(value=value):
            return np.int64(int(value))  # type: ignore[arg-type]  # `fault` lets integers pass only
        case ast.Name(id=name):
            return arrays[name]
        case ast.UnaryOp(op=ast.Not()):
            return np.equal(evaluated(node.operand, arrays), 0)
        case ast.UnaryOp():
            return UNARY[type(node.op)](number(node.operand, arrays))
        case ast.BinOp():
            return BINARY[type(node.op)](number(node.left, arrays), number(node.right, arrays))
        case ast.Compare():
            values = [number(each, arrays) for each in (node.left, *node.comparators)]
            pairs = zip(node.ops, values, values[1:], strict=False)
            return reduce(np.logical_and, [COMPARED[type(op)](a, b) for op, a, b in pairs])
        case ast.BoolOp():
            joined = np.logical_and if isinstance(node.op, ast.And) else np.logical_or
            return reduce(joined, [truth(each, arrays) for each in node.values])
        case ast.IfExp():
            chosen = truth(node.test, arrays)
            return np.where(chosen, number(node.body, arrays), number(node.orelse, arrays))
    return reduce(CALLED[node.func.id], [number(each, arrays) for each in node.args])


def number(node: Any, arrays: Mapping[str, Any]) -> Any:
    """Return a value as integers."""
    return np.asarray(evaluated(node, arrays)).astype(np.int64, copy=False)


def truth(node: Any, arrays: Mapping[str, Any]) -> Any:
    """Return whether a value is not 0."""
    return np.not_equal(evaluated(node, arrays), 0)
