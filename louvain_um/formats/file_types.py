"""File formats: their names, their suffixes, and how their files begin."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from louvain_um.core.atomic_files import check_output
from louvain_um.errors import (
    GraphError,
    GraphFormatError,
    LouvainUmError,
    OptionError,
    check_choice,
    needed,
    require_packages,
)

READERS = {
    "edges": "edge_list.reader:read",
    "matrixmarket": "matrixmarket:read",
    "metis": "metis:read",
    "gml": "gml:read",
    "graphml": "xml_networks:read_graphml",
    "gexf": "xml_networks:read_gexf",
    "cytoscape": "json_networks:read",
    "json": "json_networks:read",
    "pajek": "pajek:read",
    "dl": "pajek:read_dl",
    "dimacs": "line_lists:read_dimacs",
    "lgl": "line_lists:read_lgl",
    "sif": "line_lists:read_sif",
    "adjacency": "line_lists:read_adjacency",
    "networkx": "line_lists:read_networkx",
    "matrix": "line_lists:read_matrix",
    "incidence": "line_lists:read_incidence",
    "npz": "npz:read",
    "parquet": "arrow:read",
    "feather": "arrow:read_feather",
    "jsonl": "arrow:read_json_lines",
    "anndata": "cells:read",
}
"""Format → ``module:function`` that reads it."""

SUFFIXES = {
    ".txt": "edges", ".tsv": "edges", ".csv": "edges", ".edges": "edges", ".edgelist": "edges",
    ".el": "edges", ".wel": "edges", ".ncol": "edges", ".snap": "edges", ".dat": "edges",
    ".mtx": "matrixmarket", ".mm": "matrixmarket",
    ".graph": "metis", ".metis": "metis",
    ".gml": "gml", ".graphml": "graphml", ".gexf": "gexf", ".cyjs": "cytoscape", ".json": "json",
    ".net": "pajek", ".paj": "pajek", ".dl": "dl", ".gr": "dimacs", ".col": "dimacs",
    ".dimacs": "dimacs", ".lgl": "lgl", ".sif": "sif", ".adjlist": "adjacency",
    ".npz": "npz",
    ".parquet": "parquet", ".pq": "parquet", ".feather": "feather", ".arrow": "feather",
    ".jsonl": "jsonl", ".ndjson": "jsonl", ".h5ad": "anndata",
}  # fmt: skip
"""Suffix of a file's name (before .gz) → its format."""

NETWORKS = (
    "gml", "graphml", "gexf", "cytoscape", "json", "pajek", "dl", "lgl", "sif", "adjacency",
    "networkx",
)  # fmt: skip
"""Formats whose weights are an attribute of edges."""

TEXTS = (
    "edges", "matrixmarket", "metis", "pajek", "dl", "dimacs", "lgl", "sif", "adjacency",
    "networkx", "matrix", "incidence",
)  # fmt: skip
"""Formats that are lines of text."""

UNREAD = {
    ".sqlite": "is a database, as profilers write it, not a graph; pass it to louvain-um report",
    ".nsys-rep": "is a report of Nsight Systems, not a graph; pass it to louvain-um report",
    ".hgr": "is a hypergraph, whose edges join more than two vertices; write pairs as edges",
    ".hif": "is a hypergraph, whose edges join more than two vertices; write pairs as edges",
    ".dot": "is a DOT file of Graphviz; convert it to GML (gv2gml)",
    ".gv": "is a DOT file of Graphviz; convert it to GML (gv2gml)",
    ".properties": "describes a graph of WebGraph, which is not read; write its arcs as text "
    "(ArcListASCIIGraph)",
    ".bin": "is binary, as Graph500 and others write graphs; write .npz (u, v), .parquet or text",
    ".packed": "is binary, as Graph500 writes graphs; write .npz (u, v), .parquet or text",
    ".h5": "is HDF5, of which only .h5ad is read; write .npz, .parquet or text",
}
"""Suffixes that are known and not read, and what to do."""

ATTRIBUTED = (".gexf", ".graphml", ".cyjs")
"""Suffixes of files that hold a graph and the communities of its vertices."""

TABLES = (".csv", ".tsv", ".parquet", ".npz", ".json")
"""Suffixes of label files."""

SPREADSHEETS = (".xlsx", ".xls", ".ods")
"""Suffixes of files that other programs can save as CSV."""

NO_SEPARATORS = "\n\r\0\"'"
"""Characters that end lines, mark binary files or quote fields; digits are refused too."""

OTHERS = {
    rb"version https://git-lfs": (
        "is a pointer of Git LFS, not the file itself; run git lfs pull where it comes from"
    ),
    rb"\s*<(!doctype|html|head|body)\b": (
        "is a page of HTML, not a graph; download the file that it links to"
    ),
    rb'\s*(strict\s+)?(di)?graph(\s+("[^"\n]*"|\w+))?\s*\{': (
        "is a DOT file of Graphviz, which is not read; convert it to GML (gv2gml), or to lines "
        "with the two ends of an edge"
    ),
}
"""Beginnings of text that would pass for edges."""


def check_format(format: str | None) -> None:
    """Raise an error for a format that is not in `READERS`."""
    if format is not None:
        check_choice("format", format, READERS)


def check_separator(separator: str) -> None:
    """Raise an error for a separator that is not one character, or occurs in lines otherwise."""
    if not isinstance(separator, str) or len(separator) != 1 or not separator.isascii():
        raise OptionError("separator", separator, "must be one ASCII character")
    if separator in NO_SEPARATORS or separator.isdigit():
        raise OptionError(
            "separator",
            separator,
            "must not be a line break, NUL, a quote or a digit; leave it out to detect it",
        )


def path_text(path: Any, remedy: str = "pass one") -> str:
    """Return a path as text; refuse other objects, such as open files."""
    try:
        return os.fsdecode(path)
    except TypeError:
        raise GraphError(f"cannot take {type(path).__name__} as a path; {remedy}") from None


def suffix_of(name: str) -> str:
    """Return the suffix of a file's name, before .gz, in lower case."""
    return os.path.splitext(name.lower().removesuffix(".gz"))[1]


def format_of(name: str) -> str:
    """Return the format of a file by its suffix; the error lists the known suffixes."""
    suffix = suffix_of(name)
    if suffix in SPREADSHEETS:
        raise GraphFormatError("is a spreadsheet; save it as CSV", name)
    if suffix in UNREAD:
        raise GraphFormatError(f"{UNREAD[suffix]}; or pass format=…", name)
    if (
        suffix not in SUFFIXES
        and os.path.basename(name).startswith("out.")
        and os.path.exists(name)
    ):
        return "edges"  # as KONECT names its files
    if suffix not in SUFFIXES:
        known = " ".join(sorted(SUFFIXES))
        shown = f"suffix {suffix!r} is unknown" if suffix else "the name has no suffix"
        raise GraphFormatError(f"{shown}; use one of {known}, or pass format=…", name)
    return SUFFIXES[suffix]


def format_of_content(head: bytes) -> str:
    """Return the format that a file's first bytes show; an edge list if they show no other."""
    if head.startswith(b"%%MatrixMarket"):
        return "matrixmarket"
    if head.startswith(b"PK"):
        return "npz"
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith(b"ARROW1"):
        return "feather"
    start = head.lstrip()
    if start.startswith((b"<?xml", b"<graphml", b"<gexf")):
        return "gexf" if b"<gexf" in head else "graphml"
    if re.match(rb'\{\s*"|\[\s*[\[{]', start):
        # One object on each of several lines, or one that spans the file.
        return "jsonl" if re.match(rb"\{[^\n{}]*\}\s*\n\s*\{", start) else "json"
    if head.lstrip().lower().startswith((b"graph [", b"graph\n", b"creator ")):
        return "gml"
    return "edges"


def other_content(head: bytes) -> str:
    """Return what a file of text is instead of an edge list, and the remedy; "" if nothing else."""
    for pattern, problem in OTHERS.items():
        if re.match(pattern, head, re.IGNORECASE):
            return problem
    return ""


def holds_communities(name: str) -> bool:
    """Return whether a file's suffix is of a format for a graph and its communities."""
    return name.lower().removesuffix(".gz").endswith(ATTRIBUTED)


def check_table_path(path: str | Path, *, force: bool = False, safe_csv: bool = False) -> None:
    """Raise if a table cannot be written, before any work is done."""
    if safe_csv:
        check_text(path)
    check_table(path)
    check_output(path, force=force)


def check_text(path: str | Path) -> None:
    """Raise if a table is none of those that spreadsheets take for formulas."""
    if Path(path).suffix.lower() not in (".csv", ".tsv"):
        raise LouvainUmError(f"{path}: --safe-csv is for .csv and .tsv files; leave it out")


def check_table(path: str | Path) -> str:
    """Return the suffix of a table that can be written."""
    suffix = Path(path).suffix.lower()
    if suffix not in TABLES:
        got = f"unknown suffix {suffix!r}" if suffix else "no suffix"
        raise LouvainUmError(f"{path}: {got}; use one of {', '.join(TABLES)}")
    if suffix == ".parquet":
        require_packages("writing .parquet", "pyarrow")
    return suffix


def first_line_of(error: Exception) -> str:
    """Return the first line of an error's text, or its type if the text is empty."""
    return next(iter(str(error).splitlines()), "") or type(error).__name__


def require(module: str, file: str) -> Any:
    """Import a library of the `formats` extra; the error says how to install it."""
    return needed(module, f"{file}: this format needs {module.partition('.')[0]}", "formats")
