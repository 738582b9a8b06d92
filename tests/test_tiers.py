"""A plain run leaves tiers out; an expression, a word, a file's name or ``--all`` takes them."""

import subprocess
import sys

import pytest

from tests.paths import ROOT
from tests.tiers import TIERS


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder of two files with a plain test, and one of each tier."""
    found = tmp_path_factory.mktemp("tiers")
    (found / "pytest.ini").write_text("[pytest]\n")
    (found / "conftest.py").write_text(
        f"import sys\nsys.path.insert(0, {str(ROOT)!r})\npytest_plugins = ['tests.tiers']\n"
    )
    text = "import pytest\ndef test_plain(): pass\n"
    text += "".join(f"@pytest.mark.{tier}\ndef test_{tier}(): pass\n" for tier in TIERS)
    for name in ("one", "two"):
        (found / f"test_{name}.py").write_text(text)
    return found


@pytest.mark.system
@pytest.mark.parametrize(
    ("arguments", "passed"),
    [
        ((), 2),
        ((".",), 2),
        (("-n", "2"), 2),
        (("-m", ""), 10),
        (("--all",), 10),
        (("-m", "site or deep"), 4),
        (("-k", "records"), 2),
        (("test_one.py",), 5),
        (("test_one.py::test_deep", "test_two.py::test_plain"), 2),
    ],
)
def test_what_a_run_takes(folder, arguments, passed):
    if "-n" in arguments:
        pytest.importorskip("xdist")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert f"{passed} passed" in done.stdout, done.stdout + done.stderr
