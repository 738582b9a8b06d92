"""Functors of users on a device: written in front of operators.cu, compiled once each.

Each function has a counterpart in `cpu.algorithms.functors`. Arrays are CuPy's.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any, Final

import numpy as np

from louvain_um.errors import KernelCompileError, OptionError
from louvain_um.gpu.algorithms.translation import Translation, UntranslatableError
from louvain_um.gpu.algorithms.workspace import CONTROL_WORDS, NULL, STATE_WORDS, KernelRows
from louvain_um.gpu.runtime.launch import Launcher, address

STORED: Final = {"bool": "bool", "int32": "int", "int64": "i64", "float32": "float",
                 "float64": "double", "uint32": "u32", "uint64": "u64"}  # fmt: skip
"""C++ types of what arrays and names hold."""

KEPT: Final = 64
"""Functors whose C++ is kept."""

FAULTS: Final = {1: "divides by 0", 2: "reads or writes outside an array"}
ABSENT: Final = 3

EMPTY: Final = 0xFFFFFFFF


def visit_arcs(
    functor: Any, arguments: tuple[Any, ...], rows: KernelRows, frontier: Any, balanced: bool,
    returns: str | None,
) -> Any:  # fmt: skip
    """Call a functor for the arcs of a frontier; return what `advance` does. See operators.cu."""
    # Launches and waits of the host take longer than arcs do in most steps: one kernel does all
    # that needs no memory of a size that is not known before.
    import cupy

    scanned = returns == "all" or (balanced and rows.linked > 0)
    before = cupy.empty(len(frontier) + 1, np.int64)
    out: Any = NULL
    marks: Any = NULL
    if scanned:
        before[0] = 0
        cupy.cumsum(rows.ends[frontier] - rows.begins[frontier], out=before[1:])
    if returns == "all":
        out = cupy.full(int(before[-1]), EMPTY, np.uint32)
    elif returns:
        out = cupy.empty(rows.n_vertices, np.uint32)
        marks = cupy.zeros(rows.n_vertices, np.bool_)
    if balanced and rows.linked:
        rows = listed(rows, frontier)
    found = _launch(
        functor, f"visit_arcs<{rows.types}, {rows.kind}, Functor>", rows.argument(), frontier,
        np.int64(len(frontier)), np.int64(balanced), np.int64(scanned), packed(arguments), out,
        marks, before,
    )  # fmt: skip
    if returns == "all":
        return out[out != EMPTY]
    return out[:found] if returns else None


def sum_arcs(
    functor: Any, arguments: tuple[Any, ...], rows: KernelRows, frontier: Any, *, whole: bool
) -> Any:
    """Return the sums of what a functor returns for the arcs of a frontier; see operators.cu."""
    import cupy

    if not whole:
        rows = replace(rows, begins=rows.begins[frontier], ends=rows.ends[frontier])
    sums = cupy.empty(len(frontier), np.float64)
    _launch(
        functor, f"sum_arcs<{rows.types}, {rows.kind}, Functor>", rows.argument(), frontier,
        packed(arguments), sums,
    )  # fmt: skip
    return sums


def listed(rows: KernelRows, frontier: Any) -> KernelRows:
    """Return linked rows with the blocks of a frontier listed."""
    import cupy

    firsts = cupy.zeros(len(frontier) + 1, np.int64)
    lengths = rows.ends[frontier] - rows.begins[frontier]
    firsts[1:] = cupy.cumsum(-(-lengths // (rows.linked >> 32 & 0xFFFF)))
    count = int(firsts[-1])
    lists = firsts, cupy.empty(count, np.int64), cupy.empty(count, np.uint32)
    items = np.int64(len(frontier))
    Launcher("operators", "list_blocks")(rows.argument(weighted=False), frontier, items, *lists)
    return replace(rows, lists=lists)


def keep_items(functor: Any, arguments: tuple[Any, ...], frontier: Any) -> Any:
    """Return whether a functor keeps each item of a frontier."""
    import cupy

    kept = cupy.empty(len(frontier), np.bool_)
    count = np.int64(len(frontier))
    _launch(functor, "keep_items<Functor>", frontier, count, packed(arguments), kept)
    return kept


def visit_common(functor: Any, arguments: tuple[Any, ...], rows: KernelRows, pairs: Any) -> Any:
    """Count the common neighbours of pairs, and call a functor for each of them."""
    import cupy

    counts = cupy.zeros(len(pairs), np.int64)
    view, count = rows.argument(weighted=False), np.int64(len(pairs))
    _launch(
        functor,
        f"visit_common<{rows.kind}, Functor>",
        view,
        pairs,
        count,
        packed(arguments),
        counts,
    )
    return counts


def _launch(functor: Any, name: str, *arguments: Any) -> int:
    """Launch a kernel with a functor, and a control block last; return what it found."""
    import cupy

    try:
        launch = Launcher("operators", name, front=written(functor))
    except UntranslatableError as error:
        raise functor.refused(str(error)) from None
    except KernelCompileError as error:
        raise functor.refused(line_of(error)) from None
    control = cupy.zeros(CONTROL_WORDS, np.uint64)
    launch(*arguments, control, control[STATE_WORDS:])
    fault, found = control[:2].tolist()
    if fault == ABSENT:
        raise IndexError("a frontier has a vertex that is none")
    if fault:
        raise functor.failed(FAULTS[fault])
    return int(found)


def line_of(error: KernelCompileError) -> str:
    """Return what NVRTC has to say in one line: its first error."""
    lines = [line for line in str(error).splitlines() if "error: " in line]
    return (lines or [str(error)])[0].split("error: ")[-1]


def packed(arguments: tuple[Any, ...]) -> Any:
    """Return arguments as the structure of a functor has them, in words of eight bytes."""
    words = [np.uint64(0)]
    for each in arguments:
        if each.ndim:
            if not each.flags.c_contiguous:
                raise OptionError("arguments", each, "pass contiguous arrays to a device",
                                  problem="an array has gaps between its entries")  # fmt: skip
            words += [np.uint64(address(each)), np.uint64(len(each))]
        else:
            whole = np.int64(each) if isinstance(each, np.bool_) else each
            words.append(whole.view(np.uint64))
    return np.array(words).view(f"V{8 * len(words)}").reshape(())


@lru_cache(KEPT)
def written(functor: Any) -> str:
    """Return the structure of a functor in C++."""
    kinds = [f"Array<{STORED[k]}>" if is_array else STORED[k] for k, is_array in functor.kinds]
    fields = ["i64 unused;"] + [
        f"{'i64' if kind == 'bool' else kind} f{k};" for k, kind in enumerate(kinds)
    ]
    leading = [f"i64 p{k}" for k in range(len(functor.leading))]
    if functor.source is not None:
        lines = [f"const i64 {name} = p{k};" for k, name in enumerate(functor.leading)]
        for k, (name, kind) in enumerate(zip(functor.source.names, kinds, strict=True)):
            pointer = kind.startswith("Array")
            kind = f"{kind[6:-1]}*" if pointer else kind
            lines.append(f"{kind} {name} = f{k}{'.data' * pointer};")
        end = f"return {0 if functor.sums else 1};"
        lines += ['#line 1 "functor"', functor.source.body, end]
    else:
        code = functor.function.__code__
        given = [*(f"p{k}" for k in range(len(leading))), *(f"f{k}" for k in range(len(kinds)))]
        names = dict(zip(code.co_varnames, [*["i64"] * len(leading), *kinds], strict=False))
        names |= {name: joined(found) for name, found in functor.names.items()}
        made = Translation(code, functor.captured, names, functor.answers, sums=functor.sums)
        lines = [
            f"{names[name]} {made.places[name]} = {value};"
            for name, value in zip(code.co_varnames, given, strict=False)
        ]
        lines.append(made.text)
    body = "\n".join(lines)
    head = ", ".join(["int& fault", *leading])
    kind = "double" if functor.sums else "bool"
    return (f'#define FUNCTOR\n#include "functor.cuh"\nstruct Functor {{\n{chr(10).join(fields)}\n'
            f"INLINE {kind} operator()({head}) const {{\n{body}\n}}\n}};\n")  # fmt: skip


def joined(kinds: set[str]) -> str:
    """Return the C++ type of a name that holds values of these types of Numba."""
    unknown = kinds - STORED.keys()
    if unknown:
        raise UntranslatableError(f"no {min(unknown)} on a device")
    numbers = kinds - {"bool"} or kinds
    if any(kind.startswith("float") for kind in numbers):
        return STORED[min(numbers)] if len(numbers) == 1 else "double"
    if any(kind.startswith("int") for kind in numbers):
        return "i64"
    return STORED[max(numbers)]
