"""The network that the tutorial on neural models shows is learned as it is written there."""

import re
from pathlib import Path

import numpy as np
import pytest

import agewise

PAGE = Path(__file__).parents[2] / "docs" / "tutorials" / "neural.md"


def pictures_of(path):
    """The data set of the tutorial: in each class two other rows are bright."""
    rng = np.random.default_rng(0)
    arrays = {}
    for part, count in (("train", 600), ("test", 200)):
        labels = rng.integers(0, 10, size=count)
        pictures = rng.integers(0, 20, size=(count, 28, 28), dtype=np.uint8)
        pictures.reshape(count, 14, 2, 28)[np.arange(count), labels] = 255
        arrays |= {f"x_{part}": pictures, f"y_{part}": labels}
    np.savez(path, **arrays)


@pytest.mark.parametrize("own_data", [False, True])
def test_the_small_network_of_the_tutorial_learns(tmp_path, own_data):
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
    if own_data:
        named = re.search(r"data\.dataset=(\{.*?\})'", text)[1]
        pictures_of(tmp_path / "pictures.npz")
        named = named.replace("pictures.npz", str(tmp_path / "pictures.npz"))
        own = {"data.dataset": agewise.scenario.toml.value(named), "data.partition": "iid"}
        scenario = scenario.with_(**own)
    accuracy = agewise.simulate(scenario, "age-based").accuracy[-1]
    assert np.isfinite(accuracy)
    assert accuracy > 0.15  # ten classes: 0.1 by chance, with a deviation of 0.003
