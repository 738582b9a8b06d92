"""Which memory the arrays of a Placer get: a device's and its host's, or the host's alone."""

from __future__ import annotations

from louvain_um.errors import DeviceUnavailableError, OptionError
from louvain_um.placement.machine.profiles import present
from louvain_um.placement.memory import cuda_calls
from louvain_um.placement.memory.guard import peer_for
from louvain_um.placement.program.device_arrays import DeviceStore
from louvain_um.placement.program.host_arrays import HostStore
from louvain_um.placement.program.slots import Store


def store_of(device: str | int, peer_memory: str | None = None) -> Store:
    """Return where arrays get their memory."""
    if device == "cpu":
        return HostStore()
    number = {"auto": "", "cuda": ""}.get(str(device), str(device).removeprefix("cuda:"))
    if number and not (number.isascii() and number.isdecimal() and len(number) < 4):
        raise OptionError("device", device, "must be 'auto', 'cpu', 'cuda' or 'cuda:N'")
    name, _ = present(int(number or 0))
    if name is not None:
        try:
            runtime = cuda_calls.cupy_runtime()
            own = int(number) if number else int(runtime.getDevice())
            return DeviceStore(own, peer_for(peer_memory, own))
        except ImportError:
            pass  # the GPU cannot be used
    if device == "auto":
        return HostStore()
    raise DeviceUnavailableError(
        f"CUDA device {number or 0} is not there, or CuPy is not installed; use device='cpu'"
    )
