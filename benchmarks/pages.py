"""What pages cost that the driver maps: making, mapping, opening and unmapping 512 MiB of them.

    python benchmarks/pages.py -o pages_h200.json

For pages of the device and of the host, of several sizes, in milliseconds: `create`, `map`
(`cuMemMap`), `open` (`cuMemSetAccess`, one call), `unmap` (one call), and the same while a kernel
runs; of the host also copies both ways, page by page. What a run in pages
does between kernels is made of these (`placement/migration/pages.py`).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from common import machine, save

from louvain_um.placement.memory import copies, cuda_calls, vmm
from louvain_um.placement.migration.mappings import PageSide

WHOLE = 512 << 20
SPIN = """extern "C" __global__ void spin(long long n) {
  for (auto t = clock64(); clock64() - t < n;);
}"""


def costs(side: PageSide, size: int) -> dict[str, Any]:
    """Return milliseconds of each step for pages of one side and size."""
    import cupy

    device, call = cupy.cuda.Device().id, cuda_calls.driver_call
    count, found = WHOLE // size, dict[str, float]()
    place = device if side == "device" else cuda_calls.HOST

    def timed(name: str, step: Callable[[], Any]) -> Any:
        since = time.perf_counter()
        result = step()
        found[name] = round(1e3 * (time.perf_counter() - since), 3)
        return result

    def map_all() -> None:
        for i, handle in enumerate(handles):
            call("cuMemMap", address + i * size, size, 0, handle, 0)

    def open_all() -> None:
        vmm.open_to(address, WHOLE, device)

    def copy(target: int, source: int) -> None:
        copies.copy_pages(target, source, WHOLE, size)
        cuda_calls.synchronize()

    handles = timed("create", lambda: [vmm.create(size, place) for _ in range(count)])
    address = vmm.reserve(WHOLE)
    timed("map", map_all)
    timed("open", open_all)
    timed("unmap", lambda: call("cuMemUnmap", address, WHOLE))
    map_all()
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        cupy.RawKernel(SPIN, "spin")((1,), (1,), (100_000_000,))
    timed("open_beside_a_kernel", open_all)
    stream.synchronize()
    if side == "host":
        there = cupy.empty(WHOLE, cupy.uint8).data
        copy(there.ptr, address)
        timed("to_device", lambda: copy(there.ptr, address))
        timed("to_host", lambda: copy(address, there.ptr))
    call("cuMemUnmap", address, WHOLE)
    timed("release", lambda: [call("cuMemRelease", handle) for handle in handles])
    call("cuMemAddressFree", address, WHOLE)
    return {"side": side, "page_bytes": size, "pages": count, "milliseconds": found}


def main() -> None:
    """Measure both sides and four sizes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("-o", "--out", type=Path)
    chosen = parser.parse_args()
    sides: tuple[PageSide, ...] = ("device", "host")
    rows = [costs(side, mib << 20) for side in sides for mib in (2, 8, 32, 64)]
    for row in rows:
        print(f"{row['side']:<8}{row['page_bytes'] >> 20:>3} MiB  {row['milliseconds']}")
    save("pages_h200", {"machine": machine(), "bytes": WHOLE, "results": rows}, chosen.out)


if __name__ == "__main__":
    main()
