# Each target sets up what it needs: a virtual environment in .venv with everything installed.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
WORKERS ?= 2

.PHONY: help demo test lint test-slow bench clean

help:
	@echo "make demo       install, train on the embedded default, evaluate before and after"
	@echo "make test       ruff, mypy, pytest"
	@echo "make lint       ruff and mypy alone"
	@echo "make test-slow  the long tests too"
	@echo "make bench      speed and memory beside a peer: docs/performance.md; DATA=FILE ARTICLES=FILE, QUICK=1"
	@echo "make clean      remove the environment and what was built"

$(READY): requirements.txt constraints.txt pyproject.toml $(wildcard plugins/*/pyproject.toml)
	@command -v $(PYTHON) >/dev/null || { echo "$(PYTHON) is not installed; make PYTHON=python3 ... takes another Python from 3.11 on"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt -c constraints.txt
	@touch $(READY)

demo: $(READY)
	@CSE=$(BIN)/cse sh tools/demo.sh

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: lint
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n $(WORKERS) -m "not slow"

test-slow: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n $(WORKERS)

bench: $(READY)
	$(BIN)/python -m benchmarks $(if $(DATA),--texts "$(DATA)") $(if $(ARTICLES),--articles "$(ARTICLES)") $(if $(QUICK),--quick)

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache
