"""Memory policies: a placement for each group of arrays.

`base` and `adv1` … `adv9` are Dinçer's, Table 4.5: advice "preferred location CPU, accessed by
GPU" for the groups named, none for the others.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, get_args

from louvain_um.core.ledger import GROUPS, Group
from louvain_um.errors import OptionError, check_choice

Kind = Literal[
    "device", "managed", "prefetched", "host_mapped", "read_mostly", "pinned", "split", "peer"
]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)

OUT_OF_CORE_KINDS: Final[frozenset[Kind]] = frozenset(("managed", "prefetched"))
"""Kinds whose pages come to the device as they are needed, and can be sent back.

Copies that read-mostly memory has on the device stay there (measured): a prefetch to the host
drops none of them.
"""

HOST: Final[frozenset[Kind]] = frozenset(("host_mapped", "pinned"))
"""Kinds that stay on the host and cost no device memory."""

ELSEWHERE: Final[frozenset[Kind]] = HOST | {"peer"}
"""Kinds that cost no memory of the device that runs."""


@dataclass(frozen=True, slots=True)
class Placement:
    """Where bytes live.

    Parameters
    ----------
    kind : str
        "device": a plain device allocation. "managed": managed memory without advice.
        "prefetched": managed, preferred on the GPU and prefetched. "host_mapped": managed,
        preferred on the CPU, accessed by the GPU over the bus. "read_mostly": managed, copied
        to each processor that reads. "pinned": page-locked host memory. "peer": plain memory of
        another GPU, which the option `peer_memory` names. "split": the first part as on the
        device, the rest host_mapped, or on the peer if there is one.
    fraction : float
        Share of a split that is on the device, 0 … 1; 1 for every other kind.

    Raises
    ------
    OptionError
        An unknown kind, or a fraction where none belongs or outside 0 … 1.

    Examples
    --------
    >>> from louvain_um.placement.policy.policy import Placement
    >>> str(Placement("split", 0.25)), Placement("pinned").on_device
    ('split(0.25)', 0.0)
    """

    kind: Kind
    fraction: float = 1.0

    def __post_init__(self) -> None:
        check_choice("placement", self.kind, KINDS)
        number = isinstance(self.fraction, int | float) and not isinstance(self.fraction, bool)
        if not number or not 0 <= self.fraction <= 1:
            raise OptionError("fraction", self.fraction, "of a split must lie in 0 … 1")
        if self.kind != "split" and self.fraction != 1:
            raise OptionError(remedy=f"only a split has a fraction, {self.kind} has none")

    @classmethod
    def parse(cls, text: object) -> Placement:
        """Return the placement that a text such as "pinned" or "split(0.5)" names."""
        if isinstance(text, Placement):
            return text
        found = re.fullmatch(r"\s*(\w+)\s*(?:\(\s*([0-9.eE+-]+)\s*\))?\s*", str(text))
        if not isinstance(text, str) or found is None or found[1] not in KINDS:
            known = ", ".join(kind for kind in KINDS if kind != "split")
            raise OptionError("placement", text, f"must be one of {known} or like split(0.5)")
        kind: Kind = next(kind for kind in KINDS if kind == found[1])
        if (kind == "split") != (found[2] is not None):
            raise OptionError("placement", text, "must say which fraction, like split(0.5)")
        try:
            return cls(kind, 1.0 if found[2] is None else float(found[2]))
        except ValueError:
            raise OptionError("fraction", found[2], "of a split must lie in 0 … 1") from None

    @property
    def on_device(self) -> float:
        """Share of the bytes that is on the device."""
        return 0.0 if self.kind in ELSEWHERE else self.fraction

    def __str__(self) -> str:
        return f"split({self.fraction:.4g})" if self.kind == "split" else self.kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """A placement for each group, and a name.

    Parameters
    ----------
    name : str
        A letter, then letters, digits, ``-`` and ``_``.
    placements : mapping of group to Placement or str
        For "graph", "hash", "community" and "scratch"; a group left out is on the device.
    arrays : mapping of array name to Placement or str
        Arrays that go another way than their group, such as "targets.0".
    groups, roles : mapping of str to Placement or str
        For other programs: their own groups, and what arrays are for, such as "targets". An
        array's name counts before its role, and that before its group.
    others : Placement or str
        For groups of other programs that are not named.
    about : str
        One sentence for people.
    pages_per_warp : int, optional
        For other programs: pages of rows in host or managed memory that a warp takes at a time,
        1 … 10; by default as many as the cost model says.

    Raises
    ------
    OptionError
        An unknown name or group, or no placement.

    Examples
    --------
    >>> from louvain_um.placement.policy.policy import Policy
    >>> mine = Policy(name="mine", placements={"graph": "split(0.5)"})
    >>> str(mine.placements["graph"]), str(mine.placements["hash"])
    ('split(0.5)', 'device')
    """

    name: str
    placements: Mapping[Group, Placement] = field(default_factory=dict)
    arrays: Mapping[str, Placement] = field(default_factory=dict)
    about: str = ""
    groups: Mapping[str, Placement] = field(default_factory=dict)
    roles: Mapping[str, Placement] = field(default_factory=dict)
    others: Placement = Placement("device")
    pages_per_warp: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not re.fullmatch(r"[A-Za-z][\w-]*", self.name):
            raise OptionError(
                "name", self.name, "of a policy must be a letter, then letters, digits, - and _"
            )
        pages = self.pages_per_warp
        if pages is not None and (type(pages) is not int or not 1 <= pages <= 10):
            raise OptionError("pages_per_warp", pages, f"of policy {self.name} must lie in 1 … 10")
        for what in ("placements", "arrays", "groups", "roles"):
            if not isinstance(getattr(self, what), Mapping):
                raise OptionError(remedy=f"policy {self.name}: {what} must be a mapping")
        for group in self.placements:
            if group not in GROUPS:
                raise OptionError(
                    "group", group, f"of policy {self.name} must be one of {', '.join(GROUPS)}"
                )
        try:
            groups = {g: Placement.parse(self.placements.get(g, "device")) for g in GROUPS}
            named = {
                what: {str(name): Placement.parse(p) for name, p in getattr(self, what).items()}
                for what in ("arrays", "groups", "roles")
            }
            others = Placement.parse(self.others)
        except OptionError as error:
            raise OptionError(remedy=f"policy {self.name}: {error}") from None
        object.__setattr__(self, "placements", groups)
        object.__setattr__(self, "others", others)
        for what, placements in named.items():
            object.__setattr__(self, what, placements)

    def placement_of(self, array: str, group: Group) -> Placement:
        """Return where an array of a group goes."""
        return self.arrays.get(array) or self.placements[group]

    def placement_in(self, array: str, group: str, role: str = "other") -> Placement:
        """Return where an array of any program goes.

        Examples
        --------
        >>> from louvain_um.placement.policy.policy import Policy
        >>> mine = Policy(name="mine", roles={"targets": "pinned"}, others="managed")
        >>> str(mine.placement_in("rows", "matrix", "targets")), str(mine.placement_in("x", "y"))
        ('pinned', 'managed')
        """
        named = self.arrays.get(array) or self.roles.get(role) or self.groups.get(group)
        usual: Mapping[Any, Placement] = self.placements
        return named or usual.get(group, self.others)


def _all(kind: Kind) -> dict[Group, Placement]:
    return dict.fromkeys(GROUPS, Placement(kind))


def _advised(name: str, *groups: Group) -> Policy:
    """Return Dinçer's configuration that advises these groups."""
    advised = dict.fromkeys(groups, Placement("host_mapped"))
    about = f"preferred on the CPU, accessed by the GPU: {', '.join(groups)}"
    others = Placement("host_mapped" if groups == GROUPS else "managed")
    return Policy(name=name, placements={**_all("managed"), **advised}, others=others, about=about)


AUTO: Final = Policy(name="auto", about="what the cost model chooses for the budget")
"""Stands for the choice that `make_plan` makes; everything on the device where that fits."""

_KNOWN: Final[dict[str, Policy]] = {
    policy.name: policy
    for policy in (
        Policy(
            name="base",
            placements=_all("managed"),
            others=Placement("managed"),
            about="managed memory without advice: pages come when they are touched",
        ),
        _advised("adv1", *GROUPS),
        _advised("adv2", "graph"),
        _advised("adv3", "hash"),
        _advised("adv4", "community"),
        _advised("adv5", "scratch"),
        _advised("adv6", "graph", "community"),
        _advised("adv7", "graph", "scratch"),
        _advised("adv8", "community", "scratch"),
        _advised("adv9", "graph", "community", "scratch"),
        Policy(name="device", about="plain device memory for everything"),
        Policy(
            name="zero_copy",
            placements={"graph": Placement("host_mapped")},
            about="the graph is read over the bus, everything else is on the device",
        ),
        AUTO,
    )
}

POLICY_NAMES: Final = tuple(_KNOWN)
"""Policies that come with the package."""


def register(policy: Policy, *, replace: bool = False) -> Policy:
    """Make a policy known by its name, for this process; return it.

    Parameters
    ----------
    policy : Policy
    replace : bool
        Whether to replace a policy registered before; those of the package stay what they are.

    Raises
    ------
    OptionError
        The name is taken, or it is no policy.

    Examples
    --------
    >>> from louvain_um.placement.policy.policy import Policy, register
    >>> from louvain_um.placement.policy.find import find_policy
    >>> mine = register(Policy(name="half", placements={"graph": "split(0.5)"}), replace=True)
    >>> find_policy("half") is mine
    True
    """
    if not isinstance(policy, Policy):
        raise OptionError("policy", policy, "must be a Policy to be registered")
    refuse_taken(policy.name)
    if policy.name in _KNOWN and not replace:
        raise OptionError(
            "policy",
            policy.name,
            "pass replace=True, or choose another name",
            problem=f"there is a policy {policy.name} already",
        )
    _KNOWN[policy.name] = policy
    return policy


def refuse_taken(name: str) -> None:
    """Raise `OptionError` if a name is one of the package's policies."""
    if name in POLICY_NAMES:
        raise OptionError(remedy=f"policy {name} comes with the package; choose another name")


def known_policies() -> Mapping[str, Policy]:
    """Return policies by name: the package's and those registered."""
    return dict(_KNOWN)
