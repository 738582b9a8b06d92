"""Whether a sweep may write its tables into a folder that already holds results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from louvain_um.errors import LouvainUmError
from louvain_um.profiling.sweep.files import RESULTS_FILES, read_rows
from louvain_um.profiling.sweep.replay_tables import BEST
from louvain_um.profiling.sweep.store import KEY, Store, key_of

REMEDY = "name another folder with -o, or pass --force (force=True) to start again"


def refuse_loss(store: Store, requested: Sequence[Mapping[str, Any]]) -> None:
    """Refuse results in a sweep's folder that its new tables would not hold."""
    path = next((store.folder / name for name in reversed(RESULTS_FILES)
                 if (store.folder / name).is_file()), None)  # fmt: skip
    if path is None:
        return
    try:
        rows = read_rows(path)
    except LouvainUmError as error:
        raise LouvainUmError(f"{error}; {REMEDY}") from None
    # As CSV holds them: values read from Parquet become the same text.
    known = {_text(key_of(row)): row for row in (p["row"] for p in store.points.values())}
    wanted = {_text(key_of(key)) for key in requested}
    for row in rows:
        if row.get("policy") == BEST:
            continue  # follows from the others
        key = _text(tuple(row.get(name) for name in KEY))
        if key not in known or not _same(row, known[key]):
            raise LouvainUmError(
                f"{path}: has a row that this folder's sweep did not write, perhaps an edited "
                f"one; move the file, or {REMEDY}"
            )
        if key not in wanted:
            raise LouvainUmError(
                f"{store.folder}: holds results of another sweep, such as {row['graph']} "
                f"{row['policy']} at {float(row['oversubscription']):g} % on {row['gpu']} (other "
                f"settings, or not requested now); {REMEDY}"
            )


def _same(row: Mapping[str, Any], written: Mapping[str, Any]) -> bool:
    """Say whether a row of a table is the point that was written."""
    return all(_text((row.get(name),)) == _text((value,)) for name, value in written.items())


def _text(values: Sequence[Any]) -> tuple[str, ...]:
    """Return values as CSV holds them."""
    return tuple("" if value is None else str(value) for value in values)
