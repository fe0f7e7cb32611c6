"""The section ``run`` of a scenario: how long a run is, and what is measured on the way."""

from typing import Annotated, Literal

from pydantic import Field

from agewise.part import MOST, MOST_STEPS, Kinds, Part


class OptimumSampling(Part):
    """In which rounds the optimum of problem (3) is worked out beside what the policy chose."""

    kind: str = ""

    def work_in(self, t: int) -> int | None:
        """Steps of the search in round ``t``; ``None`` where there is none."""
        raise self.lacks("work_in")


class NoOptimum(OptimumSampling):
    """The optimum of problem (3) is not worked out."""

    kind: Literal["never"] = "never"

    def work_in(self, t: int) -> int | None:
        """Never search."""
        return None


class SampledOptimum(OptimumSampling):
    """The optimum of problem (3) is worked out in some rounds, beside what the policy chose."""

    kind: Literal["sampled"] = "sampled"
    every: int = Field(ge=1, le=MOST, description="in every n-th round")
    work_limit: int = Field(
        ge=0, le=MOST_STEPS, description="steps of the search in a round, about a million a second"
    )

    def work_in(self, t: int) -> int | None:
        """Search in every n-th round."""
        return None if (t + 1) % self.every else self.work_limit


class Measurement(Part):
    """How long a run is, and what is measured on the way."""

    rounds: int = Field(ge=1, le=MOST, description="T, communication rounds")
    evaluate_every: int = Field(
        ge=1,
        le=MOST,
        description="accuracy and test loss after every n-th round, and after the last",
    )
    objective_every: int = Field(
        ge=0,
        le=MOST,
        description="P(w) on all training samples after every n-th round; 0 for never",
    )
    optimum: Annotated[OptimumSampling, Kinds] = Field(
        description="the best that any policy could have scheduled"
    )
    age_alpha: float = Field(ge=-10, le=1, description="alpha of the recorded cost of the ages")

    def evaluates(self, t: int) -> bool:
        """Tell whether the model is evaluated after round ``t``."""
        return t + 1 == self.rounds or (t + 1) % self.evaluate_every == 0

    def weighs(self, t: int) -> bool:
        """Tell whether P(w) is worked out after round ``t``."""
        every = self.objective_every
        return every > 0 and (t + 1 == self.rounds or (t + 1) % every == 0)
