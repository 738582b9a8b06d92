"""What Python and CUDA both write down is the same: structures, field by field, and constants."""

import numpy as np
import pytest

from louvain_um.core import rules
from louvain_um.cpu.dynamic import linked as cpu_linked
from louvain_um.dynamic.stores import ouroboros
from louvain_um.dynamic.stores.on_device import linked
from louvain_um.errors import DeviceUnavailableError, KernelCompileError
from louvain_um.gpu import preparation
from louvain_um.gpu.aggregate import coarse_rows, limits
from louvain_um.gpu.aggregate.kernel_arguments import ARGUMENTS, STATE
from louvain_um.gpu.algorithms import workspace as algorithms
from louvain_um.gpu.dynamic import batch_arrays, follow_arrays
from louvain_um.gpu.memory import packed
from louvain_um.gpu.move import hub_tables
from louvain_um.gpu.move.arguments import BINS, CONTROL, MOVE_RULE, REFINE_RULE, SWEEPS
from louvain_um.gpu.move.extended import EXTENDED_MOVE_RULE, EXTENDED_REFINE_RULE
from louvain_um.gpu.out_of_core.vertex_blocks import NONE, SPAN, VERTEX_BLOCKS
from louvain_um.gpu.ranks import steps
from louvain_um.gpu.relabel.relabel import RELABEL_RESULT
from louvain_um.gpu.runtime import compile_cache
from louvain_um.gpu.runtime.launch import Struct, layout
from louvain_um.profiling.access import counting

MOVING = ("move", "vertex_blocks")
SHARING = ("ranks",)
AGGREGATING = ("aggregate",)
RELABELLING = ("relabel",)
BATCHES = ("batches", "merge")
FOLLOWING = ("follow",)
HEAPS = ("ouroboros",)
LISTED = ("listed_move",)
ALGORITHMS = ("bfs", "sssp", "spanning_forest")
ON_HOST = ("bfs", "pagerank", "spmv")

STRUCTS = {
    (MOVING, "MoveRule<Unweighted, u32>"): MOVE_RULE,
    (MOVING, "MoveRule<Packed, u32>"): MOVE_RULE,
    (MOVING, "MoveRule<u64, u64>"): MOVE_RULE,
    (MOVING, "RefineRule<u32, u32>"): REFINE_RULE,
    (MOVING, "RefineRule<Weights8, u64>"): REFINE_RULE,
    (("move",), "ExtendedMoveRule<Unweighted, u64>"): EXTENDED_MOVE_RULE,
    (("move",), "ExtendedMoveRule<u64, u64>"): EXTENDED_MOVE_RULE,
    (("refine",), "ExtendedRefineRule<u64, u64>"): EXTENDED_REFINE_RULE,
    (MOVING, "Sweeps"): SWEEPS,
    (MOVING, "VertexBlocks"): VERTEX_BLOCKS,
    (SHARING, "Local"): steps.LOCAL,
    (SHARING, "Shown<u32>"): steps.SHOWN,
    (SHARING, "Shown<u64>"): steps.SHOWN,
    (MOVING, "Control"): CONTROL,
    (MOVING, "HubTables<u32>"): hub_tables.HUB_TABLES,
    (MOVING, "HubTables<u64>"): hub_tables.HUB_TABLES,
    (MOVING, "HubChoice"): hub_tables.HUB_CHOICE,
    (AGGREGATING, "State"): STATE,
    (AGGREGATING, "Arguments<Unweighted, u32>"): ARGUMENTS,
    (AGGREGATING, "Arguments<Weights8Targets24, u64>"): ARGUMENTS,
    (RELABELLING, "RelabelResult"): RELABEL_RESULT,
    (BATCHES, "Batch"): batch_arrays.BATCH,
    (BATCHES, "BatchCounts"): batch_arrays.COUNTS,
    (HEAPS, "ouroboros::Semaphore"): ouroboros.SEMAPHORE,
    (HEAPS, "ouroboros::Queue"): ouroboros.QUEUE,
    (FOLLOWING, "Follow"): follow_arrays.FOLLOW,
    (FOLLOWING, "FollowCounts"): follow_arrays.COUNTS,
    (FOLLOWING, "Differing"): follow_arrays.DIFFERING,
    (("move",), "MoveRule<Spans<u32>, u64>"): MOVE_RULE,
    (LISTED, "MoveRule<Listed, u64>"): MOVE_RULE,
    (LISTED, "Listed"): preparation.LISTED_ARCS,
    (ALGORITHMS, "RowView<Unweighted>"): algorithms.ROW_VIEW,
    (ALGORITHMS, "RowView<u64>"): algorithms.ROW_VIEW,
    (ON_HOST, "HostRows<Unweighted>"): algorithms.HOST_ROWS,
    (ON_HOST, "HostRows<u64>"): algorithms.HOST_ROWS,
    (ALGORITHMS, "LinkedRows<u64>"): algorithms.LINKED_ROWS,
    (("operators",), "ListedRows<u64>"): algorithms.LISTED_ROWS,
}

CONSTANTS = {
    MOVING: {
        "GAIN_BITS": rules.GAIN_BITS,
        "EMPTY": NONE,
        "PARTITION_ARCS": hub_tables.PARTITION_ARCS,
        "MAX_PARTITIONS": hub_tables.MAX_PARTITIONS,
        "BINS": BINS,
        "BINS + 1": SPAN,
        "Table<u32>::block_max": hub_tables.BLOCK_MAX[4],
        "Table<u64>::block_max": hub_tables.BLOCK_MAX[8],
        "TARGET_MASK + 1": coarse_rows.MOST_VERTICES,
        "START_BITS": packed.START_BITS,
        "PACKED_ARCS": packed.PACKED_ARCS,
        "heavy_bits(1)": packed.heavy_bits(1),
        "heavy_bits(2)": packed.heavy_bits(2),
        "sizeof(HeavyWeight)": packed.ENTRY,
    },
    AGGREGATING: {
        "BOUND_COUNT": limits.BOUNDS,
        "Table<u32>::slots": limits.SLOTS[4],
        "Table<u64>::slots": limits.SLOTS[8],
        "BLOCK_ARCS": counting.BLOCK_ARCS,
    },
    ("linked",): {
        "DENSE": cpu_linked.DENSE,
        "REFILLED": cpu_linked.REFILLED,
        "LAZY": cpu_linked.LAZY,
        "sizeof(BlockQueue)": linked.QUEUE.itemsize,
        "__builtin_offsetof(BlockQueue, cut)": linked.QUEUE.fields["cut"][1],
        **{
            f"__builtin_offsetof(ouroboros::FreeChunks, {name})": linked.QUEUE.fields[name][1]
            for name in ("count", "front", "back", "ring", "mask")
        },
    },
    FOLLOWING: {"MOST_PART": rules.MOST_PART, "MOST_PART_ARCS": rules.MOST_PART_ARCS},
    ALGORITHMS: {"STATE_BYTES": 8 * algorithms.STATE_WORDS},
}


def compile_checks(folder, sources, checks):
    """Compile assertions behind the sources that define what they are about."""
    try:
        compile_cache.compiler()
    except DeviceUnavailableError as error:
        pytest.skip(error.reason)
    texts = compile_cache.sources()
    for name in sources:
        (folder / f"{name}_source.cuh").write_text(texts[f"{name}.cu"])
        for included in compile_cache.INCLUDE.findall(texts[f"{name}.cu"]):
            if included.endswith(".cu"):
                (folder / included).write_text(texts[included])
    included = [f'#include "{name}_source.cuh"' for name in sources]
    text = "\n".join([*included, *checks, "__global__ void none() {}"])
    (folder / "mirrors.cu").write_text(text)
    try:
        compile_cache.build("mirrors", ["none"], compile_cache.target(90), folder)
    except KernelCompileError as error:
        if '"__builtin_offsetof" is undefined' in str(error):
            pytest.skip("this NVRTC knows no offsets of fields")
        raise


def checks_of(sources):
    """Return assertions that structures are laid out as NumPy would, and constants are the same."""
    found = [f"static_assert({k} == {v}u);" for k, v in CONSTANTS.get(sources, {}).items()]
    for number, (where, struct) in enumerate(STRUCTS):
        if where == sources:
            kind, name = STRUCTS[where, struct], f"T{number}"
            found += [f"using {name} = {struct};"]
            found += [f"static_assert(sizeof({name}) == {kind.itemsize});"]
            for field, (_, offset, *_) in (kind.fields or {}).items():
                found.append(f"static_assert(__builtin_offsetof({name}, {field}) == {offset});")
    return found


@pytest.mark.parametrize(
    "sources", sorted({where for where, _ in STRUCTS} | set(CONSTANTS)), ids="-".join
)
def test_structures_and_constants_are_those_that_python_fills(tmp_path, sources):
    compile_checks(tmp_path, sources, checks_of(sources))


def test_a_structure_takes_every_field_once():
    pair = layout(seed=np.uint32, rate=np.float64)
    struct = Struct(pair, seed=3, rate=0.5)
    struct.set(seed=7)
    assert struct.argument.tobytes() == b"\7\0\0\0" + bytes(4) + np.float64(0.5).tobytes()
    assert Struct.zeroed(pair, seed=7).argument.tobytes() == b"\7" + bytes(15)
    with pytest.raises(TypeError, match="rate"):
        Struct(pair, seed=3)
