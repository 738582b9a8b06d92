"""Python functions of scalars to CUDA C++: what `algorithms.operators` says that there is.

Numba decides the types of names; those of expressions follow in C++, from functor.cuh.
"""

from __future__ import annotations

import ast
import builtins
import linecache
import math
from collections.abc import Iterator, Mapping
from functools import reduce
from types import CodeType, ModuleType
from typing import Any, Final

BINARY: Final[Mapping[type[ast.AST], str]] = {
    ast.Add: "add", ast.Sub: "subtract", ast.Mult: "times", ast.Div: "divide",
    ast.FloorDiv: "floor_divide", ast.Mod: "modulo", ast.BitAnd: "bit_and", ast.BitOr: "bit_or",
    ast.BitXor: "bit_xor", ast.Eq: "equal", ast.NotEq: "differs", ast.Lt: "less",
    ast.LtE: "at_most", ast.Gt: "more", ast.GtE: "at_least",
}  # fmt: skip
JOINING: Final = {ast.And: " && ", ast.Or: " || "}
EXTREMES: Final[Mapping[Any, str]] = {min: "minimum", max: "maximum"}
CALLS: Final[Mapping[Any, str]] = {
    abs: "absolute({})", int: "whole({})", float: "double({})", bool: "bool({})",
    math.sqrt: "sqrt(real({}))", math.exp: "exp(real({}))", math.log: "log(real({}))",
}  # fmt: skip
ATOMICS: Final = {"atomic_add": "Sum", "atomic_min": "Least", "atomic_max": "Most"}
HOME: Final = "louvain_um.cpu.algorithms.functors"
"""Where atomics are defined for the CPU."""


class UntranslatableError(Exception):
    """What has no counterpart on a device: a reason of one line."""


class Translation:
    """The statements of a function in C++; `captured` are values that it uses from around it."""

    # `names` are the C++ types of all names; those of arrays end in ``>``. With `sums`, what the
    # function returns is added up; else it says whether something is kept.

    def __init__(
        self, code: CodeType, captured: Mapping[str, Any], names: Mapping[str, str], answers: bool,
        *, sums: bool = False,
    ) -> None:  # fmt: skip
        self.returned = self.value if sums else self.truth
        self.captured, self.names, self.answers, self.loops = captured, names, answers, 0
        self.places = {name: f"v{k}" for k, name in enumerate(names)}
        node = definition(code)
        parameters = code.co_varnames[: code.co_argcount]
        declared = [f"{names[n]} {self.places[n]} = 0;" for n in names if n not in parameters]
        if isinstance(node, ast.Lambda):
            lines = [
                f"return {self.returned(node.body)};" if answers else f"{self.value(node.body)};"
            ]
        else:
            lines = list(self.block(node.body))
        self.text = "\n".join([*declared, *lines, f"return {str(not answers).lower()};"])

    def block(self, statements: list[ast.stmt]) -> Iterator[str]:
        """Return statements in C++."""
        for each in statements:
            yield from self.statement(each)

    def statement(self, node: ast.stmt) -> Iterator[str]:
        """Return a statement in C++."""
        match node:
            case ast.Pass() | ast.Expr(value=ast.Constant()):
                pass
            case ast.Break() | ast.Continue():
                yield f"{type(node).__name__.lower()};"
            case ast.Expr(value=ast.Call() as call):
                yield f"{self.value(call)};"
            case ast.Return(value=None | ast.Constant(value=None)):
                yield f"return {str(not self.answers).lower()};"
            case ast.Return(value=ast.expr() as value):
                yield f"return {self.returned(value)};"
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
                yield "{"
                yield from (f"const auto t{k} = {self.value(v)};" for k, v in enumerate(values))
                yield from (self.assigned(each, f"t{k}") for k, each in enumerate(targets))
                yield "}"
            case ast.Assign(targets=[target]):
                yield self.assigned(target, self.value(node.value))
            case ast.AugAssign(target=target, op=op):
                yield self.assigned(target, self.joined(op, target, node.value))
            case ast.If():
                yield f"if ({self.truth(node.test)}) {{"
                yield from self.block(node.body)
                yield "} else {"
                yield from self.block(node.orelse)
                yield "}"
            case ast.While(orelse=[]):
                yield f"while (!fault && {self.truth(node.test)}) {{"
                yield from self.block(node.body)
                yield "}"
            case ast.For(orelse=[], target=target, iter=call):
                if not (
                    isinstance(call, ast.Call)
                    and self.outside(call.func) is range
                    and len(call.args) in (1, 2)
                ):
                    raise unknown(call, "loop over anything but range(end) or range(begin, end)")
                begin, end = ["0ll", *(self.value(each) for each in call.args)][-2:]
                self.loops += 1
                i, last = f"i{self.loops}", f"e{self.loops}"
                yield f"for (i64 {i} = {begin}, {last} = {end}; !fault && {i} < {last}; ++{i}) {{"
                yield self.assigned(target, i)
                yield from self.block(node.body)
                yield "}"
            case _:
                raise unknown(node, f"statement {type(node).__name__.lower()}")

    def assigned(self, target: ast.expr, value: str) -> str:
        """Return an assignment to a name or to an entry."""
        match target:
            case ast.Name(id=name) if not self.names.get(name, ">").endswith(">"):
                return f"{self.places[name]} = {value};"
            case ast.Subscript(value=ast.Name(id=name)) if name in self.names:
                return f"{self.places[name]}.set({self.value(target.slice)}, {value}, fault);"
        raise unknown(target, f"assignment to {ast.unparse(target)}")

    def truth(self, node: ast.expr) -> str:
        """Return whether an expression is not 0."""
        match node:
            case ast.BoolOp(op=op, values=values):
                return f"({JOINING[type(op)].join(map(self.truth, values))})"
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return f"!{self.truth(operand)}"
        return f"bool({self.value(node)})"

    def value(self, node: ast.expr) -> str:
        """Return an expression in C++."""
        match node:
            case ast.Constant(value=number):
                return constant(number, node)
            case ast.Name(id=name) if name in self.names:
                return self.places[name]
            case ast.Name() | ast.Attribute():
                return constant(self.outside(node), node)
            case ast.Subscript(value=ast.Name(id=name)) if name in self.names:
                return f"{self.places[name]}.get({self.value(node.slice)}, fault)"
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return f"negative({self.value(operand)})"
            case ast.UnaryOp(op=ast.Not()):
                return self.truth(node)
            case ast.BinOp(left=left, op=op, right=right):
                return self.joined(op, left, right)
            case ast.BoolOp(op=op, values=values):
                truths = [f"truth_alone({self.value(each)})" for each in values]
                return f"({JOINING[type(op)].join(truths)})"
            case ast.Compare(left=left, ops=ops, comparators=right):
                if any(isinstance(n, ast.Call) for each in right[:-1] for n in ast.walk(each)):
                    raise unknown(node, "call amid a chain of comparisons")
                pairs = zip(ops, (left, *right), right, strict=False)
                return f"({' && '.join(self.joined(*pair) for pair in pairs)})"
            case ast.IfExp():
                body, other = self.value(node.body), self.value(node.orelse)
                return (f"choose({self.truth(node.test)}, [&] {{ return {body}; }}, "
                        f"[&] {{ return {other}; }})")  # fmt: skip
            case ast.Call(keywords=[], func=called, args=arguments):
                return self.call(node, self.outside(called), list(map(self.value, arguments)))
        raise unknown(node, ast.unparse(node))

    def joined(self, op: ast.AST, left: ast.expr, right: ast.expr) -> str:
        """Return an operation on two numbers."""
        if type(op) not in BINARY:
            raise unknown(left, f"operator {type(op).__name__.lower()}")
        return f"{BINARY[type(op)]}({self.value(left)}, {self.value(right)}, fault)"

    def call(self, node: ast.Call, function: Any, values: list[str]) -> str:
        """Return a call."""
        name, home = getattr(function, "__name__", ""), getattr(function, "__module__", "")
        if home == HOME and name in ATOMICS and len(values) == 3:
            return f"change<{ATOMICS[name]}>({', '.join(values)}, fault)"
        if function is len and len(values) == 1:
            return f"{values[0]}.length"
        known = isinstance(function, type | type(len))  # others need not be hashable
        if known and function in CALLS and len(values) == 1:
            return CALLS[function].format(*values)
        if known and function in EXTREMES and len(values) > 1:
            return reduce(lambda a, b: f"{EXTREMES[function]}({a}, {b}, fault)", values)
        raise unknown(node, f"call of {ast.unparse(node)}")

    def outside(self, node: ast.expr) -> Any:
        """Return what a name, or a name of a module, stands for outside the function."""
        match node:
            case ast.Name(id=name):
                if name in self.captured or hasattr(builtins, name):
                    return self.captured.get(name, getattr(builtins, name, None))
            case ast.Attribute(value=ast.Name(id=name)):
                if isinstance(self.captured.get(name), ModuleType):
                    return getattr(self.captured[name], node.attr, None)
        raise unknown(node, ast.unparse(node))


def constant(number: Any, node: ast.AST) -> str:
    """Return a number in C++."""
    if type(number) is bool:
        return str(number).lower()
    if type(number) is int and abs(number) < 2**63:
        return f"{number}ll"
    if type(number) is float and not math.isnan(number):
        return number.hex() if math.isfinite(number) else f"{'-' * (number < 0)}infinity()"
    raise unknown(node, f"constant {ast.unparse(node)}")


def unknown(node: ast.AST, what: str) -> UntranslatableError:
    """Return an error that names a construct and its line."""
    return UntranslatableError(f"line {getattr(node, 'lineno', '?')}: no {what} on a device")


def definition(code: CodeType) -> ast.FunctionDef | ast.Lambda:
    """Return the source of a function, which must be as it was when it was loaded."""
    text = "".join(linecache.getlines(code.co_filename))
    try:
        tree = ast.parse(text)
        known = code in codes(compile(text, code.co_filename, "exec", dont_inherit=True))
    except SyntaxError:
        known = False
    if not known:
        raise UntranslatableError("its source is not found, or has changed; keep it in a file")
    found = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.Lambda)
        and code.co_firstlineno
        == min(each.lineno for each in (node, *getattr(node, "decorator_list", ())))
        and [each.arg for each in node.args.args] == list(code.co_varnames[: code.co_argcount])
    ]
    if len(found) != 1:
        raise UntranslatableError("several functions begin in its line; define it with def")
    return found[0]


def codes(code: CodeType) -> Iterator[CodeType]:
    """Return the code of a module and of all functions in it."""
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from codes(each)
