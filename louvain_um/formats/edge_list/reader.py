"""Edge lists: SNAP, TSV, CSV and their many relatives; undirected, as DESIGN §3 says."""

from __future__ import annotations

from typing import Any

import numpy as np

from louvain_um.formats.edge_list import scan, sniff
from louvain_um.formats.edge_list.edges import EdgeList, LineRule, build_graph, read_numbers
from louvain_um.formats.edge_list.named_vertices import read_named
from louvain_um.formats.edge_list.number_vertices import number_vertices
from louvain_um.formats.read_options import ReadOptions
from louvain_um.formats.source import Source
from louvain_um.graph.graph import Graph

YEARS = 1800, 2100
"""Whole numbers that are all in here are years."""

EARLIEST, LATEST = 10**8, 5 * 10**12
"""Unix times from 1973 on in seconds, up to 2128 in milliseconds."""


def read(source: Source, options: ReadOptions) -> Graph:
    """Read an edge list."""
    found = sniff.sniff(source, header=options.header, separator=options.separator, ids=options.ids)
    if not options.symmetrize and (line := sniff.declares_directed(source, found)) is not None:
        raise source.error(
            "declares its edge directed (column Type); read the graph as undirected with "
            "symmetrize=True (--symmetrize)",
            line,
        )
    notes = list(found.notes)
    if found.header is not None:
        notes.append(
            f"line {found.lines} ({found.header!r}) is read as a header; header=False "
            "(--no-header) makes it an edge"
        )
    counts = None if options.header is not None else sniff.may_be_counts(source, found.separator)
    apart = counts is not None and len(counts) != found.columns and found.sampled > 1
    if apart:
        # No edge for want of fields: skipped now, checked against what follows.
        sniff.pass_first(source, found)
    else:
        source.read(found.skip)
    rule = LineRule(
        separator=found.separator,
        shape=_shape(source, found, options),
        place=found.place,
        least=1 if options.one_based else 0,
        first_line=found.lines + 1,
    )
    if found.textual:
        edges, names = read_named(source, rule)
    else:
        edges, names = read_numbers(source, rule), None
    announced = found.announced
    if counts is not None and names is None and _are_counts(counts, edges, apart):
        announced = counts[0]
        if not apart:
            edges.u, edges.v = edges.u[1:], edges.v[1:]
            edges.w = None if edges.w is None else edges.w[1:]
        notes.append(
            f"the first line ({' '.join(map(str, counts))}) counts vertices and edges and is "
            "read as a header; header=False (--no-header) makes it an edge"
        )
    elif apart and counts is not None:
        raise source.error(
            f"{len(counts)} fields where the lines below have {found.columns}, and no counts of "
            "vertices and edges either; delete it, or skip it with header=True (--header)",
            found.lines,
        )
    notes += _settle_weights(edges, options, found)
    return _number_and_build(source, edges, names, announced, options, notes)


def _shape(source: Source, found: sniff.DetectedFormat, options: ReadOptions) -> int:
    """Return what a line holds behind its two ids."""
    if options.weighted and found.columns <= found.place:
        raise source.error(
            "has no third column to take weights from; drop weighted=True (--weighted)",
            found.lines + 1,
        )
    if options.weighted and found.weights == "other":
        raise source.error(
            "has no third column of numbers to take weights from; drop weighted=True (--weighted)",
            found.lines + 1,
        )
    if options.weighted is False:
        return scan.IGNORE_REST
    if found.weights in ("other", "time", "named") and not options.weighted:
        return scan.IGNORE_REST
    if found.columns <= found.place:
        return scan.TWO_IDS
    return scan.WEIGHT if found.columns == found.place + 1 else scan.WEIGHT_IGNORE_REST


def _are_counts(counts: list[int], edges: EdgeList, apart: bool) -> bool:
    """Return whether the first line tells the vertices and the edges that follow."""
    first = 0 if apart else 1
    others = len(edges.u) - first
    if others < 1 or counts[-1] != others or len(set(counts[:-1])) > 1:
        return False
    return bool(max(edges.u[first:].max(), edges.v[first:].max()) <= counts[0])


def _settle_weights(
    edges: EdgeList, options: ReadOptions, found: sniff.DetectedFormat
) -> list[str]:
    """Drop weights that are times; return what to say about columns."""
    w = edges.w
    if w is None:
        if options.weighted is False or found.columns < 3:
            return []
        named = repr(found.names[2]) if len(found.names) > 2 else ""
        what = {
            "time": "holds times",
            "named": "has another name than weight",
        }.get(found.weights, "is no weight")
        return [
            f"the third column {f'({named}) ' if named else ''}{what} and is not read; "
            "weighted=True (--weighted) makes it the weight"
        ]
    notes = [*edges.notes]
    if found.place > 2:
        notes.append(
            f"weights are read from column {found.place + 1} ({found.names[found.place]!r})"
        )
    if options.weighted or found.weights != "unnamed" or len(w) < 2:
        return notes
    if w.dtype == np.int64:
        low, high = int(w.min()), int(w.max())
        if low >= EARLIEST and high <= LATEST and low < high:
            edges.w = None
            return [
                "the third column looks like Unix times and is not read; weighted=True "
                "(--weighted) makes it the weight"
            ]
        if low >= YEARS[0] and high <= YEARS[1] and low < high:
            edges.w = None
            return [
                "the third column looks like years and is not read; weighted=True (--weighted) "
                "makes it the weight"
            ]
    if found.columns > 3:
        commas = " (write decimals with a point)" if found.separator == ord(",") else ""
        notes.append(
            f"lines have {found.columns} fields: the third is read as the weight, those behind "
            f"it are not read{commas}; weighted=False (--unweighted) reads the ids alone"
        )
    return notes


def _number_and_build(
    source: Source,
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
        edges.u, edges.v, n, names = number_vertices(
            edges.u, edges.v, announced=announced, base=base
        )
    else:
        n = len(names)
    return build_graph(source, edges, n, names, options, notes)
