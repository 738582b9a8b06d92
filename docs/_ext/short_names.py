"""Names in texts: `louvain` links to ``louvain_um.louvain``, and short ones stay on one line."""

from __future__ import annotations

from docutils import nodes

SHORT = 24
"""Characters of a word that any screen has room for."""


def resolve(app, env, node, contnode):
    """Return a link to the only object with this name; None if there are none or several."""
    if node.get("refdomain") != "py":
        return None
    domain = env.get_domain("py")
    wanted = node["reftarget"].removesuffix("()")
    found = [name for name in domain.objects if name.endswith(f".{wanted}")]
    if len(found) > 1:  # functions and classes take precedence over attributes
        found = [name for name in found if domain.objects[name].objtype in ("function", "class")]
    if len(found) != 1:
        return None
    entry = domain.objects[found[0]]
    link = nodes.reference("", "", contnode, internal=True)
    link["refuri"] = (
        app.builder.get_relative_uri(node["refdoc"], entry.docname) + f"#{entry.node_id}"
    )
    return link


def mark_short(app, doctree, name):
    """Give code without long words the class that keeps its words whole."""
    for code in doctree.findall(nodes.literal):
        if all(len(word) <= SHORT for word in code.astext().split()):
            code["classes"].append("short")


def setup(app):
    """Register the resolver and the class."""
    app.connect("missing-reference", resolve)
    app.connect("doctree-resolved", mark_short)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
