# Tasks for people and for CI; `make` alone lists them. Works with GNU make 3.81 and later.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --disable-pip-version-check -q -c constraints.txt
# The build backend is pinned with the rest, so nothing is fetched to build with.
EDITABLE := --no-build-isolation -e

DEMO_IMAGE := examples/courtyard.png
DEMO_PROMPT := A walled courtyard at noon. The camera walks forward, turns right and walks on.
DEMO_ACTION := w-24,d-24,w-24

.PHONY: help demo test lint type check bench wheel clean

help: ## list the tasks
	@grep -E '^[a-z]+:.*## ' Makefile | sed 's/:.*## /	/' | expand -t 10

demo: $(VENV)/.installed ## install into .venv, then render a small clip on the CPU
	@mkdir -p out
	@$(BIN)/sanawm render --image $(DEMO_IMAGE) --prompt "$(DEMO_PROMPT)" \
		--action "$(DEMO_ACTION)" -o out/demo.mp4 --overwrite

test: $(VENV)/.dev ## run all tests (ARGS="-k plan" passes options to pytest)
	$(BIN)/python -m pytest $(ARGS)

lint: $(VENV)/.dev ## check style and formatting
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .

type: $(VENV)/.dev ## check types
	$(BIN)/python -m mypy

check: test lint type ## what CI runs

bench: $(VENV)/.dev ## measure start-up time and memory on this machine
	$(BIN)/python -m benchmarks.startup
	$(BIN)/python -m benchmarks.memory

wheel: $(VENV)/.dev ## build the wheel into dist/
	$(BIN)/python -m hatchling build -t wheel -d dist

clean: ## remove .venv, dist/ and caches; rendered clips stay
	rm -rf $(VENV) dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# What is installed is stamped: a second run installs nothing unless one of these files changed.
$(VENV)/.installed: pyproject.toml constraints.txt | $(BIN)/python
	@echo "installing into $(VENV) (once; some minutes if torch has to be fetched)"
	@$(BIN)/python tools/install_torch.py constraints.txt
	@$(PIP) hatchling
	@$(PIP) $(EDITABLE) .
	@touch $@

$(VENV)/.dev: $(VENV)/.installed
	@$(PIP) $(EDITABLE) ".[dev]"
	@touch $@

# Half an environment is worse than none: it would not be made again.
$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' \
		2>/dev/null || { echo "sanawm needs Python 3.11, 3.12 or 3.13, and $(PYTHON) is" \
		"$$($(PYTHON) --version 2>&1 | head -n 1); try: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -m venv --clear $(VENV) || { rm -rf $(VENV); exit 1; }
