# Every target sets up its environment by itself; with that in place it costs nothing. Flower and
# PyTorch have one of their own: Flower's upper limits would hold the other back.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
RUN_READY := .venv/.run-ready
READY := .venv/.ready
FLOWER_BIN := .venv-flower/bin
FLOWER_READY := .venv-flower/.ready
DIST_BIN := .venv-dist/bin
DIST_READY := .venv-dist/.ready
# A slow registry is waited for. Python compiles what is imported, at first use, which is a tenth
# of what is installed.
INSTALL := -m pip install --quiet --disable-pip-version-check --no-compile --retries 10 --timeout 60
export PYTHONDONTWRITEBYTECODE :=
# Two processes: tests of a file stay together, and files come in the order of tests/conftest.py.
PYTEST := $(BIN)/pytest -n 2 --dist loadfile --no-loadscope-reorder
export FLWR_TELEMETRY_ENABLED := 0
export FLWR_DISABLE_UPDATE_CHECK := 1

.DEFAULT_GOAL := help
.PHONY: help reproduce test quick lint unit unit-flower test-slow test-faults test-pythons test-flowers fuzz crash
.PHONY: study bench federation docs dist test-dist clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

reproduce: $(RUN_READY)  ## measure the paper's figure over 20 seeds and say which claims hold
	@$(BIN)/agewise reproduce --explain

# The second environment is set up while the tests of the first run.
test: $(READY)  ## everything that must hold before a change lands
	@$(MAKE) --no-print-directory $(FLOWER_READY) & second=$$!; \
	$(MAKE) --no-print-directory lint unit && wait $$second && \
	$(MAKE) --no-print-directory unit-flower

quick: lint  ## lint, types, contracts and the fast tests, in about two minutes
	$(PYTEST) -q -m 'not slow and not long'

lint: $(READY)  ## ruff, mypy and the import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

unit: $(READY)  ## the tests that need neither Flower nor PyTorch
	$(PYTEST)

unit-flower: $(FLOWER_READY)  ## the tests that need Flower or PyTorch, with the examples in docstrings
	$(FLOWER_BIN)/pytest -n 2 --dist loadfile tests_extra src/agewise/flower src/agewise/learn

test-slow: $(READY)  ## what takes minutes: kernels for old processors, kills at every file operation
	$(BIN)/pytest -m slow

test-faults: $(FLOWER_READY)  ## faults of a real federation, a quarter of an hour
	$(FLOWER_BIN)/pytest -x tests_extra/flower/faults.py

PYTHONS := 3.11 3.12 3.13
test-pythons:  ## quick tests on every declared Python that is found here
	@sh tests/pythons.sh $(PYTHONS)

FLOWERS := 1.39.0 1.40.0 1.41.0 1.42.0
test-flowers:  ## the live federation with each of these versions of Flower, minutes each
	@sh tests/flowers.sh $(PYTHON) $(FLOWERS)

FUZZ_SECONDS ?= 120
FUZZ_SEED ?= 0
fuzz: $(READY) $(FLOWER_READY)  ## valid input changed at random (FUZZ_SECONDS, FUZZ_SEED): a clean error or a valid result
	@$(BIN)/python -m tests.fuzz --seconds $(FUZZ_SECONDS) --seed $(FUZZ_SEED)
	@$(FLOWER_BIN)/python -m tests.fuzz --seconds $$(($(FUZZ_SECONDS) / 10)) --seed $(FUZZ_SEED) \
		--targets-from tests_extra.flower.states

# Resumed, every byte must be that of an undisturbed experiment.
CRASH_SECONDS ?= 60
CRASH_SEED ?= 0
crash: $(READY)  ## an experiment killed before each of its file operations, then at random moments
	@folder=$$(mktemp -d) && OPENBLAS_NUM_THREADS=1 $(BIN)/python -m tests.experiment.crashes $$folder \
		&& rm -r $$folder
	@$(BIN)/python -m tests.experiment.kills --seconds $(CRASH_SECONDS) --seed $(CRASH_SEED)

# Studies write this project's own documents, from folders below runs/ that resume. PyTorch modules
# need the other environment: .venv-flower/bin/python -m benchmarks.documents.neural lenet-fashion 6
NAME ?=
STUDIES := tune benchmark aggregations phase radio gap neural paces race learned results
study: $(if $(filter learned,$(NAME)),$(READY),$(RUN_READY))  ## make a document anew: NAME=tune, benchmark, aggregations, phase, radio, gap, neural, paces, race, learned or results
	@$(if $(filter $(NAME),$(STUDIES)),$(BIN)/python -m benchmarks.documents.$(NAME),echo "make study NAME=...: $(STUDIES)")

BENCHES := scheduling radio traffic gym learning perceptron engines waiting
bench: $(READY)  ## measure speeds; NAME=exact, greedy, peers, flower or neural for one more
	@$(if $(NAME),$(if $(filter $(NAME),flower neural),$(FLOWER_BIN),$(BIN))/python -m benchmarks.$(NAME),\
	for each in $(BENCHES); do $(BIN)/python -m benchmarks.$$each || exit 1; done)

FEDERATION ?=
federation: $(FLOWER_READY)  ## train a federation over links that differ, on this machine (FEDERATION=--short)
	@$(FLOWER_BIN)/python -m benchmarks.federation $(FEDERATION)

docs: $(READY)  ## build the documentation site, offline; its tutorials run
	@echo "Building the site; its tutorials run, which takes about a minute ..."
	@$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet docs docs/_build/html
	@echo "Open docs/_build/html/index.html"

dist: $(DIST_READY)  ## build and check a wheel and an sdist in dist/
	@rm -rf dist
	@$(DIST_BIN)/python -m build --quiet --no-isolation --outdir dist .
	@$(DIST_BIN)/python -m twine check --strict dist/*
	@$(DIST_BIN)/python tests/contents.py dist/*

test-dist: dist  ## use the wheel in an empty environment, from another folder
	@sh tests/installed.sh $(PYTHON) dist/*.whl

# What running needs, and nothing else.
$(RUN_READY): pyproject.toml constraints.txt
	@echo "Setting up .venv once: a Python environment with NumPy, Numba, Polars, SciPy, Matplotlib ..."
	@$(PYTHON) -m venv .venv
	@$(BIN)/python $(INSTALL) -c constraints.txt -e .
	@touch $@
	@echo "Done. The first run also compiles kernels, which are kept for the next."

# The same with what the tests need.
$(READY): pyproject.toml constraints.txt
	@echo "Setting up .venv once: with pytest, mypy, ruff, Ray, a browser driver ... for the tests"
	@$(PYTHON) -m venv .venv
	@$(BIN)/python $(INSTALL) -c constraints.txt -e '.[dev]'
	@touch $(RUN_READY) $@

$(FLOWER_READY): pyproject.toml constraints-flower.txt
	@echo "Setting up .venv-flower (once, a minute or two) ..."
	@$(PYTHON) -m venv .venv-flower
	@$(FLOWER_BIN)/python $(INSTALL) -c constraints-flower.txt -e '.[flower,prometheus,ray,torch]' pytest-xdist
	@touch $@

$(DIST_READY): constraints.txt
	@echo "Setting up .venv-dist (once): build, twine, hatchling ..."
	@$(PYTHON) -m venv .venv-dist
	@$(DIST_BIN)/python $(INSTALL) -c constraints.txt build twine hatchling
	@touch $@

clean:  ## remove environments, caches and what was built
	rm -rf docs/_build .venv .venv-* dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
