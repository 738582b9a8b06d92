"""A directive that inserts the output of ``louvain-um COMMAND --help``."""

from __future__ import annotations

from docutils import nodes
from docutils.parsers.rst import Directive


class HelpText(Directive):
    """Inserts the help of the command named by its arguments."""

    optional_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        """Return the help as a literal block."""
        from typer.testing import CliRunner

        from louvain_um.cli import app

        words = self.arguments[0].split() if self.arguments else []
        done = CliRunner().invoke(app, [*words, "--help"], prog_name="louvain-um")
        if done.exit_code:
            raise self.error(f"louvain-um {' '.join(words)} --help failed: {done.output}")
        block = nodes.literal_block(done.output, done.output.rstrip())
        block["language"] = "text"
        return [block]


def setup(app):
    """Register the directive."""
    app.add_directive("helptext", HelpText)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
