"""What of agewise.flower any server can use, where Flower cannot be imported."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SERVERS = ("asyncio_server", "http_server")
GUIDE = ROOT / "docs" / "flower.md"
BEFORE = "import sys\nsys.modules['flwr'] = None\nimport agewise.flower.record\n"
AFTER = """
try:
    from agewise.flower import Scheduled
except ImportError as error:
    print(error)
"""


def run(lines):
    """Run these lines where Flower is not there; what they print."""
    command = [sys.executable, "-c", BEFORE + lines]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.stdout.splitlines()


def test_examples_of_servers_of_ones_own():
    """Three clients take turns, two in a round; the fourth fails and holds up nobody."""
    files = [str(ROOT / "examples" / "servers" / f"{name}.py") for name in SERVERS]
    lines = run(
        f"import runpy\nfor file in {files}:\n    runpy.run_path(file, run_name='__main__')\n"
    )
    assert len(lines) == 14
    for said in (lines[:7], lines[7:]):
        trained = [re.findall(r"'(\w+)'", line) for line in said[:6]]
        assert {name for names in trained for name in names} == {"anna", "ben", "cleo"}
        assert [len(names) for names in trained].count(2) >= 4
        assert re.fullmatch(r"weights 6.0 ages \[[01] [01] [01] 6\]", said[6])


def test_the_server_of_the_guide_needs_no_flower():
    """What does need it says so in a sentence."""
    text = GUIDE.read_text(encoding="utf-8")
    (server,) = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert run(server + AFTER) == [
        "['anna', 'ben', 'cleo'] [0 0 0]",
        "this needs flwr: pip install 'agewise[flower]'",
    ]
