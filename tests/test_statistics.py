"""Intervals, tests and survival curves, against published values and slow twins."""

import math
import subprocess
import sys
from statistics import NormalDist

import numpy as np
import pytest
from scipy import stats

from agewise import statistics
from agewise.statistics import (
    age_statistics,
    contrast,
    correct,
    estimate,
    jain,
    mean_interval,
    time_to_target,
)

# Student, "The probable error of a mean", Biometrika 6 (1908): hours of sleep gained with two
# drugs (R's data set `sleep`). R prints for t.test(paired = TRUE): t = -4.0621, df = 9,
# p-value = 0.002833, 95 per cent confidence interval -2.4598858 to -0.7001142.
SLEEP_1 = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0]
SLEEP_2 = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]

# Freireich et al., Blood 21 (1963) 699, as in Gehan, Biometrika 52 (1965) 203: weeks in
# remission under 6-MP and under a placebo; a minus sign marks a patient still in remission.
REMISSION_6MP = [
    *(6, 6, 6, -6, 7, -9, 10, -10, -11, 13, 16),
    *(-17, -19, -20, 22, 23, -25, -32, -32, -34, -35),
]
REMISSION_PLACEBO = [1, 1, 2, 2, 3, 4, 4, 5, 5, 8, 8, 8, 8, 11, 11, 12, 12, 15, 17, 22, 23]


def runs(times):
    """Accuracies [seed, round] that reach 0.9 after these rounds, and fall again; < 0: never."""
    accuracy = np.full((len(times), max(abs(t) for t in times)), math.nan)
    for row, t in zip(accuracy, times, strict=True):
        row[: abs(t)] = 0.1
        if t > 0:
            row[t - 1] = 0.9
            row[t:] = 0.2
    return accuracy


def twin_limits(times, confidence):
    """Low, median and high by the textbook (Collett, ch. 2): Greenwood's variance, log-log band."""
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    survival, variance, found = 1.0, 0.0, [math.nan] * 3
    for t in sorted({t for t in times if t > 0}):
        at_risk = sum(abs(other) >= t for other in times)
        events = times.count(t)
        survival *= 1 - events / at_risk
        curves = [math.nan, survival, math.nan]
        if events < at_risk:
            variance += events / (at_risk * (at_risk - events))
            error = math.sqrt(variance) / abs(math.log(survival))
            curves[0] = survival ** math.exp(z * error)
            curves[2] = survival ** math.exp(-z * error)
        for which, value in enumerate(curves):
            if math.isnan(found[which]) and value <= 0.5 + 1e-12:
                found[which] = t
    return found


def test_interval_of_students_sleep_data():
    gained = np.subtract(SLEEP_2, SLEEP_1)
    interval = estimate(gained)
    assert interval.mean == pytest.approx(1.58)
    assert (interval.low, interval.high) == pytest.approx((0.7001142, 2.4598858), abs=5e-8)
    assert type(interval.low) is float
    # t(0.995, 9) = 3.2498 and t(0.975, 9) = 2.2622: any table of Student's distribution.
    wider = mean_interval(gained, confidence=0.99)
    ratio = (wider.high - wider.low) / (interval.high - interval.low)
    assert ratio == pytest.approx(3.249836 / 2.262157, rel=1e-6)


def test_interval_keeps_the_shape_and_the_rounds_not_evaluated():
    values = np.array([[1.0, math.nan, 0.1], [3.0, math.nan, 0.1], [5.0, 2.0, 0.1]])
    interval = mean_interval(values)
    half = 4.302653 * 2 / math.sqrt(3)  # t(0.975, 2) = 4.302653; the deviation is 2
    np.testing.assert_allclose(interval.mean, [3, math.nan, 0.1])
    np.testing.assert_allclose(interval.low, [3 - half, math.nan, 0.1], rtol=1e-6)
    np.testing.assert_allclose(interval.high, [3 + half, math.nan, 0.1], rtol=1e-6)
    assert interval.low[2] == interval.high[2] == 0.1  # no spread: no width, to the last digit
    assert mean_interval(np.ones((4, 2, 5))).mean.shape == (2, 5)


def test_infinite_values_have_no_mean_in_any_order():
    assert np.isnan(mean_interval([[1.0, math.inf], [math.inf, 1.0]]).mean).all()


def test_interval_of_one_seed():
    interval = mean_interval([[0.7, 0.8]])
    assert interval.mean.tolist() == [0.7, 0.8]
    assert np.isnan(interval.low).all()
    assert np.isnan(interval.high).all()


@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_interval_covers_the_mean_as_often_as_it_says(confidence):
    """A normal interval would cover 88 % instead of 95 % with five seeds."""
    draws = np.random.default_rng(1).normal(3.0, 2.0, (5, 40_000))
    interval = mean_interval(draws, confidence)
    covered = np.mean((interval.low <= 3.0) & (interval.high >= 3.0))
    assert covered == pytest.approx(confidence, abs=0.007)  # over three standard errors


def test_paired_difference_of_students_sleep_data():
    result = contrast(SLEEP_2, SLEEP_1)
    assert result.mean == pytest.approx(1.58)
    assert (result.low, result.high) == pytest.approx((0.7001142, 2.4598858), abs=5e-8)
    assert result.p == pytest.approx(0.002833, abs=5e-7)
    assert result.pairs == 10
    turned = contrast(SLEEP_1, SLEEP_2)
    assert (turned.low, turned.high) == pytest.approx((-result.high, -result.low))
    assert turned.mean == pytest.approx(-result.mean)
    assert turned.p == pytest.approx(result.p)


def test_contrasts_without_spread():
    values = [0.1, 0.7, 0.3]
    same = contrast(values, values)
    assert (same.mean, same.low, same.high, same.p) == (0, 0, 0, 1)
    apart = contrast([0.1, 0.1, 0.1], [0.0, 0.0, 0.0])
    assert (apart.mean, apart.low, apart.high, apart.p) == (0.1, 0.1, 0.1, 0)


def test_contrasts_without_pairs_or_with_gaps():
    one = contrast([3.0], [1.0])
    assert (one.mean, one.pairs) == (2.0, 1)
    assert np.isnan([one.low, one.high, one.p]).all()
    none = contrast([], [])
    assert none.pairs == 0
    assert np.isnan([none.mean, none.low, none.high, none.p]).all()
    for gap in (math.nan, math.inf):
        result = contrast([1.0, gap, 3.0], [0.0, gap, 1.0])
        assert np.isnan([result.mean, result.low, result.high, result.p]).all()
    with pytest.raises(ValueError, match=r"\(2,\), \(3,\)"):
        contrast([1, 2], [1, 2, 3])
    with pytest.raises(ValueError, match="per seed"):
        contrast(np.ones((2, 2)), np.ones((2, 2)))


def family(seeds, tests, together=0.6, effect=0.0, seed=0):
    """Contrasts of tests that share some of their noise, the later ones with an effect."""
    rng = np.random.default_rng(seed)
    shared, own = rng.normal(size=(seeds, 1)), rng.normal(size=(seeds, tests))
    gaps = together**0.5 * shared + (1 - together) ** 0.5 * own + np.linspace(0, effect, tests)
    return [contrast(column, np.zeros(seeds)) for column in gaps.T]


@pytest.mark.parametrize(("seeds", "method"), [(20, "max-t"), (19, "Bonferroni")])
def test_intervals_and_p_values_of_a_family_agree(seeds, method):
    alone = family(seeds, 40, effect=1.5)
    judged = correct(alone)
    assert {each.method for each in judged} == {method}
    excluded = [each.low > 0 or each.high < 0 for each in judged]
    assert excluded == [each.p < 0.05 for each in judged]
    assert 0 < sum(excluded) < sum(each.p < 0.05 for each in alone), "the correction can be seen"
    assert [each.mean for each in judged] == [each.mean for each in alone]
    assert judged == correct(alone), "the same numbers every time"


def test_bonferroni_multiplies_and_widens_by_the_quantile():
    alone = family(10, 4)
    t = stats.t.ppf(1 - np.array([0.05 / 4, 0.05]) / 2, 9)
    for before, after in zip(alone, correct(alone), strict=True):
        assert after.p == pytest.approx(min(1.0, 4 * before.p))
        assert after.high - after.low == pytest.approx(t[0] / t[1] * (before.high - before.low))


def test_max_t_is_the_chance_of_so_large_a_value_among_correlated_ones():
    """Against SciPy's integral of the normal distribution with the same correlation."""
    alone = family(24, 3, effect=0.4)
    gaps = np.array([list(each.gaps.values()) for each in alone])
    normal = stats.multivariate_normal(cov=np.corrcoef(gaps))
    for before, after in zip(alone, correct(alone), strict=True):
        z = np.full(3, stats.norm.isf(before.p / 2))
        assert after.p == pytest.approx(1 - normal.cdf(z, lower_limit=-z), abs=0.006)
        assert before.p <= after.p <= 3 * before.p + 0.001


def test_a_family_in_which_nothing_is_true_seldom_shows_something(monkeypatch):
    """Single tests would show something in most experiments; max-t may in one of twenty."""
    for name in ("_DRAWS", "_AT_ONCE"):
        monkeypatch.setattr(statistics, name, 2_000)
    shown = [
        any(each.p < 0.05 for each in correct(family(20, 12, seed=seed))) for seed in range(300)
    ]
    assert 0.0 < np.mean(shown) < 0.1  # 5%, by four standard errors


def test_same_tests_are_one_test():
    one = contrast(SLEEP_2 * 2, SLEEP_1 * 2)
    for each in correct([one, one, one]):
        assert each.p == pytest.approx(one.p, abs=0.001)
        assert (each.low, each.high) == pytest.approx((one.low, one.high), rel=0.01)


def test_tests_that_were_not_made_or_share_no_seeds():
    unknown = contrast([math.nan] * 20, [0.0] * 20)
    first, second = family(20, 2)
    assert correct([first, unknown])[0] == first, "one test stays what it is"
    judged = correct([first, unknown, second])
    assert [each.method for each in judged[::2]] == ["max-t", "max-t"]
    assert math.isnan(judged[1].p)
    elsewhere = contrast(list(second.gaps.values()), [0.0] * 20, range(1, 21))
    assert correct([first, elsewhere])[0].method == "Bonferroni"
    assert correct([]) == []
    same = correct([contrast([1.0] * 20, [1.0] * 20), first])[0]
    assert (same.low, same.high, same.p) == (0, 0, 1)


def test_few_seeds_are_kept():
    assert estimate([0.5, 0.7]).few == (0.5, 0.7)
    assert estimate([0.5]).few == estimate([0.5] * 5).few == ()
    assert contrast([0.5, 0.7], [0.25, 0.2], [3, 8]).gaps == {3: 0.25, 8: pytest.approx(0.5)}


def test_remission_times():
    """Median 23 weeks: Kleinbaum and Klein, Survival Analysis, ch. 2."""
    result = time_to_target(runs(REMISSION_6MP), 0.9)
    assert (result.median, result.reached, result.runs, result.horizon) == (23, 9, 21, 35)
    steps = [(6, 1), (1, 0.857), (3, 0.807), (3, 0.753), (3, 0.690), (6, 0.627), (1, 0.538)]
    area = sum(weeks * height for weeks, height in [*steps, (12, 0.448)])
    assert result.restricted_mean == pytest.approx(area, abs=5e-3)
    expected = [t if t > 0 else math.nan for t in REMISSION_6MP]
    np.testing.assert_array_equal(result.times, expected)
    # The log-log band is 0.5032 to 0.8894 at 10 weeks, 0.4316 to 0.8491 at 13 and 0.1881 to
    # 0.6801 at 23. R's default band, on the log scale, would give 16.
    assert result.low == 13
    assert math.isnan(result.high)


def test_placebo_times_have_the_median_and_mean_of_any_sample():
    """Nothing is censored here: the area is the plain mean, the curve that of the sample."""
    result = time_to_target(runs(REMISSION_PLACEBO), 0.9)
    assert result.median == np.median(REMISSION_PLACEBO) == 8
    assert result.restricted_mean == pytest.approx(np.mean(REMISSION_PLACEBO))
    assert (result.low, result.high) == (4, 11)
    assert result.reached == result.runs == 21


@pytest.mark.parametrize("confidence", [0.5, 0.8, 0.95])
def test_limits_of_the_median_against_the_slow_twin(confidence):
    rng = np.random.default_rng(3)
    limited = 0
    for _ in range(100):
        size = int(rng.integers(1, 21))
        times = (rng.integers(1, 15, size) * rng.choice([1, 1, -1], size)).tolist()
        result = time_to_target(runs(times), 0.9, confidence=confidence)
        np.testing.assert_array_equal(
            [result.low, result.median, result.high], twin_limits(times, confidence)
        )
        limited += not math.isnan(result.high)
    assert limited > 10


@pytest.mark.parametrize("seed", range(8))
def test_correlations_are_those_of_scipy(seed):
    x, y = np.random.default_rng(seed).random((2, 3 + seed))
    found, turned = statistics.correlation(x, y), statistics.correlation(x, -2 * x)
    np.testing.assert_allclose((found.mean, found.p), stats.pearsonr(x, y), rtol=1e-9)
    np.testing.assert_allclose((turned.mean, turned.p), (-1, 0), atol=1e-12)
    assert found.pairs == x.size


def test_first_round_at_or_above_the_target_counts():
    accuracy = [
        [math.nan, 0.5, math.nan, 0.7],
        [math.nan, 0.8, math.nan, 0.6],
        [math.nan, 0.1, math.nan, 0.699],
    ]
    result = time_to_target(accuracy, 0.7)
    np.testing.assert_array_equal(result.times, [4, 2, math.nan])
    assert (result.reached, result.runs, result.horizon, result.median) == (2, 3, 4, 4)
    assert result.restricted_mean == pytest.approx((4 + 2 + 4) / 3)


def test_runs_that_never_reach_the_target_are_not_dropped():
    """Dropping them would say 2 rounds; in truth more than half the runs take over 10."""
    result = time_to_target(runs([2, -10, -10]), 0.9)
    assert math.isnan(result.median)
    assert (result.reached, result.runs, result.horizon) == (1, 3, 10)
    assert result.restricted_mean == pytest.approx((2 + 10 + 10) / 3)
    never = time_to_target(runs([-10, -10]), 0.9)
    assert (never.reached, never.restricted_mean, never.horizon) == (0, 10, 10)
    assert np.isnan([never.median, never.low, never.high, *never.times]).all()


def test_median_where_the_curve_is_one_half_up_to_rounding():
    """23/24 * 22/23 * ... * 12/13 is 0.5000000000000001 in floating point."""
    times = [*range(1, 13), *[-20] * 12]
    assert time_to_target(runs(times), 0.9).median == 12


def test_all_runs_alike_have_a_median_and_no_band():
    result = time_to_target(runs([7, 7, 7, 7]), 0.9)
    assert (result.median, result.restricted_mean) == (7, 7)
    assert np.isnan([result.low, result.high]).all()
    assert time_to_target([[0.9, 0.9, 0.9]], 0.9).horizon == 3  # watched on to the end


def test_costs_of_rounds():
    accuracy = [[0.1, 0.9, 0.9], [0.1, 0.2, 0.9], [0.1, 0.2, 0.3]]
    rounds = time_to_target(accuracy, 0.9, cost=[10, 20, 30])  # alike for all runs
    np.testing.assert_array_equal(rounds.times, [20, 30, math.nan])
    assert (rounds.horizon, rounds.median) == (30, 30)
    seconds = time_to_target(accuracy, 0.9, cost=[[1, 2.5, 3], [2, 4, 6], [1, 4, 5]])
    np.testing.assert_array_equal(seconds.times, [2.5, 6, math.nan])
    # By hand: 2/3 are left after 2.5 s, one of two watched then leaves at 5 s, none at 6 s.
    assert (seconds.median, seconds.horizon) == (6, 6)
    assert seconds.restricted_mean == pytest.approx(2.5 + 3.5 * 2 / 3)


def test_horizon():
    accuracy = runs([3, 5, -10, -10])
    early = time_to_target(accuracy, 0.9, horizon=4)
    assert (early.reached, early.runs, early.horizon) == (1, 4, 4)
    np.testing.assert_array_equal(early.times, [3, math.nan, math.nan, math.nan])
    assert early.restricted_mean == pytest.approx((3 + 4 * 3) / 4)
    assert time_to_target(accuracy, 0.9, horizon=5).reached == 2  # just in time
    with pytest.raises(ValueError, match="to the last evaluation, 10: 11"):
        time_to_target(accuracy, 0.9, horizon=11)
    with pytest.raises(ValueError, match="horizon"):
        time_to_target(accuracy, 0.9, horizon=-1)
    done = time_to_target(runs([3, 5]), 0.9, horizon=100)  # known: no run is left
    assert (done.restricted_mean, done.horizon) == (4, 100)


def test_a_run_watched_less_long_does_not_stretch_the_horizon():
    """After round 4 only a run that was done is watched: nothing says how the other went on."""
    accuracy = [[0.9, *[0.9] * 9], [0.1] * 4 + [math.nan] * 6]
    result = time_to_target(accuracy, 0.9)
    assert (result.horizon, result.restricted_mean) == (4, pytest.approx((1 + 4) / 2))


@pytest.mark.parametrize(
    ("accuracy", "options", "message"),
    [
        ([0.1, 0.9], {}, "seed, round"),
        (np.ones((0, 3)), {}, "seed, round"),
        (np.ones((3, 0)), {}, "seed, round"),
        ([[0.1], [math.nan]], {}, "evaluation in each run"),
        ([[0.1, 0.9]], {"cost": [2, 1]}, "must not fall"),
        ([[0.1, 0.9]], {"cost": [-1, 1]}, "not negative"),
        ([[0.1, 0.9]], {"cost": [1, math.nan]}, "finite"),
        ([[0.1, 0.9]], {"cost": [1, math.inf]}, "cost must be finite"),
        ([[0.1, 0.9]], {"cost": [1, 2, 3]}, "broadcast"),
        ([[0.1, 0.9]], {"target": math.nan}, "target must be a finite number"),
        ([[0.1, 0.9]], {"confidence": 1.0}, "between 0 and 1, not 1"),
    ],
)
def test_bad_accuracies_and_costs(accuracy, options, message):
    with pytest.raises(ValueError, match=message):
        time_to_target(accuracy, **{"target": 0.5, **options})


def test_bad_values_and_confidence():
    for empty in ([], np.ones((0, 3)), 1.0):
        with pytest.raises(ValueError, match="at least one seed"):
            mean_interval(empty)
    for confidence in (0, 1, 95):
        with pytest.raises(ValueError, match="between 0 and 1"):
            mean_interval([1, 2], confidence)


def test_jain():
    """Jain, Chiu and Hawe (1984): k of n users with equal shares and the others none give k/n."""
    for k in range(1, 6):
        assert jain([3] * k + [0] * (5 - k)) == pytest.approx(k / 5)
    assert jain([1, 2, 3]) == pytest.approx(36 / (3 * 14))  # by hand
    assert jain([10, 20, 30]) == pytest.approx(jain([1, 2, 3]))
    np.testing.assert_allclose(jain([[1, 1], [2, 0], [0, 0]]), [1, 0.5, math.nan])
    assert math.isnan(jain([0, 0]))
    assert type(jain([1, 1])) is float
    for wrong in ([1, -1], 1.0):
        with pytest.raises(ValueError, match="non-negative"):
            jain(wrong)


def test_age_statistics():
    """Ages 0 to 100, so that the 95th percentile is 95 by any definition."""
    ages = np.random.default_rng(4).permutation(np.arange(101)).reshape(101, 1)
    result = age_statistics(ages)
    assert (result.mean, result.percentile_95, result.largest) == (50, pytest.approx(95), 100)
    both = age_statistics([[0, 0, 9], [1, 0, 0]])  # over rounds and UEs alike
    assert (both.mean, both.largest) == (pytest.approx(10 / 6), 9)
    assert both.mean_peak == pytest.approx((0 + 0 + 0 + 9) / 4), "two at once, one later, one old"
    assert math.isnan(age_statistics([[1], [2]]).mean_peak)
    for wrong in ([1, 2], np.ones((0, 4))):
        with pytest.raises(ValueError, match="round, ue"):
            age_statistics(wrong)


def test_import_does_not_wait_for_scipy():
    code = "import sys, agewise.statistics; sys.exit('scipy.stats' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
