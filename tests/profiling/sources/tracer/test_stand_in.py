"""Engines get instrumented kernels without a change of theirs, through the context."""

import threading
from typing import Any

import pytest

from louvain_um.errors import DeviceUnavailableError
from louvain_um.events import Event
from louvain_um.gpu.runtime import compile, compile_cache
from louvain_um.profiling.sources.source import SessionClock, SourceUnavailableError
from louvain_um.profiling.sources.tracer import AccessCounts, Tracer


class Others(compile.Kernels):
    """Kernels that only note what they are asked for."""

    def __init__(self):
        super().__init__()
        self.asked: list[Any] = []

    def get(self, *args, **options):
        self.asked.append(("get", *args[:3]))

    def prepare(self, units, *args):
        self.asked.append(("prepare", *units))

    def resident_blocks(self, *args, **options):
        self.asked.append(("resident_blocks", *args))
        return 7


def test_others_serve_the_engine_in_their_context_alone(monkeypatch):
    own = []
    monkeypatch.setattr(compile.Kernels, "get", lambda self, *a, **o: own.append(a[:3]))
    others, elsewhere = Others(), Others()
    kernel = object()

    def ask():
        compile.kernels.get("move", "move", "u32, u32")

    with compile.using(others):
        ask()
        compile.kernels.prepare([("relabel", "")])
        assert compile.kernels.resident_blocks(kernel, 256) == 7
        with compile.using(elsewhere):
            ask()
        other = threading.Thread(target=ask)
        other.start()
        other.join()
    ask()
    assert others.asked == [
        ("get", "move", "move", "u32, u32"),
        ("prepare", ("relabel", "")),
        ("resident_blocks", kernel, 256, 0),
    ]
    assert elsewhere.asked == [("get", "move", "move", "u32, u32")]
    assert own == [("move", "move", "u32, u32")] * 2


def test_an_error_ends_it():
    others = Others()
    with pytest.raises(ZeroDivisionError), compile.using(others):
        raise ZeroDivisionError
    assert compile._substitute.get() is None


def test_without_a_compiler_there_is_a_reason(monkeypatch):
    def missing():
        raise DeviceUnavailableError("NVRTC was not found; pip install it")

    monkeypatch.setattr(compile_cache, "compiler", missing)
    with pytest.raises(SourceUnavailableError, match="pip install it"):
        Tracer().start(SessionClock())


def test_a_tracer_that_saw_nothing_says_so():
    pytest.importorskip("cupy")
    tracer = Tracer()
    try:
        tracer.start(SessionClock())
    except SourceUnavailableError as error:
        pytest.skip(str(error))
    tracer.stop()
    assert compile._substitute.get() is None
    assert tracer.result().counts == {}
    assert tracer.result().elsewhere == AccessCounts()
    assert tracer.maps() == ()
    assert tracer.drain(last=True) is None
    assert tracer.notes == ["the tracer saw no kernel of the engine's"]
    assert tracer.about()["launches"] == 0


def test_a_run_without_kernels_needs_no_device():
    pytest.importorskip("cupy")
    tracer = Tracer()
    try:
        tracer.start(SessionClock())
    except SourceUnavailableError as error:
        pytest.skip(str(error))
    tracer.observe(Event(kind="start", phase="load"))
    tracer.observe(Event(kind="array", name="a", group="graph", address=1000, nbytes=100))
    tracer.observe(Event(kind="freed", name="a", group="graph", address=1050, nbytes=50))
    assert tracer._arrays == {"a": (1000, 50)}
    tracer.observe(Event(kind="freed", name="a", group="graph", address=1000, nbytes=50))
    tracer.observe(Event(kind="freed", name="b", group="graph", address=1, nbytes=1))
    tracer.observe(Event(kind="end", phase="load"))
    tracer.stop()
    assert tracer._arrays == {}
    assert len(tracer.result().events) == 0
