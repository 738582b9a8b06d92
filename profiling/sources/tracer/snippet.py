"""The PTX that counts one access, put together from its parts.

Names begin with an underscore, which compilers do not use, and live in a block of their own.
"""

from __future__ import annotations

from typing import Final

from louvain_um.profiling.sources.tracer.instructions import PtxAccess
from louvain_um.profiling.sources.tracer.state import (
    FIRST_RANGE,
    GRAIN,
    LOG,
    RANGE,
    SYMBOL,
    USES,
    offset,
)

HINTS: Final = "$_hints"
"""A byte of shared memory for each place that counts: the range it met last.

Its value is checked before use, so it needs no initialisation and no synchronisation.
"""


UNIT: Final = 16
"""Bytes to which shared memory is aligned: dynamic shared memory follows what is declared."""


def count(access: PtxAccess, predicate: str, site: int, function: int, log: bool) -> str:
    """Return the block that counts an access, to stand before its instruction."""
    use = USES.index(access.use)
    parts = [REGISTERS, _guard(predicate), _address(access)]
    body = [_find(site), _cell(), _add(use), _sample(use, function) if log else ""]
    if access.nbytes:
        parts += [_first_grain(access.nbytes), *body, NEXT_GRAIN]
    else:
        parts += body
    return "{" + "".join(parts) + "$_out:\n}\n\t"


REGISTERS: Final = """
.reg .pred %_p, %_q;
.reg .b32 %_range, %_low, %_high, %_middle, %_row, %_rows, %_copies, %_shift, %_bins, %_bin, %_cell;
.reg .b32 %_lanes, %_peers, %_n, %_hash, %_limit;
.reg .b64 %_a, %_start, %_size, %_d, %_time, %_t, %_at, %_end;
"""


def declaration(nbytes: int) -> str:
    """Return what a module declares: the block of constants."""
    return f"\n.const .align 16 .b8 {SYMBOL}[{nbytes}];\n"


def hints(sites: int) -> str:
    """Return what a function declares: whole units, so that shared memory behind stays aligned."""
    return f"\n\t.shared .align {UNIT} .b8 {HINTS}[{-(-sites // UNIT) * UNIT}];"


def _constant(name: str, index: int = 0) -> str:
    return f"[{SYMBOL}+{offset(name) + index}]"


def _guard(predicate: str) -> str:
    """Leave if the instruction will not be executed."""
    if not predicate:
        return ""
    unless = predicate[1:] if predicate.startswith("!") else f"!{predicate}"
    return f"@{unless} bra $_out;\n"


def _address(access: PtxAccess) -> str:
    """Put the address into %_a, and leave if it is not of global memory."""
    base, plus, distance = access.address.partition("+")
    if plus and base.startswith("%"):
        text = f"add.s64 %_a, {base}, {distance};\n"
    else:
        text = f"mov.u64 %_a, {access.address};\n"
    if access.generic:
        text += "isspacep.global %_p, %_a;\n@!%_p bra $_out;\n"
    return text


def _find(site: int) -> str:
    """Find the range that the address lies in."""
    to_range = f"mov.u32 %_range, {SYMBOL};\nmad.lo.u32 %_range, {{}}, {RANGE.itemsize}, %_range;\n"
    inside = f"""
ld.const.v2.u64 {{%_start, %_size}}, [%_range+{FIRST_RANGE}];
sub.u64 %_d, %_a, %_start;
setp.lt.u64 %_p, %_d, %_size;
"""
    return f"""
ld.shared.u8 %_low, [{HINTS}+{site}];
{to_range.format("%_low")} {inside}
@%_p bra $_found;
mov.u32 %_low, 0;
ld.const.u32 %_high, {_constant("count")};
$_search:
sub.u32 %_middle, %_high, %_low;
setp.le.u32 %_p, %_middle, 1;
@%_p bra $_searched;
shr.u32 %_middle, %_middle, 1;
add.u32 %_middle, %_middle, %_low;
{to_range.format("%_middle")}
ld.const.u64 %_start, [%_range+{FIRST_RANGE}];
setp.le.u64 %_p, %_start, %_a;
selp.b32 %_low, %_middle, %_low, %_p;
selp.b32 %_high, %_high, %_middle, %_p;
bra $_search;
$_searched:
{to_range.format("%_low")} {inside}
@%_p st.shared.u8 [{HINTS}+{site}], %_low;
@%_p bra $_found;
mov.u32 %_range, {SYMBOL};
mov.u64 %_d, 0;
$_found:
"""


def _cell() -> str:
    """Find the counter: row of the page in the block's copy, column of the time."""
    return f"""
ld.const.v4.u32 {{%_row, %_shift, %_copies, %_rows}}, [%_range+{FIRST_RANGE + 16}];
shr.u64 %_d, %_d, %_shift;
cvt.u32.u64 %_n, %_d;
add.u32 %_row, %_row, %_n;
mov.u32 %_n, %ctaid.x;
and.b32 %_n, %_n, %_copies;
mad.lo.u32 %_row, %_n, %_rows, %_row;
mov.u64 %_time, %globaltimer;
ld.const.u64 %_t, {_constant("origin")};
sub.u64 %_t, %_time, %_t;
ld.const.u32 %_shift, {_constant("bin_shift")};
shr.u64 %_t, %_t, %_shift;
ld.const.v2.u32 {{%_bins, %_bin}}, {_constant("bins")};
cvt.u64.u32 %_d, %_bin;
min.u64 %_t, %_t, %_d;
cvt.u32.u64 %_bin, %_t;
mad.lo.u32 %_cell, %_row, %_bins, %_bin;
"""


def _add(use: int) -> str:
    """Let the first of the lanes that hit the same counter add their number to it."""
    return f"""
activemask.b32 %_lanes;
match.any.sync.b32 %_peers, %_cell, %_lanes;
mov.u32 %_n, %lanemask_lt;
and.b32 %_n, %_n, %_peers;
setp.eq.u32 %_p, %_n, 0;
popc.b32 %_n, %_peers;
ld.const.u64 %_at, {_constant("cells", 8 * use)};
mad.wide.u32 %_at, %_cell, 4, %_at;
@%_p red.global.add.u32 [%_at], %_n;
"""


def _sample(use: int, function: int) -> str:
    """Write the access down if a hash of clock and address comes out small."""
    return f"""
mov.u32 %_hash, %clock;
cvt.u32.u64 %_n, %_a;
xor.b32 %_hash, %_hash, %_n;
mul.lo.u32 %_hash, %_hash, 0x9E3779B1;
shr.u32 %_n, %_hash, 15;
xor.b32 %_hash, %_hash, %_n;
mul.lo.u32 %_hash, %_hash, 0x85EBCA77;
ld.const.u32 %_limit, {_constant("limit")};
setp.gt.u32 %_p, %_hash, %_limit;
@%_p bra $_sampled;
ld.const.u64 %_at, {_constant("logged")};
atom.global.add.u64 %_t, [%_at], 1;
ld.const.u64 %_d, {_constant("capacity")};
setp.ge.u64 %_p, %_t, %_d;
@%_p bra $_sampled;
ld.const.u64 %_at, {_constant("log")};
mad.lo.u64 %_at, %_t, {LOG.itemsize}, %_at;
st.global.u64 [%_at], %_a;
st.global.u64 [%_at+8], %_time;
ld.const.u32 %_n, {_constant("module")};
or.b32 %_n, %_n, {function};
mov.u32 %_hash, {use};
st.global.v2.u32 [%_at+16], {{%_hash, %_n}};
$_sampled:
"""


def _first_grain(nbytes: str) -> str:
    """Begin to count a bulk copy, once for each 4 KiB that it touches."""
    return f"cvt.u64.u32 %_end, {nbytes};\nadd.u64 %_end, %_end, %_a;\n$_again:\n"


NEXT_GRAIN: Final = f"""
and.b64 %_a, %_a, {-GRAIN};
add.u64 %_a, %_a, {GRAIN};
setp.lt.u64 %_q, %_a, %_end;
@%_q bra $_again;
"""
