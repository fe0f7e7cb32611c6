"""Local learning: slopes by finite differences, kernels by the twin, objectives by optima."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.sparse import csr_matrix

from agewise import Streams
from agewise.core.linear import Scores, add_losses, find_slopes, signs_of, stride_of
from agewise.data import Dataset, Mnist, Partition, Samples
from agewise.learn import is_finite
from agewise.learn.linear import LOSSES
from tests.learn import twin
from tests.samples import average, equal_shares, iid
from tests.scenarios import tiny

STREAMS = Streams(11)


def dataset(classes=3, features=9, samples=90, seed=0, *, as_bytes=False, zeros=0.5):
    """A noisy problem with many zeros, as bytes or as numbers."""
    rng = np.random.default_rng(seed)
    labels = np.arange(samples) % classes
    means = rng.normal(size=(classes, features))
    x = means[labels] + rng.normal(size=(samples, features))
    x[rng.random(x.shape) < zeros] = 0.0
    if as_bytes:
        kept = Samples(np.clip(80 * np.abs(x), 0, 255).astype(np.uint8), labels, unit=1 / 255)
    else:
        kept = Samples(x.astype(np.float32), labels)
    return Dataset("noisy", kept, kept, tuple(map(str, range(classes))))


def linear(loss):
    return {"kind": "linear", "loss": loss, "initial_deviation": 0.01}


def kmeans(clusters):
    return {"kind": "k-means", "clusters": clusters, "initial_deviation": 0.01}


def penalised(kind, weight):
    return kind if kind == "none" else {"kind": kind, "weight": weight}


def settings_of(**settings):
    return tiny(**{f"learn.{name}": value for name, value in settings.items()}).learn


def told(learner):
    """What the twins are told of a learner."""
    return SimpleNamespace(model=learner.model, **vars(learner.steps))


def learner_of(data, ues=3, **settings):
    partition = iid(data.train.labels, equal_shares(ues), np.random.default_rng(1))
    return settings_of(**settings).learner(data, partition), partition


@given(st.sampled_from(LOSSES), st.integers(1, 4), st.integers(0, 1000))
def test_slopes_of_the_twin_by_finite_differences(loss, outputs, seed):
    outputs = outputs + 1 if loss == "multinomial" else outputs
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(1, outputs)) * 2
    label = np.array([rng.integers(max(outputs, 2))])
    for i in range(outputs):
        step = np.zeros_like(scores)
        step[0, i] = 1e-6
        rise = twin.losses(loss, scores + step, label) - twin.losses(loss, scores - step, label)
        assert twin.slopes(loss, scores, label)[0, i] == pytest.approx(rise[0] / 2e-6, abs=1e-6)


@given(st.sampled_from(LOSSES), st.integers(1, 20), st.integers(0, 1000), st.floats(0.1, 60))
def test_losses_and_slopes_of_the_kernel_are_the_twins(loss, outputs, seed, size):
    outputs = outputs + 1 if loss == "multinomial" else outputs
    rng = np.random.default_rng(seed)
    classes, stride = max(outputs, 2), stride_of(outputs)
    scores = np.zeros(stride, np.float32)
    scores[:outputs] = rng.normal(size=outputs) * size
    label = int(rng.integers(classes))
    kind, signs = Scores(outputs, LOSSES.index(loss)), signs_of(outputs, classes)
    padded, given = np.zeros((2, 3 * stride), np.float32)
    given[stride : 2 * stride] = scores
    find_slopes(kind, given, stride, label, signs, padded)
    value = add_losses(kind, scores, np.array([label]), signs, 0.0)
    slopes = padded[stride : stride + outputs].copy()
    padded[stride : stride + outputs] = 0
    assert not padded.any()
    scores = scores[:outputs]
    exact = scores[None].astype(np.float64)
    assert value == pytest.approx(
        twin.losses(loss, exact, np.array([label]))[0], rel=1e-5, abs=1e-6
    )
    np.testing.assert_allclose(
        slopes, twin.slopes(loss, exact, np.array([label]))[0], rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("penalty", ["none", "l2", "l1"])
@pytest.mark.parametrize(
    ("classes", "batch", "as_bytes"),
    [(2, 1, True), (3, 1, False), (10, 4, True), (20, 3, False)],
)
def test_local_sgd_is_the_twins(loss, penalty, classes, batch, as_bytes):
    data = dataset(classes, samples=40 * classes, as_bytes=as_bytes)
    learner, partition = learner_of(
        data, model=linear(loss), penalty=penalised(penalty, 0.02), batch_size=batch,
        local_steps=25, step_decay=0.5, step_size=0.02,
    )  # fmt: skip
    start = learner.init(STREAMS)
    trained = learner.train(start, np.array([2, 0]), 3, STREAMS)
    x, labels = data.train.values().astype(np.float64), data.train.labels
    for model, ue in zip(trained, (2, 0), strict=True):
        own = partition.samples_of(ue)
        expected = twin.local_sgd(
            told(learner), start.reshape(data.train.feature_count + 1, -1), x[own], labels[own],
            int(STREAMS.sgd), 3, ue,
        )  # fmt: skip
        np.testing.assert_allclose(model, expected.ravel(), rtol=1e-3, atol=2e-5)
    model = trained[0].astype(np.float64).reshape(expected.shape)
    expected_value = twin.objective(told(learner), model, x, labels)
    assert learner.objective(trained[0]) == pytest.approx(expected_value, rel=1e-5)
    scores = x @ model[:-1] + model[-1]
    evaluation = learner.evaluate(trained[0])
    assert evaluation.loss == pytest.approx(twin.losses(loss, scores, labels).mean(), rel=1e-5)
    answers = (scores[:, 0] > 0).astype(int) if scores.shape[1] == 1 else scores.argmax(1)
    assert evaluation.accuracy == pytest.approx((answers == labels).mean(), abs=1e-9)
    shares = [(answers == labels)[labels == c].mean() for c in range(classes)]
    np.testing.assert_allclose(evaluation.class_accuracy, shares, atol=1e-12)


@pytest.mark.parametrize("penalty_weight", [5.0, 20.0, 30.0])
def test_strong_shrinkage_keeps_the_scale_in_range(penalty_weight):
    """The scale passes below its least value, to exactly 0 (step * xi = 1) and below 0."""
    data = dataset()
    learner, partition = learner_of(
        data, penalty=penalised("l2", penalty_weight), step_size=0.05, local_steps=40
    )
    start = learner.init(STREAMS)
    model = learner.train(start, np.array([1]), 0, STREAMS)[0]
    own = partition.samples_of(1)
    expected = twin.local_sgd(
        told(learner), start.reshape(10, 3), data.train.values()[own].astype(np.float64),
        data.train.labels[own], int(STREAMS.sgd), 0, 1,
    )  # fmt: skip
    np.testing.assert_allclose(model, expected.ravel(), rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("penalty", ["none", "l2", "l1"])
@pytest.mark.parametrize("batch", [1, 5])
def test_kmeans_is_the_twins(penalty, batch):
    data = dataset(as_bytes=True)
    learner, partition = learner_of(
        data, model=kmeans(4), penalty=penalised(penalty, 0.1), batch_size=batch
    )
    start = learner.init(STREAMS)
    x = data.train.values().astype(np.float64)
    model = learner.train(start, np.array([1]), 2, STREAMS)[0]
    expected = twin.kmeans_sgd(
        told(learner), start.reshape(4, -1), x[partition.samples_of(1)], int(STREAMS.sgd), 2, 1
    )
    np.testing.assert_allclose(model, expected.ravel(), rtol=1e-4, atol=1e-5)
    squared = ((x[:, None] - model.reshape(4, -1)) ** 2).sum(-1)
    assert learner.evaluate(model).loss == pytest.approx(squared.min(1).mean() / 2, rel=1e-5)
    names = np.array([np.bincount(data.train.labels[squared.argmin(1) == c], minlength=3).argmax()
                      for c in range(4)])  # fmt: skip
    right = names[squared.argmin(1)] == data.train.labels
    evaluation = learner.evaluate(model)
    assert evaluation.accuracy == pytest.approx(right.mean())
    shares = [right[data.train.labels == c].mean() for c in range(3)]
    np.testing.assert_allclose(evaluation.class_accuracy, shares, atol=1e-12)


@pytest.mark.parametrize("model", [linear("hinge"), linear("multinomial"), kmeans(4)])
def test_a_class_without_test_samples_has_no_accuracy(model):
    """Class 1 of three has none; the others make up the accuracy by their shares."""
    whole = dataset()
    test = whole.test.take(np.flatnonzero((whole.test.labels != 1) & (np.arange(90) > 20)))
    data = Dataset("noisy", whole.train, test, whole.names)
    learner, _ = learner_of(data, model=model)
    evaluation = learner.evaluate(learner.init(STREAMS))
    assert np.isnan(evaluation.class_accuracy).tolist() == [False, True, False]
    counts = np.bincount(test.labels, minlength=3)
    kept = evaluation.class_accuracy[[0, 2]] @ counts[[0, 2]] / len(test)
    assert evaluation.accuracy == pytest.approx(kept, abs=1e-12)


def federated(learner, rounds):
    """All UEs take part in every round."""
    model = learner.init(STREAMS)
    everyone = np.arange(learner.sizes.size)
    for t in range(rounds):
        model, _ = average(learner.train(model, everyone, t, STREAMS), learner.sizes, model)
    return model


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("penalty", ["l2", "l1"])
def test_every_loss_approaches_its_optimum(loss, penalty):
    """P(w) falls from the start to within 3% of the optimum that SciPy finds."""
    data = dataset(zeros=0.2)
    x, labels = data.train.values().astype(np.float64), data.train.labels
    learner, _ = learner_of(
        data, model=linear(loss), penalty=penalised(penalty, 0.05), local_steps=20,
        step_size=0.05, step_decay=0.05, batch_size=5,
    )  # fmt: skip
    start = learner.init(STREAMS)
    reached = federated(learner, 300)
    # Some of these are not smooth: the search starts from both ends and keeps the better.
    best = min(
        minimize(
            lambda w: twin.objective(told(learner), w.reshape(10, 3), x, labels),
            begin.astype(np.float64),
            method="Powell" if penalty == "l1" or loss == "hinge" else "L-BFGS-B",
            options={"maxiter": 20_000},
        ).fun
        for begin in (start, reached)
    )
    assert learner.objective(reached) <= best * 1.03
    assert learner.objective(reached) < 0.9 * learner.objective(start)


def test_kmeans_finds_separate_clusters():
    rng = np.random.default_rng(5)
    means = 6 * np.eye(4, 6)
    labels = np.arange(400) % 4
    points = Samples((means[labels] + 0.3 * rng.normal(size=(400, 6))).astype(np.float32), labels)
    data = Dataset("separate", points, points, tuple("abcd"))
    learner, _ = learner_of(data, model=kmeans(4), penalty="none", step_size=0.1, step_decay=0.2)
    starts = [Streams(seed) for seed in range(20)]
    found = next(s for s in starts if learner.evaluate(learner.init(s)).accuracy == 1.0)
    model = learner.init(found)
    for t in range(60):
        trained = learner.train(model, np.arange(3), t, found)
        model, _ = average(trained, learner.sizes, model)
    own_means = np.stack([points.features[labels == c].mean(0) for c in range(4)])
    best = ((points.features - own_means[labels]) ** 2).sum(1).mean() / 2
    assert learner.objective(model) <= 1.01 * best


def test_svm_on_mnist_learns_what_a_central_one_does():
    """All UEs take part; scikit-learn's LinearSVC sees all 60,000 images at once."""
    from sklearn.svm import LinearSVC

    data = Mnist().load()
    partition = iid(data.train.labels, equal_shares(100), np.random.default_rng(0))
    settings = settings_of(
        penalty=penalised("l2", 1e-5), local_steps=600, step_size=0.02, step_decay=0.3
    )
    learner = settings.learner(data, partition)
    reached = learner.evaluate(federated(learner, 25)).accuracy
    central = LinearSVC(C=0.01, loss="hinge", tol=0.05, random_state=0)
    central.fit(csr_matrix(data.train.values()), data.train.labels)
    expected = central.score(csr_matrix(data.test.values()), data.test.labels)
    assert 0.91 < expected < 0.93
    assert abs(reached - expected) < 0.01


def test_a_ues_update_depends_on_nobody_else():
    learner, _ = learner_of(dataset(), ues=5)
    start = learner.init(STREAMS)
    together = learner.train(start, np.array([4, 1, 3]), 6, STREAMS)
    alone = learner.train(start, np.array([3]), 6, STREAMS)
    np.testing.assert_array_equal(together[2], alone[0])
    assert not np.array_equal(learner.train(start, np.array([3]), 7, STREAMS)[0], alone[0])


def test_average_and_diversity_by_hand():
    rng = np.random.default_rng(3)
    start = rng.normal(size=37).astype(np.float32)
    models = rng.normal(size=(4, 37)).astype(np.float32)
    sizes = np.array([10, 30, 5, 55])
    mean, diversity = average(models, sizes, start)
    np.testing.assert_allclose(mean, (sizes / 100) @ models, rtol=1e-5, atol=1e-6)
    updates = models.astype(np.float64) - start
    expected = (updates**2).sum() / (updates.sum(0) ** 2).sum()
    assert diversity == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("size", [1, 15, 16, 37, 7850])
def test_what_is_not_finite_is_found_anywhere(size):
    params = np.full(size, 3e38, np.float32)
    assert is_finite(params)
    for at in {0, size // 2, size - 1}:
        for value in (np.nan, np.inf, -np.inf):
            spoilt = params.copy()
            spoilt[at] = value
            assert not is_finite(spoilt)


def test_average_of_nothing_and_of_what_cancels():
    start = np.ones(20, np.float32)
    kept, diversity = average(np.empty((0, 20), np.float32), np.empty(0, np.int64), start)
    assert kept is start
    assert diversity is None
    apart = np.stack((start + 1, start - 1)).astype(np.float32)
    assert average(apart, np.array([1, 1]), start)[1] is None
    same = np.stack((start + 1, start + 1)).astype(np.float32)
    assert average(same, np.array([1, 1]), start)[1] == pytest.approx(0.5)


def test_too_many_clusters():
    with pytest.raises(ValueError, match="91 clusters, but only 90"):
        learner_of(dataset(), model=kmeans(91))[0].init(STREAMS)


def test_an_empty_ue_is_named():
    data = dataset()
    partition = Partition(np.arange(90), np.array([0, 40, 40, 90]))
    with pytest.raises(ValueError, match="UE 1 has no samples"):
        tiny().learn.learner(data, partition)
