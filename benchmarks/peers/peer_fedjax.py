# mypy: ignore-errors
"""FedJAX: its federated averaging (`fedjax.algorithms.fed_avg`) and `fedjax.evaluate_model`.

Clients run one after the other, compiled by XLA: FedJAX's own default on processors without
accelerators. It keeps about one core busy.
"""

from importlib.metadata import version

import fedjax
import jax
import jax.numpy as jnp
from fedjax.algorithms import fed_avg

from benchmarks.peers import common


def scores(params, batch):
    """``scores[sample, class]``."""
    return batch["x"] @ params["w"] + params["b"]


def loss(params, batch, _rng):
    """The mean one-versus-rest hinge loss plus the penalty."""
    signs = jnp.where(batch["y"][:, None] == jnp.arange(common.CLASSES), 1.0, -1.0)
    hinge = jnp.maximum(0, 1 - signs * scores(params, batch)).sum(1).mean()
    return hinge + common.PENALTY / 2 * (params["w"] ** 2).sum()


def main() -> None:
    """Measure."""
    steps, batch = common.chosen_workload()
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
        client_optimizer=fedjax.optimizers.sgd(common.STEP_SIZE),
        server_optimizer=fedjax.optimizers.sgd(1.0),
        client_batch_hparams=fedjax.ShuffleRepeatBatchHParams(
            batch_size=batch, num_steps=steps, num_epochs=None
        ),
    )
    sampler = fedjax.client_samplers.UniformGetClientSampler(clients, common.COHORT, seed=1)
    state = algorithm.init(
        {"w": jnp.zeros((common.FEATURES, common.CLASSES)), "b": jnp.zeros(common.CLASSES)}
    )

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
