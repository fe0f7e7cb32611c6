"""Parts of a channel that a user brings: whole runs, and mistakes told with their place."""

import re
from pathlib import Path

import numpy as np
import pytest

from agewise import simulate
from agewise.part import CodeError
from agewise.radio import Fading, PathLoss
from tests.conformance import own_parts
from tests.conformance.test_channels import OWN
from tests.scenarios import tiny

FILE = Path(own_parts.__file__)


@pytest.mark.parametrize("kind", OWN)
def test_a_run_over_a_part_of_the_user_s(kind):
    own = {k: f"{FILE}:{v}" if isinstance(v, str) else v for k, v in OWN[kind].items()}
    history = simulate(tiny(**own), "age-based", 1)
    assert len(history) == 8
    assert any(name.startswith(f"part:{FILE}:") for name in history.info.sources)


def test_an_object_and_its_file_are_one_part():
    fields = {"turn_m": 50.0}
    by_file = tiny(**{"channel.path_loss": {"kind": f"{FILE}:DualSlope", **fields}})
    by_object = tiny(**{"channel.path_loss": own_parts.DualSlope(**fields)})
    first, again = (simulate(each, "max-pack", 1) for each in (by_file, by_object))
    np.testing.assert_array_equal(first.owner, again.owner)


class Flat(PathLoss):
    def loss_db(self, distance_m, line_of_sight):
        return 3.0


class Nobody(own_parts.Line):
    def positions(self, run):
        return np.zeros((1, 2))


class Unlimited(Fading):
    def gains(self, run, t, large):
        return np.full((12, 5), np.inf)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"channel.path_loss": Flat()}, "Flat: loss_db must give numbers of shape (1,), not ()"),
        ({"channel.placement": Nobody()}, "Nobody: positions must give numbers of shape (12, 2)"),
        ({"channel.fading": Unlimited()}, "Unlimited: gains must give finite numbers, not inf"),
        ({"channel.fading": Fading()}, "Fading has no method gains, which every fading needs"),
    ],
)
def test_what_a_part_gives_is_checked(changes, sentence):
    with pytest.raises(CodeError, match=re.escape(sentence)):
        simulate(tiny(**changes), "max-pack")


def test_a_part_that_fails_is_named_with_its_file_and_line(tmp_path):
    text = FILE.read_text(encoding="utf-8").replace("return 40.0 + 20.0 *", "return 40.0 / [] *")
    (tmp_path / "mine.py").write_text(text, encoding="utf-8")
    line = next(i for i, each in enumerate(text.splitlines(), 1) if "/ []" in each)
    scenario = tiny(**{"channel.path_loss": f"{tmp_path / 'mine.py'}:DualSlope"})
    with pytest.raises(CodeError, match=rf"mine\.py:{line}: TypeError: unsupported operand"):
        simulate(scenario, "max-pack")


def test_csi_with_an_error_needs_amplitudes_that_a_user_s_fading_may_not_have():
    csi = {"kind": "estimated", "pilot_snr_db": 3.0}
    with pytest.raises(ValueError, match="needs amplitudes, and LogNormalFading has only powers"):
        tiny(**{"channel.fading": own_parts.LogNormalFading(), "channel.csi": csi})
