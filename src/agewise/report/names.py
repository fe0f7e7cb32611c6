"""Short names of policies for legends, different for different policies."""

from collections.abc import Sequence

_WORDS = {"age-based": "ABS", "max-pack": "MaxPack"}
_SAID = {"ties=random": "", "ties=lowest-index": "index ties", "form=paper": ""}


def short_names(policies: Sequence[str]) -> dict[str, str]:
    """A short name for each full one, with the parameters that tell its likes apart.

    >>> short_names(["age-based(alpha=0.5, ties=random)", "random"])
    {'age-based(alpha=0.5, ties=random)': 'ABS', 'random': 'random'}
    >>> list(short_names(["max-pack(ties=random)", "max-pack(ties=lowest-index)"]).values())
    ['MaxPack', 'MaxPack (index ties)']
    """
    short = {policy: _short(policy, policies) for policy in policies}
    return {
        policy: name if list(short.values()).count(name) == 1 else policy
        for policy, name in short.items()
    }


def _short(policy: str, policies: Sequence[str]) -> str:
    name, parts = _split(policy)
    alike = [_split(other)[1] for other in policies if _split(other)[0] == name]
    telling = [part for part in parts if any(part not in other for other in alike)]
    said = ", ".join(filter(None, (_SAID.get(part, part) for part in telling)))
    return f"{_WORDS.get(name, name)} ({said})" if said else _WORDS.get(name, name)


def _split(policy: str) -> tuple[str, list[str]]:
    name, _, inside = policy.partition("(")
    return name, inside.removesuffix(")").split(", ") if inside else []
