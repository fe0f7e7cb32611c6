"""What Agewise is compared with that nobody here wrote: the table of docs/checked.md.

``python -m tests.checked`` measures, ``python -m tests.checked --write`` writes the table.
A function each that returns all differences; `tests_extra.torch.test_neural` has that with PyTorch.
"""

import importlib
import json
import math
import sys
import warnings
from pathlib import Path

import numpy as np
from scipy import stats
from scipy.optimize import linear_sum_assignment
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.weightstats import DescrStatsW

from agewise import Uplink, schedule_traffic, statistics
from agewise.radio import Block
from agewise.radio.path_loss import IndoorHotspot, UrbanMacro, UrbanMicro
from agewise.spectrum import Exact
from tests.learn import test_local as quadratics
from tests.radio import sionna_losses
from tests.scenarios import tiny
from tests.test_pace import federation_of
from tests.test_statistics import REMISSION_6MP, SLEEP_1, SLEEP_2, runs

ROOT = Path(__file__).parent.parent
DOCUMENT = ROOT / "docs" / "checked.md"
#: What ``python -m tests_extra.torch.test_neural`` measured in the other environment.
PYTORCH = ROOT / "tests_extra" / "torch" / "checked.json"

MODELS = {
    "uma": UrbanMacro(carrier_ghz=5.0, access_point_height_m=25.0, ue_height_m=1.5),
    "umi": UrbanMicro(carrier_ghz=5.0, access_point_height_m=10.0, ue_height_m=1.5),
    "inh": IndoorHotspot(
        carrier_ghz=5.0, office="open", access_point_height_m=3.0, ue_height_m=1.5
    ),
}
#: Losses in dB of ns-3's test suite, with and without line of sight.
NS3 = {
    ("uma", True): [72.9380, 86.2362, 109.7252, 137.6794],
    ("uma", False): [82.5131, 106.1356, 144.7641, 172.0753],
    ("umi", True): [69.8591, 88.4122, 119.3114, 147.2696],
    ("umi", False): [76.7563, 107.9432, 143.1886, 167.8617],
    ("inh", True): [50.8072, 63.7630, 75.7750, 80.9802],
    ("inh", False): [50.8072, 73.1894, 99.7824, 111.3062],
}
CRRM = {
    "uma": ("UMa_pathloss_model_06", "UMa_pathloss"),
    "umi": ("UMi_pathloss_model_00", "UMi_pathloss"),
    "inh": ("InH_pathloss_model_01", "InH_pathloss"),
}
#: The survival curve of the remission times by week: Kleinbaum and Klein, Survival Analysis, ch. 2.
SURVIVAL = {
    5: 1.0, 6: 0.857, 7: 0.807, 9: 0.807, 10: 0.753, 13: 0.690, 16: 0.627, 22: 0.538, 23: 0.448,
    34: 0.448,
}  # fmt: skip


def losses_db(path_loss, distance_m, *, seen):
    distance = np.array(distance_m, dtype=float)
    return path_loss.loss_db(distance, np.full(distance.size, seen))


def ns3():
    away = []
    for (name, seen), golden in NS3.items():
        distance = [1, 10, 50, 100] if name == "inh" else [10, 100, 1000, 5000]
        away += (losses_db(MODELS[name], distance, seen=seen) - golden).tolist()
    return away


def crrm():
    away = []
    for (name, seen), carrier_ghz in ((key, ghz) for key in NS3 for ghz in (0.7, 3.5, 28.0)):
        settings = MODELS[name].model_copy(update={"carrier_ghz": carrier_ghz})
        module, made = CRRM[name]
        model = getattr(importlib.import_module(f"CRRM.{module}"), made)
        heights = settings.ue_height_m, settings.access_point_height_m
        ends = (1.0, 140.0) if name == "inh" else (10.0, 5000.0)
        distance = np.geomspace(*ends, 200)
        direct = np.hypot(distance, heights[1] - heights[0])
        ues = np.column_stack([distance, np.zeros(200), np.full(200, heights[0])])
        theirs = model(fc_GHz=carrier_ghz, LOS=seen).get_pathloss_dB(
            distance[:, None], direct[:, None], ues, np.array([[0.0, 0.0, heights[1]]])
        )
        away += (losses_db(settings, distance, seen=seen) - theirs[:, 0]).tolist()
    return away


def sionna(row, measure):
    """Differences from a row of Sionna's record: of ``measure(model, ground_m)``."""
    away = []
    for place, carriers in json.loads(sionna_losses.RECORD.read_bytes()).items():
        ground_m = sionna_losses.ground_m(place)
        for ghz, rows in carriers.items():
            model = sionna_losses.model(place, float(ghz))
            away += (measure(model, ground_m) - rows[row]).tolist()
    return away


def sionna_los():
    """Beyond the breakpoint of streets the speed of light counts: 3e8 m/s in the report."""
    return sionna(0, lambda model, ground_m: losses_db(model, ground_m, seen=True))


def sionna_nlos():
    return sionna(1, lambda model, ground_m: losses_db(model, ground_m, seen=False))


def sionna_sight():
    return sionna(2, lambda model, ground_m: model.los_probability(ground_m))


def paired_tests():
    """Limits and p-values, with 2 to 40 seeds."""
    rng, away = np.random.default_rng(0), []
    for pairs in range(2, 41):
        one, other = rng.normal(0.3, 1.0, pairs), rng.normal(size=pairs)
        ours, theirs = statistics.contrast(one, other), stats.ttest_rel(one, other)
        limits = theirs.confidence_interval()
        away += [ours.p - theirs.pvalue, ours.low - limits.low, ours.high - limits.high]
    return away


def families():
    """p-values and limits that hold for 2 to 6 tests together, by Bonferroni."""
    rng, away = np.random.default_rng(0), []
    for tests in range(2, 7):
        gaps = rng.normal(0.4, 1.0, (tests, 12))
        ours = statistics.correct([statistics.contrast(each, 0 * each) for each in gaps])
        theirs = [DescrStatsW(each) for each in gaps]
        p_values = [each.ttest_mean()[1] for each in theirs]
        limits = np.array([each.tconfint_mean(0.05 / tests) for each in theirs])
        together = multipletests(p_values, method="bonferroni")[1]
        away += ([each.p for each in ours] - together).tolist()
        away += ([(each.low, each.high) for each in ours] - limits).ravel().tolist()
    return away


def survival_curves():
    """Kaplan-Meier curves with their log-log bands."""
    away = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        times, reached = rng.integers(1, 9, 12).astype(float), rng.random(12) < 0.7
        _, *curves = statistics._kaplan_meier(times, reached, 0.9)
        theirs = stats.ecdf(stats.CensoredData(times[reached], right=times[~reached])).sf
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            band = theirs.confidence_interval(0.9, method="log-log")
        for mine, other in zip(curves, (theirs, band.low, band.high), strict=True):
            away += (mine - other.probabilities)[~np.isnan(mine)].tolist()
    return away


def sleep():
    """R's example of a paired t test."""
    ours = statistics.contrast(SLEEP_2, SLEEP_1)
    published = (1.58, 0.7001142, 2.4598858, 0.002833)
    return np.subtract((ours.mean, ours.low, ours.high, ours.p), published).tolist()


def remission():
    accuracy = runs(REMISSION_6MP)

    def mean(week):
        return statistics.time_to_target(accuracy, 0.9, horizon=week).restricted_mean

    return [mean(week + 1) - mean(week) - there for week, there in SURVIVAL.items()]


def assignments():
    """Relative, on gains that make one subchannel enough or useless."""
    rng, away = np.random.default_rng(3), []
    for ues, subchannels in ((4, 4), (30, 10), (10, 30), (60, 20)) * 5:
        gains = np.where(rng.random((ues, subchannels)) < 0.1, 100.0, 0.0)
        weights = rng.exponential(size=ues)
        served = Exact().pack(Uplink(gains, 1.0, 2.0), weights).scheduled
        profit = np.where(gains > 0, weights[:, None], 0.0)
        best = profit[linear_sum_assignment(profit, maximize=True)].sum()
        away.append(weights[served].sum() / best - 1.0)
    return away


class Erasures:
    """One subchannel on which an upload succeeds with a chance that nobody knows beforehand."""

    subchannel_count, power_budget, moves = 1, 1.0, False

    def __init__(self, ue_count, chance, seed):
        self.ue_count, self.chance, self.seed = ue_count, chance, seed

    def block(self, t):
        heard = np.random.default_rng([self.seed, t]).random((self.ue_count, 1)) < self.chance
        return Block(np.full((self.ue_count, 1), 3.0), np.where(heard, 3.0, 0.0), None)


def ages_of(policy, ues, chance):
    """The mean age over 5,000 slots after 100."""
    first, last, sums = 100, 5_100, []
    for rounds in (first, last):
        channel = Erasures(ues, chance, 0)
        traffic = schedule_traffic(channel, policy, rounds, rate_threshold=1.0)
        sums.append(rounds * traffic.mean_age.mean())
    return (sums[1] - sums[0]) / (last - first)


LINKS = ((3, 0.5), (5, 0.8))


def oldest_first():
    return [
        ages_of(policy, k, p) / ((k + 1) / (2 * p) - 1) - 1
        for policy in ("age-based", "whittle")
        for k, p in LINKS
    ]


def at_random():
    return [ages_of("random", k, p) / (k / p - 1) - 1 for k, p in LINKS]


def in_turn():
    """Mean ages over whole cycles on ideal links: (K / N - 1) / 2."""
    away = []
    for ues, subchannels in ((12, 4), (12, 3), (20, 2), (30, 10), (24, 1)):
        cell = {"cell.ues": ues, "cell.subchannels": subchannels, "threshold.rate": 0.0}
        cycle, sums = ues // subchannels, []
        for cycles in (1, 11):
            traffic = schedule_traffic(tiny(**cell), "round-robin", cycles * cycle)
            sums.append(cycles * cycle * traffic.mean_age.mean())
        away.append((sums[1] - sums[0]) / (10 * cycle) - (cycle - 1) / 2)
    return away


def stable_steps():
    """Relative: the largest step at which delayed updates settle, to half a percent."""
    away = []
    for s in (0, 1, 2, 4, 8):
        limit = 2.0 * math.cos(s * math.pi / (2 * s + 1))
        low, high = 0.9, 1.1
        while high - low > 0.005:
            middle = (low + high) / 2
            low, high = (middle, high) if _settles(s, middle * limit) else (low, middle)
        away.append((low + high) / 2 - 1.0)
    return away


def _settles(s, share):
    """Whether w falls, where in each period one of s + 1 UEs arrives that began s periods ago."""
    federation = federation_of(np.zeros(s + 1), share)
    state, moved = federation.init(), []
    for t in range(120 * (s + 4)):
        state = state.keep(t, range(max(0, t - s), t + 1))
        versions = np.array([max(0, t - s)])
        state = federation.round(state, np.array([t % (s + 1)]), t, versions=versions).state
        moved.append(abs(float(state.params[0])))
    late = 10 * (s + 4)
    return max(moved[-late:]) < max(moved[-4 * late : -3 * late])


def drift():
    """Averaging after tau steps of every UE on quadratics, and with variates their least sum."""
    steps, eta = 10, 0.1
    a, y = quadratics.A, quadratics.Y
    kept = [np.linalg.matrix_power(np.eye(2) - eta * np.outer(x, x), steps) for x in a]
    own = [x * goal / (x @ x) for x, goal in zip(a, y, strict=True)]
    pulled = np.mean([(np.eye(2) - m) @ w for m, w in zip(kept, own, strict=True)], axis=0)
    fixed = np.linalg.solve(np.eye(2) - np.mean(kept, axis=0), pulled)
    least, away = np.linalg.lstsq(a, y, rcond=None)[0], []
    for local, goal in (("none", fixed), ("control-variates", least)):
        settings = quadratics.chosen(local=local, local_steps=steps, step_size=eta)
        reached, _ = quadratics.federated(settings, [np.arange(4)] * 400)
        away += (reached - goal).tolist()
    return away


ROWS = {
    ns3: ("path losses of TR 38.901 (UMa, UMi, InH), dB", "ns-3, golden values of its tests"),
    crrm: ("the same at three carriers, dB", "CRRM 2.0.2"),
    sionna_los: (
        "path losses of UMa, UMi, InH and InF in sight, dB",
        "Sionna 2.2.0, whose light has not quite 3e8 m/s",
    ),
    sionna_nlos: ("the same out of sight, dB", "Sionna 2.2.0"),
    sionna_sight: ("their probabilities of line of sight", "Sionna 2.2.0"),
    paired_tests: ("p-values and limits of paired t tests", "SciPy, `ttest_rel`"),
    families: (
        "the same for families of tests, by Bonferroni",
        "statsmodels, `multipletests` and `DescrStatsW`",
    ),
    survival_curves: ("Kaplan-Meier curves and log-log bands", "SciPy, `ecdf`"),
    sleep: ("a paired t test", "Student's sleep data (1908), as R prints it"),
    remission: ("a survival curve", "remission times of Freireich et al. (1963), as printed"),
    assignments: (
        "the optimum where one subchannel is enough, relative", "SciPy, `linear_sum_assignment`",
    ),
    oldest_first: ("mean age, oldest first, relative", "(K+1)/(2p) - 1 (Kadota et al. 2018)"),
    at_random: ("mean age, drawn at random, relative", "K/p - 1"),
    in_turn: ("mean age, in turn on ideal links", "(K/N - 1)/2"),
    stable_steps: (
        "largest stable step with updates s versions old, relative",
        "2 cos(sπ/(2s+1)) (Levin, May 1976)",
    ),
    drift: ("models that averaging and control variates end at", "fixed points of quadratics"),
}  # fmt: skip
PYTORCH_ROW = ("models after local learning, linear", "PyTorch")


def measured():
    """By row: how many numbers were compared, and by how much they differ at most."""
    found = {row: measure() for measure, row in ROWS.items()}
    return {row: (len(away), max(map(abs, away))) for row, away in found.items()}


def table():
    """The rows as Markdown, with differences rounded up to one digit."""
    pytorch = json.loads(PYTORCH.read_bytes())
    rows = measured() | {PYTORCH_ROW: (pytorch["numbers"], pytorch["largest"])}
    lines = ["| Of Agewise | Beside | Numbers | Differ by at most |", "|---|---|---:|---:|"]
    for (what, whose), (count, largest) in rows.items():
        lines.append(f"| {what} | {whose} | {count:,} | {rounded_up(largest)} |")
    return "\n".join(lines)


def rounded_up(number):
    """One digit of a number, which is not below it.

    >>> rounded_up(0.0012), rounded_up(4e-12), rounded_up(0.0)
    ('0.002', '4e-12', '0')
    """
    if number == 0:
        return "0"
    place = 10.0 ** math.floor(math.log10(number))
    return f"{math.ceil(number / place - 1e-9) * place:.1g}"


def written(text):
    """What a document says: ``{row: (numbers, difference)}``."""
    lines = (line.strip("| \n").split(" | ") for line in text.splitlines() if line[:1] == "|")
    return {
        (what, whose): (int(count.replace(",", "")), float(most))
        for what, whose, count, most in list(lines)[2:]
    }


if __name__ == "__main__":
    if "--write" in sys.argv:
        before, behind = "<!-- checked -->\n", "\n<!-- end -->"
        head, _, rest = DOCUMENT.read_text("utf-8").partition(before)
        made = f"{head}{before}{table()}{behind}{rest.partition(behind)[2]}"
        DOCUMENT.write_text(made, "utf-8")
    else:
        print(table())
