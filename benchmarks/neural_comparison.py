"""The paper's comparison with neural networks: ``make neural``.

``python -m benchmarks.neural_comparison PRESET SEEDS`` for another preset or number of seeds; the
folder ``runs/neural-PRESET`` resumes. A run of LeNet-5 takes minutes, so it is run with the paper's
two policies alone.
"""

import sys

from agewise.studies.neural import POLICIES, compare_neural, neural_markdown

PAIR = ("age-based", "max-pack")

if __name__ == "__main__":
    preset, seeds = [*sys.argv[1:], *("mlp-mnist", "20")[len(sys.argv) - 1 :]]
    try:
        policies = PAIR if preset == "lenet-fashion" else POLICIES
        print(neural_markdown(compare_neural(preset, int(seeds), policies=policies)))
    except ValueError as error:
        raise SystemExit(str(error)) from None
