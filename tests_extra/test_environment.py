"""The second environment has what these tests are about."""

import flwr
import torch


def test_flower_and_torch_are_there():
    assert flwr.__version__.startswith("1.")
    assert torch.ones(2).sum().item() == 2.0
