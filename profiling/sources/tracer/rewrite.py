"""Instrumentation: PTX in; out, the same PTX with a count before every access of global memory.

The original text stays as it is, letter for letter. What is put in finds the array of an address,
its page and the bin of the time, joins lanes that agree on all three, and adds to a counter.
Rewritten modules are kept on disk: parsing PTX takes seconds.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from louvain_um.gpu.runtime import compile_cache
from louvain_um.gpu.runtime.compile_cache import Image
from louvain_um.profiling.sources.tracer import snippet
from louvain_um.profiling.sources.tracer.snippet import (
    STATE,
    PtxAccess,
    UnknownInstruction,
    access_of,
    callee,
)
from louvain_um.profiling.sources.tracer.tokenizer import Function, PtxError, functions, statements

OLDEST: Final = 70
"""Lowest compute capability, in tenths, whose lanes can be matched by value."""

Site = tuple[int, str, PtxAccess]
"""An access: where its instruction begins, the instruction's predicate, what it does."""


@dataclass(frozen=True, slots=True)
class Rewritten:
    """An instrumented module."""

    text: str
    functions: tuple[str, ...]
    sites: Mapping[str, int]
    left: Mapping[str, str]


def rewrite(ptx: str, *, log: bool = False) -> Rewritten:
    """Instrument a module."""
    parsed = statements(ptx)
    header = next((s.end for s in parsed if s.words[0] == ".address_size"), None)
    target = next((s.words[1] for s in parsed if s.words[0] == ".target"), "")
    if header is None or int("".join(filter(str.isdigit, target)) or 0) < OLDEST:
        raise PtxError(f"a module for {target or 'no device'} cannot be instrumented")
    known = functions(parsed)
    found, left = _examine(known)
    insertions = [(header, snippet.declaration(STATE.itemsize))]
    for number, function in enumerate(known):
        sites = found.get(function.name, [])
        if sites:
            insertions.append((function.body, snippet.hints(len(sites))))
        for site, (at, predicate, access) in enumerate(sites):
            insertions.append((at, snippet.count(access, predicate, site, number, log)))
    return Rewritten(
        _insert(ptx, insertions),
        tuple(function.name for function in known),
        {name: len(sites) for name, sites in found.items()},
        left,
    )


def _examine(known: Sequence[Function]) -> tuple[dict[str, list[Site]], dict[str, str]]:
    """Return the accesses of functions, by name, and why others are left alone."""
    found: dict[str, list[Site]] = {function.name: [] for function in known}
    related: dict[str, set[str]] = {function.name: set() for function in known}
    left: dict[str, str] = {}
    for function in known:
        for statement in function.statements:
            if statement.kind != "instruction":
                continue
            try:
                if statement.opcode == "call":
                    other = callee(statement)
                    if other not in found:
                        raise UnknownInstruction(f"call of {other}")
                    related[function.name].add(other)
                    related[other].add(function.name)
                elif access := access_of(statement):
                    found[function.name].append((statement.start, statement.predicate, access))
            except UnknownInstruction as reason:
                left.setdefault(function.name, str(reason))
    waiting = list(left)
    while waiting:
        name = waiting.pop()
        for other in related[name] - left.keys():
            left[other] = f"{left[name]} in {name}"
            waiting.append(other)
    return {name: sites for name, sites in found.items() if name not in left}, left


def _insert(text: str, insertions: Sequence[tuple[int, str]]) -> str:
    """Return a text with others put in, each before the character of its number."""
    parts = []
    before = 0
    for at, new in sorted(insertions, key=lambda insertion: insertion[0]):
        parts += [text[before:at], new]
        before = at
    return "".join((*parts, text[before:]))


def rewritten(ptx: str, *, log: bool = False) -> Rewritten:
    """Return an instrumented module: from the cache, or rewritten now and cached."""
    text = f"{_edition()} {log}\n{ptx}"
    key = hashlib.sha256(text.encode()).hexdigest()[:40]
    file = compile_cache.cache_folder() / f"{key}.rewritten"
    found = compile_cache.load(file)
    if found is not None:
        about = json.loads(found.names["about"])
        return Rewritten(
            found.code.decode(), tuple(about["functions"]), about["sites"], about["left"]
        )
    done = rewrite(ptx, log=log)
    about = {"functions": done.functions, "sites": dict(done.sites), "left": dict(done.left)}
    compile_cache.save(file, Image(done.text.encode(), {"about": json.dumps(about)}))
    return done


@cache
def _edition() -> str:
    """Return a digest of the code that rewrites."""
    total = hashlib.sha256()
    for source in sorted(Path(__file__).parent.glob("*.py")):
        total.update(source.read_bytes())
    return total.hexdigest()
