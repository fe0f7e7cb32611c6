"""The paper's comparison with neural networks: ``make neural``.

``python -m benchmarks.neural_comparison PRESET SEEDS`` for another preset or number of seeds; the
folder ``runs/neural-PRESET`` resumes.
"""

import sys

from agewise.studies.neural import compare_neural, neural_markdown

if __name__ == "__main__":
    preset, seeds = [*sys.argv[1:], *("mlp-mnist", "20")[len(sys.argv) - 1 :]]
    try:
        print(neural_markdown(compare_neural(preset, int(seeds))))
    except ValueError as error:
        raise SystemExit(str(error)) from None
