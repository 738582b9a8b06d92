"""Sessions shown: tables, charts, traces, and one page of HTML. Views read sessions only."""
