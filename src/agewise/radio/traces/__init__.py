"""Channels in files: our own gains, and what simulators, ray tracers and drive tests write."""

from agewise.radio.traces.formats import guessed, open_gains, open_trace
from agewise.radio.traces.trace import Size, Trace, as_block

__all__ = ["Size", "Trace", "as_block", "guessed", "open_gains", "open_trace"]
