# Everything bootstraps itself: the only assumptions are a shell, make and Python 3.11+.
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.synced
PYTHON ?= python3

.PHONY: demo test check bench campaign docs clean
.DEFAULT_GOAL := test

$(BIN)/uv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "planaria needs Python 3.11 or newer: set PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv

$(STAMP): pyproject.toml uv.lock | $(BIN)/uv
	VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/uv sync --quiet --frozen --active --inexact
	@touch $@

test: $(STAMP)
	$(BIN)/pytest -n auto

check: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
