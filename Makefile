# Every command sets itself up first: a fresh clone needs nothing but Python, Java and make.

# Which Python to build the environment with; by default the first from 3.11 to 3.13 that works.
PYTHON ?=
# Passed on: make fast PYTEST_ARGS="-n auto -x", make bench ARGS=--json
PYTEST_ARGS ?=
ARGS ?=
# How many processes run the tests; see tests/conftest.py for who shares one.
JOBS ?= 2
# Percent of the lines of Penstock that tests must reach in process (tests/line_coverage.py).
COVERAGE_FLOOR ?= 93
# Chooses the examples of a soak run.
SEED ?= 1

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
LOCKER := build/locker

.DEFAULT_GOAL := help
.PHONY: help setup demo test archive bounds fast lint format bench lab soak lock clean
# Where kernels are tested against plain twins, which is where wrong indices show.
KERNEL_TESTS := tests/joins/test_kernels.py tests/joins/test_gap_steps.py \
  tests/joins/test_steps_codec.py tests/matching/test_kernels.py tests/routing/test_regions.py \
  tests/flow/test_packed.py tests/flow/test_columnar.py tests/pipeline/test_packed_stages.py \
  tests/pipeline/test_packed_buffers.py

help:  ## list these commands
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' Makefile

setup: $(READY)  ## make .venv with the locked packages, and see to Java

# The stamp makes the second run start at once.
$(READY): requirements-dev.lock pyproject.toml
	@sh scripts/setup.sh $(VENV) "$(PYTHON)"
	@touch $@

demo: $(READY)  ## see it work
	$(BIN)/penstock demo $(ARGS)

test: $(READY) archive bounds  ## run all tests, Spark included, and see which lines they reach
	$(BIN)/python -m pytest -n $(JOBS) --dist loadgroup --hypothesis-profile=ci \
	  -p tests.line_coverage --coverage-floor $(COVERAGE_FLOOR) $(PYTEST_ARGS)

# Tests start Spark many times. Without an archive they take longer, and are as good.
archive: $(READY)  ## have Java start quickly (a minute, once for a machine)
	-@$(BIN)/python -m penstock.pipeline.making_archives

# Kernels do not check indices; here they do, compiled apart (kept in the user's cache directory).
bounds: $(READY)  ## run the tests of kernels with index checks
	NUMBA_BOUNDSCHECK=1 $(BIN)/python -m pytest -q -m "not spark and not slow and not soak" $(KERNEL_TESTS)

fast: $(READY)  ## run the tests that need no Spark
	$(BIN)/python -m pytest -n $(JOBS) -m "not spark and not slow and not soak" $(PYTEST_ARGS)

lint: $(READY)  ## check style, formatting and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY)  ## format the code, and repair what can be repaired without thought
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(READY)  ## run the benchmarks
	$(BIN)/penstock bench $(ARGS)

lab: $(READY)  ## run the experiments of all papers again, at small size (ARGS=--full: as published)
	$(BIN)/penstock lab paper all $(ARGS)

# What only soaks, and the stories of `make test` with forty times as many examples, others for each SEED.
soak: $(READY)  ## compare with the oracle for a long time (SEED=n chooses the run)
	PENSTOCK_SOAK=1 PENSTOCK_SEED=$(SEED) $(BIN)/python -m pytest -m "soak or (slow and not spark)" \
	  --hypothesis-seed=$(SEED) $(PYTEST_ARGS) tests/soak tests/differential

# One file for all supported versions of Python: the resolver writes markers where they differ.
lock:  ## write the lock files anew, with the newest versions that pyproject.toml allows
	@python="$$(sh scripts/find_python.sh "$(PYTHON)")" && "$$python" -m venv $(LOCKER)
	@$(LOCKER)/bin/python -m pip install --quiet --disable-pip-version-check uv
	$(LOCKER)/bin/uv pip compile --quiet --upgrade --universal --fork-strategy fewest \
	  --python-version 3.11 --no-header --no-emit-index-url --no-emit-find-links \
	  --output-file requirements.lock pyproject.toml
	$(LOCKER)/bin/uv pip compile --quiet --upgrade --universal --fork-strategy fewest \
	  --python-version 3.11 --no-header --no-emit-index-url --no-emit-find-links \
	  --constraints requirements.lock --extra dev --output-file requirements-dev.lock pyproject.toml

clean:  ## remove caches and reports (the environment stays; rm -rf .venv removes it)
	rm -rf build dist .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +
