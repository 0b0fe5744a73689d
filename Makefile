# Each target sets up what it needs: a virtual environment in .venv with everything installed.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
FOLDER = $(or $(WHEELS),dist)
WORKERS ?= 2

.PHONY: help demo test lint pytest test-slow weight mutations bench wheels gpu gpu-wheels docs clean

help:
	@echo "make demo       install, train on the embedded default, evaluate before and after"
	@echo "make test       ruff, mypy, pytest"
	@echo "make lint       ruff and mypy alone"
	@echo "make test-slow  the long tests too"
	@echo "make weight     how many lines and words there are to read, and how many there may be"
	@echo "make mutations  wrong values put into plugins, which their tests must see; PLUGINS=\"hicl sncse\""
	@echo "make bench      speed and memory beside a peer: docs/performance.md; DATA=FILE ARTICLES=FILE, QUICK=1"
	@echo "make wheels     the wheels of cse and of all plugins, in dist/ or WHEELS=FOLDER"
	@echo "make gpu        what only a GPU can show, in ten minutes: docs/gpu.md; SECTIONS=\"kernels parts\", WHEELS=FOLDER"
	@echo "make gpu-wheels the wheels that a machine without a network lacks: WHEELS=FOLDER"
	@echo "make docs       the documentation as a site, site/index.html"
	@echo "make clean      remove the environment and what was built"

$(READY): requirements.txt constraints.txt pyproject.toml $(wildcard plugins/*/pyproject.toml)
	@command -v $(PYTHON) >/dev/null || { echo "$(PYTHON) is not installed; make PYTHON=python3 ... takes another Python from 3.11 on"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt -c constraints.txt
	@touch $(READY)

DEMO := --aug fgsm --negatives queue --loss twins --train.lr 2e-4 --train.max_steps 64 --train.eval_steps 16
demo: $(READY)
	@echo "1. What is installed"
	@$(BIN)/cse list-plugins
	@echo "2. The plan of a run with parts of two papers: word embeddings perturbed along the gradient"
	@echo "   and a queue of earlier keys (MoCoSE) under the twins loss (IFCL)"
	@$(BIN)/cse train $(DEMO) --dry-run
	@echo "3. The run itself, from the starter encoder on the starter's texts"
	@rm -rf runs/demo
	@$(BIN)/cse train $(DEMO) --out runs/demo
	@echo "4. Spearman x100 on held-out graded pairs of the starter, before and after"
	@$(BIN)/cse eval starter runs/demo --data starter --max-length 128
	@echo "The encoder saw no grade and none of these pairs; it learned from sentences alone to put"
	@echo "paraphrases nearer than sentences that only look similar. A grammar makes the texts, so the"
	@echo "gain shows that everything works, not how good a method is: docs/results.md has real text."
	@echo "Next, on your own text, one sentence a line:"
	@echo "  $(BIN)/cse train --recipe simcse --data YOUR.txt --out runs/mine"
	@echo "  $(BIN)/cse search runs/mine --data YOUR.txt 'what to look for'"
	@echo "docs/quickstart.md goes on from there."

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Types are checked while the tests run.
test: $(READY)
	@$(MAKE) --no-print-directory --jobs=2 lint pytest

# Modules stay compiled, whatever the environment says: dozens of processes import them.
pytest: $(READY)
	PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal -m "not slow and not gpu"

test-slow: $(READY)
	PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal -m "not gpu"

weight: $(READY)
	@$(BIN)/python -m tests.architecture.weight

mutations: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.mutations $(PLUGINS)

bench: $(READY)
	$(BIN)/python -m tests.benchmarks $(if $(DATA),--texts "$(DATA)") $(if $(ARTICLES),--articles "$(ARTICLES)") $(if $(QUICK),--quick)

# With WHEELS nothing is fetched: what $(PYTHON) has is used, and what it lacks comes from the folder.
ifdef WHEELS
gpu:
	$(PYTHON) -m venv --without-pip --system-site-packages $(VENV)-gpu
	$(PYTHON) -c "import sysconfig; print(sysconfig.get_path('purelib'))" > "$$($(VENV)-gpu/bin/python -c "import sysconfig; print(sysconfig.get_path('purelib'))")/around.pth"
	$(PYTHON) -m pip --python $(VENV)-gpu/bin/python --disable-pip-version-check install --quiet --no-index --find-links "$(WHEELS)" "$(WHEELS)"/cse_*.whl pytest
	$(VENV)-gpu/bin/python -m tests.gpu $(SECTIONS) $(ARGS)
else
gpu: $(READY)
	$(BIN)/python -m tests.gpu $(SECTIONS) $(ARGS)
endif

# One build environment for all of them; with pip's own, each wheel would make another.
wheels:
	$(PYTHON) -m venv $(VENV)-wheels
	$(VENV)-wheels/bin/python -m pip install --quiet --disable-pip-version-check hatchling -c constraints.txt
	rm -f "$(FOLDER)"/cse_*.whl
	$(VENV)-wheels/bin/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir "$(FOLDER)" . plugins/*/

# All that is installed here but torch, transformers and what comes with them, which the machine has.
gpu-wheels: FOLDER = $(or $(WHEELS),dist/gpu)
gpu-wheels: $(READY) wheels
	$(BIN)/python -m pip list --format=freeze --exclude-editable | grep -vE '^(torch|triton|nvidia|cuda|transformers|sentence-transformers|pip|mypy|ruff)[-=_]' > "$(FOLDER)/needed.txt"
	$(BIN)/python -m pip download --quiet --no-deps --only-binary=:all: --dest "$(FOLDER)" -r "$(FOLDER)/needed.txt"

# MkDocs has an environment of its own: it reads the sources and needs nothing of what they import.
docs:
	$(PYTHON) -m venv $(VENV)-docs
	$(VENV)-docs/bin/python -m pip install --quiet --disable-pip-version-check -r docs/requirements.txt
	NO_MKDOCS_2_WARNING=1 $(VENV)-docs/bin/mkdocs build --quiet --strict
	@echo "site/index.html"

clean:
	rm -rf $(VENV) $(VENV)-docs $(VENV)-gpu $(VENV)-wheels site build dist .pytest_cache .mypy_cache .ruff_cache
