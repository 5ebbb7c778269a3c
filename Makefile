# Everything bootstraps itself: the only assumptions are make, bash and Python 3.11+ with pip.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c

# Relative on purpose: make cannot name a target in a path with spaces, the clone may be in one.
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.synced
PYTHON ?= python3
WORKERS ?= 3

# Containers like to set it; then each of the hundreds of processes of the tests compiles everything.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo papers test check bench campaign docs clean
.DEFAULT_GOAL := test

$(BIN)/uv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "planaria needs Python 3.11 or newer: make PYTHON=python3.11 ...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv

# --active: whatever environment the caller has active, this one is meant.
$(STAMP): pyproject.toml uv.lock | $(BIN)/uv
	VIRTUAL_ENV="$$PWD/$(VENV)" $(BIN)/uv sync --quiet --frozen --active --inexact
	@touch $@

demo: $(STAMP)
	$(BIN)/planaria demo

# What the five papers claim, measured at a small scale: summary lines and a report.
papers: $(STAMP)
	$(BIN)/planaria reproduce --scale quick

# mypy has one core: beside it the tests are compiled, once for all workers. A third of the tests is
# waiting for live nodes: one worker more than cores.
test: $(STAMP)
	$(BIN)/python -m pytest --collect-only -qq > /dev/null & $(MAKE) --no-print-directory check && wait
	$(BIN)/python -m pytest -n $(WORKERS)

# The same tests with many more seeds and examples; takes hours, made for nights.
campaign: $(STAMP)
	PLANARIA_CAMPAIGN=1 $(BIN)/python -m pytest -n $(WORKERS)

check: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/python -m mypy

bench: $(STAMP)
	@mkdir -p out/bench
	@shopt -s nullglob; for script in benchmarks/*.py; do \
		echo "== $$script"; \
		$(BIN)/python "$$script" | tee "out/bench/$$(basename "$$script" .py).txt"; \
	done

docs: $(STAMP)
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs out/docs
	@echo "out/docs/index.html"

clean:
	rm -rf $(VENV) out build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
