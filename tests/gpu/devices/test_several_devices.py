"""Several GPUs find the labels of one CPU; two ranks on one GPU run nearly all of the same code."""

from __future__ import annotations

import pytest

import louvain_um as lu
from louvain_um.errors import OptionError
from louvain_um.generators import rmat
from louvain_um.gpu.runtime.device import Choice, capabilities
from tests.distributed.runs import METHODS, assert_equal
from tests.graphs import LARGER

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("method", METHODS)
def test_two_ranks_on_one_device(gpu: Choice, method: str) -> None:
    graph = rmat(15).graph
    found = getattr(lu, method)(graph, device="cuda:0,0", seed=3)
    assert_equal(found, getattr(lu, method)(graph, device="cpu", seed=3))
    assert found.provenance["ranks"] == 2


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", LARGER)
def test_all_devices(gpu: Choice, kind: str, method: str) -> None:
    if len(capabilities()) < 2:
        pytest.skip("there is one device only")
    found = getattr(lu, method)(LARGER[kind](), device="cuda:all", seed=3)
    assert_equal(found, getattr(lu, method)(LARGER[kind](), device="cpu", seed=3))
    assert found.provenance["ranks"] == len(capabilities())


def test_policies_are_refused(gpu: Choice) -> None:
    with pytest.raises(OptionError, match="use one device"):
        lu.louvain(rmat(8).graph, device="cuda:0,0", memory="base")
