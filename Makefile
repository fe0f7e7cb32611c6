# Every target sets up .venv by itself; with .venv in place that costs nothing.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
READY := .venv/.ready

.PHONY: demo test lint types contracts unit bench clean

demo: $(READY)
	@$(BIN)/python examples/one_cell.py

test: lint types contracts unit

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

contracts: $(READY)
	$(BIN)/lint-imports

unit: $(READY)
	$(BIN)/pytest

bench: $(READY)
	@$(BIN)/python -m benchmarks.scheduling

$(READY): pyproject.toml constraints.txt
	@echo "Setting up .venv (once, a minute or two) ..."
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

clean:
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
