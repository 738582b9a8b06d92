import signal

import pytest

from louvain_um.core.interrupts import uninterrupted


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
