"""The target of results folders: whatever is done to one, it is found, or it changes nothing."""

import io
import json
import os
import shutil

import polars as pl

import agewise
from agewise.experiment import Result
from agewise.files import NO_CHECKSUM, add_checksum
from agewise.records import _KEY
from tests.experiment.watch import files
from tests.fuzz.mutate import mutate_bytes, mutate_tree
from tests.fuzz.oracle import Case, Target, command, require
from tests.fuzz.targets import mutate_table
from tests.scenarios import tiny

SCENARIO = tiny(**{"run.rounds": 2, "learn.local_steps": 2})
POLICIES = ["age-based", "max-pack"]
SEEDS = 2
#: No result depends on these.
ASIDE = ("log.txt", ".lock", "report.html")
#: In what was planted, of which nothing may be shown or changed.
SECRET = b"a secret\n"


def experiment(out):
    return agewise.compare(SCENARIO, POLICIES, SEEDS, out, engine="inline", quiet=True)


class Folders(Target):
    """Results folders: bytes, keys, swapped and missing files, links, pipes and folders."""

    name = "folder"
    share = 4

    def __init__(self, room):
        super().__init__(room)
        self.whole = room / "whole"
        experiment(self.whole)
        (self.whole / "report.html").write_text("a page")
        self.files = files(self.whole)
        self.table = Result.open(self.whole).table().to_csv()
        self.names = sorted([*self.files, *ASIDE])

    def make(self, chance):
        changes = list(chance.changes())
        what_then = chance.rng.random()

        def attempt(folder):
            out, secret = folder / "out", folder / "secret"
            shutil.copytree(self.whole, out)
            secret.write_bytes(SECRET)
            forged = [self._damage(out, rng, secret) for rng in changes]
            try:
                self._look(out, any(forged), page=what_then < 0.1, show=what_then > 0.8)
                if what_then < 0.5:
                    self._resume(out, any(forged))
            finally:
                require(secret.read_bytes() == SECRET, "a file outside of the folder was changed")

        return Case(attempt, ("out",), shown="damage done by the changes of this case")

    def _look(self, out, forged, *, page, show):
        """Open the folder; what is taken as finished is what was written, to the byte."""
        result = Result.open(out)
        if not forged:
            for entry in result.entries:
                name = str(entry.file.relative_to(out))
                require(entry.file.read_bytes() == self.files[name], f"{name}: damage unnoticed")
        if result.entries:
            table = result.table().to_csv()
            if len(result.entries) == len(POLICIES) * SEEDS and not forged:
                require(table == self.table, "another table")
        if show:
            command("show", out)
            command("show", out, "--json")
        if page and result.entries:
            text = agewise.write_page(result, out.parent / "page.html").read_text("utf-8")
            require("<script>fuzz" not in text, "a text of the folder runs in the page")

    def _resume(self, out, forged):
        experiment(out)
        if not forged:
            for name, content in self.files.items():
                require(_content(out / name) == content, f"{name} differs after resuming")

    def _damage(self, out, rng, secret):
        """One act of damage; whether it was forged, so that checksums hold."""
        name = rng.choice(self.names)
        file = out / name
        match rng.randrange(10):
            case 0 | 1 | 2:
                return _change(file, lambda content: mutate_bytes(content, rng))
            case 3:
                json_file = out / "experiment.json"
                return _change(json_file, lambda content: _mutate_json(content, rng, sealed=False))
            case 4:
                json_file = out / "experiment.json"
                _change(json_file, lambda content: _mutate_json(content, rng, sealed=True))
                return True
            case 5:
                swap(file, out / rng.choice(self.names))
            case 6:
                clear(file)
                place(file, rng, secret)
            case 7:
                clear(file)
            case 8:
                run = out / rng.choice([name for name in self.files if name.startswith("runs/")])
                _change(run, lambda content: _forge(content, rng))
                return True
            case _:
                odd = rng.choice(("x.parquet", "\x1b[2J.parquet", "é[1]*.parquet", ".x.tmp", "x"))
                folder = rng.choice((out, out / "runs"))
                if folder.is_dir():
                    clear(folder / odd)
                    place(folder / odd, rng, secret)
        return False


def _content(file):
    """The content of a plain file that is not too large to read; ``None`` of anything else."""
    plain = file.is_file() and not file.is_symlink() and file.stat().st_size < 2**24
    return file.read_bytes() if plain else None


def _change(file, change):
    content = _content(file)
    if content is not None:
        file.write_bytes(change(content))
    return False


def _mutate_json(content, rng, *, sealed):
    try:
        tree = mutate_tree(json.loads(content), rng)
    except ValueError:  # damaged before
        return content
    if sealed and isinstance(tree, dict):
        tree["checksum"] = NO_CHECKSUM
        return add_checksum((json.dumps(tree, indent=2) + "\n").encode())
    return (json.dumps(tree, indent=2) + "\n").encode()


def _forge(content, rng):
    """A run's file with other content and a checksum that holds."""
    if rng.random() < 0.5:
        start = content.rfind(b'"checksum": "')
        if start < 0:
            return content
        start += len(b'"checksum": "')
        empty = content[:start] + NO_CHECKSUM.encode() + content[start + 64 :]
        at = rng.randrange(len(empty))
        damaged = empty[:at] + rng.randbytes(1) + empty[at + 1 :]
        try:
            return add_checksum(damaged)
        except ValueError:
            return damaged
    try:
        described = json.loads(pl.read_parquet_metadata(content)[_KEY])
        frame = pl.read_parquet(content)
    except BaseException:  # damaged before; Polars panics beside exceptions
        return content
    if rng.random() < 0.5:
        described = mutate_tree(described, rng)
    else:
        frame = mutate_table(frame, rng)
    if isinstance(described, dict):
        described["checksum"] = NO_CHECKSUM
    return _sealed_parquet(frame, described)


def _sealed_parquet(frame, described):
    buffer = io.BytesIO()
    frame.write_parquet(buffer, compression="zstd", metadata={_KEY: json.dumps(described)})
    try:
        return add_checksum(buffer.getvalue())
    except ValueError:
        return buffer.getvalue()


def clear(file):
    if file.is_dir() and not file.is_symlink():
        shutil.rmtree(file)
    else:
        file.unlink(missing_ok=True)


def swap(first, second):
    if first == second or not (first.exists() and second.exists()):
        return
    aside = first.with_name("aside")
    first.rename(aside)
    second.rename(first)
    aside.rename(second)


def place(file, rng, secret):
    """Something that is no plain file, or far too large a one, in the place of a file."""
    match rng.randrange(8):
        case 0 | 1:
            file.symlink_to(rng.choice((secret, secret.parent / "new", "/dev/zero", file)))
        case 2:
            file.symlink_to(rng.choice(("experiment.json", "..", "runs", "log.txt")))
        case 3 | 4:
            os.mkfifo(file)
        case 5:
            file.mkdir()
        case 6:
            file.mkdir()
            (file / "inside").write_bytes(SECRET)
        case _:
            with file.open("wb") as made:
                made.truncate(2**40)
