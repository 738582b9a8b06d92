"""What became of many communities at once is what became of them one by one."""

import numpy as np
import pytest

from louvain_um.dynamic.tracking.device_identity import overlaps_of_many, succession_of_many
from louvain_um.dynamic.tracking.identity import Concerned, Overlaps, events_of, succession


def shared(rng, after, before, vertices):
    """Return members that communities share: few weights, so that many are equal."""
    return {
        "news": rng.integers(0, after, vertices),
        "olds": rng.integers(0, before, vertices),
        "weights": rng.integers(0, 4, vertices),
        "sizes": rng.integers(0, 3, vertices),
    }


@pytest.mark.parametrize("seed", range(12))
def test_many_communities_inherit_as_few_do(seed):
    rng = np.random.default_rng(seed)
    after, before = rng.integers(1, 40, 2)
    members = shared(rng, after, before, rng.integers(1, 120))
    few = Overlaps.of_pairs(**{name: column.copy() for name, column in members.items()})
    many = overlaps_of_many(np, **members)
    by_pair = [
        sorted(zip(*(getattr(o, name).tolist() for name in members), strict=True))
        for o in (few, many)
    ]
    assert by_pair[0] == by_pair[1]
    sizes = np.bincount(few.news, few.sizes, after).astype(np.int64) + rng.integers(0, 2, after)
    concerned = Concerned(
        sizes=sizes,
        weights=rng.integers(0, 50, after),
        old_ids=rng.permutation(100)[:before],
        old_sizes=rng.integers(1, 4, before),
        old_weights=rng.integers(0, 50, before),
        overlaps=many,
    )
    ids, next_id, events = succession(concerned, 100)
    found, following, reported = succession_of_many(np, concerned, 100)
    assert found.tolist() == ids.tolist()
    assert following == next_id
    assert events_of(reported).tolist() == events.tolist()
