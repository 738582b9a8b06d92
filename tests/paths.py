"""Where the parts of the checkout lie, for tests at any depth."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BENCHMARKS = ROOT / "benchmarks"
RESULTS = BENCHMARKS / "results"
MEASURED = ROOT / "tests" / "measured"
