"""Regenerates the figures of docs/errata.md: ``python -m tests.errata`` prints, ``--write`` writes.

Each table stands in the document between a pair of markers that names it.
"""

import re
import sys
from pathlib import Path

import numpy as np

from agewise import Streams, Uplink
from agewise.age import f_alpha
from agewise.policies import AgeBased, MaxPack
from agewise.scheduling import AccessPoint
from tests import reference
from tests.cells import draw_gains

DOCUMENT = Path(__file__).parent.parent / "docs" / "errata.md"
UES, SUBCHANNELS, CELLS = 100, 20, 10
REGIMES = [(snr, bits) for snr in (-10, 0, 10, 20) for bits in (1, 2, 4, 6)]


def markdown(headings, rows):
    lines = ["| " + " | ".join(map(str, row)) + " |" for row in [headings, *rows]]
    lines.insert(1, "|" + "---:|" * len(headings))
    return "\n".join(lines)


def printed_algorithm():
    """How Algorithm 1 as printed admits UEs that cannot reach the rate, and overspends."""
    rows = []
    for snr, bits in REGIMES:
        rng = np.random.default_rng([snr + 100, bits])
        feasible = accepted = with_half = 0
        spent = []
        for _ in range(CELLS):
            for gains in draw_gains(rng, UES, SUBCHANNELS, snr).tolist():
                able = reference.candidate(gains, range(SUBCHANNELS), 1.0, bits)
                feasible += able is not None
                as_printed = reference.candidate_as_printed(gains, range(SUBCHANNELS), 1.0, bits)
                accepted += as_printed is not None
                halved = reference.candidate_as_printed(
                    gains, range(SUBCHANNELS), 1.0, bits, half=True
                )
                with_half += halved is not None
                if able is None and halved is not None:
                    spent.append(sum(halved[1]))
        rows.append(
            [
                snr,
                bits,
                f"{feasible / CELLS:.1f}",
                f"{accepted / CELLS:.1f}",
                f"{with_half / CELLS:.1f}",
                f"{(with_half - feasible) / CELLS:.1f}",
                f"{np.median(spent):.1f}" if spent else "-",
            ]
        )
    headings = [
        "edge SNR (dB)",
        "R_s (bit)",
        "can reach R_s",
        "accepted as printed",
        "accepted with the ½",
        "of these wrongly",
        "budgets they spend (median)",
    ]
    return markdown(headings, rows)


def sensitivity():
    """f_alpha near and at alpha = 1, both forms."""
    rows = [
        [alpha, *(f"{f_alpha([x], alpha, form)[0]:.4g}" for form in ("paper", "continuous")
                  for x in (1, 4, 9))]
        for alpha in (0.0, 0.5, 0.9, 0.99, 1.0)
    ]  # fmt: skip
    headings = ["alpha", *(f"{form} f({x})" for form in ("paper", "continuous") for x in (1, 4, 9))]
    return markdown(headings, rows)


def ties():
    """Distinct UEs that 100 rounds reach, by policy and rule for ties."""
    rows = []
    for snr, bits in ((10, 2), (10, 4), (10, 6)):
        for make in (MaxPack, AgeBased):
            for rule in ("lowest-index", "random"):
                reached, served = [], []
                for cell in range(CELLS):
                    counts = participation(make(ties=rule), snr, bits, cell)
                    reached.append(np.count_nonzero(counts))
                    served.append(counts.sum() / 100)
                rows.append(
                    [
                        snr,
                        bits,
                        make.name,
                        rule,
                        f"{np.mean(served):.1f}",
                        f"{np.mean(reached):.1f}",
                    ]
                )
    headings = ["edge SNR (dB)", "R_s (bit)", "policy", "ties", "UEs a round", "distinct UEs"]
    return markdown(headings, rows)


def participation(policy, snr, bits, seed):
    """How often each UE was served in 100 rounds of one cell."""
    rng = np.random.default_rng([snr, bits, seed])
    distance = np.maximum(np.sqrt(rng.random(UES)), 0.01)
    mean = 10 ** (snr / 10) * distance**-3.5
    access_point = AccessPoint(policy, UES, Streams(seed))
    for _ in range(100):
        gains = mean[:, None] * rng.standard_exponential((UES, SUBCHANNELS))
        allocation = access_point.plan(Uplink(gains, 1.0, bits))
        access_point.receive(np.flatnonzero(allocation.scheduled))
    return access_point.participation


TABLES = {"printed-algorithm": printed_algorithm, "sensitivity": sensitivity, "ties": ties}


def regenerated(text):
    """The document with every table made anew."""
    for name, make in TABLES.items():
        pattern = rf"(<!-- {name} -->\n).*?(<!-- end -->)"
        text, count = re.subn(pattern, rf"\g<1>{make()}\n\g<2>", text, flags=re.DOTALL)
        assert count == 1, f"docs/errata.md has no table {name!r}"
    return text


if __name__ == "__main__":
    if "--write" in sys.argv:
        DOCUMENT.write_text(regenerated(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
    else:
        for name, make in TABLES.items():
            print(f"## {name}\n{make()}\n")
