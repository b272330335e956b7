import math

import pytest

from erlib.metrics.scales import SCALES


@pytest.mark.parametrize("name", SCALES)
def test_what_is_brought_to_a_scale_comes_back(name):
    scale = SCALES[name]
    assert scale.back(scale.of(0.3)) == pytest.approx(0.3)


@pytest.mark.parametrize("name", SCALES)
def test_the_slope_is_how_far_the_scale_moves(name):
    scale, step = SCALES[name], 1e-6
    moved = (scale.of(0.3 + step, 40) - scale.of(0.3 - step, 40)) / (2 * step)
    assert scale.slope_at(0.3, 40) == pytest.approx(moved, rel=1e-6)


def test_a_share_of_all_or_of_no_text_has_a_logit():
    assert SCALES["logit"].of(0.0, texts=9) == pytest.approx(math.log(0.05 / 0.95))
    assert SCALES["logit-percent"].of(100.0, texts=9) == pytest.approx(math.log(0.95 / 0.05))


def test_a_printed_number_at_the_end_of_its_range_is_refused():
    with pytest.raises(ValueError):
        SCALES["fisher-z"].forward(1.0)
    assert math.isfinite(SCALES["fisher-z"].of(1.0))
