"""The PTX that counts one access: what reaches global memory, and what is put before it.

Names begin with an underscore, which compilers do not use, and live in a block of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np

from louvain_um.profiling.sources.tracer.tokenizer import Statement

Use = Literal["read", "write", "atomic"]

SPACES: Final = frozenset({"global", "param", "shared", "local", "const", "reg"})

PLAIN: Final[dict[str, Use]] = {
    "ld": "read",
    "ldu": "read",
    "st": "write",
    "atom": "atomic",
    "red": "atomic",
}
"""Instructions whose first bracketed operand is the address."""

_HARMLESS: Final = """
    abs activemask add addc alloca and applypriority bar barrier bfe bfi bfind bmsk bra brev
    brkpt brx clusterlaunchcontrol clz cnot copysign cos createpolicy cvt cvta discard div dp2a
    dp4a elect ex2 exit fence fma fns getctarank griddepcontrol isspacep istypep ldmatrix lg2
    lop3 mad mad24 madc mapa match max mbarrier membar min mma mov movmatrix mul mul24 nanosleep
    neg not or pmevent popc prefetch prefetchu prmt rcp redux rem ret rsqrt sad selp set
    setmaxnreg setp shf shfl shl shr sin slct sqrt stackrestore stacksave stmatrix sub subc suq
    szext tanh testp trap txq vabsdiff vabsdiff2 vabsdiff4 vadd vadd2 vadd4 vavrg2 vavrg4 vmad
    vmax vmax2 vmax4 vmin vmin2 vmin4 vote vset vset2 vset4 vshl vshr vsub vsub2 vsub4 wgmma xor
"""

HARMLESS: Final = frozenset(_HARMLESS.split())
"""Instructions that read and write nothing in global memory: a prefetch only hints."""


class UnknownInstruction(ValueError):  # noqa: N818
    """An instruction that may reach global memory in a way that is not known here."""


@dataclass(frozen=True, slots=True)
class PtxAccess:
    """One access of global memory."""

    use: Use
    address: str
    generic: bool = False
    nbytes: str = ""


def access_of(instruction: Statement) -> PtxAccess | None:
    """Return the access of global memory that an instruction makes, None for none."""
    opcode = instruction.opcode
    if opcode in HARMLESS:
        return None
    if opcode == "cp":
        return _copy(instruction)
    use = PLAIN.get(opcode)
    if use is None:
        raise UnknownInstruction(spelled(instruction))
    spaces = _spaces(instruction)
    modifiers = instruction.modifiers
    if (spaces and spaces[0] != "global") or (opcode == "st" and "bulk" in modifiers):
        return None
    return PtxAccess(use, _addresses(instruction)[0], generic=not spaces)


def callee(call: Statement) -> str:
    """Return the function that a call names."""
    name = next(words for words in call.operands if words[0] != "(")[0]
    if name.startswith("%"):
        raise UnknownInstruction("call by pointer")
    return name


def spelled(instruction: Statement) -> str:
    """Return an instruction's name with its modifiers."""
    return ".".join((instruction.opcode, *instruction.modifiers))


def _copy(instruction: Statement) -> PtxAccess | None:
    """Return the access of an asynchronous copy: only one of its ends is global memory."""
    modifiers = instruction.modifiers
    if {"commit_group", "wait_group", "wait_all", "mbarrier", "prefetch"} & set(modifiers):
        return None
    spaces = _spaces(instruction)
    if "tensor" in modifiers or len(spaces) != 2:
        raise UnknownInstruction(spelled(instruction))
    if "global" not in spaces:
        return None
    addresses = _addresses(instruction)
    size = "".join(instruction.operands[2]) if "bulk" in modifiers else ""
    if spaces[1] == "global":
        return PtxAccess("read", addresses[1], nbytes=size)
    use: Use = "atomic" if "reduce" in modifiers else "write"
    return PtxAccess(use, addresses[0], nbytes=size)


def _spaces(instruction: Statement) -> list[str]:
    """Return the state spaces that are named, without what follows a double colon."""
    bases = (word.partition("::")[0] for word in instruction.modifiers)
    return [base for base in bases if base in SPACES]


def _addresses(instruction: Statement) -> list[str]:
    """Return the operands in square brackets, without them."""
    found = ["".join(words[1:-1]) for words in instruction.operands if words[0] == "["]
    if not found:
        raise UnknownInstruction(f"{spelled(instruction)} without an address")
    return found


SYMBOL: Final = "louvain_um_trace"
"""Name of the block in every instrumented module."""

RANGES: Final = 256
"""Ranges of addresses in the block; the first stands for all other addresses."""

GRAIN: Final = 4096
"""Bytes of a bulk copy that count as one access."""

RANGE: Final = np.dtype(
    [
        ("start", np.uint64),
        ("nbytes", np.uint64),
        ("row", np.uint32),
        ("shift", np.uint32),
        ("copies", np.uint32),
        ("rows", np.uint32),
    ]
)
"""An array: its addresses, the row of its first page, log2 of its pages' bytes, how many copies
of its rows there are less one, and how many rows each has.

Unused ranges have no bytes, so that a hint that was never set cannot mislead.
"""

COPIES: Final = 32
"""Most copies of an array's rows, a power of two; a block of threads counts in one of them.

Without, all that a device does to a small array would meet in one counter.
"""

STATE: Final = np.dtype(
    [
        ("cells", np.uint64, 3),  # counters of reads, writes, atomics: uint32[rows, bins]
        ("origin", np.uint64),  # global timer at the beginning of bin 0
        ("log", np.uint64),  # records of LOG
        ("logged", np.uint64),  # where the number of samples is counted
        ("capacity", np.uint64),  # records that the log holds
        ("limit", np.uint32),  # a sample is taken if a hash is no larger
        ("module", np.uint32),  # which module this is, in the upper half
        ("bins", np.uint32),
        ("last_bin", np.uint32),
        ("bin_shift", np.uint32),  # log2 of a bin's nanoseconds
        ("count", np.uint32),  # ranges in use, the first included
        ("unused", np.uint64, 6),
        ("ranges", RANGE, RANGES),
    ]
)

LOG: Final = np.dtype(
    [("address", np.uint64), ("time", np.uint64), ("use", np.uint32), ("kernel", np.uint32)]
)
"""A sampled access; `use` indexes `USES`, `kernel` is module and function, a half word each."""

USES: Final = ("read", "write", "atomic")


def offset(name: str) -> int:
    """Return where a field lies in the block, in bytes."""
    fields: Any = STATE.fields
    return int(fields[name][1])


FIRST_RANGE: Final = offset("ranges")
"""Where the ranges begin; vectors are loaded from them, which wants a multiple of 16."""

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
