"""A Ray cluster of two nodes with one core each, in a process of its own.

``python -m tests.engines.cluster`` prints the address, then for each line that it reads kills the
second node with all its processes while a run happens there, and says so. The end of its input is
the end of the cluster, so that nothing outlives the test whatever becomes of it.
"""

import contextlib
import os
import signal
import sys
from pathlib import Path

from ray.cluster_utils import Cluster

from tests.experiment.watch import until

NODE = {
    "num_cpus": 1,
    "object_store_memory": 100 * 2**20,
    "include_dashboard": False,
    "node_ip_address": "127.0.0.1",
}


def children(parent):
    """The processes that a process started: number and command."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # ended meanwhile
            if int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1]) == parent:
                found[int(entry.name)] = (entry / "cmdline").read_text()
    return found


def kill_at_work(cluster, node):
    (raylet,) = [info.process.pid for info in node.all_processes["raylet"]]
    until(lambda: any("_on_one_thread" in command for command in children(raylet).values()))
    for process in [raylet, *children(raylet)]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    cluster.remove_node(node, allow_graceful=False)


def main():
    cluster = Cluster(initialize_head=True, head_node_args=NODE)
    try:
        second = cluster.add_node(**NODE)
        print(cluster.address, flush=True)
        for _ in sys.stdin:
            kill_at_work(cluster, second)
            print("killed", flush=True)
    finally:
        cluster.shutdown()


if __name__ == "__main__":
    main()
