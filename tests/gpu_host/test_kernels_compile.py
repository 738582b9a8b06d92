"""What is compiled without a GPU; `compiled_units` compiles all kernels of the engine."""

import numpy as np
import pytest
from numba import njit

from louvain_um.algorithms.functors import Cuda, Functor, taken
from louvain_um.errors import DeviceUnavailableError, KernelCompileError
from louvain_um.gpu.algorithms.functors import line_of, written
from louvain_um.gpu.algorithms.translation import UntranslatableError
from louvain_um.gpu.runtime import compile_cache, kernel_list
from tests.algorithms.user_functors import CASES, arguments_of, arithmetic, real_arithmetic
from tests.gpu_host.compiled_units import ARCHITECTURES, UNITS, note


@pytest.fixture(scope="module", autouse=True)
def _compiler():
    try:
        compile_cache.compiler()
    except DeviceUnavailableError as error:
        pytest.skip(error.reason)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_functors_of_users_compile(architecture):
    target = compile_cache.target(architecture)
    vertices = [np.zeros(1, kind) for kind in ("i8", "i8", "i8")]
    reals = [np.zeros(1, kind) for kind in ("i8", "f8", "f4", "f8", "f4")]
    given = [(case.function, arguments_of(case, 1), visiting("u64")) for case in CASES]
    given += [(arithmetic, vertices, "keep_items<Functor>")]
    given += [(real_arithmetic, reals, "keep_items<Functor>")]
    given += [(Cuda("return d[u] < w;", "d"), [np.zeros(1)], visiting("Unweighted"))]
    for function, arguments, name in given if architecture == 90 else given[-2:]:
        leading = ("v",) if name.startswith("keep") else ("u", "v", "w", "arc")
        front = text_of(function, leading, arguments)
        image = compile_cache.cached_image("operators", [name], target, front=front)
        assert list(image.names) == [name]


def visiting(weights):
    return f"visit_arcs<{weights}, RowView, Functor>"


def text_of(function, leading, arguments):
    return written(Functor.of("visit", leading, function, taken(tuple(arguments), np)))


def float_in_integers(u, v, w, arc, x):
    x[u] = 0.5


def power(u, v, w, arc, x):
    x[u] = w**2


def listed(u, v, w, arc, x):
    for i in (1, 2):
        x[u] += i


def stepped(u, v, w, arc, x):
    for i in range(0, 9, w):
        x[u] += i


def helped(u, v, w, arc, x):
    x[u] = helper(w)


helper = njit(lambda a: a)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (power, "line [0-9]+: no operator pow on a device"),
        (listed, r"loop over anything but range"),
        (stepped, "loop over anything but range"),
        (helped, r"no call of helper\(w\) on a device"),
        (lambda u, v, w, arc, x: print(u), r"no call of print\(u\)"),
        (lambda u, v, w, arc, x: (x[u], w)[0], "on a device"),
        (lambda u, v, w, arc, x: u < abs(v) < w, "amid a chain"),
        (lambda u, v, w, arc, x: x.sum(), "on a device"),
        (eval("lambda u, v, w, arc, x: w"), "its source is not found"),
    ],
)
def test_what_has_no_counterpart_is_named(function, message):
    with pytest.raises(UntranslatableError, match=message) as refused:
        text_of(function, ("u", "v", "w", "arc"), [np.zeros(1, np.int64)])
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (float_in_integers, "an array of integers takes no float"),
        (lambda u, v, w, arc, x: (x[u] and w) + 1, "and, or of numbers are conditions only"),
        (Cuda("return foo;", "x"), "foo"),
    ],
)
def test_what_the_compiler_refuses_is_one_line(function, message):
    front = text_of(function, ("u", "v", "w", "arc"), [np.zeros(1, np.int64)])
    name = visiting("u32")
    with pytest.raises(KernelCompileError, match=message) as refused:
        compile_cache.build("operators", [name], compile_cache.target(90), front=front)
    assert message in line_of(refused.value)


def test_units_cover_every_kernel():
    for source in kernel_list.CATALOGUE:
        compiled = [
            name
            for unit, types in UNITS
            if unit == source
            for name in kernel_list.together(source, types)
        ]
        assert sorted(compiled) == sorted(kernel_list.everything(source))


def test_what_a_large_level_leaves_out_is_an_image_of_its_own():
    for types in kernel_list.types_of("aggregate"):
        known = kernel_list.units(kernel_list.together("aggregate", types))
        assert kernel_list.unneeded(types) in known


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
