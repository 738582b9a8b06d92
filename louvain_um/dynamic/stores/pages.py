"""faimGraph: chained pages of 64 bytes; freed ones return through a ring queue.

A deletion moves the row's last entry into the gap, so that rows stay dense and a page that empties
is free for any row. Batches arrive sorted by row, as in its update for dense batches; a vertex is
removed by deleting the arcs of its row and their reverses. As published, a batch walks the pages of
each row that it touches: adding to a hub takes time in proportion to its row. (Winter, Mlakar,
Zayer, Seidel, Steinberger: faimGraph, SC 2018.)
"""

from __future__ import annotations

from typing import ClassVar

from louvain_um.cpu.dynamic.linked import DENSE
from louvain_um.dynamic.stores.linked import LinkedStore


class PagesStore(LinkedStore):
    """Chained pages of 15 targets and a link, reused in the order in which they were freed."""

    name: ClassVar[str] = "pages"
    width = 15
    policy: ClassVar[int] = DENSE
    link_bytes: ClassVar[int] = 4
    vertex_bytes: ClassVar[int] = 20


STORE = PagesStore
