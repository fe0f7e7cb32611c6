"""What is attacked: each target makes cases from valid seeds that it makes itself."""

import gzip
import io
import itertools
import random

import numpy as np
import polars as pl

import agewise
from agewise.cli._options import scenario_of, variations_of
from agewise.data.files import IdxFolder, NpzFile, Table
from agewise.policies import make_policy
from agewise.scenario import Scenario
from tests.fuzz.mutate import (
    NUMBERS,
    TEXTS,
    as_toml,
    mutate_archive,
    mutate_array,
    mutate_bytes,
    mutate_tree,
    npz_bytes,
    odd_value,
)
from tests.fuzz.oracle import Case, CleanExit, Target, command, json_of, require
from tests.scenarios import TINY

SECTIONS = ("cell", "channel", "threshold", "devices", "timing", "data", "learn", "run")
VARIANTS = (
    {"timing": {"kind": "slots", "deadline_slots": 2},
     "devices.computing": {"kind": "slots", "median_slots": 0.2, "sigma": 0.5}},
    {"run.optimum": {"kind": "sampled", "every": 1, "work_limit": 1000}, "run.objective_every": 1},
    {"devices.samples_sigma": 1.0, "data.partition": "iid"},
    {"data.partition": {"kind": "dirichlet", "concentration": 0.5}, "channel.fading": "none"},
    {"data.task": {"kind": "pair", "classes": [3, 8]}},
    {"learn.penalty": {"kind": "l1", "weight": 0.1}},
    {"data.task": "parity", "learn.model.loss": "logistic", "learn.batch_size": 3},
    {"learn.model": {"kind": "k-means", "clusters": 4}},
    {"threshold": {"kind": "payload", "payload_bits": 1e4, "deadline_s": 0.1},
     "cell.subchannel_bandwidth_hz": 1e5},
)  # fmt: skip


class ScenarioFiles(Target):
    """Scenario files: loaded, written again, and simulated for a round where that is small."""

    name = "scenario"

    def __init__(self, room):
        small = [TINY, *(_possible(TINY, changes) for changes in VARIANTS)]
        presets = [Scenario.preset(name) for name in agewise.scenario.presets()]
        self.seeds = [scenario for scenario in [*small, *presets] if scenario is not None]
        super().__init__(room)

    def warm_up(self):
        for scenario in self.seeds:
            if scenario.data.dataset.kind == "synthetic":
                simulate_briefly(scenario)

    def make(self, chance):
        scenario = chance.rng.choice(self.seeds)
        if chance.rng.random() < 0.6:
            tree = scenario.resolved()
            for rng in chance.changes():
                tree = mutate_tree(tree, rng)
            content = as_toml(tree).encode("utf-8", "surrogatepass")
        else:
            content = scenario.to_toml().encode()
            for rng in chance.changes():
                content = mutate_bytes(content, rng)
        return Case(self._attempt, ("my.toml", *SECTIONS), {"my.toml": content})

    def _attempt(self, folder):
        try:
            scenario = Scenario.load(folder / "my.toml")
        except ValueError as error:
            require("my.toml" in str(error), f"the file is not named: {error}")
            raise
        (folder / "again.toml").write_text(scenario.to_toml(), encoding="utf-8")
        require(Scenario.load(folder / "again.toml") == scenario, "written and read, it differs")
        if scenario.data.dataset.kind == "synthetic":
            simulate_briefly(scenario)


def simulate_briefly(scenario):
    """A round of the scenario, for which only what takes time is made small."""
    short = {"run.rounds": 1, "learn.local_steps": min(scenario.learn.local_steps, 10)}
    if scenario.learn.batch_size > 100:
        short["learn.batch_size"] = 1
    if scenario.run.optimum.kind != "never":
        short["run.optimum"] = "never"
    history = agewise.simulate(scenario.with_(**short), "age-based")
    require(len(history) == 1, "not one round")
    require(np.isfinite(history.power).all(), "powers are not finite")


def _possible(scenario, changes):
    try:
        return scenario.with_(**changes)
    except ValueError:
        return None


def cell(rng, ues=6, subchannels=4):
    """Gains and ages of a small cell."""
    numbers = np.random.default_rng(rng.randrange(2**32))
    return 10 * numbers.exponential(size=(ues, subchannels)), numbers.integers(0, 9, size=ues)


def schedule_with_every_policy():
    gains, ages = cell(random.Random(0))  # noqa: S311
    read_only = gains.copy()
    read_only.flags.writeable = False  # of another type to the compiler, as ages with a point are
    for name in agewise.policies.names():
        for given, old in ((gains, ages), (read_only, ages), (gains, ages.astype(float))):
            agewise.schedule(given, old, power=2.0, rate_threshold=1.0, policy=name)


def proven(allocation, gains, power, threshold):
    """The allocation is one of this cell, and keeps every constraint."""
    uplink = agewise.Uplink(np.asarray(gains, dtype=np.float64), power, threshold)
    allocation.validate(uplink)


class RoundFiles(Target):
    """Gains and ages in files, for ``agewise schedule``."""

    name = "round-files"

    def warm_up(self):
        schedule_with_every_policy()

    def make(self, chance):
        gains, ages = cell(chance.rng)
        which, kind = chance.rng.choice(("gains", "ages")), chance.rng.choice(("csv", "npz"))
        names = {"gains": f"gains.{kind}", "ages": f"ages.{kind}"}
        contents = {
            "gains": self._file(gains, "gains", kind),
            "ages": self._file(ages, "ages", kind),
        }
        array = {"gains": gains, "ages": ages}[which]
        structural = chance.rng.random() < 0.5
        for rng in chance.changes():
            if structural and kind == "npz" and rng.random() < 0.5:
                array = mutate_array(array, rng, self.trap)
                contents[which] = npz_bytes({which: array})
            elif structural and kind == "npz":
                contents[which] = mutate_archive(contents[which], rng)
            elif structural:
                contents[which] = mutate_cells(contents[which], rng)
            else:
                contents[which] = mutate_bytes(contents[which], rng)
        files = {names[part]: contents[part] for part in contents}
        policy = chance.rng.choice(agewise.policies.names())

        def attempt(folder):
            called = ("schedule", folder / names["gains"], f"--ages={folder / names['ages']}")
            said = command(
                *called, "--power=2", "--rate-threshold=1", f"--policy={policy}", "--json"
            )
            answer = json_of(said)
            read = agewise.radio.read_gains(folder / names["gains"])
            uplink = agewise.Uplink(read, 2.0, 1.0)
            agewise.Allocation.of(uplink, answer["owner"], answer["power"]).validate(uplink)

        return Case(attempt, ("gains", "ages"), files, f"policy {policy}")

    @staticmethod
    def _file(array, name, kind):
        if kind == "npz":
            return npz_bytes({name: array})
        return "\n".join(",".join(map(str, np.atleast_1d(row))) for row in array).encode()


def mutate_cells(content, rng, between=","):
    """One change of a CSV: a cell, a row, or a column."""
    rows = [line.split(between) for line in content.decode("utf-8", "replace").split("\n")]
    row = rng.choice(rows)
    at = rng.randrange(len(row))
    match rng.randrange(5):
        case 0 | 1:
            row[at] = str(odd_value(rng))
        case 2:
            row.pop(at)
        case 3:
            rows.insert(rng.randrange(len(rows) + 1), row)
        case _:
            row.insert(at, rng.choice(("", "name", '"', *map(str, NUMBERS))))
    return "\n".join(between.join(row) for row in rows).encode("utf-8", "surrogatepass")


class RoundArrays(Target):
    """Gains, ages and options for `agewise.schedule`."""

    name = "round-arrays"

    def warm_up(self):
        schedule_with_every_policy()

    def make(self, chance):
        given = dict(zip(("gains", "ages"), cell(chance.rng), strict=True))
        given |= {"power": 2.0, "rate_threshold": 1.0, "seed": 0}
        each = {name: np.full(len(given["ages"]), given[name]) for name in list(given)[2:4]}
        given["policy"] = chance.rng.choice(agewise.policies.names())
        for rng in chance.changes():
            name = rng.choice(("gains", "gains", "ages", "ages", "power", "rate_threshold", "seed"))
            if name in ("power", "rate_threshold") and rng.random() < 0.5:
                given[name] = self._other_array(each[name], rng)
            elif name in ("gains", "ages"):
                given[name] = self._other_array(given[name], rng)
            else:
                given[name] = odd_value(rng)

        def attempt(_folder):
            allocation = agewise.schedule(**given)
            allocation.validate()
            proven(allocation, given["gains"], given["power"], given["rate_threshold"])

        return Case(attempt, tuple(given), shown=f"agewise.schedule(**{given!r})")

    def _other_array(self, array, rng):
        match rng.randrange(8):
            case 0:
                return odd_value(rng)
            case 1:
                return np.ma.masked_array(array, mask=rng.random() < 0.5)
            case 2:
                return np.asfortranarray(array)
            case 3:
                return np.atleast_1d(array)[..., ::-1]
            case 4:
                many = np.asarray(array)
                return np.broadcast_to(many, (rng.choice((1, 2)), *many.shape))[0]
            case _:
                return mutate_array(array, rng, self.trap)


def samples(rng, count=24):
    """Features and labels of a small problem: three classes in four dimensions."""
    numbers = np.random.default_rng(rng.randrange(2**32))
    return numbers.integers(0, 255, (count, 4)), np.arange(count) % 3


class DataSets(Target):
    """Data sets that a user brings: NPZ, CSV, Parquet, IDX, gzipped or not."""

    name = "data"

    def make(self, chance):
        kind = chance.rng.choice(("npz", "csv", "parquet", "idx", "idx.gz"))
        made = getattr(self, f"_{kind.split('.')[0]}")(chance, kind)
        victim = chance.rng.choice(sorted(made))
        if chance.rng.random() < 0.6:
            for rng in chance.changes():
                made[victim] = mutate_inside(made[victim], rng)
        return Case(self._attempt(kind), ("set",), {f"set/{name}": x for name, x in made.items()})

    def _npz(self, chance, _kind):
        x, y = samples(chance.rng)
        arrays = {"x_train": x, "y_train": y, "x_test": x[:6], "y_test": y[:6]}
        if chance.rng.random() < 0.5:
            for rng in chance.changes():
                name = rng.choice(sorted(arrays))
                arrays[name] = mutate_array(arrays[name], rng, self.trap)
        content = npz_bytes(arrays)
        if chance.rng.random() < 0.3:
            for rng in chance.changes():
                content = mutate_archive(content, rng)
        return {"set.npz": content}

    def _csv(self, chance, _kind):
        x, y = samples(chance.rng)
        rows = (",".join(map(str, [*row, label])) for row, label in zip(x, y, strict=True))
        lines = ["a,b,c,d,label", *rows]
        content = "\n".join(lines).encode()
        if chance.rng.random() < 0.5:
            for rng in chance.changes():
                content = mutate_cells(content, rng)
        return {"set.csv": content}

    def _parquet(self, chance, _kind):
        x, y = samples(chance.rng)
        table = pl.DataFrame({"a": x[:, 0], "b": x[:, 1].astype(float), "label": y})
        if chance.rng.random() < 0.5:
            for rng in chance.changes():
                table = mutate_table(table, rng)
        return {"set.parquet": parquet_bytes(table)}

    def _idx(self, chance, kind):
        x, y = samples(chance.rng)
        zipped = kind.endswith("gz")
        parts = {
            "train-images-idx3-ubyte": x.reshape(-1, 2, 2), "train-labels-idx1-ubyte": y,
            "t10k-images-idx3-ubyte": x[:6].reshape(-1, 2, 2), "t10k-labels-idx1-ubyte": y[:6],
        }  # fmt: skip
        contents = {name: idx_bytes(array) for name, array in parts.items()}
        victim = chance.rng.choice(sorted(contents))
        if zipped and chance.rng.random() < 0.5:  # damage inside of sound gzip
            for rng in chance.changes():
                contents[victim] = mutate_bytes(contents[victim], rng)
        if not zipped:
            return contents
        return {f"{name}.gz": gzip.compress(x, mtime=0) for name, x in contents.items()}

    @staticmethod
    def _attempt(kind):
        def attempt(folder):
            if kind == "npz":
                source = NpzFile(path=str(folder / "set" / "set.npz"))
            elif kind.startswith("idx"):
                source = IdxFolder(path=str(folder / "set"))
            else:
                path = str(folder / "set" / f"set.{kind}")
                source = Table(path=path, label_column="label", test_fraction=0.25)
            read = source.load()
            for part in (read.train, read.test):
                values = part.values()
                require(values.shape == (len(part), read.train.feature_count), "odd shape")
                require(np.isfinite(values).all(), "features are not finite")
                require(((part.labels >= 0) & (part.labels < read.class_count)).all(), "odd labels")

        return attempt


def idx_bytes(array):
    header = bytes([0, 0, 8, array.ndim]) + b"".join(n.to_bytes(4, "big") for n in array.shape)
    return header + array.astype(np.uint8).tobytes()


def parquet_bytes(table):
    buffer = io.BytesIO()
    table.write_parquet(buffer, compression="uncompressed")
    return buffer.getvalue()


def mutate_table(table, rng):
    """One change of a data frame: a column's values, type, name or length."""
    try:
        changed = _mutated_table(table, rng)
    except (
        pl.exceptions.PolarsError, pl.exceptions.PanicException, IndexError, OverflowError,
        TypeError, ValueError,
    ):  # fmt: skip
        return table  # Polars cannot make such a one
    return table if pl.Object in changed.dtypes else changed  # nor write such a one


def _mutated_table(table, rng):
    name = rng.choice(table.columns)
    column = table[name]
    match rng.randrange(6):
        case 0:
            kinds = (pl.String, pl.Float32, pl.UInt8, pl.Boolean, pl.Date, pl.Binary)
            return table.with_columns(column.cast(rng.choice(kinds), strict=False))
        case 1:
            values = column.to_list()
            if values:
                values[rng.randrange(len(values))] = rng.choice((None, *NUMBERS, *TEXTS))
            changed = pl.Series(name, values, dtype=column.dtype, strict=False)
            return table.with_columns(changed)
        case 2:
            return table.drop(name)
        case 3:
            return table.rename({name: rng.choice(("x", "", "gain ", "é"))})
        case 4:
            return table.head(rng.randrange(table.height + 1))
        case _:
            nested = pl.Series(name, [[value] for value in column.to_list()], strict=False)
            return table.with_columns(nested)


def mutate_inside(content, rng):
    """One change of bytes, or of a member if it is an archive."""
    archive = content[:2] == b"PK" and rng.random() < 0.5
    return mutate_archive(content, rng) if archive else mutate_bytes(content, rng)


class Overrides(Target):
    """Texts of ``--set`` and ``--vary``."""

    name = "overrides"
    seeds = (
        "learn.local_steps=20", "data.partition=iid", "threshold.rate=1,2,4", "run.age_alpha=0.5",
        'timing={kind="none"}', 'channel.link={kind="edge-snr", edge_snr_db=3.0}',
        'data.dataset={kind="npz", path="a.npz"}', "channel.path_loss.exponent=2.5",
        "data.task={kind='pair', classes=[1,2]}", "run.optimum=never", "cell.ues=50:200:50",
        "data.partition=iid,{kind='shards', classes_per_ue=1}", "threshold.rate=1:4:0.5",
        "cell.subchannel_bandwidth_hz=none", "learn.model.loss=logistic",
    )  # fmt: skip

    def make(self, chance):
        count = chance.rng.choice((1, 1, 2))
        texts = [chance.rng.choice(self.seeds) for _ in range(count)]
        for rng in chance.changes():
            at = rng.randrange(count)
            texts[at] = mutate_text(texts[at], rng, self.seeds)
        option = chance.rng.choice(("--set", "--vary"))

        def attempt(_folder):
            try:
                self._apply(option, texts)
            except ValueError as error:  # as the command line tells it
                raise CleanExit(" ".join(str(error).split())) from error

        shown = " ".join(f"{option} {text!r}" for text in texts)
        # Whatever is wrong is told by the option or by the name of a field.
        return Case(attempt, (option, "there is no", "nested", *SECTIONS), shown=shown)

    @staticmethod
    def _apply(option, texts):
        if option == "--set":
            changed = scenario_of(TINY, texts)
            require(Scenario.read(changed.resolved()) == changed, "not read back")
            return
        varied = variations_of(texts)
        for values in itertools.islice(itertools.product(*varied.values()), 100):
            TINY.with_(**dict(zip(varied, values, strict=True)))


def mutate_text(text, rng, others):
    """One change of a text: characters, or one of its words."""
    match rng.randrange(4):
        case 0:
            changed = mutate_bytes(text.encode("utf-8", "surrogatepass"), rng)
            return changed.decode("utf-8", "replace")
        case 1:
            name, _, _ = text.partition("=")
            return f"{name}={odd_value(rng)}"
        case 2:
            _, _, value = text.partition("=")
            return f"{rng.choice(others).partition('=')[0]}={value}"
        case _:
            name, _, value = text.partition("=")
            return f"{rng.choice(TEXTS)}={value}" if rng.random() < 0.5 else f"{name}.{text}"


class PolicyTexts(Target):
    """Policies as texts, ``name:parameter=value``; those that are valid schedule a cell."""

    name = "policy"

    def warm_up(self):
        schedule_with_every_policy()

    def make(self, chance):
        name = chance.rng.choice(agewise.policies.names())
        policy = make_policy(name)
        written = [f"{key}={value}" for key, value in policy.parameters.items()]
        text = f"{name}:{','.join(written)}"
        for rng in chance.changes():
            if written and rng.random() < 0.6:
                at = rng.randrange(len(written))
                value = rng.choice((*map(str, NUMBERS), *TEXTS, "3", "0.1"))
                written[at] = f"{written[at].partition('=')[0]}={value}"
                text = f"{name}:{','.join(written)}"
            else:
                changed = mutate_bytes(text.encode("utf-8", "surrogatepass"), rng)
                text = changed.decode("utf-8", "replace")
        gains, ages = cell(chance.rng)

        def attempt(_folder):
            made = make_policy(text)
            allocation = agewise.schedule(gains, ages, power=2.0, rate_threshold=1.0, policy=made)
            proven(allocation, gains, 2.0, 1.0)

        known = (*policy.parameters, "policy", "no such file", "File name")
        return Case(attempt, known, shown=f"make_policy({text!r}); {gains.tolist()}, {ages}")
