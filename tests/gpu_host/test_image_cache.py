"""Compiled kernels on disk: found again, never trusted blindly, never the reason for a failure."""

from __future__ import annotations

from pathlib import Path

import pytest

from louvain_um.errors import DeviceUnavailableError
from louvain_um.gpu.runtime import image_cache, images, nvrtc

IMAGE = nvrtc.Image(b"\x7fELF\n code", {"a<u32>": "_Za"})


@pytest.mark.parametrize("damage", [b"", b"{}\n", b"not json", b'{"sha256": "0", "names": {}}\nx'])
def test_a_damaged_image_is_a_miss(tmp_path: Path, damage: bytes) -> None:
    file = tmp_path / "deep" / "one.image"
    assert image_cache.load(file) is None
    image_cache.save(file, IMAGE)
    assert image_cache.load(file) == IMAGE
    assert [entry.name for entry in file.parent.iterdir()] == ["one.image"]
    file.write_bytes(damage)
    assert image_cache.load(file) is None


def test_a_closed_cache_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    closed = tmp_path / "file" / "one.image"
    image_cache.save(closed, IMAGE)
    assert image_cache.load(closed) is None
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_the_cache_goes_where_it_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LOUVAIN_UM_CACHE", str(tmp_path))
    assert image_cache.cache_folder() == tmp_path / "kernels"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of sources, with a cache of its own."""
    try:
        nvrtc.compiler()
    except DeviceUnavailableError as error:
        pytest.skip(error.reason)
    monkeypatch.setenv("LOUVAIN_UM_CACHE", str(tmp_path / "cache"))
    (tmp_path / "one.cu").write_text('#include "two.cuh"\n__global__ void k() {}\n')
    (tmp_path / "two.cuh").write_text('#include "rules.cuh"\n')
    (tmp_path / "other.cuh").write_text("// a")
    return tmp_path


def test_digests_follow_sources_types_and_architecture(folder: Path) -> None:
    def digest(name: str = "k", architecture: str = "sm_75") -> str:
        images.sources.cache_clear()
        return images.digest("one", [name], architecture, folder)

    first = digest()
    assert first == digest()
    assert first != digest("k<u32>")
    assert first != digest(architecture="sm_80")
    (folder / "other.cuh").write_text("// b")
    assert first == digest()
    (folder / "two.cuh").write_text('#include "rules.cuh"\n// b\n')
    second = digest()
    assert first != second
    (folder / "one.cu").write_text('#include "two.cuh"\n__global__ void k() {} // b\n')
    assert digest() not in (first, second)


def test_what_was_compiled_once_is_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = images.cached_image("one", ["k"], images.target(75), folder)
    monkeypatch.setattr(images, "build", None)
    assert images.cached_image("one", ["k"], images.target(75), folder) == first
