"""Every kernel compiles for every generation of devices, which takes a compiler and no GPU."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from louvain_um.errors import DeviceUnavailableError, KernelCompileError
from louvain_um.gpu.runtime import compile, kernel_list, nvrtc

ARCHITECTURES = (75, 80, 90, 100)

ALL = bool(os.environ.get("LOUVAIN_UM_ALL_KERNELS"))
"""Whether every kernel is compiled with all types for all architectures: four times the work."""

JOBS = [(source, a) for source in sorted(kernel_list.CATALOGUE) for a in ARCHITECTURES]


@pytest.fixture(scope="module", autouse=True)
def _compiler() -> None:
    try:
        nvrtc.compiler()
    except DeviceUnavailableError as error:
        pytest.skip(error.reason)


def instantiations(source: str, architecture: int) -> list[str]:
    """Return every kernel: for all types on the newest architecture, in turns on the others.

    All pairs of both take minutes, and are compiled where that is asked for (`ALL`).
    """
    if ALL or architecture == ARCHITECTURES[-1]:
        return list(kernel_list.everything(source))
    turn, turns = ARCHITECTURES.index(architecture), len(ARCHITECTURES) - 1
    return [
        kernel_list.expression(kernel, types)
        for kernel, known in kernel_list.CATALOGUE[source].items()
        for types in (known[turn::turns] or known[:1])
    ]


def build(job: tuple[str, int]) -> nvrtc.Image:
    source, architecture = job
    target = compile.target(architecture)
    return compile.build(source, instantiations(source, architecture), target)


@pytest.fixture(scope="module")
def images() -> Iterator[Mapping[tuple[str, int], Future[nvrtc.Image]]]:
    """All jobs, done side by side."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        yield {job: pool.submit(build, job) for job in JOBS}
        pool.shutdown(cancel_futures=True)


@pytest.mark.parametrize("job", JOBS, ids=lambda job: f"{job[0]}-{job[1]}")
def test_kernels_compile(
    images: Mapping[tuple[str, int], Future[nvrtc.Image]], job: tuple[str, int]
) -> None:
    image = images[job].result()
    assert image.code.startswith(b"\x7fELF")
    assert sorted(image.names) == sorted(instantiations(*job))


def test_all_types_get_their_turn() -> None:
    for source in kernel_list.CATALOGUE:
        compiled = {name for a in ARCHITECTURES for name in instantiations(source, a)}
        assert compiled == set(kernel_list.everything(source))


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


@pytest.mark.parametrize("damage", [b"", b"{}\n", b"not json", b'{"sha256": "0", "names": {}}\nx'])
def test_a_damaged_kept_image_is_as_none(tmp_path: Path, damage: bytes) -> None:
    file = tmp_path / "deep" / "one.image"
    image = nvrtc.Image(b"\x7fELF\n code", {"a<u32>": "_Za"})
    assert compile.recall(file) is None
    compile.keep(file, image)
    assert compile.recall(file) == image
    assert [kept.name for kept in file.parent.iterdir()] == ["one.image"]
    file.write_bytes(damage)
    assert compile.recall(file) is None


def test_a_closed_cache_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    compile.keep(tmp_path / "file" / "one.image", nvrtc.Image(b"", {}))


def test_the_cache_goes_where_it_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LOUVAIN_UM_CACHE", str(tmp_path))
    assert compile.cache_folder() == tmp_path / "kernels"


def test_digests_follow_sources_types_and_architecture(tmp_path: Path) -> None:
    (tmp_path / "one.cu").write_text("// a")
    first = compile.digest("one", ["k"], "sm_75", tmp_path)
    assert first == compile.digest("one", ["k"], "sm_75", tmp_path)
    assert first != compile.digest("one", ["k<u32>"], "sm_75", tmp_path)
    assert first != compile.digest("one", ["k"], "sm_80", tmp_path)
    compile.sources.cache_clear()
    (tmp_path / "one.cu").write_text("// b")
    assert first != compile.digest("one", ["k"], "sm_75", tmp_path)
