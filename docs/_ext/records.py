"""A directive that makes a table of a benchmark's record when the pages are built.

    :::{record} policies_h200 results
    :where: graph == "lfr24" and feasible
    :spread: oversubscription
    Policy | policy
    {} % | 1e3 * seconds_best | ,.0f
    :::

The arguments are a file of ``benchmarks/results`` and the path of its rows: a list, or an object
whose values are rows and whose keys become `name`. A line of the content is a column: heading,
expression over a row's values (also `row`, and `record`, the whole file) and, perhaps, a format.
With `spread`, the last column is repeated for each value of that name, which its heading shows in
place of ``{}``; rows that agree in all other columns are one row then. `summary` adds the median
and the largest value of each spread column.

A second directive draws a chart of points, one panel for each value of a name:

    :::{fronts} peers results
    :panels: graph
    :x: seconds | Time (s)
    :y: modularity | Modularity
    :series: peer
    :::

The part of a series' name after a comma names a point of it; points of a series are joined, and a
line behind them is the front that no other point beats in both, less of x and more of y.
"""

from __future__ import annotations

import json
import math
import re
import statistics
from collections.abc import Iterable
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive, directives

RESULTS = Path(__file__).resolve().parents[2] / "benchmarks" / "results"
FUNCTIONS = {
    "int": int,
    "len": len,
    "max": max,
    "min": min,
    "sum": sum,
    "median": statistics.median,
}

WHOLE = re.compile(r"[-−+]?[\d.,e-]+[ %×M]*|–|")
"""What a cell of a column holds that is a number, a date or nothing."""

Row = dict[str, Any]


def load(name: str) -> Row:
    """Return a record."""
    found: Row = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    return found


def rows_at(record: Row, path: str) -> list[Row]:
    """Return the rows at a path of a record, like ``devices.results``."""
    found: Any = record
    for key in path.split("."):
        found = found[int(key)] if isinstance(found, list) else found[key]
    if isinstance(found, list):
        return found
    rows = [{"name": key, "value": each} for key, each in found.items()]
    return [row | row["value"] if isinstance(row["value"], dict) else row for row in rows]


def machine_of(record: Row, path: str) -> str:
    """Return the machine that a record, or this part of it, was measured on."""
    part = record.get(path.partition(".")[0])
    nearest = part if isinstance(part, dict) and "machine" in part else record
    about = nearest.get("machine") or (nearest.get("machines") or nearest.get("measured_on"))
    about = about[0] if isinstance(about, list) else about or {}
    device = (about.get("device") or {}).get("name")
    cpu = about.get("cpu") or about.get("processor")
    host = f"{about['cores']} cores of {cpu}" if cpu else None
    parts = [device, host, about.get("date")]
    return f"{', '.join(filter(None, parts))}; evidence: {record.get('evidence', 'measured')}."


def shown(value: Any, form: str) -> str:
    """Return a cell."""
    if value is None or value == "":
        return "–"
    return format(value, form) if form else str(value)


def table(
    record: Row,
    rows: Iterable[Row],
    columns: list[list[str]],
    spread: str = "",
    summary: bool = False,
) -> list[list[str]]:
    """Return the cells of a table, headings first."""
    codes = [compile(column[1], column[0], "eval") for column in columns]
    forms = [column[2] if len(column) > 2 else "" for column in columns]

    def value(code: Any, row: Row) -> Any:
        return eval(code, {"__builtins__": FUNCTIONS, "record": record, "row": row}, row)

    if not spread:
        cells = [
            [shown(value(c, row), f) for c, f in zip(codes, forms, strict=True)] for row in rows
        ]
        return [[column[0] for column in columns], *cells]
    lines: dict[tuple[str, ...], Row] = {}
    for row in rows:
        key = tuple(shown(value(c, row), f) for c, f in zip(codes[:-1], forms, strict=False))
        lines.setdefault(key, {})[str(row[spread])] = value(codes[-1], row)
    keys = list(dict.fromkeys(at for line in lines.values() for at in line))
    found = [[*(c[0] for c in columns[:-1]), *(columns[-1][0].format(at) for at in keys)]]
    found += [
        [*key, *(shown(line.get(at), forms[-1]) for at in keys)] for key, line in lines.items()
    ]
    summaries = {"median": statistics.median, "largest": max}
    for name, way in summaries.items() if summary else ():
        values = [[v for line in lines.values() if (v := line.get(at)) is not None] for at in keys]
        blank = [""] * (len(columns) - 2)
        found.append(
            [
                name,
                *blank,
                *(shown(way(column) if column else None, forms[-1]) for column in values),
            ]
        )
    return found


class Record(Directive):
    """Inserts a table of a record."""

    has_content = True
    required_arguments = 2
    option_spec = {  # noqa: RUF012
        "where": directives.unchanged,
        "spread": directives.unchanged,
        "summary": directives.flag,
    }

    def run(self) -> list[nodes.Node]:
        """Return the table, and the machine."""
        name, path = self.arguments
        record = load(name)
        rows = rows_at(record, path)
        if "where" in self.options:
            where = self.options["where"]
            rows = [row for row in rows if eval(where, {"record": record, "row": row}, row)]
        if not rows:
            raise self.error(f"{name} {path} has no such rows")
        columns = [
            [part.strip() for part in line.split("|")] for line in self.content if line.strip()
        ]
        options = self.options.get("spread", ""), "summary" in self.options
        cells = table(record, rows, columns, *options)
        note = f"{machine_of(record, path)} Record: "
        return [as_nodes(cells), nodes.paragraph("", note, nodes.literal("", f"{name}.json"))]


COLOURS = ("#d1495b", "#2e6fba", "#3a9d6e", "#e08e2b", "#8561b5", "#5b6770", "#b04fa0", "#9b6a3c")
WIDTH, HEIGHT = 340, 230
LEFT, RIGHT, TOP, BOTTOM = 52, 70, 26, 34
"""Pixels of a panel, and margins around its points."""

LETTER, LINE = 6, 11
"""Pixels of a letter, at most, and of a line of words."""

LEAST_SPAN = 0.002
"""What the height of a panel stands for at least: smaller differences are seeds'."""

ENDS = ("start", "end")

Point = tuple[float, float, str]
"""A point of a series: x, y and a name."""


def fronts(panels: dict[str, dict[str, list[Point]]], titles: tuple[str, str]) -> str:
    """Return a chart as HTML, x in decades; `panels` have points by series."""
    names = list(dict.fromkeys(name for series in panels.values() for name in series))
    colours = {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(names)}
    style = "font-family:sans-serif;font-size:11px;fill:currentColor"
    drawn = [
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" role="img" style="{style};'
        f'max-width:100%">{panel(title, series, colours, titles)}</svg>'
        for title, series in panels.items()
    ]
    legend = [
        f'<svg width="215" height="18" style="{style}"><circle cx="6" cy="9" r="4" '
        f'fill="{colour}"/>{text(16, 13, name)}</svg>'
        for name, colour in colours.items()
    ]
    return "".join(
        f'<div style="display:flex;flex-wrap:wrap">{"".join(part)}</div>'
        for part in (drawn, legend)
    )


def text(x: float, y: float, words: str, anchor: str = "start") -> str:
    """Return words at a place."""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'


def panel(
    title: str, series: dict[str, list[Point]], colours: dict[str, str], titles: tuple[str, str]
) -> str:
    """Return one panel."""
    points = [point for each in series.values() for point in each]
    low, high = (math.log10(way(x for x, *_ in points)) for way in (min, max))
    top = max(y for _, y, _ in points)
    floor = min(top - LEAST_SPAN, *(y for _, y, _ in points))
    wide, tall = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def place(x: float, y: float) -> tuple[float, float]:
        across = (math.log10(x) - low) / (high - low or 1)
        return LEFT + wide * across, TOP + tall * (1 - (y - floor) / (top - floor or 1))

    def path(along: Iterable[tuple[float, float]], style: str) -> str:
        steps = " ".join(f"{x:.1f},{y:.1f}" for x, y in along)
        return f'<polyline points="{steps}" fill="none" {style}/>'

    parts = [text(WIDTH / 2 - 10, 14, title, "middle")]
    for decade in range(math.ceil(low), math.floor(high) + 1):
        x, _ = place(10.0**decade, floor)
        parts.append(path([(x, TOP), (x, TOP + tall)], 'stroke="currentColor" opacity="0.15"'))
        parts.append(text(x, TOP + tall + 14, f"{10.0**decade:g}", "middle"))
    for y in (floor, top):
        parts.append(text(LEFT - 6, place(10**low, y)[1] + 4, f"{y:.4f}", "end"))
    parts += [text(LEFT + wide / 2, HEIGHT - 6, titles[0], "middle"), text(4, TOP - 8, titles[1])]
    best = sorted((x, -y) for x, y, _ in points)
    best = [p for i, p in enumerate(best) if all(p[1] < other[1] for other in best[:i])]
    front = [place(x, -y) for x, y in best]
    corners = [step for a, b in pairwise(front) for step in (a, (b[0], a[1]))] + front[-1:]
    parts.append(path(corners, 'stroke="currentColor" opacity="0.3" stroke-dasharray="4 3"'))
    taken: list[tuple[float, float, float]] = []  # by words: both ends, and height
    for name, along in series.items():
        there = [place(x, y) for x, y, _ in along]
        parts.append(path(there, f'stroke="{colours[name]}" opacity="0.6"'))
        for (x, y), (seconds, value, word) in zip(there, along, strict=True):
            about = escape(f"{name} {word}: {seconds:.3g}, {value:.4f}")
            parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colours[name]}">')
            parts.append(f"<title>{about}</title></circle>")
            length = LETTER * len(word)
            left = x + 6 if x + 6 + length < WIDTH else x - 6 - length
            if all(
                left > right or left + length < begin or abs(y - at) > LINE
                for begin, right, at in taken
            ):
                taken.append((left, left + length, y))
                on_left = left < x
                parts.append(text(x + (-6 if on_left else 6), y + 4, word, ENDS[on_left]))
    return "".join(parts)


class Fronts(Directive):
    """Inserts a chart of a record's points."""

    required_arguments = 2
    option_spec = {  # noqa: RUF012
        "panels": directives.unchanged_required,
        "x": directives.unchanged_required,
        "y": directives.unchanged_required,
        "series": directives.unchanged_required,
    }

    def run(self) -> list[nodes.Node]:
        """Return the chart."""
        rows = rows_at(load(self.arguments[0]), self.arguments[1])
        (x, across), (y, up) = (
            [part.strip() for part in self.options[axis].split("|")] for axis in ("x", "y")
        )
        drawn = fronts(
            by_panel(rows, self.options["panels"], x, y, self.options["series"]), (across, up)
        )
        return [nodes.raw("", drawn, format="html")]


def by_panel(
    rows: Iterable[Row], panels: str, x: str, y: str, series: str
) -> dict[str, dict[str, list[Point]]]:
    """Return points by panel and series; rows without one of both values are none."""
    found: dict[str, dict[str, list[Point]]] = {}
    for row in rows:
        if row.get(x) is None or row.get(y) is None:
            continue
        name, _, word = row[series].partition(", ")
        found.setdefault(row[panels], {}).setdefault(name, []).append((row[x], row[y], word))
    return found


def as_nodes(cells: list[list[str]]) -> nodes.table:
    """Return a table of texts; numbers are aligned, and neither they nor dates are broken."""
    width = len(cells[0])
    group = nodes.tgroup(cols=width)
    group += [nodes.colspec(colwidth=1) for _ in range(width)]
    whole = [
        all(WHOLE.fullmatch(text) for text in column[1:]) for column in zip(*cells, strict=True)
    ]

    def line(texts: list[str]) -> nodes.row:
        entries = [nodes.entry("", nodes.paragraph("", text)) for text in texts]
        for entry, number in zip(entries, whole, strict=True):
            entry["classes"] += ["whole"] * number
        return nodes.row("", *entries)

    group += nodes.thead("", line(cells[0]))
    group += nodes.tbody("", *map(line, cells[1:]))
    return nodes.table("", group)


def setup(app: Any) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("record", Record)
    app.add_directive("fronts", Fronts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
