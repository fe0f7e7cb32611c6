"""What docs/flower.md and the README of the example say is what works."""

import re
import time
import tomllib
from pathlib import Path

import pytest
from flwr.serverapp import strategy as flower

from tests.scenarios import tiny
from tests_extra.flower.federations import InProcessGrid, Problem, id_of

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "flower.md").read_text(encoding="utf-8")
EXAMPLE = ROOT / "examples" / "flower"


@pytest.fixture(scope="module")
def problem():
    return Problem(tiny())


def lines_of_the_diff():
    (diff,) = re.findall(r"```diff\n(.*?)```", GUIDE, flags=re.DOTALL)
    return diff.splitlines()


def run(lines, problem):
    """Run the lines on twelve clients; their names, and who was asked to train."""
    names = {"grid": InProcessGrid(problem.app, problem.everyone), "arrays": problem.arrays}
    exec("\n".join(lines), names)
    asked = [number for _, kind, number in names["grid"].asked if kind == "train"]
    return names, asked


def test_the_diff_of_the_guide(problem, monkeypatch):
    """Two lines of a server that runs make one that runs and is scheduled."""
    monkeypatch.setattr(time, "sleep", lambda _: None)  # the least time of a round
    lines = lines_of_the_diff()
    assert [line[0] for line in lines if line[:1] in ("+", "-")] == ["+", "-", "+"]
    before, all_asked = run([line[1:] for line in lines if line[:1] != "+"], problem)
    assert len(all_asked) == 50 * 12
    after, asked = run([line[1:] for line in lines if line[:1] != "-"], problem)
    assert type(before["result"]) is type(after["result"])
    assert before["result"].arrays.keys() == after["result"].arrays.keys()
    assert len(asked) == 50 * 8
    history, number = after["strategy"].history(), {id_of(k): k for k in range(12)}
    numbers = [number[id_] for id_ in after["strategy"].client_ids]
    arrived = [[numbers[row] for row in rows] for rows in history.received]
    assert arrived == [asked[at : at + 8] for at in range(0, 400, 8)]
    assert history.ages.max() == 1  # eight of twelve: nobody waits for two rounds


def test_the_guide_names_every_strategy():
    (table,) = re.findall(r"## Strategies\n(.*?)\n## ", GUIDE, flags=re.DOTALL)
    named = set(re.findall(r"[A-Z]\w+", table))
    whole = "DifferentialPrivacyServerSideFixedClipping"
    named |= {"DifferentialPrivacy" + name for name in named if name.endswith("Clipping")}
    assert whole in named
    assert set(flower.__all__) - {"Strategy", "Result"} <= named


def test_the_settings_in_the_readme_are_those_of_the_example():
    text = (EXAMPLE / "README.md").read_text(encoding="utf-8")
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text(encoding="utf-8"))
    used = [word for words in re.findall(r"--run-config '([^']*)'", text) for word in words.split()]
    assert len(used) >= 4
    for word in used:
        name, value = word.split("=", 1)
        default = project["tool"]["flwr"]["app"]["config"][name]
        assert type(tomllib.loads(f"x = {value}")["x"]) is type(default)
