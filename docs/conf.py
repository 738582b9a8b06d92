"""Sphinx configuration: builds these pages and the reference, without a network.

python3 run.py sphinx-build -W docs build/docs
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

import louvain_um

project = "louvain-um"
author = "the louvain-um developers"
version = release = louvain_um.__version__

# Copy buttons are left out where this package is missing.
OPTIONAL = [name for name in ("sphinx_copybutton",) if find_spec(name)]
extensions = [
    *OPTIONAL,
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "helptext",
    "records",
    "reading_rules",
    "short_names",
]
exclude_patterns = ["_ext"]

html_theme = "furo"
html_title = f"louvain-um {release}"
html_static_path = html_css_files = ["tables.css"]
html_show_sourcelink = False
html_show_copyright = False

# Headings down to the third can be linked to, as on GitHub.
myst_heading_anchors = 3
myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist"]

# Single backticks in docstrings are references.
default_role = "py:obj"
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # types are in the numpydoc sections
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
