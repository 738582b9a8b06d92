"""The driver's decisions, as test vectors; `about` in each file says what its fields mean."""

import json
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from simulator_cases import called

from louvain_um.profiling.simulator.driver import chunks, eviction, prefetcher, service
from louvain_um.profiling.simulator.driver import constants as c
from louvain_um.profiling.simulator.driver import thrashing as t
from louvain_um.profiling.simulator.driver.prefetcher import (
    COUNTERS,
    DISABLED,
    DUPLICATE,
    ENABLED,
    FAULT,
    FOREIGN,
    UNSET,
    PageAdvice,
)
from louvain_um.profiling.simulator.driver.state import StateSizes, empty_state
from louvain_um.profiling.simulator.driver.user_functions import Driver

PROCESSORS = {0: c.ON_HOST, 1: c.ON_GPU, 2: c.ON_OTHER, None: 0}
NUMBERS = {processor: number for number, processor in PROCESSORS.items()}
NAMES = {"host": c.ON_HOST, "gpu": c.ON_GPU, None: 0}
PREFERS = {c.ON_HOST: c.PREFERS_HOST, c.ON_GPU: c.PREFERS_GPU, 0: 0}
CAUSES = {"fault": FAULT, "counters": COUNTERS, "fault of another process": FOREIGN}
DUPLICATION = {"disabled": DISABLED, "unset": UNSET, "enabled": ENABLED}
SERVICE_NS = 20_000


CALLED = (
    service.bring_counted, service.want_counted, chunks.root_of,
    chunks.unpin_served, eviction.charge, eviction.discard, eviction.free_block,
    eviction.note_empty, eviction.take_piece, prefetcher.add_neighbours, prefetcher.choose,
    t.adapt, t.follow, t.forget_pages, t.hint, t.reaches, t.stamp,
)  # fmt: skip
driver = SimpleNamespace(**{each.py_func.__name__: called(each) for each in CALLED})


def cases(name, *groups):
    path = Path(__file__).parent / "vectors" / f"{name}.json"
    every = json.loads(path.read_text())["cases"]
    return [case for case in every if not groups or case["group"] in groups]


def blocks_of(ranges, *, advice=0, roots=0, **switched):
    """Return the state of a machine with blocks, given by their first pages and lengths."""
    options = Driver()
    switches = np.zeros(c.SWITCHES, np.int64)
    switches[c.PREFETCHING] = switches[c.DETECT_THRASHING] = 1
    switches[c.THRESHOLD] = options.density_percent
    switches[c.THRASH_EVENTS] = options.thrash_events
    switches[c.THRASH_THROTTLES] = options.thrash_throttles
    switches[c.THRASH_WINDOW] = round(options.thrash_window_seconds * 1e9)
    switches[c.THRASH_PIN] = round(options.thrash_pin_seconds * 1e9)
    for name, value in switched.items():
        switches[getattr(c, name)] = value
    sizes = StateSizes(
        pages=len(ranges) * c.BLOCK_PAGES, blocks=len(ranges), roots=roots, arrays=1, window=1,
        batch=1, events=1, thrash=True,
    )  # fmt: skip
    s = empty_state(sizes, switches, np.zeros(c.RATES), np.zeros((1, 2, c.WAYS)))
    for number, (first, count) in enumerate(ranges):
        s.blocks[number, [c.FIRST, c.PAGES, c.ADVICE]] = first, count, advice
        s.blocks[number, c.CHUNK] = number if count == c.BLOCK_PAGES else c.NOWHERE
        s.block_of[first : first + count] = number
    return s


def one_block(first=0, count=c.BLOCK_PAGES, **options):
    return blocks_of([(first, count)], **options)


def bits_of(mask, pages=1):
    """Return a mask's bits by page of 4 KiB; each of its own pages is several of them."""
    value = int(mask, 16)
    return np.repeat(
        np.array([value >> i & 1 for i in range(c.BLOCK_PAGES // pages)], np.uint8), pages
    )


def test_pages_are_where_the_driver_has_them_after_a_fault():
    wrong = []
    for case in cases("residency"):
        topology, on, processor, access, preferred, by, duplication, pin, cause, *expected = case
        advice = PageAdvice(
            PROCESSORS[preferred], sum(PROCESSORS[each] for each in by), DUPLICATION[duplication]
        )
        outcome = driver.choose(
            PROCESSORS[processor], sum(PROCESSORS[each] for each in on), advice, PROCESSORS[pin],
            access in ("read", "prefetch"), topology == "coherent", CAUSES[cause],
        )  # fmt: skip
        found = [NUMBERS[outcome & c.ANYWHERE], int(outcome & DUPLICATE != 0)]
        if found != expected:
            wrong.append((case, found))
    assert not wrong


def test_pages_come_along_as_the_driver_brings_them():
    wrong = []
    for case in cases("prefetch"):
        size = case.get("page_kib", 4) // 4
        low, count, here = case["first"] * size, case["pages"] * size, NAMES[case["dest"]]
        preferred = NAMES[case.get("preferred")]
        s = one_block(
            first=low, count=count, advice=PREFERS[preferred],
            THRESHOLD=case.get("threshold", 51), MIN_FAULTS=case.get("min_faults", 1),
        )  # fmt: skip
        s.blocks[0, [c.FAULTED_TO, c.FAULTED_PAGES]] = here, case.get("count_before", 0)
        faulted, there, thrashing = (
            bits_of(case.get(name, "0"), size)[:count] for name in ("faulted", "here", "thrashing")
        )
        s.pages[low : low + count] = there * here
        s.want[low : low + count] = faulted * c.FAULTED
        s.thrash[low : low + count, t.MOVES] = thrashing * Driver().thrash_events
        s.watched[0, t.THRASHING_PAGES] = thrashing.sum()
        driver.add_neighbours(s, 0, here, bool(case.get("untouched", 0)))
        found = s.want[low : low + count] == c.BROUGHT
        # Pages that are here already need no copy, and are not listed.
        expected = (bits_of(case["prefetch"], size)[:count] == 1) & (there == 0)
        if not np.array_equal(found, expected):
            wrong.append(case["id"])
    assert not wrong


class Accesses:
    """Writes of host and GPU to pages of a block: who has them mapped, and what faults do."""

    def __init__(self, case):
        self.preferred = PROCESSORS[case["preferred"]]
        self.by = sum(PROCESSORS[each] for each in case["accessed_by"])
        coherent = case["topology"] == "coherent"
        self.s = one_block(COHERENT=coherent, ADAPTIVE=case["adaptive"])
        self.mapped = Counter()
        self.stats = Counter()

    def access(self, time, number, page):
        s, processor = self.s, PROCESSORS[number]
        if self.mapped[page] & processor:
            return ["hit", NUMBERS[s.pages[page]]]
        found = driver.hint(s, 0, page, processor, self.preferred, time)
        where = int(s.pages[page])
        if found == t.NAP:
            self.stats["throttle"] += 1
            return ["throttle", NUMBERS[where], int(s.thrash[page, t.NAP_END])]
        advice = PageAdvice(self.preferred, self.by, UNSET)
        coherent = bool(s.switches[c.COHERENT])
        goal = driver.choose(processor, where, advice, found, False, coherent, False)
        if goal != where:
            self.mapped[page] = 0
            if where and not s.thrash[page, t.PINNED_ON]:
                self.move(page, page + 1, goal, time + SERVICE_NS)
        s.pages[page] = goal
        also = self.by | (s.thrash[page, t.ACCESSORS] if found else 0)
        self.mapped[page] |= processor | sum(
            other for other in (1, 2) if also & other and driver.reaches(s, other, goal)
        )
        if found:
            self.stats["pin_local" if found == processor else "pin_remote"] += 1
        what = "pin" if found else "migrate" if goal != where else "map"
        return [what, NUMBERS[goal]]

    def move(self, first, end, processor, time):
        if driver.follow(self.s, 0, processor, time):
            for page in range(first, end):
                driver.stamp(self.s, 0, page, processor, time)

    def wake(self, time):
        """Run the unpinning worker."""
        s = self.s
        pinned = np.flatnonzero(s.thrash[:, t.PINNED_ON])
        s.clock[c.STALLED] = time
        t.unpin(s)
        gone = [int(page) for page in pinned if not s.thrash[page, t.PINNED_ON]]
        for page in gone:
            self.mapped[page] &= int(s.pages[page]) | self.by
        return gone

    def state(self, page):
        s = self.s
        if not s.watched[0, t.TRACKED]:
            return None
        row = [int(value) for value in s.thrash[page]]
        pinned, awake = row[t.PINNED_ON], row[t.AWAKE]
        return [
            row[t.MOVES], row[t.NAPS], int(pinned > 0), NUMBERS[pinned], NUMBERS[awake],
            int(s.counters[c.LAPSE]), int(s.watched[0, t.RESETS]),
        ]  # fmt: skip


def test_pages_thrash_nap_and_are_pinned_as_in_the_driver():
    groups = ("alternate", "mixed", "accessed_by", "window", "expiry", "ping_pong")
    for case in cases("thrashing", *groups):
        machine = Accesses(case)
        for number, event in enumerate(case["events"]):
            time, *rest = event
            found = machine.wake(time) if rest == ["timer"] else machine.access(time, *rest)
            assert found == case["expected"][number], (case["id"], number, event)
        for page, expected in case["state"].items():
            assert machine.state(int(page)) == expected, (case["id"], page)
        machine.stats["thrashing"] = int(machine.s.totals[0, c.T_THRASHING])
        assert {name: machine.stats[name] for name in case["stats"]} == case["stats"], case["id"]


def test_migrations_count_as_thrashing_as_in_the_driver():
    for case in cases("thrashing", "detector"):
        machine = Accesses({"preferred": None, "accessed_by": [], "topology": "", "adaptive": 1})
        s = machine.s
        for time, kind, processor, first, count, cause in case["events"]:
            if kind == "migration" and cause == "user":
                driver.forget_pages(s, 0, first, first + count)
            elif kind == "revocation" or cause != "eviction":
                machine.move(first, first + count, PROCESSORS[processor], time)
        tracked = int(s.watched[0, t.TRACKED])
        counts = s.thrash[:20, t.MOVES].tolist() if tracked else []
        thrashing = np.flatnonzero(s.thrash[:, t.MOVES] >= s.switches[c.THRASH_EVENTS]).tolist()
        expected = [case["tracked"], case["counts"], case["thrashing"]]
        assert [tracked, counts, thrashing] == expected, case["id"]
        assert s.watched[0, t.THRASHING_PAGES] == len(thrashing)


def test_the_lapse_adapts_as_in_the_driver():
    for case in cases("thrashing", "lapse"):
        s = one_block()
        for gap, expected in zip(case["gaps"], case["expected"], strict=True):
            driver.adapt(s, gap > s.counters[c.LAPSE])
            assert s.counters[c.LAPSE] == expected, case["id"]


class Memory:
    """Device memory of some root chunks, and the blocks that take it."""

    def __init__(self, case):
        parts = case.get("parts", [])
        self.owners = sorted({event[1] for event in case["events"]} | set(parts))
        frames = [number * c.BLOCK_PAGES for number in range(len(self.owners))]
        # A small block here has 30 pieces of 64 KiB, and 30 pages on either side of them.
        ranges = [
            (frame + 1, c.BLOCK_PAGES - 2) if owner in parts else (frame, c.BLOCK_PAGES)
            for frame, owner in zip(frames, self.owners, strict=True)
        ]
        self.s = blocks_of(ranges, roots=len(ranges) + 1, CAPACITY=case["roots"] * c.BLOCK_PAGES)
        self.parts = {self.owners.index(owner) for owner in parts}

    def happen(self, what, owner, sizes):
        """Let an event happen; return what each evicted root chunk lost."""
        s, block = self.s, self.owners.index(owner)
        if what == "take":
            lost = [self.losses(lambda kib=kib: self.take(block, kib), owner, kib) for kib in sizes]
            driver.unpin_served(s)
            return [each for each in lost if each]
        action = {"arrive": driver.charge, "more": driver.charge, "empty": driver.note_empty,
                  "discard": driver.discard, "free": driver.free_block}[what]  # fmt: skip
        lost = self.losses(lambda: action(s, block))
        return [lost] if lost and what != "free" else []

    def take(self, block, kib):
        s, row = self.s, self.s.blocks[block]
        first, low = int(row[c.FIRST]), -(-row[c.FIRST] // c.BIG_PAGES) * c.BIG_PAGES
        high = (first + row[c.PAGES]) // c.BIG_PAGES * c.BIG_PAGES
        every = range(first, first + int(row[c.PAGES]))
        page = next(p for p in every if s.home[p] == c.NOWHERE and (low <= p < high) == (kib == 64))
        driver.take_piece(s, row, block, page)

    def held(self):
        """Return the KiB that each owner has."""
        s = self.s
        found = {}
        for number, owner in enumerate(self.owners):
            row = s.blocks[number]
            pages = s.home[row[c.FIRST] : row[c.FIRST] + row[c.PAGES]] != c.NOWHERE
            found[owner] = 4 * int(pages.sum() if number in self.parts else row[c.CHARGED])
        return found

    def losses(self, act, owner="", gained=0):
        """Return what each owner lost by an act that gives one of them some KiB."""
        before, _, after = self.held(), act(), self.held()
        before[owner] = before.get(owner, 0) + gained
        return {name: before[name] - n for name, n in after.items() if n < before[name]}

    def listed(self, kind):
        """Return the owners in each root chunk of a list."""
        s, found = self.s, []
        chunk = s.counters[c.HEADS + kind]
        while chunk != c.NOWHERE:
            inside = {int(chunk)} if chunk < len(self.owners) else {
                int(s.block_of[page]) for page in np.flatnonzero(s.home != c.NOWHERE)
                if driver.root_of(s, s.home[page]) == chunk
            }  # fmt: skip
            found.append(sorted(self.owners[each] for each in inside))
            chunk = s.blocks[chunk, c.NEXT]
        return found


def test_root_chunks_are_evicted_as_by_the_driver():
    for case in cases("eviction"):
        memory = Memory(case)
        for number, (what, owner, *rest) in enumerate(case["events"]):
            sizes = rest[0] if what == "take" else []
            assert memory.happen(what, owner, sizes) == rest[-1], (case["id"], number)
        for name, kind in ("unused", c.UNUSED), ("discarded", c.DISCARDED), ("used", c.ORDINARY):
            expected = [sorted(owners) for owners in case["lists"][name]]
            assert memory.listed(kind) == expected, (case["id"], name)


def test_counted_pages_migrate_as_by_the_driver():
    wrong = []
    for case in cases("access_counters"):
        described, notices, size = case["blocks"], case["notifications"], case["batch"]
        batches = [range(n, min(n + size, len(notices))) for n in range(0, len(notices), size)]
        if case["page_kib"] == 4 or not case["enabled"]:  # as without Driver(access_counters=...)
            assert case["expected"] == [{"moved": [], "cleared": []} for _ in batches]
            continue
        frames = [(number * c.BLOCK_PAGES, c.BLOCK_PAGES) for number in range(len(described))]
        s = blocks_of(
            frames, CAPACITY=len(frames) * c.BLOCK_PAGES, PREFETCHING=case["prefetcher"],
            DETECT_THRASHING=0,
        )  # fmt: skip
        for (first, count), row, about in zip(frames, s.blocks, described, strict=True):
            row[c.ADVICE] = PREFERS[PROCESSORS[about["preferred"]]]
            row[c.ADVICE] |= c.ACCESSED_BY if 1 in about["accessed_by"] else 0
            row[c.ADVICE] |= c.READ_MOSTLY if about["duplication"] == "enabled" else 0
            on_host, on_gpu = (bits_of(about[name], c.BIG_PAGES) for name in ("host", "gpu"))
            s.pages[first : first + count] = on_host * c.ON_HOST + on_gpu * c.ON_GPU
        for batch, expected in zip(batches, case["expected"], strict=True):
            assert expected["cleared"] == list(batch)
            moved = []
            for block in sorted({notices[number][0] for number in batch}):
                if not described[block]["mapped"]:  # and so never accessed over the bus
                    continue
                first = block * c.BLOCK_PAGES
                for _, page, mask in (notices[n] for n in batch if notices[n][0] == block):
                    whole = bool(described[block]["whole"])
                    driver.want_counted(s, block, first + page * c.BIG_PAGES, int(mask, 16), whole)
                asked = region_mask(s.want == c.FAULTED)
                before = region_mask(s.pages[first : first + c.BLOCK_PAGES] & c.ON_GPU)
                driver.bring_counted(s, block)
                after = region_mask(s.pages[first : first + c.BLOCK_PAGES] & c.ON_GPU)
                if asked:
                    moved.append([block, f"{asked:x}", f"{after & ~before & ~asked:x}"])
            if moved != expected["moved"]:
                wrong.append((case["id"], moved, expected["moved"]))
    assert not wrong


def region_mask(pages):
    """Return which regions of 64 KiB are set, as bits; each is set or clear as a whole."""
    regions = np.asarray(pages != 0).reshape(-1, c.BIG_PAGES)
    assert np.array_equal(regions.any(axis=1), regions.all(axis=1))
    return sum(1 << int(number) for number in np.flatnonzero(regions[:, 0]))
