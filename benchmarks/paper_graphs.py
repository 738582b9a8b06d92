"""Stand-ins for the graphs of papers on changing graphs: their vertices, arcs and degrees.

The originals are collections' (DIMACS10, SuiteSparse, Network Repository) and are not here. A
stand-in has as many vertices, and degrees of the same mean and deviation up to the same maximum;
where a paper gives no deviation, it follows from the maximum. Neighbours have ids nearby, as in the
originals, which are roads, meshes, matrices and groups of authors.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log, sqrt
from statistics import NormalDist
from typing import Any

import numpy as np

from louvain_um.graph.graph import Graph

NEARBY = 16
"""How far ids of neighbours may be, in multiples of the larger of the degree and the mean."""


@dataclass(frozen=True, slots=True)
class PaperGraph:
    """A graph as a paper's table describes it; `arcs` are both directions, `deviation` may lack."""

    name: str
    paper: str
    vertices: int
    arcs: int
    deviation: float | None
    max_degree: int

    @property
    def mean(self) -> float:
        """Arcs per vertex."""
        return self.arcs / self.vertices

    def degrees(self, rng: Any, xp: Any = np) -> Any:
        """Return a degree for each vertex, int64."""
        n, mean, deviation = self.vertices, self.mean, self.deviation
        drawn = rng.standard_normal(n)
        if deviation is not None and deviation < mean / 2:
            drawn = mean + deviation * drawn
        else:
            # The logarithm is normal: its spread follows from the deviation, or from the largest.
            if deviation is not None:
                spread = sqrt(log(1 + (deviation / mean) ** 2))
            else:
                far = NormalDist().inv_cdf(1 - 1 / n)
                spread = far - sqrt(max(0.0, far**2 - 2 * log(self.max_degree / mean)))
            drawn = xp.exp(log(mean) - spread**2 / 2 + spread * drawn)
        drawn = xp.clip(drawn, 1, self.max_degree)
        # Rounded by chance, and scaled to what clipping took or gave.
        drawn *= self.arcs / drawn.sum()
        found = xp.minimum((drawn + rng.random(n)).astype(np.int64), self.max_degree)
        found[int(rng.integers(n))] = self.max_degree
        return found

    def edges(self, seed: int = 0, xp: Any = np) -> tuple[Any, Any]:
        """Return both ends of each edge, uint32; some edges may come twice.

        Made with `xp`, NumPy or CuPy: the law is the same, what is drawn is not.
        """
        rng = xp.random.default_rng(seed)
        degrees = self.degrees(rng, xp)
        ends = sources_of(xp, xp.cumsum(degrees))
        reach = NEARBY * xp.maximum(degrees, self.mean)[ends]
        places = ends - reach + 2 * reach * rng.random(len(ends))
        del degrees, reach
        ends = ends[xp.argsort(places)][: len(ends) // 2 * 2]
        u, v = ends[::2], ends[1::2]
        return u[u != v], v[u != v]

    def make(self, seed: int = 0) -> Graph:
        """Return the stand-in; loops and repeated edges that were drawn are left out."""
        return Graph.from_edges(*self.edges(seed), n_vertices=self.vertices)


def sources_of(xp: Any, row_ends: Any) -> Any:
    """Return the row that each arc is in, uint32, of rows that end there."""
    rows = xp.zeros(int(row_ends[-1]) + 1, np.int32)
    xp.add.at(rows, row_ends, 1)
    return xp.cumsum(rows[:-1], dtype=np.uint32)


def _table(paper: str, *rows: tuple[Any, ...]) -> list[PaperGraph]:
    return [PaperGraph(name, paper, *facts) for name, *facts in rows]


GRAPHS = {
    graph.name: graph
    for graph in (
        *_table(
            "ouroGraph",  # Winter's thesis, Table 6.1; has most of aimGraph's and faimGraph's
            ("luxembourg_osm", 114_599, 239_332, 0.41, 6),
            ("coAuthorsCiteseer", 227_320, 1_628_268, 10.63, 1372),
            ("coAuthorsDBLP", 299_067, 1_955_352, 9.82, 336),
            ("ldoor", 952_203, 46_522_475, 11.95, 77),
            ("audikw_1", 943_695, 77_651_847, 42.45, 345),
            ("delaunay_n20", 1_048_576, 6_291_372, 1.34, 23),
            ("rgg_n_2_20_s0", 1_048_576, 13_783_240, 3.63, 36),
            ("hugetric-00000", 5_824_554, 17_467_046, 0.03, 3),
            ("delaunay_n23", 8_388_608, 50_331_568, 1.34, 28),
            ("germany_osm", 11_548_845, 24_738_362, 0.53, 13),
            ("nlpkkt120", 3_542_400, 96_845_792, 3.09, 28),
            ("europe_osm", 50_912_018, 108_109_320, 0.48, 13),
        ),
        *_table(
            "GraphVine",  # Table 1
            ("co-papers-dblp", 540_000, 30_000_000, None, 3_000),
            ("co-papers-citeseer", 434_000, 32_000_000, None, 1_000),
            ("hugetrace-00020", 16_000_000, 48_000_000, None, 3),
            ("channel-500x100x100-b050", 5_000_000, 86_000_000, None, 18),
            ("delaunay_n24", 17_000_000, 100_000_000, 1.34, 26),
            ("rgg_n_2_24_s0", 17_000_000, 266_000_000, None, 40),
        ),
        *_table(
            "Marrow-Graph",  # Table 4.3, which counts edges
            ("belgium_osm", 1_400_000, 3_000_000, None, 10),
            ("roadNet-CA", 1_900_000, 5_400_000, None, 12),
            ("delaunay_n21", 2_100_000, 12_600_000, 1.34, 23),
            ("hollywood-2009", 1_100_000, 115_000_000, None, 11_500),
            ("road_usa", 23_900_000, 57_800_000, None, 9),
        ),
    )
}
"""By the originals' names. Of coAuthorsDBLP, Table 6.1 prints 229,067 vertices, by which the mean
degree next to it, 6.54, would be another."""
