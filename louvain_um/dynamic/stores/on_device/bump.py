"""aimGraph on a device: rows as chains of blocks of 64 bytes, from a pointer that only advances.

A deletion leaves a hole, which a later insertion into the row fills; blocks stay with their rows
until `compact`. Blocks, kernels and the pointer are those of `pages`, whose queue is never given
anything here.
"""

from __future__ import annotations

from typing import ClassVar, Final

from louvain_um.dynamic.stores.on_device.pages import DevicePages


class DeviceBump(DevicePages):
    """Rows in chained blocks on a device, without reuse."""

    name: ClassVar[str] = "bump"
    holes: ClassVar[bool] = True

    @classmethod
    def queued(cls, pages: int) -> int:
        """Return the places of a queue that holds nothing: the least that there is."""
        return 1


STORES: Final = {"bump": DeviceBump}
