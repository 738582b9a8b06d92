"""A page-level model of NVIDIA's UVM driver: page touches in, events and seconds out."""

from louvain_um.profiling.simulator.addresses import read_addresses, trace_of_addresses
from louvain_um.profiling.simulator.driver.user_functions import Driver, eviction, prefetcher
from louvain_um.profiling.simulator.result import TERMS, TOTALS, Simulation
from louvain_um.profiling.simulator.simulate import simulate
from louvain_um.profiling.simulator.touches import Access, Touches, concatenate_touches
from louvain_um.profiling.simulator.trace import (
    Allocate,
    Array,
    Discard,
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
    "Access",
    "Allocate",
    "Array",
    "Discard",
    "Driver",
    "Free",
    "HostTouches",
    "Launch",
    "Prefetch",
    "Simulation",
    "Touches",
    "Trace",
    "concatenate_touches",
    "eviction",
    "load_trace",
    "prefetcher",
    "read_addresses",
    "simulate",
    "trace_of_addresses",
]
