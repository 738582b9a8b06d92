"""Every kernel compiles, which takes a compiler and no GPU.

Images go through the engine's own cache on disk, so that a second run compiles what has changed.
Each is a test of its own, so that pytest-xdist compiles side by side.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from louvain_um.algorithms.expressions import Expression
from louvain_um.errors import DeviceUnavailableError, KernelCompileError
from louvain_um.gpu.runtime import compile, kernel_list, nvrtc

ALL = bool(os.environ.get("LOUVAIN_UM_ALL_KERNELS"))
"""Whether kernels are compiled for all generations of devices, as `.ci/run` does: takes longer."""

ARCHITECTURES = (75, 80, 90, 100) if ALL else (90,)

UNITS = [
    (source, types)
    for source, kernels in sorted(kernel_list.CATALOGUE.items())
    for types in dict.fromkeys(types for known in kernels.values() for types in known)
]
"""Source and types: the kernels that are compiled together, and cached as one image."""

JOBS = [(source, types, architecture) for architecture in ARCHITECTURES for source, types in UNITS]


@pytest.fixture(scope="module", autouse=True)
def _compiler() -> None:
    try:
        nvrtc.compiler()
    except DeviceUnavailableError as error:
        pytest.skip(error.reason)


@pytest.mark.parametrize("job", JOBS, ids=lambda job: "-".join(map(str, job)))
def test_kernels_compile(job: tuple[str, str, int]) -> None:
    source, types, architecture = job
    names = kernel_list.together(source, types)
    image = compile.cached_image(source, names, compile.target(architecture))
    assert image.code.startswith(b"\x7fELF")
    assert sorted(image.names) == sorted(names)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_expressions_of_users_compile(architecture: int) -> None:
    along = Expression("min(x // max(w, 1), y % 7) if u != v else -x", tuple("uvwxy"), "along")
    condition = Expression("not a or 3 < a <= v", ("a", "v"), "condition")
    target = compile.target(architecture)
    for source, name, text in (
        ("along", "combine_along<u64, Least>", along.cuda()),
        ("keep", "keep", condition.cuda(a="arrays[0][v]")),
    ):
        image = compile.written_image(source, name, target, f"#define EXPRESSION {text}\n")
        assert list(image.names) == [name]


def test_units_cover_every_kernel() -> None:
    for source in kernel_list.CATALOGUE:
        compiled = [
            name
            for unit, types in UNITS
            if unit == source
            for name in kernel_list.together(source, types)
        ]
        assert sorted(compiled) == sorted(kernel_list.everything(source))


def test_every_source_is_in_the_catalogue() -> None:
    assert {file.stem for file in compile.FOLDER.rglob("*.cu")} == set(kernel_list.CATALOGUE)


def test_an_error_names_file_and_line(tmp_path: Path) -> None:
    (tmp_path / "bad.cu").write_text('#include "rules.cuh"\n__global__ void bad() { nothing; }\n')
    with pytest.raises(KernelCompileError, match=r"bad\.cu\(2\).*nothing"):
        compile.build("bad", ["bad"], compile.target(75), tmp_path)


def test_a_younger_device_gets_code_of_its_generation_or_ptx() -> None:
    assert compile.target(91) == "--gpu-architecture=sm_90"
    assert compile.target(999).startswith("--gpu-architecture=compute_")
    with pytest.raises(DeviceUnavailableError, match=r"compute capability 2\.0"):
        compile.target(20)
