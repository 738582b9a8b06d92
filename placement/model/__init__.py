"""The cost model: what a layout costs, in seconds, term by term."""
