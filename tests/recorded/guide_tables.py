"""Tables of the guide, for tests."""

from __future__ import annotations

from collections.abc import Iterable

from tests.paths import ROOT

DOCS = ROOT / "docs"


def rows_of(page: str) -> dict[str, list[str]]:
    """Return the rows of a page's tables, by their first cells."""
    lines = [line for line in (DOCS / page).read_text().splitlines() if line.startswith("|")]
    cells = [[cell.strip(" `") for cell in line.strip("|").split("|")] for line in lines]
    return {row[0]: row[1:] for row in cells}


def table_under(page: str, heading: str) -> dict[str, list[str]]:
    """Return the rows of the table under a heading, by policy."""
    text = (DOCS / page).read_text().partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return {
        cells[0].strip(" `"): [cell.strip() for cell in cells[1:]]
        for line in text.splitlines() if line.startswith("| `")
        for cells in [line.strip("|").split("|")]
    }  # fmt: skip


def close(text: str, value: float) -> bool:
    """Return whether a text shows a value, rounded to its number of digits."""
    digits = len(text.partition(".")[2])
    return abs(float(text.replace(",", "")) - value) <= 0.501 * 10**-digits


def assert_shown(texts: Iterable[str], values: Iterable[float]) -> None:
    """Assert that each text shows its value."""
    for text, value in zip(texts, values, strict=True):
        assert close(text, value), (text, value)
