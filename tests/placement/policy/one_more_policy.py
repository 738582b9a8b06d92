"""A pytest plugin that adds a policy to the table of those that come with the package."""

from louvain_um.placement.policy import policy

policy.register(policy.Policy(name="one_more", placements={"hash": "pinned"}, about="a new one"))
policy.POLICY_NAMES = (*policy.POLICY_NAMES, "one_more")
