"""Which figures stand for a device: its own, those shipped for its kind, or an H200's."""

from __future__ import annotations

import ctypes
import os
import re
from dataclasses import replace
from functools import cache
from pathlib import Path

from louvain_um.placement.machine.machine import Machine
from louvain_um.placement.machine.machine_files import load_machine
from louvain_um.placement.machine.profiles import H200, PROFILES

FALLBACK = H200


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
    >>> from louvain_um.placement.machine.machine_choice import calibrated_file
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
    >>> from louvain_um.placement.machine.machine_choice import machine_for
    >>> machine_for("NVIDIA GeForce RTX 3060 Ti").notes["profile"]
    'shipped for NVIDIA GeForce RTX 3060 Ti; louvain-um calibrate measures this one'
    """
    name, memory = (device, None) if isinstance(device, str) else present(device or 0)
    if name is None:
        return _chosen(FALLBACK, f"no GPU here; the profile {FALLBACK.name} is assumed")
    own = calibrated_file(name)
    if own.is_file():
        return _chosen(load_machine(own), f"measured on this {name}: {own}")
    shipped = _shipped(name)
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


def _shipped(name: str) -> Machine | None:
    """Return the profile whose name is made of whole words of the device's: no GH200 is an H200."""
    words = re.findall(r"[a-z0-9]+", name.lower())
    runs = {"".join(words[i:j]) for i in range(len(words)) for j in range(i + 1, len(words) + 1)}
    return next((machine for key, machine in PROFILES.items() if key in runs), None)


def _chosen(machine: Machine, note: str) -> Machine:
    return replace(machine, notes={**machine.notes, "profile": note})
