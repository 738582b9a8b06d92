"""What follows a level, launched while its vertices move: before it is known whether it counts."""

from __future__ import annotations

from collections.abc import Callable

from louvain_um.events import ignore
from louvain_um.gpu.aggregate.aggregate import Begun, begin
from louvain_um.gpu.aggregate.reaggregate import FromInput
from louvain_um.gpu.followed_plan import FollowedPlan
from louvain_um.gpu.level import GpuLevel
from louvain_um.gpu.memory.level_room import LevelRoom


class EarlyWork:
    """Launches refinement and aggregation of a level early, where that costs little if in vain."""

    def __init__(self, followed: FollowedPlan, room: LevelRoom, from_input: FromInput) -> None:
        self.followed, self.room, self.from_input = followed, room, from_input
        self.run = followed.prepared.run
        self.begun: Begun | None = None

    def launch(self, level: GpuLevel, refine: Callable[[GpuLevel], None]) -> None:
        """Launch what follows a level, if it may be; `refine` launches its refinement."""
        run = self.run
        if run.observer is not ignore or self.followed.prepared.blocks or run.problem.extended:
            return
        # Levels of whole communities have no sums from refinement.
        if not level.whole and self.allowed(level) and not self.from_input.wanted(level):
            if run.leiden:
                refine(level)
            run.memory.free("totals")
            self.begun = begin(run.memory, level, run.limits)

    def allowed(self, level: GpuLevel) -> bool:
        """Return whether what follows a level may be in vain, and finds room."""
        limits, leiden, most = self.run.limits, self.run.leiden, max(level.vertices, level.arcs)
        if most <= limits.small:
            holds = self.room.holds_early(level, leiden=leiden)
            return (level.number > 0 or self.followed.stays_on_device) and holds
        # Few arcs of many vertices are aggregated by one launch, whose arrays are long then.
        if level.arcs <= limits.small or not self.followed.keeps_layout:
            return False
        # What moves of the input counts, however little. Numbering alone is soon done.
        certain = level.number == level.cycle == 0
        few = level.number > 0 and most <= limits.early
        if leiden and not certain and not few:
            return False
        return self.room.holds_early(level, leiden=leiden, at_once=False)

    def take(self) -> Begun | None:
        """Return what was launched for the level that goes on, if anything."""
        begun, self.begun = self.begun, None
        return begun

    def discard(self) -> None:
        """Free what was launched in vain."""
        if begun := self.take():
            begun.discard()
