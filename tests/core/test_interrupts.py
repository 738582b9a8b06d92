import signal
import sys

import numpy as np
import pytest

from louvain_um.core.compiled import kernel
from louvain_um.core.interrupts import uninterrupted
from louvain_um.core.numbering import sum_of_squares


def test_every_signal_of_a_block_is_handled_after_it():
    heard, before = [], signal.getsignal(signal.SIGUSR1)

    def twice():
        with uninterrupted():
            signal.raise_signal(signal.SIGUSR1)
            signal.raise_signal(signal.SIGINT)
            assert heard == []

    signal.signal(signal.SIGUSR1, lambda number, frame: heard.append(number))
    try:
        with pytest.raises(KeyboardInterrupt):
            twice()
        assert heard == [signal.SIGUSR1]
    finally:
        signal.signal(signal.SIGUSR1, before)


@kernel()
def two_arrays(n):
    return np.zeros(n), np.ones(n)


@pytest.mark.parametrize(
    ("function", "value"), [(sum_of_squares, np.arange(4)), (two_arrays, 3)],
    ids=["read", "returned"],
)  # fmt: skip
def test_an_interrupt_of_a_call_that_boxes_an_array_is_raised(function, value):
    before = sys.gettrace()
    function(value)  # compiled

    def interrupt(frame, event, arg):
        if frame.f_code.co_name == "_numba_unpickle":
            raise KeyboardInterrupt

    sys.settrace(interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            function(value)
    finally:
        sys.settrace(before)
