"""Compute co-location: arrays are first touched by the side that they are to live on.

Memory without advice is allocated where it is touched first. If the host initialises what the GPU
is to use, its pages fault twice (Hope, Nag and Qasem, 4.5); if the GPU initialises what stays on
the host, every write crosses the bus.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from louvain_um.errors import OptionError
from louvain_um.placement.memory import cuda_calls
from louvain_um.placement.memory.host import host_array
from louvain_um.placement.program.device_arrays import owner_of
from louvain_um.placement.program.host_arrays import HostArray, plain


def first_touch(kernel: Callable[[Any, int], object], array: Any) -> None:
    """Initialise an array of a Placer, each part on the side where it lives.

    Parameters
    ----------
    kernel : callable
        ``kernel(part, begin)`` sets the elements of a one-dimensional part, which begins at element
        `begin` of the array in C order. The part is an array of CuPy where it lives on the
        device or migrates, and of NumPy where it stays on the host: write what both understand.
    array : cupy.ndarray or numpy.ndarray
        Made by a Placer or by `smart_malloc`.

    Raises
    ------
    OptionError
        It is another array.

    Examples
    --------
    >>> import louvain_um as lu
    >>> from louvain_um.placement.program import first_touch
    >>> with lu.Placer(device="cpu") as place:
    ...     x = place.array("x", (2, 3), "i4")
    ...     _ = place.solve()
    ...     first_touch(lambda part, begin: part.fill(7 + begin), x)
    ...     print(x.sum())
    42
    """
    if isinstance(array, HostArray):
        kernel(plain(array).reshape(-1), 0)
        return
    slot = getattr(array, "slot", None)
    if slot is not None:
        slot.check()
    owner = owner_of(array) if hasattr(array, "data") and hasattr(array.data, "mem") else None
    if owner is None:
        raise OptionError("array", type(array).__name__, "must be an array of a Placer")
    arena, address = owner.arena, int(array.data.ptr)
    sides = [(at, size, side == "host") for at, size, side in arena.sides(address, array.nbytes)]
    with cuda_calls.current(arena.device):
        for begin, end, on_host in element_parts(sides, address, array.dtype.itemsize):
            if on_host:
                cuda_calls.synchronize()
                at = address + begin * array.dtype.itemsize
                kernel(host_array(at, (end - begin,), array.dtype, owner=owner), begin)
            else:
                kernel(array.reshape(-1)[begin:end], begin)
        cuda_calls.synchronize()


def element_parts(
    sides: Iterable[tuple[int, int, bool]], address: int, itemsize: int
) -> list[tuple[int, int, bool]]:
    """Return stretches of elements and whether the host owns each; joint ones go to the device."""
    found, done = list[tuple[int, int, bool]](), 0
    for begin, nbytes, on_host in sides:
        end = begin + nbytes - address
        # An element on both sides is the device's, which reaches both.
        last = end // itemsize if on_host else -(-end // itemsize)
        if last > done:
            found.append((done, last, on_host))
            done = last
    return found
