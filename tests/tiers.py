"""Which tests a run takes: without ``-m``, ``-k`` or a file's name, only the fast tier.

Tests marked with the name of another tier run if ``-m`` selects them, with ``--all``, or if the
arguments name their file. Where processes share a run, the first one decides for all.
"""

import os
from typing import Final

TIERS: Final = {
    "site": "builds pages, runs notebooks or a browser",
    "system": "starts many processes: Dask, MPI, endings, crashes",
    "deep": "many random cases, large grids of emulated kernels",
    "records": "compares pages with recorded measurements, or tests what measures",
}
"""Tiers that a plain run leaves out."""

EXAMPLES: Final = int(os.environ.get("LOUVAIN_UM_TEST_EXAMPLES", "1"))
"""Random cases of the slowest tests, as a multiple of those that `.ci/run` takes."""


def pytest_addoption(parser):
    """Let a run take every tier."""
    parser.addoption("--all", action="store_true", help="run the tests of every tier")


def pytest_configure(config):
    """Make the tiers known as markers; decide once whether a run takes all of them."""
    for name, meaning in TIERS.items():
        config.addinivalue_line("markers", f"{name}: {meaning}; a plain run leaves it out")
    option = config.option
    selected = option.keyword or option.markexpr or getattr(option, "lf", False)
    option.all = bool(option.all or selected or names_markers(config))


def pytest_ignore_collect(collection_path, config):
    """Leave out files without a test of the tiers that `-m` selects, which take long to import."""
    words = config.option.markexpr.split(" or ")
    if collection_path.name.startswith("test_") and TIERS.keys() >= set(words):
        text = collection_path.read_text(encoding="utf-8")
        return None if any(f"mark.{name}" in text for name in words) else True
    return None


def names_markers(config):
    """Return whether ``-m`` is among the arguments: an empty expression selects everything."""
    return any(str(argument).startswith("-m") for argument in config.invocation_params.args)


def pytest_collection_modifyitems(config, items):
    """Begin with the longest tests; leave out other tiers, except in files that are named."""
    items.sort(key=lambda item: item.get_closest_marker("site") is None)
    if config.option.all:
        return
    folder = config.invocation_params.dir
    named = {(folder / str(argument).partition("::")[0]).resolve() for argument in config.args}
    left = [item for item in items if is_left_out(item, named)]
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if not is_left_out(item, named)]


def is_left_out(item, named):
    """Return whether a test is of another tier and its file is not named."""
    return item.path not in named and any(item.get_closest_marker(tier) for tier in TIERS)
