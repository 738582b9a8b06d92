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


def is_running(process):
    """Return whether a process has not ended; nobody may have asked for its status."""
    import psutil

    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def kill_when_busy(process, seconds, *, child):
    """Kill a process, or its first child, once it has computed for some seconds.

    Returns the process and its children, as far as they had started.
    """
    import psutil

    this = victim = psutil.Process(process.pid)
    family = {this}
    while process.poll() is None:
        try:
            family.update(this.children(recursive=True))
            if child:
                victim = min(this.children(), key=lambda each: each.pid, default=None)
            if victim and sum(victim.cpu_times()[:2]) >= seconds:
                victim.kill()
                break
        except psutil.NoSuchProcess:
            break
        time.sleep(0.01)
    return family
