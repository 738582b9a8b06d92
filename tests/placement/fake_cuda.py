"""A stand-in for the CUDA runtime: hands out addresses, keeps advice, records every call."""

from itertools import cycle
from types import SimpleNamespace
from typing import Any

import numpy as np

from louvain_um.placement.memory import arena, cuda_calls, run_memory
from louvain_um.placement.memory.guard import guard
from louvain_um.placement.migration import pages, span
from louvain_um.placement.program import device_backend

GIB = 1 << 30
ADVICE = {
    f"cudaMemAdvise{verb}{what}": f"{verb}{what}"
    for verb in ("Set", "Unset")
    for what in ("ReadMostly", "PreferredLocation", "AccessedBy")
}
RANGE = {
    f"cudaMemRangeAttribute{name}": name
    for name in ("ReadMostly", "PreferredLocation", "AccessedBy", "LastPrefetchLocation")
}


class FakeError(RuntimeError):
    """What CuPy raises: a text that begins with the name, and the number."""

    def __init__(self, name, status):
        super().__init__(f"{name}: something is wrong")
        self.status = status


class Status(int):
    """A status of cuda.bindings, which has a name."""

    name = "cudaErrorInvalidValue"


class Location:
    type = "invalid"
    id = -7


class FakeCuda:
    """One device of 8 GiB. `log` holds what was called, `alive` what is allocated."""

    def __init__(self, *, toolkit=13, free=8 * GIB):
        self.free_bytes = free
        self.attributes = {83: 1, 89: 1, 91: 1, 100: 0}
        self.alive: dict[int, tuple[str, int]] = {}
        self.log: list[tuple[Any, ...]] = []
        self.advised: dict[int, dict[str, Any]] = {}
        self.reject: str | None = None
        self.forget: str | None = None
        self.fail_after: int | None = None
        self.skew = 0
        self.next = 1 << 42
        self.handles = 0
        self.device = 0
        # A kernel still runs when this is asked first, and has ended then.
        self.queries = cycle([cuda_calls.NOT_READY, 0])
        self.bindings = self._bindings(toolkit)
        self.driver = self._driver()
        self.runtime = SimpleNamespace(
            getDevice=lambda: self.device,
            setDevice=self._set_device,
            malloc=lambda n: self._allocate("malloc", n),
            mallocManaged=lambda n, flags: self._allocate("mallocManaged", n),
            hostAlloc=lambda n, flags: self._allocate("hostAlloc", n),
            free=lambda a: self._free(("malloc", "mallocManaged"), a),
            hostRegister=lambda a, n, flags: self._register(a, n),
            hostUnregister=lambda a: self.alive.pop(a),
            memcpy=lambda *what: self.log.append(("memcpy", *what)),
            freeHost=lambda a: self._free(("hostAlloc",), a),
            memGetInfo=lambda: (self.free_bytes, 8 * GIB),
            deviceGetAttribute=lambda number, device: self.attributes[number],
            deviceCanAccessPeer=lambda device, other: 1,
            deviceEnablePeerAccess=lambda other: None,
            deviceSynchronize=lambda: self.log.append(("synchronize",)),
            streamCreateWithFlags=lambda flags: 7,
            streamSynchronize=lambda stream: self.log.append(("synchronize", stream)),
            streamQuery=lambda stream: next(self.queries),
            streamDestroy=lambda stream: None,
        )

    def _set_device(self, device):
        self.device = device

    def _allocate(self, kind, nbytes):
        self._may_fail()
        if kind == "malloc":
            if nbytes > self.free_bytes:
                raise FakeError("cudaErrorMemoryAllocation", 2)
            self.free_bytes -= nbytes
        address = self.next + self.skew
        self.next += -(-(nbytes + self.skew) // GIB) * GIB
        self.alive[address] = (kind, nbytes)
        self.log.append((kind, nbytes))
        return address

    def _register(self, address, nbytes):
        self._may_fail()
        self.alive[address] = ("registered", nbytes)
        self.log.append(("hostRegister", nbytes))

    def _may_fail(self):
        if self.fail_after is not None:
            if self.fail_after == 0:
                raise FakeError("cudaErrorMemoryAllocation", 2)
            self.fail_after -= 1

    def _free(self, kinds, address):
        kind, nbytes = self.alive.pop(address)
        assert kind in kinds
        if kind == "malloc":
            self.free_bytes += nbytes
        self.advised = {a: t for a, t in self.advised.items() if not 0 <= a - address < nbytes}

    def _bindings(self, toolkit):
        newer = "_v2" if toolkit == 12 else ""
        module = SimpleNamespace(
            cudaMemoryAdvise=SimpleNamespace(**ADVICE),
            cudaMemRangeAttribute=SimpleNamespace(**RANGE),
            cudaMemLocationType=SimpleNamespace(
                cudaMemLocationTypeHost="host", cudaMemLocationTypeDevice="device"
            ),
            cudaMemLocation=Location,
            cudaMemRangeGetAttribute=self._say,
            **{
                f"cudaMemAdvise{newer}": self._advise,
                f"cudaMemPrefetchAsync{newer}": self._prefetch,
            },
        )
        if toolkit == 12:
            module.cudaMemAdvise = module.cudaMemPrefetchAsync = None  # they take numbers
        return module

    def _driver(self):
        kinds = SimpleNamespace(
            CU_MEM_LOCATION_TYPE_DEVICE="device", CU_MEM_LOCATION_TYPE_HOST_NUMA="host"
        )
        pinned = SimpleNamespace(CU_MEM_ALLOCATION_TYPE_PINNED="pinned")
        both = SimpleNamespace(CU_MEM_ACCESS_FLAGS_PROT_READWRITE="rw")
        return SimpleNamespace(
            CUmemLocationType=kinds,
            CUmemAllocationType=pinned,
            CUmemAccess_flags=both,
            CUmemAllocationProp=lambda: SimpleNamespace(location=Location()),
            CUmemAccessDesc=lambda: SimpleNamespace(location=Location()),
            cuMemAddressReserve=self._step("cuMemAddressReserve", self._reserve),
            cuMemCreate=self._step("cuMemCreate", self._create),
            cuMemMap=self._step("cuMemMap", lambda *_: None),
            cuMemSetAccess=self._step("cuMemSetAccess", self._open),
            cuMemUnmap=self._step("cuMemUnmap", lambda *_: None),
            cuMemRelease=self._step("cuMemRelease", self.alive_pop),
            cuMemAddressFree=self._step("cuMemAddressFree", lambda at, n: self.alive_pop(at)),
        )

    def _step(self, name, work):
        def call(*args):
            return (Status(1),) if self.reject == name else (Status(0), work(*args))

        return call

    def alive_pop(self, address):
        self.alive.pop(address)

    def _reserve(self, nbytes, *_):
        address, self.next = self.next, self.next + 64 * GIB
        self.alive[address] = ("reserved", nbytes)
        return address

    def _create(self, nbytes, wanted, flags):
        if wanted.location.type == "device":
            self.free_bytes -= nbytes
            assert self.free_bytes >= 0
        self.handles += 1
        self.alive[self.handles] = ("created", nbytes)
        self.log.append(("cuMemCreate", wanted.location.type, nbytes))
        return self.handles

    def _open(self, address, nbytes, access, count):
        start = max(
            a for a, (kind, _) in list(self.alive.items()) if kind == "reserved" and a <= address
        )
        self.log.append(("cuMemSetAccess", access[0].location.type, address - start, nbytes))

    def _advise(self, address, nbytes, advice, where):
        place = -1 if where.type == "host" else where.id
        self.log.append((advice, address, nbytes, place))
        if advice == self.reject:
            return (Status(1),)
        range_ = self._range(address)
        what = advice.removeprefix("Set").removeprefix("Unset")
        unset = advice.startswith("Unset")
        if advice == self.forget:
            pass
        elif what == "ReadMostly":
            range_[what] = 0 if unset else 1
        elif what == "PreferredLocation":
            range_[what] = -2 if unset else place
        else:
            range_[what] = [-2] * 8 if unset else [place, *[-2] * 7]
        return (Status(0),)

    def _prefetch(self, address, nbytes, where, flags, stream):
        place = -1 if where.type == "host" else where.id
        self.log.append(("prefetch", address, nbytes, place))
        if self.reject == "prefetch":
            return (Status(1),)
        self._range(address)["LastPrefetchLocation"] = place
        if place >= 0:
            self.free_bytes -= nbytes
        return (Status(0),)

    def _say(self, size, what, address, nbytes):
        return Status(0), self._range(address)[what]

    def _range(self, address):
        nothing = {
            "ReadMostly": 0,
            "PreferredLocation": -2,
            "AccessedBy": [-2] * 8,
            "LastPrefetchLocation": -2,
        }
        return self.advised.setdefault(address, nothing)


def install(monkeypatch, fake):
    """Let all calls go to the fake; arrays are only addresses then."""
    monkeypatch.setattr(cuda_calls, "bindings", lambda: fake.bindings)
    monkeypatch.setattr(cuda_calls, "driver", lambda: fake.driver)
    monkeypatch.setattr(cuda_calls, "cupy_runtime", lambda: fake.runtime)
    monkeypatch.setattr(guard, "ranges", {})
    monkeypatch.setattr(pages, "KEPT_SHARE", 0.0)
    monkeypatch.setattr(guard, "permitted", {})
    monkeypatch.setattr(cuda_calls, "kernel_stream", lambda: 0)

    def view(address, shape, dtype, arena, owner=None):
        kind = np.dtype(dtype)
        pointer = SimpleNamespace(ptr=address, mem=SimpleNamespace(_owner=owner))
        return SimpleNamespace(size=shape, dtype=kind, itemsize=kind.itemsize, data=pointer)

    monkeypatch.setattr(run_memory, "view", view)

    def new_array(slot, device):
        shape, kind = slot.spec.shape, np.dtype(slot.spec.dtype)
        array = SimpleNamespace(slot=slot, shape=shape, dtype=kind, nbytes=slot.spec.nbytes)
        point(array, 0, 0, slot, device)
        return array

    def point(array, address, nbytes, owner, device):
        array.data = SimpleNamespace(ptr=address, mem=SimpleNamespace(_owner=owner))

    monkeypatch.setattr(device_backend, "new_array", new_array)
    monkeypatch.setattr(device_backend, "point", point)
    # The host's threads would touch addresses that are not mapped.
    touched = lambda address, nbytes: fake.log.append(("touch", address, nbytes, -1))  # noqa: E731
    monkeypatch.setattr(arena, "populate", touched)
    monkeypatch.setattr(span, "copy_pages", lambda *what: fake.log.append(("copy", *what)))
    return fake
