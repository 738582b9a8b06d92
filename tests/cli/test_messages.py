"""Messages name options instead of Python arguments."""

from __future__ import annotations

import inspect

import pytest

from louvain_um.cli.messages import with_flags
from louvain_um.generators import GENERATORS


@pytest.mark.parametrize(
    ("python", "expected"),
    [
        ("no GPU is visible; use device='cpu'", "no GPU is visible; use --device cpu"),
        ("pass --force (force=True) to replace it", "pass --force to replace it"),
        ("header=False (--no-header) makes it an edge", "--no-header makes it an edge"),
        ("skip it with header=True (--header), or", "skip it with --header, or"),
        ("pass one_based=False (--zero-based) to", "pass --zero-based to"),
        ("pass weighted=False to read", "pass --unweighted to read"),
        ("read ids as names: ids='text'", "read ids as names: --ids text"),
        ("of another format (format=…)?", "of another format (--format …)?"),
        ("https://a.org/?page=True&x='y'", "https://a.org/?page=True&x='y'"),
    ],
)
def test_arguments_become_options(python, expected):
    assert with_flags(python) == expected


def test_errors_name_the_bad_option(run, two_triangles, tmp_path):
    refused = run("detect", two_triangles, "--max-level", "0").complaint()
    assert refused.endswith(": --max-level must be at least 1, not 0")
    refused = run("detect", two_triangles, "--device-budget", "0%").complaint()
    assert ": --device-budget must be" in refused
    out = tmp_path / "graph.txt"
    assert "--a must be a number" in run("generate", "rmat", "4", "--a", "2", "-o", out).complaint()


@pytest.mark.parametrize("kind", GENERATORS)
def test_positional_arguments_have_no_flag(kind, run, tmp_path):
    parameters = inspect.signature(GENERATORS[kind]).parameters.values()
    placed = [p.name for p in parameters if p.kind is not p.KEYWORD_ONLY]
    wrong = ["2x2x2x2" if name == "dims" else "-1" for name in placed]
    command = ("generate", kind, "-o", tmp_path / "graph.txt", "--", *wrong)
    assert f": {placed[0]} must be" in run(*command).complaint()


def test_errors_name_options(run, two_triangles, tmp_path, monkeypatch):
    out = tmp_path / "labels.csv"
    out.write_text("")
    refused = run("detect", two_triangles, "-o", out).complaint()
    assert refused.endswith("labels.csv: exists already; pass --force to replace it")
    assert "--resolution must be" in run("detect", two_triangles, "--resolution", "0").complaint()

    from louvain_um.gpu.runtime import device

    def no_driver():
        raise device.DeviceUnavailableError("no driver; install one or use device='cpu'")

    monkeypatch.setattr(device, "capabilities", no_driver)
    assert "use --device cpu" in run("detect", two_triangles, "--device", "cuda").complaint()
    assert run("doctor", "--json").json["gpu"]["reason"].endswith("use --device cpu")


def test_notes_name_options(run, tmp_path):
    path = tmp_path / "headed.txt"
    path.write_text("from to\n1 2\n2 3\n")
    message = run("detect", path).err
    assert "--no-header" in message
    assert "header=False" not in message
