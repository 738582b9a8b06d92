"""PTX text to statements, each with its place in the text.

Grammar after the PTX ISA, chapter 4: an instruction ends at a semicolon, some directives at the
end of their line, a function's header at its opening brace.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

TOKEN: Final = re.compile(
    r"""(?P<space> \s+ | //[^\n]* | /\*.*?\*/ )
      | (?P<string> "[^"\n]*" )
      | (?P<word> [A-Za-z_$%][\w$]* | \d[\w.]* )
      | (?P<dotted> \.\w+(?:::\w+)* )
      | (?P<mark> [][{}(),;:=@!+\-*/|<>&^~?] )""",
    re.VERBOSE | re.DOTALL,
)

LINES: Final = frozenset({".version", ".target", ".address_size", ".file", ".loc"})
"""Directives that end with their line."""

LINKING: Final = frozenset({".visible", ".extern", ".weak", ".common"})
"""What may stand before `.entry`, `.func` or a variable."""

CLOSING: Final = {"(": ")", "[": "]", "{": "}"}


class PtxError(ValueError):
    """The text is not PTX as this module knows it."""


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement."""

    kind: Literal["instruction", "label", "directive", "function", "open", "close"]
    start: int
    end: int
    words: tuple[str, ...]
    predicate: str = ""

    @property
    def opcode(self) -> str:
        """The instruction's name without modifiers."""
        return self.words[0]

    @property
    def modifiers(self) -> tuple[str, ...]:
        """What follows the opcode, without dots: ``("global", "v2", "u32")``."""
        return tuple(word[1:] for word in self.words[1 : self._operands_at()])

    @property
    def operands(self) -> tuple[tuple[str, ...], ...]:
        """The tokens of each operand; vectors, addresses and lists keep their brackets."""
        found: list[list[str]] = [[]]
        depth = 0
        for word in self.words[self._operands_at() :]:
            depth += (word in CLOSING) - (word in CLOSING.values())
            if word == "," and not depth:
                found.append([])
            else:
                found[-1].append(word)
        return tuple(tuple(words) for words in found if words)

    def _operands_at(self) -> int:
        at = 1
        while at < len(self.words) and self.words[at].startswith("."):
            at += 1
        return at


@dataclass(frozen=True, slots=True)
class Function:
    """A kernel (`.entry`) or device function with a body."""

    name: str
    entry: bool
    body: int
    statements: Sequence[Statement]


def statements(text: str) -> list[Statement]:
    """Return the statements of a module, in order."""
    return _Reader(text).read()


def functions(parsed: Sequence[Statement]) -> list[Function]:
    """Return the functions that have a body."""
    found: list[Function] = []
    at = 0
    while at < len(parsed):
        header = parsed[at]
        at += 1
        if header.kind != "function" or at == len(parsed) or parsed[at].kind != "open":
            continue
        first, depth = at + 1, 1
        while depth and at + 1 < len(parsed):
            at += 1
            depth += (parsed[at].kind == "open") - (parsed[at].kind == "close")
        if depth:
            raise PtxError(f"{_name(header)} has no end")
        body = parsed[first:at]
        found.append(Function(_name(header), ".entry" in header.words, parsed[first - 1].end, body))
    return found


def _name(header: Statement) -> str:
    """Return the name of a function: the first word that is no directive nor in brackets."""
    depth = 0
    for word in header.words:
        depth += (word == "(") - (word == ")")
        if not depth and (word[0].isalpha() or word[0] in "_$%"):
            return word
    raise PtxError(f"a function without a name: {' '.join(header.words[:8])}")


class _Reader:
    """The tokens of a text, read once from the left."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.words: list[str] = []
        self.starts: list[int] = []
        self.at = 0
        end = 0
        for match in TOKEN.finditer(text):
            if match.start() != end:
                break
            end = match.end()
            if match.lastgroup != "space":
                self.words.append(match.group())
                self.starts.append(match.start())
        if end != len(text):
            raise PtxError(f"line {self._line(end)}: {text[end : end + 20]!r} is not PTX")

    def read(self) -> list[Statement]:
        found = []
        depth = 0
        while self.at < len(self.words):
            statement = self._statement(depth)
            depth += (statement.kind == "open") - (statement.kind == "close")
            found.append(statement)
            if depth < 0:
                raise PtxError(f"line {self._line(statement.start)}: a brace closes nothing")
        if depth:
            raise PtxError("a brace is never closed")
        return found

    def _statement(self, depth: int) -> Statement:
        first, word = self.at, self.words[self.at]
        if word == "{":
            return self._made("open", first, first + 1)
        if word == "}":
            return self._made("close", first, first + 1)
        if word == ";":
            return self._made("directive", first, first + 1)
        if self.words[first + 1 : first + 2] == [":"]:
            return self._made("label", first, first + 2)
        if word in LINES:
            stop = self.text.find("\n", self.starts[first])
            stop = len(self.text) if stop < 0 else stop
            return self._made("directive", first, bisect_left(self.starts, stop))
        if word == ".section":
            return self._made("directive", first, self._find("}", first) + 1)
        if word[0] == ".":
            if not depth and self._begins_function(first):
                return self._header(first)
            return self._made("directive", first, self._find(";", first) + 1)
        predicate = ""
        if word == "@":
            first += 1 + (self.words[first + 1 : first + 2] == ["!"])
            predicate = "".join(self.words[self.at + 1 : first + 1])
            first += 1
        end = self._find(";", first)
        if end == first:
            raise PtxError(f"line {self._line(self.starts[end])}: a predicate guards nothing")
        return self._made("instruction", first, end + 1, predicate)

    def _begins_function(self, at: int) -> bool:
        while at < len(self.words) and self.words[at] in LINKING:
            at += 1
        return self.words[at : at + 1] in ([".entry"], [".func"])

    def _header(self, first: int) -> Statement:
        """Read up to the brace of the body, or to the semicolon of a declaration."""
        end = first
        while self.words[end] not in ("{", ";"):
            end += 1
            if end == len(self.words):
                raise PtxError(f"line {self._line(self.starts[first])}: a function has no body")
        return self._made("function", first, end + (self.words[end] == ";"))

    def _find(self, mark: str, first: int) -> int:
        """Return where a mark stands next."""
        try:
            return self.words.index(mark, first)
        except ValueError:
            word = self.words[self.at]
            line = self._line(self.starts[self.at])
            raise PtxError(f"line {line}: {word} lacks its {mark!r}") from None

    def _made(
        self,
        kind: Literal["instruction", "label", "directive", "function", "open", "close"],
        first: int,
        end: int,
        predicate: str = "",
    ) -> Statement:
        """Return the statement of tokens up to `end`, and continue after it."""
        start = self.starts[self.at]
        last = end - 1
        words = self.words[first : last if self.words[last] == ";" else end]
        self.at = end
        return Statement(
            kind, start, self.starts[last] + len(self.words[last]), tuple(words), predicate
        )

    def _line(self, at: int) -> int:
        return self.text.count("\n", 0, at) + 1
