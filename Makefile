# Two commands on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin
PYTEST_WORKERS ?= 2
# Module fixtures are built once where a module stays on one worker; engine tests differ too much in length for that.
FAST = $(BIN)/pytest -n $(PYTEST_WORKERS) --dist loadscope -m "not docker"
ENGINE = $(BIN)/pytest -n $(PYTEST_WORKERS) --dist worksteal -m docker

.PHONY: help setup engine demo test test-fast test-engine test-postgres test-bleurt lint bench cover clean

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
	$(FAST)
	$(ENGINE)

test-fast: setup ## unit, contract and command-line tests without an engine
	$(FAST)

test-engine: setup ## the real-engine tests alone
	@setup/engine.sh tools
	$(ENGINE)

test-postgres: setup ## the ledger's contract tests on a PostgreSQL of their own (optional)
	@setup/postgres-test.sh

test-bleurt: setup ## the BLEURT tests with torch, in .venv-bleurt (optional, about 1 GB)
	@setup/bleurt-test.sh

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
	rm -rf .venv .venv-bleurt .cache demo bench.json .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .coverage*
	find . -name __pycache__ -prune -exec rm -rf {} +
