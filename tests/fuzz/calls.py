"""Command lines, and Python calls with values of wrong types."""

import contextlib
import math
import shutil
from decimal import Decimal
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np

import agewise
from agewise import statistics
from agewise.policies import make_policy
from agewise.scenario import Scenario
from tests.fuzz.mutate import NUMBERS, TEXTS, mutate_bytes
from tests.fuzz.oracle import Case, Target, command
from tests.scenarios import tiny

SCENARIO = tiny(**{"run.rounds": 2, "learn.local_steps": 2})
#: Texts that a shell can hand over, of which none names a device: these would be replaced.
WORDS = tuple(text for text in TEXTS if "\x00" not in text and text != "/dev/zero")
#: Numbers that no command works on for long.
SMALL = tuple(str(number) for number in NUMBERS if not 255 < abs(number) < 2**80)
#: Options that some commands have.
OPTIONS = (
    "--json", "--quiet", "--over seconds", "--over bits", "--at 1", "--target 0.5", "--seeds 2",
    "--policy oort", "--policy age-based:packing=exact", "--baseline random", "--rounds 1",
    "--set threshold.rate=1", "--set learn.model=mlp", "--set channel.fading=none", "--out new/x",
    "--engine inline", "--workers 1", "--log csv", "--fail-fast", "--live", "--seed 0",
    "--vary cell.ues=9,12", "--setting threshold.rate=4", "--width 3", "--ylim 0 1", "-o x.pdf",
)  # fmt: skip


def make_room(room):
    """What commands and calls name: a scenario, results, gains, ages and a trace."""
    room.mkdir()
    (room / "my.toml").write_text(SCENARIO.to_toml())
    agewise.compare(
        SCENARIO, ["age-based", "max-pack"], 2, room / "mine", engine="inline", quiet=True
    )
    rng = np.random.default_rng(0)
    np.savetxt(room / "gains.csv", rng.exponential(10.0, (6, 4)), delimiter=",")
    np.savetxt(room / "ages.csv", rng.integers(0, 9, 6), delimiter=",")
    np.savez(room / "trace.npz", gains=rng.exponential(10.0, (3, 12, 5)))


class Commands(Target):
    """Command lines: words left out, doubled, moved, changed, and others put in."""

    name = "command"
    share = 4
    #: What computes for long is rehearsed; that stands in front, where nothing takes it away.
    seeds = (
        "policies age-based", "policies --json", "scenario paper --set run.rounds=3", "scenario",
        "run --dry-run my.toml --policy age-based:alpha=0.5 --seeds 2 --out new --rounds 3",
        "compare --dry-run my.toml -p random -p max-pack -s 3 --baseline random --engine inline",
        "compare --dry-run paper --over channel-uses --at 10,20 --target 0.8 --workers 2 --json",
        "sweep --dry-run my.toml --vary threshold.rate=1,2 --vary data.partition=iid,shards",
        "reproduce --dry-run my.toml --seeds 3 --out new --explain --log csv --force",
        "reproduce --dry-run --map --seeds 3", "gap --dry-run my.toml --every 2 --work-limit 10",
        "show mine --json", "show mine --at 1,2 --target 0.5 --baseline max-pack",
        "report mine -o x.html", "figure mine ages -o x.svg --style slides",
        "figure mine gain -o x.csv --width page --ylim -2 4",
        "figure mine accuracy -o x.csv --policies age-based --over channel-uses",
        "channel my.toml --seed 3 --rounds 2 --json", "channel my.toml -o x.png --set cell.ues=9",
        "trace record my.toml --out x.npz --seed 3 --rounds 2", "trace record my.toml -o x.h5",
        "trace show trace.npz --rate-threshold 4 --rounds 2 --json",
        "traffic my.toml --policy max-pack --rounds 9 --arrivals 0.5 --seed 1 --quiet --json",
        "schedule gains.csv --ages ages.csv --power 2 --rate-threshold 1 --policy random --seed 2",
        "race --dry-run my.toml --budget 60 -p random -p max-pack --aggregation average --out new",
        "explain mine --policy age-based --baseline max-pack --quiet --json", "cite",
        "show mine --latex --label max-pack=MP",
    )  # fmt: skip

    def warm_up(self):
        self.given = self.room / "given"
        make_room(self.given)
        for seed in self.seeds:
            with contextlib.chdir(self.given):
                command(*seed.split())

    def make(self, chance):
        first, *words = chance.rng.choice(self.seeds).split()
        fixed = words[:1] if words[:1] == ["--dry-run"] else []
        others = [word for seed in self.seeds for word in seed.split()[1:] if word != "--dry-run"]
        pool = [*others, *WORDS, *(map(str, NUMBERS) if fixed else SMALL)]
        words = words[len(fixed) :]
        for rng in chance.changes():
            words = _mutate_words(words, rng, pool)

        def attempt(folder):
            shutil.copytree(self.given, folder / "a" / "b")
            with contextlib.chdir(folder / "a" / "b"):
                command(first, *fixed, *words)

        # Whatever is wrong, `command` sees that it is one sentence.
        return Case(attempt, ("",), shown=repr([first, *fixed, *words]))


def _mutate_words(words, rng, pool):
    """One change of a command line: a value, as a rule, or which words there are."""
    values = [at for at, word in enumerate(words) if not word.startswith("-")]
    if not values:
        return [*words, rng.choice(pool)]
    at, word = rng.choice(values), rng.choice(pool)
    anywhere = rng.randrange(len(words))
    match rng.randrange(8):
        case 0 | 1 | 2:
            return [*words[:at], word, *words[at + 1 :]]
        case 3 | 4:
            changed = mutate_bytes(words[at].encode("utf-8", "surrogateescape"), rng)
            text = changed.decode("utf-8", "surrogateescape").replace("\x00", "")
            return [*words[:at], text, *words[at + 1 :]]
        case 5:
            return words[:anywhere] + words[anywhere + 1 :]
        case 6:
            return [*words[:anywhere], word, *words[anywhere:]]
        case _:
            return [*words, *rng.choice(OPTIONS).split()]


class Odd:
    """An object of no kind that anybody expects."""

    def __repr__(self):
        return "Odd()"


def wrong_values():
    """Values that hardly belong anywhere, made anew, for some are used up."""
    return (
        None, True, -1, 0, 2.5, math.nan, 1j, 10**400, "", "x", "\ud800", "a\x00b", b"x", [],
        {}, (), set(), iter([]), [None], [[]], [1, "a"], {"x": 1}, {None: None}, Odd(), Odd, len,
        range(2), lambda *_: 0, (x for x in "ab"), slice(2), memoryview(b"ab"), Path("no"),
        Decimal("1.5"), Fraction(1, 3), type("Int", (int,), {})(3), np.int64(2), np.float32(1),
        np.array([]), np.zeros((2, 2)), np.array("a"), np.array([None]), np.ma.masked,
        np.datetime64("2020-01-01"),
    )  # fmt: skip


class Calls(Target):
    """Calls of what users call, with arguments of wrong types."""

    name = "call"

    def warm_up(self):
        self.given = self.room / "given"
        make_room(self.given)
        with contextlib.chdir(self.room):
            for call, usual in self._calls(self.given).values():
                call(**usual)

    def make(self, chance):
        calls = self._calls(self.given)
        which = chance.rng.choice(sorted(calls))
        call, usual = calls[which]
        wrong = {rng.choice(sorted(usual)): rng.choice(wrong_values()) for rng in chance.changes()}
        given = usual | wrong

        def attempt(folder):
            with contextlib.chdir(folder):
                try:
                    call(**given)
                except (TypeError, OverflowError) as error:
                    raise ValueError(str(error)) from error

        # Of a wrong type Python's own words do; what is wrong stands in the traceback.
        return Case(attempt, ("",), shown=f"{which}(**{given!r})")

    @staticmethod
    def _calls(folder):
        """Functions by name, with arguments that are valid in this folder."""
        one = {"scenario": SCENARIO, "policy": "max-pack"}
        many = {"scenario": SCENARIO, "policies": ["max-pack", "random"], "seeds": 1, "out": None}
        many |= {"baseline": "max-pack", "engine": "inline", "quiet": True, "force": False}
        many |= {"loggers": (), "fail_fast": True, "address": None}
        gains, ages = np.arange(1.0, 13.0).reshape(3, 4), np.array([1, 2, 3])
        cell = {"gains": gains, "power_budget": 2.0, "rate_threshold": 1.0}
        of_uplink = partial(agewise.Allocation.of, agewise.Uplink(*cell.values()))
        found = {
            "simulate": (agewise.simulate, one | {"seed": 1, "on_round": None}),
            "run": (agewise.run, one | {"seeds": 1, "out": None, "engine": "inline"}),
            "compare": (agewise.compare, many),
            "sweep": (agewise.sweep, many | {"vary": {"threshold.rate": [1.0, 2.0]}}),
            "schedule_traffic": (agewise.schedule_traffic, {
                "channel": SCENARIO, "policy": "random", "rounds": 9, "arrivals": 0.5, "seed": 1}),
            "schedule": (agewise.schedule, {
                "gains": gains, "ages": ages, "power": 2.0, "rate_threshold": 1.0,
                "policy": "max-pack", "seed": 0}),
            "Uplink": (agewise.Uplink, cell),
            "Allocation.of": (of_uplink, {"owner": [0, -1, 1, 1], "power": [1.0, 0.0, 0.5, 0.5]}),
            "AccessPoint": (agewise.AccessPoint, {
                "policy": make_policy("random"), "ues": 3, "streams": agewise.Streams(0),
                "margin": 0.0}),
            "Streams": (agewise.Streams, {"seed": 3}),
            "make_policy": (make_policy, {"policy": "age-based", "alpha": 0.5}),
            "Scenario.load": (Scenario.load, {"path": folder / "my.toml"}),
            "Scenario.preset": (Scenario.preset, {"name": "paper"}),
            "Scenario.read": (Scenario.read, {"values": SCENARIO.resolved()}),
            "Scenario.with_": (SCENARIO.with_, {
                "threshold.rate": 2.0, "data.partition": "iid", "timing": "none"}),
            "view_channel": (agewise.view_channel, {"scenario": SCENARIO, "seed": 1, "rounds": 2}),
            "view_trace": (agewise.view_trace, {
                "path": folder / "trace.npz", "rate_threshold": 1.0, "rounds": 2}),
            "record_trace": (agewise.record_trace, {
                "scenario": SCENARIO, "path": folder / "new.npz", "seed": 1, "rounds": 2}),
            "read_gains": (agewise.radio.read_gains, {"path": folder / "gains.csv"}),
            "f_alpha": (agewise.age.f_alpha, {"ages": ages, "alpha": 0.5, "form": "paper"}),
            "contrast": (statistics.contrast, {
                "first": [0.5, 0.6, 0.8], "second": [0.4, 0.6, 0.7]}),
            "estimate": (statistics.estimate, {"values": [0.5, 0.6, 0.8]}),
            "PolicyKey": (agewise.PolicyKey, {"name": "random", "parameters": {"alpha": 0.5}}),
            "race": (agewise.race, {
                "scenario": SCENARIO, "policies": ["random", "round-robin"], "out": "race",
                "aggregations": ["average"], "budget": 49, "engine": "inline", "quiet": True}),
            "reproduce": (partial(agewise.reproduce, SCENARIO), {
                "seeds": 1, "out": "paper", "explain": False, "over": "rounds",
                "engine": "inline", "quiet": True}),
            "gap": (partial(agewise.gap, SCENARIO), {
                "policies": ["random"], "vary": {"threshold.rate": [1.0]}, "seeds": 1, "out": "gap",
                "every": 1, "work_limit": 10, "engine": "inline", "quiet": True}),
            "Result.open": (agewise.Result.open, {"path": folder / "mine", "baseline": "max-pack"}),
        }  # fmt: skip
        if (folder / "mine").exists():
            result = agewise.Result.open(folder / "mine")
            view = agewise.view_channel(SCENARIO)
            found |= {
                "history": (result.history, {"policy": "max-pack", "seed": 1, "variation": {}}),
                "table": (result.table, {"over": "rounds", "at": [1.0]}),
                "draw_figure": (agewise.draw_figure, {
                    "result": result, "kind": "gain", "output": Path("new.csv"), "setting": {},
                    "baseline": "max-pack", "policies": ["age-based", "max-pack"],
                    "width": 3.5, "ylim": (0.0, 1.0), "style": "paper", "over": "rounds",
                    "labels": {"age-based": "ABS"}}),
                "explain": (agewise.explain, {
                    "result": folder / "mine", "policy": "age-based", "baseline": "max-pack",
                    "engine": "inline", "quiet": True}),
                "keep_channel_of": (agewise.keep_channel_of, {"result": folder / "mine"}),
                "write_page": (agewise.write_page, {
                    "result": folder / "mine", "output": Path("new.html"), "over": "rounds",
                    "at": [1.0], "target": 0.5}),
                "draw_channel": (agewise.draw_channel, {"view": view, "output": Path("x.svg")}),
            }  # fmt: skip
        return found
