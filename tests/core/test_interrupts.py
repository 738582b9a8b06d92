import signal
import sys

import numpy as np
import pytest

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


def test_an_interrupt_of_a_call_that_boxes_an_array_is_raised():
    values, before = np.arange(4), sys.gettrace()
    assert sum_of_squares(values) == 14

    def interrupt(frame, event, arg):
        if frame.f_code.co_name == "_numba_unpickle":
            raise KeyboardInterrupt

    sys.settrace(interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            sum_of_squares(values)
    finally:
        sys.settrace(before)
