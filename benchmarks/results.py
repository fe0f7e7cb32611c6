"""Put docs/results.md together from the folders of the studies: ``make results``."""

from pathlib import Path

from agewise.studies.documents import write_results

if __name__ == "__main__":
    try:
        print(f"Page: {write_results(Path('runs'), Path('docs/results.md'))}")
    except ValueError as error:
        raise SystemExit(str(error)) from None
