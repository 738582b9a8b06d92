"""Change files at random, and read what comes out: a result or an error of one line."""

import warnings
from contextlib import suppress
from pathlib import Path

from louvain_um.errors import GraphWarning, LouvainUmError
from louvain_um.formats import READERS, read_graph
from louvain_um.formats.labels import read_labels
from louvain_um.results.communities import Communities
from tests.saved.mutations import damage

CORPUS = Path(__file__).parents[1] / "corpus"
"""Files that readers once failed on, and the seeds of `changed`."""

FOLDERS = ("graphs", "inputs", "labels")
"""Of the corpus; `tests/saved/saved_files.py` reads the others."""

PIECES = (
    b"\n", b"\r", b"\t", b" ", b",", b";", b'"', b"'", b"-", b".", b"e", b"#", b"%", b"0", b"1",
    b"9" * 20, b"nan", b"1e999", b"\0", b"\xff", b"\xef\xbb\xbf", b"[", b"]", b"{", b"<", b">",
    b"null",
)  # fmt: skip


def files_of(corpus):
    return sorted(path for name in FOLDERS for path in (corpus / name).rglob("*") if path.is_file())


def changed_file(path, chance):
    """Return what a file holds, changed as bytes, or inside its archive, JSON or table."""
    data = path.read_bytes()
    if chance.random() < 0.5:
        with suppress(Exception):  # a file of the corpus may be too damaged to look inside
            return damage(chance, path)
    return changed(data, chance)


def changed(data, chance):
    out = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        place, length = chance.randint(0, len(out)), chance.choice((0, 1, 1, 2, 9))
        kind = chance.random()
        if kind < 0.6:
            out[place : place + length] = chance.choice(PIECES)
        elif kind < 0.8:
            out[place : place + length] = chance.randbytes(length)
        elif kind < 0.95:
            out[place:place] = out[place : place + 40]
        else:
            del out[place:]
    return bytes(out)


def read_all(path, chance=None):
    if path.parent.name == "labels":
        _read(path, lambda: read_labels(path))
        if path.suffix == ".npz":
            _read(path, lambda: str(Communities.load(path)))
        return
    options = {}
    if chance is not None:
        options = {
            "weighted": chance.choice((None, True, False)),
            "symmetrize": chance.random() < 0.5,
            "header": chance.choice((None, True, False)),
            "one_based": chance.choice((None, None, True, False)),
            "separator": chance.choice((None, None, *" ,;\t:x.|-\x01")),
            "ids": chance.choice(("auto", "number", "text")),
        }
        if chance.random() < 0.3:
            options["symmetrize"] = False
            options[chance.choice(("directed", "signed", "bipartite", "allow_rounding"))] = True
        if chance.random() < 0.2:
            role = chance.choice(("source", "target", "weight", "time"))
            options[role] = chance.choice((1, 2, 3, 9, "weight", "time", "x"))
            options["weighted"] = None  # a weight that is not read is refused
        if chance.random() < 0.2:
            options["duplicates"] = chance.choice(("once", "sum"))
        named = path.stem.partition("_")[0]
        if named in READERS and chance.random() < 0.5:
            options["format"] = named
        elif chance.random() < 0.1:
            options["format"] = chance.choice(sorted(READERS))
    _read(path, lambda: read_graph(path, **options))


def _read(path, read):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", GraphWarning)  # uncertain notes on a file that is read
            read()
    except LouvainUmError as error:
        message = str(error)
        if "\n" in message or not message.startswith((str(path), "separator")):
            raise AssertionError(f"not one line about {path.name}: {message!r}") from error
