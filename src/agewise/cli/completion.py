"""What a shell offers for values of options: known without importing what runs, so at once."""

import re
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import entry_points
from importlib.resources import files

#: A policy's name as its file says it.
_NAME = re.compile(r'^    name: ClassVar\[str\] = "([^"]+)"', re.MULTILINE)
ENGINES = ("local", "inline", "ray")
LOGGERS = ("csv", "tensorboard", "wandb", "trackio")
AXES = ("rounds", "seconds", "joules", "uses", "bits")


def policy_names() -> list[str]:
    """The names of all registered policies, sorted."""
    folder = files("agewise").joinpath("policies")
    texts = [file.read_text(encoding="utf-8") for file in folder.iterdir() if _is_public(file.name)]
    added = [point.name for point in entry_points(group="agewise.policies")]
    return sorted({*added, *(name for text in texts for name in _NAME.findall(text))})


def preset_names() -> list[str]:
    """The names of the package's scenarios, sorted."""
    folder = files("agewise").joinpath("scenario", "presets")
    return sorted(file.name.removesuffix(".toml") for file in folder.iterdir())


def complete_policy(incomplete: str) -> list[str]:
    """Policies whose names begin so; the shell itself offers files where there is none."""
    return _beginning(policy_names(), incomplete)


def complete_preset(incomplete: str) -> list[str]:
    """Presets whose names begin so; the shell itself offers files where there is none."""
    return _beginning(preset_names(), incomplete)


def complete_one_of(words: Iterable[str]) -> Callable[[str], list[str]]:
    """What completes one of these words."""

    def complete(incomplete: str) -> list[str]:
        return _beginning(words, incomplete)

    return complete


def listed(words: Sequence[str]) -> str:
    """The words in a sentence.

    >>> listed(("local", "inline", "ray"))
    'local, inline or ray'
    """
    return f"{', '.join(words[:-1])} or {words[-1]}"


def _beginning(words: Iterable[str], incomplete: str) -> list[str]:
    return [word for word in words if word.startswith(incomplete)]


def _is_public(name: str) -> bool:
    return name.endswith(".py") and not name.startswith("_")
