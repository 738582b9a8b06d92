"""The events of a run so far, in a bounded number of rows."""

from __future__ import annotations

from louvain_um.profiling.record.spans import Timeline
from louvain_um.profiling.session.attribution import event_arrays, with_phases
from louvain_um.profiling.session.events import EventTable, concatenate
from louvain_um.profiling.session.merge_events import merge


class EventStore:
    """Tables as they come from sources; similar rows are merged where there are too many."""

    def __init__(self, most_events: int) -> None:
        self.most_events = most_events
        self.notes: list[str] = []
        self._tables: list[EventTable] = []

    def add(self, table: EventTable) -> None:
        """Keep a table."""
        self._tables.append(table)

    @property
    def full(self) -> bool:
        """Whether there are more rows than should be kept."""
        return sum(map(len, self._tables)) > self.most_events

    def gather(self, timeline: Timeline) -> EventTable:
        """Return all events as one table, merged by the timeline's phases and arrays if full."""
        table = concatenate(self._tables)
        if len(table) > self.most_events:
            rows = len(table)
            table = with_phases(table, timeline.phases())
            arrays = event_arrays(table, timeline.lifetimes())
            table, ns, size = merge(table, arrays, self.most_events // 2)
            self.notes = [
                f"events were merged from {rows:,} rows into {len(table):,} where they were alike: "
                f"totals are exact, times to {ns / 1e6:g} ms, addresses to {size / 2**20:g} MiB"
            ]
        self._tables = [table] if len(table) else []
        return table
