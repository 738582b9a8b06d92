"""What counting needs of a device: memory of its own, and its timer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from louvain_um.errors import LouvainUmError

TRIES: Final = 5
"""Readings of the device's timer, of which the quickest is used."""

CLOCK: Final = b"""
.version 6.3
.target sm_75
.address_size 64
.visible .entry now(.param .u64 out) {
  .reg .b64 %out, %time;
  ld.param.u64 %out, [out];
  mov.u64 %time, %globaltimer;
  st.global.u64 [%out], %time;
  ret;
}
"""
"""Kernel that reads the timer of the recorded counts."""


class TracedDevice:
    """The current device."""

    def __init__(self) -> None:
        import cupy
        from cupy.cuda.function import Module

        self.id = cupy.cuda.Device().id
        self.timer = Module()
        self.timer.load(CLOCK)

    def clock_offset(self, clock: Callable[[], int]) -> int:
        """Return a clock's time minus the device timer's, from the fastest of several tries."""
        import cupy

        now = self.timer.get_function("now")
        out = cupy.empty(1, np.uint64)
        found = []
        for _ in range(TRIES):
            before = clock()
            now((1,), (1,), (out,))
            cupy.cuda.get_current_stream().synchronize()
            after = clock()
            found.append((after - before, (before + after) // 2 - int(out.get()[0])))
        return min(found)[1]

    def zeros(self, shape: tuple[int, ...], dtype: Any) -> Any:
        """Return an array in memory of its own, not of CuPy's pool."""
        import cupy

        nbytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
        try:
            memory = cupy.cuda.Memory(nbytes)
        except cupy.cuda.runtime.CUDARuntimeError as error:
            raise LouvainUmError(
                f"the tracer's {nbytes >> 20} MiB of counters do not fit on the device; give "
                f"Tracer fewer counter_bytes or records ({error})"
            ) from error
        array = cupy.ndarray(shape, dtype, cupy.cuda.MemoryPointer(memory, 0))
        array.fill(0)
        return array
