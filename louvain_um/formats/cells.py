"""Cells of an ``.h5ad`` file and their neighbours, which another process reads.

HDF5's library can crash on a damaged file, or work without end, and no signal reaches Python within
it. The process that runs this file as a script holds the library alone, so that it can be killed.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from tempfile import TemporaryFile, gettempdir
from typing import IO, TYPE_CHECKING, Any, Final

import numpy as np

from louvain_um.core.plain_data import objects, to_bytes
from louvain_um.errors import GraphError, HostMemoryError
from louvain_um.formats.read_options import ReadOptions

if TYPE_CHECKING:
    from louvain_um.formats.graph_file import GraphFile
    from louvain_um.graph.graph import Graph

PARTS: Final = ("data", "indices", "indptr")
"""Arrays of a sparse matrix of rows or columns."""

ATTRIBUTE: Final = "attribute "
"""What the name of an array begins with that holds an attribute; then comes its number."""

NO_SPACE: Final = 3
"""Exit code of the other process if it could not write what it read."""

REMEDY: Final = "free space there, or name another folder in TMPDIR"


def read(file: GraphFile, options: ReadOptions) -> Graph:
    """Read the neighbours of cells from an ``.h5ad`` file."""
    from importlib.util import find_spec

    from louvain_um.formats.arrow import checked

    if find_spec("anndata") is None:
        raise file.error("this format needs anndata: pip install anndata")
    return checked(file, lambda: build(file, options), "a valid .h5ad file")


def build(file: GraphFile, options: ReadOptions) -> Graph:
    """Build the graph of what the other process found."""
    from scipy.sparse import csc_array, csr_array

    from louvain_um.core.headroom import host_memory
    from louvain_um.formats.attributes import attributed
    from louvain_um.formats.graph_file import FREE_BYTES, MOST_UNPACKED
    from louvain_um.formats.neighbours import from_neighbours, key_of

    key, packed = key_of(options), os.stat(file.name).st_size
    free = host_memory() or sys.maxsize
    most = sys.maxsize if file.trusted else max(FREE_BYTES, MOST_UNPACKED * packed)
    with _temporary_file(file) as out:
        code = run([os.path.abspath(file.name), key, str(min(most, free))], out)
        out.seek(0)
        if code == NO_SPACE:
            raise file.error(
                f"what is read of it does not fit in the temporary folder {gettempdir()}; {REMEDY}"
            )
        if code == -9:
            raise file.error(
                "the process that read it was killed, as the system does when memory runs out; "
                "use a machine with more memory"
            )
        if code:
            raise ValueError(f"HDF5's library ended with code {code}")
        with np.load(out) as found:
            about = json.loads(found["about"].tobytes())
            if "unpacked" in about:
                file.check_unpacked(about["unpacked"], packed)
                raise HostMemoryError(
                    "its tables", about["unpacked"], free, "use a machine with more memory"
                )
            if "old" in about:
                raise GraphError(
                    f"this format needs h5py 3.11 or newer, not {about['old']}: pip install -U h5py"
                )
            if "error" in about:
                raise ValueError(about["error"])
            arrays = {name: found[name] for name in found if name != "about"}
    obsp = dict.fromkeys(about["keys"])
    if "dense" in arrays:
        obsp[key] = arrays["dense"]
    elif "data" in arrays:
        kind = {"csr": csr_array, "csc": csc_array}[about["format"]]
        parts = tuple(arrays[name] for name in PARTS)
        obsp[key] = kind(parts, about["shape"])
    graph = from_neighbours(obsp, about["names"], options)
    attributes = {
        name: arrays[f"{ATTRIBUTE}{place}"] if f"{ATTRIBUTE}{place}" in arrays
        else objects(values)
        for place, (name, values) in enumerate(about["attributes"].items())
    }  # fmt: skip
    return attributed(graph, attributes or None)


def _temporary_file(file: GraphFile) -> IO[bytes]:
    """Return a temporary file for what is read of a file."""
    try:
        return TemporaryFile()
    except OSError as error:
        raise file.error(f"no temporary file can be made for it ({error}); {REMEDY}") from None


def run(words: list[str], out: IO[bytes]) -> int:
    """Run this file as a script; return its exit code. Whatever ends the wait ends the process."""
    path = os.pathsep.join(folder or os.getcwd() for folder in sys.path)
    child = subprocess.Popen(
        # -P and this path: it imports what this process does, not what is in its folder.
        [sys.executable, "-P", __file__, *words],
        env={**os.environ, "PYTHONPATH": path},
        stdin=subprocess.PIPE, stdout=out, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    with child:
        try:
            return child.wait()
        except BaseException:
            child.kill()
            raise


def main() -> None:
    """Write what is asked for of a file to the standard output."""
    end_with_parent()
    name, key, most = sys.argv[1:]
    descriptor = os.dup(1)
    os.dup2(2, 1)  # libraries may print
    arrays: dict[str, Any] = {}
    try:
        about = content(name, key, int(most), arrays)
    except Exception as error:  # libraries raise several types for damaged files
        about = {"error": str(error) or type(error).__name__}
        arrays.clear()
    try:
        with os.fdopen(descriptor, "wb") as out:
            np.savez(out, about=to_bytes(about), **arrays)
    except OSError:
        sys.exit(NO_SPACE)


def content(name: str, key: str, most: int, arrays: dict[str, Any]) -> dict[str, Any]:
    """Return names and keys of the cells; add the arrays of the neighbours under a key."""
    import anndata
    import h5py

    from louvain_um.formats.attributes import Columns

    unpacked = 0

    def leads_away(_: str, item: Any) -> bool | None:
        nonlocal unpacked
        if not isinstance(item, h5py.Dataset):
            return isinstance(item, h5py.ExternalLink) or None
        unpacked += item.nbytes
        return bool(item.external or item.is_virtual) or None

    with h5py.File(name, "r") as file:
        if not hasattr(file, "visititems_links"):
            return {"old": h5py.__version__}
        if file.visititems_links(leads_away) or file.visititems(leads_away):
            raise ValueError("it takes data from other files")
    if unpacked > most:
        return {"unpacked": unpacked}
    data = anndata.read_h5ad(name)
    about = {"names": data.obs_names.tolist(), "keys": list(data.obsp), "attributes": {}}
    for place, (name, values) in enumerate(Columns(data.obs).items()):
        plain = values.dtype.kind in "iufb"
        about["attributes"][name] = [] if plain else values.tolist()
        if plain:
            arrays[f"{ATTRIBUTE}{place}"] = values
    if key not in data.obsp:
        return about
    matrix = data.obsp[key]
    if not hasattr(matrix, "tocsr"):
        arrays["dense"] = np.asarray(matrix)
        return about
    arrays.update({part: getattr(matrix, part) for part in PARTS})
    return {**about, "format": matrix.format, "shape": matrix.shape}


def end_with_parent() -> None:
    """Let the system end this process with its parent, which holds the other end of a pipe."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    with suppress(ImportError):  # on Windows
        import fcntl
        import select

        fcntl.fcntl(0, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(0, fcntl.F_SETFL, fcntl.fcntl(0, fcntl.F_GETFL) | os.O_ASYNC)  # for SIGIO
        if select.select([0], [], [], 0)[0]:
            sys.exit()


if __name__ == "__main__":
    main()
