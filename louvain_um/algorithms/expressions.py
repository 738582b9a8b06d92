"""A small language of integer expressions, evaluated over arrays: ``min(x + w, 2 * y)``."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from functools import lru_cache, reduce
from typing import Any, Final

import numpy as np

from louvain_um.errors import OptionError

MOST_CHARACTERS: Final = 500
"""Of an expression; longer ones belong into a kernel."""

MOST_LEVELS: Final = 100
"""Of operators within operators, each of which takes some frames of Python's stack."""

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
            raise self.divided_by_zero() from None

    def cuda(self, **names: str) -> str:
        """Return the expression in CUDA C++, with the functions of integers.cuh.

        Parameters
        ----------
        **names : str
            What stands for names of the expression there; the names themselves, if left out.

        Examples
        --------
        >>> from louvain_um.algorithms.expressions import Expression
        >>> Expression("x + 1 if x > w else -x", ("x", "w"), "along").cuda(x="xs[v]")
        'choose((xs[v] > w), add(xs[v], 1ll), negative(xs[v]))'
        """
        return written(self.tree, names)

    def divided_by_zero(self) -> OptionError:
        """Return the error of a division by 0."""
        return OptionError(
            self.option,
            self.text,
            "keep divisors from 0, as in x // max(y, 1)",
            problem=f"{self.option} {self.text!r} divides by 0",
        )


@lru_cache(maxsize=256)
def parsed(text: str) -> ast.AST | None:
    """Return the tree of a text, None if it is none."""
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None


def is_deep(tree: ast.AST) -> bool:
    """Return whether operators are nested more than MOST_LEVELS times."""
    level = [tree]
    for _ in range(MOST_LEVELS):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    return bool(level)


def fault(tree: ast.AST, names: tuple[str, ...]) -> str | None:
    """Return what is not of the language, None if all is."""
    if is_deep(tree):
        return f"it is nested more than {MOST_LEVELS} levels deep"
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


WRITTEN: Final[Mapping[type[ast.AST], str]] = {
    ast.Add: "add({}, {})", ast.Sub: "subtract({}, {})", ast.Mult: "times({}, {})",
    ast.FloorDiv: "floor_divide({}, {}, fault)", ast.Mod: "modulo({}, {}, fault)",
    ast.BitAnd: "({} & {})", ast.BitOr: "({} | {})", ast.BitXor: "({} ^ {})",
    ast.USub: "negative({})", ast.Invert: "(~{})",
    ast.Eq: "({} == {})", ast.NotEq: "({} != {})", ast.Lt: "({} < {})", ast.LtE: "({} <= {})",
    ast.Gt: "({} > {})", ast.GtE: "({} >= {})",
}  # fmt: skip
"""Operators in CUDA C++. All operands are evaluated, as by whole arrays: 0 divides there, too."""

TRUTHS: Final = (ast.Compare, ast.BoolOp)
"""Nodes whose value is a truth value there; so is that of ``not``."""


def written(node: Any, names: Mapping[str, str]) -> str:
    """Return a tree without faults in CUDA C++."""
    match node:
        case ast.Constant(value=value):
            return f"{int(value)}ll"  # type: ignore[arg-type]
        case ast.Name(id=name):
            return names.get(name, name)
        case ast.UnaryOp(op=ast.Not()):
            return f"(!{written_truth(node.operand, names)})"
        case ast.UnaryOp():
            return WRITTEN[type(node.op)].format(written_number(node.operand, names))
        case ast.BinOp():
            ends = (written_number(each, names) for each in (node.left, node.right))
            return WRITTEN[type(node.op)].format(*ends)
        case ast.Compare():
            values = [written_number(each, names) for each in (node.left, *node.comparators)]
            pairs = zip(node.ops, values, values[1:], strict=False)
            return _joined("&", [WRITTEN[type(op)].format(a, b) for op, a, b in pairs])
        case ast.BoolOp():
            sign = "&" if isinstance(node.op, ast.And) else "|"
            return _joined(sign, [written_truth(each, names) for each in node.values])
        case ast.IfExp():
            ends = (written_number(each, names) for each in (node.body, node.orelse))
            return f"choose({written_truth(node.test, names)}, {', '.join(ends)})"
    name = {"min": "minimum", "max": "maximum"}[node.func.id]
    values = [written_number(each, names) for each in node.args]
    return reduce(lambda a, b: f"{name}({a}, {b})", values)


def written_number(node: Any, names: Mapping[str, str]) -> str:
    """Return a value as an integer."""
    text = written(node, names)
    return f"i64({text})" if is_truth(node) else text


def written_truth(node: Any, names: Mapping[str, str]) -> str:
    """Return whether a value is not 0."""
    text = written(node, names)
    return text if is_truth(node) else f"({text} != 0)"


def is_truth(node: Any) -> bool:
    """Whether a node's value is true or false, and no integer."""
    negated = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
    return negated or isinstance(node, TRUTHS)


def _joined(sign: str, truths: list[str]) -> str:
    return truths[0] if len(truths) == 1 else f"bool({f' {sign} '.join(truths)})"


def number(node: Any, arrays: Mapping[str, Any]) -> Any:
    """Return a value as integers."""
    return np.asarray(evaluated(node, arrays)).astype(np.int64, copy=False)


def truth(node: Any, arrays: Mapping[str, Any]) -> Any:
    """Return whether a value is not 0."""
    return np.not_equal(evaluated(node, arrays), 0)
