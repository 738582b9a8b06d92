"""Names of communities, few or many of them, are numbered alike."""

from __future__ import annotations

import numpy as np
import pytest

from louvain_um.dynamic.tracking.listed_identity import others_of, places_of


@pytest.mark.parametrize("count", [0, 1, 14, 15, 900])
def test_names_are_found_among_few_and_among_many(count: int) -> None:
    names = np.random.default_rng(count).integers(0, 960, count).astype(np.uint32)
    each, places, find = places_of(names, 960)
    assert each.tolist() == sorted(set(names.tolist()))
    assert names[places].tolist() == each.tolist()
    assert find(names).dtype == np.int64
    assert each[find(names)].tolist() == names.tolist()


def test_others_are_members_that_are_not_listed() -> None:
    names = np.array([0, 0, 2, 0, 2, 5], np.uint32)
    found = others_of(np, np.array([3, 4], np.uint32), names, np.array([0, 2], np.uint32))
    assert np.flatnonzero(found).tolist() == [0, 1, 2]
