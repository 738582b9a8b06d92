"""Physical memory in pages of one size, mapped wherever an array needs them.

The device's share is made at once. Host pages are page-locked by a thread while the graph is
loaded, and `finish` waits for the last: while the driver makes one, it maps no other, so that pages
made during kernels would hold up what is mapped between them.

Making a page of the host takes the driver as long as reading it many times: of a graph that does
not fit, that is most of what loading takes. So pages of the host stay page-locked when a run ends,
mapped where the pool had them, until a run needs others or the process ends (`KEPT`).

A page stays mapped where it was (`louvain_um.placement.migration.mappings`): what begins at an
address takes the pages that are still mapped there, if they are free. The thread unmaps pages of
the host that stayed so, during a kernel.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from louvain_um.core.threads import start_thread
from louvain_um.errors import LouvainUmError, MemoryBudgetError, PlacementError
from louvain_um.placement.hardware import BLOCK
from louvain_um.placement.memory import cuda_calls, vmm
from louvain_um.placement.memory.advise import Side
from louvain_um.placement.memory.cuda_calls import HOST
from louvain_um.placement.memory.guard import guard
from louvain_um.placement.memory.host import available
from louvain_um.placement.migration.mappings import Mappings, Page, PageSide

LEAST_PAGE: Final = BLOCK
"""Bytes to whose multiples the driver maps memory."""

MOST_PAGE: Final = 64 << 20

PAGES: Final = 48
"""Pages of the device, at least: an array wastes half a page, but larger pages are mapped, and
made, faster."""

HOST_SHARE: Final = 0.5
"""Share of the host's free memory that is page-locked at most."""

KEPT_SHARE: float = 0.125
"""Share of the host's free memory that stays page-locked between runs, at most."""


def page_bytes(nbytes: int) -> int:
    """Return the size of pages for so many bytes of the device."""
    size = LEAST_PAGE
    while size < MOST_PAGE and 2 * size * PAGES <= nbytes:
        size *= 2
    return size


class PhysicalPages:
    """A pool of device pages, and of host pages that a thread adds to."""

    def __init__(
        self, device: int, here: int, first: int, there: int, size: int, peer: int | None = None
    ) -> None:
        self.device, self.size, self.peer = device, size, peer
        self.count = here // size
        least, room = -(-first // size), room_for_pages() if peer is None else free_of(peer)
        more, share = -(-there // size), int(HOST_SHARE * (room or 0)) // size
        self.most = least + max(more, share)
        # Beyond that share, pages are made only when they are wanted.
        self.wanted = least + (more if room is None else min(more, max(0, share - least)))
        self.late = 0
        self.copied: dict[PageSide, int] = {"device": 0, "host": 0}
        self.free: dict[PageSide, list[Page]] = {"device": [], "host": []}
        self.made: list[Page] = []
        self.made_there = 0
        self.bases = dict[PageSide, tuple[int, int]]()
        self.mappings, self.unmapping = Mappings(device, size), False
        self.lock = threading.Condition()
        self.stopped = False
        self.failure: BaseException | None = None
        self.thread: threading.Thread | None = None
        try:
            guard.check_plain("pages", self.count * size, device)
            self._reserve("device", self.count)
            if not self._take_kept(max(self.wanted, self.most // 2)):
                self._reserve("host", self.most)
            for _ in range(self.count):
                self._make("device")
            for _ in range(least - self.made_there):
                self._make("host")
        except BaseException:
            self.close()
            raise
        self.thread = start_thread(self._work, "pages")

    def ready(self, side: PageSide) -> int:
        """Return how many pages can be had at once."""
        with self.lock:
            return len(self.free[side])

    def finish(self) -> None:
        """Wait until the thread has made all host pages that are expected to be wanted."""
        with self.lock:
            while self._coming() > 0 and not self.failure:
                self.lock.wait()

    def take(self, side: PageSide, count: int, at: Sequence[int] = ()) -> list[Page] | None:
        """Return so many pages; None if the device has fewer. Host pages are waited for."""
        with self.lock:
            if side == "device":
                if len(self.free[side]) < count:
                    return None
            else:
                self._wait_for(count)
            free = {page.address: page for page in self.free[side]}
            there = [self.mappings.stale.get(address) for address in at]
            taken = [free.pop(page.address, None) if page else None for page in there]
            taken += [None] * (count - len(taken))
            # Others last: what is mapped elsewhere may be wanted there again.
            elsewhere = {page.address for page in list(self.mappings.stale.values())}
            rest = iter(sorted(free.values(), key=lambda page: page.address in elsewhere))
            found = [page or next(rest) for page in taken]
            self.free[side] = sorted(rest, key=lambda page: page.address)
            self.lock.notify_all()
            return found

    def give(self, pages: Sequence[Page]) -> None:
        """Take pages back, in the order of their addresses."""
        with self.lock:
            for side, free in self.free.items():
                back = [page for page in pages if page.side == side]
                if back:
                    self.free[side] = sorted([*free, *back], key=lambda page: page.address)

    def close(self) -> None:
        """Free all pages; what maps them must be closed before."""
        with self.lock:
            self.stopped = True
            self.lock.notify_all()
        whole = False
        if self.thread:
            self.thread.join()
            self.thread, whole = None, self.failure is None
        try:
            self.mappings.close()
        except BaseException:
            whole = False
            raise
        finally:
            made, self.made = self.made, []
            self.free = {"device": [], "host": []}
            bases, self.bases = self.bases, {}
            for side, (address, nbytes) in bases.items():
                pages = [page for page in made if page.side == side]
                held = KeptPages(self.device, self.size, address, nbytes, pages)
                stays = side == "host" and whole and self.peer is None
                (keep if stays else release)(held)

    def unmap_released(self) -> None:
        """Let the thread unmap pages of the host: a kernel runs that takes longer."""
        if self.mappings.due:
            with self.lock:
                self.unmapping = True
                self.lock.notify_all()

    @property
    def far(self) -> Side:
        """Where the bytes of pages of the host are."""
        return "host" if self.peer is None else "peer"

    def _reserve(self, side: PageSide, count: int) -> None:
        nbytes = max(count, 1) * self.size
        self.bases[side] = vmm.reserve(nbytes), nbytes

    def _take_kept(self, count: int) -> bool:
        """Begin with the pages of the host that stayed, if their addresses hold so many."""
        kept = take_kept(self.device, self.size, count) if self.peer is None else None
        if kept is None:
            return False
        self.bases["host"] = kept.address, kept.nbytes
        self.made += kept.pages
        self.made_there = len(kept.pages)
        self.most = min(max(self.most, self.made_there), kept.nbytes // self.size)
        self.wanted = max(self.wanted, self.made_there)
        self.free["host"] = [*kept.pages]
        return True

    def _make(self, side: PageSide) -> None:
        """Add a page to the pool."""
        with self.lock:
            at = sum(page.side == side for page in self.made)
        base, nbytes = self.bases[side]
        address = base + at * self.size
        if address + self.size > base + nbytes:
            raise MemoryBudgetError(self.size, 0, [("host pages", at * self.size)], REMEDY)
        place = self.device if side == "device" else HOST if self.peer is None else self.peer
        try:
            handle = vmm.create(self.size, place)
        except cuda_calls.CudaError as error:
            raise _explained(error, self.size, side) from None
        try:
            _call("cuMemMap", address, self.size, 0, handle, 0)
        except BaseException:
            with suppress(LouvainUmError):
                _call("cuMemRelease", handle)
            raise
        page = Page(handle, address, side)
        with self.lock:
            self.made.append(page)
            self.made_there += side == "host"
        for each in (self.device, HOST) if place == HOST else (self.device,):
            vmm.open_to(address, self.size, each)
        with self.lock:
            self.free[side].append(page)
            self.lock.notify_all()

    def _work(self) -> None:
        """Unmap pages, and make host pages while fewer are free than are expected."""
        try:
            with cuda_calls.current(self.device):
                while step := self._next():
                    step()
        except BaseException as error:  # threads that wait for pages raise it
            with self.lock:
                self.failure = error
                self.lock.notify_all()

    def _next(self) -> Callable[[], None] | None:
        """Wait until something is to be done, and return it; None if the pool closes."""
        with self.lock:
            while not (self.unmapping or self.stopped or self._coming() > 0):
                self.lock.wait()
            if self._coming() > 0 and not self.stopped:
                return partial(self._make, "host")
            return self._unmap_released if self.unmapping and not self.stopped else None

    def _unmap_released(self) -> None:
        with self.lock:
            self.unmapping = False
        self.mappings.unmap_due()

    def _coming(self) -> int:
        """Return how many host pages the thread is still to make."""
        return min(self.wanted, self.most) - self.made_there

    def _wait_for(self, count: int) -> None:
        """Wait until there are so many free host pages."""
        unforeseen = count - len(self.free["host"]) - self._coming()
        if unforeseen > 0:
            self.late += unforeseen
            self.wanted += unforeseen
            self.lock.notify_all()
        while len(self.free["host"]) < count:
            held = self.made_there - len(self.free["host"])
            if self.failure or held + count > self.most:
                raise self.failure or MemoryBudgetError(
                    count * self.size, (self.most - held) * self.size,
                    [("host pages", held * self.size)], REMEDY,
                )  # fmt: skip
            self.lock.wait()


REMEDY: Final = "use a machine with more host memory, or raise the budget"


def supported(device: int) -> bool:
    """Whether the driver maps pages of device and host next to each other."""
    try:
        for place in (device, HOST):
            _call("cuMemRelease", vmm.create(LEAST_PAGE, place))
    except (LouvainUmError, AttributeError):
        return False
    return True


def room_for_pages() -> int | None:
    """Return the bytes of the host for pages, where the system says so."""
    room = available()
    return None if room is None else room + kept_bytes()


def free_of(device: int) -> int:
    """Return the free bytes of a device."""
    with cuda_calls.current(device):
        return cuda_calls.reclaimed_memory()[0]


@dataclass(frozen=True, slots=True)
class KeptPages:
    """Pages of the host, and the addresses that were reserved for them and for more."""

    device: int
    size: int
    address: int
    nbytes: int
    pages: list[Page]


KEPT: Final = list[KeptPages]()
"""Those of the last run."""

_LOCK: Final = threading.Lock()


def kept_bytes() -> int:
    """Return the bytes of host memory that stayed page-locked, and are free for a run."""
    return sum(kept.size * len(kept.pages) for kept in KEPT)


def take_kept(device: int, size: int, count: int) -> KeptPages | None:
    """Return pages that stayed, with addresses for `count`, or None; others are released."""
    found = None
    for kept in _exchanged():
        suits = (kept.device, kept.size) == (device, size) and kept.nbytes >= count * size
        if suits and found is None:
            found = kept
        else:
            release(kept)
    return found


def keep(made: KeptPages) -> None:
    """Let pages that nothing uses stay, as far as they may; release all others."""
    most = int(KEPT_SHARE * ((available() or 0) + made.size * len(made.pages))) // made.size
    _give_back(made.pages[most:], made.size)
    kept = replace(made, pages=made.pages[:most])
    if not kept.pages:
        release(kept)
        return
    for other in _exchanged(kept):
        release(other)


def release_kept() -> None:
    """Release all that stayed."""
    for kept in _exchanged():
        release(kept)


def release(kept: KeptPages) -> None:
    """Give pages and their addresses back to the system."""
    _give_back(kept.pages, kept.size)
    _call("cuMemAddressFree", kept.address, kept.nbytes)


def _give_back(pages: list[Page], size: int) -> None:
    for page in pages:
        _call("cuMemUnmap", page.address, size)
        _call("cuMemRelease", page.handle)


def _exchanged(*new: KeptPages) -> list[KeptPages]:
    """Return what stayed, which others stay instead of."""
    with _LOCK:
        old, KEPT[:] = [*KEPT], new
        return old


def _explained(error: cuda_calls.CudaError, nbytes: int, side: str) -> LouvainUmError:
    if error.code == cuda_calls.OUT_OF_MEMORY:
        return MemoryBudgetError(nbytes, nbytes - 1, [(f"pages of the {side}", nbytes)], REMEDY)
    return PlacementError(
        f"this driver does not map pages of the {side} ({error.name}); use memory='device'"
    )


_call = cuda_calls.driver_call
