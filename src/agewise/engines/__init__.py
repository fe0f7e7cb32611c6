"""Where runs happen: this process, local processes, a Ray cluster."""

from agewise.engines.base import Engine, Inline
from agewise.engines.local import Local
from agewise.engines.ray import Ray

__all__ = ["Engine", "Inline", "Local", "Ray", "make_engine"]

NAMES = ("local", "inline", "ray")


def make_engine(
    engine: str | Engine, workers: int | None = None, address: str | None = None
) -> Engine:
    """An engine by name, or an engine object as it is."""
    if not isinstance(engine, str):
        if workers is not None or address is not None:
            raise ValueError("workers and an address go with an engine by name, not an object")
        return engine
    if engine not in NAMES:
        raise ValueError(f"unknown engine {engine!r}; there are {', '.join(NAMES)}")
    if address is not None and engine != "ray":
        raise ValueError("an address goes with the engine ray")
    if workers is not None and engine != "local":
        raise ValueError("workers go with the engine local")
    if workers is not None and workers < 1:
        raise ValueError(f"workers must be at least 1, not {workers}")
    if engine == "ray":
        return Ray(address)
    return Inline() if engine == "inline" else Local(workers)
