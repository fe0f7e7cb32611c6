"""Every command that README and documents show is one that the command line takes."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

import agewise
from agewise.cli import app
from tests.scenarios import tiny

ROOT = Path(__file__).parent.parent
DOCUMENTS = [ROOT / "README.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").rglob("*.md"))]
#: Commands that are run with --dry-run; those that take minutes and cannot are only parsed.
REHEARSED = ("run", "compare", "sweep", "reproduce", "race")
PARSED = ("gap", "explain", "traffic", "--install-completion")
POLICIES = '''
from dataclasses import dataclass

import agewise


@dataclass(frozen=True)
class OldAndLarge(agewise.Policy):
    """Oldest first."""

    name = "old-and-large"

    def utility(self, view, rng):
        return view.ages


@dataclass(frozen=True)
class MyPolicy(OldAndLarge):
    """The same."""

    name = "mine"
'''


def shown_in(text):
    """The commands in the blocks of a document, without the cells, which run with the site.

    A backslash goes on in the next line, and what stands between backquotes in a sentence counts
    if it has an option.
    """
    inside = cell = False
    for line in text.replace("\\\n", " ").split("\n"):
        if line.startswith("```"):
            inside, cell = not inside, line.startswith("```{code-cell}")
        elif inside and not cell and line.startswith("agewise "):
            yield line
        elif not inside:
            inline = re.findall(r"`(agewise [^`]*)`", line)
            yield from (one for one in inline if " -" in one and " ... " not in one)


def words_of(command):
    """The arguments of a command, without comments and where its output goes."""
    words = shlex.split(command, comments=True)[1:]
    return words[: words.index(">")] if ">" in words else words


COMMANDS = [(path.name, line) for path in DOCUMENTS for line in shown_in(path.read_text("utf-8"))]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """What the commands name: scenarios, gains and ages, a policy, results."""
    folder = tmp_path_factory.mktemp("shown")
    rng = np.random.default_rng(0)
    seconds = {
        "kind": "seconds",
        "slot_s": 0.1,
        "downlink": {"kind": "constant", "seconds": 0.0},
        "transmit_power_w": 0.1,
    }
    computing = {"kind": "log-normal", "median_s": 0.1, "sigma": 0.1, "power_w": 0.1}
    scenario = tiny(timing=seconds, **{"devices.computing": computing})
    (folder / "my.toml").write_text(scenario.to_toml(), "utf-8")
    for name in ("my", "runs/compare-paper", "runs/costs", "runs/sweep-paper", "runs/live", "DIR"):
        agewise.compare(
            scenario, ["age-based", "max-pack"], 2, folder / name, engine="inline", quiet=True
        )
    (folder / "my_policy.py").write_text(POLICIES, "utf-8")
    np.savetxt(folder / "gains.csv", rng.exponential(size=(8, 4)), delimiter=",")
    np.savetxt(folder / "ages.csv", rng.integers(0, 9, size=8), fmt="%d")
    agewise.record_trace(agewise.Scenario.preset("paper"), folder / "gains.npz")
    shipped = Path(agewise.policies.__file__).parent / "learned.npz"
    (folder / "scorer.npz").write_bytes(shipped.read_bytes())
    return folder


def test_there_are_commands():
    assert len(COMMANDS) > 40
    assert {name for name, _ in COMMANDS} >= {"README.md", "scenarios.md", "accounting.md"}


@pytest.mark.parametrize(("document", "command"), COMMANDS)
def test_a_shown_command_works(document, command, folder, monkeypatch):
    monkeypatch.chdir(folder)
    words = words_of(command.replace("SCENARIO", "my.toml").replace("KIND", "gain"))
    if words[0] in PARSED or "--trace" in words or re.search("torch|lenet", command):
        return parse(words)
    if words[0] in REHEARSED and "--dry-run" not in words:
        words.append("--dry-run")
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, f"{document}: {done.exception or done.output}"
    return None


@pytest.mark.parametrize(
    "command", ["agewise traffic paper --every-slot", "agewise gap -p", "agewise no-such-command"]
)
def test_what_is_only_parsed_must_be_there(command):
    with pytest.raises(typer.BadParameter.__bases__[0]):
        parse(words_of(command))


def parse(words):
    """Raise if the command or an option is not there, or a value is not of its kind."""
    group = typer.main.get_command(app)
    with group.make_context("agewise", list(words), resilient_parsing=True) as context:
        if words[0].startswith("-"):
            return
        context.resilient_parsing = False
        name, command, rest = group.resolve_command(context, list(words))
        command.make_context(name, rest, parent=context)
