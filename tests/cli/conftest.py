import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
import typer.main
import typer.testing
from typer.testing import CliRunner

from louvain_um.cli import app
from louvain_um.generators import lfr
from louvain_um.progress import COMPILING

FIELDS = {
    "graph", "policy", "oversubscription", "feasible", "seconds", "bytes_to_device",
    "bytes_to_host", "bytes_remote", "fault_groups", "evictions", "evidence",
}  # fmt: skip
"""Columns that every row of a sweep or simulation has."""

# A program makes its commands once; so do tests, which else would for each call, in 25 ms.
vars(typer.testing)["_get_command"] = cache(typer.main.get_command)


@dataclass
class Outcome:
    code: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)

    def complaint(self):
        """Return the error's line, checking that it is the only output."""
        assert self.out == ""
        ignored = ("note: ", COMPILING)
        lines = [line for line in self.err.splitlines() if not line.startswith(ignored)]
        assert len(lines) == 1, self.err
        assert lines[0].startswith("louvain-um: ")
        assert "bug" not in lines[0]
        return lines[0]


Run = Callable[..., Outcome]


@pytest.fixture
def run():
    def call(*arguments, stdin=None):
        result = CliRunner().invoke(app, [str(a) for a in arguments], input=stdin)
        return Outcome(result.exit_code, result.stdout, result.stderr)

    return call


@pytest.fixture(scope="session")
def source(tmp_path_factory):
    graph = lfr(2000, seed=2).graph
    path = tmp_path_factory.mktemp("graphs") / "small.txt"
    ends = np.repeat(np.arange(graph.n_vertices), np.diff(graph.offsets))
    keep = ends < graph.targets
    np.savetxt(path, np.stack([ends[keep], graph.targets[keep]], axis=1), fmt="%d")
    return path


@pytest.fixture
def two_triangles(tmp_path):
    path = tmp_path / "friends.csv"
    pairs = "ann,bob bob,cid cid,ann dan,eve eve,fay fay,dan ann,dan"
    path.write_text("source,target\n" + "\n".join(pairs.split()) + "\n")
    return path
