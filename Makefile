# Two commands on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin
PYTEST_WORKERS ?= 2

.PHONY: help setup engine demo test test-fast test-engine lint bench cover clean

help: ## show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 16

setup: ## create .venv from the lock file; the tool is .venv/bin/piste
	@PYTHON=$(PYTHON) setup/venv.sh

engine: ## make sure that a Docker engine answers (installs and starts one as root on Debian or Ubuntu)
	@setup/engine.sh

demo: setup engine ## seal a sample edition, certify the baseline's image, show card, board and evidence
	@setup/demo.sh

test: setup ## every test, the real-engine ones included
	@setup/engine.sh tools
	$(BIN)/pytest -n $(PYTEST_WORKERS) --dist worksteal

test-fast: setup ## unit, contract and command-line tests without an engine
	$(BIN)/pytest -n $(PYTEST_WORKERS) -m "not docker" tests/unit tests/contract tests/cli

test-engine: setup ## the real-engine tests alone
	@setup/engine.sh tools
	$(BIN)/pytest -n $(PYTEST_WORKERS) --dist worksteal -m docker

lint: setup ## ruff, mypy and the import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: setup engine ## ratios against peers in the same run: a table, and bench.json
	$(BIN)/python -m benchmarks

cover: setup ## all tests with coverage, child processes included
	@setup/engine.sh tools
	$(BIN)/pytest -n $(PYTEST_WORKERS) --cov --cov-report=term:skip-covered

clean: ## remove what the commands above made
	rm -rf .venv .cache demo bench.json .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .coverage*
	find . -name __pycache__ -prune -exec rm -rf {} +
