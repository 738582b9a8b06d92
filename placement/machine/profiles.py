"""Which figures stand for a device: shipped profiles, files, and what was measured here.

A profile that comes with the package is a file of this folder: figures, then a note on where each
was taken from. `like` names another profile, whose figures count where a file has none.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Final

from louvain_um.core.atomic_files import read_text
from louvain_um.core.plain_data import build
from louvain_um.errors import LouvainUmError, reason_of
from louvain_um.placement.machine.machine import Machine

MOST_CHARACTERS = 1 << 20
"""Of a file; what is longer is no profile."""

MOST_SHOWN = 1000
"""Characters of a name that an error shows."""


def _shipped_file(name: str) -> dict[str, Any]:
    text = Path(__file__).with_name(f"{name}.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


MODEL: Final = ("rates", "kinds", "measured_runs")
"""Tables of a file that the cost model was fitted with."""


def _shipped(name: str) -> Machine:
    values = {k: v for k, v in _shipped_file(name).items() if k not in MODEL}
    like = values.pop("like", None)
    if like is None:
        return Machine(**values)
    base = _shipped(like)
    return replace(base, **{**values, "notes": {**base.notes, **values["notes"]}})


H200: Final = _shipped("h200")
P4000: Final = _shipped("p4000")
RTX3060TI: Final = _shipped("rtx3060ti")
P100: Final = _shipped("p100")
P100_NVLINK: Final = _shipped("p100-nvlink")
GH200: Final = _shipped("gh200")
H200_X2: Final = _shipped("h200-x2")

PROFILES: Final = {
    each.name: each for each in (H200, P4000, RTX3060TI, P100, P100_NVLINK, GH200, H200_X2)
}

FALLBACK: Final = H200

FITTED: Final[Mapping[str, Mapping[str, Any]]] = _shipped_file(H200.name)
"""What the cost model was fitted with, on one machine: tables of rates, and of kinds of graph."""


def rate(name: str) -> float:
    """Return a fitted rate; `h200.toml` says to what it was fitted."""
    return float(FITTED["rates"][name]["value"])


def rates(name: str) -> dict[str, float]:
    """Return a table of fitted rates."""
    return {key: value for key, value in FITTED["rates"][name].items() if key != "fitted"}


def load_machine(name: str | Path) -> Machine:
    """Return a built-in profile by name, or one from a TOML or JSON file.

    Raises
    ------
    LouvainUmError
        There is no such profile or file, or the file is not a profile.

    Examples
    --------
    >>> from louvain_um.placement.machine import load_machine
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
        meant = str(name).lower()
        near = f"did you mean {meant}? Or " if meant in PROFILES else ""
        raise LouvainUmError(
            f"{str(name)[:MOST_SHOWN]}: {reason_of(error)}; {near}name a machine profile ({known}) "
            "or a file that calibrate wrote"
        ) from None
    except RecursionError:
        raise LouvainUmError(f"{path}: not a machine profile: nested too deeply") from None
    except UnicodeDecodeError:
        raise LouvainUmError(f"{path}: not a machine profile: not UTF-8 text") from None
    except ValueError as error:
        raise LouvainUmError(
            f"{path}: not a machine profile: {error}; name a file that calibrate wrote"
        ) from None
    return _from_dict(values, path)


def _from_dict(values: Any, path: Path) -> Machine:
    try:
        machine: Machine = build(Machine, values, "profile")
    except ValueError as error:
        raise LouvainUmError(f"{path}: not a machine profile: {error}") from None
    if machine.host is not None:
        raise LouvainUmError(f"{path}: not a machine profile: unknown figure 'host'")
    return machine


def calibrated_file(name: str) -> Path:
    """Return where the figures measured on a device of this name are kept.

    Parameters
    ----------
    name : str
        As CUDA calls it, such as "NVIDIA H200".

    Notes
    -----
    In the folder that ``LOUVAIN_UM_MACHINES`` names, or else ``louvain-um/machines`` of the
    user's configuration.

    Examples
    --------
    >>> from louvain_um.placement.machine import calibrated_file
    >>> calibrated_file("NVIDIA GeForce RTX 3060 Ti").name
    'nvidia-geforce-rtx-3060-ti.json'
    """
    home = os.environ.get("XDG_CONFIG_HOME")
    config = Path(home) if home else Path("~/.config").expanduser()
    folder = os.environ.get("LOUVAIN_UM_MACHINES") or config / "louvain-um" / "machines"
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "device"
    return Path(folder) / f"{slug}.json"


def machine_for(device: int | str | None = None) -> Machine:
    """Return the figures of a device: calibrated, shipped for its kind, or an H200's.

    Parameters
    ----------
    device : int or str, optional
        Number of a CUDA device, or a device's name; device 0 if there is one, if left out.

    Returns
    -------
    Machine
        Its notes say under "profile" how it was chosen.

    Raises
    ------
    LouvainUmError
        There is a calibrated file and it is damaged.

    Examples
    --------
    >>> from louvain_um.placement.machine import machine_for
    >>> machine_for("NVIDIA GeForce RTX 3060 Ti").notes["profile"]
    'shipped for NVIDIA GeForce RTX 3060 Ti; louvain-um calibrate measures this one'
    """
    name, memory = (device, None) if isinstance(device, str) else present(device or 0)
    if name is None:
        return _chosen(FALLBACK, f"no GPU here; the profile {FALLBACK.name} is assumed")
    measured = calibrated_file(name)
    if measured.is_file():
        return _chosen(load_machine(measured), f"measured on this {name}: {measured}")
    shipped = _named(name)
    if shipped is not None:
        return _chosen(shipped, f"shipped for {name}; louvain-um calibrate measures this one")
    note = f"no profile of {name}; the profile {FALLBACK.name} is assumed; run louvain-um calibrate"
    return _chosen(replace(FALLBACK, memory_bytes=memory or FALLBACK.memory_bytes), note)


def present(device: int) -> tuple[str | None, int | None]:
    """Return name and bytes of memory of a CUDA device; None where there is none."""
    try:
        return _described(device)
    except OSError:
        return None, None


@cache
def _described(device: int) -> tuple[str, int]:
    """Return the same of a device that is there."""
    cuda = ctypes.CDLL("nvcuda.dll" if os.name == "nt" else "libcuda.so.1")
    handle, size = ctypes.c_int(), ctypes.c_size_t()
    text = ctypes.create_string_buffer(256)
    asked = (
        cuda.cuInit(0),
        cuda.cuDeviceGet(ctypes.byref(handle), device),
        cuda.cuDeviceGetName(text, len(text), handle),
        cuda.cuDeviceTotalMem_v2(ctypes.byref(size), handle),
    )
    if any(asked):
        raise OSError(f"no CUDA device {device}")
    return text.value.decode(errors="replace"), size.value


def _named(name: str) -> Machine | None:
    """Return the profile whose name is made of whole words of the device's: no GH200 is an H200."""
    words = re.findall(r"[a-z0-9]+", name.lower())
    runs = {"".join(words[i:j]) for i in range(len(words)) for j in range(i + 1, len(words) + 1)}
    return next((machine for key, machine in PROFILES.items() if key in runs), None)


def _chosen(machine: Machine, note: str) -> Machine:
    return replace(machine, notes={**machine.notes, "profile": note})
