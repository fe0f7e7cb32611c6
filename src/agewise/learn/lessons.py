"""What the access point learns about the UEs from the updates that arrive."""

from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agewise.learn.base import Learner, Params


def lessons(
    wanted: Collection[str], learner: Learner, start: Params, models: Params, ues: NDArray[np.int64]
) -> dict[Any, NDArray[np.float64]]:
    """The wanted of ``losses``, ``update_norms`` and ``dissimilarities`` of ``ues``.

    ``models[i]`` is what ``ues[i]`` made of ``start``. The loss is the mean over the UE's samples
    of what ``start`` costs there; the dissimilarity is one minus the cosine between its update
    and the sum of all of them, and 0 where either has no length.
    """
    heard: dict[Any, NDArray[np.float64]] = {}
    if "losses" in wanted:
        heard["losses"] = learner.losses(start, ues)
    updates = models.astype(np.float64) - start
    norms = np.sqrt((updates * updates).sum(axis=1))
    if "update_norms" in wanted:
        heard["update_norms"] = norms
    if "dissimilarities" in wanted:
        together = updates.sum(axis=0)
        lengths = norms * np.sqrt((together * together).sum())
        inner = (updates * together).sum(axis=1)
        cosines = np.divide(inner, lengths, out=np.ones_like(norms), where=lengths > 0)
        heard["dissimilarities"] = 1.0 - np.clip(cosines, -1.0, 1.0)
    return heard
