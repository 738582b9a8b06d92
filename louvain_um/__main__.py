"""``python -m louvain_um`` is ``louvain-um``."""

import os
import signal
from types import FrameType


def main() -> None:
    """Run the command line."""
    handled = signal.getsignal(signal.SIGINT)
    if handled is signal.default_int_handler:
        # Until the command line handles signals: an exception in the midst of imports would show
        # a traceback, or be reported as their failure.
        signal.signal(signal.SIGINT, end_at_once)
    from louvain_um.cli import main as command_line

    try:
        if handled is signal.default_int_handler:
            signal.signal(signal.SIGINT, handled)
        command_line()
    except KeyboardInterrupt as error:  # before the command line's first line, or after its last
        from louvain_um.cli.exit_codes import report_error

        os._exit(report_error(error))


def end_at_once(number: int, _: FrameType | None) -> None:
    """End the process as the command line does; nothing is there yet to clean up."""
    try:
        os.write(2, b"louvain-um: interrupted\n")
    finally:
        os._exit(128 + number)


if __name__ == "__main__":
    main()
