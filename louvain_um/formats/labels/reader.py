"""Read label files: those of `write_labels`, and plain text of two columns."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from pathlib import Path

import numpy as np

from louvain_um.core.headroom import check_host_memory
from louvain_um.errors import READ_AGAIN, GraphFormatError, check_switch, reason_of
from louvain_um.formats.file_types import format_of, holds_communities, path_text, require
from louvain_um.formats.graph_file import content_of, open_graph_file
from louvain_um.formats.ids import numbers_or_texts
from louvain_um.formats.labels import text
from louvain_um.formats.labels.text import integers_or_texts
from louvain_um.results.comparison import Labels

INFOMAP = (".clu", ".tree", ".ftree")

CLU = re.compile(r"(\d+)\s+(\d+)(?:\s+\S+)?\s*")
TREE = re.compile(r'(\d+(?::\d+)*):\d+\s+\S+\s+"(.*)"(?:\s+\d+)*\s*')

REMEDY = "use a machine with more memory"
KNOWN = ".csv, .tsv, .txt, .parquet, .npz, .json, .gexf, .graphml, .cyjs"


def read_vertices(path: str | Path) -> list[int | str]:
    r"""Read vertices, one per line, as ids if all are whole numbers and else as names."""
    try:
        lines = _text(path, "list one vertex per line").splitlines()
    except OSError as error:
        raise GraphFormatError(f"{reason_of(error)}; check the path", path) from None
    words = [line.strip() for line in lines if line.strip()]
    numbers = all(word.isascii() and word.isdigit() for word in words)
    return [int(word) for word in words] if numbers else list(words)


def read_labels(path: str | Path, *, overlapping: bool = False) -> Labels:
    r"""Read the community of each vertex.

    Parameters
    ----------
    path : path
        What `write_labels` or `Communities.save` wrote, or text with a vertex and its
        community on each line, separated by blanks, a tab, a comma or a semicolon (``.gz``
        too; ``-`` is stdin). Lines that start with ``#`` or ``%`` and a header are skipped.
        Lines with a single field are the communities of vertices 0, 1, 2 … Of Infomap's ``.clu``
        and ``.tree`` files, the top modules. Of graphs in ``.gexf``, ``.graphml`` and ``.cyjs``,
        the attribute ``community`` of the vertices, as `write_graph` writes it for a result. Or a
        local folder that `detect_partitioned` wrote to.
    overlapping : bool
        Whether a vertex may be listed several times, once for each of its communities.

    Returns
    -------
    Labels

    Raises
    ------
    GraphFormatError
        The file is not a label file; names the first bad line.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from louvain_um.formats.labels import read_labels
    >>> file = pathlib.Path(tempfile.mkdtemp(), "departments.txt")
    >>> _ = file.write_text("7 a\n9 b\n")
    >>> read_labels(file).vertices.tolist(), read_labels(file).communities.tolist()
    ([7, 9], ['a', 'b'])
    """
    check_switch("overlapping", overlapping)
    path = path_text(path)
    if not path or "\0" in path:
        problem = "holds a NUL" if path else "is empty"
        raise GraphFormatError(f"file name {problem}; name a file, or - for stdin", repr(path))
    suffix = Path(path).suffix.lower()
    try:
        if Path(path).is_dir():
            labels = _read_folder(path)
        elif suffix == ".npz":
            labels = _read_npz(path)
        elif suffix == ".parquet":
            labels = _read_parquet(path)
        elif suffix == ".json":
            labels = _read_json(path)
        elif holds_communities(path):
            labels = _read_graph(path)
        elif suffix in INFOMAP:
            labels = _read_infomap(path, _text(path))
        else:
            labels = text.read(path, _text(path))
    except FileNotFoundError:
        raise GraphFormatError("no such file; check the path", path) from None
    except OSError as error:
        raise GraphFormatError(f"cannot be read: {reason_of(error)}{READ_AGAIN}", path) from error
    if len(labels.vertices) != len(labels.communities):
        raise GraphFormatError(
            f"{len(labels.vertices)} vertices, but {len(labels.communities)} communities; "
            "write one community per vertex",
            path,
        )
    names, counts = np.unique(labels.vertices, return_counts=True)
    if not overlapping and len(names) < len(labels.vertices):
        raise GraphFormatError(
            f"vertex {names[counts > 1][0]} is listed more than once; keep one line per vertex",
            path,
        )
    return labels


def _read_folder(path: str | Path) -> Labels:
    """Read the Parquet files of a folder, each of other vertices, as one."""
    if any(Path(path).glob("*.unfinished")):
        raise GraphFormatError(
            "holds unfinished files; wait for the run that writes them, or repeat it", path
        )
    parts = [_read_parquet(file) for file in sorted(Path(path).glob("*.parquet"))]
    if not parts:
        raise GraphFormatError("is a folder without .parquet files; name a label file", path)
    return Labels(
        np.concatenate([part.vertices for part in parts]),
        np.concatenate([part.communities for part in parts]),
    )


def _read_npz(path: str | Path) -> Labels:
    from louvain_um.results import saving
    from louvain_um.results.communities import Communities

    arrays = saving.read_arrays(path)
    if "about" in arrays and "labels" in arrays:  # what `save` writes
        result = Communities.load(path)
        names = result.names
        return Labels(np.arange(result.n_vertices) if names is None else names, result.labels)
    if not {"vertex", "community"} <= set(arrays):
        raise GraphFormatError(
            f"contains {', '.join(sorted(arrays))}; labels need the arrays vertex and community",
            path,
        )
    return Labels(*(text.checked(arrays[name], path) for name in ("vertex", "community")))


def _read_parquet(path: str | Path) -> Labels:
    pa, parquet = require("pyarrow", f"{path}"), require("pyarrow.parquet", f"{path}")
    from louvain_um.formats.arrow import check_unpacked

    try:
        with open(path, "rb") as file:
            about = parquet.ParquetFile(file).metadata
            rows = about.num_rows
            check_host_memory(16 * rows, f"{path}: {rows:,} labels", REMEDY)
            check_unpacked(about, file, path, columns=1)
            table = parquet.read_table(file, columns=["vertex", "community"])
        found = [table[name] for name in ("vertex", "community")]
        if any(column.null_count for column in found):
            raise GraphFormatError(
                "some vertices or communities are missing; drop those rows", path
            )
        return Labels(*(text.checked(column.to_numpy(), path) for column in found))
    except (pa.ArrowException, KeyError, UnicodeDecodeError) as error:
        raise GraphFormatError(
            "is not a Parquet file with columns vertex and community; write it again", path
        ) from error


def _read_json(path: str | Path) -> Labels:
    try:
        parsed = json.loads(Path(path).read_bytes())
    except (ValueError, RecursionError) as error:
        raise GraphFormatError(
            "is not valid JSON; write it again", path, getattr(error, "lineno", None)
        ) from error
    if isinstance(parsed, dict) and isinstance(parsed.get("vertex"), list):
        vertices, communities = text.typed(parsed["vertex"]), parsed.get("community")
    elif isinstance(parsed, dict) and parsed:
        # JSON has no other keys than text.
        vertices, communities = text.integers_or_texts(list(parsed)), list(parsed.values())
    else:
        vertices, communities = np.arange(0), None
    if not isinstance(communities, list) or any(isinstance(c, list | dict) for c in communities):
        raise GraphFormatError(
            "needs lists vertex and community, or an object {vertex: community}", path
        )
    return Labels(vertices, text.typed(communities))


def _read_graph(path: str) -> Labels:
    """Read the communities that a graph's vertices have as an attribute."""
    from louvain_um.formats.json_networks import parsed_json
    from louvain_um.formats.networks import names_of
    from louvain_um.formats.xml_networks import parsed_gexf, parsed_graphml

    parse = {"gexf": parsed_gexf, "graphml": parsed_graphml}.get(format_of(path), parsed_json)
    with open_graph_file(path) as file:
        file.skip_byte_order_mark()
        nodes = parse(file).nodes
    names = numbers_or_texts(names_of(nodes)[0])
    found = [data.get("community") for data in nodes.values()]
    lacking = sum(not isinstance(community, str | int) for community in found)
    if lacking:
        raise GraphFormatError(
            f"{lacking:,} of {len(found):,} vertices have no whole number or text as attribute "
            "community; write the graph with communities (louvain-um detect -o)",
            path,
        )
    return Labels(text.typed(names), text.typed(found))


def _text(path: str | Path, remedy: str = f"label files are {KNOWN}") -> str:
    try:
        raw = content_of(path)
        text = raw.decode("utf-8-sig")
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise GraphFormatError(
            "the gzip stream is damaged or truncated; download or compress it again", path
        ) from error
    except UnicodeDecodeError as error:
        raise GraphFormatError(
            f"is not text; {remedy}", path, raw[: error.start].count(b"\n") + 1
        ) from error
    if "\0" in text:
        raise GraphFormatError(f"is not text; {remedy}", path)
    return text


def _read_infomap(path: str | Path, text: str) -> Labels:
    """Return the top modules in a file of Infomap; a vertex in several modules is an error."""
    pattern = CLU if Path(path).suffix.lower() == ".clu" else TREE
    vertices, modules = list[str](), list[str]()
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("*"):
            break  # links follow
        if not line.strip() or line.startswith("#"):
            continue
        found = pattern.fullmatch(line)
        if found is None:
            form = "node_id module flow" if pattern is CLU else 'path flow "name" node_id'
            raise GraphFormatError(
                f"is not a line of Infomap ({form}); write it again", path, number
            )
        first, second = found[1], found[2]
        vertices.append(first if pattern is CLU else second)
        modules.append(second if pattern is CLU else first.partition(":")[0])
    if not vertices:
        raise GraphFormatError("contains no modules; let Infomap write it again", path)
    return Labels(integers_or_texts(vertices), integers_or_texts(modules))
