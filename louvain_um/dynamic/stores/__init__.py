"""Stores of a changing graph's arcs, by name; all hold the same contents, bit for bit."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from louvain_um.errors import OptionError

if TYPE_CHECKING:
    from louvain_um.dynamic.stores.store import Store

STORES: Final = {
    "rows": "contiguous rows in size classes: reads like CSR, updates in place",
    "csr": "compressed sparse rows, rebuilt by every batch: the baseline",
    "bump": "aimGraph: chained blocks, never freed",
    "pages": "faimGraph: chained pages, freed through a ring queue",
    "vine": "GraphVine: trees of blocks, allocated ahead; deletions leave holes",
    "bal": "Marrow-Graph: blocks chained both ways, those written to are marked",
    "ouro-s-p": "ouroGraph: rows in pages of Ouroboros; queues of pages as rings",
    "ouro-s-c": "the same with queues of chunks",
    "ouro-va-p": "the same with queues of pages in virtualised arrays",
    "ouro-va-c": "the same with queues of chunks in virtualised arrays",
    "ouro-vl-p": "the same with queues of pages in virtualised lists",
    "ouro-vl-c": "the same with queues of chunks in virtualised lists",
}
"""Every store with what it is; the module is named like the store, up to a dash."""

DEVICE_STORES: Final = tuple(name for name in STORES if name != "bal")
"""The stores that a device has; `bal` is edited on the host, from where what changed is pushed."""


def store_class(name: str, device: str = "cpu") -> type[Store]:
    """Return the class of a store on a device."""
    if name not in tuple(STORES):  # a list is no key
        raise OptionError("store", name, f"must be one of {', '.join(map(repr, STORES))}")
    if device.startswith("cuda"):
        return _on_device(name, device)
    module = import_module(f"louvain_um.dynamic.stores.{name.partition('-')[0]}")
    found: type[Store] = module.STORES[name] if "-" in name else module.STORE
    return found


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


def _on_device(name: str, device: str) -> type[Store]:
    """Return the class of a store on the current CUDA device."""
    from louvain_um.gpu.runtime.device import pick

    chosen = pick(device)
    from cupy.cuda.runtime import getDevice

    if chosen.index != getDevice():
        raise OptionError("device", device, f"must be the current device, cuda:{getDevice()}")
    if name not in DEVICE_STORES:
        there = ", ".join(map(repr, DEVICE_STORES))
        raise OptionError("store", name, f"must be one of {there} on a device")
    found: type[Store] = device_store(name)
    return found


def device_store(name: str) -> Any:
    """Return the class of a store on devices; it takes `DeviceChanges`, not `ArcChanges`."""
    where = {"csr": "rows"}.get(name, name.partition("-")[0])
    return import_module(f"louvain_um.dynamic.stores.on_device.{where}").STORES[name]
