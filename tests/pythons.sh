#!/bin/sh
# Quick tests on every one of these versions of Python that is found here (on the path, or of
# pyenv), each in an environment of its own: pythons.sh 3.11 3.12 3.13
set -eu
tests="tests/core tests/scenario tests/test_golden.py tests/test_cli.py tests/test_package.py"

interpreter() {
    for each in $(command -v "python$1" || true) "$HOME"/.pyenv/versions/"$1".*/bin/python; do
        if "$each" -c "import venv" 2> /dev/null; then
            echo "$each"
            return
        fi
    done
}

found=""
for version in "$@"; do
    if [ -n "$(interpreter "$version")" ]; then
        found="$found $version"
        echo "Python $version: $(interpreter "$version")"
    else
        echo "Python $version is not here: not tested"
    fi
done
if [ -z "$found" ]; then
    echo "None of these is here" >&2
    exit 1
fi
for version in $found; do
    folder=".venv-$version"
    echo "Python $version: setting up $folder ..."
    "$(interpreter "$version")" -m venv "$folder"
    "$folder/bin/python" -m pip install --quiet --disable-pip-version-check \
        -c constraints.txt -e . pytest hypothesis
    "$folder/bin/python" -m pip check
    echo "Python $version: testing ($("$folder/bin/python" --version)) ..."
    # shellcheck disable=SC2086 # several files
    "$folder/bin/python" -m pytest -q $tests
done
echo "Tested on Python$found."
