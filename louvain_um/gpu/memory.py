"""The allocator that a run's arrays come from; `louvain_um.placement` lays it out."""

from louvain_um.placement.allocator import Allocator as DeviceAllocator

__all__ = ["DeviceAllocator"]
