"""Tables of the guide: stores on stand-ins for the papers' graphs, on an H200.

    python benchmarks/stores_papers_shown.py

Prints the tables; `tests/recorded/test_recorded_dynamic_figures.py` looks for them in the guide.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from math import exp, log
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"

GRAPHVINE = {
    "co-papers-dblp": (2.444, 37.11, 151.679, 124.647),
    "co-papers-citeseer": (2.253, 37.658, 80.649, 129.029),
    "hugetrace-00020": (5.762, 29.444, 7.367, 135.142),
    "channel-500x100x100-b050": (4.563, 40.887, 7.559, 339.383),
    "delaunay_n24": (5.787, 24.485, 10.359, 286.08),
    "europe_osm": (11.973, 27.317, 12.605, 190.068),
    "rgg_n_2_24_s0": (7.559, 40.779, 6.563, 992.54),
}
"""GraphVine, tables 3 and 4, RTX 2060: ms of 1 M and 10 M edges inserted, 1 M deleted, all."""

FAIMGRAPH = {
    "luxembourg_osm": (1.16, 1.99, 1.49),
    "coAuthorsCiteseer": (2.47, 2.09, 2.29),
    "coAuthorsDBLP": (2.61, 2.15, 2.82),
    "delaunay_n20": (6.38, 2.85, 2.90),
    "rgg_n_2_20_s0": (11.60, 2.87, 4.01),
    "hugetric-00000": (20.21, 6.75, 7.07),
    "delaunay_n23": (45.88, 9.42, 10.42),
    "germany_osm": (32.78, 11.33, 11.54),
    "ldoor": (58.11, 2.82, 12.31),
    "audikw_1": (102.92, 2.80, 29.63),
    "nlpkkt120": (100.03, 4.87, 22.31),
    "europe_osm": (145.16, 45.68, 43.94),
}
"""faimGraph in Winter's thesis, tables 4.1 and 4.2, Titan Xp: ms of initialisation, and of 100,000
vertices inserted and deleted (undirected)."""

Rows = dict[tuple[str, str], dict[str, float]]


def figure(value: float | None) -> str:
    """Return a number of two digits, or whole from 100 on."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if value >= 99.5 else f"{float(f'{value:.2g}'):g}"


def mean(values: list[float]) -> float | None:
    """Return the geometric mean."""
    return exp(sum(map(log, values)) / len(values)) if values else None


def flat(record: dict[str, Any]) -> Rows:
    """Return all figures of each graph and store: those of batches as `insert_ms_1000000`."""
    rows: Rows = {}
    for row in sorted(record["results"], key=lambda row: row["batch"]):
        where = rows.setdefault((row["graph"], row["store"]), {})
        where |= {f"{k}_{row['batch']}": v for k, v in row.items() if k.endswith("_ms")}
        where.setdefault("bytes_per_arc", row["bytes_per_arc"])
    for row in record.get("trials", ()):
        rows[row["graph"], row["store"]] |= row
    return rows


CPU = {
    "insert 10 k": "insert_ms_10000",
    "1 M": "insert_ms_1000000",
    "delete 1 M": "delete_ms_1000000",
}
DEVICE = {
    "all edges": "bulk_ms",
    "insert 10 k": "insert_ms_10000",
    "100 k": "insert_ms_100000",
    "1 M": "insert_ms_1000000",
    "10 M": "insert_ms_10000000",
    "delete 1 M": "delete_ms_1000000",
    "find 1 M": "query_ms_1000000",
    "skewed": "skewed_insert_ms",
    "remove vertices": "remove_vertices_ms",
    "PageRank": "pagerank_ms",
    "triangles": "triangles_ms",
}


def table(head: list[str], rows: Iterator[list[str]]) -> str:
    """Return a table as Markdown."""
    first, *others = ("| " + " | ".join(cells) + " |\n" for cells in (head, *rows))
    return first + "|---" * len(head) + "|\n" + "".join(others)


def relative(record: dict[str, Any], columns: dict[str, str]) -> str:
    """Return the table of all stores, relative to `csr`: geometric means over the graphs."""
    rows = flat(record)

    def cells(store: str) -> list[str]:
        graphs = [graph for graph in record["graphs"] if (graph, store) in rows]
        pairs = {
            key: [(rows[graph, store].get(key), rows[graph, "csr"].get(key)) for graph in graphs]
            for key in columns.values()
        }
        means = [mean([a / b for a, b in found if a and b]) for found in pairs.values()]
        held = [rows[graph, store]["bytes_per_arc"] for graph in graphs]
        return [store, *map(figure, means), f"{min(held):.1f}–{max(held):.1f}"]

    stores = dict.fromkeys(store for _, store in rows)
    return table(["", *columns, "bytes per arc"], map(cells, stores))


def beside(
    record: dict[str, Any],
    published: dict[str, tuple[float, ...]],
    store: str,
    columns: dict[str, str],
) -> str:
    """Return published times, those of the same store here, and those of `rows`."""
    rows = flat(record)

    def cell(graph: str, value: float, key: str) -> str:
        times = (value, *(rows[graph, name].get(key) for name in (store, "rows")))
        return " · ".join(map(figure, times))

    return table(
        ["", *columns],
        (
            [graph, *(map(cell, [graph] * len(values), values, columns.values()))]
            for graph, values in published.items()
            if (graph, store) in rows
        ),
    )


def tables(cpu: dict[str, Any], device: dict[str, Any]) -> list[str]:
    """Return the tables of the guide; those of what was not measured have no rows."""
    found = [
        relative(cpu, CPU),
        relative(device, DEVICE),
        beside(
            device,
            GRAPHVINE,
            "vine",
            {
                "insert 1 M": "insert_ms_1000000",
                "10 M": "insert_ms_10000000",
                "delete 1 M": "delete_ms_1000000",
                "all edges": "bulk_ms",
            },
        ),
        beside(
            device,
            FAIMGRAPH,
            "pages",
            {
                "initialisation": "build_ms",
                "vertices added": "add_vertices_ms",
                "removed": "remove_vertices_ms",
            },
        ),
    ]
    return [text for text in found if text.count("\n") > 2]


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", type=Path, default=RESULTS / "stores_papers_h200.json")
    args = parser.parse_args()
    device = json.loads(args.device.read_text())
    cpu = json.loads((RESULTS / "stores_papers.json").read_text())
    print("\n".join(tables(cpu, device)))


if __name__ == "__main__":
    main()
