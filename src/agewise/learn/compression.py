"""Lossy codes of updates: what the access point gets of what UEs have learned."""

from collections.abc import Mapping
from typing import Final, Literal

import numpy as np
from pydantic import Field

from agewise.core import compression as kernels
from agewise.learn.updates import ArraySpec, LocalModels, Params, State, StatefulPart

#: Bits of one weight as it is learned.
_WEIGHT_BITS: Final = 32
_FEEDBACK: Final = "whether a UE adds what was not sent to its next update"


class Compression(StatefulPart):
    """A lossy code of updates.

    A code of your own has the methods ``send`` and ``payload_bits``, and ``state_spec`` if it keeps
    anything, such as what was not sent.
    """

    kind: str = ""

    def send(self, state: State, sent: LocalModels, key: np.uint64) -> tuple[Params, State]:
        """Give what arrives of these models, ``[len(ues), length]``, and the state after it.

        ``key`` decides what is left to chance. Only UEs whose update arrives are sent, and only
        their state may change. The models are handed over too.
        """
        raise self.lacks("send")

    def payload_bits(self, length: int) -> float:
        """Count the bits of an update to a model of ``length`` weights."""
        raise self.lacks("payload_bits")


class NoCompression(Compression):
    """Updates are sent as they are: 32 bits a weight."""

    kind: Literal["none"] = "none"

    def send(self, state: State, sent: LocalModels, key: np.uint64) -> tuple[Params, State]:
        """Send the models as they are."""
        return sent.models, state

    def payload_bits(self, length: int) -> float:
        """Count 32 bits a weight."""
        return float(_WEIGHT_BITS * length)


class Qsgd(Compression):
    """Weights of an update rounded at random to 2^bits levels (QSGD, Alistarh et al. 2017).

    A weight v of an update of length r becomes r sign(v) l / s, where s = 2^bits - 1 is the last
    level and l one of the two whole numbers around ``s |v| / r``, drawn so that the mean is v.
    """

    kind: Literal["qsgd"] = "qsgd"
    bits: int = Field(ge=1, le=16, description="b, bits for the magnitude of a weight")

    def send(self, state: State, sent: LocalModels, key: np.uint64) -> tuple[Params, State]:
        """Round the updates."""
        models, levels = np.ascontiguousarray(sent.models), 2.0**self.bits - 1.0
        kernels.round_at_random(models, sent.start, sent.ues, levels, key, sent.t)
        return models, state

    def payload_bits(self, length: int) -> float:
        """Count magnitude and sign of each weight, and the length of the update."""
        return float(length * (self.bits + 1) + _WEIGHT_BITS)


class TopK(Compression):
    """Only the largest weights of an update are sent (Stich et al. 2018)."""

    kind: Literal["top-k"] = "top-k"
    share: float = Field(gt=0, le=1, description="k / n, the share of the weights that are sent")
    error_feedback: bool = Field(default=True, description=_FEEDBACK)

    def state_spec(self, ues: int, length: int) -> Mapping[str, ArraySpec]:
        """Keep what was not sent, with error feedback."""
        return _unsent(ues if self.error_feedback else 0, length)

    def send(self, state: State, sent: LocalModels, key: np.uint64) -> tuple[Params, State]:
        """Send the largest weights, of the update and what was left of earlier ones."""
        models, count = np.ascontiguousarray(sent.models), self.kept_weights(sent.start.size)
        kernels.keep_largest(models, sent.start, sent.ues, state["unsent"], count)
        return models, state

    def payload_bits(self, length: int) -> float:
        """Count the value and the index of each weight that is sent."""
        return float(self.kept_weights(length) * (_WEIGHT_BITS + (length - 1).bit_length()))

    def kept_weights(self, length: int) -> int:
        """Count the weights that are sent: the nearest number, and at least one.

        >>> TopK(share=0.01).kept_weights(7850), TopK(share=0.001).kept_weights(100)
        (78, 1)
        """
        return max(1, round(self.share * length))


class Sign(Compression):
    """Only the signs of an update are sent, and their mean magnitude (Karimireddy et al. 2019)."""

    kind: Literal["sign"] = "sign"
    error_feedback: bool = Field(default=True, description=_FEEDBACK)

    def state_spec(self, ues: int, length: int) -> Mapping[str, ArraySpec]:
        """Keep what was not sent, with error feedback."""
        return _unsent(ues if self.error_feedback else 0, length)

    def send(self, state: State, sent: LocalModels, key: np.uint64) -> tuple[Params, State]:
        """Send the scaled signs, of the update and what was left of earlier ones."""
        models = np.ascontiguousarray(sent.models)
        kernels.keep_signs(models, sent.start, sent.ues, state["unsent"])
        return models, state

    def payload_bits(self, length: int) -> float:
        """Count a bit for each weight, and the magnitude."""
        return float(length + _WEIGHT_BITS)


def _unsent(ues: int, length: int) -> Mapping[str, ArraySpec]:
    return {"unsent": ArraySpec((ues, length), np.float32)}
