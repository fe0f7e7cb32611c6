"""Modules as users write them, for samples of 20 numbers in ten classes."""

import torch
from torch import nn


def with_dropout():
    return nn.Sequential(nn.Linear(20, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 10))


def with_batch_norm():
    return nn.Sequential(nn.Linear(20, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 10))


def linear():
    return nn.Linear(20, 10)


class Tied(nn.Module):
    """One matrix in two places, a frozen scale, a counter, and no bias."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(20, 20, bias=False), nn.Linear(20, 20, bias=False)
        self.second.weight = self.first.weight
        self.scale = nn.Parameter(torch.tensor(0.5), requires_grad=False)
        self.register_buffer("steps", torch.tensor(3))

    def forward(self, x):
        if self.training:
            self.steps += 1
        return (self.scale * self.second(torch.relu(self.first(x))))[:, :10] / self.steps


class Partly(nn.Module):
    """A frozen layer before one that learns."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(20, 8), nn.Linear(8, 10)
        self.first.requires_grad_(False)

    def forward(self, x):
        return self.second(torch.relu(self.first(x)))


class Sometimes(nn.Module):
    """Draws random numbers only on some batches."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(20, 10)

    def forward(self, x):
        noisy = self.training and bool(x.sum() > 0)
        return self.layer(x + 0.1 * torch.randn_like(x) if noisy else x)


def no_parameters():
    return nn.Flatten()


class IntegerWeights(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(20, 10, dtype=torch.int64), requires_grad=False)

    def forward(self, x):
        return x @ self.w.float()


def five_classes():
    return nn.Linear(20, 5)


def wrong_width():
    return nn.Linear(21, 10)


def doubles():
    return _Double()


class _Double(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(20, 10).double()

    def forward(self, x):
        return self.layer(x.double()).float()


def frozen():
    return nn.Linear(20, 10).requires_grad_(False)


def not_a_module():
    return 3


def broken():
    raise RuntimeError("no such layer")
