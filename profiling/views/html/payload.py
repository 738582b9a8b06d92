"""Page × time maps in a page: one byte per cell, deflated, in base64, of bounded size."""

from __future__ import annotations

import base64
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from louvain_um.profiling.views.canvas import colour
from louvain_um.profiling.views.session.analysis import SessionAnalysis
from louvain_um.profiling.views.session.pages import Axis, Layer, differences, layers

ROOM = 3_600_000
"""Characters that the maps of a page may take, so that it stays below 5 MB."""

MOST_PHASES = 2000
LEVELS = 254
"""Steps of the logarithmic scale of a cell; 0 is empty."""

SHADES = 15
"""The same for cells whose upper four bits hold the kind."""

KINDS = {
    "HTOD-COHERENCE": "#f29d38", "HTOD-PREFETCH": "#f7dc6f", "HTOD-USER": "#56b4e9",
    "HTOD-EVICTION": "#b58863", "HTOD-ACCESS_COUNTERS": "#4db6ac", "HTOD-UNKNOWN": "#c0c7d0",
    "DTOH-EVICTION": "#ef4b4b", "DTOH-COHERENCE": "#e07be0", "DTOH-USER": "#8f7cf0",
    "DTOH-PREFETCH": "#f49ac1", "DTOH-ACCESS_COUNTERS": "#7cb342", "DTOH-UNKNOWN": "#90a4ae",
    "MORE": "#ef4b4b", "LESS": "#56b4e9",
}  # fmt: skip
"""Colours of migrations by way and cause, and of differences."""


def map_payload(
    analysis: SessionAnalysis, room: int = ROOM, *, other: SessionAnalysis | None = None
) -> dict[str, Any] | None:
    """Return the maps for the page's script, or how another session's differ; None if empty."""
    axis = Axis.of(analysis)
    drawn = layers(analysis, axis) if other is None else differences(analysis, other, axis)
    if not drawn:
        return None
    texts = [encoded(layer) for layer in drawn]
    while sum(map(len, texts)) > room:
        at = max(range(len(texts)), key=lambda each: len(texts[each]))
        if drawn[at].values.shape[1] < 64:
            break
        drawn[at] = halved(drawn[at])
        texts[at] = encoded(drawn[at])
    first, end = analysis.window
    return {
        "rows": axis.rows,
        "start": first,
        "end": end,
        "stripes": [
            [s.name, s.group, s.first, s.rows, s.step, s.nbytes, colour(s.group, 0)]
            for s in axis.stripes
        ],
        "phases": [
            [span.phase, span.level, span.start_ns, span.end_ns]
            for span in analysis.phases[:MOST_PHASES]
        ],
        "layers": [
            {
                "title": layer.title,
                "unit": layer.unit,
                "evidence": layer.evidence,
                "columns": layer.values.shape[1],
                "max": float(layer.values.max()),
                "names": layer.names,
                "colours": [KINDS.get(code, "#c0c7d0") for code in layer.codes],
                "data": text,
            }
            for layer, text in zip(drawn, texts, strict=True)
        ],
    }


def encoded(layer: Layer) -> str:
    """Return a layer's cells as text."""
    return base64.b64encode(_deflate(cells(layer).tobytes())).decode()


def cells(layer: Layer) -> NDArray[np.uint8]:
    """Return a byte for every cell: its value's logarithm, or kind (high half) and that."""
    steps = SHADES if layer.kinds is not None else LEVELS
    scale = steps / np.log1p(max(float(layer.values.max()), 1e-9))
    level = np.rint(np.log1p(layer.values) * scale)
    level = np.where(layer.values > 0, np.maximum(level, 1), 0).astype(np.uint8)
    if layer.kinds is None:
        return level
    drawn: NDArray[np.uint8] = np.where(level > 0, layer.kinds << 4 | level, 0).astype(np.uint8)
    return drawn


def halved(layer: Layer) -> Layer:
    """Return a layer with half the columns; a cell is of the kind of its larger half."""
    left, right = layer.values[:, ::2], layer.values[:, 1::2]
    kinds = layer.kinds
    if kinds is not None:
        kinds = np.where(left >= right, kinds[:, ::2], kinds[:, 1::2])
    return Layer(
        name=layer.name, title=layer.title, unit=layer.unit, evidence=layer.evidence,
        values=left + right, kinds=kinds, names=layer.names, codes=layer.codes,
    )  # fmt: skip


def _deflate(data: bytes) -> bytes:
    """Return data as browsers' "deflate-raw" reads it."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(data) + packer.flush()
