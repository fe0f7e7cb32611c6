"""Short names of policies for legends, different for different policies."""

from collections.abc import Sequence

from agewise.records import PolicyKey

_WORDS = {"age-based": "ABS", "max-pack": "MaxPack"}
_SAID = {("ties", "random"): "", ("ties", "lowest-index"): "index ties", ("form", "paper"): ""}


def short_names(policies: Sequence[PolicyKey]) -> dict[str, str]:
    """A short name for each full one, with the parameters that tell its likes apart.

    >>> random, indexed = (PolicyKey("max-pack", {"ties": t}) for t in ("random", "lowest-index"))
    >>> short_names([PolicyKey("age-based", {"alpha": 0.5}), random])
    {'age-based(alpha=0.5)': 'ABS', 'max-pack(ties=random)': 'MaxPack'}
    >>> list(short_names([random, indexed]).values())
    ['MaxPack', 'MaxPack (index ties)']
    """
    short = {str(policy): _short(policy, policies) for policy in policies}
    return {
        policy: name if list(short.values()).count(name) == 1 else policy
        for policy, name in short.items()
    }


def _short(policy: PolicyKey, policies: Sequence[PolicyKey]) -> str:
    name = _WORDS.get(policy.name, policy.name)
    alike = [other.parameters for other in policies if other.name == policy.name]
    telling = [
        _SAID.get((parameter, str(value)), f"{parameter}={value}")
        for parameter, value in policy.parameters.items()
        if any(other.get(parameter) != value for other in alike)
    ]
    inside = ", ".join(filter(None, telling))
    return f"{name} ({inside})" if inside else name
