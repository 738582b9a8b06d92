"""The operators of users as CUDA: expressions and kernels, emulated, give what NumPy gives."""

import ctypes
import shutil
import subprocess

import numpy as np
import pytest

import louvain_um as lu
from louvain_um.algorithms import operators
from louvain_um.algorithms.expressions import Expression
from louvain_um.generators import lfr, rmat
from louvain_um.gpu.runtime.compile_cache import FOLDER
from louvain_um.graph.row_view import RowView
from tests.algorithms.test_algorithms import Gapped
from tests.gpu_emulated.libraries import HERE, OPTIONS

pytestmark = pytest.mark.deep

NAMES = ("x", "y", "w")
TEXTS = (
    "x + 2 * y - 3", "x // 7 + y % 5", "x // -1", "x % -1", "y // x if x else -1", "x & y | 3 ^ w",
    "min(x, y, 4) - max(x, -y)", "-x if x < y <= 40 else ~y", "x > 3 and y > 3 or not x",
    "(x == y) + (x != 4)", "not not x", "w * w * w", "x < y < w < 100", "-(-x)", "True + x",
    "9223372036854775807 + w", "x // max(y, 1) % 3",
)  # fmt: skip
ALONG = "min(x + w, 3 * y) - (u % 5)"
CONDITION = "a > 4 and v % 3 != b"
WAYS = {"min": "Least", "max": "Most", "or": "Bits", "add": "Sum"}

SOURCE = """
#include "cuda.h"
#include "integers.cuh"
{functions}
#define EXPRESSION {along}
#include "along.cu"
#undef EXPRESSION
#define EXPRESSION {condition}
#include "keep.cu"
#include "common.cu"

template <class R>
using weight_type = std::remove_const_t<std::remove_pointer_t<decltype(R::weights)>>;

template <class C>
static void follow_any(int blocks, int bytes, const void* view, const u32* frontier, i64 items,
                       const i64* xs, const i64* ys, i64* into, u64* state) {{
  std::vector<i64> before(items + 1), partials(blocks);
  auto run = [&](auto rows) {{
    fibres::launch(blocks, [&] {{
      combine_along<weight_type<decltype(rows)>, C>(rows, frontier, items, xs, ys, into,
                                                   before.data(), partials.data(), state);
    }});
  }};
  if (bytes == 0) run(*(const RowView<Unweighted>*)view);
  if (bytes == 4) run(*(const RowView<u32>*)view);
  if (bytes == 8) run(*(const RowView<u64>*)view);
}}
#define FOLLOW(C)                                                                              \\
  extern "C" void follow_##C(int blocks, int bytes, const void* view, const u32* frontier,      \\
                             i64 items, const i64* xs, const i64* ys, i64* into, u64* state) {{ \\
    follow_any<C>(blocks, bytes, view, frontier, items, xs, ys, into, state);                   \\
  }}
FOLLOW(Least) FOLLOW(Most) FOLLOW(Bits) FOLLOW(Sum)
extern "C" void run_keep(const u32* frontier, i64 items, const i64* const* arrays, u32* kept,
                         u64* state) {{
  fibres::launch(2, [&] {{ keep(frontier, items, arrays, kept, state); }});
}}
extern "C" void run_common(const void* view, const u32* pairs, i64 count, i64* counts, i64* each) {{
  fibres::launch(2, [&] {{
    count_common(*(const RowView<Unweighted>*)view, pairs, count, counts, each);
  }});
}}
"""

EACH = """
extern "C" bool expression_{k}(const i64* xs, const i64* ys, const i64* ws, i64 n, i64* out) {{
  bool fault = false;
  for (i64 i = 0; i < n; ++i) {{
    const i64 x = xs[i], y = ys[i], w = ws[i];
    (void)x, (void)y, (void)w;
    out[i] = {text};
  }}
  return fault;
}}
"""

GRAPHS = {
    "plain": rmat(6, edge_factor=4, seed=3).graph,
    "weighted": lfr(120, weights="uniform", seed=3).graph,
    "wide": lu.Graph.from_edges([0, 1, 2, 3], [1, 2, 0, 3], [1 << 40, 3, 4, 9]),
}


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("no g++ here")
    folder = tmp_path_factory.mktemp("operators")
    for file in [*FOLDER.rglob("*.cu"), *FOLDER.rglob("*.cuh"), *HERE.glob("*.h")]:
        (folder / file.name).write_text(file.read_text())
    functions = "".join(
        EACH.format(k=k, text=Expression(text, NAMES, "along").cuda())
        for k, text in enumerate(TEXTS)
    )
    along = Expression(ALONG, ("u", "v", "w", "x", "y"), "along").cuda()
    condition = Expression(CONDITION, ("v", "a", "b"), "condition").cuda(
        a="arrays[0][v]", b="arrays[1][v]"
    )
    text = SOURCE.format(functions=functions, along=along, condition=condition)
    (folder / "operators.cpp").write_text(text)
    options = [option.replace("-O2", "-O1") for option in OPTIONS]
    command = [compiler, *options, f"-I{folder}", "operators.cpp", "-o", "operators.so"]
    made = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr[-3000:]
    return ctypes.CDLL(str(folder / "operators.so"))


def place(array):
    return ctypes.c_void_p(array.ctypes.data)


def view_of(rows):
    weights = 0 if rows.weights is None else rows.weights.ctypes.data
    fields = [rows.n_vertices, *(a.ctypes.data for a in (rows.begins, rows.ends, rows.targets))]
    return np.array([*fields, weights], np.int64)


@pytest.mark.parametrize("k", range(len(TEXTS)), ids=lambda k: TEXTS[k])
def test_expressions(library, k):
    rng = np.random.default_rng(k)
    ends = np.iinfo(np.int64)
    pool = np.array([ends.min, ends.max, -7, -1, 1, 2, 3, 5, 40, 41, 10**12])
    x, y, w = (rng.choice(pool, 400) for _ in range(3))
    out, function = np.zeros(400, np.int64), getattr(library, f"expression_{k}")
    function.restype = ctypes.c_bool
    arguments = [place(a) for a in (x, y, w)]
    assert not function(*arguments, ctypes.c_int64(400), place(out))
    expected = Expression(TEXTS[k], NAMES, "along").value(x=x, y=y, w=w)
    np.testing.assert_array_equal(out, np.asarray(expected).astype(np.int64))


@pytest.mark.parametrize("k", [TEXTS.index("y // x if x else -1"), TEXTS.index("x // 7 + y % 5")])
def test_a_divisor_of_zero_is_told_though_its_quotient_is_not_used(library, k):
    x, out = np.array([3, 0, 4]), np.zeros(3, np.int64)
    function = getattr(library, f"expression_{k}")
    function.restype = ctypes.c_bool
    divides = "// x" in TEXTS[k]
    assert function(place(x), place(x), place(x), ctypes.c_int64(3), place(out)) == divides


@pytest.mark.parametrize("gapped", [False, True])
@pytest.mark.parametrize("combine", WAYS)
@pytest.mark.parametrize("name", GRAPHS)
def test_advance(library, name, combine, gapped):
    graph = GRAPHS[name]
    rows = Gapped(graph).view() if gapped else RowView.of(graph)
    rng, n = np.random.default_rng(1), graph.n_vertices
    x, y = rng.integers(-9, 99, n), rng.integers(-9, 99, n)
    frontier = np.unique(rng.integers(0, n, n // 2 + 1)).astype(np.uint32)
    expected = rng.integers(-5, 5, n)
    found, state = expected.copy(), np.zeros(8, np.uint64)
    operators.advance(graph, frontier, along=ALONG, combine=combine, into=expected, x=x, y=y)
    getattr(library, f"follow_{WAYS[combine]}")(
        3, 0 if rows.weights is None else rows.weights.itemsize, place(view_of(rows)),
        place(frontier), ctypes.c_int64(len(frontier)), place(x), place(y), place(found),
        place(state),
    )  # fmt: skip
    np.testing.assert_array_equal(found, expected)
    assert state[1] == 0


def test_filter(library):
    rng = np.random.default_rng(2)
    frontier = np.arange(0, 100, 3, dtype=np.uint32)
    a, b = rng.integers(0, 9, 100), rng.integers(0, 3, 100)
    kept, state = np.zeros(len(frontier), np.uint32), np.zeros(8, np.uint64)
    places = np.array([a.ctypes.data, b.ctypes.data], np.int64)
    count = ctypes.c_int64(len(frontier))
    library.run_keep(place(frontier), count, place(places), place(kept), place(state))
    expected = operators.filter(frontier, CONDITION, a=a, b=b)
    np.testing.assert_array_equal(frontier[kept != 0], expected)


@pytest.mark.parametrize("name", GRAPHS)
def test_intersect(library, name):
    graph = GRAPHS[name]
    rng, n = np.random.default_rng(3), graph.n_vertices
    pairs = rng.integers(0, n, (300, 2)).astype(np.uint32)
    each, counts, found = np.zeros(n, np.int64), np.zeros(300, np.int64), np.zeros(n, np.int64)
    expected = operators.intersect(graph, pairs, each=each)
    rows = view_of(RowView.of(graph))
    count = ctypes.c_int64(300)
    library.run_common(place(rows), place(pairs), count, place(counts), place(found))
    np.testing.assert_array_equal(counts, expected)
    np.testing.assert_array_equal(found, each)
