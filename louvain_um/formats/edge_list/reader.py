"""Edge lists: SNAP, TSV, CSV and similar files, read as undirected graphs."""

from __future__ import annotations

from typing import Any

import numpy as np

from louvain_um.formats.edge_list import scan, sniff
from louvain_um.formats.edge_list.edges import EdgeList, LineFormat, build_graph, read_numbers
from louvain_um.formats.edge_list.named_vertices import read_named
from louvain_um.formats.edge_list.number_vertices import number_vertices
from louvain_um.formats.graph_file import GraphFile
from louvain_um.formats.read_options import ReadOptions
from louvain_um.graph.graph import Graph

YEARS = 1800, 2100
"""Whole numbers that all lie in this range are years."""

EARLIEST, LATEST = 10**8, 5 * 10**12
"""Unix times from 1973 on in seconds, up to 2128 in milliseconds."""


def read(file: GraphFile, options: ReadOptions) -> Graph:
    """Read an edge list."""
    detected = sniff.sniff(
        file, header=options.header, separator=options.separator, ids=options.ids
    )
    if not options.symmetrize and (line := sniff.declares_directed(file, detected)) is not None:
        raise file.error(
            "the edge is directed (column Type); pass symmetrize=True (--symmetrize) to read the "
            "graph as undirected",
            line,
        )
    notes = list(detected.notes)
    if detected.header is not None:
        notes.append(
            f"line {detected.lines} ({detected.header!r}) is read as a header; header=False "
            "(--no-header) reads it as an edge"
        )
    counts = None if options.header is not None else sniff.possible_counts(file, detected.separator)
    counts_only = counts is not None and len(counts) != detected.columns and detected.sampled > 1
    if counts_only:
        # Too few fields for an edge: skipped now, checked against the edges below.
        sniff.skip_first_line(file, detected)
    else:
        file.read(detected.skip)
    line_format = LineFormat(
        separator=detected.separator,
        shape=_shape(file, detected, options),
        place=detected.place,
        min_id=1 if options.one_based else 0,
        first_line=detected.lines + 1,
    )
    if detected.named:
        edges, names = read_named(file, line_format)
    else:
        edges, names = read_numbers(file, line_format), None
    announced = detected.announced
    if counts is not None and names is None and _are_counts(counts, edges, counts_only):
        announced = counts[0]
        if not counts_only:
            edges.u, edges.v = edges.u[1:], edges.v[1:]
            edges.w = None if edges.w is None else edges.w[1:]
        notes.append(
            f"the first line ({' '.join(map(str, counts))}) counts vertices and edges and is "
            "read as a header; header=False (--no-header) reads it as an edge"
        )
    elif counts_only and counts is not None:
        raise file.error(
            f"{len(counts)} fields, but the lines below have {detected.columns}, and these are not "
            "the counts of vertices and edges; delete the line, or skip it with header=True "
            "(--header)",
            detected.lines,
        )
    notes += _column_notes(edges, options, detected)
    return _number_and_build(file, edges, names, announced, options, notes)


def _shape(file: GraphFile, detected: sniff.DetectedFormat, options: ReadOptions) -> int:
    """Return what follows the two ids of a line: a constant of `scan`."""
    if options.weighted and detected.columns <= detected.place:
        raise file.error(
            "has no third column with weights; drop weighted=True (--weighted)",
            detected.lines + 1,
        )
    if options.weighted and detected.weights == "other":
        raise file.error(
            "its third column is not numeric; drop weighted=True (--weighted)",
            detected.lines + 1,
        )
    if options.weighted is False:
        return scan.IGNORE_REST
    if detected.weights in ("other", "time", "named") and not options.weighted:
        return scan.IGNORE_REST
    if detected.columns <= detected.place:
        return scan.TWO_IDS
    return scan.WEIGHT if detected.columns == detected.place + 1 else scan.WEIGHT_IGNORE_REST


def _are_counts(counts: list[int], edges: EdgeList, counts_only: bool) -> bool:
    """Return whether the first line counts the vertices and the edges that follow."""
    first = 0 if counts_only else 1
    others = len(edges.u) - first
    if others < 1 or counts[-1] != others or len(set(counts[:-1])) > 1:
        return False
    return bool(max(edges.u[first:].max(), edges.v[first:].max()) <= counts[0])


def _column_notes(
    edges: EdgeList, options: ReadOptions, detected: sniff.DetectedFormat
) -> list[str]:
    """Drop weights that are times; return notes about columns."""
    w = edges.w
    if w is None:
        if options.weighted is False or detected.columns < 3:
            return []
        named = repr(detected.names[2]) if len(detected.names) > 2 else ""
        what = {
            "time": "contains times",
            "named": "is not named as a weight",
        }.get(detected.weights, "is not a weight")
        return [
            f"the third column {f'({named}) ' if named else ''}{what} and is not read; "
            "weighted=True (--weighted) reads it as the weight"
        ]
    notes = [*edges.notes]
    if detected.place > 2:
        notes.append(
            f"weights are read from column {detected.place + 1} "
            f"({detected.names[detected.place]!r})"
        )
    if options.weighted or detected.weights != "unnamed" or len(w) < 2:
        return notes
    if w.dtype == np.int64:
        low, high = int(w.min()), int(w.max())
        if low >= EARLIEST and high <= LATEST and low < high:
            edges.w = None
            return [
                "the third column looks like Unix times and is not read; weighted=True "
                "(--weighted) reads it as the weight"
            ]
        if low >= YEARS[0] and high <= YEARS[1] and low < high:
            edges.w = None
            return [
                "the third column looks like years and is not read; weighted=True (--weighted) "
                "reads it as the weight"
            ]
    if detected.columns > 3:
        commas = " (write decimals with a point)" if detected.separator == ord(",") else ""
        notes.append(
            f"lines have {detected.columns} fields: the third is read as the weight, the others "
            f"are not read{commas}; weighted=False (--unweighted) reads the ids only"
        )
    return notes


def _number_and_build(
    file: GraphFile,
    edges: EdgeList,
    names: Any,
    announced: int | None,
    options: ReadOptions,
    notes: list[str],
) -> Graph:
    if names is not None and names.dtype == np.int64:
        edges.u, edges.v = names[edges.u], names[edges.v]
        names = None
    if names is None:
        base = None if options.one_based is None else int(options.one_based)
        claimed = announced or 0
        if base is not None and len(edges.u):
            claimed = max(claimed, int(edges.u.max()), int(edges.v.max()))
        file.check_vertices(claimed, len(edges.u))
        edges.u, edges.v, n, names = number_vertices(
            edges.u, edges.v, announced=announced, base=base
        )
    else:
        n = len(names)
    return build_graph(file, edges, n, names, options, notes)
