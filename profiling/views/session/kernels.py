"""Kernels and plain copies: what the program itself asked for."""

from __future__ import annotations

import re

import numpy as np

from louvain_um.profiling.session.events import Kind
from louvain_um.profiling.views.session.analysis import SessionAnalysis
from louvain_um.profiling.views.session.evidence import evidence
from louvain_um.profiling.views.session.traffic import first_rows
from louvain_um.profiling.views.table import Column, Table

LONG = 48
"""Letters of a kernel's name that a table shows whole."""


def short(name: str) -> str:
    """Return a kernel's name without what makes those of templates fill a page.

    Examples
    --------
    >>> from louvain_um.profiling.views.session.kernels import short
    >>> short("cub::detail::radix_sort::Histogram<cub::Policy<long, int>, (cub::Order)0, long>")
    'cub::Histogram<…>'
    >>> short("move<Weights8, unsigned int>")
    'move<Weights8, unsigned int>'
    """
    if len(name) <= LONG:
        return name
    bare, before = name, ""
    while bare != before:
        before, bare = bare, re.sub(r"\([^()]*\)", "", re.sub(r"<[^<>]*>", "\0", bare))
    parts = bare.removeprefix("void ").split("::")
    told = parts[0] if len(parts) == 1 else f"{parts[0]}::{parts[-1]}"
    told = re.sub("\0+", "<…>", told).strip()
    return told if len(told) <= LONG else f"{told[: LONG - 1]}…"


def kernels(analysis: SessionAnalysis) -> Table:
    """Return launches and time of each kernel, the costliest first."""
    rows = analysis.of(Kind.KERNEL)
    rows = rows[analysis.events["kernel"][rows] >= 0]
    which = analysis.events["kernel"][rows]
    size = len(analysis.events.kernels)
    launches = np.bincount(which, analysis.events["rows"][rows], size)
    spent = np.bincount(which, analysis.events["duration"][rows], size) / 1e9
    whole = float(spent.sum())
    order = np.argsort(-spent, kind="stable")
    found = [
        {
            "kernel": short(analysis.events.kernels[at]),
            "whole": analysis.events.kernels[at],
            "launches": int(launches[at]),
            "seconds": float(spent[at]),
            "each": float(spent[at] / launches[at]),
            "share": float(spent[at] / whole) if whole else None,
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
            Column("each", "a launch", "seconds"),
            Column("share", "of all kernels", "share"),
        ),
        evidence=evidence(analysis.session, "kernel"),
        **first_rows(found, "Time in a kernel holds the time that it waits for pages."),
    )


def copies(analysis: SessionAnalysis) -> Table:
    """Return what the program copied by name."""
    rows = []
    for kind, way in ((Kind.COPY_TO_DEVICE, "to the device"), (Kind.COPY_TO_HOST, "to the host"),
                      (Kind.COPY, "on the device")):  # fmt: skip
        some = analysis.of(kind)
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
        title="Plain copies",
        columns=(
            Column("way", "way", "text"),
            Column("bytes", "bytes", "bytes"),
            Column("copies", "copies"),
            Column("seconds", "seconds", "seconds"),
        ),
        rows=tuple(rows),
        evidence=evidence(analysis.session, "kernel"),
        about="Copies and fills that the program asked for by name; no page moved home.",
    )
