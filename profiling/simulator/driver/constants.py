"""Sizes, bits and columns that the compiled parts of the simulator share."""

from __future__ import annotations

from louvain_um.placement.hardware import BLOCK, LARGE_PAGE, PAGE, SECTOR
from louvain_um.profiling.session.events import Cause, Kind

PAGE_BYTES = PAGE
BIG_PAGES = LARGE_PAGE // PAGE
BLOCK_PAGES = BLOCK // PAGE
BLOCK_BITS = 9
BLOCK_BYTES = BLOCK_PAGES * PAGE_BYTES
LEAVES = BLOCK_PAGES // BIG_PAGES  # of the density prefetcher's tree
SECTOR_BYTES = SECTOR  # what one random access carries over the bus
BASE_ADDRESS = 0x7F00_0000_0000

# State of a page, one byte. Resident on the GPU, the host, both (a duplicate) or nowhere; what the
# GPU may do without a fault.
ON_GPU = 1
ON_HOST = 2
BOTH = ON_GPU | ON_HOST
MAP_READ = 4
MAP_WRITE = 8
MAP_REMOTE = 16
QUEUED = 32  # touches of it wait
ON_OTHER = 64  # on another GPU, whose memory this one does not reach
ON_PEER = 128  # on another GPU, whose memory this one reaches
ELSEWHERE = ON_OTHER | ON_PEER
ON_GPUS = ON_GPU | ELSEWHERE
ANYWHERE = BOTH | ELSEWHERE

# Advice of a block.
PREFERS_HOST = 1
PREFERS_GPU = 2
ACCESSED_BY = 4
READ_MOSTLY = 8
PINNED = 16
DEVICE = 32
HELD = 64  # evicted only when nothing else is left
PEER = 128  # page-locked, as it were, but in another GPU's memory
PREFERS_OTHER = 256  # another GPU
REACHED = 512  # that GPU's memory is
TARGET = 12  # from this bit on: the GPU that is meant, plus 1; 0 if none is named

# Columns of a block, or of a root chunk that small blocks share.
FIRST = 0  # first page
PAGES = 1
OWNER = 2  # array
ADVICE = 3
CHARGED = 4  # pages of device memory of its root chunk
PREV = 5
NEXT = 6
LISTED = 7  # NOWHERE, or in which list
USES = 8
TOUCHED = 9
RESIDENT = 10  # pages on the GPU
LAST_USE = 11
REMOTE_USES = 12  # accesses over the bus since its counter was cleared
CHUNK = 13  # root chunk: of a whole block itself, of a small one the latest with pages of it
REGIONS = 14  # of 64 KiB with such accesses, as bits
CHANGED_NEXT = 15  # in the list of blocks that changed, or UNCHANGED
FAULTED_TO = 16  # where its latest faults brought pages
FAULTED_PAGES = 17  # how many, since they last went elsewhere; both only with MIN_FAULTS
BLOCK_COLUMNS = 18

NOWHERE = -1
UNCHANGED = -2

# Lists of root chunks.
ORDINARY = 0
HELD_BACK = 1
UNUSED = 2  # without resident pages
DISCARDED = 3
SERVED = 4  # from which the block being served takes pieces
LISTS = 5

# Sizes of pieces.
BIG = 0
SMALL = 1

PIECE_COLUMNS = 4  # see `chunks`

# Eviction policies.
BY_MIGRATION = 0
BY_ACCESS = 1
BY_FREQUENCY = 2
SECOND_CHANCE = 3
BY_TREE = 4
BY_USER = 5

# Integers: first those of each GPU, then, from BLOCKS on, of the whole machine.
USED = 0  # pages of device memory in use
PEAK = 1
HEADS = 2  # of the lists of root chunks
TAILS = HEADS + LISTS
FREE_HEADS = TAILS + LISTS  # of the lists of free pieces of root chunks
FREE_TAILS = FREE_HEADS + 2
BLOCKS = 16  # before the root chunks that small blocks share
ROOTS = 17  # that small blocks share
EVENTS = 18  # rows in the buffer
DROPPED = 19  # rows dropped because the buffer was full
WAITING = 20  # touches that wait for the driver
BATCHES = 21
SERVICES = 22
FAULTS = 23  # entries fetched, before coalescing
REPLAYED = 24  # entries that came again
STREAK = 25  # batches of the present service
PINS = 26  # pages pinned for thrashing now
TICKS = 27  # uses of blocks so far
NOTIFIED = 28  # blocks whose counter has reached its threshold, and that wait
RANDOM = 29  # state of the generator of random pages
LAPSE = 30  # ns within which migrations of a page count as thrashing
VOTE = 31  # of faults on that lapse
UNPIN_TIME = 32  # when the first pin ends
CHANGED = 33  # head of the list of blocks whose pages moved, which other GPUs have yet to see
BETWEEN = 34  # pages that came from other GPUs, not yet accounted for
STAGED = 35  # of them, by way of the host
COUNTERS = 36
REPORTED = (BATCHES, SERVICES, FAULTS, REPLAYED)

# Switches.
CAPACITY = 0
POLICY = 1
BATCH_SIZE = 2
THRESHOLD = 3
COHERENT = 4
WINDOW = 5
DETECT_THRASHING = 6
RECORD = 7
PASSES = 8
BATCHES_PER_SERVICE = 9
PREFETCHING = 10
THRASH_EVENTS = 11
THRASH_WINDOW = 12  # ns: the first lapse, and a nap
THRASH_THROTTLES = 13
THRASH_PIN = 14  # ns
USER_EVICTION = 15  # address of the function, or 0
USER_PREFETCH = 16
COUNTER_THRESHOLD = 17  # accesses over the bus; 0: counters do not migrate
ADAPTIVE = 18  # whether the lapse adapts
HOST_PAGES = 19  # pages of 4 KiB of a page of the host
GPUS = 20
NUMBER = 21  # of this GPU among them
LINK = 22  # what a page on another GPU is to this one: ON_OTHER or ON_PEER
FAST_LINK = 23  # whether GPUs are joined by NVLink, with atomics of its own
MIN_FAULTS = 24  # pages of a block that fault before neighbours come along
SWITCHES = 25

# Columns of what is known of pages and blocks that thrash, see `thrashing`.
THRASH_COLUMNS = 9
WATCHED_COLUMNS = 7

# Columns of the touches that wait.
Q_PAGE = 0
Q_WAY = 1  # 2 · way + whether it writes
Q_AMOUNT = 2
Q_OWNER = 3
Q_TOUCHES = 4
QUEUE_COLUMNS = 5

# Columns of an event in the buffer; all int64.
E_TIME = 0
E_KIND = 1
E_ADDRESS = 2
E_BYTES = 3
E_COUNT = 4
E_CAUSE = 5
E_BATCH = 6  # batches of faults fetched so far
E_GPU = 7
EVENT_COLUMNS = 8

# What is to become of a page of the block being served.
FAULTED = 1
BROUGHT = 2  # comes along
AWAY = 3  # faulted, but goes to another GPU
THERE = 4  # is on that GPU already

# Scratch memory: digits that faults are sorted by; rows of the density prefetcher.
DIGITS = 256
HAVE = 0  # by node of the tree: pages here or asked for; the root is 1, leaves are the last
SIZE = 1  # by node: pages of a block that is no whole frame
ASKED = 2  # by big page: whether one of its pages faulted
SUMS = 3  # by page from the tree's begin: pages here or asked for before it
TREE_ROWS = 4
TREE_COLUMNS = BLOCK_PAGES + 2 * BIG_PAGES

# Kinds and causes of events, as integers.
K_HTOD = int(Kind.HTOD)
K_DTOH = int(Kind.DTOH)
K_CPU_FAULT = int(Kind.CPU_FAULT)
K_GROUP = int(Kind.GPU_FAULT_GROUP)
K_THRASHING = int(Kind.THRASHING)
K_THROTTLING = int(Kind.THROTTLING)
K_REMOTE_MAP = int(Kind.REMOTE_MAP)
K_DTOD = int(Kind.DTOD)
K_EVICTION = int(Kind.EVICTION)
K_FIRST_TOUCH = int(Kind.FIRST_TOUCH)
C_UNKNOWN = int(Cause.UNKNOWN)
C_USER = int(Cause.USER)
C_COHERENCE = int(Cause.COHERENCE)
C_PREFETCH = int(Cause.PREFETCH)
C_EVICTION = int(Cause.EVICTION)
C_COUNTED = int(Cause.ACCESS_COUNTERS)

# Terms of cost, ns, in the order of `result.TERMS`.
COMPUTE = 0
LAUNCH = 1
FAULT = 2
MIGRATE = 3
WRITE_BACK = 4
REMOTE_SEQUENTIAL = 5
REMOTE_RANDOM = 6
REMOTE_ATOMIC = 7
PREFETCH = 8
HOST = 9
STEPS = 10
REMOTE_BARRIER = 11
HIDDEN = 12
COST_TERMS = 13

# The clock, ns: when the launch began plus what it stalled; what it computed; what it read over
# the bus.
STALLED = 0
COMPUTED = 1
READ_REMOTELY = 2
CLOCKS = 3

# Rates, ns each or ns a byte.
PER_BATCH = 0
PER_SERVICE = 1
PER_BYTE_IN = 2
PER_BYTE_OUT = 3
PER_BYTE_PREFETCH = 4
PER_BYTE_PREFETCH_BACK = 5
PER_BYTE_DUPLICATE = 6
PER_HOST_FAULT = 7
SHARE_HIDDEN = 8  # of the shorter of computing and remote reading, while the other goes on
PER_WAKE = 9
PER_BYTE_PEER = 10  # from another GPU, that the driver copies
PER_BYTE_PEER_PREFETCH = 11
RATES = 12

# Ways of touching a page, and where the page lies.
READ = 0
WRITE = 1
GATHER = 2
SCATTER = 3
ATOMIC = 4
CONTENDED = 5  # atomics on so few addresses that they wait for each other
BARRIER = 6  # a block's arrival where all wait for all
WAYS = 7
SCATTERED = 128  # added to a way: single accesses, each of a random page of the run
LOCAL = 0
REMOTE = 1
FAR = 2  # in another GPU's memory

# Totals of an array, in the order of `result.TOTALS`.
T_TOUCHES = 0
T_HITS = 1
T_FAULTS = 2
T_IN_DEMAND = 3
T_IN_DENSITY = 4
T_IN_USER = 5
T_OUT_DEMAND = 6
T_OUT_USER = 7
T_OUT_EVICTION = 8
T_EVICTIONS = 9
T_DROPPED_COPIES = 10
T_REMOTE_MAPS = 11
T_REMOTE_BYTES = 12
T_REMOTE_ACCESSES = 13
T_REMOTE_ATOMICS = 14
T_HOST_FAULTS = 15
T_THRASHING = 16
T_THROTTLING = 17
T_IN_COUNTED = 18
T_IN_PEER = 19
T_PEER_BYTES = 20  # of the remote bytes, those of managed pages on another GPU
TOTALS = 21
