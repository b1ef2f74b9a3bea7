# `make demo` and `make test` need nothing but Debian or Ubuntu with Python 3.11 or newer.
# The system's Python, as in the images: it is compiled with profiles. One that pyenv compiled takes
# a quarter to a half more time for a message.
PYTHON ?= $(shell /usr/bin/python3 -c 'import os, sys; from importlib.util import find_spec; \
	sys.exit(sys.version_info < (3, 11) or os.getuid() and not find_spec("ensurepip"))' \
	2>/dev/null && echo /usr/bin/python3 || echo python3)
VENV := .venv
BIN := $(VENV)/bin
# Without compiled files each worker of the tests, and each gateway that they start, compiles anew.
unexport PYTHONDONTWRITEBYTECODE
READY := $(VENV)/.ready
DOCS := $(VENV)/.docs

.PHONY: help install demo quick test suite servers test-nightly test-current test-chaos test-images images release manifests check format docs docs-tables man bench bench-check clean system jms-helper lock licences audit

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):[^#]*## (.*)/  \1\t\2/' | expand -t 20

install: $(READY) ## the environment .venv with all parts, without the demonstration

demo: $(READY) ## installs everything, then brokers, bridge, traffic, archive and night
	$(BIN)/gateway demo

# Rules, names, mappings and codecs: no broker, no Java, no Spark. A tenth of the processor time of `make test`.
QUICK := model dialects translate routing proofs config wire check logs imports runtime/delivery
quick: check ## check, then the tests that need no broker, no Java and no Spark
	$(BIN)/pytest -q -n 2 -m "not broker and not spark and not browser and not nightly and not chaos" $(QUICK:%=tests/%)

# Beside the tests, since mypy takes one core; a fault that it finds is printed at once.
test: $(READY) ## format, lint, types, contracts, and all tests with real brokers
	$(MAKE) --jobs 2 check suite

# The server of AMQP 1.0, a RabbitMQ 4, is none of Debian 12: about a minute, once. Without it, as on
# a machine that may not mount, its tests are skipped.
servers:
	@tests/brokers/server-root.sh trixie || echo 'no RabbitMQ 4: the tests of AMQP 1.0 are skipped' >&2

# Half of the time is waiting for brokers, so there are more workers than cores.
suite: servers
	$(BIN)/python -m compileall -q gateway  # each worker would compile each module at the same time
	$(BIN)/pytest -m "not nightly and not chaos" -n 4 --dist loadfile --no-loadscope-reorder --session-timeout 2400

test-nightly: $(READY) $(DOCS) ## the long forms of all tests
	HYPOTHESIS_PROFILE=nightly $(BIN)/pytest --timeout 3600 -o faulthandler_timeout=3700
	@$(MAKE) test-current SUITE=sid || echo 'the newest servers differ: a message, and no verdict on a change' >&2

# Another suite: `make test-current SUITE=sid`. As root, it makes the root of the servers in .servers.
SUITE ?= trixie
test-current: $(READY) ## RabbitMQ, NATS and MQTT on the servers of Debian trixie: minutes
	tests/brokers/server-root.sh $(SUITE)
	GATEWAY_TEST_SUITE=$(SUITE) $(BIN)/pytest -m "not nightly and not chaos" -n 2 --dist loadfile \
		-k "not jms and not solace and not yami4" tests/conformance tests/endpoints tests/brokers

# Kills, cuts, full disks and a million spooled messages: three quarters of an hour on two cores.
test-chaos: $(READY) ## kills, cuts, full disks: three quarters of an hour
	$(BIN)/pytest -m chaos -n 2 --dist loadfile --timeout 3600 -o faulthandler_timeout=3700 tests/chaos

# The images, with their sizes. BASE is the base image (debian:bookworm-slim).
images: ## the images, with their sizes
	deploy/images.sh

# Wheel, source archive, slim image, documents, list of packages, checksums in dist/; it prints how to
# sign and tag.
release: $(READY) ## what a release publishes, in one folder with checksums
	$(BIN)/python -m deploy.artefacts

# The images in a Docker engine, with their brokers, systemd and Compose: about an hour. As root, it
# starts an engine where none answers, and installs what that needs. Its layers stay in .images.
test-images: $(READY) ## the images in a Docker engine: an hour
	bash deploy/engine-packages.sh
	GATEWAY_TEST_ENGINE=start $(BIN)/pytest tests/deploy --timeout 3600 -o faulthandler_timeout=3700

check: ## format, lint, types, contracts, generated tables and prose; installs nothing
	@test -x $(BIN)/ruff || { echo 'make check: $(VENV) is absent; run make test or make demo once, which install it' >&2; exit 2; }
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m deploy.licences --check
	$(BIN)/python -m docs.tables --check
	$(BIN)/python -m deploy.manifests --check
	$(BIN)/python .ci/prose.py

format: $(READY) ## format the code, and mend what the linter can
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# The generated tables of the documents, and the man page.
docs-tables: $(READY) ## the generated tables of the documents, and the man page
	$(BIN)/python -m docs.tables

man: docs-tables
	man -l gateway/cli/shell/gateway.1

# The documents as a site with a search, in `site/`; a viewer needs no network:
# python3 -m http.server --bind 127.0.0.1 --directory site
docs: $(DOCS) ## the documents as a site with a search, in site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

$(DOCS): $(READY)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[docs]'
	touch $@

# deploy/kubernetes/base, from the Helm chart.
manifests: $(READY)
	$(BIN)/python -m deploy.manifests

bench: $(READY) ## all benchmarks, each beside its yardstick; needs a quiet machine
	$(BIN)/python -m benchmarks

# Fails when a ratio to a yardstick is a fifth worse than in benchmarks/ratios.json.
bench-check: $(READY) ## compare the ratios with benchmarks/ratios.json
	$(BIN)/python -m benchmarks.check

clean: ## remove the environment and all caches
	rm -rf $(VENV) .audit .images .servers site .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

$(READY): pyproject.toml constraints.txt deploy/system-packages.sh deploy/prometheus.sh
	$(MAKE) system
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	deploy/prometheus.sh $(BIN)
	touch $@

# What the images install, pinned with hashes; after a change of pyproject.toml or constraints.txt.
lock: $(READY)
	$(BIN)/python -m pip install --quiet uv
	PATH="$(CURDIR)/$(BIN):$$PATH" deploy/lock.sh

licences: $(READY)
	$(BIN)/python -m deploy.licences

# Known weaknesses of what the images install; asks a public service, so `make check` leaves it out.
audit: $(READY)
	$(PYTHON) -m venv .audit
	.audit/bin/pip install --quiet pip-audit
	.audit/bin/pip-audit --require-hashes --disable-pip -r deploy/lock/spark.txt

# Debian packages: brokers for the tests and the demo, a Java runtime for Spark and JMS.
system:
	PYTHON=$(PYTHON) bash deploy/system-packages.sh

# The Java side of the JMS endpoint, from its sources; needs a JDK and the JMS interface.
jms-helper: $(READY)
	$(BIN)/python -m deploy.jms_jars
