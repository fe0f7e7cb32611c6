# Every target sets up .venv by itself; with .venv in place that costs nothing.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
READY := .venv/.ready

.PHONY: reproduce demo map gap tune benchmark evidence results test lint types contracts unit
.PHONY: bench bench-exact bench-greedy bench-peers fuzz crash picture clean

reproduce: $(READY)
	@$(BIN)/agewise reproduce --explain

map: $(READY)
	@$(BIN)/agewise reproduce --map

benchmark: $(READY)
	@$(BIN)/agewise benchmark --write docs/benchmark.md

# What `agewise advise` looks up, and docs/guide.md, from the results folders below runs/.
evidence: $(READY)
	@$(BIN)/python -m benchmarks.evidence

gap: $(READY)
	@$(BIN)/agewise gap

tune: $(READY)
	@$(BIN)/python -m benchmarks.tune

# Of what reproduce, map, gap and benchmark left in runs/.
results: $(READY)
	@$(BIN)/python -m benchmarks.results

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

# Two processes: the tests of one file stay together.
unit: $(READY)
	$(BIN)/pytest -n 2 --dist loadfile

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
	@$(BIN)/python -m benchmarks.traffic
	@$(BIN)/python -m benchmarks.learning
	@$(BIN)/python -m benchmarks.perceptron
	@$(BIN)/python -m benchmarks.engines

bench-exact: $(READY)
	@$(BIN)/python -m benchmarks.exact

bench-greedy: $(READY)
	@$(BIN)/python -m benchmarks.greedy

bench-peers: $(READY)
	@$(BIN)/python -m benchmarks.peers

$(READY): pyproject.toml constraints.txt
	@echo "Setting up .venv (once, a minute or two) ..."
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

picture: $(READY)
	AGEWISE_PICTURE=$(CURDIR)/docs/images/report.png $(BIN)/pytest -q tests/report -k picture

clean:
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
