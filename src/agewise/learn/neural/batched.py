"""Many UEs at once by ``torch.func.vmap``, which is how a GPU is kept busy by small modules.

This is for plain SGD on modules without buffers that draw no random numbers; others train one UE
after another. The company of other UEs may change the last bits of a UE's model here, because
kernels for batches of matrices may add in another order.
"""

import copy
from typing import Any

from agewise.dependencies import require
from agewise.learn.neural.training import Descent, Loss

torch: Any = require("torch", "torch")


def can_batch(prototype: Any, descent: Descent) -> bool:
    """Whether UEs can be trained together."""
    return descent.optimiser is None and not list(prototype.buffers())


class Batched:
    """A module that is called with the parameters of many UEs, the rows of a matrix."""

    def __init__(self, prototype: Any, device: str, loss: Loss) -> None:
        self._module = copy.deepcopy(prototype).to(device).train()
        # As in a replica: those that learn first.
        self._named = sorted(
            self._module.named_parameters(), key=lambda pair: not pair[1].requires_grad
        )
        self._sizes = [each.numel() for _, each in self._named]
        self.trainable = sum(each.numel() for _, each in self._named if each.requires_grad)

        def cost(learning: Any, rest: Any, inputs: Any, labels: Any) -> Any:
            parts = torch.cat([learning, rest]).split(self._sizes)
            values = {
                name: part.view(own.shape)
                for (name, own), part in zip(self._named, parts, strict=True)
            }
            return loss(torch.func.functional_call(self._module, values, (inputs,)), labels)

        # Random numbers under vmap would not be a UE's own: they are an error.
        self._slopes = torch.func.vmap(torch.func.grad(cost), randomness="error")

    def train(
        self, flat: Any, batches: Any, descent: Descent, step_size: float, added: Any | None
    ) -> Any:
        """``[ue, length]`` from ``flat[ue, length]`` after a step for each batch.

        ``batches`` gives ``inputs[ue, sample, ...]`` and ``labels[ue, sample]``; ``added`` are
        corrections of the gradients. ``RuntimeError`` if the module draws random numbers.
        """
        learning, rest = flat[:, : self.trainable].clone(), flat[:, self.trainable :]
        start = learning.clone() if descent.proximal_weight else None
        for inputs, labels in batches:
            gradient = self._slopes(learning, rest, inputs, labels)
            descent.pull(gradient, learning, start, added)
            learning.sub_(gradient, alpha=step_size)
        return torch.cat([learning, rest], dim=1)
