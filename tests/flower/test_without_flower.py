"""The parts of agewise.flower that any server can use, where Flower cannot be imported."""

import json
import subprocess
import sys

SERVER = """
import sys
sys.modules["flwr"] = None
import agewise.flower.record
from agewise.flower import Airtime, Reported, RoundPlanner, Slots, UploadTiming

links = Airtime(shares=4, deadline_s=10.0, payload_bytes=1e6)
planner = RoundPlanner(["age-based", "random"], links)
for t in range(3):
    planned = planner.plan(planner.rows(["a", "b", "c"]))
    for row in planned.chosen:
        links.observe(t, row, UploadTiming(5.0, 4.0, 8e6))
    planner.receive(planned, planned.chosen)
print(planner.ages.tolist())
try:
    from agewise.flower import Scheduled
except ModuleNotFoundError as error:
    print(error)
"""


def test_links_and_planner_need_no_flower():
    """Two shares each: two of three clients upload; what needs Flower says so in a sentence."""
    done = subprocess.run([sys.executable, "-c", SERVER], capture_output=True, text=True)
    assert done.stderr == ""
    ages, message = done.stdout.splitlines()
    assert sorted(json.loads(ages)) == [0, 0, 1]
    assert message == "scheduling a live federation needs flwr: pip install 'agewise[flower]'"
