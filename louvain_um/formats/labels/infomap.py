"""Files of Infomap: ``.clu`` (vertex, module, flow) and ``.tree`` (path, flow, name, vertex)."""

from __future__ import annotations

import re
from pathlib import Path

from louvain_um.errors import GraphFormatError
from louvain_um.formats.labels.columns import integers_or_texts
from louvain_um.results.comparison import Labels

SUFFIXES = (".clu", ".tree", ".ftree")

CLU = re.compile(r"(\d+)\s+(\d+)(?:\s+\S+)?\s*")
TREE = re.compile(r'(\d+(?::\d+)*):\d+\s+\S+\s+"(.*)"(?:\s+\d+)*\s*')


def read(path: str | Path, text: str) -> Labels:
    """Return the top modules in a file of Infomap; a vertex in several modules is an error."""
    pattern = CLU if Path(path).suffix.lower() == ".clu" else TREE
    vertices, modules = list[str](), list[str]()
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("*"):
            break  # links follow
        if not line.strip() or line.startswith("#"):
            continue
        found = pattern.fullmatch(line)
        if found is None:
            form = "node_id module flow" if pattern is CLU else 'path flow "name" node_id'
            raise GraphFormatError(f"is no line of Infomap ({form}); write it again", path, number)
        first, second = found[1], found[2]
        vertices.append(first if pattern is CLU else second)
        modules.append(second if pattern is CLU else first.partition(":")[0])
    if not vertices:
        raise GraphFormatError("contains no modules; let Infomap write it again", path)
    return Labels(integers_or_texts(vertices), integers_or_texts(modules))
