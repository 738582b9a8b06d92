"""Louvain of this package with all arrays in managed memory."""

import louvain_um as lu
from louvain_um import generators

graph = generators.rmat(18).graph
for _ in range(5):
    found = lu.louvain(graph, device="cuda", memory="base")
print(found.n_communities, f"{found.modularity:.6f}")
