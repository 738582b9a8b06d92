"""Names of call sites: file and line, else symbol and offset, else the order of allocation."""

from __future__ import annotations

import re
import shutil
import subprocess
import threading
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

RUNTIME: Final = re.compile(
    r"^(?:cudaError )?(?:cuda(?!Error )[A-Z]|cu[A-Z][a-z]\w+$|__cudart|libcudart)"
)
"""Functions of CUDA's runtime, which a binary may contain."""

HEADERS: Final = ("cuda_runtime.h", "cuda_runtime_api.h")
"""Files whose functions only pass a call on."""

MOST_NAME: Final = 120
"""Characters of a name."""


class Frame(NamedTuple):
    """One frame of a call stack."""

    place: str
    runtime: bool = False


KNOWN: Final[dict[str, list[Frame]]] = {}
"""Frames by the line of a stack: resolving the first of a file takes long."""


class Sites:
    """Names call stacks in the order in which they come; the same order gives the same names."""

    def __init__(self) -> None:
        self.names: dict[int, str] = {}
        self._taken = set[str]()
        self._resolvers: dict[str, Resolver] = {}

    def name(self, number: int, text: str) -> str:
        """Return the name of a stack, given as the library writes it; callers distinguish some."""
        places = list(dict.fromkeys(frame.place for frame in self._frames(text)))
        found = places[0] if places else f"allocation {number}"
        for caller in places[1:4]:
            if found not in self._taken:
                break
            found = f"{found} < {caller}"
        found = _short(found)
        if found in self._taken:
            found = f"{found} #{number}"
        self._taken.add(found)
        self.names[number] = found
        return found

    def _frames(self, text: str) -> list[Frame]:
        """Return the frames outside CUDA's runtime, the innermost first."""
        lines = text.splitlines()
        if lines and lines[0].startswith("@"):
            return [Frame(Path(line[1:]).name) for line in lines]
        frames = [frame for line in lines for frame in self._resolved(line)]
        inner = [at for at, frame in enumerate(frames) if frame.runtime]
        return frames[inner[-1] + 1 if inner else 0 :] or frames

    def _resolved(self, line: str) -> list[Frame]:
        """Return the frame of "path+0xoffset symbol", and those of functions inlined there."""
        if line not in KNOWN:
            where, _, symbol = line.partition(" ")
            path, _, offset = where.rpartition("+")
            KNOWN[line] = self._by_debug_information(path, offset, symbol)
        return KNOWN[line]

    def _by_debug_information(self, path: str, offset: str, symbol: str) -> list[Frame]:
        plain = f"{Path(path).name}:{symbol}+{offset}" if symbol else f"{Path(path).name}+{offset}"
        if path not in self._resolvers:
            self._resolvers[path] = Resolver(path)
        lines, found = self._resolvers[path].lines(offset), []
        for function, place in zip(lines[::2], lines[1::2], strict=False):
            file, _, number = place.partition(" ")[0].rpartition(":")
            known = file not in ("", "??") and number.isdecimal() and number != "0"
            called = symbol if function == "??" else function
            name = Path(file).name
            place = f"{name}:{number}" if known else plain
            if not known and not symbol and called:
                place = f"{Path(path).name}:{called.partition('(')[0]}+{offset}"
            found.append(Frame(place, bool(RUNTIME.match(called)) or name in HEADERS))
        return found or [Frame(plain, bool(RUNTIME.match(symbol)))]

    def close(self) -> None:
        """End the processes that resolve addresses."""
        for resolver in self._resolvers.values():
            resolver.close()
        self._resolvers.clear()


END: Final = "0xffffffffffffffff"
"""An address of no function: what is printed of it follows the lines of the address before."""

PATIENCE: Final = 60.0
"""Seconds that resolving an address may take."""


class Resolver:
    """Resolves addresses of one file by a process that reads its debug information once."""

    def __init__(self, path: str) -> None:
        self.process: subprocess.Popen[str] | None = None
        tool = shutil.which("addr2line")
        if tool is not None:
            with suppress(OSError):
                self.process = subprocess.Popen(
                    [tool, "-a", "-f", "-i", "-C", "-e", path],
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                    text=True, errors="replace", start_new_session=True,
                )  # fmt: skip

    def lines(self, offset: str) -> list[str]:
        """Return functions and places at an address, in turns, the innermost first."""
        if self.process is None or self.process.stdin is None or self.process.stdout is None:
            return []
        late = threading.Timer(PATIENCE, self.process.kill)
        late.start()
        found = list[str]()
        try:
            self.process.stdin.write(f"{offset}\n{END}\n")
            self.process.stdin.flush()
            for line in iter(self.process.stdout.readline, ""):
                if line.strip() == END:
                    self.process.stdout.readline()
                    self.process.stdout.readline()
                    return found[1:]
                found.append(line.rstrip("\n"))
        except OSError:
            pass
        finally:
            late.cancel()
        self.close()
        return []

    def close(self) -> None:
        """End the process."""
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
            self.process = None


def array_name(site: str, slot: int) -> str:
    """Return the name of an array: its call site, numbered where one has several at a time."""
    return f"{site} ({slot + 1})" if slot else site


def _short(name: str) -> str:
    """Return a name that is printable and not too long."""
    plain = "".join(letter if letter.isprintable() else "?" for letter in name)
    return plain if len(plain) <= MOST_NAME else f"…{plain[1 - MOST_NAME :]}"
