from __future__ import annotations

import subprocess
import sys

import louvain_um as lu

PUBLIC = """
import louvain_um as lu
lu.Graph, lu.louvain, lu.plan, lu.profile
import louvain_um.placement, louvain_um.formats
print(*(name for name in dir(lu) if not name.startswith("__")))
"""


def test_completion_offers_public_names_only() -> None:
    done = subprocess.run([sys.executable, "-c", PUBLIC], capture_output=True, text=True)
    assert done.stdout.split() == sorted(lu.__all__), done.stderr


def test_every_public_name_is_there_and_documented() -> None:
    assert "__version__" in dir(lu)
    for name in lu.__all__:
        assert getattr(lu, name).__doc__, name


def test_packages_that_the_guide_names_need_no_import_of_their_own() -> None:
    code = (
        "import louvain_um as lu; print(lu.dynamic.ouroboros.VARIANTS[0], lu.generators.__name__)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.split() == ["s-p", "louvain_um.generators"], done.stderr
