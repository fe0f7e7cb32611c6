"""PyTorch modules as learners; only what needs PyTorch is here."""

from agewise.learn.neural.learner import TorchLearner

__all__ = ["TorchLearner"]
