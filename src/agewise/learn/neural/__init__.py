"""PyTorch modules as learners; only what needs PyTorch is here."""

from agewise.learn.neural.learner import TorchLearner, length_of
from agewise.learn.neural.modules import BUILT_IN

__all__ = ["BUILT_IN", "TorchLearner", "length_of"]
