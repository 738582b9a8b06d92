"""A directive that inserts tables of the readers: roles of columns, or formats and suffixes."""

from __future__ import annotations

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList


class ReadingRules(Directive):
    """Inserts the table named by its argument: ``roles`` or ``formats``."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the table."""
        from louvain_um.formats.column_roles import RULES
        from louvain_um.formats.file_types import READERS, SUFFIXES

        if self.arguments[0] == "roles":
            head = ("a column or attribute is", "by its name", "or else", "and then is")
            rows = [tuple(rule) for rule in RULES]
        else:
            head = ("format", "suffixes")
            rows = [
                (f"`{name}`", " ".join(f"`{s}`" for s, kind in SUFFIXES.items() if kind == name))
                for name in READERS
            ]
        lines = [f"| {' | '.join(row)} |" for row in (head, ("---",) * len(head), *rows)]
        node = nodes.container()
        self.state.nested_parse(StringList(lines, "rules"), self.content_offset, node)
        return node.children


def setup(app):
    """Register the directive."""
    app.add_directive("reading-rules", ReadingRules)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
