"""The network that the tutorial on neural models shows is learned as it is written there."""

import re
from pathlib import Path

import numpy as np

import agewise

PAGE = Path(__file__).parents[2] / "docs" / "tutorials" / "neural.md"


def test_the_small_network_of_the_tutorial_learns(tmp_path):
    text = PAGE.read_text(encoding="utf-8")
    code = re.search(r"```python\n# small_cnn\.py\n(.*?)```", text, flags=re.DOTALL)[1]
    file = tmp_path / "small_cnn.py"
    file.write_text(code, encoding="utf-8")
    written = re.search(r"learn\.model=(\{.*?\})'", text)[1]
    model = agewise.scenario.toml.value(written.replace("small_cnn.py", str(file)))
    scenario = agewise.Scenario.preset("paper").with_(
        **{
            "learn.model": model,
            "learn.batch_size": 10,
            "learn.step_size": 0.05,
            "learn.local_steps": 5,
            "cell.ues": 10,
            "cell.subchannels": 4,
            "run.rounds": 4,
            "run.evaluate_every": 4,
        }
    )
    accuracy = agewise.simulate(scenario, "age-based").accuracy[-1]
    assert np.isfinite(accuracy)
    assert accuracy > 0.15  # ten classes: 0.1 by chance, with a deviation of 0.003
