"""Policies by name or from a file."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path

from louvain_um.errors import OptionError
from louvain_um.placement.policy.policy import Policy, known_policies, refuse_taken
from louvain_um.placement.policy.policy_files import locate, read_policy

MOST_SHOWN = 100
"""Characters of a name that an error shows."""


def find_policy(policy: str | Path | Policy) -> Policy:
    """Return a policy by name, from a TOML file, or as it is given.

    Parameters
    ----------
    policy : str, path or Policy
        A name of the package's or a registered one; the path of a file ending in ``.toml``; or
        the name of such a file, without its ending, in ``./policies`` or the user's folder
        (`louvain_um.placement.policy.policy_files` describes the form).

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
