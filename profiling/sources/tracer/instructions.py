"""Which PTX instructions reach global memory, how, and where the address stands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

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
