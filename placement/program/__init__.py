"""Programs as data, and the decision where their arrays live."""

from louvain_um.placement.program.accesses import Atomic, Gather, Stream
from louvain_um.placement.program.plan import ProgramPlan, plan_program
from louvain_um.placement.program.program import Phase, Program, ProgramArray

__all__ = [
    "Atomic",
    "Gather",
    "Phase",
    "Program",
    "ProgramArray",
    "ProgramPlan",
    "Stream",
    "plan_program",
]
