"""``python -m louvain_um`` is ``louvain-um``."""

import os
import signal
import sys
from types import FrameType

LEAST_ADDRESSES = 768 << 20
"""Bytes of address space in which all libraries find room."""

TOO_FEW = "louvain-um: ulimit -v allows {} kB of addresses; allow at least {}"


def main() -> None:
    """Run the command line."""
    handled = signal.getsignal(signal.SIGINT)
    if handled is signal.default_int_handler:
        # Until the command line handles signals: an exception in the midst of imports would show
        # a traceback, or be reported as their failure.
        signal.signal(signal.SIGINT, end_at_once)
    if (limit := address_limit()) is not None:
        # OpenBLAS asks without end for memory that it does not get.
        if limit < LEAST_ADDRESSES:
            raise SystemExit(TOO_FEW.format(limit >> 10, LEAST_ADDRESSES >> 10))
        if sys.argv[1:2] != ["attach"]:  # a user's program keeps its threads
            os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from louvain_um.cli import main as command_line

    try:
        if handled is signal.default_int_handler:
            signal.signal(signal.SIGINT, handled)
        command_line()
    except KeyboardInterrupt as error:  # before the command line's first line, or after its last
        from louvain_um.cli.exit_codes import report_error

        os._exit(report_error(error))


def address_limit() -> int | None:
    """Return the bytes of address space that ``ulimit -v`` allows, None without a limit."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return None
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if limit == resource.RLIM_INFINITY else limit


def end_at_once(number: int, _: FrameType | None) -> None:
    """End the process as the command line does; nothing is there yet to clean up."""
    try:
        os.write(2, b"louvain-um: interrupted\n")
    finally:
        os._exit(128 + number)


if __name__ == "__main__":
    main()
