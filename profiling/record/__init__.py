"""Recording a run: sources, phases, arrays, and to which of them an event belongs."""
