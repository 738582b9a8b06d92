"""Libraries that only some formats need."""

from __future__ import annotations

import importlib
from types import ModuleType

from louvain_um.errors import GraphFormatError


def first_line_of(error: Exception) -> str:
    """Return the first line of an error's text, or its type if the text is empty."""
    return next(iter(str(error).splitlines()), "") or type(error).__name__


def require(module: str, file: str) -> ModuleType:
    """Import a library of the `formats` extra; the error says how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError:
        library = module.partition(".")[0]
        raise GraphFormatError(
            f"this format needs {library}; install it with pip install 'louvain-um[formats]'",
            file,
        ) from None
