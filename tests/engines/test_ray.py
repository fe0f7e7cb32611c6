"""Ray on a real cluster of two nodes on this machine, one of which dies half-way."""

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
from importlib.util import find_spec

import pytest

from agewise.engines import Ray
from tests.engines import ray_job
from tests.experiment.watch import end, files, listening, runs, session, start, until

pytestmark = pytest.mark.skipif(not find_spec("ray"), reason="the engine ray is an extra")


@contextlib.contextmanager
def ray_python(*arguments, loopback=True, **options):
    """Python in which Ray finds and disturbs no other cluster of this machine.

    ``loopback`` keeps a cluster, or a driver of one, on the loopback address; without an address
    the engine has to see to that by itself.

    The path of Ray's folder is short, for the name of a socket has at most 107 characters.
    """
    folder = tempfile.mkdtemp(prefix="ray-", dir="/tmp")
    inherited = {name: value for name, value in os.environ.items() if name[:4] != "RAY_"}
    environment = inherited | {"RAY_TMPDIR": folder, "RAY_USAGE_STATS_ENABLED": "0"}
    if loopback:
        environment |= {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
    process = start(*arguments, env=environment, **options)
    try:
        yield process
    finally:
        end(process)
        shutil.rmtree(folder, ignore_errors=True)


def finished(process):
    """What a process says that ends well, with all that it started."""
    output, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    until(lambda: not session(process))
    return output


@pytest.fixture(scope="module")
def cluster():
    """The process that keeps the cluster, which may still be starting."""
    with ray_python("-m", "tests.engines.cluster", stdin=subprocess.PIPE) as process:
        yield process
        finished(process)


@pytest.fixture(scope="module")
def whole(tmp_path_factory, cluster):
    """The same in this process, while the cluster starts."""
    out = tmp_path_factory.mktemp("ray") / "whole"
    ray_job.compare(out, "inline")
    assert cluster.poll() is None, cluster.stderr.read()
    return out


@pytest.fixture(scope="module")
def address(cluster):
    """Where the cluster answers, once it does."""
    line = cluster.stdout.readline().strip()
    assert line, cluster.stderr.read()
    return line


def test_a_node_dies_half_way_and_nothing_is_lost(cluster, whole, address, tmp_path):
    out = tmp_path / "out"
    with ray_python("-m", "tests.engines.ray_job", "compare", out, address) as driver:
        until(lambda: len(runs(out)) >= 8 or driver.poll() is not None)
        print("kill", file=cluster.stdin, flush=True)
        assert cluster.stdout.readline() == "killed\n", cluster.stderr.read()
        assert len(runs(out)) < 2 * ray_job.SEEDS
        finished(driver)
    assert files(out) == files(whole)


def test_an_error_in_a_run_arrives_as_it_was(address, tmp_path):
    out = tmp_path / "out"
    with ray_python("-m", "tests.engines.ray_job", "fail", out, address) as driver:
        said = finished(driver)
    # Ray itself may say something before, as that the node of an earlier test is gone.
    last = said.splitlines()[-1]
    assert last.startswith("infeasible-for:seed=1 in round 1: power constraint (3c)")


def test_an_address_where_nobody_answers_is_one_sentence(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # not listening
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(ConnectionError, match=f"^no Ray cluster answers at {address}: "):
            ray_job.compare(tmp_path / "out", Ray(address))
    assert "stopped: no Ray cluster answers" in (tmp_path / "out" / "log.txt").read_text()


def test_without_an_address_ray_starts_and_ends_here(whole, tmp_path):
    """On the command line, as the tutorial has it."""
    scenario, out = tmp_path / "my.toml", tmp_path / "out"
    scenario.write_text(ray_job.SCENARIO.to_toml(), encoding="utf-8")
    policies = [word for name in ray_job.POLICIES for word in ("--policy", name)]
    command = ("compare", scenario, *policies, "--seeds", "2", "--engine", "ray", "--out", out)
    with ray_python("-W", "error", "-m", "agewise", *command, loopback=False) as driver:
        assert f"Results: {out}" in finished(driver).replace("\n", "")
    assert len(runs(out)) == 4
    assert runs(out).items() <= runs(whole).items()


SERVE = """
import sys
from agewise.engines import Ray
for item, result in Ray().run(abs, [-1]):
    import ray
    from ray._raylet import AuthenticationMode, get_authentication_mode
    print(get_authentication_mode() == AuthenticationMode.TOKEN, flush=True)
    sys.stdin.read()
"""


def test_without_an_address_ray_listens_on_the_loopback_address_alone():
    with ray_python("-c", SERVE, loopback=False, stdin=subprocess.PIPE) as driver:
        guarded = driver.stdout.readline()
        addresses = listening(driver)
        assert guarded == "True\n", driver.communicate()[1]
        assert addresses, "there is nothing to look at"
        assert addresses <= {"0100007F", "0000000000000000FFFF00000100007F"}
        finished(driver)


@pytest.mark.parametrize(
    ("before", "said"),
    [
        ("import ray", "RuntimeError: Ray was imported before it could be kept on the loopback"),
        (
            "import sys, types; sys.modules['ray'] = types.SimpleNamespace(__version__='2.51.1')",
            "RuntimeError: the engine ray needs Ray 2.52 or newer, which asks for a token",
        ),
    ],
)
def test_ray_that_could_be_reached_by_others_is_refused(before, said):
    run = f"{before}\nfrom agewise.engines import Ray\nlist(Ray().run(abs, [-1]))"
    with ray_python("-c", run, loopback=False) as driver:
        _, errors = driver.communicate(timeout=300)
    assert driver.returncode == 1
    assert errors.splitlines()[-1].startswith(said)
