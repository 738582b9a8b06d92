r"""Policies by name, or from files of a few lines.

A file gives each group a placement, and single arrays if need be::

    # policies/half.toml
    about = "half of the targets over the bus"
    graph = "device"
    hash = "device"
    community = "prefetched"
    scratch = "device"

    [arrays]
    "targets.0" = "split(0.5)"

A group left out takes ``others``, and where that is left out, too, is on the device. Tables
``[groups]`` and ``[roles]`` place arrays of other programs, by their own groups and by what they
are for. The policy
is called what the file is (here ``half``), or what ``name`` says. Files are found by path, and by
name in ``./policies``, in the folders of ``LOUVAIN_UM_POLICIES`` (separated as in ``PATH``), and
in ``louvain-um/policies`` of the user's configuration.

Examples
--------
>>> import pathlib, tempfile
>>> from louvain_um.placement.policy.find import find_policy
>>> with tempfile.TemporaryDirectory() as folder:
...     path = pathlib.Path(folder, "bus.toml")
...     _ = path.write_text('graph = "host_mapped"\n')
...     policy = find_policy(str(path))
>>> policy.name, str(policy.placements["graph"]), str(policy.placements["hash"])
('bus', 'host_mapped', 'device')
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from louvain_um.core.atomic_files import read_text
from louvain_um.core.ledger import GROUPS
from louvain_um.errors import OptionError, reason_of
from louvain_um.placement.policy.policy import Placement, Policy, known_policies, refuse_taken

MOST_CHARACTERS = 1 << 16
"""Of a file; what is longer is no policy."""

MOST_NAME = 100
"""Characters of a name; files are not looked for by longer ones."""

FIELDS = ("name", "about", "others", "pages_per_warp", "arrays", "groups", "roles", *GROUPS)


def folders() -> list[Path]:
    """Return where policies are looked for by name, in order."""
    listed = os.environ.get("LOUVAIN_UM_POLICIES", "").split(os.pathsep)
    home = os.environ.get("XDG_CONFIG_HOME")
    config = Path(home) if home else Path("~/.config").expanduser()
    return [
        Path("policies"),
        *(Path(name) for name in listed if name),
        config / "louvain-um" / "policies",
    ]


def locate(name: str) -> Path | None:
    """Return the file of a policy named by its path or its name; None where there is none."""
    if name.endswith(".toml"):
        return Path(name)
    if len(name) > MOST_NAME or not re.fullmatch(r"[A-Za-z][\w-]*", name):
        return None
    files = (folder / f"{name}.toml" for folder in folders())
    return next((file for file in files if file.is_file()), None)


def read_policy(path: Path) -> Policy:
    """Read a policy.

    Raises
    ------
    OptionError
        The file cannot be read or is no policy; it names the file.
    """
    try:
        values = tomllib.loads(read_text(path, MOST_CHARACTERS))
    except OSError as error:
        raise OptionError(
            remedy=f"{path}: {reason_of(error)}; name a memory policy or its .toml file"
        ) from None
    except RecursionError:
        raise OptionError(remedy=f"{path}: is not a policy: nested too deeply") from None
    except UnicodeDecodeError:
        raise OptionError(remedy=f"{path}: is not a policy: not UTF-8 text") from None
    except ValueError as error:
        raise OptionError(remedy=f"{path}: is not a policy: {error}") from None
    try:
        return _policy(values, path.stem)
    except OptionError as error:
        raise OptionError(remedy=f"{path}: {error}") from None


def _policy(values: dict[str, Any], stem: str) -> Policy:
    unknown = [name for name in values if name not in FIELDS]
    if unknown:
        raise OptionError(remedy=f"{unknown[0]!r} is not one of {', '.join(FIELDS)}")
    placing = (
        where for key, where in values.items() if key not in ("name", "about", "pages_per_warp")
    )
    if all(where == {} for where in placing):
        raise OptionError(remedy=f"is empty; say where one of {', '.join(GROUPS)} lives, or others")
    name = values.get("name", stem)
    refuse_taken(name)
    others = Placement.parse(values.get("others", "device"))
    return Policy(
        name=name,
        placements={group: values.get(group, others) for group in GROUPS},
        arrays=values.get("arrays", {}),
        groups=values.get("groups", {}),
        roles=values.get("roles", {}),
        others=others,
        about=str(values.get("about", "")),
        pages_per_warp=values.get("pages_per_warp"),
    )


MOST_SHOWN = 100
"""Characters of a name that an error shows."""


def find_policy(policy: str | Path | Policy) -> Policy:
    """Return a policy by name, from a TOML file, or as it is given.

    Parameters
    ----------
    policy : str, path or Policy
        A name of the package's or a registered one; the path of a file ending in ``.toml``; or
        the name of such a file, without its ending, in ``./policies`` or the user's folder
        (`louvain_um.placement.policy.find` describes the form).

    Raises
    ------
    OptionError
        There is no such policy, or the file is none.

    Examples
    --------
    >>> from louvain_um.placement.policy.find import find_policy
    >>> policy = find_policy("adv2")
    >>> [str(p) for p in policy.placements.values()]
    ['host_mapped', 'managed', 'managed', 'managed']
    """
    known = known_policies()
    if isinstance(policy, Policy):
        if policy != known.get(policy.name):
            refuse_taken(policy.name)
        return policy
    name = str(policy)
    if name in known:
        return known[name]
    path = locate(name)
    if path is None:
        raise OptionError(
            "memory",
            name,
            f"{_meant(name, known)}name one of {', '.join(known)}, or a .toml file",
            problem=f"there is no memory policy {name[:MOST_SHOWN]!r}",
        )
    return read_policy(path)


def refuse_misspelt(policy: Policy, **tables: Iterable[str]) -> None:
    """Raise `OptionError` if a policy names nearly what a program has, by table of the policy."""
    for table, there in tables.items():
        known, placed = sorted(set(there)), getattr(policy, table)
        left = [name for name in known if name not in placed]
        for name in placed:
            near = [] if name in known else get_close_matches(name[:MOST_SHOWN], left, 1, 0.8)
            if near:
                raise OptionError(
                    remedy=f"policy {policy.name}: {table} has {name[:MOST_SHOWN]!r}; did you mean "
                    f"{near[0]}? Or name one of {', '.join(known)}"
                )


def _meant(name: str, known: Iterable[str]) -> str:
    """Return a question for a name that is nearly one of a policy, else nothing."""
    plain = name[:40].strip().lower().replace("-", "_").replace(" ", "_")
    near = get_close_matches(plain, known, 1, 0.7)
    return f"did you mean {near[0]}? Or " if near else ""
