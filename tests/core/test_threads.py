"""Threads begin, or their start ends with an error."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from louvain_um.core import threads


def test_python_waits_for_what_is_replaced() -> None:
    assert isinstance(vars(threading.Thread())["_started"], threading.Event)


def test_a_thread_that_does_not_begin_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "START_SECONDS", 0.05)
    monkeypatch.setattr(threading.Thread, "_bootstrap", lambda self: None)
    with pytest.raises(MemoryError, match="a thread got no memory to begin; "):
        threads.start_thread(lambda: None, "test")


def test_a_thread_that_begins_too_late_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "START_SECONDS", 0.05)
    bootstrap, late = threading.Thread._bootstrap, threading.Event()  # type: ignore[attr-defined]
    ended, done = threading.Event(), list[int]()

    def begin_late(self: threading.Thread) -> None:
        late.wait(10)
        bootstrap(self)
        ended.set()

    monkeypatch.setattr(threading.Thread, "_bootstrap", begin_late)
    with pytest.raises(MemoryError):
        threads.start_thread(lambda: done.append(1), "test")
    late.set()
    assert ended.wait(10)
    assert done == []


def test_host_pages_need_no_compiler() -> None:
    code = "import sys, louvain_um.placement.migration.pages; sys.exit('llvmlite' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
