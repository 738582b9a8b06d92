"""The examples in docstrings run and print what they say."""

import doctest
import importlib
from pathlib import Path

import pytest

import louvain_um

ROOT = Path(louvain_um.__file__).parent
FOLDERS = [each for each in ROOT.iterdir() if each.is_dir()]  # ** follows no links
MODULES = [
    ".".join(path.relative_to(ROOT.parent).with_suffix("").parts).removesuffix(".__init__")
    for path in sorted({*ROOT.glob("*.py"), *(p for each in FOLDERS for p in each.rglob("*.py"))})
    if ">>> " in path.read_text(encoding="utf-8")
]


def test_every_package_has_examples() -> None:
    assert {"placement", "profiling", "formats"} <= {name.split(".")[1] for name in MODULES}


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = importlib.import_module(name)
    monkeypatch.chdir(tmp_path)
    failed, tried = doctest.testmod(
        module, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    )
    assert tried
    assert not failed
