from simulator_cases import BLOCK, array, run, scan, touch

from louvain_um.profiling.session.events import Kind
from louvain_um.profiling.simulator import Access, Driver, HostTouches, Launch, Touches

HOST_WRITES = HostTouches(touches=Touches.runs(0, 0, 1, Access.WRITE))


def ping_pong(times, **options):
    steps = [step for _ in range(times) for step in (touch(0, way=Access.WRITE), HOST_WRITES)]
    return run(array(), steps, **options)


def test_ping_pong_is_noticed_throttled_and_pinned():
    # The first migration is not stamped and the page's first stamped one does not count.
    assert ping_pong(2).total("thrashing") == 0
    assert ping_pong(3).total("thrashing") == 16  # all that came along
    assert ping_pong(3).total("throttling") == 0
    assert ping_pong(4).total("throttling") == 2
    many = ping_pong(30)
    assert many.events.where(Kind.THRASHING).sum() == 16
    assert many.total("remote_maps") >= 1
    # Once pinned to the host the page is reached there, and moves no more.
    assert many.bytes_to_host == ping_pong(60).bytes_to_host


def test_who_naps_waits():
    few, more = ping_pong(3), ping_pong(4)
    napped = more.total("throttling") * 500e-6
    assert 0.5 * napped < more.seconds - few.seconds < 2 * napped


def test_a_pin_runs_out():
    steps = [step for _ in range(30) for step in (touch(0, way=Access.WRITE), HOST_WRITES)]
    later = Launch(touches=touch(100).touches, compute_seconds=0.2)
    pinned = run(array(), steps)
    assert run(array(), [*steps, touch(0)]).batches == pinned.batches
    assert run(array(), [*steps, later, touch(0)]).batches == pinned.batches + 2


def test_it_can_be_switched_off():
    off = ping_pong(30, driver=Driver(thrashing=False))
    assert off.total("thrashing") == off.total("remote_maps") == 0
    assert off.bytes_to_host > ping_pong(30).bytes_to_host


def test_oversubscription_by_the_gpu_alone_is_not_thrashing():
    data = array(4)
    steps = [HOST_WRITES, *[scan(data)] * 8]
    result = run(data, steps, capacity=2 * BLOCK)
    assert result.total("evictions") > 10
    assert result.total("thrashing") == 0
