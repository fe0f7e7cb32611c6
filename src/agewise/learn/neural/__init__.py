"""PyTorch modules as learners; only what needs PyTorch is here."""

from agewise.learn.neural.learner import TorchLearner, length_of

__all__ = ["TorchLearner", "length_of"]
