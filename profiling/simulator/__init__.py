"""A page-level model of NVIDIA's UVM driver: page touches in, events and seconds out."""

from louvain_um.profiling.simulator.driver.options import Driver
from louvain_um.profiling.simulator.result import TERMS, TOTALS, Simulation
from louvain_um.profiling.simulator.simulate import simulate
from louvain_um.profiling.simulator.touches import Touches, Way, join
from louvain_um.profiling.simulator.trace import (
    Allocate,
    Array,
    Free,
    HostTouches,
    Launch,
    Prefetch,
    Trace,
    load_trace,
)

__all__ = [
    "TERMS",
    "TOTALS",
    "Allocate",
    "Array",
    "Driver",
    "Free",
    "HostTouches",
    "Launch",
    "Prefetch",
    "Simulation",
    "Touches",
    "Trace",
    "Way",
    "join",
    "load_trace",
    "simulate",
]
