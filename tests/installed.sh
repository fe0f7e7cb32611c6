#!/bin/sh
# Install a wheel into an empty environment and use it from another folder: installed.sh PYTHON WHEEL
set -eu
unset PYTHONPATH || true  # nothing but the wheel
wheel=$(realpath "$2")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
echo "Installing $(basename "$wheel") into an empty environment ..."
"$1" -m venv "$folder/venv"
python="$folder/venv/bin/python"
"$python" -m pip install --quiet --disable-pip-version-check "$wheel"
"$python" -m pip check
mkdir "$folder/elsewhere"
cd "$folder/elsewhere"
agewise="$folder/venv/bin/agewise"
echo "Running it from another folder ..."
"$agewise" --version
"$python" -c "import agewise, sys; sys.exit(not agewise.__file__.startswith(sys.prefix))"
"$agewise" scenario paper > my.toml
"$agewise" compare my.toml --rounds 3 -s 2 -q -o compared > /dev/null
test -s compared/report.html
"$agewise" reproduce --rounds 3 -s 2 -q -o reproduced > said.txt
grep -q "What the paper says" said.txt
test -s reproduced/accuracy.pdf
"$agewise" --show-completion bash | grep -q _AGEWISE_COMPLETE
"$python" -m agewise policies age-based > /dev/null
echo "The installed wheel runs."
