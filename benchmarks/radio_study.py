"""Policies on channels that are more like those in the field: ``make radio``.

It goes on where it stopped. ``make results`` puts what it writes into docs/results.md.
"""

import argparse

from agewise.studies.radio import compare_channels, radio_markdown

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--out", default="runs/radio-paper")
    options = parser.parse_args()
    try:
        print(radio_markdown(compare_channels(seeds=options.seeds, out=options.out)))
    except ValueError as error:
        raise SystemExit(str(error)) from None
