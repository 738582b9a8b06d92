"""Memory policies: built in, in files, and your own; and the decision of `auto`."""

from louvain_um.placement.policy.find import find_policy, read_policy
from louvain_um.placement.policy.policy import KINDS, Placement, Policy, known_policies, register

__all__ = [
    "KINDS",
    "Placement",
    "Policy",
    "find_policy",
    "known_policies",
    "read_policy",
    "register",
]
