"""Machine profiles by name, and from TOML or JSON files."""

from __future__ import annotations

import json
import tomllib
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from louvain_um.core.atomic_files import read_text
from louvain_um.errors import LouvainUmError, OptionError
from louvain_um.placement.machine.machine import Machine
from louvain_um.placement.machine.profiles import PROFILES

MOST_CHARACTERS = 1 << 20
"""Of a file; what is longer is no profile."""

MOST_SHOWN = 1000
"""Characters of a name that an error shows."""

MOST_SHOWN = 1000
"""Characters of a name that an error shows."""


def load_machine(name: str | Path) -> Machine:
    """Return a built-in profile by name, or one from a TOML or JSON file.

    Raises
    ------
    LouvainUmError
        There is no such profile or file, or the file is not a profile.

    Examples
    --------
    >>> from louvain_um.placement.machine.machine_files import load_machine
    >>> load_machine("h200").remote_bandwidth
    51300000000.0
    """
    if not isinstance(name, (str, Path)) or not str(name) or "\0" in str(name):
        raise LouvainUmError(
            f"machine must name a profile ({', '.join(PROFILES)}) or a file, not {name!r}"
        )
    if str(name) in PROFILES:
        return PROFILES[str(name)]
    path = Path(name)
    try:
        text = read_text(path, MOST_CHARACTERS)
        values = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    except OSError as error:
        known = ", ".join(PROFILES)
        reason = (error.strerror or "cannot be read").lower()
        meant = str(name).lower()
        near = f"did you mean {meant}? Or " if meant in PROFILES else ""
        raise LouvainUmError(
            f"{str(name)[:MOST_SHOWN]}: {reason}; {near}name a machine profile ({known}) or a file "
            "that calibrate wrote"
        ) from None
    except RecursionError:
        raise LouvainUmError(f"{path}: not a machine profile: nested too deeply") from None
    except UnicodeDecodeError:
        raise LouvainUmError(f"{path}: not a machine profile: no UTF-8 text") from None
    except ValueError as error:
        raise LouvainUmError(
            f"{path}: not a machine profile: {error}; name a file that calibrate wrote"
        ) from None
    return _from_dict(values, path)


def _from_dict(values: Any, path: Path) -> Machine:
    if not isinstance(values, dict):
        raise LouvainUmError(f"{path}: not a machine profile: names and figures are expected")
    known = {item.name for item in fields(Machine)} - {"host"}
    unknown = [name for name in values if name not in known]
    missing = [name for name in PROFILE_FIELDS if name not in values]
    if unknown or missing:
        what = f"unknown figure {unknown[0]!r}" if unknown else f"lacks {missing[0]!r}"
        raise LouvainUmError(f"{path}: not a machine profile: {what}")
    if not isinstance(values.get("notes", {}), dict):
        raise LouvainUmError(f"{path}: not a machine profile: notes must be a table")
    try:
        return Machine(**values)
    except OptionError as error:
        raise LouvainUmError(f"{path}: {error}") from None


PROFILE_FIELDS = tuple(
    item.name
    for item in fields(Machine)
    if item.default is MISSING and item.default_factory is MISSING
)
