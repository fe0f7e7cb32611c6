# mypy: ignore-errors
"""pfl (pfl-research): `FederatedAveraging` on `SimulatedBackend` with a PyTorch model.

One thread: a second one makes it no faster at this size. pfl neither shuffles a client's samples
nor starts over at their end, so the data set draws the batches of a visit at random.
"""

import pfl
import torch
from numpy.random import default_rng
from pfl.aggregate.simulate import SimulatedBackend
from pfl.aggregate.weighting import WeightByDatapoints
from pfl.algorithm.base import NNAlgorithmParams
from pfl.algorithm.federated_averaging import FederatedAveraging
from pfl.callback.base import TrainingProcessCallback
from pfl.callback.central_evaluation import CentralEvaluationCallback
from pfl.data.federated_dataset import FederatedDataset
from pfl.data.pytorch import PyTorchTensorDataset
from pfl.hyperparam.base import NNEvalHyperParams, NNTrainHyperParams
from pfl.metrics import Metrics, Weighted, get_overall_value
from pfl.model.pytorch import PyTorchModel

from benchmarks.peers import common, networks

WORKLOAD = common.chosen_workload()


class Net(torch.nn.Module):
    """The model with its loss and metrics under the names that pfl looks for."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = networks.network(WORKLOAD.model)
        self.cost = networks.loss_class(WORKLOAD.model)()

    def loss(self, x, y):
        """The mean loss."""
        return self.cost(self.inner(x), y)

    @torch.no_grad()
    def metrics(self, x, y):
        """The accuracy."""
        right = (self.inner(x).argmax(1) == y).sum().item()
        return {"accuracy": Weighted(right, len(y))}


class RandomBatches(PyTorchTensorDataset):
    """A client's data: as many of its batches at random as it makes steps."""

    steps = WORKLOAD.steps

    def iter(self, batch_size):
        """The batches of one visit."""
        if batch_size is None or batch_size not in self._batches:
            for _ in super().iter(batch_size):  # fills the cache
                pass
        batches = self._batches[batch_size]
        for number in torch.randint(len(batches), (self.steps,)).tolist():
            yield batches[number]


class Cohorts:
    """Ten different clients for each round, asked for one by one."""

    def __init__(self) -> None:
        self._rng = default_rng(1)
        self._left = []

    def __call__(self) -> int:
        """The next client."""
        if not self._left:
            self._left = list(self._rng.choice(common.CLIENTS, common.COHORT, replace=False))
        return int(self._left.pop())


class Clock(TrainingProcessCallback):
    """Lets pfl evaluate after every tenth round and tells the meter."""

    def __init__(self, meter: common.Meter, evaluation: CentralEvaluationCallback) -> None:
        self._meter, self._evaluation = meter, evaluation

    def after_central_iteration(self, aggregate_metrics, model, *, central_iteration):
        """Whether to stop, and the metrics of this round."""
        _, metrics = self._evaluation.after_central_iteration(
            aggregate_metrics, model, central_iteration=central_iteration + 1
        )
        accuracy = None
        if self._meter.evaluation_is_due:
            (accuracy,) = (
                get_overall_value(value) for name, value in metrics if "accuracy" in str(name)
            )
        return not self._meter.after_round(accuracy), Metrics()


def main() -> None:
    """Measure."""
    meter = common.Meter()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    features, labels, test_features, test_labels = (
        torch.from_numpy(common.load(name)) for name in ("xtrain", "ytrain", "xtest", "ytest")
    )
    users = [
        RandomBatches((features[common.rows_of(k)], labels[common.rows_of(k)]))
        for k in range(common.CLIENTS)
    ]
    data = FederatedDataset(lambda user: users[user], Cohorts())
    evaluation = CentralEvaluationCallback(
        PyTorchTensorDataset((test_features, test_labels)),
        model_eval_params=NNEvalHyperParams(local_batch_size=len(test_labels)),
        frequency=common.EVALUATE_EVERY,
    )
    net = Net()
    FederatedAveraging().run(
        NNAlgorithmParams(
            central_num_iterations=10**6,
            evaluation_frequency=10**9,
            train_cohort_size=common.COHORT,
            val_cohort_size=0,
        ),
        SimulatedBackend(training_data=data, val_data=data, postprocessors=[WeightByDatapoints()]),
        PyTorchModel(
            net,
            lambda parameters, lr: torch.optim.SGD(
                parameters, lr=lr, weight_decay=WORKLOAD.penalty
            ),
            torch.optim.SGD(net.parameters(), lr=1.0),
        ),
        NNTrainHyperParams(
            local_num_epochs=None,
            local_num_steps=WORKLOAD.steps,
            local_learning_rate=WORKLOAD.step_size,
            local_batch_size=WORKLOAD.batch,
        ),
        NNEvalHyperParams(local_batch_size=None),
        [Clock(meter, evaluation)],
    )
    meter.finish(f"{pfl.__version__}, torch {torch.__version__}")


if __name__ == "__main__":
    main()
