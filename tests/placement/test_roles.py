"""Placement decides by an array's role and level: no array's name appears in it."""

import ast
from pathlib import Path

import louvain_um.placement
from louvain_um.gpu.memory.array_specs import declare, declare_out_of_core
from louvain_um.gpu.memory.shape import Shape

SHAPES = [
    Shape(vertices=n, arcs=m, weight_bytes=w, loops=True, method=method, sorted_rows=False)
    for n, m in ((100, 400), (1 << 22, 1 << 26))
    for w in (0, 4)
    for method in ("louvain", "leiden")
]

WORDS = {"aggregate", "offsets", "targets", "blocks", "refined"}
"""Names that are words of other things, too: stages, keys of a plan's JSON, roles."""


def names():
    declared = {a.name for shape in SHAPES for a in (*declare(shape), *declare_out_of_core(shape))}
    stems = {name.partition(".")[0] for name in declared}
    return declared | stems


def strings(file):
    """Yield the strings of a module but for its documentation."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    said = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in said:
            yield node


def roles_compared(file):
    """Yield the ids of strings that are compared with a role, or looked up by one."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Compare) and "role" in ast.unparse(node.left):
            yield from (c.value for c in ast.walk(node) if isinstance(c, ast.Constant))


def test_no_name_of_an_array_is_in_placement():
    known = names()
    assert {"labels", "targets.0", "hub_keys", "coarse_scratch", "refined"} <= known
    for file in Path(louvain_um.placement.__file__).parent.rglob("*.py"):
        allowed = WORDS | set(roles_compared(file))
        found = {node.value for node in strings(file)} & known - allowed
        assert not found, f"{file}: {found}"
