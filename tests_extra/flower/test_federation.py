"""What `make federation` is made of: keys, ages, sums, and cleaning up after programs that died."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.serialization import load_ssh_private_key

from benchmarks.federation import network
from benchmarks.federation.__main__ import config_of, where_text
from benchmarks.federation.deployment import Deployment
from benchmarks.federation.keeper import marked
from benchmarks.federation.keys import write_authority, write_node_key
from benchmarks.federation.sums import Size, ages_of, ratios_text, summed_up, table
from benchmarks.federation.trial import trial

ROOT = Path(__file__).parents[2]
SIZE = Size(rates_mbit_s=(1.0, 2.0, 3.0), target=0.5, levels=(0.3,))


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


def test_sums_and_ratio():
    quick = summed_up("age-based", "", notes((0.1, []), (0.4, [0, 2]), (0.6, [1])), SIZE)
    assert (quick.rounds_to_target, quick.seconds_to_target) == (2, 20.0)
    assert quick.updates == (1, 1, 1)
    assert quick.largest_age == 1
    slow = summed_up("flower", "", notes((0.1, []), *[(0.2, [0])] * 4, (0.5, [1])), SIZE)
    assert slow.seconds_to_target == 50.0
    assert ratios_text([quick, slow], SIZE).splitlines() == [
        "ratio of seconds, random sampling / age-based:",
        "  to 0.3 (a level below it): 5.00",
        "  to 0.5 (the target): 2.50",
    ]


def test_what_was_missed_is_said_and_levels_below_it_still_show():
    quick = summed_up("age-based", "", notes((0.1, []), (0.4, [0, 2]), (0.6, [1])), SIZE)
    missed = summed_up("flower", "", notes((0.1, []), *[(0.2, [0])] * 2, (0.4, [1])), SIZE)
    text = ratios_text([quick, missed], SIZE)
    assert "to 0.3 (a level below it): 3.00" in text
    assert "to 0.5 (the target): over 1.50, for random sampling missed it in 30 s" in text
    short = summed_up("age-based", "", notes((0.1, []), (0.35, [0])), SIZE)
    slow = summed_up("flower", "", notes((0.1, []), *[(0.2, [0])] * 4, (0.5, [1])), SIZE)
    assert "(the target): under 5.00, for age-based missed it in 10 s" in ratios_text(
        [short, slow], SIZE
    )
    assert "none, for both missed it" in ratios_text([short, missed], SIZE)
    head, first, last = table([quick, missed], SIZE).splitlines()
    assert head.split("  ")[-1] == "updates by client"
    rows = [" ".join(line.split()) for line in (first, last)]
    assert rows[0] == "age-based 2 20 0.600 10 20 2 0.50 1 1 1 1"
    assert rows[1] == "random (Flower) 3 30 0.400 30 missed missed 1.11 3 2 1 0"


def test_the_target_is_what_the_trial_reaches_in_its_time():
    """What docs/flower.md and `Size` say of sizes that were chosen before any run over links."""
    size = Size()
    scheduled = [trial(name, size) for name in ("age-based", "max-pack")]
    drawn = [trial("flower", size, seed) for seed in range(4)]
    assert all(each.seconds_to_target is not None for each in (*scheduled, *drawn))
    assert all(each.seconds < 200 for each in scheduled)
    assert 6 <= np.median([each.rounds for each in drawn]) <= 11


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
        end = time.monotonic() + 20.0
        while len(marked(name)) < 3 and time.monotonic() < end:
            time.sleep(0.05)
        assert len(marked(name)) == 3
        process.send_signal(how)
    while (marked(name) or Path(folder).exists()) and time.monotonic() < end:
        time.sleep(0.05)
    assert not marked(name)
    assert not Path(folder).exists()
