"""What a sweep shows: results, gains, charts, and why a policy won."""

from louvain_um.profiling.views.sweep.results import Sweep, gains, read

__all__ = ["Sweep", "gains", "read"]
