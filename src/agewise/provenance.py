"""What a run is computed from besides the package and the scenario, known by its content.

Sources have names: ``data:PATH`` for a file of the data set, ``trace:PATH`` for recorded gains,
``positions:PATH`` and ``tracks:PATH`` for where UEs are and how they move, ``devices:PATH`` for
measured devices, as the scenario writes them; ``policy:NAME`` for the source of a policy from
outside the package, ``scorer:PATH`` for the weights of a learned one, ``part:KIND`` for the source
of a user's part, ``model:FILE.py:FUNCTION`` or ``model:NAME`` for that of a PyTorch module from a
file or from the running program. What they import from elsewhere is not covered. The package itself
is known by its version, and by the digests of its own files (`code_digests`), for in a source tree
they change while that does not.
"""

import functools
import hashlib
import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import ModuleType

from agewise.files import fingerprint
from agewise.part import Unloaded, loaded_text, own_parts, parts_inside
from agewise.records import PolicyKey
from agewise.scenario import Scenario
from agewise.scheduling import Policy

#: In the place of a digest: code that was typed in without leaving its text anywhere.
_UNKNOWN = "unknown"
_PACKAGE = __name__.partition(".")[0]
#: In the place of a digest: runs of one folder were computed by several versions of the file.
SEVERAL = "several"
#: What of the package no run is computed by.
_AROUND = ("cli", "engines", "experiment", "flower", "report", "statistics.py", "studies", "tables")


@functools.cache
def code_digests() -> dict[str, str]:
    """The start of the SHA-256 of each file of the package that runs are computed by, by path."""
    package = Path(__file__).parent
    found = sorted([*package.rglob("*.py"), *package.rglob("learned.npz")])
    files = {str(file.relative_to(package)): file for file in found}
    return {
        name: hashlib.sha256(file.read_bytes()).hexdigest()[:16]
        for name, file in files.items()
        if not name.startswith(_AROUND)
    }


def code_text(digests: Mapping[str, str]) -> str:
    """What the code is called that runs were computed by: one digest of all its files."""
    if SEVERAL in digests.values():
        return SEVERAL
    return hashlib.sha256(repr(sorted(digests.items())).encode()).hexdigest()[:8]


def sources_of(scenario: Scenario, policy: Policy) -> dict[str, str]:
    """The SHA-256 of every source of a run, by name; files that are not there are left out."""
    found = {name: fingerprint(file) for name, file in source_files(scenario).items()}
    found[policy_source(policy.name)] = _code_digest_of(type(policy))
    found |= {name: fingerprint(file) for name, file in scorer_files(policy.key).items()}
    found |= {f"part:{kind}": _code_digest_of(code) for kind, code in own_parts(scenario).items()}
    model = scenario.learn.model
    if (maker := model.made_by()) is not None:  # known to the running program (`add_module`)
        found[f"model:{next(iter(model.source_names()))}"] = _code_digest(maker)
    return {name: digest for name, digest in found.items() if digest is not None}


def source_files(scenario: Scenario) -> dict[str, Path]:
    """The files that a scenario names, by the names of their sources."""
    files = {f"data:{name}": file for name, file in scenario.data.dataset.files().items()}
    model = {f"model:{name}": file for name, file in scenario.learn.model.source_files().items()}
    return files | _files_of_parts(scenario) | model


def source_names(scenario: Scenario) -> set[str]:
    """The names of the files that a scenario names, without a look at any of them."""
    names = {f"data:{name}" for name in scenario.data.dataset.file_names()}
    names |= {f"model:{name}" for name in scenario.learn.model.source_names()}
    names |= {f"part:{kind}" for kind in own_parts(scenario)}
    return names | _files_of_parts(scenario).keys()


def _files_of_parts(scenario: Scenario) -> dict[str, Path]:
    inside = [*parts_inside(scenario.channel), *parts_inside(scenario.devices)]
    return {name: file for _, part in inside for name, file in part.files().items()}


def policy_source(name: str) -> str:
    """What the source of the policy of this name is called."""
    return f"policy:{name}"


def scorer_files(policy: PolicyKey) -> dict[str, Path]:
    """The file of weights that a learned policy names by its ``path``, by the name of its source.

    >>> scorer_files(PolicyKey("learned", {"path": "scorer.npz"}))
    {'scorer:scorer.npz': PosixPath('scorer.npz')}
    """
    path = policy.parameters.get("path")
    return {f"scorer:{path}": Path(path)} if isinstance(path, str) and path else {}


def source_text(name: str) -> str:
    """What a source is called in a sentence.

    >>> source_text("data:/home/me/digits.npz"), source_text("policy:mine")
    ('digits.npz', 'the policy mine')
    """
    kind, _, rest = name.partition(":")
    return f"the {kind} {rest}" if kind in ("policy", "part", "model") else Path(rest).name


def require_same(expected: Mapping[str, str], scenario: Scenario) -> None:
    """``ValueError`` if a file is not (or no longer) the one that was meant."""
    for name, file in source_files(scenario).items():
        now = fingerprint(file)
        if now is not None and now != expected.get(name):
            raise ValueError(
                f"{file} is not what it was when the experiment began: start the same command "
                "again when the file is settled"
            )


def _code_digest(maker: Callable[..., object]) -> str:
    """The digest of a class or function, and of what it names in its own script or notebook."""
    names = getattr(getattr(maker, "__code__", None), "co_names", ())
    space = getattr(maker, "__globals__", {})
    beside = [space[name] for name in names if inspect.isclass(space.get(name))]
    classes = [one for kind in [maker, *beside] if isinstance(kind, type) for one in kind.__mro__]
    texts = [_class_text(kind) for kind in classes if _is_outside(kind)]
    return _digest(texts if isinstance(maker, type) else [*texts, _source(maker)])


def _digest(texts: Iterable[str | None]) -> str:
    known = list(texts)
    if None in known:
        return _UNKNOWN
    return hashlib.sha256("\0".join(filter(None, known)).encode()).hexdigest()


@functools.cache
def _code_digest_of(kind: type) -> str | None:
    """The digest of the code of a class from outside the package; ``None`` for one of its own.

    It is taken when the class is first used: what happens to the file later is not what runs here.
    """
    outside = [one for one in kind.__mro__ if _is_outside(one)]
    return _digest(map(_class_text, outside)) if outside else None


def _is_outside(kind: type) -> bool:
    """Whether a class is the user's, not of a library that is known by its version."""
    top = kind.__module__.partition(".")[0]
    ours = top in (_PACKAGE, "pydantic", "torch") or issubclass(kind, Unloaded)
    return top == "__main__" or not (ours or top in sys.stdlib_module_names)


def _class_text(kind: type) -> str | None:
    """The source of the module of a class; in a script or a notebook, of the class itself."""
    if (text := loaded_text(kind)) is not None:
        return text
    own = None if kind.__module__ == "__main__" else sys.modules.get(kind.__module__)
    # A notebook knows the source of methods where it does not know that of the class.
    methods = [each for each in vars(kind).values() if inspect.isfunction(each)]
    written = [each for each in methods if each.__code__.co_filename != "<string>"]
    return _source(own or kind) or _source(*written)


def _source(*objects: Callable[..., object] | ModuleType) -> str | None:
    try:
        return "\n".join(map(inspect.getsource, objects)) or None
    except (OSError, TypeError):
        return None
