"""What of agewise.flower any server can use, where Flower cannot be imported."""

import re
import subprocess
import sys
from pathlib import Path

GUIDE = Path(__file__).parents[2] / "docs" / "flower.md"
BEFORE = "import sys\nsys.modules['flwr'] = None\nimport agewise.flower.record\n"
AFTER = """
try:
    from agewise.flower import Scheduled
except ImportError as error:
    print(error)
"""


def test_the_server_of_the_guide_needs_no_flower():
    """What does need it says so in a sentence."""
    text = GUIDE.read_text(encoding="utf-8")
    (server,) = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    command = [sys.executable, "-c", BEFORE + server + AFTER]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "['anna', 'ben', 'cleo'] [0 0 0]",
        "this needs flwr: pip install 'agewise[flower]'",
    ]
