# `make` lists the targets. Tools live in .venv, pinned by the two lock files.
PYTHON ?= python3
LOGS ?= sample_traces/incident
ARGS ?=
VENV := .venv
BIN := $(VENV)/bin
DEMO := $(BIN)/analyze --db reports/demo.duckdb
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
COMPILE = uv pip compile --quiet --universal --generate-hashes --python-version 3.11 --custom-compile-command "make lock" $(ARGS)

help: ## This list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
setup: $(VENV)/.ready ## Create .venv with the analyze command, once
demo: $(VENV)/.ready ## Ingest, findings, HTML report (LOGS=/path for your own logs)
	@mkdir -p reports && rm -f reports/demo.duckdb reports/demo.duckdb.wal
	$(DEMO) ingest "$(LOGS)"
	$(DEMO) findings
	$(DEMO) report -o reports/incident.html --force
	@echo; echo "Open reports/incident.html, or ask on:  $(DEMO) findings"
test: $(VENV)/.ready ## The fast tests (ARGS="-k name -x" is passed on)
	$(BIN)/python -m pytest $(ARGS)
test-deep: $(VENV)/.ready ## The rest: every cut, variant, seed and kill
	$(BIN)/python -m pytest -m deep $(ARGS)
check: $(VENV)/.check-ready ## Format, lint and types, changing nothing
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
fix: $(VENV)/.check-ready ## Format, and mend what lint can mend
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
golden: $(VENV)/.ready ## Rewrite tests/golden; then read git diff
	$(BIN)/python -m pytest --refresh-golden $(ARGS)
schemas: $(VENV)/.ready ## Rewrite schemas/ from analyzer/contract/
	$(BIN)/python -m analyzer.contract.publish schemas
lock: ## Pin dependencies (needs uv; ARGS=--upgrade for newer ones)
	$(COMPILE) --group dev pyproject.toml -o requirements.lock
	$(COMPILE) --group check -c requirements.lock -o requirements-check.lock
bench: $(VENV)/.ready ## Throughput of readers, analyses and report
	$(BIN)/python benchmarks/run.py $(ARGS)
accuracy: $(VENV)/.ready ## Verdicts against the simulator's truth, about ten minutes; goes on where it was cut
	$(BIN)/python benchmarks/accuracy --table benchmarks/accuracy/TABLE.md $(ARGS)
accuracy-quick: $(VENV)/.ready ## The same on a few worlds of other seeds
	$(BIN)/python benchmarks/accuracy --quick --base 0 $(ARGS)
dist: $(VENV)/.check-ready ## Build wheel and sdist into dist/
	$(BIN)/python -m build --no-isolation

$(VENV)/.ready: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "error: need Python 3.11 or newer; try: make $(or $(MAKECMDGOALS),setup) PYTHON=python3.12" >&2; exit 2; }
	@$(PYTHON) -c 'import ensurepip, venv' || { echo "error: $(PYTHON) cannot create virtual environments; on Debian or Ubuntu: apt-get install python3-venv" >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(PIP) --require-hashes -r requirements.lock
	$(PIP) --no-deps --no-build-isolation -e .
	@touch $@
$(VENV)/.check-ready: $(VENV)/.ready requirements-check.lock
	$(PIP) --require-hashes -r requirements-check.lock
	@touch $@

.PHONY: help setup demo test test-deep check fix golden schemas lock bench accuracy accuracy-quick dist
