# mypy: ignore-errors
# ruff: noqa: E402
"""fluke: `FedAVG` with a PyTorch model, one thread.

fluke counts epochs, not steps. Batches of ten make an epoch of the 600 samples of a client; for
batches of 32 every client gets 640 rows, so that an epoch has 20 of them; for single samples the
loader draws 50 of the 600.
"""

import os
import sys
from importlib.metadata import version
from unittest.mock import MagicMock

os.environ.update(WANDB_MODE="disabled", WANDB_DISABLED="true")
# fluke imports torchvision for data sets that are not used here, and the registry's build of it
# does not load beside PyTorch's build for CPUs.
for _name in ("", ".datasets", ".models", ".transforms", ".transforms.functional"):
    sys.modules[f"torchvision{_name}"] = MagicMock()

import torch
from fluke import DDict, FlukeENV
from fluke.algorithms.fedavg import FedAVG
from fluke.data import DataSplitter, DummyDataContainer, FastDataLoader
from fluke.evaluation import ClassificationEval
from fluke.server import EarlyStopping
from fluke.utils import FederationObserver

from benchmarks.peers import common, networks

WORKLOAD = common.chosen_workload()


def loader(features, labels, client: int) -> FastDataLoader:
    """The batches of a client."""
    first, batch = client * common.SAMPLES, WORKLOAD.batch
    count = WORKLOAD.steps * batch if batch > 1 else common.SAMPLES
    rows = torch.arange(first, first + count) % len(labels)
    found = FastDataLoader(
        features[rows],
        labels[rows],
        num_labels=common.CLASSES,
        batch_size=batch,
        shuffle=True,
        skip_singleton=False,
        percentage=1.0 if batch > 1 else WORKLOAD.steps / common.SAMPLES,
    )
    if len(found) != WORKLOAD.steps:
        raise RuntimeError(f"{len(found)} steps in place of {WORKLOAD.steps}")
    return found


class Clock(FederationObserver):
    """Tells the meter of rounds and accuracies."""

    def __init__(self, meter: common.Meter) -> None:
        self._meter, self._accuracy = meter, None

    def server_evaluation(self, round, eval_type, evals, **_):  # noqa: A002
        """What the server found on the test images."""
        if eval_type == "global" and "accuracy" in evals:
            self._accuracy = float(evals["accuracy"])

    def end_round(self, round):  # noqa: A002
        """A round is over."""
        due = self._meter.evaluation_is_due
        if not self._meter.after_round(self._accuracy if due else None):
            raise EarlyStopping(round)


def main() -> None:
    """Measure."""
    meter = common.Meter()
    torch.set_num_threads(1)
    features, labels, test_features, test_labels = (
        torch.from_numpy(common.load(name)) for name in ("xtrain", "ytrain", "xtest", "ytest")
    )
    settings = FlukeENV()
    settings.set_seed(1)
    settings.set_device("cpu")
    settings.set_evaluator(
        ClassificationEval(eval_every=common.EVALUATE_EVERY, n_classes=common.CLASSES)
    )
    settings.set_eval_cfg(pre_fit=False, post_fit=False, locals=False, server=True)
    test = FastDataLoader(test_features, test_labels, num_labels=common.CLASSES, batch_size=10000)
    clients = [loader(features, labels, k) for k in range(common.CLIENTS)]
    data = DummyDataContainer(clients, [None] * common.CLIENTS, test, common.CLASSES)
    optimiser = DDict(name="SGD", lr=WORKLOAD.step_size, weight_decay=WORKLOAD.penalty)
    client = DDict(
        batch_size=WORKLOAD.batch,
        local_epochs=1,
        loss=networks.loss_class(WORKLOAD.model),
        optimizer=optimiser,
        scheduler=DDict(name="StepLR", gamma=1, step_size=1),
    )
    chosen = DDict(
        client=client, server=DDict(weighted=True), model=networks.network(WORKLOAD.model)
    )
    algorithm = FedAVG(common.CLIENTS, DataSplitter(data), chosen)
    algorithm.set_callbacks([Clock(meter)])
    algorithm.finalize = lambda: None
    sys.stdout.flush()
    kept, nowhere = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)  # its progress bar
    try:
        algorithm.run(10**6, common.COHORT / common.CLIENTS)
    finally:
        os.dup2(kept, 1)
    meter.finish(f"{version('fluke-fl')}, torch {torch.__version__}")


if __name__ == "__main__":
    main()
