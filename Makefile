# `make demo` and `make test` need nothing but Debian or Ubuntu with Python 3.11 or newer.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test test-nightly check format bench clean system jms-helper

demo: $(READY)
	$(BIN)/gateway demo

test: check
	$(BIN)/pytest -m "not nightly"

test-nightly: $(READY)
	HYPOTHESIS_PROFILE=nightly $(BIN)/pytest --timeout 3600

check: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(READY)
	$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

$(READY): pyproject.toml constraints.txt deploy/system-packages.sh
	$(MAKE) system
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

# Debian packages: brokers for the tests and the demo, a Java runtime for Spark and JMS.
system:
	bash deploy/system-packages.sh

# The Java side of the JMS endpoint, from its sources; needs a JDK and the JMS interface.
jms-helper: $(READY)
	$(BIN)/python -m gateway.endpoints.jms.build
