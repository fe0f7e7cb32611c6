"""What policies are shown in tests: views of one round, with the state that any policy needs."""

from dataclasses import replace

import numpy as np

from agewise import policies
from agewise.scheduling import Feedback, RoundView, State


def fresh_state(ues, **per_ue):
    """The state of all policies before their first round, with these arrays in place of theirs."""
    state = State({}, {})
    for name in policies.names():
        policy = policies.find_class(name)
        for key, fill in policy.state_per_ue.items():
            state.per_ue[key] = np.full(ues, float(fill))
        state.scalars |= policy.state_scalars
    state.per_ue |= per_ue
    return state


def view_of(uplink, ages, state=None, **known):
    """A view of which these things are known beside the channel and the ages."""
    count = uplink.ue_count
    state = state or fresh_state(count)
    none = np.zeros(count, np.int64)
    view = RoundView(
        t=0,
        uplink=uplink,
        ages=np.asarray(ages),
        data_sizes=np.ones(count, np.int64),
        compute_slots=np.zeros(count),
        threshold_slots=np.ones(count),
        deadline_slots=np.inf,
        staleness=none,
        attempts=none,
        successes=none,
        feedback=Feedback.none(count),
        state=state,
    )
    return replace(view, **known)


def feedback_of(ues, **known):
    """Feedback of which only these quantities are known."""
    none = Feedback.none(ues)
    return Feedback(*(np.array(known.get(name, getattr(none, name)), float) for name in vars(none)))
