# mypy: ignore-errors
"""The models of the workloads in PyTorch, for the frameworks that use it."""

import torch
from torch import nn

from benchmarks.peers import common


def network(model: str) -> nn.Module:
    """A module that takes rows of 784 pixels."""
    if model == "mlp":
        return nn.Sequential(
            nn.Linear(common.FEATURES, 200), nn.ReLU(), nn.Linear(200, 200), nn.ReLU(),
            nn.Linear(200, common.CLASSES),
        )  # fmt: skip
    if model == "lenet5":
        return nn.Sequential(
            nn.Unflatten(1, (1, 28, 28)),
            nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
            nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(),
            nn.Linear(84, common.CLASSES),
        )  # fmt: skip
    linear = nn.Linear(common.FEATURES, common.CLASSES)
    nn.init.zeros_(linear.weight)
    nn.init.zeros_(linear.bias)
    return linear


class Hinge(nn.Module):
    """The mean one-versus-rest hinge loss; the penalty is the optimizer's weight decay."""

    def __init__(self) -> None:
        super().__init__()
        self.classes = torch.arange(common.CLASSES)

    def forward(self, scores, labels):
        """The loss of ``scores[sample, class]``."""
        signs = torch.where(labels[:, None] == self.classes, 1.0, -1.0)
        return torch.clamp(1 - signs * scores, min=0).sum(1).mean()


def loss_class(model: str) -> type[nn.Module]:
    """The loss of a model."""
    return Hinge if model == "linear" else nn.CrossEntropyLoss
