"""Programs as data, the decision where their arrays live, and pieces for kernels of any program."""

from louvain_um.placement.program.blocking import (
    HEADER,
    BlockingCurve,
    Slice,
    launches_for,
    tune_blocking,
)
from louvain_um.placement.program.program import (
    Atomic,
    Gather,
    Phase,
    Program,
    ProgramArray,
    Stream,
)
from louvain_um.placement.program.program_plan import ProgramPlan, plan_program

__all__ = [
    "HEADER",
    "Atomic",
    "BlockingCurve",
    "Gather",
    "Phase",
    "Program",
    "ProgramArray",
    "ProgramPlan",
    "Slice",
    "Stream",
    "launches_for",
    "plan_program",
    "tune_blocking",
]
