import numpy as np

from louvain_um.profiling import Session
from louvain_um.profiling.session import Lifetime, PageMap, PhaseSpan
from louvain_um.profiling.session.data import with_phases
from louvain_um.profiling.session.events import EventTable, Kind


def life(name, address, nbytes, start, end):
    return Lifetime(
        name=name, group="graph", address=address, nbytes=nbytes, start_ns=start, end_ns=end
    )


def at(time, address, nbytes=4096):
    return {"time": time, "address": address, "bytes": nbytes, "kind": Kind.HTOD}


def table(rows):
    return EventTable({name: [row[name] for row in rows] for name in rows[0]})


def a_session():
    events = EventTable(
        {
            "time": [10, 20, 30],
            "kind": [Kind.HTOD, Kind.KERNEL, Kind.ACCESS],
            "address": [4096, 0, 8192],
            "bytes": [65536, 0, 0],
            "kernel": [-1, 0, -1],
            "count": [1, 1, 7],
        },
        ("move",),
    )
    phases = (PhaseSpan(phase="my own", level=0, iteration=-1, start_ns=5, end_ns=25),)
    return Session(
        metadata={"version": "0", "seconds": 1.5, "nan": float("nan"), "n": np.int64(3)},
        plan={"policy": "base"},
        lifetimes=(life("targets.0", 4096, 1 << 20, 0, 40),),
        phases=phases,
        events=with_phases(events, phases),
        maps=(
            PageMap(
                array="targets.0",
                page_bytes=4096,
                edges=np.array([0, 20, 40]),
                counts=np.array([[1, 2], [3, 4]], np.uint32),
            ),
        ),
        notes=("a note",),
        energy={"joules": 2.0, "seconds": 1.5},
    )
