# Two commands set everything up on a fresh machine: `make demo` and `make test`.
# They need Python 3.10 or newer, make and a C compiler; everything else goes into .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PYTEST := $(BIN)/python -m pytest -n 2 --timeout 90
PLUGINS := example nvidia amd neuron gaudi
PACKAGES := ./core $(PLUGINS:%=./plugins/%) ./cli ./conformance
EDITABLE := $(foreach package,$(PACKAGES),-e $(package))
SOURCES := core/src cli/src conformance/src $(PLUGINS:%=plugins/%/src)

.PHONY: help demo test test-long lint format wheels coverage kit evidence clean FORCE

help:
	@echo "make demo       show this machine, then a simulated server"
	@echo "make test       run the tests"
	@echo "make test-long  run the long tests too"
	@echo "make lint       formatting, lint, strict types, import contracts"
	@echo "make wheels     build every wheel and test them in a clean environment"

$(VENV)/.created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' \
	  || { echo "error: $$($(PYTHON) --version 2>&1) is too old, Python 3.10 or newer is needed; try: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null \
	  || { echo "error: this Python has no ensurepip; run: sudo apt-get install python3-venv" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.demo: $(VENV)/.created $(foreach package,$(PACKAGES),$(package)/pyproject.toml)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "hatchling>=1.27" "editables>=0.5"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation $(EDITABLE)
	@touch $@

$(VENV)/.test: $(VENV)/.demo requirements-dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	@touch $@

demo: $(VENV)/.demo
	@echo "== this machine"
	@$(BIN)/accel-cli discover || test $$? -eq 3
	@echo
	@echo "== a simulated server with eight cards"
	@$(BIN)/accel-cli discover --simulate nvidia-h100x8
	@echo
	@$(BIN)/accel-cli topology --simulate nvidia-h100x8

test: $(VENV)/.test
	$(PYTEST) -m "not long" $(ARGS)

test-long: $(VENV)/.test
	$(PYTEST) $(ARGS)

lint: $(VENV)/.test
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy $(SOURCES)
	$(BIN)/lint-imports

format: $(VENV)/.test
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

coverage: $(VENV)/.test
	$(PYTEST) -m "not long" -q --cov --cov-report= $(ARGS)
	$(BIN)/coverage report --fail-under=95 --include="$(CONTRACT)"
	$(BIN)/coverage report --fail-under=100 --include="$(VISIBILITY)"

comma := ,
CONTRACT := core/src/anyaccel/errors.py,core/src/anyaccel/device.py,core/src/anyaccel/topology.py,core/src/anyaccel/visibility.py,core/src/anyaccel/capabilities.py,core/src/anyaccel/resources.py,core/src/anyaccel/metrics.py,core/src/anyaccel/machine.py,core/src/anyaccel/hookspec.py,core/src/anyaccel/pci.py,core/src/anyaccel/files.py,core/src/anyaccel/frozen.py,core/src/anyaccel/machine_description.py
VISIBILITY := core/src/anyaccel/visibility.py,plugins/*/src/*/visibility.py

REPORTS := $(PLUGINS:%=$(VENV)/kit-%.json)

$(VENV)/kit-%.json: $(VENV)/.test FORCE
	$(BIN)/python -m pytest -q -n 2 -p no:cacheprovider --pyargs anyaccel_conformance.checks --accel-plugin $* --accel-report $@

kit: $(REPORTS)
	$(BIN)/python conformance/generate_support_table.py --check $(REPORTS)

evidence: $(REPORTS)
	$(BIN)/python conformance/generate_support_table.py $(REPORTS)

wheels: $(VENV)/.test
	rm -rf dist
	for package in $(PACKAGES); do \
	  $(BIN)/python -m build --wheel --no-isolation --outdir dist $$package >/dev/null || exit 1; \
	done
	$(BIN)/python -m pytest -q -m wheels tests/test_wheels.py

clean:
	rm -rf $(VENV) dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage
