"""``python -m louvain_um`` is ``louvain-um``."""

import signal


def main() -> None:
    """Run the command line."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        # Ctrl-C ends the process silently until the command line handles it: an interrupt of the
        # imports would show a traceback, or be reported as their failure.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from louvain_um.cli import main as command_line

    command_line()


if __name__ == "__main__":
    main()
