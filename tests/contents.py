"""What a wheel and an sdist must hold, and must not: python tests/contents.py dist/*"""

import re
import sys
import tarfile
import zipfile
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "src" / "agewise"
#: What the installed package cannot do without besides its modules.
NEEDED = {"agewise/py.typed", "agewise/data/mnist.npz", "agewise/policies/learned.npz"}
#: What a wheel says about itself.
ABOUT = {"METADATA", "entry_points.txt", "licenses/LICENSE", "licenses/NOTICE"}
#: What whoever unpacks the sdist needs to build, test and measure.
IN_SDIST = {
    "Makefile", "README.md", "LICENSE", "NOTICE", "CHANGELOG.md", "pyproject.toml",
    "constraints.txt", "constraints-flower.txt", "conftest.py", "tests/conftest.py",
    "tests/golden.json", "docs/conf.py", "src/agewise/py.typed",
}  # fmt: skip
_UNWANTED = re.compile(r"__pycache__|\.py[co]$|\.nb[ic]$|(^|/)\.venv|(^|/)runs/|_build/")


def source_files() -> set[str]:
    """The files of the package here, as a wheel names them."""
    found = (file for file in PACKAGE.rglob("*") if file.is_file())
    names = {f"agewise/{file.relative_to(PACKAGE).as_posix()}" for file in found}
    return {name for name in names if not _UNWANTED.search(name)}


def problems_of_wheel(names: set[str]) -> list[str]:
    """What is wrong with the files of a wheel."""
    information = {name for name in names if re.match(r"agewise-[^/]+\.dist-info/", name)}
    ends = {name.partition(".dist-info/")[2] for name in information}
    expected = source_files() | NEEDED
    missing = sorted(expected - names)
    missing += sorted(
        {"METADATA", "entry_points.txt", "licenses/LICENSE", "licenses/NOTICE"} - ends
    )
    foreign = sorted(names - information - expected)
    return [f"missing: {name}" for name in missing] + [f"unwanted: {name}" for name in foreign]


def problems_of_sdist(names: set[str]) -> list[str]:
    """What is wrong with the files of an sdist."""
    inside = {name.partition("/")[2] for name in names}
    expected = IN_SDIST | {f"src/{name}" for name in source_files()}
    unwanted = sorted(name for name in inside if _UNWANTED.search(name))
    missing = sorted(expected - inside)
    return [f"missing: {name}" for name in missing] + [f"unwanted: {name}" for name in unwanted]


def problems_of(file: Path) -> list[str]:
    """What is wrong with this file of ``dist/``."""
    if file.suffix == ".whl":
        with zipfile.ZipFile(file) as archive:
            return problems_of_wheel(set(archive.namelist()))
    with tarfile.open(file) as archive:
        return problems_of_sdist({each.name for each in archive.getmembers() if each.isfile()})


if __name__ == "__main__":
    for path in map(Path, sys.argv[1:]):
        found = problems_of(path)
        size = path.stat().st_size / 1e6
        print(f"{path.name} ({size:.1f} MB): {'; '.join(found) if found else 'complete'}")
        if found:
            sys.exit(1)
