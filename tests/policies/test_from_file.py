"""Policies in files of a user's own, and what is said of any policy."""

import json
import subprocess
import sys

import pytest

import agewise
from agewise.policies import describe, make_policy
from agewise.provenance import sources_of
from tests.scenarios import tiny

MINE = '''
from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import agewise


def weight(view, power):
    return view.ages**power


@dataclass(frozen=True)
class Mine(agewise.Policy):
    """Oldest first (nobody, 2020).

    By w = age^power.
    """

    name: ClassVar[str] = "mine"
    power: float = 1.0

    def __post_init__(self):
        if not 0 < self.power <= 3:
            raise ValueError(f"power must be in (0, 3], not {self.power}")

    def utility(self, view, rng):
        return weight(view, self.power)
'''


@pytest.fixture
def mine(tmp_path):
    (tmp_path / "mine.py").write_text(MINE)
    return tmp_path / "mine.py"


@pytest.mark.parametrize(("ending", "power"), [("", 1), (":Mine", 1), (":Mine:power=2", 2),
                                               (":power=2", 2)])  # fmt: skip
def test_a_class_in_a_file_is_a_policy(mine, ending, power):
    policy = make_policy(f"{mine}{ending}")
    assert (policy.name, policy.parameters) == (
        "mine",
        {"power": power, "packing": "greedy", "ties": "random"},
    )
    assert type(policy) is type(make_policy(f"{mine}:Mine")), "loaded once"


def test_its_source_is_the_file(mine):
    before = sources_of(tiny(), make_policy(str(mine)))
    mine.write_text(MINE.replace("return view.ages**power", "return view.ages ** (power + 1)"))
    after = sources_of(tiny(), make_policy(str(mine)))
    assert before.keys() == after.keys() == {"policy:mine"}
    assert before != after, "what the class uses of its file counts too"


@pytest.mark.parametrize(
    ("content", "asked", "sentence"),
    [
        (None, "", "cannot be read: No such file"),
        ("x = 1", "", "no subclass of agewise's Policy"),
        ("1 +", "", "cannot be run: line 1: SyntaxError"),
        ("import nowhere_at_all", "", "cannot be run: wrong.py:1: ModuleNotFoundError"),
        (MINE, ":Yours", "no subclass of agewise's Policy called Yours, only Mine"),
        (MINE, ":Mine:pover=1", "no parameter 'pover'; it takes power, packing, ties"),
        (MINE, ":Mine:power=9", "power must be in"),
        (MINE.replace('"mine"', '"age-based"'), "", "that of another policy"),
        (MINE.replace("@dataclass(frozen=True)", ""), "", "put @dataclass"),
        (MINE + "\n\nclass Other(Mine): ...\n", "", "several classes"),
        (
            MINE.replace('    name: ClassVar[str] = "mine"', ""),
            "",
            "must be a frozen dataclass with a name",
        ),
    ],
)
def test_mistakes_are_one_sentence(tmp_path, content, asked, sentence):
    file = tmp_path / "wrong.py"
    if content is not None:
        file.write_text(content)
    with pytest.raises(ValueError, match="wrong.py|power") as error:
        make_policy(f"{file}{asked}")
    assert sentence in str(error.value)
    assert "\n" not in str(error.value)


def test_it_runs_on_the_command_line_in_other_processes(mine):
    (mine.parent / "tiny.toml").write_text(tiny(**{"run.rounds": 2}).to_toml())
    command = [
        sys.executable, "-m", "agewise", "compare", "tiny.toml", "-p", "mine.py:Mine", "-p",
        "mine.py:Mine:power=2", "-s", "2", "-o", "out", "--workers", "1", "--quiet", "--json",
        "--baseline", "mine.py:Mine",
    ]  # fmt: skip
    run = subprocess.run(command, capture_output=True, text=True, cwd=mine.parent, check=False)
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout)["baseline"] == "mine"
    result = agewise.Result.open(mine.parent / "out")
    assert len(result.entries) == 4
    assert [key.name for key in result.policies] == ["mine", "mine"]


@pytest.mark.parametrize("name", agewise.policies.names())
def test_every_parameter_is_described_with_what_it_may_be(name):
    described = describe(name)
    assert described.summary.endswith(".")
    made = make_policy(name)
    assert {each.name: each.default for each in described.parameters} == made.parameters
    for each in described.parameters:
        assert each.allowed not in ("float", "int", "str", ""), each.name


def test_a_file_is_described_too(mine):
    described = describe(f"{mine}:Mine")
    assert described.text == "By w = age^power."
    assert described.parameters[0].allowed == "in (0, 3]"
