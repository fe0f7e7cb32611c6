"""A few seconds of what ``make fuzz`` does to the folders of live federations."""

from tests.fuzz.__main__ import fuzz
from tests.fuzz.worker import Tally


def test_a_damaged_folder_is_refused_or_goes_on(tmp_path):
    wanted = [Tally("state", "tests_extra.flower.states", 0, 60, 0.0)]
    (tally,) = fuzz(wanted, tmp_path / "failures")
    assert tally.failures == []
    assert tally.valid > 0
    assert tally.errors > 0
