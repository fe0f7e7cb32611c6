"""Hypothesis is seeded: the same examples on every run and machine."""

from hypothesis import settings

settings.register_profile("agewise", derandomize=True, deadline=None, max_examples=300)
settings.load_profile("agewise")
