"""Folders from strangers: nothing outside is read or written, nothing hangs, nothing steers."""

import json
import os
import shutil
import signal
import socket
import sys

import polars as pl
import pytest

import agewise
from agewise.checks import visible
from agewise.cli import main
from agewise.experiment import FolderError, Result
from agewise.files import parse_json
from agewise.records import History
from tests.experiment.watch import Counting, everything, rewrite, runs
from tests.scenarios import tiny

SCENARIO = tiny(**{"run.rounds": 3})
POLICIES = ["age-based", "max-pack"]


def compare(out, engine="inline"):
    return agewise.compare(SCENARIO, POLICIES, 2, out, engine=engine, quiet=True)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("strangers") / "whole"
    compare(folder)
    return folder


@pytest.fixture
def out(whole, tmp_path):
    return shutil.copytree(whole, tmp_path / "out")


@pytest.fixture(autouse=True)
def _no_hang():
    """What opens a pipe waits for ever: then the test fails."""

    def late(*_):
        pytest.fail("it hangs")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def command(monkeypatch, capsys, *arguments):
    """(exit code, standard output, standard error) of the command line."""
    monkeypatch.setattr(sys, "argv", ["agewise", *map(str, arguments)])
    code = 0
    try:
        main()
    except SystemExit as end:
        code = end.code or 0
    return code, *capsys.readouterr()


@pytest.mark.parametrize("dangling", [False, True])
@pytest.mark.parametrize("name", [".lock", "log.txt", "experiment.json", "scenario.toml"])
def test_links_are_not_written_through(name, dangling, out, tmp_path):
    """A lock that was a link emptied what it pointed to, a log was written into it."""
    victim = tmp_path / "victim"
    if not dangling:  # even if its content would do
        victim.write_bytes((out / name).read_bytes() or b"precious")
    before = victim.read_bytes() if victim.exists() else None
    (out / name).unlink()
    (out / name).symlink_to(victim)
    with pytest.raises(FolderError, match=rf"{name}: .*a link, not a file"):
        compare(out)
    assert (victim.read_bytes() if victim.exists() else None) == before
    if name in (".lock", "log.txt"):
        assert len(Result.open(out).entries) == 4  # looking needs neither


def test_a_log_that_is_another_file_by_a_second_name(out, tmp_path):
    (tmp_path / "victim").write_text("precious")
    (out / "log.txt").unlink()
    (out / "log.txt").hardlink_to(tmp_path / "victim")
    with pytest.raises(FolderError, match="log.txt: a second name of another file"):
        compare(out)
    assert (tmp_path / "victim").read_text() == "precious"


def test_a_folder_of_runs_elsewhere_is_not_followed(out, tmp_path):
    shutil.move(out / "runs", tmp_path / "elsewhere")
    (out / "runs").symlink_to(tmp_path / "elsewhere")
    before = everything(tmp_path / "elsewhere")
    for attempt in (compare, Result.open):
        with pytest.raises(FolderError, match="runs: a link, which is not followed"):
            attempt(out)
    assert everything(tmp_path / "elsewhere") == before


def test_a_page_is_written_in_the_place_of_a_link(out, tmp_path):
    (tmp_path / "victim").write_text("precious")
    (out / "report.html").symlink_to(tmp_path / "victim")
    agewise.write_page(out)
    assert (tmp_path / "victim").read_text() == "precious"
    assert (out / "report.html").read_text().startswith("<!doctype html>")


def make_pipe(path):
    os.mkfifo(path)


def make_socket(path):
    with socket.socket(socket.AF_UNIX) as one:
        here = os.getcwd()  # noqa: PTH109
        os.chdir(path.parent)  # the names of sockets are short
        try:
            one.bind(path.name[-20:])
            os.rename(path.name[-20:], path.name)  # noqa: PTH104
        finally:
            os.chdir(here)


def make_sparse(path):
    with path.open("wb") as file:
        file.truncate(2**40)


ODD = {
    "a pipe": make_pipe,
    "a device": lambda path: path.symlink_to("/dev/zero"),
    "a link": lambda path: path.symlink_to("/etc/hostname"),
    "a socket": make_socket,
    "a folder": lambda path: path.mkdir(),
    "more bytes than the": make_sparse,
}


@pytest.mark.parametrize("kind", ODD)
def test_what_is_no_plain_file_is_named_and_never_opened(kind, out, monkeypatch, capsys):
    """A pipe in the place of a run made show hang."""
    name = min(runs(out))
    (out / "runs" / name).unlink()
    ODD[kind](out / "runs" / name)
    said = "a link" if kind == "a device" else kind
    result = Result.open(out)
    assert len(result.entries) == 3
    assert [f"{name}: not read: it is" in each and said in each for each in result.damaged] == [
        True
    ]
    code, shown, _ = command(monkeypatch, capsys, "show", out)
    assert code == 0
    assert f"{name}: not read: it is" in shown.replace("\n", "")
    if kind in ("a pipe", "a device", "a socket"):  # only files are replaced
        with pytest.raises(ValueError, match=f"{kind}, not a file, and is not written to"):
            compare(out, engine=Counting())
    elif kind != "a folder":
        computed = Counting()
        assert len(compare(out, engine=computed).entries) == 4
        assert computed == [("age-based", 0)]


@pytest.mark.parametrize("name", ["experiment.json", "scenario.toml"])
@pytest.mark.parametrize("kind", ODD)
def test_descriptions_that_are_no_plain_files(kind, name, out):
    (out / name).unlink()
    ODD[kind](out / name)
    for attempt in (compare, Result.open):
        with pytest.raises(FolderError, match=rf"{name}: not read: it is "):
            attempt(out)


def test_a_lock_and_a_log_that_are_pipes(out):
    for name in (".lock", "log.txt"):
        kept = (out / name).read_bytes()
        (out / name).unlink()
        os.mkfifo(out / name)
        with pytest.raises(
            FolderError, match=rf"{name}: a pipe, not a file, and is not written to"
        ):
            compare(out)
        assert len(Result.open(out).entries) == 4
        (out / name).unlink()
        (out / name).write_bytes(kept)


def resealed(file, info=None, frame=None):
    """The file of a run with other content, and a right checksum."""
    history = History.load(file)
    for name, value in (info or {}).items():
        object.__setattr__(history.info, name, value)
    History(history.info, history.frame if frame is None else frame(history.frame)).save(file)


@pytest.mark.parametrize(
    ("frame", "problem"),
    [
        (lambda frame: frame.drop("accuracy"), "its columns are not those of a run"),
        (lambda frame: frame.with_columns(pl.lit(1).alias("x")), "its columns are not those of"),
        (lambda frame: frame.with_columns(pl.col("round").cast(pl.Int64)), "its columns are not"),
        (lambda frame: frame.head(2), "it has 2 rows for 3 rounds"),
        (lambda frame: pl.concat([frame] * 1000), "it has 3000 rows for 3 rounds"),
    ],
)
def test_a_made_up_run_is_left_out(frame, problem, out):
    name = min(runs(out))
    resealed(out / "runs" / name, frame=frame)
    result = Result.open(out)
    assert len(result.damaged) == 1
    assert problem in result.damaged[0]
    assert len(result.table().rows) == 2


def nested(depth):
    value = 1
    for _ in range(depth):
        value = {"x": [value]}
    return value


@pytest.mark.parametrize("depth", [30, 400])
def test_deep_nesting_is_one_sentence(depth, out):
    rewrite(out / "experiment.json", scenario=nested(depth))
    with pytest.raises(FolderError, match="damaged: nested more than 40 levels deep: put back"):
        Result.open(out)
    name = max(runs(out))
    shutil.rmtree(out)
    compare(out)
    resealed(out / "runs" / name, info={"scenario": nested(depth)})
    assert len(Result.open(out).damaged) == 1
    with pytest.raises(ValueError, match="nested more than 40 levels deep"):
        parse_json("[" * 10**6)


def test_nothing_outside_the_folder_is_read(tmp_path, monkeypatch, capsys):
    """A report once opened the data file that a stranger's scenario named, and told its columns."""
    secret = tmp_path / "secret.csv"
    secret.write_text("a,b,label\n" + "".join(f"{n},{n * n},{n % 3}\n" for n in range(150)))
    table = {"kind": "table", "path": str(secret), "label_column": "label", "test_fraction": 0.2}
    scenario = tiny(**{"run.rounds": 3, "data.dataset": table})
    out = tmp_path / "out"
    agewise.compare(scenario, POLICIES, 2, out, engine="inline", quiet=True)
    secret.unlink()
    os.mkfifo(secret)
    opened, watching = [], [True]

    def hook(event, arguments):
        if watching and event == "open":
            opened.append(str(arguments[0]))

    sys.addaudithook(hook)
    figure = ("figure", out, "accuracy", "-o", tmp_path / "x.pdf")
    for arguments in (("show", out), ("report", out), figure):
        assert command(monkeypatch, capsys, *arguments)[0] == 0
    watching.clear()  # a hook stays for ever
    assert any(name.endswith("experiment.json") for name in opened)
    assert str(secret) not in opened


EVIL = "\x1b]0;owned\x07\x1b[31m\x9b2J\r\n\u202e\ud800\x7fname"
SHOWN = r"\x1b]0;owned\x07\x1b[31m\x9b2J\x0d\x0a\u202e\ud800\x7fname"


def test_text_is_made_visible():
    assert visible(EVIL) == SHOWN
    assert visible("a\nb\tc", lines=True) == "a\nb\\x09c"
    assert visible("größer, 年, ±, →") == "größer, 年, ±, →"


def test_nothing_in_a_folder_steers_the_terminal(out, monkeypatch, capsys):
    """Names of policies, variations, files, reasons and errors."""
    described = json.loads((out / "experiment.json").read_text())
    policies = [*described["policies"], {"name": EVIL, "parameters": {EVIL: EVIL}, "usual": [EVIL]}]
    rewrite(out / "experiment.json", policies=policies)
    (out / "runs" / "\x1b[2J\nfake.parquet").write_bytes(b"")
    (out / "runs" / "\x1b[2Jfake.failed.json").write_bytes(b"")
    resealed(out / "runs" / max(runs(out)), info={"version": EVIL})
    told = command(monkeypatch, capsys, "show", out)
    assert told[0] == 0
    assert SHOWN in told[1].replace("\n", "")
    asjson = command(monkeypatch, capsys, "show", out, "--json")
    assert len(json.loads(asjson[1])["damaged"]) == 3
    page = command(monkeypatch, capsys, "report", out)
    rewrite(out / "experiment.json", policies=policies, agewise=3, seeds=[EVIL])
    refused = command(monkeypatch, capsys, "show", out)
    assert refused[0] == 2
    rewrite(out / "experiment.json", scenario={EVIL: 1})
    unknown = command(monkeypatch, capsys, "show", out)
    assert unknown[0] == 2
    for _, shown, errors in (told, asjson, page, refused, unknown):
        assert visible(shown, lines=True) == shown
        assert visible(errors, lines=True) == errors
        assert not any(line.startswith("fake") for line in shown.splitlines())
