"""Arrays of a Placer on a GPU: CuPy's, over memory of any placement that can change later."""

from __future__ import annotations

import weakref
from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from louvain_um.errors import DeviceUnavailableError, OptionError, PlacementError
from louvain_um.placement.layout import MANAGED, ArenaSpec
from louvain_um.placement.machine.profiles import present
from louvain_um.placement.memory import copies, cuda_calls
from louvain_um.placement.memory.arena import Arena, managed_fits
from louvain_um.placement.memory.guard import guard, managed_refusal, peer_for
from louvain_um.placement.memory.host import host_array
from louvain_um.placement.policy.policy import Placement
from louvain_um.placement.program.backends import Backend, HostBackend, Slot, is_part

GUARDED: Final = (
    *("__getitem__", "__setitem__", "__array__", "__array_ufunc__", "__array_function__"),
    *("get", "set", "fill", "copy", "astype", "view", "reshape", "ravel", "sum", "min", "max"),
    *(f"__{i}{name}__" for i in ("", "i") for name in ("add", "sub", "mul", "truediv", "floordiv")),
)
"""What refuses an array without memory. Kernels take its address, and then stop with an error of
CUDA, since that is 0."""


class Owner:
    """What the views of an arena keep alive; the arena goes with the last of them."""

    def __init__(self, arena: Arena) -> None:
        self.arena = arena
        self.finalizer = weakref.finalize(self, arena.close)


class DeviceBackend:
    """Memory of one device and of its host."""

    def __init__(self, device: int, peer: int | None = None) -> None:
        self.device = device
        self.peer = peer
        self.name = f"cuda:{device}"
        self.managed = managed_refusal(device) is None
        self._together = True

    def room(self) -> int | None:
        """Return the free bytes of the device that no managed memory may need."""
        with cuda_calls.current(self.device):
            return max(0, guard.room(self.device))

    def new(self, slot: Slot) -> Any:
        """Return the user's array, which points to nothing yet."""
        return new_array(slot, self.device)

    def prepare(self, slots: list[Slot]) -> None:
        """Find out whether all managed memory fits; without, host memory is page-locked."""
        layout = [_spec(slot, slot.placement) for slot in slots if slot.placement is not None]
        with cuda_calls.current(self.device):
            self._together = managed_fits(layout, self.device)

    def give(self, slot: Slot) -> None:
        """Allocate a slot's memory where it is placed, and write its source there."""
        if slot.placement is None:
            raise ValueError(f"array {slot.spec.name!r} has no placement")
        slot.memory = self._owner(slot, slot.placement)
        self._point(slot)
        slot.state = "live"
        if slot.source is not None:
            self.fill(slot, slot.source)

    def fill(self, slot: Slot, source: Any) -> None:
        """Write values where an array lives."""
        if isinstance(source, np.ndarray):
            shape = source.shape if is_part(slot, source) else slot.spec.shape
            source = np.ascontiguousarray(np.broadcast_to(source, shape), slot.spec.dtype)
        else:
            source = source.astype(slot.spec.dtype, order="C", copy=False)
        arena = slot.memory.arena
        with cuda_calls.current(self.device):
            parts = arena.sides(self.address(slot), source.nbytes)
            copies.fill(parts, source.reshape(-1), self.device)

    def fetch(self, slot: Slot) -> NDArray[Any]:
        """Return a copy of an array in ordinary host memory; what lives there is read there."""
        found = np.empty(slot.spec.shape, slot.spec.dtype)
        if found.nbytes:
            with cuda_calls.current(self.device):
                parts = slot.memory.arena.sides(self.address(slot), slot.spec.nbytes)
                copies.fetch(parts, found)
        return found

    def move(self, slot: Slot, placement: Placement) -> None:
        """Bring a live array elsewhere; its values stay, and its address changes."""
        arena = slot.memory.arena
        with cuda_calls.current(self.device):
            cuda_calls.synchronize()
            if arena.managed and placement.kind in MANAGED:
                arena.place(placement)
                return
            owner = self._owner(slot, placement)
            target = owner.arena.address
            cuda_calls.copy(target, self.address(slot), slot.spec.nbytes)
        slot.memory = owner
        self._point(slot)

    def take(self, slot: Slot) -> None:
        """Free a slot's memory, once no view of it is left."""
        if slot.memory is None:
            return
        point(slot.array, 0, 0, slot, self.device)
        slot.memory = None

    def address(self, slot: Slot) -> int:
        """Return where a live array begins."""
        return int(slot.memory.arena.address)

    def wait(self) -> None:
        """Wait for all kernels."""
        with cuda_calls.current(self.device):
            cuda_calls.synchronize()

    def _owner(self, slot: Slot, placement: Placement) -> Owner:
        with cuda_calls.current(self.device):
            spec = _spec(slot, placement)
            arena = Arena(spec, self.device, managed=self._together, peer=self.peer)
        arena.whole()
        return Owner(arena)

    def _point(self, slot: Slot) -> None:
        point(slot.array, self.address(slot), slot.spec.nbytes, slot.memory, self.device)


def _spec(slot: Slot, placement: Placement) -> ArenaSpec:
    return ArenaSpec(
        name=slot.spec.name,
        group=None,
        capacity=max(1, slot.spec.nbytes),
        placement=placement,
        lenient=True,
    )


def owner_of(array: Any) -> Owner | None:
    """Return what keeps the memory of an array, or of a view, if a Placer made it."""
    owner = getattr(array.data.mem, "_owner", None)
    return owner if isinstance(owner, Owner) else None


def host_view(array: Any) -> NDArray[Any]:
    """Return a NumPy array over the memory of an array that lives on the host."""
    owner = owner_of(array)
    arena = None if owner is None else owner.arena
    sides = set() if arena is None else {s for *_, s in arena.sides(array.data.ptr, array.nbytes)}
    if arena is None or not sides <= {"host"}:
        where = "nowhere" if arena is None else str(arena.placement)
        raise PlacementError(
            f"a host view would have to be copied: the array lives in {where} memory; use get(), "
            "or declare how often the host reads it (to_host)"
        )
    with cuda_calls.current(arena.device):
        cuda_calls.synchronize()  # the host may not overtake kernels
    return host_array(int(array.data.ptr), array.shape, array.dtype, array.strides, owner)


def new_array(slot: Slot, device: int) -> Any:
    """Return an array of CuPy without memory."""
    from cupy.cuda import MemoryPointer, UnownedMemory

    nothing = MemoryPointer(UnownedMemory(0, 0, slot, device), 0)
    array = _array_class()(slot.spec.shape, slot.spec.dtype, nothing)
    array.slot = slot
    return array


def point(array: Any, address: int, nbytes: int, owner: object, device: int) -> None:
    """Let an array, which stays the same object, point to other memory."""
    from cupy.cuda import UnownedMemory

    array.data.__init__(UnownedMemory(address, nbytes, owner, device), 0)


@cache
def _array_class() -> Any:
    """Return the class of a Placer's arrays; CuPy is imported only where there is a GPU."""
    import cupy

    class DeviceArray(cupy.ndarray):  # type: ignore[misc]
        """An array of CuPy whose memory a Placer places; views of it are such arrays, too."""

        slot: Slot | None = None

        @property
        def host(self) -> NDArray[Any]:
            """A NumPy array over the same memory, where that is on the host."""
            if self.slot is not None:
                self.slot.check()
            return host_view(self)

    for name in GUARDED:
        if hasattr(cupy.ndarray, name):
            setattr(DeviceArray, name, _checked(getattr(cupy.ndarray, name)))
    return DeviceArray


def _checked(method: Any) -> Any:
    """Return a method that refuses an array without memory."""

    def checked(self: Any, *args: Any, **options: Any) -> Any:
        if self.slot is not None:
            self.slot.check()
        return method(self, *args, **options)

    return checked


def backend_of(device: str | int, peer_memory: str | None = None) -> Backend:
    """Return where arrays get their memory."""
    if not isinstance(device, str | int):
        raise OptionError("device", device, "must be 'auto', 'cpu', 'cuda' or 'cuda:N'")
    if device == "cpu":
        return HostBackend()
    number = {"auto": "", "cuda": ""}.get(str(device), str(device).removeprefix("cuda:"))
    if number and not (number.isascii() and number.isdecimal() and len(number) < 4):
        raise OptionError("device", device, "must be 'auto', 'cpu', 'cuda' or 'cuda:N'")
    name, _ = present(int(number or 0))
    if name is not None:
        try:
            runtime = cuda_calls.cupy_runtime()
            current = int(number) if number else int(runtime.getDevice())
            return DeviceBackend(current, peer_for(peer_memory, current))
        except ImportError:
            pass  # the GPU cannot be used
    if device == "auto":
        return HostBackend()
    raise DeviceUnavailableError(
        f"CUDA device {number or 0} is not there, or CuPy is not installed; use device='cpu'"
    )
