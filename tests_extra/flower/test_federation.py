"""What `make federation` is made of: keys, ages, sums, and cleaning up after programs that died."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.serialization import load_ssh_private_key

from benchmarks.federation.__main__ import Size, ages_of, ratio_text, summed_up, table
from benchmarks.federation.keeper import marked
from benchmarks.federation.keys import write_authority, write_node_key

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


def test_sums_and_ratio():
    quick = summed_up("age-based", "", notes((0.1, []), (0.4, [0, 2]), (0.6, [1])), SIZE)
    assert (quick.rounds_to_target, quick.seconds_to_target) == (2, 20.0)
    assert quick.updates == (1, 1, 1)
    assert quick.largest_age == 1
    slow = summed_up("flower", "", notes((0.1, []), *[(0.2, [0])] * 4, (0.5, [1])), SIZE)
    assert slow.seconds_to_target == 50.0
    assert ratio_text([quick, slow]) == "seconds to the target, random sampling / age-based: 2.50"
    missed = summed_up("flower", "", notes((0.1, []), *[(0.2, [0])] * 3), SIZE)
    assert "over 1.50 times as fast" in ratio_text([quick, missed])
    assert "did not reach" in ratio_text([summed_up("age-based", "", notes((0.1, [])), SIZE), slow])
    assert "random (Flower)" in table([quick, missed], SIZE)


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
