"""Programs as data, the decision where their arrays live, and pieces for kernels of any program."""

from louvain_um.placement.program.accesses import Atomic, Gather, Stream
from louvain_um.placement.program.blocking import (
    HEADER,
    BlockingCurve,
    Slice,
    blocked_grid,
    launches_for,
    tune_blocking,
)
from louvain_um.placement.program.device_backend import first_touch
from louvain_um.placement.program.plan import ProgramPlan, plan_program
from louvain_um.placement.program.program import Phase, Program, ProgramArray

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
    "blocked_grid",
    "first_touch",
    "launches_for",
    "plan_program",
    "tune_blocking",
]
