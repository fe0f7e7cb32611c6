"""What `make federation` is made of: keys, ages, sums, and cleaning up after programs that died."""

import csv
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.serialization import load_ssh_private_key

from benchmarks.federation import network
from benchmarks.federation.__main__ import config_of, where_text
from benchmarks.federation.deployment import Deployment
from benchmarks.federation.keeper import clean, marked
from benchmarks.federation.keys import write_authority, write_node_key
from benchmarks.federation.sums import Size, ages_of, summed_up, table
from benchmarks.federation.virtual import HANDLING_S, LATE, SELECTIONS, Air, Trained, section
from tests.experiment.watch import until

ROOT = Path(__file__).parents[2]
SIZE = Size(rates_mbit_s=(1.0, 2.0, 3.0), target=0.5)


def notes(*rounds):
    """Notes of rounds that end every 10 s, each given by accuracy and who arrived."""
    return [
        {"round": r, "seconds": 10.0 * r, "accuracy": accuracy, "arrived": arrived}
        for r, (accuracy, arrived) in enumerate(rounds)
    ]


def test_certificates_are_of_their_authority_and_of_no_other(tmp_path):
    write_authority(tmp_path / "one", "10.1.2.3")
    write_authority(tmp_path / "other", "10.1.2.3")
    read = x509.load_pem_x509_certificate
    ours, others = (read((tmp_path / name / "ca.pem").read_bytes()) for name in ("one", "other"))
    server = read((tmp_path / "one" / "server.pem").read_bytes())
    server.verify_directly_issued_by(ours)
    with pytest.raises(InvalidSignature):
        server.verify_directly_issued_by(others)
    names = server.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert [str(ip) for ip in names.get_values_for_type(x509.IPAddress)] == [
        "10.1.2.3",
        "127.0.0.1",
    ]
    assert (tmp_path / "one" / "server.key").stat().st_mode & 0o077 == 0


def test_node_keys(tmp_path):
    ids = {write_node_key(tmp_path / f"node{k}") for k in range(3)}
    assert len(ids) == 3
    key = load_ssh_private_key((tmp_path / "node0").read_bytes(), None)
    assert key.curve.name == "secp384r1"
    assert (tmp_path / "node0").stat().st_mode & 0o077 == 0


def test_ages_are_those_of_eq_2():
    assert ages_of([[0, 1], [1], []], 3).tolist() == [[0, 0, 1], [1, 0, 2], [2, 1, 3]]


def test_sums():
    quick = summed_up("age-based", "", notes((0.1, []), (0.4, [0, 2]), (0.6, [1])), SIZE)
    assert (quick.seconds_to_target, quick.updates, quick.largest_age) == (20.0, (1, 1, 1), 1)
    missed = summed_up("flower", "", notes((0.1, []), *[(0.2, [0])] * 2, (0.4, [1])), SIZE)
    head, first, last = table([quick, missed], SIZE).splitlines()
    assert head.split("  ")[-1] == "updates by client"
    rows = [" ".join(line.split()) for line in (first, last)]
    assert rows[0] == "age-based 2 20 0.600 20 0.50 1 1 1 1"
    assert rows[1] == "flower 3 30 0.400 missed 1.11 3 2 1 0"


def test_whoever_sends_has_an_equal_part_of_the_air():
    """Alone for a second, then two, then three: 4 s of sending are done after 4 s."""
    air = Air(jobs={0: [0.0, 2.0], 1: [1.0, 0.5], 2: [2.0, 1.5], 3: [9.0, 0.0]})
    ends = []
    while (row := air.next_end(8.0)) is not None:
        ends.append((row, pytest.approx(air.now)))
    assert ends == [(1, 2.0), (0, 3.0), (2, 4.0)]
    assert (air.now, air.jobs) == (8.0, {3: [9.0, 0.0]})


def test_what_is_concluded_follows_from_the_numbers():
    """Max-pack takes half as long as all clients, everything else as long, and one is missed."""
    rng = np.random.default_rng(0)
    base = 100.0 * np.exp(rng.normal(0.0, 0.2, 25))
    found = []
    for late in LATE:
        for selection in SELECTIONS:
            times = base * np.exp(rng.normal(0.0, 0.01, 25))
            times *= {"max-pack": 0.5, "random": 3.0}.get(selection, 1.0)
            for seed, seconds in enumerate(times.tolist()):
                seconds = np.inf if selection == "random" and seed == 3 else seconds
                found.append(Trained(selection, late, seed, seconds, 9, 0.8, 2))
    text = section(found)
    assert re.search(r"\| random \| \d+ \(\d+ to \d+; 24\) \| 0.3\d \(", text)
    assert re.search(r"\| max-pack \| .* \| \d+ \(\d+ to \d+; 25\) \| 2.0\d \(", text)
    assert "Sooner than all clients in synchronous rounds: max-pack (wait, weigh)." in text
    assert "**So any of these 2 may be taken**" in text  # max-pack, in both kinds of rounds
    assert re.search(r"with its time over theirs: max-pack \(\w+\), 1.00 \(", text)
    assert "It is sooner than age-based (wait, weigh); age-based, measured (wait, weigh);" in text
    assert "Not shown to differ: age-based, measured, round-robin, fastest five, all" in text
    alone = [x._replace(seconds=3 * x.seconds) if x.late == "weigh" else x for x in found]
    assert "**So take max-pack (wait)**: every other way is shown to be later." in section(alone)
    slower = [
        x._replace(seconds=2 * x.seconds) if x.selection != "all clients" else x for x in found
    ]
    slower = [x._replace(seconds=4 * x.seconds) if x.selection == "max-pack" else x for x in slower]
    assert "**Use all clients**: no choice" in section(slower)


def test_the_page_shows_the_trainings_beside_it():
    """Its table and conclusion are those of the file, and the guide says the same in short."""
    with (ROOT / "docs" / "federation.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    kinds = Trained.__annotations__
    found = [Trained(**{name: kinds[name](x) for name, x in row.items()}) for row in rows]
    assert len(found) == 30 * len(LATE) * len(SELECTIONS)
    text = section(found)
    assert text in (ROOT / "docs" / "federation.md").read_text(encoding="utf-8")
    sooner, later = re.search(r"synchronous rounds: (.*?)\. Later: (.*?)\.", text).groups()
    assert "age-based (wait, weigh)" in sooner
    assert "round-robin (wait, weigh)" in sooner
    assert later == "fastest five (wait, weigh)"
    tied = re.search(r"Not shown to differ from it, .*?: (.*?)\. \*\*So", text)[1]
    assert "round-robin" in tied
    random = re.search(r"Age-based \(wait\) is .*? Not shown to differ: (.*?)\.", text)[1]
    assert random == "random"


def test_the_server_of_the_page_errs_by_what_was_measured():
    """The seconds that handling adds to the uploads of the page's table are their median."""
    page = (ROOT / "docs" / "federation.md").read_text(encoding="utf-8")
    found = re.search(r"<!-- airtime -->(.*?)<!-- end -->", page, re.DOTALL)[1]
    rates = np.array(re.findall(r"\| ([\d.]+) \| ([\d.]+) \|", found), float)
    alone_s, measured_s = 8e-6 * Size().update_bytes / rates.T
    assert np.median(measured_s - alone_s) == pytest.approx(HANDLING_S, abs=0.05)
    assert f"takes {HANDLING_S:g} s of handling for the link's" in page
    true, measured = rates.T
    assert np.abs(measured / true - 1.0).max() <= 0.25, "the page says within a quarter"


def refused(*command):
    raise network.NoNamespaces(f"{' '.join(command)}: Operation not permitted")


@pytest.mark.parametrize(
    ("name", "stub", "why"),
    [
        ("shutil.which", lambda _: None, "the programs ip and tc are not installed"),
        ("_do", refused, r"ip netns add agw\w+-hub: Operation not permitted"),
    ],
)
def test_where_namespaces_are_not_allowed_it_is_the_loopback_address(name, stub, why, monkeypatch):
    monkeypatch.setattr(network.shutil, "which", lambda program: f"/sbin/{program}")
    monkeypatch.setattr(f"benchmarks.federation.network.{name}", stub)
    federation = Deployment(2, (1.0, 2.0))
    try:
        assert federation.network.address == "127.0.0.1"
        assert re.fullmatch(
            rf"loopback with modelled links \({why}\)", where_text(federation, SIZE)
        )
        assert config_of("age-based", SIZE, federation.network.shaped)["links"] == "modelled"
    finally:
        federation.close()
    assert not federation.folder.exists()


TAKE = """import socket, time
with socket.create_server(("{address}", 9000)) as server:
    print(flush=True)
    connection, _ = server.accept()
    began, left = time.monotonic(), 100_000
    while left:
        left -= len(connection.recv(left))
    print(time.monotonic() - began)"""
SEND = 'import socket; socket.create_connection(("{address}", 9000)).sendall(bytes(100_000))'


def test_links_in_namespaces_have_their_rates():
    """Where they are allowed: the access point is slower than the node, beyond 16 kB at once."""
    name = f"agw{os.getpid():x}"
    try:
        made = network.shaped(name, (4.0,), 2.0)
        take, send = (text.format(address=made.address) for text in (TAKE, SEND))
        command = [*made.hub, sys.executable, "-c", take]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            server.stdout.readline()
            subprocess.run([*made.node(0), sys.executable, "-c", send], check=True, timeout=60.0)
            assert float(server.stdout.readline()) > 8.0 * (100e3 - 32e3) / 2e6
    except network.NoNamespaces as error:
        if not re.search("not installed|not permitted|denied|Read-only", str(error)):
            raise
        pytest.skip(str(error))
    finally:
        clean(name, ROOT / "no folder")


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_nothing_is_left_of_a_program_that_died(how):
    """The processes and the folder of a federation go with the program that started it."""
    program = (
        "import sys, time; from benchmarks.federation.deployment import Deployment\n"
        "d = Deployment(1); d.start('detached', ['sh', '-c', 'setsid sleep 300 & sleep 300'])\n"
        "print(d.name, d.folder, flush=True); time.sleep(300)"
    )
    paths = os.pathsep.join((str(ROOT / "src"), str(ROOT)))
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        env=os.environ | {"PYTHONPATH": paths},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with process:
        name, folder = process.stdout.readline().split()
        until(lambda: len(marked(name)) == 3)
        process.send_signal(how)
    until(lambda: not marked(name) and not Path(folder).exists())
