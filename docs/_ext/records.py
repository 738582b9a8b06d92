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
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable
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


def as_nodes(cells: list[list[str]]) -> nodes.table:
    """Return a table of texts."""
    width = len(cells[0])
    group = nodes.tgroup(cols=width)
    group += [nodes.colspec(colwidth=1) for _ in range(width)]

    def line(texts: list[str]) -> nodes.row:
        entries = [nodes.entry("", nodes.paragraph("", text)) for text in texts]
        return nodes.row("", *entries)

    group += nodes.thead("", line(cells[0]))
    group += nodes.tbody("", *map(line, cells[1:]))
    return nodes.table("", group)


def setup(app: Any) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("record", Record)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
