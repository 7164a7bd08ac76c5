# Every target sets up .venv by itself; python3 with venv and pip is all it needs.

PYTHON ?= python3
JOBS ?= 4
AGENT_JOBS ?= 2

PY := .venv/bin/python
READY := .venv/.ready
COVERED := .cache/covered.txt
COVERED_WITH_AGENTS := .cache/covered-with-agents.txt
CODE := $(wildcard src tests tools bench)

# The requirements that a passing test must cover; `make requirements` fails without.
PROMISED := S1 S2 S3 S4 S5 S6 S7 S8 S9 S10 S11 S12 S13 S14.1 S14.2 S14.3 S15 S16 \
	T0.1 T1.1 T1.2 T1.5 T1.6 T1.7 T2.1 T2.3 T2.4 T2.5 T3.2 T3.5 T3.6 T3.7 T3.8 T3.9 T3.10 T3.11 T3.12 T3.13 T3.16 T3.17 T3.18 \
	T4.1 T4.4 T5.1 T5.2 T5.3 I5 I6 Q1 Q2 Q3 Q4 Q6 \
	T0.2 T1.3 T1.4 T2.2 T3.1 T3.3 T3.4 T3.14 T3.15 T4.2 T4.3 R6 R10 R11 R20 I7 Q5 I1 I3

# Tests start many interpreters, and each would compile accord anew.
unexport PYTHONDONTWRITEBYTECODE

MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help
.PHONY: help test test-more test-long test-agents programs check format bench requirements reference demo clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' Makefile

test: $(READY) ## the tests, in under five minutes
	@ACCORD_COVERED=$(COVERED) $(PY) -m pytest -q -n $(JOBS)

test-more: $(READY) ## the same through more ways in and on more engines, as CI does
	@ACCORD_COVERED=$(COVERED) ACCORD_MORE=1 $(PY) -m pytest -q -n $(JOBS) -m 'not long and not agents'

test-long: $(READY) ## all tests, the long ones too
	@ACCORD_COVERED=$(COVERED) ACCORD_MORE=1 $(PY) -m pytest -q -n $(JOBS) -m 'not agents'

programs: $(READY) ## fetch with npm the programs of others that `make test-agents` runs (1.5 GB)
	@$(PY) tools/npm.py

test-agents: programs ## the tests with programs of others, such as those of agents
	@ACCORD_REQUIRE_ALL=1 ACCORD_COVERED=$(COVERED_WITH_AGENTS) \
		$(PY) -m pytest -q -n $(AGENT_JOBS) -m agents tests/agents tests/install tests/mcp

check: $(READY) ## formatting, lint, types, direction of imports
	@$(PY) -m ruff format --check --quiet $(CODE) || { echo 'run: make format'; exit 1; }
	@$(PY) -m ruff check --quiet $(CODE)
	@$(PY) -m mypy --no-error-summary $(CODE)
	@$(PY) -m pytest -q tests/test_imports.py

format: $(READY) ## format the code, sort the imports
	@$(PY) -m ruff check --quiet --select I --fix $(CODE)
	@$(PY) -m ruff format --quiet $(CODE)

bench: $(READY) ## measure, and write docs/benchmarks.md (up to 10 minutes)
	@$(PY) bench/run.py

requirements: $(READY) ## what the last `make test` and `make test-agents` proved of docs/requirements.md
	@$(PY) tools/requirements.py $(COVERED) $(wildcard $(COVERED_WITH_AGENTS)) --promised $(PROMISED)

reference: $(READY) ## write the pages of docs/ that are made from the code
	@$(PY) tools/reference.py

demo: $(READY) ## show what accord does
	@$(PY) -m accord.demo

clean: ## remove everything that make made
	@rm -rf .venv .cache .hypothesis build dist src/*.egg-info
	@find $(CODE) -name __pycache__ -type d -prune -exec rm -rf {} +

# setuptools goes in first and builds accord from there, so that constraints.txt holds for it too.
$(READY): pyproject.toml constraints.txt
	@echo 'setting up .venv'
	@$(PYTHON) -m venv --clear .venv
	@$(PY) -m pip install -q --disable-pip-version-check -c constraints.txt setuptools
	@$(PY) -m pip install -q --disable-pip-version-check -c constraints.txt --no-build-isolation -e '.[dev]'
	@$(PY) -m compileall -q .venv/lib
	@touch $@
