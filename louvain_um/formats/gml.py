"""GML: nested lists of keys and values."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import Any

from louvain_um.errors import shown
from louvain_um.formats.graph_file import GraphFile
from louvain_um.formats.networks import Network, from_file
from louvain_um.formats.read_options import ReadOptions
from louvain_um.graph.graph import Graph

TOKEN = re.compile(
    r"""[ \t\r\n]*(?:\#[^\n]*(?:\n|\Z)[ \t\r\n]*)*(?:
        (?P<key>[A-Za-z_][\w.-]*)|(?P<open>\[)|(?P<close>\])|"(?P<text>[^"]*)"
        |(?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|[+-]?(?:inf|nan)\b)|(?P<end>\Z)
    )""",
    re.VERBOSE | re.IGNORECASE,
)
"""One token; a word after a key is a value such as NaN, which programs write without quotes."""

DEEPEST = 64
"""Lists within lists that are read."""


def read(file: GraphFile, options: ReadOptions) -> Graph:
    """Read a GML file; vertices are named by their labels if these are unique."""
    return from_file(parsed(file), options)


def parsed(file: GraphFile) -> Network:
    """Return the network of a GML file."""
    try:
        text = file.read().decode("utf-8-sig")
        file.check_entries(text.count("["))
    except UnicodeDecodeError as error:
        raise file.error(
            f"is not UTF-8 text ({error.reason}); convert it (iconv -t utf-8)"
        ) from None
    network: Network | None = None
    graphs = 0
    for key, value in _items(file, text):
        if key == "graph" and isinstance(value, list):
            graphs += 1
            network = network or _network(file, value)
    if network is None:
        raise file.error("contains no graph of GML; write it again")
    if graphs > 1:
        network.notes.append(f"the first of {graphs} graphs in the file is read")
    return network


def _network(file: GraphFile, items: list[tuple[str, Any]]) -> Network:
    network = Network(directed=any(key == "directed" and value == 1 for key, value in items))
    lists = [(key, dict(value)) for key, value in items if isinstance(value, list)]
    for data in (data for key, data in lists if key == "node"):
        if "id" not in data:
            raise file.error("a node of the graph has no id; write the file again")
        if isinstance(data["id"], list):
            raise file.error("the id of a node is a list; write the file again")
        network.add_node(file, data["id"], {k: v for k, v in data.items() if k != "id"})
    for data in (data for key, data in lists if key == "edge"):
        ends = data.pop("source", None), data.pop("target", None)
        for end in ends:
            if isinstance(end, list) or end not in network.nodes:
                what = "an edge has no source or target" if end is None else f"no node {shown(end)}"
                raise file.error(f"{what}, which an edge needs; write the file again")
        network.add_edge(*ends, data)
    return network


def _items(file: GraphFile, text: str) -> list[tuple[str, Any]]:
    """Return the keys and values of a text, lists as lists of the same."""
    stack: list[list[tuple[str, Any]]] = [[]]
    keys: list[str] = []
    tokens = _tokens(file, text)
    for kind, value, at in tokens:
        if kind == "end" and len(stack) == 1:
            return stack[0]
        if kind == "close" and len(stack) > 1:
            found = stack.pop()
            stack[-1].append((keys.pop(), found))
            continue
        if kind != "key":
            problem = "ends within a list" if kind == "end" else "has a value without a key"
            raise file.error(
                f"is not valid GML ({problem}); write it again", text.count("\n", 0, at) + 1
            )
        inner, content, at = next(tokens)
        if inner == "open":
            if len(stack) > DEEPEST:
                raise file.error("is not valid GML (lists nested too deeply); write it again")
            keys.append(value)
            stack.append([])
        elif inner in ("text", "number", "key"):
            stack[-1].append((value, content))
        else:
            raise file.error(
                f"is not valid GML (key {value!r} has no value); write it again",
                text.count("\n", 0, at) + 1,
            )
    raise AssertionError("the last token ends the text")


def _tokens(file: GraphFile, text: str) -> Iterator[tuple[str, Any, int]]:
    place = 0
    while True:
        found = TOKEN.match(text, place)
        if found is None:
            line = text.count("\n", 0, place) + 1
            shown = text[place : place + 30].split("\n")[0].strip()
            raise file.error(f"is not valid GML (at {shown!r}); write it again", line)
        kind = str(found.lastgroup)
        value: Any = found[kind]
        if kind == "text":
            value = html.unescape(value)
        elif kind == "number":
            plain = value.lstrip("+-").isdigit() and len(value) < 4000
            value = int(value) if plain else float(value)
        yield kind, value, found.start(kind)
        place = found.end()
