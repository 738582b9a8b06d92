"""Colours of communities, distinct on light and on dark paper."""

from __future__ import annotations

from typing import Final

PALETTE: Final = (
    "#4477aa", "#ee7733", "#228833", "#cc3377", "#bbaa22", "#66aadd", "#884499", "#aa6644",
    "#44aa99", "#dd6677", "#778833", "#9977cc",
)  # fmt: skip
"""The largest communities in order of size; medium lightness, so that both papers carry them."""

OTHERS: Final = "#8c929b"
"""All smaller communities: more hues could not be told apart."""


def colour(community: int) -> str:
    """Return the colour of a community as ``#rrggbb``."""
    return PALETTE[community] if community < len(PALETTE) else OTHERS
