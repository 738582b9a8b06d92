"""Commands in processes of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

COMMAND = [sys.executable, "-c", "from louvain_um.cli import main; main()"]


def start(*arguments: str | Path, **options) -> subprocess.Popen:
    return subprocess.Popen(
        [*COMMAND, *map(str, arguments)], stderr=subprocess.PIPE, text=True, **options
    )
