"""Faults of a real federation, one after the other in one run: ``make test-faults`` (minutes).

A SuperLink and three SuperNodes with TLS and keys on the loopback address. Every client is asked in
every round as long as it is there and owes no reply, so that who is missing is the fault's doing.
After every fault all ages are worked out again from who arrived.
"""

import json
import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest

from benchmarks.federation import deployment, keys
from benchmarks.federation.__main__ import main
from benchmarks.federation.deployment import Deployment, wait_until
from benchmarks.federation.keeper import marked, namespaces
from benchmarks.federation.network import free_port

APP = Path(__file__).parent / "faulty"
CLIENTS = 3
#: Deadlines are 20 s; Flower reports a dead process or node within about a minute.
ROUND_S, DEATH_S = 90.0, 240.0
REFUSED = {
    "wrong-key": {"--auth-supernode-private-key": "other"},
    "no-key": {"--auth-supernode-private-key": None},
    "wrong-ca": {"--root-certificates": "elsewhere/ca.pem"},
    "plain-http": {"--root-certificates": None, "--insecure": ""},
}


class Federation:
    """A run of the app with faults, as its folder tells of it."""

    def __init__(self, deployment, folder):
        self.deployment, self.folder = deployment, folder
        self.ids = deployment.folder / "client-ids"
        self.ids.write_text("\n".join(deployment.ids))
        self.start()

    def start(self):
        config = {"folder": str(self.folder), "client-ids": str(self.ids)}
        self.run = self.deployment.run(APP, config)

    @property
    def done(self):
        return len(list((self.folder / "rounds").glob("0*.npz")))

    def round(self, t):
        with np.load(self.folder / "rounds" / f"{t:06d}.npz") as arrays:
            names = {"received": "policy0.received", "ages": "policy0.ages", "late": "late"}
            names |= {"failed": "failed", "gains": "gains"}
            return {name: arrays[key].tolist() for name, key in names.items()}

    def after(self, t, true, limit_s):
        """The first round from ``t`` on of which this is true, and its number."""
        end = time.monotonic() + limit_s
        while time.monotonic() < end:
            while t < self.done:
                found = self.round(t)
                if true(found):
                    return t, found
                t += 1
            time.sleep(0.5)
        pytest.fail(
            f"not seen in {self.done} rounds: {self.deployment.server_log(self.run)[-3000:]}"
        )

    def order(self, client, text):
        file = self.deployment.orders(client)
        if text:
            temporary = file.with_suffix(".next")
            temporary.write_text(text)
            temporary.replace(file)
        else:
            file.unlink(missing_ok=True)

    def require_right_ages(self):
        """Eq. 2: 0 for who arrived, one more for the others."""
        ages = np.zeros(CLIENTS, np.int64)
        for t in range(self.done):
            found = self.round(t)
            ages += 1
            ages[found["received"]] = 0
            assert found["ages"] == ages.tolist(), t
            assert not set(found["received"]) & set(found["late"] + found["failed"])


@pytest.fixture(scope="module")
def live(tmp_path_factory):
    with Deployment(CLIENTS) as started:
        federation = Federation(started, tmp_path_factory.mktemp("faults") / "live")
        federation.after(0, lambda found: len(found["received"]) == CLIENTS, ROUND_S + 60)
        yield federation
        federation.require_right_ages()
        name, folder = started.name, started.folder
    assert not marked(name)
    assert not namespaces(name)
    assert not folder.exists()


def test_client_raises(live):
    live.order(0, "raise")
    t, found = live.after(live.done, lambda found: 0 in found["failed"], ROUND_S)
    assert found["ages"][0] > 0
    assert {1, 2} == set(found["received"])
    live.order(0, "")
    _, found = live.after(t + 1, lambda found: 0 in found["received"], ROUND_S)
    assert found["ages"][0] == 0
    live.require_right_ages()


def test_late_reply(live):
    live.order(1, "sleep 30")
    t, found = live.after(live.done, lambda found: 1 in found["late"], ROUND_S)
    assert found["ages"][1] > 0
    back, found = live.after(t + 1, lambda found: 1 in found["received"], ROUND_S + 60)
    assert back > t
    for between in range(t + 1, back):  # owed a reply: not eligible, or late once more
        found = live.round(between)
        assert not any(found["gains"][1]) or 1 in found["late"]
    live.require_right_ages()


def test_client_process_is_killed(live):
    live.order(2, "hang")
    file = live.deployment.orders(2)
    wait_until(lambda: file.read_text().startswith("pid"), ROUND_S)
    process = int(file.read_text().split()[1])
    assert process in marked(live.deployment.name)
    live.order(2, "")
    os.kill(process, signal.SIGKILL)
    t, _ = live.after(live.done, lambda found: 2 not in found["received"], ROUND_S)
    _, found = live.after(t + 1, lambda found: 2 in found["received"], DEATH_S)
    assert found["ages"][2] == 0
    live.require_right_ages()


def test_node_is_killed_and_returns_with_its_key(live):
    live.deployment.kill_node(0)
    t, found = live.after(live.done, lambda found: not any(found["gains"][0]), DEATH_S)
    assert found["ages"][0] > 0
    live.deployment.return_node(0, DEATH_S)
    back, found = live.after(t + 1, lambda found: 0 in found["received"], DEATH_S)
    assert live.round(back - 1)["ages"][0] >= 1
    assert len(found["ages"]) == CLIENTS  # the same client, not a fourth
    live.require_right_ages()


@pytest.mark.parametrize("fault", REFUSED)
def test_strangers_are_refused(live, fault):
    own = live.deployment
    keys.write_node_key(own.folder / "other")
    keys.write_authority(own.folder / "elsewhere", "127.0.0.1")
    options = {
        name: str(own.folder / value) if value else value for name, value in REFUSED[fault].items()
    }
    options |= {"--port": str(free_port()), "--max-retries": "1"}
    before = live.done
    process = own.start_node(0, fault, options)
    assert process.wait(60) != 0, own.log(fault).read_text()
    assert "SuperNode ID" not in own.log(fault).read_text()
    _, found = live.after(before + 1, lambda found: len(found["received"]) == CLIENTS, ROUND_S)
    assert len(found["ages"]) == CLIENTS


def test_server_is_killed_and_resumed(live):
    (server,) = live.deployment.processes("flwr-serverapp")
    before = live.done
    os.kill(server, signal.SIGKILL)
    wait_until(lambda: live.deployment.status(live.run).startswith("finished"), DEATH_S, 2.0)
    assert "completed" not in live.deployment.status(live.run)
    killed = live.done
    assert before <= killed <= before + 1
    live.start()
    t, _ = live.after(killed, lambda found: len(found["received"]) == CLIENTS, DEATH_S)
    assert t >= killed
    live.require_right_ages()


def test_make_federation_without_namespaces(tmp_path, capsys):
    """On the loopback address with modelled links, as where rights do not allow more."""
    main(["--short", "--loopback", "--folder", str(tmp_path), "--selection", "age-based"])
    assert "loopback with modelled links" in capsys.readouterr().out
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert not summary["shaped"]
    (training,) = summary["trainings"]
    assert training["ended"] == "finished:completed"
    assert 0 < sum(training["updates"]) < 2 * len(training["updates"])


def test_make_federation_short(tmp_path, capsys, monkeypatch):
    """The command itself, with two rounds and small updates; namespaces where they are allowed."""
    monkeypatch.setattr(deployment.secrets, "token_hex", lambda _: "5a5a5a")
    main(
        ["--short", "--folder", str(tmp_path), "--selection", "age-based", "--selection", "flower"]
    )
    assert (tmp_path / "age-based" / "report.html").stat().st_size > 10_000
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert [training["rounds"] for training in summary["trainings"]] == [2, 2]
    assert all(sum(training["updates"]) > 0 for training in summary["trainings"])
    rows = [line.split()[:2] for line in capsys.readouterr().out.splitlines()]
    assert ["age-based", "2"] in rows
    assert ["flower", "2"] in rows
    assert not namespaces("agw5a5a5a")
    assert not marked("agw5a5a5a")
