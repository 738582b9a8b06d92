"""Level 0 with its rows dealt over devices of one host: see `louvain_um.distributed.devices`."""
