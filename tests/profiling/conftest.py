import sys
from pathlib import Path

# The cases that several files below this folder share are modules of it.
HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE / "simulator")]
