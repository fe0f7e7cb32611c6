"""Policies by name, from this package and from others."""

import textwrap

import pytest

from agewise import policies
from agewise.cli import _printing as printing
from agewise.policies import AgeBased, make_policy


@pytest.fixture
def other_package(tmp_path, monkeypatch):
    """An installed package with one good policy, one that does not load and one that is none."""
    (tmp_path / "elsewhere.py").write_text(
        textwrap.dedent(
            '''
            from dataclasses import dataclass
            from agewise.policies import Policy

            @dataclass(frozen=True)
            class Nearest(Policy):
                """Best average gain first."""
                name = "nearest"
                bias: float = 0.0

                def utility(self, view, rng):
                    return view.uplink.gains.mean(axis=1) + self.bias

            class NotOne:
                pass

            class Plain(Policy):
                """Not a dataclass."""
                name = "plain"

            @dataclass(frozen=True)
            class Needy(Policy):
                """Needs a parameter."""
                name = "needy"
                need: float

                def schedule(self, view, rng):
                    raise NotImplementedError
            '''
        )
    )
    (tmp_path / "exits.py").write_text("raise SystemExit(0)")
    info = tmp_path / "elsewhere-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: elsewhere\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[agewise.policies]\nnearest = elsewhere:Nearest\nnot-one = elsewhere:NotOne\n"
        "broken = elsewhere_missing:Gone\nplain = elsewhere:Plain\nneedy = elsewhere:Needy\n"
        "age-based = elsewhere:Nearest\nexits = exits:Gone\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))


def test_names():
    assert policies.names() == sorted(policies.names())
    assert {"age-based", "max-pack", "random", "round-robin"} <= set(policies.names())


@pytest.mark.usefixtures("other_package")
def test_another_package_adds_a_policy():
    assert {"nearest", "broken", "not-one"} <= set(policies.names())
    assert str(make_policy("nearest", bias=2.0)) == "nearest:bias=2"
    assert policies.summary("nearest") == "Best average gain first."
    with pytest.raises(ValueError, match=r"'broken'.*cannot be loaded.*elsewhere_missing"):
        make_policy("broken")
    with pytest.raises(ValueError, match=r"'exits'.*cannot be loaded: exits.py:1: SystemExit: 0"):
        make_policy("exits")
    with pytest.raises(ValueError, match=r"'not-one'.*not a subclass of Policy"):
        make_policy("not-one")
    with pytest.raises(ValueError, match=r"'plain'.*must be a frozen dataclass"):
        make_policy("plain")
    with pytest.raises(ValueError, match=r"'needy' cannot be made:.*need"):
        make_policy("needy")
    assert "cannot be loaded" in policies.summary("broken")
    assert isinstance(make_policy("age-based"), AgeBased), "a built-in cannot be replaced"


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("max-pak", {}, "unknown policy 'max-pak'; did you mean max-pack"),
        ("zzz", {}, "there are age-based, "),
        ("max-pack", {"alpha": 0.5}, "no parameter 'alpha'; it takes packing, ties"),
        ("round-robin", {"alpha": 0.5}, "it takes no parameters"),
        (AgeBased(), {"alpha": 0.5}, "alpha cannot be given beside a policy object"),
        (3, {}, "a name or a Policy object"),
    ],
)
def test_mistakes(name, parameters, message):
    with pytest.raises(ValueError, match=message):
        make_policy(name, **parameters)


def test_every_policy_has_an_equation_of_its_own():
    for name in policies.names():
        assert policies.describe(name).equation, name


def test_sentences_are_broken_between_words(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    printing.print_policy(policies.describe("whittle"), as_json=False)
    shown = capsys.readouterr().out
    assert policies.describe("whittle").equation in " ".join(shown.split())
    head = shown.partition("parameter")[0]  # of the table, which is as wide as its words
    assert max(map(len, head.splitlines())) <= 40
    assert "broadcast wireless networks" in " ".join(shown.split())
