"""Edge lists whose ids are names: vertices are the names in code-point order."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from louvain_um.core.compiled import kernel
from louvain_um.core.headroom import check_host_memory
from louvain_um.core.numbering import distinct
from louvain_um.formats import parse_errors
from louvain_um.formats.edge_list.edges import Chunks, EdgeList, TextIdError, exact_weights
from louvain_um.formats.edge_list.number_vertices import hash_keys
from louvain_um.formats.edge_list.scan import (
    TWO_IDS,
    WEIGHT,
    LineFormat,
    end_of_line,
    pad,
    skip_comment,
    unquoted,
)
from louvain_um.formats.graph_file import GraphFile
from louvain_um.formats.ids import MAX_FIXED_WIDTH, is_number

BLOCK_BYTES = 1 << 18
"""Bytes of text parsed at a time; the table has space for all names that a block can contain."""

STRING_BYTES, POINTER_BYTES = 49 + 8, 8
"""Bytes of a Python string without its characters, and of its place in a list."""

EMPTY = 2**32 - 1
"""Marks an empty slot."""


def read_named(
    file: GraphFile, line_format: LineFormat, begun: TextIdError | None = None
) -> tuple[EdgeList, NDArray[Any]]:
    """Read the rest of `file` as lines whose ids are names, after those that were numbers."""
    weighted = line_format.shape >= WEIGHT
    table = NameTable()
    blocks: Iterator[NDArray[np.uint8]]
    if begun is None:
        chunks, line = Chunks(weighted), line_format.first_line
        blocks = map(line_format.select, line_format.blocks(file, BLOCK_BYTES))
    else:
        chunks, line, blocks = begun.chunks, begun.line, begun.blocks
        table.rename(chunks)
    for data in blocks:
        room, known = len(data) // 4 + 1, table.count
        table.reserve(2 * room, len(data))
        u, v = np.empty(room, np.uint32), np.empty(room, np.uint32)
        deferred = np.empty((room, 3), np.int64)
        form = line_format.separator, line_format.shape, line_format.place
        count, lines, bad, table.count = _scan_names(
            data, *form, u, v, deferred, *table.arrays, table.count, hash_keys()
        )
        w = np.empty(count, np.float64)
        if weighted:
            exact_weights(file, data, line, deferred[:count], w, chunks.written, line_format)
        if bad >= 0:
            text = parse_errors.line_at(data, bad)
            raise file.error(parse_errors.named_line_error(text, line_format), line + lines)
        table.check(file, known, data, line)
        line += lines
        chunks.add(u[:count].copy(), v[:count].copy(), w if weighted else None)
    edges = chunks.join()
    names, order = table.names(file)
    if order is not None:
        edges.u, edges.v = order[edges.u], order[edges.v]
    return edges, names


class NameTable:
    """Distinct names: their bytes, concatenated, and a hash table of their numbers."""

    def __init__(self) -> None:
        self.count = 0
        self.slots = np.full(1 << 12, EMPTY, np.uint32)
        self.starts = np.zeros(1 << 10, np.int64)
        self.text = np.empty(1 << 12, np.uint8)

    @property
    def arrays(self) -> tuple[NDArray[Any], ...]:
        """What kernels take."""
        return self.slots, self.starts, self.text

    def reserve(self, words: int, bytes_: int) -> None:
        """Make space for more names of `bytes_` bytes in total."""
        most = self.count + words
        if len(self.starts) <= most:
            self.starts = _grown(self.starts, self.count + 1, 2 * most)
        used = int(self.starts[self.count])
        if len(self.text) < used + bytes_:
            self.text = _grown(self.text, used, 2 * (used + bytes_))
        if len(self.slots) < 2 * most:
            self.slots = np.full(1 << (2 * most).bit_length(), EMPTY, np.uint32)
            _rehash(self.slots, self.starts, self.text, self.count, hash_keys())

    def check(self, file: GraphFile, known: int, data: NDArray[np.uint8], line: int) -> None:
        """Raise if a name of a block is not UTF-8; names below `known` are of other blocks."""
        first = int(self.starts[known])
        try:
            self.text[first : int(self.starts[self.count])].tobytes().decode()
        except UnicodeDecodeError as error:
            word = int(np.searchsorted(self.starts[: self.count], first + error.start, "right")) - 1
            name = self.text[self.starts[word] : self.starts[word + 1]].tobytes()
            rows = data.tobytes().split(b"\n")
            held = (
                k for k, row in enumerate(rows) if name in row and row.lstrip()[:1] not in b"#%"
            )
            at = line + next(held, 0)
            raise file.error("is not UTF-8 text; convert it (iconv -t utf-8)", at) from None

    def rename(self, chunks: Chunks) -> None:
        """Make names of the numbers that were read, and numbers of names of the chunks."""
        columns = chunks.columns[:2]
        ids = distinct(np.concatenate([distinct(part) for column in columns for part in column]))
        text = np.frombuffer("".join(f"{i} {i}\n" for i in ids.tolist()).encode(), np.uint8)
        self.reserve(len(ids), len(text))
        of, again = np.empty(len(ids), np.uint32), np.empty(len(ids), np.uint32)
        none = np.empty((0, 3), np.int64)
        form = 32, TWO_IDS, 2
        *_, self.count = _scan_names(text, *form, of, again, none, *self.arrays, 0, hash_keys())
        for column in columns:
            column[:] = [of[np.searchsorted(ids, part)] for part in column]

    def names(self, file: GraphFile) -> tuple[NDArray[Any], NDArray[np.uint32]]:
        """Return the names in order and, for each name's number, its position in that order."""
        longest = int(np.diff(self.starts[: self.count + 1]).max(initial=0))
        width = 4 * longest if longest <= MAX_FIXED_WIDTH else POINTER_BYTES
        check_host_memory(
            (STRING_BYTES + width) * self.count + int(self.starts[self.count]),
            f"{self.count:,} names of vertices",
            "number the vertices, or use a machine with more memory",
        )
        ends = self.starts[: self.count + 1].tolist()
        text = self.text[: ends[-1]].tobytes()
        words = [text[a:b].decode("utf-8", "replace") for a, b in pairwise(ends)]
        names: NDArray[Any]
        if all(map(is_number, words)):
            names = np.array(words, dtype=np.int64)
        else:
            words = [word.replace('""', '"') for word in words]
            plain = max(map(len, words)) <= MAX_FIXED_WIDTH
            names = np.array(words, dtype=np.str_ if plain else object)
        order = np.argsort(names, kind="stable")
        ranks = np.empty(len(order), np.uint32)
        ranks[order] = np.arange(len(order), dtype=np.uint32)
        return names[order], ranks


def _grown(array: NDArray[Any], used: int, size: int) -> NDArray[Any]:
    larger = np.zeros(size, array.dtype)
    larger[:used] = array[:used]
    return larger


@kernel()
def _hash(text, start, stop, keys):
    """Return a hash of some bytes that depends on the keys."""
    h = keys[0]
    for i in range(start, stop):
        h = (h ^ np.uint64(text[i])) * keys[1]
    h = (h ^ (h >> np.uint64(32))) * keys[2]
    return h ^ (h >> np.uint64(29))


@kernel()
def _rehash(slots, starts, text, count, keys):
    mask = np.uint64(len(slots) - 1)
    for word in range(count):
        place = _hash(text, starts[word], starts[word + 1], keys) & mask
        while slots[place] != EMPTY:
            place = (place + np.uint64(1)) & mask
        slots[place] = word


@kernel()
def _number(data, start, stop, slots, starts, text, count, keys):
    """Return the number of the name in ``data[start:stop]``: `count` if it is new."""
    mask = np.uint64(len(slots) - 1)
    place = _hash(data, start, stop, keys) & mask
    while slots[place] != EMPTY:
        word = np.int64(slots[place])
        begin = starts[word]
        if starts[word + 1] - begin == stop - start:
            same = True
            for i in range(stop - start):
                if text[begin + i] != data[start + i]:
                    same = False
                    break
            if same:
                return word
        place = (place + np.uint64(1)) & mask
    begin = starts[count]
    for i in range(stop - start):
        text[begin + i] = data[start + i]
    starts[count + 1] = begin + stop - start
    slots[place] = count
    return count


@kernel()
def _scan_names(data, separator, shape, place, u, v, deferred, slots, starts, text, words, keys):
    """Like `scan_numbers`, with names for ids and all weights deferred to the exact parser."""
    count, lines, pos = 0, 0, 0
    bad = -1
    while pos < len(data):
        line = pos
        while pad(data[pos], separator):
            pos += 1
        after = skip_comment(data, pos)
        if after != pos:
            pos = after
            lines += 1
            continue
        start, stop, pos = unquoted(data, pos, separator)
        start2, stop2, pos = unquoted(data, pos, separator)
        if start == stop or start2 == stop2:
            bad = line
            break
        if shape >= WEIGHT:
            for _ in range(2, place):
                _, _, pos = unquoted(data, pos, separator)
            deferred[count, 0] = count
            deferred[count, 1], deferred[count, 2], pos = unquoted(data, pos, separator)
            if deferred[count, 1] == deferred[count, 2]:
                bad = line
                break
        if shape in (TWO_IDS, WEIGHT) and data[pos] != 10:
            bad = line
            break
        pos = end_of_line(data, pos, separator) + 1
        if pos == 0:
            bad = line
            break
        word = _number(data, start, stop, slots, starts, text, words, keys)
        words = max(words, word + 1)
        u[count] = word
        word = _number(data, start2, stop2, slots, starts, text, words, keys)
        words = max(words, word + 1)
        v[count] = word
        count += 1
        lines += 1
    return count, lines, bad, words
