from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer.main
import typer.testing
from typer.testing import CliRunner

from louvain_um.cli import app
from louvain_um.cli.progress import COMPILING

# A program makes its commands once; so do tests, which else would for each call, in 25 ms.
vars(typer.testing)["_get_command"] = cache(typer.main.get_command)


@dataclass
class Outcome:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    def complaint(self) -> str:
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
def run() -> Run:
    def call(*arguments: str | Path, stdin: bytes | None = None) -> Outcome:
        result = CliRunner().invoke(app, [str(a) for a in arguments], input=stdin)
        return Outcome(result.exit_code, result.stdout, result.stderr)

    return call


@pytest.fixture
def two_triangles(tmp_path: Path) -> Path:
    """Two triangles of vertices, connected by one edge."""
    path = tmp_path / "friends.csv"
    pairs = "ann,bob bob,cid cid,ann dan,eve eve,fay fay,dan ann,dan"
    path.write_text("source,target\n" + "\n".join(pairs.split()) + "\n")
    return path
