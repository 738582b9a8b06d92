"""Level 0 in vertex blocks, where its arcs exceed the device.

Which blocks are on the device is decided by `louvain_um.placement.migration.block_cache`.
"""
