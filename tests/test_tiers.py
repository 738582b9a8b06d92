"""A plain run leaves tiers out; an expression, a word, a file's name or ``--all`` takes them."""

import re
import subprocess
import sys

import pytest

from tests.paths import ROOT
from tests.tiers import TIERS


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder of two files with a plain test and one of each tier, and of one without tiers."""
    found = tmp_path_factory.mktemp("tiers")
    (found / "pytest.ini").write_text("[pytest]\n")
    (found / "conftest.py").write_text(
        f"import sys\nsys.path.insert(0, {str(ROOT)!r})\npytest_plugins = ['tests.tiers']\n"
    )
    text = "import pytest\ndef test_plain(): pass\n"
    text += "".join(f"@pytest.mark.{tier}\ndef test_{tier}(): pass\n" for tier in TIERS)
    for name in ("one", "two"):
        (found / f"test_{name}.py").write_text(text)
    (found / "test_three.py").write_text("def test_plain(): pass\n")
    return found


RUNS = [
    ((), 3),
    ((".",), 3),
    (("-n", "1"), 3),
    (("-m", ""), 11),
    (("--all",), 11),
    (("-m", "site or deep"), 4),
    (("-k", "records"), 2),
    (("test_one.py",), 5),
    (("test_one.py::test_deep", "test_two.py::test_plain"), 2),
]

EACH = """
import sys, pytest
for arguments in {runs}:
    pytest.main(["-q", "-p", "no:cacheprovider", *arguments])
"""


@pytest.mark.system
def test_what_a_run_takes(folder):
    pytest.importorskip("xdist")
    code = EACH.format(runs=[arguments for arguments, _ in RUNS])
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    passed = [int(number) for number in re.findall(r"(\d+) passed", done.stdout)]
    assert passed == [number for _, number in RUNS], done.stdout + done.stderr
    assert "4 passed, 6 deselected" in done.stdout  # a file without the tiers is not imported
