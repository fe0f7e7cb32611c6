"""The page on what Agewise was compared with says what is measured now."""

import pytest

from tests import checked

WRITTEN = checked.written(checked.DOCUMENT.read_text("utf-8"))


def test_the_page_has_every_comparison():
    assert list(WRITTEN) == [*checked.ROWS.values(), checked.PYTORCH_ROW]


@pytest.mark.parametrize("measure", checked.ROWS, ids=lambda measure: measure.__name__)
def test_the_page_says_what_is_measured(measure):
    """Differences of rounding may be others on another machine, but no larger than 1e-12."""
    away = [abs(each) for each in measure()]
    count, most = WRITTEN[checked.ROWS[measure]]
    assert len(away) == count
    assert max(away) <= max(most, 1e-12)
    assert most <= max(2.0 * max(away), 1e-12), "the page would hide how near it is"
