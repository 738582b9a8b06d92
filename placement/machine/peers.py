"""Several devices of one host: which reaches whose memory."""

from __future__ import annotations

from collections.abc import Sequence

from louvain_um.errors import DeviceUnavailableError
from louvain_um.placement.memory import cuda_calls
from louvain_um.placement.memory.guard import guard


def enable_peers(device: int, others: Sequence[int], remedy: str) -> None:
    """Let a device read the others' memory: copies by way of the host are ten times slower."""
    for other in dict.fromkeys(others):
        if not cuda_calls.reaches(device, other):
            raise DeviceUnavailableError(
                f"cuda:{device} cannot read the memory of cuda:{other}; {remedy}"
            )
        cuda_calls.enable_peer(device, other)


def peer_for(name: str | None, device: int) -> int | None:
    """Return the device whose memory a run on another one may use; None if none is named."""
    if name is None:
        return None
    peer = int(name.removeprefix("cuda:"))
    enable_peers(device, [peer], "name another GPU of this host, or leave out peer_memory")
    return peer


def peer_room(peer: int) -> int:
    """Return the bytes that a run may take of another device."""
    with cuda_calls.current(peer):
        return guard.room(peer)
