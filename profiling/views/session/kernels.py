"""Kernels and explicit copies: what the program itself issued."""

from __future__ import annotations

import re

import numpy as np

from louvain_um.profiling.session.events import Kind
from louvain_um.profiling.views.session.analysis import SessionAnalysis
from louvain_um.profiling.views.session.evidence import evidence
from louvain_um.profiling.views.session.traffic import first_rows
from louvain_um.profiling.views.table import Column, Table

LONG = 48
"""Longest kernel name shown in full."""


def short_name(name: str) -> str:
    """Return a kernel's name without long template arguments."""
    if len(name) <= LONG:
        return name
    bare, before = name, ""
    while bare != before:
        before, bare = bare, re.sub(r"\([^()]*\)", "", re.sub(r"<[^<>]*>", "\0", bare))
    parts = bare.removeprefix("void ").split("::")
    label = parts[0] if len(parts) == 1 else f"{parts[0]}::{parts[-1]}"
    label = re.sub("\0+", "<…>", label).strip()
    return label if len(label) <= LONG else f"{label[: LONG - 1]}…"


def kernels(analysis: SessionAnalysis) -> Table:
    """Return launches and time of each kernel, the costliest first."""
    rows = analysis.rows_of(Kind.KERNEL)
    rows = rows[analysis.events["kernel"][rows] >= 0]
    which = analysis.events["kernel"][rows]
    size = len(analysis.events.kernels)
    launches = np.bincount(which, analysis.events["rows"][rows], size)
    spent = np.bincount(which, analysis.events["duration"][rows], size) / 1e9
    total = float(spent.sum())
    order = np.argsort(-spent, kind="stable")
    table_rows = [
        {
            "kernel": short_name(analysis.events.kernels[at]),
            "full_name": analysis.events.kernels[at],
            "launches": int(launches[at]),
            "seconds": float(spent[at]),
            "each": float(spent[at] / launches[at]),
            "share": float(spent[at] / total) if total else None,
        }
        for at in order.tolist()
        if launches[at]
    ]
    return Table(
        name="kernels",
        title="Kernels",
        columns=(
            Column("kernel", "kernel", "text"),
            Column("launches", "launches"),
            Column("seconds", "seconds", "seconds"),
            Column("each", "per launch", "seconds"),
            Column("share", "share of kernel time", "share"),
        ),
        evidence=evidence(analysis.session, "kernel"),
        **first_rows(table_rows, "Kernel time includes waiting for pages."),
    )


def copies(analysis: SessionAnalysis) -> Table:
    """Return bytes and time of the program's explicit copies."""
    rows = []
    for kind, way in ((Kind.COPY_TO_DEVICE, "to the device"), (Kind.COPY_TO_HOST, "to the host"),
                      (Kind.COPY, "on the device")):  # fmt: skip
        some = analysis.rows_of(kind)
        if len(some):
            rows.append(
                {
                    "way": way,
                    "bytes": int(analysis.events["bytes"][some].sum()),
                    "copies": int(analysis.events["rows"][some].sum()),
                    "seconds": int(analysis.events["duration"][some].sum()) / 1e9,
                }
            )
    return Table(
        name="copies",
        title="Explicit copies",
        columns=(
            Column("way", "direction", "text"),
            Column("bytes", "bytes", "bytes"),
            Column("copies", "copies"),
            Column("seconds", "seconds", "seconds"),
        ),
        rows=tuple(rows),
        evidence=evidence(analysis.session, "kernel"),
        about="Copies and fills issued by the program; they migrate no page.",
    )
