"""What every communicator does, whatever carries its arrays; each of its ranks calls `conforms`."""

import numpy as np

from louvain_um.distributed.communicator import gather_columns


def conforms(ranks):
    rank, size = ranks.rank, ranks.size
    dtypes = (np.uint8, np.uint32, np.int64, np.float64)
    for dtype in dtypes:
        for longest in (0, 1, 1000):  # rank 0 has nothing to say, the last one the most
            sent = np.arange(rank * longest, dtype=dtype) + dtype(rank)
            received = ranks.allgatherv(sent)
            assert len(received) == size
            for other, found in enumerate(received):
                assert found.dtype == dtype
                expected = np.arange(other * longest, dtype=dtype) + dtype(other)
                assert np.array_equal(found, expected)
                found[:] = 0  # it belongs to this rank
            parts = [np.full(rank + 2 * to, rank + 10 * to, dtype) for to in range(size)]
            for other, found in enumerate(ranks.alltoallv(parts)):
                assert found.dtype == dtype
                assert np.array_equal(found, np.full(other + 2 * rank, other + 10 * rank, dtype))
    # A view with gaps, and one that may not be written to.
    spread = np.arange(20, dtype=np.int64)[::2]
    spread.flags.writeable = False
    assert all(np.array_equal(each, spread) for each in ranks.allgatherv(spread))
    for length in (0, 1, size, 1001):
        bits = np.zeros(length, np.uint8)
        bits[rank::size] = 1 << rank % 8
        expected = np.array([1 << k % size % 8 for k in range(length)], np.uint8)
        assert np.array_equal(ranks.or_bits(bits), expected)
    big = 2**62 // size
    sums = ranks.sum_exact([big, -big, rank, 1])
    assert sums.dtype == np.int64
    assert sums.tolist() == [big * size, -big * size, size * (size - 1) // 2, size]
    assert ranks.sum_exact([]).tolist() == []
    columns = np.full(rank, rank, np.uint32), np.full(rank, -rank, np.int64)
    first, second = gather_columns(ranks, *columns)
    assert first.tolist() == [r for r in range(size) for _ in range(r)]
    assert second.tolist() == [-r for r in range(size) for _ in range(r)]
    ranks.check()
    assert ranks.patience > 0
    assert ranks.traffic.collectives > 0
    if size > 1:
        assert ranks.traffic.received > 0
        assert ranks.traffic.sent > 0
    return ranks.traffic.collectives
