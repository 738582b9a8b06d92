from __future__ import annotations

from pathlib import Path

import pytest

from louvain_um.errors import GraphFormatError
from louvain_um.formats.labels import read_labels

CLU = """# v2.16.0
# node_id module flow
3 1 0.214286
1 1 0.142857
4 2 0.214286
"""
TREE = """# path flow name node_id
1:1:1 0.2 "ann" 3
1:2:1 0.1 "bob c" 1
2:1 0.2 "4" 4
*Links undirected
*Links root 0 0 2 1
1 2 0.07
"""


@pytest.mark.parametrize("suffix", ["clu", "tree", "ftree"])
def test_top_modules_are_read(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"g.{suffix}"
    path.write_text(CLU if suffix == "clu" else TREE)
    found = read_labels(path)
    expected = [3, 1, 4] if suffix == "clu" else ["ann", "bob c", "4"]
    assert found.vertices.tolist() == expected
    assert found.communities.tolist() == [1, 1, 2]


def test_numeric_names_are_ids(tmp_path: Path) -> None:
    path = tmp_path / "g.tree"
    path.write_text('1:1 0.5 "7" 0\n2:1 0.5 "9" 1\n')
    assert read_labels(path).vertices.tolist() == [7, 9]


@pytest.mark.parametrize(
    ("name", "text", "where"),
    [("g.clu", "# x\n1 2 3 4\n", ":2:"), ("g.tree", "1:1 0.5 ann 3\n", ":1:"),
     ("g.tree", "1 0.5 \"ann\" 3\n", ":1:"), ("g.clu", "# nothing\n", "contains no modules"),
     ("g.clu", "1 1 0.5\n1 2 0.5\n", "listed more than once")],
)  # fmt: skip
def test_other_lines_are_errors(tmp_path: Path, name: str, text: str, where: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(GraphFormatError) as caught:
        read_labels(path)
    assert where in str(caught.value)
