"""Stores of a changing graph's arcs, by name; all hold the same contents, bit for bit."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from importlib import import_module
from typing import Any, Final

from louvain_um.dynamic.stores.ouro_heap import CHUNKS, PAGES
from louvain_um.errors import OptionError

STORES: Final = {
    "rows": "contiguous rows in size classes: reads like CSR, updates in place",
    "csr": "compressed sparse rows, rebuilt by every batch: the baseline",
    "bump": "aimGraph: chained blocks, never freed",
    "pages": "faimGraph: chained pages, freed through a ring queue",
    "vine": "GraphVine: trees of blocks, allocated in advance; deletions leave gaps",
    "bal": "Marrow-Graph: blocks chained both ways, those written to are marked",
    "ouro-s-p": "ouroGraph: rows in pages of Ouroboros; queues of pages as rings",
    "ouro-s-c": "the same with queues of chunks",
    "ouro-va-p": "the same with queues of pages in virtualised arrays",
    "ouro-va-c": "the same with queues of chunks in virtualised arrays",
    "ouro-vl-p": "the same with queues of pages in virtualised lists",
    "ouro-vl-c": "the same with queues of chunks in virtualised lists",
}
"""Every store with what it is."""

MODULES: Final = {"csr": "rows"} | dict.fromkeys(("bump", "pages", "vine", "bal"), "linked")
"""Modules of stores that are not named like the store, up to a dash."""

DEVICE_STORES: Final = tuple(name for name in STORES if name != "bal")
"""The stores that a device has; of `bal`, which the host edits, it has a replica."""


PAGE_BYTES: Final = 32, 64, 128, 256
UPDATES: Final = "vertex", "thread", "warp", "block"
HEAP: Final = {"chunk": CHUNKS, "page": PAGES, "update": ("merged", "unchecked")}
OPTIONS: Final[Mapping[str, Mapping[str, tuple[Any, ...]]]] = {
    "bump": {"page": PAGE_BYTES, "update": UPDATES},
    "pages": {
        "page": PAGE_BYTES,
        "order": ("any", "sorted"),
        "update": UPDATES,
        "layout": ("arrays", "soa", "aos"),
        "edges": ("plain", "semantic"),
        "ids": ("lowest", "queue"),
        "deletion": ("dual", "reverse"),
        "directed": ("no", "yes"),
    },
    "vine": {
        "block": tuple(range(1, 129)),
        "ahead": tuple(range(1001)),
        "reserve": tuple(range(1, 91)),
        "worker": ("warp", "thread"),
        "query": ("pairs", "entries"),
    },
    "bal": {"block": tuple(range(2, 129)), "order": ("any", "sorted")},
    **{name: HEAP for name in STORES if name.startswith("ouro-")},
}
"""Options of stores, with their values; see `store_class`."""


def options_of(store: str) -> dict[str, Any]:
    """Return the options that a store's name ends with."""
    name, *given = str(store).split(":")
    known, options = OPTIONS.get(name, {}), dict[str, Any]()
    for text in given:
        option, _, value = text.partition("=")
        if option not in known:
            has = f"options {', '.join(known)}" if known else "no options"
            raise OptionError("store", store, f"has {has}; leave out {text!r}")
        if option in options:
            raise OptionError("store", store, f"must have {option} once; leave out {text!r}")
        values = {str(value): value for value in known[option]}
        if value not in values:
            listed = [*values] if len(values) < 9 else [f"{known[option][0]} … {known[option][-1]}"]
            raise OptionError("store", store, f"must have {option}={' or '.join(listed)}")
        options[option] = values[value]
    if options.get("directed") == "yes" and options.get("deletion") == "dual":
        raise OptionError("store", store, "must have deletion=reverse, as any row may have an edge")
    return options


def store_class(store: str, device: str = "cpu") -> Any:
    """Return what builds a store on a device.

    Parameters
    ----------
    store : str
        A name of `STORES`, and options of it (`OPTIONS`) behind colons: ``"pages:page=128"``; the
        guide to stores says what they mean.
    device : str

    Raises
    ------
    OptionError
        There is no such store on the device, or it has no such option.
    """
    name = str(store).partition(":")[0]
    if name not in tuple(STORES):  # a list is no key
        raise OptionError("store", store, f"must be one of {', '.join(map(repr, STORES))}")
    options = options_of(store)
    if device.startswith("cuda"):
        return partial(_on_device(name, device), **options)
    return partial(_class_of(name, "stores"), **options)


def share_of(memory: Any) -> float | None:
    """Return the share of a device's budget that arcs fill before they go to the host."""
    from louvain_um.placement.policy.find import find_policy
    from louvain_um.placement.policy.policy import AUTO, HOST

    policy = find_policy(memory)
    placement = policy.placement_of("targets", "graph")
    if policy.name == AUTO.name:
        return 1.0
    if placement.kind == "device":
        return None
    return 0.0 if placement.kind in HOST else placement.fraction


def _on_device(name: str, device: str) -> Any:
    """Return the class of a store on the current CUDA device."""
    from louvain_um.gpu.runtime.device import pick

    chosen = pick(device)
    from cupy.cuda.runtime import getDevice

    if chosen.index != getDevice():
        raise OptionError("device", device, f"must be the current device, cuda:{getDevice()}")
    if name in DEVICE_STORES:
        return device_store(name)
    from louvain_um.gpu.dynamic.cuda import CudaDevice

    return partial(_class_of(name, "stores"), device=CudaDevice())


def device_store(name: str) -> Any:
    """Return the class of a store on devices; it takes `DeviceChanges`, not `ArcChanges`."""
    return _class_of(name.partition(":")[0], "stores.on_device")


def _class_of(name: str, where: str) -> Any:
    module = MODULES.get(name, name.partition("-")[0])
    return import_module(f"louvain_um.dynamic.{where}.{module}").STORES[name]
