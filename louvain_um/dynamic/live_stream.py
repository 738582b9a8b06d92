"""Timed edges of a pipe cut into batches, and where to resume after an interruption."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from louvain_um.core.plain_data import Finite, Whole, build, parse, to_bytes
from louvain_um.dynamic.arriving import NAME, REAL_SCALE, ArrivingEdges
from louvain_um.dynamic.graph import DynamicGraph
from louvain_um.dynamic.windows import EdgeBlock, Step, Windows
from louvain_um.errors import GraphFormatError


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowedRun:
    """Edges that one run of a stream followed: how many, and a digest of them."""

    edges: Whole
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a stream was left."""

    schema: Literal["louvain-um/live-stream"] = "louvain-um/live-stream"
    seen: Whole
    number: Whole
    inside: Whole
    origin: Finite | None
    last: Finite | None
    first: str
    real: bool | None
    runs: tuple[FollowedRun, ...]


class LiveStream:
    """Batches of timed edges that arrive."""

    def __init__(
        self,
        arriving: ArrivingEdges,
        every: str,
        window: str | None,
        left: Mapping[str, NDArray[Any]] | None = None,
    ) -> None:
        self.arriving = arriving
        self.windows = Windows(every, window)
        self.seen = 0
        self._first = ""
        self._last: Any = None
        self._runs: tuple[FollowedRun, ...] = ()
        self._digest = hashlib.sha256()
        self._began = 0
        self._real: bool | None = None
        if left is not None:
            self._restore(left)

    @property
    def backlog(self) -> int:
        """Edges that have arrived and are in no batch yet."""
        return self.arriving.backlog + self.windows.waiting

    def graph(self, **options: Any) -> DynamicGraph:
        """Return a graph without vertices for the steps; its first edges have arrived."""
        scale = REAL_SCALE if self.arriving.real else 1.0
        return DynamicGraph(0, weighted=True, scale=scale, **options)

    def steps(self) -> Iterator[Step | None]:
        """Yield batches as they end, and None whenever no edges arrive for a moment."""
        for block in self._beyond(self.arriving.blocks()):
            if block is None:
                yield None
                continue
            for step in self.windows.feed(block):
                self._count()
                yield step
        for step in self.windows.close():
            self._count()
            yield step

    def state(self) -> dict[str, NDArray[Any]]:
        """Return, as arrays, what is needed to resume after the last step."""
        held = self.windows.held
        inside = 0 if held is None else len(held) - self.windows.waiting
        mine = FollowedRun(edges=self.seen - self._began, digest=self._digest.hexdigest())
        place = Place(
            seen=self.seen,
            number=self.windows.number,
            inside=inside,
            origin=self.windows.origin,
            last=self._last,
            first=self._first,
            real=self.arriving.real,
            runs=(*self._runs, mine),
        )
        arrays = {"place": to_bytes(dataclasses.asdict(place))}
        if held is not None:
            arrays |= {"u": to_bytes(held.u.tolist()), "v": to_bytes(held.v.tolist())}
            arrays["times"] = held.times
            if held.weights is not None:
                arrays["weights"] = held.weights
        return arrays

    def _restore(self, left: Mapping[str, NDArray[Any]]) -> None:
        """Go on from a state."""
        try:
            place: Place = build(Place, parse(left["place"].tobytes()), "place")
            held = None if "u" not in left else _edges(left)
            if place.inside > (0 if held is None else len(held)):
                raise ValueError("fewer edges than the window holds")
            if place.seen and (place.origin is None or place.last is None):
                raise ValueError("the time of an edge is missing")
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(str(error)) from None
        self.seen = self._began = place.seen
        self._runs, self._first, self._last = place.runs, place.first, place.last
        self.windows.number, self.windows.origin = place.number, place.origin
        self._real = place.real
        if held is not None:
            self.windows.restore(held, place.inside)

    def _count(self) -> None:
        """Note the edges of the last step as followed."""
        assert self.windows.ended is not None
        self.seen += len(self.windows.ended)
        self._digest.update(_written(self.windows.ended).encode())

    def _beyond(self, blocks: Iterator[EdgeBlock | None]) -> Iterator[EdgeBlock | None]:
        """Yield the edges that were not followed before."""
        begun = False
        for block in blocks:
            if block is None or not len(block):
                yield None
                continue
            if not begun:
                begun = True
                block = self._with_weights_as_before(block)
                if self._again(block[:1]):
                    block = yield from self._skip(block, blocks)
            if len(block):
                self._last = block.times[-1].item()
                yield block

    def _with_weights_as_before(self, block: EdgeBlock) -> EdgeBlock:
        """Return the first edges that arrive; refuse weights of another kind than before."""
        before, now = self._real, self.arriving.real
        if not self._first or before == now:
            return block
        if before is None or now is None:
            raise GraphFormatError(
                "has weights where the edges before had none, or the reverse; name the same "
                "columns", NAME,
            )  # fmt: skip
        if now:
            raise GraphFormatError(
                "has real weights where those before were whole; name another folder", NAME
            )
        self.arriving.real = True
        assert block.weights is not None
        return replace(block, weights=block.weights.astype(np.float64))

    def _again(self, edge: EdgeBlock) -> bool:
        """Return whether an edge is that with which the stream began."""
        text, time = _written(edge), edge.times[0].item()
        if not self._first:
            self._first = text
            return False
        if text == self._first and self.seen:
            return True
        if self._last is not None and time < self._last:
            raise GraphFormatError(
                f"begins at time {time}, but was followed up to {self._last}; give all of it from "
                "its beginning, or only what is new", NAME,
            )  # fmt: skip
        return False

    def _skip(
        self, block: EdgeBlock, blocks: Iterator[EdgeBlock | None]
    ) -> Generator[None, None, EdgeBlock]:
        """Pass over the edges that were followed; return the next ones."""
        if (held := self.windows.held) is not None:  # those that waited come again
            inside = len(held) - self.windows.waiting
            self.windows.restore(held[:inside], inside)
        passed = 0
        for run in self._runs:
            digest, left = hashlib.sha256(), run.edges
            while left:
                part = block[:left]
                digest.update(_written(part).encode())
                left -= len(part)
                passed += len(part)
                block = block[len(part) :]
                while left and not len(block):
                    try:
                        arrived = next(blocks)
                    except StopIteration:
                        raise GraphFormatError(
                            f"ends after {passed:,} edges, but {self.seen:,} were followed before; "
                            "give all of the stream, or only what is new", NAME,
                        ) from None  # fmt: skip
                    if arrived is None:
                        yield
                    else:
                        block = arrived
            if run.edges and digest.hexdigest() != run.digest:
                raise GraphFormatError(
                    "holds other edges than were followed before; name another folder, or pass "
                    "--force to start again", NAME,
                )  # fmt: skip
        return block


def _written(edges: EdgeBlock) -> str:
    """Return edges as text, the same however they were dealt out."""
    ones = [1] * len(edges) if edges.weights is None else edges.weights.tolist()
    columns = zip(edges.u.tolist(), edges.v.tolist(), edges.times.tolist(), ones, strict=True)
    return "".join(f"{u}\t{v}\t{time:.17g}\t{weight}\n" for u, v, time, weight in columns)


def _edges(left: Mapping[str, NDArray[Any]]) -> EdgeBlock:
    """Return the edges of a state."""
    columns = {}
    for name in ("u", "v"):
        names = parse(left[name].tobytes())
        if not isinstance(names, list) or not all(isinstance(each, str) for each in names):
            raise ValueError("a vertex has no name")
        columns[name] = np.array(names, object)
    times, weights = left["times"], left.get("weights")
    count = len(columns["u"])
    for array in (times, weights):
        if array is None:
            continue
        if array.dtype not in (np.int64, np.float64) or array.shape != (count,):
            raise ValueError("an array has another length or type")
        if not np.isfinite(array).all():
            raise ValueError("a number is not finite")
    if len(columns["v"]) != count or (times[1:] < times[:-1]).any():
        raise ValueError("edges are not in the order of their times")
    return EdgeBlock(u=columns["u"], v=columns["v"], times=times, weights=weights)
