"""Best channels, longest updates, or both (Amiri, Gündüz, Kulkarni, Poor 2021)."""

from dataclasses import dataclass
from typing import ClassVar, get_args

import numpy as np
from numpy.typing import NDArray

from agewise.checks import number_within, one_of
from agewise.scheduling import Known, Policy, Report, RoundView
from agewise.spectrum import Allocation, InOrder, Packing


@dataclass(frozen=True, kw_only=True)
class BestChannel(Policy):
    """Best channel first: BC of Amiri, Gündüz, Kulkarni, Poor (2021).

    "Convergence of update aware device scheduling for federated learning at the wireless edge"
    serves the K UEs with the highest gain ``|h|²``, all with the same power. Adapted: a UE counts
    by its mean SNR over the subchannels, and as many are served, in falling order, as the spectrum
    has room for, each with its fewest best free subchannels.
    """

    name: ClassVar[str] = "best-channel"
    equation: ClassVar[str] = "U_k = (1/N) Σ_n P_k G_kn"
    packing: Packing = InOrder()

    def utility(self, view: RoundView, rng: np.random.Generator) -> NDArray[np.float64]:
        """Average the SNR over the subchannels."""
        return view.uplink.mean_snrs()


@dataclass(frozen=True, kw_only=True)
class BestNorm(Policy):
    """Longest update first: BN2 of Amiri, Gündüz, Kulkarni, Poor (2021).

    "Convergence of update aware device scheduling for federated learning at the wireless edge"
    serves the K UEs with the highest ||w_k - w||_2. Adapted: to know the present norms every UE
    would have to train, so the norm is that of the UE's last update that arrived, and a UE never
    heard from goes before all others, so that everyone is heard once. As many are served as the
    spectrum has room for, each with its fewest best free subchannels.

    The paper's BN2-C, by the norm of what is left of an update after compression to what the
    channel carries, is the same here: an update arrives whole, or its UE cannot reach the rate
    and is passed over. ``ties`` decides between all UEs in the first round.

    With ``norms="fresh"`` every eligible UE is probed before every round, as in the paper: a bound
    that no access point reaches, since all UEs have to learn for it.
    """

    name: ClassVar[str] = "best-norm"
    equation: ClassVar[str] = "U_k = ‖Δ_k‖, ∞ if never heard"
    reads: ClassVar[frozenset[Report]] = frozenset({"update_norms"})
    norms: Known = "last"
    packing: Packing = InOrder()

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("norms", self.norms, get_args(Known))
        object.__setattr__(self, "probes", self.norms == "fresh")

    def utility(self, view: RoundView, rng: np.random.Generator) -> NDArray[np.float64]:
        """Take the last norm of each UE; infinity where none was heard, so that it goes first."""
        norms = view.feedback.update_norms
        return np.where(np.isnan(norms), np.inf, norms)


@dataclass(frozen=True, kw_only=True)
class BestChannelNorm(BestNorm):
    """Longest update first among the best channels: BC-BN2 of Amiri, Gündüz, Kulkarni, Poor (2021).

    "Convergence of update aware device scheduling for federated learning at the wireless edge"
    takes the K_c UEs with the best channels, and of these the K <= K_c with the longest updates.
    Adapted: K_c is ``candidate_share`` of all UEs (at least one), and the spectrum decides how
    many of them are served. 1 makes this `best-norm`; with fewer candidates than there is room
    for, everyone served is one of the best channels and the rest of the spectrum stays idle.
    Channels are compared as in `best-channel`, norms as in `best-norm`. ``ties`` decides between
    equal ones.
    """

    name: ClassVar[str] = "best-channel-norm"
    equation: ClassVar[str] = "U_k = ‖Δ_k‖, among the cK UEs with the highest (1/N) Σ_n P_k G_kn"
    candidate_share: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        number_within("candidate_share", self.candidate_share, 0.0, 1.0, above=True)

    def schedule(self, view: RoundView, rng: np.random.Generator) -> Allocation:
        """Pack the candidates by their norms."""
        rank = self.tie_rank(view, rng)
        count = max(1, round(self.candidate_share * view.ue_count))
        others = np.lexsort((rank, -view.uplink.mean_snrs()))[count:]
        norms = self.utility(view, rng)
        norms[others] = -np.inf
        return self.pack(view, norms, rank)
