"""What is compiled without a GPU; `compiled_units` compiles all kernels of the engine."""

import pytest

from louvain_um.algorithms.expressions import Expression
from louvain_um.errors import DeviceUnavailableError, KernelCompileError
from louvain_um.gpu.runtime import compile_cache, kernel_list, nvrtc
from tests.gpu_host.compiled_units import ARCHITECTURES, UNITS, note


@pytest.fixture(scope="module", autouse=True)
def _compiler():
    try:
        nvrtc.compiler()
    except DeviceUnavailableError as error:
        pytest.skip(error.reason)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_expressions_of_users_compile(architecture):
    along = Expression("min(x // max(w, 1), y % 7) if u != v else -x", tuple("uvwxy"), "along")
    condition = Expression("not a or 3 < a <= v", ("a", "v"), "condition")
    target = compile_cache.target(architecture)
    for source, name, text in (
        ("along", "combine_along<u64, Least>", along.cuda()),
        ("keep", "keep", condition.cuda(a="arrays[0][v]")),
    ):
        image = compile_cache.cached_image(
            source, [name], target, front=f"#define EXPRESSION {text}\n"
        )
        assert list(image.names) == [name]


def test_units_cover_every_kernel():
    for source in kernel_list.CATALOGUE:
        compiled = [
            name
            for unit, types in UNITS
            if unit == source
            for name in kernel_list.together(source, types)
        ]
        assert sorted(compiled) == sorted(kernel_list.everything(source))


def test_a_note_is_of_all_that_is_compiled(monkeypatch):
    before = note("bfs", 80), note("move", 80)
    assert note("bfs", 75) != before[0]
    files = {
        **compile_cache.sources(),
        "grid.cuh": compile_cache.sources()["grid.cuh"] + "// changed\n",
    }
    with monkeypatch.context() as patch:
        patch.setattr(compile_cache, "sources", lambda _: files)
        assert note("bfs", 80) != before[0], "a header changed"
    with monkeypatch.context() as patch:
        patch.setattr(compile_cache, "OPTIONS", (*compile_cache.OPTIONS, "--maxrregcount=64"))
        assert note("bfs", 80) != before[0], "an option changed"
    kernels = {**kernel_list.CATALOGUE["move"], "more": ("u32, u32",)}
    with monkeypatch.context() as patch:
        patch.setattr(kernel_list, "CATALOGUE", {**kernel_list.CATALOGUE, "move": kernels})
        assert note("move", 80) != before[1], "a kernel is new"
        assert note("bfs", 80) == before[0]


def test_every_source_is_in_the_catalogue():
    assert {file.stem for file in compile_cache.FOLDER.rglob("*.cu")} == set(kernel_list.CATALOGUE)


def test_an_error_names_file_and_line(tmp_path):
    (tmp_path / "bad.cu").write_text('#include "rules.cuh"\n__global__ void bad() { nothing; }\n')
    with pytest.raises(KernelCompileError, match=r"bad\.cu\(2\).*nothing"):
        compile_cache.build("bad", ["bad"], compile_cache.target(75), tmp_path)


def test_a_younger_device_gets_code_of_its_generation_or_ptx():
    assert compile_cache.target(91) == "--gpu-architecture=sm_90"
    assert compile_cache.target(999).startswith("--gpu-architecture=compute_")
    with pytest.raises(DeviceUnavailableError, match=r"compute capability 2\.0"):
        compile_cache.target(20)
