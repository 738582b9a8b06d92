"""What `cluster="local:N"` starts is out of everybody else's reach."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("dask", reason="Dask is not installed")
import distributed

psutil = pytest.importorskip("psutil")

import louvain_um as lu  # noqa: E402
from louvain_um.distributed.carriers.dask_local import local_client  # noqa: E402
from tests.distributed.runs import assert_equal, graph_named, one_process  # noqa: E402


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with local_client(2) as client:
        yield client


def family() -> list[Any]:
    """Return this process and all that it started."""
    this = psutil.Process()
    return [this, *this.children(recursive=True)]


def listening(process: Any) -> list[tuple[str, int]]:
    """Return addresses and ports at which a process accepts connections or takes datagrams."""
    found = getattr(process, "net_connections", process.connections)(kind="inet")
    return [
        (each.laddr.ip, each.laddr.port)
        for each in found
        if each.status == psutil.CONN_LISTEN or (each.status == psutil.CONN_NONE and each.laddr)
    ]


def test_only_this_machine_can_connect(client: Any) -> None:
    assert_equal(lu.louvain(graph_named("lfr"), cluster=client), one_process("lfr", "louvain"))
    sockets = {process.pid: listening(process) for process in family()}
    outside = [
        address for found in sockets.values() for address in found
        if not ipaddress.ip_address(address[0]).is_loopback
    ]  # fmt: skip
    assert not outside
    # The scheduler's, which is in this process, and one of each worker: no web servers.
    assert sum(map(len, sockets.values())) == 3


@pytest.mark.parametrize("protocol", ["tcp", "tls"])
def test_only_the_client_of_the_run_can_connect(client: Any, protocol: str) -> None:
    addresses = [client.scheduler.address, *client.nthreads()]
    stranger = distributed.Security()
    if protocol == "tls":
        stranger = distributed.Security.temporary()

    async def call(address: str) -> str:
        from distributed.core import rpc

        arguments = stranger.get_connection_args("client")
        where = f"{protocol}://{address.partition('://')[2]}"
        try:
            async with rpc(where, timeout=2, connection_args=arguments) as other:
                await other.identity()
        except (OSError, TimeoutError) as error:
            return type(error).__name__
        return f"{where} answered"

    assert len(addresses) == 3
    answers = [client.sync(call, address) for address in addresses]
    assert not [text for text in answers if "answered" in text]


def test_the_key_is_neither_shown_nor_on_disk(client: Any) -> None:
    secret = client.security.tls_client_key.splitlines()[3]
    for process in family():
        assert not [text for text in process.cmdline() if secret in text or "PRIVATE" in text]
        assert not [text for text in process.environ().values() if secret in text]

    def scratch(dask_worker: Any) -> str:
        return str(dask_worker.local_directory)

    for folder in client.run(scratch).values():
        top = Path(folder).parents[1]
        assert top.stat().st_mode & 0o077 == 0
        assert top.stat().st_uid == os.getuid()
        assert not [path for path in top.rglob("*") if path.is_file() and path.stat().st_size > 100]
