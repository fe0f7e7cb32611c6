"""A page that is meant to be sent tells nothing of where its maker keeps files."""

import json
import os
import shlex
import sys

import numpy as np

import agewise
from agewise.cli import main
from agewise.tables._words import command_text
from tests.scenarios import tiny


def test_the_recorded_command_can_be_given_to_a_shell(tmp_path, monkeypatch):
    """Names with spaces and quotes were recorded as they were, and fell apart."""
    out = tmp_path / "my 'own' $results; x"
    (tmp_path / "a b.toml").write_text(tiny(**{"run.rounds": 2}).to_toml())
    words = ["run", str(tmp_path / "a b.toml"), "--engine", "inline", "--out", str(out)]
    monkeypatch.setattr(sys, "argv", ["/usr/bin/agewise", *words])
    try:
        main()
    except SystemExit as end:
        assert not end.code  # noqa: PT017
    recorded = json.loads((out / "experiment.json").read_text())["command"]
    assert shlex.split(recorded) == ["agewise", *words]


def test_commands_without_folders():
    said = command_text(
        "agewise sweep '/home/my name/a b.toml' --vary 'data.dataset.path=/d/x.npz,/d/y z.npz' "
        '--set \'data.dataset={kind="npz", path="/home/me/d.npz"}\' --out=/tmp/out --seeds 3'
    )
    assert shlex.split(said) == [
        "agewise", "sweep", "a b.toml", "--vary", "data.dataset.path=x.npz,y z.npz",
        "--set", 'data.dataset={kind="npz", path="d.npz"}', "--out=out", "--seeds", "3",
    ]  # fmt: skip
    plain = "agewise compare paper --out runs/x --set learn.step_size=0.1"
    assert command_text(plain) == plain
    assert command_text("it's no shell's") == "it's no shell's"


def test_no_folder_of_the_maker_is_on_the_page(tmp_path, monkeypatch):
    """Paths in the scenario, its variations, the command, damaged files and failed runs."""
    home = tmp_path / "home" / 'Jane <Doe> & "co" é'
    hideaway = home / "hideaway"
    hideaway.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    rng = np.random.default_rng(0)
    for name in ("one.npz", "two.npz"):
        np.savez(hideaway / name, gains=rng.exponential(30.0, (3, 12, 5)))
    scenario = tiny(
        **{"run.rounds": 3, "channel": {"kind": "trace", "path": str(hideaway / "one.npz")}}
    )
    out = hideaway / "results"
    paths = [str(hideaway / name) for name in ("one.npz", "two.npz", "gone.npz")]
    words = ["agewise", "sweep", str(hideaway / "a.toml"), "--out", str(out)]
    monkeypatch.setattr(sys, "argv", words)
    result = agewise.sweep(
        scenario, ["age-based", "max-pack"], {"channel.path": paths}, 2, out, engine="inline",
        quiet=True,
    )  # fmt: skip
    assert len(result.failed) == 4
    next(iter((out / "runs").glob("*.parquet"))).write_bytes(b"damaged")
    page = agewise.write_page(out).read_text()
    for part in ("Jane", "hideaway", str(tmp_path), tmp_path.name):
        assert part not in page
    for part in ("one.npz", "two.npz", "gone.npz: ", "agewise sweep a.toml --out results"):
        assert part in page
    assert os.sep + "results/runs" not in page
    assert "results/runs/" in page
