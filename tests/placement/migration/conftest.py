"""The driver that maps real memory, for tests of pages."""

import ctypes
import os

import numpy as np
import pytest
from fake_cuda import install

from louvain_um.placement.memory import cuda_calls, run_memory
from louvain_um.placement.migration import span
from tests.placement.migration.mapped_memory import Late, Mapped, Viewed


@pytest.fixture(params=["at once", "late"])
def cuda(monkeypatch, request):
    fake = install(monkeypatch, Mapped())
    late = Late() if request.param == "late" else None
    fake.late = late

    def view(address, shape, dtype, arena, owner=None):
        kind = np.dtype(dtype)
        raw = (ctypes.c_uint8 * max(shape * kind.itemsize, 1)).from_address(address)
        array = np.ctypeslib.as_array(raw)[: shape * kind.itemsize].view(kind)
        return Viewed(array, address, late)

    monkeypatch.setattr(run_memory, "view", view)

    def copy_pages(to, of, nbytes, page, stream=0):
        if late is None:
            ctypes.memmove(to, of, nbytes)
        else:
            late.waiting.append((stream, to, of, nbytes))

    monkeypatch.setattr(span, "copy_pages", copy_pages)
    if late is not None:
        synchronize, wait_for = cuda_calls.synchronize, cuda_calls.wait_for
        monkeypatch.setattr(cuda_calls, "synchronize", lambda: late.end() or synchronize())
        monkeypatch.setattr(cuda_calls, "wait_for", lambda s: late.end(s) or wait_for(s))
    for call in ("copy", "copy_later"):
        monkeypatch.setattr(
            cuda_calls, call, lambda to, of, nbytes, *_: ctypes.memmove(to, of, nbytes)
        )
    yield fake
    os.close(fake.file)
