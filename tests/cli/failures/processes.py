"""Commands in processes of their own."""

import re
import signal
import subprocess
import sys
import time
from pathlib import Path

COMMAND = [sys.executable, "-c", "from louvain_um.cli import main; main()"]


def start(*arguments, **options):
    return subprocess.Popen(
        [*COMMAND, *map(str, arguments)], stderr=subprocess.PIPE, text=True, **options
    )


def wait_for_handlers(process):
    """Wait until a command handles signals; on a busy machine it takes seconds to start."""
    if not sys.platform.startswith("linux"):
        time.sleep(2)
        return
    status, deadline = Path(f"/proc/{process.pid}/status"), time.monotonic() + 60
    while process.poll() is None and time.monotonic() < deadline:
        caught = re.search(r"^SigCgt:\s*(\w+)$", status.read_text(), re.MULTILINE)
        # The last one for which a handler is installed.
        if caught and int(caught[1], 16) >> (signal.SIGHUP - 1) & 1:
            return
        time.sleep(0.02)
