"""What of agewise.flower any server can use, where Flower cannot be imported."""

import re
import subprocess
import sys
from pathlib import Path

GUIDE = Path(__file__).parents[2] / "docs" / "flower.md"
BEFORE = "import sys\nsys.modules['flwr'] = None\nimport agewise.flower.record\n"
AFTER = "\ntry:\n    from agewise.flower import Scheduled\nexcept ImportError as error:\n    print(error)"


def test_the_server_of_the_guide_needs_no_flower():
    """What does need it says so in a sentence."""
    (server,) = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), flags=re.S)
    command = [sys.executable, "-c", BEFORE + server + AFTER]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "['anna', 'ben', 'cleo'] [0 0 0]",
        "scheduling a live federation needs flwr: pip install 'agewise[flower]'",
    ]
