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
INSTALL := -m pip install --quiet --disable-pip-version-check
export FLWR_TELEMETRY_ENABLED := 0
export FLWR_DISABLE_UPDATE_CHECK := 1

.PHONY: reproduce demo map gap radio neural tune benchmark results test lint types contracts unit unit-flower
.PHONY: docs dist test-dist test-pythons test-slow federation test-faults bench bench-flower bench-exact
.PHONY: bench-greedy bench-peers fuzz crash picture clean

reproduce: $(RUN_READY)
	@$(BIN)/agewise reproduce --explain

map: $(RUN_READY)
	@$(BIN)/agewise reproduce --map

benchmark: $(RUN_READY)
	@$(BIN)/python -m benchmarks.documents.benchmark --write docs/benchmark.md

gap: $(RUN_READY)
	@$(BIN)/agewise gap

# Policies on correlated, shadowed, moving and late-known channels.
radio: $(RUN_READY)
	@$(BIN)/python -m benchmarks.documents.radio

# The paper's comparison with a neural network, 20 seeds, in a folder that resumes. Modules of
# PyTorch (NEURAL=lenet-fashion) need the second environment; six seeds of LeNet-5 take 40 minutes.
NEURAL ?= mlp-mnist
NEURAL_SEEDS ?= 20
neural: $(if $(filter lenet%,$(NEURAL)),$(FLOWER_READY),$(RUN_READY))
	@$(if $(filter lenet%,$(NEURAL)),$(FLOWER_BIN),$(BIN))/python -m benchmarks.documents.neural $(NEURAL) $(NEURAL_SEEDS)

tune: $(RUN_READY)
	@$(BIN)/python -m benchmarks.documents.tune

# Of what reproduce, map, gap, radio and benchmark left in runs/.
results: $(READY)
	@$(BIN)/python -m benchmarks.documents.results

demo: $(RUN_READY)
	@$(BIN)/python examples/one_cell.py

# The second environment is set up while the tests of the first run.
test: $(READY)
	@$(MAKE) --no-print-directory $(FLOWER_READY) & second=$$!; \
	$(MAKE) --no-print-directory lint types contracts unit && wait $$second && \
	$(MAKE) --no-print-directory unit-flower

# Quick tests on every Python that is declared and found here (on the path, or of pyenv).
PYTHONS := 3.11 3.12 3.13
test-pythons:
	@sh tests/pythons.sh $(PYTHONS)

# A wheel and an sdist in dist/, as the index will show them.
dist: $(DIST_READY)
	@rm -rf dist
	@$(DIST_BIN)/python -m build --quiet --no-isolation --outdir dist .
	@$(DIST_BIN)/python -m twine check --strict dist/*
	@$(DIST_BIN)/python tests/contents.py dist/*

# The wheel in an empty environment, used from another folder.
test-dist: dist
	@sh tests/installed.sh $(PYTHON) dist/*.whl

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

contracts: $(READY)
	$(BIN)/lint-imports

# Two processes: the tests of one file stay together.
unit: $(READY)
	$(BIN)/pytest -n 2 --dist loadfile

# The documentation site, offline: tutorials are executed, warnings are errors. `make test` builds it
# too, in a folder of its own.
docs: $(READY)
	@echo "Building the site; its tutorials run, which takes about a minute ..."
	@$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet docs docs/_build/html
	@echo "Open docs/_build/html/index.html"

# What needs Flower or PyTorch, with the examples in docstrings.
unit-flower: $(FLOWER_READY)
	$(FLOWER_BIN)/pytest tests_extra src/agewise/flower src/agewise/learn/neural

# What takes minutes: kernels for old processors, kills at every file operation.
test-slow: $(READY)
	$(BIN)/pytest -m slow

# A SuperLink and six SuperNodes on this machine over links that differ, trained with age-based,
# with max-pack and with random selection (a quarter of an hour; FEDERATION=--short for minutes).
FEDERATION ?=
federation: $(FLOWER_READY)
	@$(FLOWER_BIN)/python -m benchmarks.federation $(FEDERATION)

# Faults of a real federation, and the short form of `make federation`: a quarter of an hour, so not in
# `make test`.
test-faults: $(FLOWER_READY)
	$(FLOWER_BIN)/pytest -x tests_extra/flower/faults.py

# Valid input, changed at random: a clean error or a valid result. `make test` has a form of ten
# seconds. Failed input is kept in fuzz-failures/.
FUZZ_SECONDS ?= 120
FUZZ_SEED ?= 0
fuzz: $(READY)
	@$(BIN)/python -m tests.fuzz --seconds $(FUZZ_SECONDS) --seed $(FUZZ_SEED)

# An experiment killed before each of its file operations, then, with all its workers, at random
# moments: resumed, every byte must be that of an undisturbed one.
CRASH_SECONDS ?= 60
CRASH_SEED ?= 0
crash: $(READY)
	@folder=$$(mktemp -d) && OPENBLAS_NUM_THREADS=1 $(BIN)/python -m tests.experiment.crashes $$folder \
		&& rm -r $$folder
	@$(BIN)/python -m tests.experiment.kills --seconds $(CRASH_SECONDS) --seed $(CRASH_SEED)

bench: $(READY)
	@$(BIN)/python -m benchmarks.scheduling
	@$(BIN)/python -m benchmarks.radio
	@$(BIN)/python -m benchmarks.traffic
	@$(BIN)/python -m benchmarks.learning
	@$(BIN)/python -m benchmarks.perceptron
	@$(BIN)/python -m benchmarks.engines
	@if [ -e $(FLOWER_READY) ]; then $(FLOWER_BIN)/python -m benchmarks.neural; \
	else echo "PyTorch modules are not measured: make unit-flower sets up their environment"; fi

bench-flower: $(FLOWER_READY)
	@$(FLOWER_BIN)/python -m benchmarks.flower

bench-exact: $(READY)
	@$(BIN)/python -m benchmarks.exact

bench-greedy: $(READY)
	@$(BIN)/python -m benchmarks.greedy

bench-peers: $(READY)
	@$(BIN)/python -m benchmarks.peers

# What running needs, and nothing else; tests add the rest to it. Bytecode is made on all cores, and
# not of the tests that other packages bring along, which are a quarter of it all.
$(RUN_READY): pyproject.toml constraints.txt
	@echo "Setting up .venv once: a Python environment with NumPy, Numba, Polars, SciPy, Matplotlib ..."
	@$(PYTHON) -m venv .venv
	@$(BIN)/python $(INSTALL) --no-compile -c constraints.txt -e .
	@$(BIN)/python -m compileall -qq -j 0 -x '/tests?/' .venv/lib || true
	@touch $@
	@echo "Done. The first run also compiles kernels, which are kept for the next."

$(READY): $(RUN_READY)
	@echo "Adding to .venv what the tests need, once: pytest, mypy, ruff, Ray, a browser driver ..."
	@$(BIN)/python $(INSTALL) -c constraints.txt -e '.[dev]'
	@touch $@

$(FLOWER_READY): pyproject.toml constraints-flower.txt
	@echo "Setting up .venv-flower (once, a minute or two) ..."
	@$(PYTHON) -m venv .venv-flower
	@$(FLOWER_BIN)/python $(INSTALL) -c constraints-flower.txt -e '.[flower,ray,torch]' pytest
	@touch $@

$(DIST_READY): constraints.txt
	@echo "Setting up .venv-dist (once): build, twine, hatchling ..."
	@$(PYTHON) -m venv .venv-dist
	@$(DIST_BIN)/python $(INSTALL) -c constraints.txt build twine hatchling
	@touch $@

picture: $(READY)
	AGEWISE_PICTURE=$(CURDIR)/docs/images/report.png $(BIN)/pytest -q tests/report -k picture

clean:
	rm -rf docs/_build .venv .venv-* dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
