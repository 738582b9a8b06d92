from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = """
from louvain_um.core.numbering import number_by_size
from louvain_um.cpu.compiling import announced
heard = []
def listen(event):
    assert event.phase == "compile"
    heard.append(event.kind)
with announced(listen):
    number_by_size([7, 3, 3, 9])
print(len(heard), heard == ["start", "end"] * (len(heard) // 2))
"""


def test_only_what_is_not_cached_is_announced(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    counts = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env=environment, capture_output=True, text=True, check=True, timeout=300,
        )  # fmt: skip
        count, paired = done.stdout.split()
        counts.append(int(count))
        assert paired == "True"
    assert counts[0] > 0
    assert counts[1] == 0
