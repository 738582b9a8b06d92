"""Read a graph from a source by name: a file, standard input or an example."""

from __future__ import annotations

import importlib

from louvain_um.errors import OptionError
from louvain_um.formats.file_types import (
    READERS,
    check_format,
    check_separator,
    format_of,
    format_of_content,
)
from louvain_um.formats.read_options import ReadOptions
from louvain_um.graph.graph import Graph


def read(name: str, format: str | None, options: ReadOptions) -> Graph:
    """Read a graph; `read_graph` documents the options."""
    from louvain_um.formats.examples import example, is_example
    from louvain_um.formats.graph_file import open_graph_file, refuse_missing

    check_format(format)
    if options.separator is not None:
        check_separator(options.separator)
    if options.ids not in ("auto", "number", "text"):
        raise OptionError("ids", options.ids, "must be 'auto', 'number' or 'text'")
    if is_example(name):
        from louvain_um.formats.objects.adapt import adapt

        return adapt(example(name), options)
    if name != "-":
        refuse_missing(name)
    kind = format or (None if name == "-" else format_of(name))
    with open_graph_file(name, trusted=options.trusted) as file:
        if kind in (None, "edges"):
            file.skip_byte_order_mark()
            guess = format_of_content(file.peek(64))
            kind = guess if kind is None or guess == "matrixmarket" else kind
        module, _, function = READERS[kind].partition(":")
        read = getattr(importlib.import_module(f"louvain_um.formats.{module}"), function)
        try:
            graph: Graph = read(file, options)
        except MemoryError:
            raise file.error(
                "needs more memory than available; check the number of vertices that it announces"
            ) from None
    return graph
