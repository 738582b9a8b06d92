"""No module of the package imports itself by way of others, lazily or for types."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.test_house import modules


def imported(tree: ast.AST, known: frozenset[str]) -> Iterator[str]:
    """Yield the modules that a file imports anywhere: at its top, in functions, for types."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                yield full if full in known else node.module


def circles(graph: dict[str, set[str]]) -> set[frozenset[str]]:
    """Return the sets of modules that reach each other (Tarjan's strongly connected components).

    A module that imports itself is a circle, too.
    """
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    result: set[frozenset[str]] = set()

    def visit(module: str) -> None:
        number[module] = low[module] = len(number)
        stack.append(module)
        for target in graph[module]:
            if target not in number:
                visit(target)
                low[module] = min(low[module], low[target])
            elif target in stack:
                low[module] = min(low[module], number[target])
        if low[module] == number[module]:
            at = stack.index(module)
            members = frozenset(stack[at:])
            del stack[at:]
            if len(members) > 1 or module in graph[module]:
                result.add(members)

    for module in graph:
        if module not in number:
            visit(module)
    return result


def test_no_module_imports_itself_by_way_of_others():
    files = dict(modules())
    known = frozenset(files)
    assert len(known) > 200
    graph = {
        module: set(imported(ast.parse(path.read_text("utf-8")), known)) & known
        for module, path in files.items()
    }
    left = circles(graph)
    text = "\n".join(
        f"{module} imports {', '.join(sorted(graph[module] & circle))}"
        for circle in left
        for module in sorted(circle)
    )
    assert not left, f"modules that import each other:\n{text}"


def test_circles_are_found_wherever_an_import_stands():
    sources = {
        "a": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from p import b\n",
        "p.b": "def f():\n    import c\n",
        "c": "from a import x\n",
        "d": "import a\n",
        "e": "from e import y\n",
    }
    known = frozenset(sources)
    graph = {name: set(imported(ast.parse(text), known)) & known for name, text in sources.items()}
    assert circles(graph) == {frozenset({"a", "p.b", "c"}), frozenset({"e"})}
