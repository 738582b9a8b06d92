"""How Numba functions are compiled and cached, and what they call that Numba lacks.

Numba's own cache asks only whether the file of a function has changed, not those of the functions
and constants that it uses, and trusts whatever it finds on disk. The cache here lies where Numba's
would, but an entry is used only if every imported source of this package is as it was, and if its
checksum holds. What is stale or damaged is compiled again.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import Any, Final

import llvmlite
import numba
import numpy as np
from llvmlite import ir  # type: ignore[import-untyped,unused-ignore]
from numba import njit, types
from numba.core import cgutils, event
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.compiler_lock import global_compiler_lock
from numba.core.errors import TypingError
from numba.core.registry import CPUDispatcher
from numba.core.runtime.nrt import rtsys
from numba.extending import intrinsic

from louvain_um.core import headroom, private_files
from louvain_um.core.interrupts import held, pending
from louvain_um.errors import LouvainUmError
from louvain_um.events import Event, Observer

YIELD = "SwitchToThread" if os.name == "nt" else "sched_yield"


def _pointer(context: Any, builder: Any, kind: Any, array: Any, index: Any) -> Any:
    view = context.make_array(kind)(context, builder, array)
    return cgutils.get_item_pointer(  # type: ignore[no-untyped-call,unused-ignore]
        context, builder, kind, view, [index], wraparound=False
    )


def _changed(array: Any, value: Any, whole: str, unsigned: str, real: str) -> Any:
    """Return signature and code of an operation on ``array[index]``, by the array's type."""
    item: Any = array.dtype
    kind: type = type(item)
    if not issubclass(kind, (types.Integer, types.Float)):
        raise TypingError(f"the array holds {item}, and no numbers")
    if not array.mutable:
        raise TypingError("the array is read-only")
    if isinstance(item, types.Integer) and isinstance(value, types.Float):
        raise TypingError("the value is a float, but the array holds integers")
    operation = real if isinstance(item, types.Float) else whole if item.signed else unsigned

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        pointer = _pointer(context, builder, sig.args[0], *args[:2])
        return builder.atomic_rmw(operation, pointer, args[2], "acq_rel")

    return item(array, types.intp, item), codegen


@intrinsic
def _atomic_add(typingctx: Any, array: Any, index: Any, value: Any) -> Any:
    """Add `value` to ``array[index]`` atomically; return the old value."""
    return _changed(array, value, "add", "add", "fadd")


@intrinsic
def _atomic_min(typingctx: Any, array: Any, index: Any, value: Any) -> Any:
    """Lower ``array[index]`` to `value`, if that is less, atomically; return the old value."""
    return _changed(array, value, "min", "umin", "fmin")


@intrinsic
def _atomic_max(typingctx: Any, array: Any, index: Any, value: Any) -> Any:
    """Raise ``array[index]`` to `value`, if that is more, atomically; return the old value."""
    return _changed(array, value, "max", "umax", "fmax")


@intrinsic
def _compare_and_swap(typingctx: Any, array: Any, index: Any, expected: Any, value: Any) -> Any:
    """Replace ``array[index]`` if it is `expected`, atomically; return the old value."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        pointer = _pointer(context, builder, sig.args[0], *args[:2])
        outcome = builder.cmpxchg(pointer, args[2], args[3], "acq_rel", "acquire")
        return builder.extract_value(outcome, 0)

    return array.dtype(array, types.intp, array.dtype, array.dtype), codegen


@intrinsic
def _atomic_load(typingctx: Any, array: Any, index: Any) -> Any:
    """Return ``array[index]``; later operations are not moved before it (acquire)."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        pointer = _pointer(context, builder, sig.args[0], *args)
        return builder.load_atomic(pointer, "acquire", align=array.dtype.bitwidth // 8)

    return array.dtype(array, types.intp), codegen


@intrinsic
def _prefetch(typingctx: Any, array: Any, index: Any) -> Any:
    """Prefetch ``array[index]``; an index outside the array is harmless."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        shape = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        fetch = builder.module.declare_intrinsic("llvm.prefetch", [byte], shape)
        pointer = builder.bitcast(_pointer(context, builder, sig.args[0], *args), byte)
        read, keep, data = word(0), word(3), word(1)
        builder.call(fetch, [pointer, read, keep, data])
        return context.get_dummy_value()

    return types.void(array, types.intp), codegen


@intrinsic
def _give_way(typingctx: Any) -> Any:
    """Yield the core to another thread, if one is waiting."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        shape = ir.FunctionType(ir.IntType(32), [])
        function = cgutils.get_or_insert_function(  # type: ignore[no-untyped-call,unused-ignore]
            builder.module, shape, YIELD
        )
        builder.call(function, [])
        return context.get_dummy_value()

    return types.void(), codegen


atomic_add: Any = _atomic_add
atomic_load: Any = _atomic_load
atomic_max: Any = _atomic_max
atomic_min: Any = _atomic_min
compare_and_swap: Any = _compare_and_swap
prefetch: Any = _prefetch
give_way: Any = _give_way

IMPORT: Final = re.compile(
    rb"^(?:from (louvain_um[\w.]*) import (\([^)]*\)|[^\n]*)|import (louvain_um[\w.]*))",
    re.MULTILINE,
)
"""Imports at the top of a module; those inside functions bring no kernel."""

DIGEST_BYTES: Final = hashlib.sha256().digest_size


def kernel(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator that compiles a function without the GIL and keeps what was compiled."""
    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]  # set from the environment
        raise LouvainUmError(
            "NUMBA_DISABLE_JIT is set, but louvain-um runs compiled code only; unset it"
        )

    def compiled(function: Callable[..., Any]) -> Any:
        dispatcher = njit(nogil=True, **options)(function)
        done = ExitStack().close
        if hasattr(dispatcher, "enable_caching") and os.path.exists(function.__code__.co_filename):
            dispatcher._cache = KernelCache(function)
            done = dispatcher._cache.end
        if hasattr(dispatcher, "compile"):
            dispatcher.compile = _held(dispatcher, done)
            dispatcher.__class__ = SafeDispatcher
        return dispatcher

    return compiled


class SafeDispatcher(CPUDispatcher):  # type: ignore[misc,unused-ignore]
    """A compiled function that raises what a signal's handler raised while it was called."""

    # Numba makes a Python call to box an array, and ignores that the call failed: the interpreter
    # then reports a SystemError whose cause is what the handler raised, or, of several arrays,
    # another one whose cause that is.

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Call the function."""
        try:
            return super().__call__(*args, **named)
        except SystemError as error:
            found: BaseException = error
            while isinstance(found, SystemError) and found.__cause__ is not None:
                found = found.__cause__
        raise found  # not within the handler, where its context would lead back to it


def _held(dispatcher: Any, done: Callable[[], None]) -> Callable[..., Any]:
    """Return what compiles a function while signals wait, and calls `done` in the end."""
    work = dispatcher.compile

    def call(kinds: Any) -> Any:
        with held(), global_compiler_lock:  # other threads may compile it for other types
            try:
                return work(_widened(kinds))
            finally:
                found = [made.signature.return_type for made in dispatcher.overloads.values()]
                dispatcher.__class__ = (
                    SafeDispatcher if any(map(_has_array, found)) else CPUDispatcher
                )
                done()

    return call


def _widened(kinds: Any) -> Any:
    """Return the types to compile for: a literal, or 32 bits, would be another function."""
    if not isinstance(kinds, tuple):
        return kinds
    plain = map(types.unliteral, kinds)
    return tuple(types.int64 if kind == types.int32 else kind for kind in plain)


def _has_array(kind: Any) -> bool:
    """Return whether what a function returns is an array, or a tuple with one."""
    if isinstance(kind, types.Array | types.BaseNamedTuple):
        return True
    parts: Any = kind if isinstance(kind, types.BaseTuple) else ()
    return any(map(_has_array, parts))


class KernelCache(FunctionCache):
    """Numba's cache of one function, with checked entries and a stamp of all sources."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        stamp = source_stamp(function.__module__)
        self._cache_path = os.path.join(self._cache_path, f"louvain-um-{private_files.user()}")
        self._cache_file = CheckedFile(self._cache_path, self._impl.filename_base, stamp)
        self._making = ExitStack()

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        """Return what was kept, perhaps by a process that is making it now; None if nothing."""
        headroom.require(headroom.KERNEL_BYTES)  # LLVM needs memory either way
        found = self._load(signature, target_context)
        if found is None:
            index = Path(self._cache_file._index_path)
            self._making.enter_context(private_files.made_once(index, pending))
            found = self._load(signature, target_context)
        return found

    def _load(self, signature: Any, target_context: Any) -> Any:
        """Load machine code without what only compilers need, which takes longer to import."""
        rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(signature, target_context)

    def save_overload(self, signature: Any, data: Any) -> None:
        """Keep what was compiled; a disk that is full or read-only is no error."""
        with suppress(OSError):
            super().save_overload(signature, data)

    def end(self) -> None:
        """Let processes continue that wait for what this one compiled."""
        self._making.close()


class CheckedFile(IndexDataCacheFile):
    """Index and entries of a cache, each behind a checksum, which their user alone can write."""

    def _load_index(self) -> dict[Any, str]:
        stamp, entries = self._checked(self._index_path) or (None, {})
        return entries if stamp == self._source_stamp else {}

    def _save_index(self, entries: dict[Any, str]) -> None:
        self._save(self._index_path, (self._source_stamp, entries))

    def _load_data(self, name: str) -> Any:
        return self._checked(self._data_path(name))

    def _save_data(self, name: str, data: Any) -> None:
        self._save(self._data_path(name), data)

    def _checked(self, path: str) -> Any:
        """Return what a file holds, None if it is not there, not private or damaged."""
        content = private_files.read(Path(path)) or b""
        digest, data = content[:DIGEST_BYTES], content[DIGEST_BYTES:]
        if hashlib.sha256(data).digest() != digest:
            return None
        try:
            return pickle.loads(data)
        except (AttributeError, ImportError):  # a class that other sources had is gone
            return None

    def _save(self, path: str, value: Any) -> None:
        data = self._dump(value)
        private_files.write(Path(path), hashlib.sha256(data).digest() + data)


@cache
def source_stamp(module: str) -> str:
    """Return a digest of a module, of all it imports from this package, and of the compiler."""
    total = hashlib.sha256(
        repr((numba.__version__, llvmlite.__version__, np.__version__, sys.version)).encode()
    )
    waiting, seen = [module], set[str]()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        text, imported = _source(name)
        total.update(hashlib.sha256(text).digest())
        if name != __name__:  # what this module imports is not compiled
            waiting.extend(imported)
    return total.hexdigest()


@cache
def _source(module: str) -> tuple[bytes, tuple[str, ...]]:
    """Return the text of a module and the modules of this package that it imports at its top."""
    file = getattr(sys.modules.get(module), "__file__", None)
    text = Path(file).read_bytes() if file else b""
    found = []
    for package, names, plain in IMPORT.findall(text):
        home = (package or plain).decode()
        found.append(home)
        each = re.findall(r"(\w+)(?:\s+as\s+\w+)?", names.decode())
        found += [full for name in each if (full := f"{home}.{name}") in sys.modules]
    return text, tuple(sorted(set(found)))


class Announcer:
    """Makes nested compilations one phase for an observer."""

    def __init__(self, observer: Observer) -> None:
        self.observer = observer
        self.depth = 0

    def begin(self) -> None:
        """Announce the outermost compilation."""
        self.depth += 1
        if self.depth == 1:
            self.observer(Event(kind="start", phase="compile"))

    def end(self) -> None:
        """Announce the end of the outermost compilation."""
        self.depth -= 1
        if self.depth == 0:
            self.observer(Event(kind="end", phase="compile"))


_announcers: ContextVar[tuple[Announcer, ...]] = ContextVar("announcers", default=())


class Compilations(event.Listener):
    """Hands Numba's events to this context's announcers; loading from the cache raises none."""

    def on_start(self, event: Any) -> None:
        """Begin a compilation."""
        for announcer in _announcers.get():
            announcer.begin()

    def on_end(self, event: Any) -> None:
        """End a compilation."""
        for announcer in _announcers.get():
            announcer.end()


# Once and for all: Numba has one list for all threads, and reads it while others change it.
event.register("numba:compile", Compilations())


@contextmanager
def announced(observer: Observer) -> Iterator[None]:
    """Announce what this context compiles inside the block as a phase "compile"."""
    token = _announcers.set((*_announcers.get(), Announcer(observer)))
    try:
        yield
    finally:
        _announcers.reset(token)
