# mypy: ignore-errors
"""FedJAX: its federated averaging (`fedjax.algorithms.fed_avg`) and `fedjax.evaluate_model`.

Clients run one after the other, compiled by XLA: FedJAX's own default on processors without
accelerators. It keeps about one core busy.
"""

from importlib.metadata import version

import fedjax
import haiku as hk
import jax
import jax.numpy as jnp
from fedjax.algorithms import fed_avg

from benchmarks.peers import common

WORKLOAD = common.chosen_workload()


def network(x):
    """The scores of rows of 784 pixels, as Haiku has it."""
    if WORKLOAD.model == "linear":
        return hk.Linear(common.CLASSES, w_init=jnp.zeros)(x)
    if WORKLOAD.model == "mlp":
        return hk.nets.MLP([200, 200, common.CLASSES])(x)
    x = x.reshape(-1, 28, 28, 1)
    for channels, padding in ((6, "SAME"), (16, "VALID")):
        x = jax.nn.relu(hk.Conv2D(channels, 5, padding=padding)(x))
        x = hk.max_pool(x, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    return hk.nets.MLP([120, 84, common.CLASSES])(x.reshape(len(x), -1))


NETWORK = hk.without_apply_rng(hk.transform(network))


def scores(params, batch):
    """``scores[sample, class]``."""
    return NETWORK.apply(params, batch["x"])


def loss(params, batch, _rng):
    """The mean one-versus-rest hinge loss plus the penalty, or the cross-entropy."""
    found = scores(params, batch)
    right = batch["y"][:, None] == jnp.arange(common.CLASSES)
    if WORKLOAD.model != "linear":
        return -(right * jax.nn.log_softmax(found)).sum(1).mean()
    hinge = jnp.maximum(0, 1 - jnp.where(right, 1.0, -1.0) * found).sum(1).mean()
    return hinge + WORKLOAD.penalty / 2 * (params["linear"]["w"] ** 2).sum()


def main() -> None:
    """Measure."""
    meter = common.Meter()
    features, labels = common.load("xtrain"), common.load("ytrain")
    fedjax.set_for_each_client_backend("jit")
    clients = fedjax.InMemoryFederatedData(
        {
            k: {"x": features[common.rows_of(k)], "y": labels[common.rows_of(k)]}
            for k in range(common.CLIENTS)
        }
    )
    test = fedjax.ClientDataset({"x": common.load("xtest"), "y": common.load("ytest")})
    test_batches = list(test.padded_batch(batch_size=len(test)))
    model = fedjax.Model(
        init=None,
        apply_for_train=None,
        apply_for_eval=scores,
        train_loss=None,
        eval_metrics={"accuracy": fedjax.metrics.Accuracy()},
    )
    algorithm = fed_avg.federated_averaging(
        grad_fn=jax.grad(loss),
        client_optimizer=fedjax.optimizers.sgd(WORKLOAD.step_size),
        server_optimizer=fedjax.optimizers.sgd(1.0),
        client_batch_hparams=fedjax.ShuffleRepeatBatchHParams(
            batch_size=WORKLOAD.batch, num_steps=WORKLOAD.steps, num_epochs=None
        ),
    )
    sampler = fedjax.client_samplers.UniformGetClientSampler(clients, common.COHORT, seed=1)
    state = algorithm.init(NETWORK.init(jax.random.PRNGKey(1), features[:2]))

    going = True
    while going:
        state, _ = algorithm.apply(state, sampler.sample())
        accuracy = None
        if meter.evaluation_is_due:
            measured = fedjax.evaluate_model(model, state.params, test_batches)
            accuracy = float(measured["accuracy"])
        going = meter.after_round(accuracy)
    meter.finish(f"{version('fedjax')}, jax {jax.__version__}")


if __name__ == "__main__":
    main()
