"""Whatever the system refuses, a command ends as if nothing had failed, or with one line."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import louvain_um as lu
from louvain_um.generators import lfr
from tests.paths import ROOT

COMPILER = shutil.which("cc") or shutil.which("gcc")

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="replaces glibc's functions"),
    pytest.mark.skipif(COMPILER is None, reason="needs a C compiler"),
]

SAMPLE = "5"
"""Faults of each kind, at most; without `--most`, `tests.faults.inject` takes all."""

COMMANDS = {
    "detect": ["detect", "GRAPH", "--method", "leiden", "-o", "OUT.csv"],
    "json": ["detect", "GRAPH", "--json"],
    "convert": ["convert", "GRAPH", "OUT.npz"],
    "profile": ["profile", "GRAPH", "-o", "OUT.npz"],
    "report": ["report", "SESSION", "-o", "OUT.html"],
}


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """A folder with the library that makes calls fail, a graph and a session."""
    folder = tmp_path_factory.mktemp("faults")
    source = Path(__file__).with_name("fault.c")
    subprocess.run(
        [str(COMPILER), "-shared", "-fPIC", "-O1", "-o", folder / "fault.so", source, "-ldl"],
        check=True,
    )
    graph = lfr(1500, seed=1).graph
    lu.write_graph(folder / "g.csv", graph)
    lu.profile(graph, device="cpu").save(folder / "session.npz")
    return folder


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("stay", [False, True], ids=["once", "from then on"])
def test_faults(inputs, tmp_path, name, stay):
    places = {"GRAPH": str(inputs / "g.csv"), "SESSION": str(inputs / "session.npz")}
    # What has no memory left from some point on cannot be expected to say so.
    kinds = "read,write,flush,rename,thread" if stay else "all"
    ran = subprocess.run(
        [sys.executable, "-m", "tests.faults.inject", "--most", SAMPLE, *(["--stay"] * stay),
         kinds, str(tmp_path / "work"), *(places.get(word, word) for word in COMMANDS[name])],
        cwd=ROOT,
        env={
            **os.environ,
            "LD_PRELOAD": str(inputs / "fault.so"),
            "LOUVAIN_UM_THREADS": "2",
            "PYTHONPATH": str(ROOT),
        },
        capture_output=True,
        text=True,
        timeout=500,
    )  # fmt: skip
    *problems, last = ran.stdout.splitlines() or [ran.stderr[-2000:]]
    assert problems == []
    assert json.loads(last)["faults"] >= 4
