import numpy as np
from simulator_cases import BLOCK, KIB, PAGES, array, growth, run, touch

from louvain_um.profiling.simulator import Access, Driver, HostTouches, Touches


def test_sequential_single_faults_double():
    pages, resident = [], 0
    for size in (64, 64, 128, 256, 512, 1024):
        pages.append(resident // 4)
        resident += size
    assert growth(pages) == [64, 64, 128, 256, 512, 1024]


def test_random_single_faults_fill_a_block_in_about_fourteen():
    rng = np.random.default_rng(1)
    counts = []
    for _ in range(40):
        order = rng.permutation(PAGES).tolist()
        counts.append(run(array(), [touch(page) for page in order], record=False).batches)
    assert 12.5 <= np.mean(counts) <= 14.5


def test_a_batch_on_half_of_the_big_pages_brings_half():
    half = run(array(), [touch(*range(0, PAGES, 32))])
    assert (half.batches, half.bytes_to_device) == (1, 1024 * KIB)


def test_a_batch_on_more_than_half_of_the_big_pages_brings_all():
    pages = [*range(0, PAGES, 32), 16]
    assert run(array(), [touch(*pages)]).bytes_to_device == 2048 * KIB


def test_demand_and_density_are_distinguished():
    one = run(array(), [touch(5)])
    assert one.total("bytes_in_demand") == 4 * KIB
    assert one.total("bytes_in_density") == 60 * KIB


def test_without_the_prefetcher_only_faulted_pages_come():
    assert run(array(), [touch(5, 9)], driver=Driver(prefetcher=False)).bytes_to_device == 8 * KIB


def test_a_block_at_the_end_of_an_array_is_filled_within_its_own_pages():
    short = run(array(0.25), [touch(0), touch(16), touch(32)])
    assert short.bytes_to_device == 256 * KIB


def test_the_first_touch_of_a_block_that_prefers_the_gpu_fills_it():
    fresh = run(
        array(starts="nowhere"), [touch(7), touch(300)], placements={"data": "preferred_gpu"}
    )
    assert (fresh.batches, fresh.bytes_to_device) == (1, 0)


def test_the_prefetcher_works_on_under_memory_pressure():
    steps = [touch(block * PAGES) for block in range(8)] * 2
    short = run(array(8), steps, capacity=2 * BLOCK)
    assert short.total("evictions") == len(steps) - 2
    assert short.total("bytes_in_density") == len(steps) * 60 * KIB


def test_where_something_else_is_preferred_nothing_comes_along():
    # To the host come pages of a block that prefers the GPU: one by one.
    written = touch(*range(PAGES), way=Access.WRITE)
    back = HostTouches(touches=Touches.runs(0, 0, PAGES))
    steps = [written, back]
    preferred = run(array(starts="nowhere"), steps, placements={"data": "preferred_gpu"})
    assert preferred.total("host_faults") == PAGES
    assert run(array(starts="nowhere"), steps).total("host_faults") == 6
