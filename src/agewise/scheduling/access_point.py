"""The access point: who uploads in each round, and what is remembered of every UE."""

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agewise.age import check_ages, next_ages
from agewise.checks import short, whole_number
from agewise.core.proof import IN_TIME
from agewise.random import Streams
from agewise.scheduling._roster import Column, Roster
from agewise.scheduling.policy import Feedback, Policy, Report, RoundView, State
from agewise.scheduling.retry import NoPause, Retry
from agewise.spectrum import Allocation, InfeasibleAllocation, Uplink
from agewise.spectrum.uplink import read_only

_REPORTS: tuple[Report, ...] = get_args(Report)
#: What a new UE has in the columns of the roster.
_FILLS: dict[str, float] = {
    "ages": 0,
    "participation": 0,
    "attempts": 0,
    "failures": 0,  # in a row
    "resumes": 0,  # the round in which it is eligible again
    "data_sizes": 1,
    "compute_slots": 0.0,
    "threshold_slots": 1.0,
    "staleness": 0,
} | dict.fromkeys(_REPORTS, math.nan)
_PACKAGE = __name__.partition(".")[0]
_AT_ONCE = NoPause()
#: Before the names of the columns in which a policy's state is kept.
_STATE = "state."
#: Before the names of a policy's scalars in a snapshot.
_SCALAR = "scalar."


class AccessPoint:
    """Ages, policy state and feedback of a set of UEs; `plan` a round, then `receive` updates.

    ``ues`` is their number, or their ids, by which each is found again when it leaves and comes
    back (`set_present`); an absent UE goes on ageing. Ages are 0 at the start, as in the paper.
    An update that is not there after ``deadline_slots`` is lost, so policies only see the UEs
    that can make it; ``everyone_eligible`` leaves that to them. Where the channel is not known
    exactly, a ``margin`` in bits per real channel use is added to the rate threshold that policies
    must reach, so that fewer uploads fall below the threshold itself. ``retry`` says when a UE that
    was scheduled and not heard is eligible again.

    >>> from agewise.policies import AgeBased
    >>> access_point = AccessPoint(AgeBased(ties="lowest-index"), 3, Streams(0))
    >>> uplink = Uplink(np.array([[9.0], [8.0], [7.0]]), power_budget=1.0, rate_threshold=1.0)
    >>> for _ in range(3):
    ...     allocation = access_point.plan(uplink)
    ...     access_point.receive(allocation.ues)
    >>> access_point.ages
    array([2, 1, 0])
    """

    def __init__(
        self,
        policy: Policy,
        ues: int | Iterable[Hashable],
        streams: Streams,
        *,
        deadline_slots: float = math.inf,
        everyone_eligible: bool = False,
        margin: float = 0.0,
        retry: Retry = _AT_ONCE,
    ) -> None:
        if not isinstance(policy, Policy):
            raise ValueError(f"policy must be what make_policy makes, not {short(repr(policy))}")
        if not isinstance(streams, Streams):
            raise ValueError(f"streams must be Streams(seed), not {short(repr(streams))}")
        self.policy, self.streams, self.margin, self.retry = policy, streams, margin, retry
        self.deadline_slots, self.everyone_eligible = deadline_slots, everyone_eligible
        self.t = 0
        self._asked = self._pending = np.empty(0, np.int64)  # rows
        self._pauses = type(retry) is not NoPause
        self._failing = False  # whether the last attempt of any UE failed, where that counts
        self._best_gains = np.empty(0)  # of the UEs in the planned round
        rooms = {type(part).__module__.partition(".")[0] for part in (policy, policy.packing)}
        self._is_ours = rooms == {_PACKAGE}
        state = {_STATE + name: float(fill) for name, fill in policy.state_per_ue.items()}
        ids = ues if isinstance(ues, Iterable) else whole_number("ues", ues)
        self._roster = Roster(ids, _FILLS | state)
        self._scalars = {name: float(start) for name, start in policy.state_scalars.items()}

    @property
    def ids(self) -> Sequence[Hashable]:
        """The ids of the present UEs, in the order of their rows."""
        return self._roster.ids

    @property
    def ages(self) -> NDArray[np.int64]:
        """T[t]: the ages of the present UEs."""
        return self._roster.present("ages")

    @property
    def participation(self) -> NDArray[np.int64]:
        """Count the updates of each of the present UEs that have arrived."""
        return self._roster.present("participation")

    @property
    def feedback(self) -> Feedback:
        """Reports of the present UEs with their last updates."""
        return Feedback(*(self._roster.present(name) for name in _REPORTS))

    def set_present(self, ids: Iterable[Hashable]) -> None:
        """Say which UEs are there from now on, in the order of the rows of the next uplink."""
        self._roster.set_present(ids)

    def describe(
        self,
        *,
        ages: ArrayLike | None = None,
        data_sizes: NDArray[np.int64] | None = None,
        compute_slots: NDArray[np.float64] | None = None,
        threshold_slots: NDArray[np.float64] | None = None,
        staleness: NDArray[np.int64] | None = None,
        feedback: Feedback | None = None,
    ) -> None:
        """Set what is known of the present UEs, one number each; ``None`` leaves it as it is."""
        known: dict[str, Column | None] = {
            "data_sizes": data_sizes,
            "compute_slots": compute_slots,
            "threshold_slots": threshold_slots,
            "staleness": staleness,
        }
        if feedback is not None:
            known |= {name: getattr(feedback, name) for name in _REPORTS}
        if ages is not None:
            known["ages"] = check_ages(ages, len(self._roster))
        for name, values in known.items():
            if values is None:
                continue
            if values.shape != (len(self._roster),):
                raise ValueError(
                    f"{name} must have one entry for each of the {len(self._roster)} UEs, not "
                    f"shape {values.shape}"
                )
            self._roster.put(name, values)

    def snapshot(self) -> dict[str, Column]:
        """Copy the state as arrays for `restore`: columns ``[ue]``, scalars, the round.

        Rows are those of all UEs that were ever known, in the order in which they came.
        """
        scalars = {_SCALAR + name: np.array(value) for name, value in self._scalars.items()}
        return self._roster.columns | scalars | {"t": np.array(self.t)}

    def restore(self, snapshot: Mapping[str, Column]) -> None:
        """Go on where `snapshot` was taken, of the same policy and with the same UEs present."""
        expected = self.snapshot()
        if snapshot.keys() != expected.keys():
            odd = min(snapshot.keys() ^ expected.keys())
            raise ValueError(f"not a snapshot of the policy {self.policy}: {odd!r} does not fit")
        for name, values in snapshot.items():
            if (values.shape, values.dtype) != (expected[name].shape, expected[name].dtype):
                raise ValueError(
                    f"the snapshot has {values.size} entries of {name!r} ({values.dtype}), not "
                    f"{expected[name].size} ({expected[name].dtype}): it is of other UEs"
                )
            if name.startswith(_SCALAR):
                self._scalars[name.removeprefix(_SCALAR)] = float(values)
            elif name != "t":
                self._roster.columns[name] = read_only(np.array(values))
        self.t = whole_number("t", int(snapshot["t"]), 0, 2**31 - 1)
        self._failing = self._pauses and bool(self._roster.columns["failures"].any())

    def mask_ineligible(self, uplink: Uplink) -> Uplink:
        """Show policies an uplink on which those not eligible have gains of 0.

        A UE is in time if an upload at the rate threshold would be, begun when it has computed;
        after failures it sits out some rounds (`Retry`). The threshold that is shown is higher by
        the margin.
        """
        if self.margin > 0:
            threshold = uplink.rate_threshold + self.margin
            uplink = Uplink(uplink.gains, uplink.power_budget, threshold)
        return uplink if (out := self.sitting_out) is None else uplink.only(~out)

    @property
    def sitting_out(self) -> NDArray[np.bool_] | None:
        """``[ue]``: who is not eligible in the next round on any channel; ``None`` if nobody is."""
        present, out = self._roster.present, None
        if self._failing:
            out = present("resumes") > self.t
        if self.deadline_slots < math.inf and not self.everyone_eligible:
            there = present("compute_slots") + present("threshold_slots")
            late = there > self.deadline_slots * IN_TIME
            out = late if out is None else out | late
        return out

    def plan(self, uplink: Uplink) -> Allocation:
        """Schedule this round: the policy's choice, proven against what it was shown."""
        if uplink.ue_count != len(self._roster):
            raise ValueError(
                f"the uplink has the gains of {uplink.ue_count} UEs, but {len(self._roster)} are "
                "present"
            )
        self._best_gains = uplink.best_gains
        uplink = self.mask_ineligible(uplink)
        view = self.view(uplink)
        allocation = self.policy.schedule(view, self.streams.policy(self.t))
        try:
            if not isinstance(allocation, Allocation):
                raise InfeasibleAllocation(f"returned {allocation!r} instead of an Allocation")
            allocation.validate(uplink)
        except InfeasibleAllocation as error:
            raise InfeasibleAllocation(f"{self.policy} in round {self.t}: {error}") from error
        self._keep(view.state)
        self._asked = self._roster.rows(allocation.ues)
        if view.uplink is uplink:  # a policy of the package, which saw the arrays themselves
            return allocation
        return allocation.on(uplink)  # whatever the policy said of gains and threshold

    def receive(
        self,
        ues: NDArray[np.int64],
        reports: Mapping[Report, NDArray[np.float64]] | None = None,
        update_ages: NDArray[np.int64] | int = 0,
        unused: NDArray[np.int64] | None = None,
        pending: NDArray[np.int64] | None = None,
    ) -> None:
        """Take the updates of these UEs, with what they reported, and go on to the next round.

        Eq. 2: what is received resets an age, to 0 or to how old the update already was. UEs whose
        update was ``unused`` answered, so their attempt has not failed, but they age. So do those
        whose attempt is ``pending``: it ends in the first round in which they are not.
        """
        roster, rows = self._roster, self._roster.rows(ues)
        ages = next_ages(roster.columns["ages"], rows, update_ages)
        roster.columns["ages"] = read_only(ages)
        roster.count("participation", rows)
        for name, values in (reports or {}).items():
            roster.put(name, values, rows)
        answered = rows if unused is None else np.append(rows, roster.rows(unused))
        self._count_attempts(answered, rows[:0] if pending is None else roster.rows(pending))
        self.t += 1

    def _count_attempts(self, answered: NDArray[np.int64], pending: NDArray[np.int64]) -> None:
        """Take down whose attempts succeeded, and who sits out for how long."""
        columns, asked, places = self._roster.columns, self._asked, self._asked.size
        if pending.size or self._pending.size:
            asked = np.setdiff1d(np.union1d(asked, self._pending), pending)
        self._asked, self._pending = asked[:0], pending
        self._roster.count("attempts", asked)
        if not self._pauses or (not self._failing and np.array_equal(asked, answered)):
            return  # as a rule
        failed = asked[~np.isin(asked, answered)]
        failures = columns["failures"].copy()
        failures[answered] = 0
        failures[failed] += 1
        turn = -(-int(np.count_nonzero(self._best_gains)) // places) if places else 1
        pause = self.retry.pause(failures[failed], turn)
        self._roster.columns["failures"] = read_only(failures)
        self._roster.put("resumes", self.t + 1 + pause, failed)
        self._failing = bool(failures.any())

    def view(self, uplink: Uplink) -> RoundView:
        """Make the view of a policy: copies, which it cannot spoil, if it is not of the package."""
        present = self._roster.present
        # Copies, for a plan that fails changes nothing.
        per_ue = {name: present(_STATE + name).copy() for name in self.policy.state_per_ue}
        feedback = self.feedback if self.policy.reads else Feedback.none(uplink.ue_count)
        view = RoundView(
            t=self.t,
            uplink=uplink,
            ages=present("ages"),
            data_sizes=present("data_sizes"),
            compute_slots=present("compute_slots"),
            threshold_slots=present("threshold_slots"),
            deadline_slots=self.deadline_slots,
            staleness=present("staleness"),
            attempts=present("attempts"),
            successes=present("participation"),
            feedback=feedback,
            state=State(per_ue, dict(self._scalars)),
        )
        return view if self._is_ours else view.read_only_copy()

    def _keep(self, state: State) -> None:
        """Take over what the policy left, if it is what the policy declares."""
        for kept, declared in (
            (state.per_ue, self.policy.state_per_ue),
            (state.scalars, self.policy.state_scalars),
        ):
            if kept.keys() != declared.keys():
                odd = min(kept.keys() ^ declared.keys())
                raise ValueError(
                    f"policy {self.policy} declares the state {', '.join(declared) or '(none)'}, "
                    f"which does not agree with what it left of {odd!r}"
                )
        for name, values in state.per_ue.items():
            if np.shape(values) != (len(self._roster),):
                raise ValueError(
                    f"policy {self.policy}: its state {name!r} must have one number for each of "
                    f"the {len(self._roster)} UEs, not shape {np.shape(values)}"
                )
            self._roster.put(_STATE + name, values)
        self._scalars = {name: float(value) for name, value in state.scalars.items()}
