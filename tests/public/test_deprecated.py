from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import pytest

from louvain_um import deprecated


@pytest.mark.parametrize("old", deprecated.MODULES)
def test_old_modules_are_the_new_ones_with_a_warning(old):
    current = import_module(deprecated.MODULES[old])
    sys.modules.pop(old, None)
    with pytest.warns(DeprecationWarning, match=deprecated.MODULES[old]):
        found = import_module(old)
    name = next(name for name in vars(current) if not name.startswith("_"))
    assert getattr(found, name) is getattr(current, name)
    assert set(dir(current)) <= set(dir(found))
    with pytest.raises(AttributeError):
        _ = found.nothing_of_that_name


@pytest.mark.parametrize("old", deprecated.NAMES)
def test_old_names_are_the_new_ones_with_a_warning(old):
    module, _, name = old.partition(":")
    home, _, now = deprecated.NAMES[old].partition(":")
    with pytest.warns(DeprecationWarning, match=now) as caught:
        label = getattr(import_module(module), name)
    assert label is getattr(import_module(home), now)
    assert caught[0].filename == __file__


def test_the_warning_points_at_the_line_that_imports(tmp_path):
    script = tmp_path / "user.py"
    script.write_text("from louvain_um.comparison import compare\n")
    done = subprocess.run(
        [sys.executable, "-W", "always", script], capture_output=True, text=True, check=True
    )
    assert "user.py:1: DeprecationWarning" in done.stderr


def test_finding_old_names_costs_little():
    """Until signals are handled, Ctrl-C during `import louvain_um` shows a traceback."""
    code = (
        "import sys; before = set(sys.modules); import louvain_um\n"
        "print(*(name for name in ('importlib.abc', 'tempfile', 'inspect') "
        "if name in sys.modules and name not in before))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
