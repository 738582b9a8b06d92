"""Views of sessions and sweeps: tables, charts, traces, one page of HTML."""
