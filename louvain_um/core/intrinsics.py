"""Intrinsics that Numba lacks: atomic operations, prefetching, yielding the core."""

from __future__ import annotations

import os
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped,unused-ignore]
from numba import types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.extending import intrinsic

YIELD = "SwitchToThread" if os.name == "nt" else "sched_yield"


def _pointer(context: Any, builder: Any, kind: Any, array: Any, index: Any) -> Any:
    view = context.make_array(kind)(context, builder, array)
    return cgutils.get_item_pointer(  # type: ignore[no-untyped-call,unused-ignore]
        context, builder, kind, view, [index], wraparound=False
    )


def _changed(array: Any, value: Any, whole: str, unsigned: str, real: str) -> Any:
    """Return signature and code of an operation on ``array[index]``, by the array's type."""
    item: Any = array.dtype
    kind: type = type(item)
    if not issubclass(kind, (types.Integer, types.Float)):
        raise TypingError(f"the array holds {item}, and no numbers")
    if not array.mutable:
        raise TypingError("the array is read-only")
    if isinstance(item, types.Integer) and isinstance(value, types.Float):
        raise TypingError("the value is a float, but the array holds integers")
    operation = real if isinstance(item, types.Float) else whole if item.signed else unsigned

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        pointer = _pointer(context, builder, sig.args[0], *args[:2])
        return builder.atomic_rmw(operation, pointer, args[2], "acq_rel")

    return item(array, types.intp, item), codegen


@intrinsic
def _atomic_add(typingctx: Any, array: Any, index: Any, value: Any) -> Any:
    """Add `value` to ``array[index]`` atomically; return the old value."""
    return _changed(array, value, "add", "add", "fadd")


@intrinsic
def _atomic_min(typingctx: Any, array: Any, index: Any, value: Any) -> Any:
    """Lower ``array[index]`` to `value`, if that is less, atomically; return the old value."""
    return _changed(array, value, "min", "umin", "fmin")


@intrinsic
def _atomic_max(typingctx: Any, array: Any, index: Any, value: Any) -> Any:
    """Raise ``array[index]`` to `value`, if that is more, atomically; return the old value."""
    return _changed(array, value, "max", "umax", "fmax")


@intrinsic
def _compare_and_swap(typingctx: Any, array: Any, index: Any, expected: Any, value: Any) -> Any:
    """Replace ``array[index]`` if it is `expected`, atomically; return the old value."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        pointer = _pointer(context, builder, sig.args[0], *args[:2])
        outcome = builder.cmpxchg(pointer, args[2], args[3], "acq_rel", "acquire")
        return builder.extract_value(outcome, 0)

    return array.dtype(array, types.intp, array.dtype, array.dtype), codegen


@intrinsic
def _atomic_load(typingctx: Any, array: Any, index: Any) -> Any:
    """Return ``array[index]``; later operations are not moved before it (acquire)."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        pointer = _pointer(context, builder, sig.args[0], *args)
        return builder.load_atomic(pointer, "acquire", align=array.dtype.bitwidth // 8)

    return array.dtype(array, types.intp), codegen


@intrinsic
def _prefetch(typingctx: Any, array: Any, index: Any) -> Any:
    """Prefetch ``array[index]``; an index outside the array is harmless."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        shape = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        fetch = builder.module.declare_intrinsic("llvm.prefetch", [byte], shape)
        pointer = builder.bitcast(_pointer(context, builder, sig.args[0], *args), byte)
        read, keep, data = word(0), word(3), word(1)
        builder.call(fetch, [pointer, read, keep, data])
        return context.get_dummy_value()

    return types.void(array, types.intp), codegen


@intrinsic
def _give_way(typingctx: Any) -> Any:
    """Yield the core to another thread, if one is waiting."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        shape = ir.FunctionType(ir.IntType(32), [])
        function = cgutils.get_or_insert_function(  # type: ignore[no-untyped-call,unused-ignore]
            builder.module, shape, YIELD
        )
        builder.call(function, [])
        return context.get_dummy_value()

    return types.void(), codegen


atomic_add: Any = _atomic_add
atomic_load: Any = _atomic_load
atomic_max: Any = _atomic_max
atomic_min: Any = _atomic_min
compare_and_swap: Any = _compare_and_swap
prefetch: Any = _prefetch
give_way: Any = _give_way
