#!/bin/sh
# Tests of the live federation with each of these versions of Flower, each in an environment of its
# own: flowers.sh PYTHON 1.39.0 1.40.0
set -eu
python=$1
shift
for version in "$@"; do
    folder=".venv-flower-$version"
    echo "Flower $version: setting up $folder ..."
    "$python" -m venv "$folder"
    install="$folder/bin/python -m pip install --quiet --disable-pip-version-check"
    # The Typer that Flower takes uses what newer Clicks call deprecated.
    needed="-e .[prometheus] click<8.5 pytest"
    if ! $install $needed "flwr==$version"; then
        echo "Flower $version: what it needs is not on this index; tried with what is"
        $install $needed "flwr<$version"
        $install --no-deps "flwr==$version"
    fi
    echo "Flower $version: testing ..."
    "$folder/bin/python" -m pytest -q -p no:cacheprovider tests_extra/flower
done
echo "Tested with Flower $*."
