"""The command line as a user meets it: output, exit codes, one sentence for a mistake."""

import contextlib
import dataclasses
import inspect
import io
import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

import agewise
from agewise.cli import _options as completion
from agewise.cli import app, main
from agewise.cli._options import split_values, variations_of
from agewise.resources import expected_seconds
from tests.scenarios import tiny


@pytest.fixture
def files(tmp_path):
    gains = np.random.default_rng(0).exponential(size=(12, 8))
    np.savetxt(tmp_path / "gains.csv", gains, delimiter=",")
    np.savetxt(tmp_path / "ages.csv", np.arange(12), fmt="%d")
    np.savez(tmp_path / "cell.npz", gains=gains, ages=np.arange(12))
    (tmp_path / "bad.csv").write_text("1,2\n3,x\n")
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "negative.csv").write_text("1,2\n3,-4\n")
    return tmp_path


def agewise_command(*arguments, cwd="."):
    """The command in this process, which is far quicker than one of its own."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    with (
        contextlib.chdir(cwd),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(sys, "argv", ["agewise", *map(str, arguments)])
        try:
            main()
            code = 0
        except SystemExit as ended:
            code = ended.code or 0
    said = []
    for stream in (out, err):
        stream.flush()
        said.append(stream.buffer.getvalue().decode())
    return subprocess.CompletedProcess(arguments, code, *said)


RULE = ("--power", "10", "--rate-threshold", "2.4")


def test_json_is_what_python_says(files):
    run = agewise_command(
        "schedule", "gains.csv", "--ages", "cell.npz", *RULE, "--policy", "age-based:alpha=0.3",
        "--seed", "4", "--json", cwd=files,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    said = json.loads(run.stdout)
    made = agewise.schedule(
        np.load(files / "cell.npz")["gains"], np.arange(12), power=10.0, rate_threshold=2.4,
        alpha=0.3, seed=4,
    )  # fmt: skip
    assert said["owner"] == made.owner.tolist()
    assert said["power"] == pytest.approx(made.power.tolist())
    assert said["scheduled"] == made.scheduled.tolist()
    assert said["rate"] == pytest.approx(made.rate.tolist())
    assert said["parameters"] == {
        "alpha": 0.3,
        "cap": None,
        "form": "paper",
        "packing": "greedy",
        "ties": "random",
    }
    assert said["policy"] == "age-based"


def test_table_names_every_served_ue(files):
    run = agewise_command("schedule", "cell.npz", "--ages", "ages.csv", *RULE, cwd=files)
    assert run.returncode == 0, run.stderr
    made = agewise.schedule(
        np.load(files / "cell.npz")["gains"], np.arange(12), power=10.0, rate_threshold=2.4
    )
    rows = [line.split() for line in run.stdout.splitlines()]
    for ue in np.flatnonzero(made.scheduled):
        assert any(row[:3] == [str(ue), str(ue), f"{made.rate[ue]:.3f}"] for row in rows)
    assert f"{made.scheduled.sum()} of 12 UEs scheduled" in run.stdout
    assert "\x1b" not in run.stdout


def test_nobody_served_is_said(files):
    run = agewise_command(
        "schedule", "gains.csv", "--ages", "ages.csv", "--power", "1", "--rate-threshold", "99",
        cwd=files,
    )  # fmt: skip
    assert run.returncode == 0
    assert "no UE reaches the rate threshold" in " ".join(run.stdout.split())


def test_policies_are_listed():
    run = agewise_command("policies")
    assert [line.split()[0] for line in run.stdout.splitlines()] == agewise.policies.names()
    assert set(json.loads(agewise_command("policies", "--json").stdout)) == set(
        agewise.policies.names()
    )


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("bad.csv", "--ages", "ages.csv", *RULE), "bad.csv, line 2: 'x' is not a number"),
        (("empty.csv", "--ages", "ages.csv", *RULE), "empty.csv: the file has no numbers"),
        (("none.csv", "--ages", "ages.csv", *RULE), "none.csv: no such file"),
        (("negative.csv", "--ages", "ages.csv", *RULE), "UE 1 on subchannel 1 is -4.0"),
        (("gains.csv", "--ages", "gains.csv", *RULE), "one row or one column"),
        (("gains.csv", "--ages", "ages.csv", *RULE, "--policy", "abs"), "unknown policy 'abs'"),
        (
            ("gains.csv", "--ages", "ages.csv", *RULE, "--policy", "age-based:alpha=2"),
            "alpha must be at most 1",
        ),
        (
            ("gains.csv", "--ages", "ages.csv", "--power", "0", "--rate-threshold", "1"),
            "power budget must be positive",
        ),
        (
            ("gains.csv", "--ages", "ages.csv", "--power", "1", "--rate-threshold", "-1"),
            "rate_threshold must be non-negative",
        ),
    ],
)
def test_mistakes_end_with_one_sentence_and_code_2(files, arguments, sentence):
    run = agewise_command("schedule", *arguments, cwd=files)
    assert run.returncode == 2
    assert run.stdout == ""
    assert run.stderr.startswith("agewise: ")
    assert sentence in run.stderr
    assert run.stderr.count("\n") == 1


def test_missing_options_end_with_code_2(files):
    run = agewise_command("schedule", "gains.csv", cwd=files)
    assert run.returncode == 2
    assert "--ages" in run.stderr
    assert "Traceback" not in run.stderr


def test_version():
    assert agewise_command("--version").stdout == f"agewise {agewise.__version__}\n"


@pytest.fixture
def scenario_file(tmp_path):
    path = tmp_path / "tiny.toml"
    path.write_text(tiny(**{"run.rounds": 12}).to_toml())
    return path


def test_scenario_prints_a_file_that_runs(tmp_path):
    listed = agewise_command("scenario").stdout
    assert [line.split()[0] for line in listed.splitlines()] == agewise.scenario.presets()
    printed = agewise_command("scenario", "paper", "--set", "learn.local_steps=20")
    (tmp_path / "my.toml").write_text(printed.stdout)
    read = agewise.Scenario.load(tmp_path / "my.toml")
    assert read == agewise.Scenario.preset("paper").with_(**{"learn.local_steps": 20})


def test_compare_show_and_sweep(scenario_file):
    folder = scenario_file.parent
    compared = agewise_command(
        "compare", "tiny.toml", "--policy", "age-based:alpha=0.25", "--policy", "max-pack",
        "--seeds", "2", "--out", "mine", "--engine", "inline", "--json", cwd=folder,
    )  # fmt: skip
    assert compared.returncode == 0, compared.stderr
    said = json.loads(compared.stdout)
    result = agewise.Result.open(folder / "mine")
    assert said["finished"] == said["expected"] == 4
    assert said["rows"] == json.loads(json.dumps(result.table().to_dicts()))
    assert said["baseline"] == "max-pack"
    page = agewise.write_page(folder / "mine", folder / "page.html").read_bytes()
    assert page == (folder / "mine" / "report.html").read_bytes(), "the same page, same bytes"
    shown = agewise_command("show", "mine", cwd=folder)
    assert "alpha=0.25" in shown.stdout
    assert "round 12" in shown.stdout
    assert "\x1b" not in shown.stdout
    swept = agewise_command(
        "sweep", "tiny.toml", "--vary", "threshold.rate=1,4", "--vary",
        "data.partition=iid,shards", "--policy", "random", "--seeds", "1", "--out", "swept",
        "--engine", "inline", "--set", "run.rounds=2", "--json", cwd=folder,
    )  # fmt: skip
    assert swept.returncode == 0, swept.stderr
    assert json.loads(swept.stdout)["finished"] == 4
    based = agewise_command("show", "mine", "--baseline", "age-based", cwd=folder)
    assert "gain over age-based" in " ".join(based.stdout.split())
    assert "gain over max-pack" in " ".join(shown.stdout.split())
    one = agewise_command(
        "run", "tiny.toml", "--policy", "random", "--out", "one", "--workers", "1", "--quiet",
        "--set", "run.rounds=2", cwd=folder,
    )  # fmt: skip
    assert one.returncode == 0, one.stderr
    assert one.stderr == ""
    assert "Results: one" in one.stdout


def test_reproduce_says_which_claims_hold(scenario_file):
    run = agewise_command(
        "reproduce", "tiny.toml", "--seeds", "2", "--out", "r", "--engine", "inline",
        cwd=scenario_file.parent,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert "1. age-based (ABS) reaches a higher accuracy than max-pack: " in run.stdout
    assert "3. gradient diversity within a round explains the gain: " in run.stdout
    assert (scenario_file.parent / "r" / "accuracy.pdf").exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("scenario", "papr"), "there is no preset 'papr'; did you mean paper"),
        (("scenario", "gone.toml"), "gone.toml: cannot be read"),
        (("run", "tiny.toml", "--set", "learn.local_step=3"), "did you mean learn.local_steps?"),
        (("run", "tiny.toml", "--set", "nonsense"), "--set needs name=value"),
        (("compare", "tiny.toml", "--policy", "fedcs"), "unknown policy 'fedcs'"),
        (("compare", "tiny.toml", "--policy", "random:x"), "write parameters as name=value"),
        (("compare", "tiny.toml", "--engine", "slurm"), "unknown engine 'slurm'"),
        (("compare", "tiny.toml", "--seeds", "0"), "seeds must be a whole number"),
        (("show", "."), "not a results folder"),
        (("run", "tiny.toml", "--set", "timing={kind=none}"), "{kind=none} is not valid TOML"),
        (("sweep", "tiny.toml", "--vary", "run.rounds=1", "--vary", "run.rounds=2"), "given twice"),
        (("compare", "tiny.toml", "--baseline", "oort"), "'oort' is not one of the policies"),
        (("run", "tiny.toml", "--live", "--engine", "local"), "runs of this process"),
        (("gap", "tiny.toml", "--every", "13"), "every must be a whole number from 1 to 12"),
    ],
)
def test_mistakes_in_experiments_end_with_one_sentence(scenario_file, arguments, sentence):
    run = agewise_command(*arguments, cwd=scenario_file.parent)
    assert run.returncode == 2
    assert sentence in run.stderr
    assert run.stderr.count("\n") == 1
    assert not (scenario_file.parent / "runs").exists()


def test_changes_are_made_together_in_any_order(scenario_file):
    """A field of a kind may be set before the kind is, and a section as a table."""
    np.savez(scenario_file.parent / "gains.npz", gains=np.ones((12, 12, 5)))
    changes = (
        "data.partition.concentration=0.5", "data.partition=dirichlet",
        'channel={kind="trace", path="gains.npz"}', "timing.deadline_slots=2",
        "devices.computing.median_slots=1", "devices.computing.sigma=0", "timing=slots",
        "devices.computing=slots",
    )  # fmt: skip
    options = [part for change in changes for part in ("--set", change)]
    run = agewise_command("scenario", "tiny.toml", *options, cwd=scenario_file.parent)
    assert run.returncode == 0, run.stderr
    (scenario_file.parent / "changed.toml").write_text(run.stdout)
    assert agewise.Scenario.load(scenario_file.parent / "changed.toml") == tiny(
        **{
            "run.rounds": 12,
            "data.partition": {"kind": "dirichlet", "concentration": 0.5},
            "channel": {"kind": "trace", "path": "gains.npz"},
            "timing": {"kind": "slots", "deadline_slots": 2},
            "devices.computing": {"kind": "slots", "median_slots": 1, "sigma": 0},
        }
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1,2.5, x", ["1", "2.5", "x"]),
        ("[1, 2],[3, 4]", ["[1, 2]", "[3, 4]"]),
        ('{kind="a,b", x=[1, {y=2}]},iid', ['{kind="a,b", x=[1, {y=2}]}', "iid"]),
        ("'a, \"', \"b,'\"", ["'a, \"'", '"b,\'"']),
        ("", [""]),
    ],
)
def test_values_are_split_outside_of_brackets_and_quotes(text, values):
    assert split_values(text) == values


def test_sections_are_varied_by_name_or_as_tables(scenario_file):
    vary = 'data.partition=iid,{kind="shards", classes_per_ue=1}'
    assert variations_of([vary]) == {
        "data.partition": ["iid", {"kind": "shards", "classes_per_ue": 1}]
    }
    arguments = (
        "sweep", "tiny.toml", "--vary", vary, "--seeds", "1", "--set", "run.rounds=2", "--engine",
        "inline", "--out", "s",
    )  # fmt: skip
    run = agewise_command(*arguments, cwd=scenario_file.parent)
    assert run.returncode == 0, run.stderr
    assert "partition=shards" in run.stdout
    said = json.loads(agewise_command("show", "s", "--json", cwd=scenario_file.parent).stdout)
    assert [row["data.partition"] for row in said["rows"]][::2] == [
        "iid", "shards(classes_per_ue=1)",
    ]  # fmt: skip


def test_gap_says_what_policies_lose(scenario_file):
    arguments = (
        "gap", scenario_file.name, "--policy", "age-based", "--policy", "random", "--seeds", "2",
        "--every", "3", "--set", "run.rounds=6", "--vary", "threshold.rate=2,4",
        "--engine", "inline", "--out", "g",
    )  # fmt: skip
    run = agewise_command(*arguments, cwd=scenario_file.parent)
    assert run.returncode == 0, run.stderr
    assert "The optimum is proven in 16 of 16 rounds." in run.stdout
    assert "Regimes: threshold.rate." in run.stdout
    said = json.loads(agewise_command(*arguments, "--json", cwd=scenario_file.parent).stdout)
    assert len(said["rows"]) == 4
    for row in said["rows"]:
        assert f"{100 * row['loss_per_round']:.2f}" in run.stdout
    assert (scenario_file.parent / "g" / "gap.png").stat().st_size > 5000


def test_gap_begins_anew_and_logs(tmp_path):
    """--force and --log of the command are force and loggers of its twin."""
    options = {"policies": ["random"], "vary": {"threshold.rate": [2.0]}, "seeds": 1, "every": 3}
    how = {"out": tmp_path / "g", "engine": "inline", "quiet": True}
    agewise.gap(tiny(), **options, **how)
    other = tiny(**{"run.rounds": 6})
    with pytest.raises(ValueError, match="run.rounds"):
        agewise.gap(other, **options, **how)
    made = agewise.gap(other, **options, **how, force=True, loggers=["csv"])
    (log,) = (tmp_path / "g" / "logs" / "csv").iterdir()
    assert len(log.read_text().splitlines()) == 1 + 6
    assert len(made.result.entries) == 1
    with pytest.raises(TypeError, match="there is no option 'forced'; there are engine, workers"):
        agewise.gap(other, **options, **how, forced=True)


def test_traffic_says_what_python_says(scenario_file):
    arguments = ("traffic", scenario_file.name, "--policy", "max-pack", "--rounds", "2000")
    run = agewise_command(*arguments, cwd=scenario_file.parent)
    assert run.returncode == 0, run.stderr
    said = json.loads(agewise_command(*arguments, "--json", cwd=scenario_file.parent).stdout)
    made = agewise.schedule_traffic(agewise.Scenario.load(scenario_file), "max-pack", 2000)
    assert said["deliveries"] == made.deliveries.tolist()
    assert said["age_cost"] == pytest.approx(made.age_cost(0.5))
    assert f"{made.throughput:.3f}" in run.stdout
    assert said["age_bound"] == pytest.approx(made.age_bound)
    assert f"{100 * made.above_bound:.3f}" in run.stdout
    assert f"{made.age_cost(0.5):.2f}" in run.stdout


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("gap", "--policy", "agebased"), "unknown policy 'agebased'; did you mean age-based"),
        (("traffic", "--arrivals", "2"), "arrivals must be "),
        (("traffic", "--policy", "oort"), "reads losses, which only learning gives"),
        (("run", "--policy", "alternating:interior_share=1.5"), "must be in (0, 1"),
        (("run", "--policy", "power-of-choice:candidate_share=2.5"), "must be in (0, 1]"),
    ],
)  # fmt: skip
def test_mistakes_with_rivals_end_with_one_sentence(tmp_path, arguments, sentence):
    run = agewise_command(*arguments, cwd=tmp_path)
    assert run.returncode == 2
    assert run.stderr.startswith("agewise: ")
    assert run.stderr.count("\n") == 1
    assert sentence in run.stderr
    assert not list(tmp_path.rglob("*.parquet"))


#: What prints a result has the options of its tables.
TABLES = [agewise.Result.table, agewise.Result.to_target]
TWINS = {
    "scenario": [agewise.Scenario.with_],
    "policies": [agewise.policies.names, agewise.policies.describe],
    "run": [agewise.run, *TABLES],
    "compare": [agewise.compare, *TABLES],
    "sweep": [agewise.sweep, *TABLES],
    "show": [agewise.Result.open, *TABLES, agewise.tables.Table.to_latex],
    "report": [agewise.Result.open, agewise.write_page],
    "figure": [agewise.Result.open, agewise.draw_figure],
    "channel": [agewise.view_channel, agewise.draw_channel],
    "traffic": [agewise.schedule_traffic],
    "schedule": [agewise.schedule],
    "reproduce": [agewise.reproduce, agewise.reproduce_map, *TABLES],
    "gap": [agewise.gap],
    "race": [agewise.race],
    "explain": [agewise.explain],
    "cite": [],
}
#: What an option is called in Python, where that differs; None for what only a command needs.
IN_PYTHON = {
    "as_json": None,  # what the twin returns is printed, for eyes or for machines
    "as_latex": None,
    "source": "scenario",
    "changes": "scenario",  # scenario.with_(...)
    "folder": "path",
    "explain folder": "result",
    "live": "on_round",
    "rounds": "scenario",  # scenario.with_(**{"run.rounds": ...})
    "traffic rounds": "rounds",
    "channel rounds": "rounds",
    "policies name": "policy",
    "trace": "scenario",  # experiment.replay_scenario(folder)
    "scenario source": None,  # Scenario.preset or Scenario.load
    "scenario changes": "changes",
    "reproduce whole_map": None,  # one of two functions
    "traffic source": "channel",
    "traffic changes": "channel",
    "traffic quiet": "progress",
}
#: Options with another default, and why.
OTHER_DEFAULTS = {
    "source": "the command takes the paper's scenario, Python asks for one",
    "changes": "a scenario of Python is changed before",
    "out": "a command always has a folder; compare, sweep and run of Python keep results in memory",
    "trace": "a scenario of Python is made before",
    "live": "on_round is a function, and progress likewise",
    "traffic quiet": "likewise",
    "target": "a command shows it beside the table where it is asked for",
    "rounds": "a scenario of Python is changed before",
    "policies name": "without one all are listed",
    "sweep policies": "Python has what is varied behind them, so they must be given",
    "gap policies": "none stands for Python's default",
    "channel output": "a picture only where it is asked for",
    "figure output": "a notebook shows what is not written",
}
#: Parameters that a command has no option for.
PYTHON_ONLY = {
    "report": {"result"},  # Result.open gives it
    "figure": {"result"},
    "channel": {"view"},  # what view_channel returns
    "schedule": {"parameters"},  # stand behind the policy's name
    "traffic": {"rate_threshold"},  # goes with a channel that comes without a scenario
}


STUDIES = ("reproduce", "gap", "race")


def run_options(command):
    """The fields of `RunOptions` that a command takes, as parameters of its twin."""
    for field in dataclasses.fields(agewise.experiment.RunOptions):
        if not (field.name == "fail_fast" and command in STUDIES):
            default = None if field.name == "loggers" else field.default
            yield inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=default)


@pytest.mark.parametrize("command", app.registered_commands, ids=lambda command: command.name)
def test_every_command_and_its_twin_have_the_same_options(command):
    options = inspect.signature(command.callback).parameters
    names = {
        name: IN_PYTHON.get(f"{command.name} {name}", IN_PYTHON.get(name, name)) for name in options
    }
    twins = {}
    for twin in TWINS[command.name]:
        twins |= inspect.signature(twin).parameters
    if twins.pop("options", None):
        twins |= {option.name: option for option in run_options(command.name)}
    python_only = PYTHON_ONLY.get(command.name, set()) | {"self"}
    assert set(names.values()) - {None} == set(twins) - python_only
    for name, option in options.items():
        if names[name] and not {name, f"{command.name} {name}"} & OTHER_DEFAULTS.keys():
            default = twins[names[name]].default
            wanted = list(default) if isinstance(default, tuple) else default
            assert option.default == wanted, name


def test_an_edited_scenario_has_a_folder_of_its_own(scenario_file):
    """Editing the file never ends in a refusal; --force begins a folder that was named anew."""
    folder, quick = scenario_file.parent, ("-p", "random", "-s", "1", "-q", "--engine", "inline")
    for rounds in ("1", "2"):
        run = agewise_command("run", "tiny.toml", "--rounds", rounds, *quick, cwd=folder)
        assert run.returncode == 0, run.stderr
    assert len({path.name for path in (folder / "runs").glob("run-tiny-??????")}) == 2
    named = ("run", "tiny.toml", *quick, "-o", "mine", "--rounds")
    assert agewise_command(*named, "1", cwd=folder).returncode == 0
    refused = agewise_command(*named, "2", cwd=folder)
    assert refused.returncode == 2
    assert "run.rounds is 1 there and 2 here" in refused.stderr
    assert agewise_command(*named, "2", "--force", cwd=folder).returncode == 0
    assert agewise.Result.open(folder / "mine").scenario.run.rounds == 2
    assert len(list((folder / "mine" / "runs").iterdir())) == 1


def test_a_preset_as_it_is_keeps_its_plain_name():
    from agewise.cli._options import default_out

    paper = agewise.Scenario.preset("paper")
    assert default_out("compare", "paper", paper).name == "compare-paper"
    changed = default_out("compare", "paper", paper.with_(**{"run.rounds": 3})).name
    assert changed.startswith("compare-paper-")


def test_dry_run_says_runs_and_time_and_runs_nothing(scenario_file):
    arguments = ("sweep", "tiny.toml", "--vary", "threshold.rate=2,4", "-s", "3", "--dry-run")
    run = agewise_command(
        *arguments, "--engine", "inline", "--rounds", "5", cwd=scenario_file.parent
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith("12 runs; 60 rounds to go, about 1 s on one process. ")
    assert not (scenario_file.parent / "runs").exists()
    # gap: 6 policies, 16 regimes, 5 seeds
    for command, runs, rounds, place in (
        (["reproduce"], 120, None, "runs/reproduce-paper"),
        (["gap"], 480, 480 * 50, "runs/gap-paper"),
    ):
        run = agewise_command(*command, "--dry-run", cwd=scenario_file.parent)
        assert run.returncode == 0, run.stderr
        assert run.stdout.startswith(f"{runs} runs; ")
        assert rounds is None or f"; {rounds:,} rounds to go, about " in run.stdout
        assert run.stdout.endswith(f"Results would be in {place}.\n")
        assert not (scenario_file.parent / "runs").exists()


def test_the_optimum_is_a_part_of_the_time_that_is_expected():
    paper = agewise.Scenario.preset("paper").with_(**{"run.rounds": 50})
    plain = expected_seconds(paper)
    solved = expected_seconds(agewise.studies.with_optimum(paper, 10, 10**9))
    assert solved - plain == pytest.approx(5 * 0.2)
    limited = expected_seconds(agewise.studies.with_optimum(paper, 10, 1000))
    assert limited - plain == pytest.approx(5 * 0.001)
    optimal = agewise.policies.make_policy("age-based:packing=exact")
    assert expected_seconds(paper, optimal) - plain == pytest.approx(50 * 0.2)


def test_what_shells_offer_is_what_there_is():
    """Written down, or read from files, so that no shell waits for compiled modules."""
    assert completion.policy_summaries() == {
        name: agewise.policies.summary(name) for name in agewise.policies.names()
    }
    assert list(completion.preset_summaries()) == agewise.scenario.presets()
    assert all(line.endswith(".") for line in completion.preset_summaries().values())
    for words, known in (
        (completion.ENGINES, ("auto", *agewise.engines.NAMES)),
        (completion.LOGGERS, agewise.experiment.loggers.NAMES),
        (completion.AXES, agewise.statistics.AXES),
    ):
        assert words == tuple(known)


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("comp", ["compare"]),
        ("compare --dry", ["--dry-run"]),
        ("compare weak", ["weak-edge"]),
        ("compare paper -p max", ["max-pack", "max-weight"]),
        ("gap --log t", ["tensorboard", "trackio"]),
        ("figure runs/x tr", ["trade-off"]),
        ("show runs/x --over j", ["joules"]),
    ],
)  # fmt: skip
def test_a_shell_completes(line, offered, monkeypatch, capsys):
    """Through the command itself, as the script of `agewise --show-completion bash` calls it."""
    words = f"agewise {line}"
    monkeypatch.setenv("_AGEWISE_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(words.count(" ")))
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    assert capsys.readouterr().out.split() == offered


@pytest.mark.parametrize(("shell", "said"), [("bash", "complete -o"), ("zsh", "#compdef agewise")])
def test_a_shell_may_be_named(shell, said, monkeypatch, capsys):
    """A script for another shell than this one."""
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "")
    monkeypatch.setattr("sys.argv", ["agewise", "--show-completion", shell])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    assert said in capsys.readouterr().out


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_bash_takes_the_script_that_is_shown(tmp_path):
    """Sourced by bash, it completes a policy by calling the command again."""
    (tmp_path / "agewise").write_text(f'#!/bin/sh\nexec {sys.executable} -m agewise "$@"\n')
    (tmp_path / "agewise").chmod(0o755)
    script = (
        'eval "$(agewise --show-completion bash)"\n'
        "COMP_WORDS=(agewise run -p rou); COMP_CWORD=3\n"
        '_agewise_completion agewise && echo "${COMPREPLY[@]}"'
    )
    path = f"{tmp_path}:{os.environ['PATH']}"
    run = subprocess.run(
        [shutil.which("bash"), "-c", script], capture_output=True, text=True, check=False,
        env=os.environ | {"PATH": path},
    )  # fmt: skip
    assert run.stdout.split() == ["round-robin"], run.stderr


@pytest.mark.parametrize("command", [[], ["run"], ["trace"], ["trace", "show"]])
def test_flags_take_no_value(command):
    shown = agewise_command(*command, "--help").stdout
    assert "--help" in shown
    assert "<bool>" not in shown


def test_help_and_completion_load_nothing_heavy():
    """They answer in a blink: what takes most of a second to import is for work alone."""
    asked = os.environ | {"_AGEWISE_COMPLETE": "complete_bash", "COMP_CWORD": "3"}
    program = (
        "import atexit, sys\nfrom agewise.__main__ import main\n"
        "atexit.register(lambda: print(*sys.modules, file=sys.stderr))\nmain()"
    )
    for arguments, environment in (
        (["--help"], None),
        (["compare", "--help"], None),
        ([], asked | {"COMP_WORDS": "agewise compare -p "}),
    ):
        command = [sys.executable, "-c", program, *arguments]
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=True
        )  # fmt: skip
        assert done.stdout
        loaded = set(done.stderr.split())
        assert "agewise.cli" in loaded
        assert not {"matplotlib", "numba", "polars", "scipy"} & loaded, arguments


def test_tables_fit_80_columns_and_cut_no_word(tmp_path):
    policies = ["age-based", "age-based:ties=lowest-index", "max-pack",
                "max-pack:ties=lowest-index", "random", "round-robin"]  # fmt: skip
    scenario = tiny(**{"run.rounds": 41})
    result = agewise.compare(scenario, policies, 2, tmp_path / "r", engine="inline", quiet=True)
    said = agewise_command("show", "r", cwd=tmp_path).stdout
    who, what = said.split("Test accuracy over rounds")
    assert max(map(len, who.splitlines())) <= 80
    assert max(map(len, what.partition("Too few seeds")[0].splitlines()[1:])) <= 80
    assert "ties=lowest-index" in who
    assert "diversity" in who
    assert said.splitlines()[-1].startswith("Too few seeds for a verdict: 2. After 41 rounds"), (
        "the verdict is the last word"
    )
    assert (
        "Defaults: ties=random; age-based: alpha=0.5, form=paper, packing=greedy; max-pack:" in said
    )
    last = result.table().to_polars().sort("accuracy@41", descending=True)["policy"].to_list()
    table = what.partition("Too few seeds")[0].partition("─")[2]
    listed = [line.split()[0].rstrip(":") for line in table.splitlines() if line[1:2].isalpha()]
    shown = [name for name in listed if name in {key.name for key in result.policies}]
    assert shown == [name.partition(":")[0] for name in last]


def test_policies_name_says_all_about_one():
    run = agewise_command("policies", "age-based")
    assert "Stalest update per subchannel" in run.stdout
    assert "at most 1" in run.stdout
    assert "f_alpha(age)" in run.stdout
    assert json.loads(agewise_command("policies", "oort", "--json").stdout)["reads"] == ["losses"]


def test_the_map_over_costs():
    """It is planned on a scenario that knows them, and refuses what is about single runs."""
    planned = CliRunner().invoke(app, ["reproduce", "--map", "--over", "joules", "--dry-run"])
    assert planned.exit_code == 0
    assert "runs/map-physical-timed" in planned.stdout
    for options, said in (
        (["--map", "--target", "0.5"], "--at or --target goes with the paper's figure: leave"),
        (
            ["--map", "--explain", "--over", "channel-uses"],
            "--explain goes with the paper's figure",
        ),
        (["paper", "--map", "--over", "joules", "--dry-run"], "no joules with timing.kind = none"),
        (["paper", "--over", "joules", "--dry-run"], "no joules with timing.kind = none"),
    ):
        refused = CliRunner().invoke(app, ["reproduce", *options])
        assert said in str(refused.exception)


def test_commands_and_studies_use_the_same_folders(monkeypatch):
    """Without --out a command fills the folder that its twin fills."""

    class Stop(Exception):
        pass

    def stop(*given, **_):
        raise Stop(given)

    for command, name, place in (
        (["reproduce"], "reproduce", 2),
        (["reproduce", "--map"], "reproduce_map", 2),
        (["gap"], "gap", 4),
    ):
        twin = getattr(agewise, name)
        expected = inspect.signature(twin).parameters["out"].default
        monkeypatch.setattr(agewise, name, stop, raising=False)
        with pytest.raises(Stop) as stopped:
            app(command, standalone_mode=False)
        assert str(stopped.value.args[0][place]) == expected
