"""Seconds and bytes as people read them."""

from __future__ import annotations


def seconds(value: float) -> str:
    """Return a time for people."""
    for unit, name in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if abs(value) >= unit or (unit == 1e-6 and value):
            return (
                f"{value / unit:,.0f} {name}"
                if abs(value) >= 1000
                else f"{value / unit:.3g} {name}"
            )
    return "0 s"


def size(nbytes: int) -> str:
    """Return bytes for people."""
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB")):
        if nbytes >= unit:
            return f"{nbytes / unit:,.1f} {name}"
    return f"{nbytes / 1024:,.1f} KiB" if nbytes >= 1024 else f"{nbytes:,.0f} B"
