"""The machine profiles that come with the package, and where each figure was taken from."""

from __future__ import annotations

from dataclasses import replace

from louvain_um.placement.machine.machine import GIB, Machine

_FAULTS = (
    "fitted: the simulator's batches, block services and bytes against four measured runs "
    "(1 GiB faulted in sequentially and at random, touched first on the GPU, 4,096 random reads)"
)
_MIGRATION = (
    "assumed: a prefetch's time a byte, and on it the 19 ps a byte that faults add on the H200"
)
_FROM_H200 = (
    "assumed: the H200's share of its own bus (51.3 / 55.5 in place, a random read is one "
    "32-byte sector at a third of the bus) on PCIe 3.0 x16 at 12.5 GB/s"
)
_HOST_SOFTWARE = "assumed: host software, as fitted on the H200's host"
_AS_H200 = "assumed: as on the H200"
_IN_BATCHES = "assumed: nothing beside what batches and bytes take"
_LINKED = "measured once between H200 of one host that NVLink joins; no record was kept"

H200 = Machine(
    name="h200",
    memory_bytes=139 * GIB,
    device_bandwidth=4360e9,
    device_random_rate=40e9,
    device_atomic_rate=16.7e9,
    copy_to_device=55.5e9,
    copy_to_host=55.4e9,
    remote_bandwidth=51.3e9,
    remote_write_bandwidth=52.6e9,
    remote_random_rate=567e6,
    remote_atomic_rate=396e6,
    pinned_random_rate=111e6,
    prefetch_to_device=49.8e9,
    prefetch_to_host=20.5e9,
    prefetch_duplicate=16.6e9,
    migrate_to_device=25.6e9,
    evict_to_host=20.5e9,
    fault_batch_seconds=30e-6,
    block_service_seconds=10e-6,
    cpu_fault_seconds=20e-6,
    launch_seconds=3.7e-6,
    readback_seconds=16e-6,
    fault_wake_seconds=100e-6,
    prefetch_call_seconds=100e-6,
    step_seconds=8e-6,
    arrival_seconds=10e-6,
    operation_rate=30e12,
    faults_in_flight=264,
    cache_bytes=50 << 20,
    peer_bandwidth=355e9,
    peer_copy_bandwidth=389e9,
    peer_random_rate=7.13e9,
    peer_atomic_rate=1e9,
    notes={
        "all": "measured on one NVIDIA H200 (PCIe 5.0 x16, driver 580.159, CUDA 13.0, x86-64)",
        "peer_bandwidth": _LINKED,
        "peer_copy_bandwidth": _LINKED,
        "peer_random_rate": _LINKED,
        "peer_atomic_rate": "assumed: a seventh of the random reads",
        "device_atomic_rate": "measured on device and on resident managed memory alike",
        "prefetch_to_host": "middle of the measured 17.7 to 23.3 GB/s",
        "prefetch_duplicate": "middle of the measured 14.6 to 18.7 GB/s",
        "migrate_to_device": "fitted together with fault_batch_seconds; many small copies",
        "evict_to_host": "assumed: as a prefetch to the host; the driver's eviction was not run",
        "fault_batch_seconds": _FAULTS,
        "block_service_seconds": _FAULTS,
        "cpu_fault_seconds": "measured by calibrate: 18.5 to 20.4 µs in six runs",
        "fault_wake_seconds": "fitted to LFR 18 and 20 under base: .09 to .28 ms for each time",
        "prefetch_call_seconds": "fitted to blocks of LFR 18 and 20 that come and go: part of .41 "
        "and .47 ms each",
        "step_seconds": "fitted to LFR 18 in device memory; 6 to 9 µs on levels of R-MAT 18",
        "operation_rate": "measured: multiply-adds that depend on each other, 30.6 Tflop/s",
        "arrival_seconds": "fitted to LFR 18 with scratch in host memory: 240 ms more",
        "cache_bytes": "data sheet: 50 MB, taken as MiB",
        "faults_in_flight": "132 processors x 2,048 threads x 4 bytes, in pages of 4 KiB",
    },
)

P4000 = Machine(
    name="p4000",
    memory_bytes=8 * GIB,
    device_bandwidth=195e9,
    device_random_rate=3.4e9,
    device_atomic_rate=1.8e9,
    copy_to_device=12.5e9,
    copy_to_host=12.8e9,
    remote_bandwidth=11.5e9,
    remote_write_bandwidth=11.8e9,
    remote_random_rate=128e6,
    remote_atomic_rate=60e6,
    pinned_random_rate=128e6,
    prefetch_to_device=11.3e9,
    prefetch_to_host=11.3e9,
    prefetch_duplicate=5.6e9,
    migrate_to_device=9.3e9,
    evict_to_host=11.3e9,
    fault_batch_seconds=30e-6,
    block_service_seconds=10e-6,
    cpu_fault_seconds=20e-6,
    launch_seconds=5e-6,
    readback_seconds=20e-6,
    operation_rate=2.4e12,
    faults_in_flight=56,
    cache_bytes=2 << 20,
    notes={
        "all": "assumed where nothing else is said; no figure was measured on a Quadro P4000",
        "memory_bytes": "data sheet: 8 GB GDDR5",
        "device_bandwidth": "data sheet: 243 GB/s, of which 80 % is taken as reachable",
        "device_random_rate": "assumed: a 32-byte sector a read, at 45 % of the data sheet's rate",
        "device_atomic_rate": "assumed: half the rate of random reads",
        "copy_to_device": "PCIe 3.0 x16: 15.75 GB/s, of which 80 % is usual",
        "remote_bandwidth": _FROM_H200,
        "remote_random_rate": _FROM_H200,
        "migrate_to_device": _MIGRATION,
        "prefetch_duplicate": "assumed: half of a plain prefetch; the H200 shows a third",
        "fault_batch_seconds": _HOST_SOFTWARE,
        "block_service_seconds": _HOST_SOFTWARE,
        "cache_bytes": "data sheet: 2 MB",
        "operation_rate": "assumed: 45 % of the data sheet's 5.3 Tflop/s in single precision",
        "step_seconds": _AS_H200,
        "arrival_seconds": _AS_H200,
        "fault_wake_seconds": _IN_BATCHES,
        "prefetch_call_seconds": _IN_BATCHES,
        "faults_in_flight": "14 processors x 2,048 threads x 4 bytes, in pages of 4 KiB",
    },
)

RTX3060TI = replace(
    P4000,  # the same bus
    name="rtx3060ti",
    device_bandwidth=370e9,
    device_random_rate=6.3e9,
    device_atomic_rate=3.2e9,
    launch_seconds=4e-6,
    readback_seconds=16e-6,
    operation_rate=7.3e12,
    faults_in_flight=57,
    cache_bytes=4 << 20,
    notes={
        **P4000.notes,
        "all": "assumed where nothing else is said; no figure was measured on an RTX 3060 Ti",
        "memory_bytes": "data sheet: 8 GB GDDR6",
        "device_bandwidth": "data sheet: 448 GB/s, of which 83 % is taken as reachable",
        "copy_to_device": "PCIe 3.0 x16 (the host's): 15.75 GB/s, of which 80 % is usual",
        "cache_bytes": "data sheet: 4 MB",
        "operation_rate": "assumed: 45 % of the data sheet's 16.2 Tflop/s in single precision",
        "faults_in_flight": "38 processors x 1,536 threads x 4 bytes, in pages of 4 KiB",
    },
)

P100 = replace(
    P4000,  # the same bus
    name="p100",
    memory_bytes=16 * GIB,
    device_bandwidth=585e9,
    device_random_rate=10.3e9,
    device_atomic_rate=5.1e9,
    operation_rate=4.2e12,
    faults_in_flight=112,
    cache_bytes=4 << 20,
    notes={
        **P4000.notes,
        "all": "assumed where nothing else is said; no figure was measured on a Tesla P100",
        "memory_bytes": "data sheet: 16 GB HBM2",
        "device_bandwidth": "data sheet: 732 GB/s, of which 80 % is taken as reachable",
        "copy_to_device": "PCIe 3.0 x16 (the host's): 15.75 GB/s, of which 80 % is usual",
        "cache_bytes": "data sheet: 4 MB",
        "operation_rate": "assumed: 45 % of the data sheet's 9.3 Tflop/s in single precision",
        "faults_in_flight": "56 processors x 2,048 threads x 4 bytes, in pages of 4 KiB",
    },
)

_FROM_NVLINK = "assumed: as on PCIe, at 32 instead of 12.5 GB/s"

P100_NVLINK = replace(
    P100,
    name="p100-nvlink",
    copy_to_device=32e9,
    copy_to_host=32e9,
    remote_bandwidth=29.4e9,
    remote_write_bandwidth=30.2e9,
    remote_random_rate=328e6,
    remote_atomic_rate=154e6,
    pinned_random_rate=328e6,
    prefetch_to_device=28.9e9,
    prefetch_to_host=28.9e9,
    prefetch_duplicate=14.4e9,
    migrate_to_device=18.7e9,
    evict_to_host=28.9e9,
    notes={
        **P100.notes,
        "all": "the machine of Hope, Nag and Qasem: a P100 linked to a POWER8; nothing was "
        "measured there",
        "copy_to_device": "two NVLink 1.0 links of 20 GB/s to the host, of which 80 % is taken",
        "remote_bandwidth": _FROM_NVLINK,
        "remote_random_rate": _FROM_NVLINK,
        "prefetch_to_device": _FROM_NVLINK,
    },
)

PROFILES = {machine.name: machine for machine in (H200, P4000, RTX3060TI, P100, P100_NVLINK)}
