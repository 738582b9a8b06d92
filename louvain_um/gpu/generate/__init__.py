"""Generated graphs on the device."""

from louvain_um.gpu.generate.generate import DeviceGenerated, lfr, rmat, stencil

__all__ = ["DeviceGenerated", "lfr", "rmat", "stencil"]
