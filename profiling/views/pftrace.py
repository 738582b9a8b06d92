"""Perfetto's protobuf format: four messages, written without a library.

Field numbers are those of Perfetto's public `perfetto_trace.proto`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Any

from louvain_um.profiling.views.timeline import Counter, Slice

BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4
"""`TrackEvent.Type`."""

SEQUENCE = 1
CLEARED = 1
"""Id of the only sequence, and the flag of its first packet that state starts empty."""


def encode(items: Iterable[Slice | Counter]) -> bytes:
    r"""Return a trace of slices, moments and counters."""
    tracks: dict[tuple[str, ...], int] = {}
    described: list[bytes] = []
    moments: list[tuple[int, int, int, bytes]] = []

    def track(path: tuple[str, ...], counter: bool = False) -> int:
        if path not in tracks:
            parent = track(path[:-1]) if len(path) > 1 else None
            tracks[path] = len(tracks) + 1
            described.append(_descriptor(tracks[path], path, parent, counter))
        return tracks[path]

    for number, item in enumerate(items):
        where = track(item.track, isinstance(item, Counter))
        # At equal times, ends come first, then the longest slice begins first.
        if isinstance(item, Counter):
            body = _number(9, COUNTER) + _number(11, where) + _double(44, item.value)
            moments.append((item.time, 1, number, body))
            continue
        head = _number(11, where) + _bytes(23, item.name.encode())
        about = b"".join(_bytes(4, _note(*pair)) for pair in item.about.items())
        if item.duration:
            begin = _number(9, BEGIN) + head + about
            moments.append((item.time, 1, -item.duration, begin))
            moments.append((item.time + item.duration, 0, 0, _number(9, END) + _number(11, where)))
        else:
            moments.append((item.time, 1, number, _number(9, INSTANT) + head + about))
    moments.sort(key=lambda moment: moment[:3])
    packets = [*described, *(_number(8, time) + _bytes(11, body) for time, _, _, body in moments)]
    return b"".join(
        _bytes(1, _number(10, SEQUENCE) + (b"" if at else _number(13, CLEARED)) + packet)
        for at, packet in enumerate(packets)
    )


def _descriptor(number: int, path: tuple[str, ...], parent: int | None, counter: bool) -> bytes:
    """Return a packet that names a track: a process, or a track of one."""
    body = _number(1, number) + _bytes(2, path[-1].encode())
    if parent is None:
        body += _bytes(3, _number(1, number) + _bytes(6, path[-1].encode()))
    else:
        body += _number(5, parent)
    if counter:
        body += _bytes(8, b"")
    return _bytes(60, body)


def _note(name: str, value: Any) -> bytes:
    """Return a debug annotation."""
    body = _bytes(10, name.encode())
    if isinstance(value, int):
        return body + _number(4, value)
    return body + _bytes(6, str(value).encode())


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1  # negative numbers, as Protocol Buffers write them
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _double(field: int, value: float) -> bytes:
    return _varint(field << 3 | 1) + struct.pack("<d", value)


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value
