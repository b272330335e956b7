import numpy as np
import pytest
from scipy import stats

from erlib.metrics.pseudovalues import distances, jackknife, models, spread


def rejects(values):
    return stats.ttest_1samp(values, 0.0).pvalue < 0.05


def test_the_pseudo_values_of_a_mean_are_the_values():
    x = {"a": 1.0, "b": 5.0, "c": 3.0}
    assert jackknife(list(x), lambda kept: np.mean([x[k] for k in kept])) == pytest.approx(
        [1, 5, 3]
    )


def test_the_mean_of_the_pseudo_values_corrects_the_bias_of_a_variance_with_n():
    x = np.array([1.0, 5.0, 3.0, 10.0])
    by_n = jackknife(range(4), lambda kept: float(x[list(kept)].var()))
    assert by_n.mean() == pytest.approx(x.var(ddof=1))


@pytest.mark.parametrize(("seeds", "ratio", "low", "high"), [
    (8, 1.0, 0.03, 0.07), (8, 0.44, 0.25, 0.50), (15, 0.44, 0.60, 0.85),
])  # fmt: skip
def test_spread_errs_and_finds_as_the_page_says(seeds, ratio, low, high):
    rng = np.random.default_rng(0)
    found = [
        rejects(spread(ratio * rng.normal(size=seeds), rng.normal(size=seeds))) for _ in range(600)
    ]
    assert low <= np.mean(found) <= high


def test_the_scale_of_both_sides_does_not_matter_to_their_spread():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 8))
    assert spread(100 * a, 100 * b) == pytest.approx(spread(a, b))


def apart(system, baseline):
    n = len(baseline)
    pairs = [(i, j) for i in range(n) for j in range(n) if i != j]
    return distances(
        {(i, j): float(np.linalg.norm(system[i] - baseline[j])) for i, j in pairs},
        {(i, j): float(np.linalg.norm(baseline[i] - baseline[j])) for i, j in pairs},
    )


@pytest.mark.parametrize("seeds", [3, 5])
def test_a_system_like_the_baseline_is_seldom_found_far_from_it(seeds):
    rng = np.random.default_rng(0)
    found = [rejects(apart(*rng.normal(size=(2, seeds, 10)))) for _ in range(600)]
    assert np.mean(found) <= 0.05


def test_a_system_that_has_moved_is_found():
    rng = np.random.default_rng(0)
    found = [
        rejects(apart(rng.normal(3, 1, (5, 10)), rng.normal(size=(5, 10)))) for _ in range(200)
    ]
    assert np.mean(found) > 0.95


def test_distances_leave_pairs_of_one_seed_out():
    across = {(0, 0): 99.0, (1, 1): 99.0, (2, 2): 99.0, (0, 1): 2.0, (1, 2): 2.0, (2, 0): 2.0,
              (1, 0): 2.0, (2, 1): 2.0, (0, 2): 2.0}  # fmt: skip
    within = {(0, 1): 1.0, (0, 2): 1.0, (1, 2): 1.0}
    assert distances(across, within) == pytest.approx([1.0, 1.0, 1.0])


def test_pairs_of_models_are_as_many_observations_as_models():
    rng = np.random.default_rng(0)
    naive, ours = [], []
    for _ in range(1_000):
        model = rng.normal(size=4)
        pairs = {(i, j): model[i] + model[j] for i in range(4) for j in range(i)}
        naive.append(rejects(list(pairs.values())))
        ours.append(rejects(models(pairs)))
    assert np.mean(naive) > 0.10 and np.mean(ours) <= 0.07


def test_a_model_that_is_in_every_pair_is_no_observation():
    pairs = {
        ("Init#1", "#Untrained"): 1.0,
        ("Init#2", "#Untrained"): 3.0,
        ("Init#3", "#Untrained"): 5.0,
    }
    assert models(pairs) == pytest.approx([1.0, 3.0, 5.0])
