"""64-bit operations of one or two machine instructions, for compiled code."""

from __future__ import annotations

import sys
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped,unused-ignore]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

UINT64, WIDE = ir.IntType(64), ir.IntType(128)


@intrinsic
def _leading_zeros(typingctx: Any, value: Any) -> Any:
    """Count the zero bits above the highest set bit of a positive uint64."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.ctlz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), codegen


@intrinsic
def _trailing_zeros(typingctx: Any, value: Any) -> Any:
    """Count the zero bits below the lowest set bit of a uint64; 64 for 0."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 0))

    return types.uint64(types.uint64), codegen


@intrinsic
def _ones(typingctx: Any, value: Any) -> Any:
    """Count the set bits of a uint64."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), codegen


@intrinsic
def _upper_product(typingctx: Any, a: Any, b: Any) -> Any:
    """Multiply two uint64; return the upper half of the product."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        product = builder.mul(*(builder.zext(arg, WIDE) for arg in args))
        return builder.trunc(builder.lshr(product, ir.Constant(WIDE, 64)), UINT64)

    return types.uint64(types.uint64, types.uint64), codegen


@intrinsic
def _word_at(typingctx: Any, data: Any, place: Any) -> Any:
    """Return the eight bytes of a uint8 array from `place` on as a little-endian uint64."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        view = context.make_array(sig.args[0])(context, builder, args[0])
        first = cgutils.get_item_pointer(  # type: ignore[no-untyped-call,unused-ignore]
            context, builder, sig.args[0], view, [args[1]], wraparound=False
        )
        word = builder.load(builder.bitcast(first, UINT64.as_pointer()), align=1)
        return word if sys.byteorder == "little" else builder.bswap(word)

    return types.uint64(data, types.intp), codegen


leading_zeros: Any = _leading_zeros
trailing_zeros: Any = _trailing_zeros
ones: Any = _ones
upper_product: Any = _upper_product
word_at: Any = _word_at
"""Called in compiled code without `typingctx`, which Numba adds."""
