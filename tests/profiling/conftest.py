from __future__ import annotations

import sys
from pathlib import Path

# The cases that several files of this folder share are a module beside them.
sys.path.insert(0, str(Path(__file__).parent))
