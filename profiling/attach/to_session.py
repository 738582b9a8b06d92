"""Records of a process as a session: arrays by call site, events, what launches access."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from louvain_um.profiling.attach.accesses import (
    Declared,
    Launched,
    constant_arguments,
    declare,
    gathered,
    over_launches,
)
from louvain_um.profiling.attach.records import ADDRESS, MEMORY, Record, Records
from louvain_um.profiling.attach.sites import MOST_NAME, Sites, array_name
from louvain_um.profiling.attach.tracing import Module, Traced, traced
from louvain_um.profiling.facade import Session
from louvain_um.profiling.session import Lifetime, PageMap
from louvain_um.profiling.session.data import event_arrays, with_phases
from louvain_um.profiling.session.events import (
    EventTable,
    Kind,
    Source,
    concatenate,
    device_numbers,
)
from louvain_um.profiling.sources.cupti_records import counter_columns, demangle, short_name
from louvain_um.version import __version__

MOST_ARRAYS: Final = 1024
"""Arrays of a session; of more, the largest are kept."""

COPIES: Final = (Kind.COPY, Kind.COPY_TO_DEVICE, Kind.COPY_TO_HOST, Kind.COPY)
"""Kinds of copies, as `inject.c` numbers them."""

NOT_TRACED: Final = "not available: kernels were not traced"
NO_NAME: Final = "kernel"


def session_of(
    records: Records, modules: Sequence[Module] | None = None, **metadata: Any
) -> Session:
    """Return the session of a process; `metadata` is kept in it, `modules` were traced."""
    heads = records.slots["time"][records.slots["kind"] != Record.MORE]
    origin, end = int(heads[0]), int(heads.max())
    with closing(Sites()) as sites:
        for number, text in records.texts(Record.STACK).items():
            sites.name(number, text)
    lifetimes, kinds, left = _lifetimes(records, sites, origin, end)
    full = {number: demangle(name.encode()) for number, name in _kernels(records).items()}
    events = _events(records, full, origin)
    owners = event_arrays(events, lifetimes)
    random = {
        life.name for number, life in enumerate(lifetimes) if gathered(events, owners, number)
    }
    launches = _launches(records, full, lifetimes, kinds, origin)
    placeable = [life for life in lifetimes if kinds[life.name] != "pinned"]
    declared = declare(launches, placeable, random)
    about, notes = _notes(records, left, declared.gathered)
    memory = about.pop("memory")
    maps, about_tracer, tracer = declared.maps, dict[str, Any](), NOT_TRACED
    counts = Traced()
    if modules is not None:
        counts = traced(records, modules, sites, origin)
        maps, about_tracer, tracer, more = _joined(counts, declared, launches, placeable)
        notes = [*(notes[1:] if tracer == "measured" else notes), *more]
    return Session(
        metadata={
            "version": __version__,
            "created": time.strftime("%Y-%m-%dT%H:%M:%S"),
            "seconds": max(0, end - origin) / 1e9,
            "complete": records.complete,
            "sources": {"cupti": memory, "launches": "modelled", "tracer": tracer},
            "inputs": sorted(_inputs(events, owners, lifetimes, launches)),
            "memory_kinds": kinds,
            "about_sources": {
                "cupti": {"events": len(events), "dropped": records.dropped},
                "launches": {
                    "events": len(launches), "launches": len(launches),
                    "accesses": declared.accesses, "gathered": declared.gathered,
                },
                **({"tracer": about_tracer} if about_tracer else {}),
            },
            **about,
            **metadata,
        },
        lifetimes=lifetimes,
        phases=declared.phases,
        events=with_phases(concatenate([events, counts.events]), declared.phases),
        maps=maps,
        notes=tuple(notes),
    )  # fmt: skip


def _joined(
    counts: Traced, declared: Declared, launches: Sequence[Launched], placeable: Sequence[Lifetime]
) -> tuple[tuple[PageMap, ...], dict[str, Any], str, list[str]]:
    """Return maps, what the tracer reports of itself, its status, and notes."""
    # What kernels that were not traced get remains declared.
    kernels = {short_name(demangle(name.encode())) for name in counts.kernels}
    plain = [launch for launch in launches if launch.kernel not in kernels]
    others = {name for launch in plain for name in launch.arrays}
    notes = list(counts.notes)
    if plain:
        names = sorted({launch.kernel for launch in plain})
        why = "; ".join(counts.reasons) or "their modules hold machine code alone"
        notes.append(f"not traced: {', '.join(names[:4])}{' …' * (len(names) > 4)}: {why}")
    if not counts.kernels:
        return declared.maps, {}, NOT_TRACED, notes
    known = {life.name for life in placeable} - others
    found = {name: list(uses) for name, uses in counts.counts.items() if name not in others}
    both = sorted(others & counts.counts.keys())
    if both:
        notes.append(f"accesses of {', '.join(both[:4])} are declared: not all were traced")
    maps = [page for page in declared.maps if page.array in others]
    maps += [over_launches(page, launches) for name, page in counts.maps.items() if name in known]
    about = {
        "launches": len(launches) - len(plain), "instrumented_places": counts.places,
        "accesses": found | {name: declared.accesses[name] for name in sorted(others)},
        "elsewhere": list(counts.elsewhere), "gathered": declared.gathered,
    }  # fmt: skip
    return tuple(maps), about, "modelled" if others else "measured", notes


def _kernels(records: Records) -> dict[int, str]:
    return records.texts(Record.NAME)


def _lifetimes(
    records: Records, sites: Sites, origin: int, end: int
) -> tuple[tuple[Lifetime, ...], dict[str, str], int]:
    """Return arrays, the kind of memory of each, and how many were left out."""
    made, freed = records[Record.ALLOC], records[Record.FREE]
    address = np.concatenate([made["a"], freed["a"]])
    when = np.concatenate([made["time"], freed["time"]]).astype(np.int64)
    order = np.lexsort((np.arange(len(when)), when, address))
    ends = np.full(len(when), end, np.int64)
    same = address[order][1:] == address[order][:-1]
    ends[order[:-1][same]] = when[order[1:][same]]
    keys = np.stack(
        [made["d"], made["e"], made["f"], made["a"].view(np.int64), made["b"].view(np.int64)], 1
    )
    # What is allocated again with the same name at the same address is one array.
    rows, which = np.unique(keys.astype(np.int64), axis=0, return_inverse=True)
    begin, last = np.full(len(rows), end, np.int64), np.full(len(rows), origin, np.int64)
    np.minimum.at(begin, which.ravel(), when[: len(made)])
    np.maximum.at(last, which.ravel(), ends[: len(made)])
    kept = np.argsort(-rows[:, 4], kind="stable")[:MOST_ARRAYS].tolist()
    found, kinds = [], dict[str, str]()
    for at in kept:
        stack, slot, kind, where, nbytes = rows[at].tolist()
        site = sites.names.get(stack, "unknown")
        name = array_name(site, slot)
        kinds[name] = MEMORY[kind]
        found.append(
            Lifetime(
                name=name, group=site, address=where, nbytes=nbytes,
                start_ns=int(begin[at]) - origin, end_ns=int(last[at]) - origin,
            )
        )  # fmt: skip
    found.sort(key=lambda life: life.start_ns)
    return tuple(found), kinds, len(rows) - len(found)


def _events(records: Records, names: Mapping[int, str], origin: int) -> EventTable:
    """Return migrations, faults, kernels and copies."""
    counters, kernels = records[Record.COUNTER], records[Record.KERNEL]
    copies, sets = records[Record.COPY], records[Record.SET]
    launches = records[Record.LAUNCH] if not len(kernels) else records.slots[:0]
    # By the fields of CUPTI's record.
    fields = {"counter": "d", "value": "c", "address": "b", "flags": "e", "sender": "f",
              "receiver": "g"}  # fmt: skip
    rows = np.zeros(len(counters), [(name, "u8" if name in ("value", "address") else "i8")
                                    for name in fields])  # fmt: skip
    for ours, theirs in fields.items():
        rows[ours] = counters[theirs]
    gpus = device_numbers(kernels["f"])
    first = int(min(gpus, default=0))
    spent = np.maximum(counters["a"].astype(np.int64) - counters["time"].astype(np.int64), 0)
    labels = tuple(dict.fromkeys(short_name(name)[:MOST_NAME] for name in names.values()))
    labels = (*labels, NO_NAME)
    number = {key: labels.index(short_name(name)[:MOST_NAME]) for key, name in names.items()}

    def kernel_numbers(found: NDArray[Any]) -> list[int]:
        return [number.get(key, len(labels) - 1) for key in found["d"].tolist()]

    def table(found: NDArray[Any], **columns: Any) -> EventTable:
        time = found["time"].astype(np.int64) - origin
        whole = {"time": time, "source": Source.CUPTI, "device": first, **columns}
        return EventTable(whole, labels)

    took = kernels["a"].astype(np.int64) - kernels["time"].astype(np.int64)
    directions = np.array(COPIES)[np.clip(copies["d"], 0, 3)]
    up = directions == Kind.COPY_TO_HOST
    return concatenate(
        [
            table(counters, **counter_columns(rows, spent, first)),
            table(kernels, kind=Kind.KERNEL, duration=np.maximum(took, 0),
                  kernel=kernel_numbers(kernels), device=gpus),
            table(launches, kind=Kind.KERNEL, kernel=kernel_numbers(launches)),
            table(copies, kind=directions, bytes=copies["b"],
                  address=np.where(up, copies["c"], copies["a"])),
            table(sets, kind=Kind.COPY, bytes=sets["b"], address=sets["a"]),
        ]
    )  # fmt: skip


def _launches(
    records: Records,
    names: Mapping[int, str],
    lifetimes: tuple[Lifetime, ...],
    kinds: Mapping[str, str],
    origin: int,
) -> list[Launched]:
    """Return launches in order, with the arrays among their arguments."""
    at_address: dict[int, list[Lifetime]] = {}
    for life in lifetimes:
        if kinds[life.name] != "pinned":
            at_address.setdefault(life.address, []).append(life)
    kernels = records[Record.KERNEL]
    times = {
        key: (begin, end)
        for key, begin, end in zip(*(kernels[c].tolist() for c in ("e", "time", "a")), strict=True)
    }
    short = {number: short_name(name)[:MOST_NAME] for number, name in names.items()}
    constant = {number: constant_arguments(name) for number, name in names.items()}
    found = []
    rows = records[Record.LAUNCH]
    columns = (rows[column].tolist() for column in ("e", "time", "d", "a", "b"))
    for key, began, kernel, blocks, threads, arguments in zip(
        *columns, records.arguments, strict=True
    ):
        start, end = times.get(key, (began, began))
        arrays, nbytes = dict[str, bool](), dict[str, int]()
        for each in arguments:
            address, argument = each & ADDRESS, each >> 56
            lives = [
                life
                for life in at_address.get(address, ())
                if life.start_ns <= began - origin <= life.end_ns
            ]
            known = constant.get(kernel) or []
            written = not (argument < len(known) and known[argument])
            for life in lives[-1:]:
                arrays[life.name] = arrays.get(life.name, False) or written
                nbytes[life.name] = life.nbytes
        name, size = short.get(kernel, NO_NAME), min(blocks * threads, 1 << 50)
        found.append(Launched(name, start - origin, max(start, end) - origin, size, arrays, nbytes))
    return sorted(found, key=lambda launch: launch.start_ns)


def _inputs(
    events: EventTable,
    owners: NDArray[np.int32],
    lifetimes: tuple[Lifetime, ...],
    launches: Sequence[Launched],
) -> set[str]:
    """Return arrays that the host wrote: they came to the device, or it touched them before."""
    # What the host touches only after a kernel are results.
    first = dict[str, int]()
    for launch in reversed(launches):
        first |= dict.fromkeys(launch.arrays, launch.start_ns)
    limits = np.array([first.get(life.name, 1 << 62) for life in lifetimes] or [0], np.int64)
    came = np.isin(events["kind"], (Kind.HTOD, Kind.COPY_TO_DEVICE))
    came |= (events["kind"] == Kind.CPU_FAULT) & (events["time"] < limits[owners])
    return {lifetimes[number].name for number in np.unique(owners[came & (owners >= 0)]).tolist()}


def _notes(records: Records, left: int, random: list[str]) -> tuple[dict[str, Any], list[str]]:
    """Return what the process's notes say of the device and of CUPTI, and sentences."""
    about: dict[str, Any] = {"device": "", "memory": "not available: no context was created"}
    texts = records.texts(Record.NOTE)
    notes = [
        "accesses are declared, not traced: each launch reads or writes the arrays among its "
        "arguments once"
    ]
    for row in records[Record.NOTE]:
        number = int(row["d"])
        if number == 100:
            status = int(row["f"])
            about["memory"] = f"not available: CUPTI's status {status}" if status else "measured"
        elif number == 101 and row["f"]:
            notes.append(f"CUPTI gave no callbacks (status {int(row['f'])}); no call was recorded")
        elif number == 0:
            notes.append(texts[0])
        elif number < 100 and not about["device"]:
            about |= {"device": texts[number], "free_bytes": int(row["a"])}
    placed = records[Record.PLACED]
    failed = int(np.count_nonzero(placed["e"]))
    sentences = {
        f"order of page faults: {', '.join(random)} gathered, all others in order": random,
        f"{left:,} smaller allocations were left out": left,
        f"{records.dropped:,} records found no room or were lost": records.dropped,
        f"the driver refused the advice for {failed} of {len(placed)} allocations": failed,
        "the program ended early; what was recorded until then is here": not records.complete,
    }
    return about, [*notes, *(text for text, holds in sentences.items() if holds)]
