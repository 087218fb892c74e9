# Targets of the project. Needs make and Python 3.11 or newer; everything else is put into .venv by itself.
.DEFAULT_GOAL := help
SHELL := /bin/sh
PORT ?= 8501
# Looked for once, and only without a .venv: a version manager's shims take a third of a second each.
PYTHONS := python3.13 python3.12 python3.11 python3
RECENT := -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
PY := .venv/bin/python
QUIET := --no-print-directory
CHROMIUM := $(shell command -v chromium || command -v chromium-browser || command -v google-chrome)
WORKERS ?= 2
# One more than cores, since tests wait for links, clocks and pages, too.
TEST_WORKERS ?= $(shell expr $(WORKERS) + 1)
COMPANIES ?= $(shell mktemp -d -u "$${TMPDIR:-/tmp}/glassleaf-companies-XXXXXX")
INPUTS ?= 10000
# conversations of each kind with the toy world of the leak oracle
LEAKS ?= 400
KILLS ?= 100
# What an edit loop leaves out: whole homes, pages, links, measurements, the wheel and what stands at the end of a branch; and tests marked slow.
SLOW := $(addprefix tests/,app bench cli crypto docs e2e faults fuzz link oracle packaging protocols/explanations protocols/training reports research server services trees/importers)
# What is imported is compiled once, not by every process of every run.
unexport PYTHONDONTWRITEBYTECODE
CLAIMS := cipher curves training training_ciphers label_leak alignment coverage score_bits ranking reasons backgrounds privacy startup sessions memory links \
	stream online processes verdicts

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' Makefile

.PHONY: run
run: .venv-run ## Prepare the demo and open the dashboard on http://localhost:8501 (another port: make run PORT=9000)
	@$(PY) -m glassleaf run --port $(PORT)

.PHONY: federation
federation: .venv-dev ## The demo as three companies: processes and folders of their own, over real links (COMPANIES=folder)
	@$(PY) -m glassleaf companies --out "$(COMPANIES)" --start --port $(PORT)

# Each of several workers has one core: no library takes the others'.
test test-slow test-fast e2e: export OMP_NUM_THREADS := 1
test test-slow test-fast e2e: export OPENBLAS_NUM_THREADS := 1

.PHONY: test
test: .venv-dev ## Run the tests but those marked slow and those in the browser (what fails runs once more, and the summary says so)
	@$(PY) -m pytest -q -n $(TEST_WORKERS) --dist loadfile --no-loadscope-reorder --ignore=tests/e2e -m "not slow" --reruns 1 -rR

.PHONY: test-slow
test-slow: .venv-dev ## Run the tests marked slow: walks over real data, the papers' tables, the wheel
	@$(PY) -m pytest -q -n $(WORKERS) --dist worksteal -m slow

.PHONY: test-fast
test-fast: .venv-dev ## Run in a minute what finds most mistakes; says what it leaves out
	@echo "Left out: $(SLOW), and tests marked slow; make test and make test-slow run them."
	@$(PY) -m pytest -q -n $(WORKERS) --dist loadfile --no-loadscope-reorder -m "not e2e and not slow" $(addprefix --ignore=,$(SLOW))

.PHONY: fuzz
fuzz: .venv-dev ## Damage every kind of file that a user can hand in, 10,000 times (other numbers: make fuzz INPUTS=500), and send a Host as many mutated messages, and ask Hosts of a toy world anything, in thousands of conversations
	@FUZZ_INPUTS=$(INPUTS) $(PY) -m pytest -q tests/fuzz tests/protocols/terms/test_mutated_messages.py
	@HYPOTHESIS_PROFILE=explore LEAK_EXAMPLES=$(LEAKS) $(PY) -m pytest -q -n $(WORKERS) tests/oracle

.PHONY: faults
faults: .venv-dev ## Kill parties at every write, 100 times each (other numbers: make faults KILLS=10); make test-slow does a tenth
	@FAULT_KILLS=$(KILLS) $(PY) -m pytest -q -n $(WORKERS) --dist worksteal -m faults

.PHONY: mutants
mutants: .venv-dev ## Break forty places of the backend one by one, and see whether the tests of the same folder notice (others: make mutants SEED=2)
	@$(PY) tests/break_places.py --seed $(or $(SEED),1)

.PHONY: e2e
e2e: .venv-dev ## Walk the dashboard in headless Chromium (a walk that fails is walked once more, and the summary says so)
	@$(PY) -m pytest -q -n $(TEST_WORKERS) --dist worksteal -m "e2e and not slow" --reruns 1 -rR

.PHONY: check
check: lint ## Lint, types, import contract and documentation, then the tests and those in the browser
ifeq ($(CHROMIUM),)
	@echo "No Chromium found: the tests in the browser (make e2e) are left out. Debian: apt-get install chromium"
	@$(MAKE) $(QUIET) test
else
	@$(MAKE) $(QUIET) test
	@$(MAKE) $(QUIET) e2e
endif

.PHONY: release
release: check ## What has to pass before a version: also the tests marked slow and the papers' tables in small
	@$(MAKE) $(QUIET) test-slow
	@$(MAKE) $(QUIET) paper QUICK=1

.PHONY: lint
lint: .venv-dev ## The checks that run no test
	@$(MAKE) $(QUIET) --jobs=2 .lint-types .lint-rest

.PHONY: .lint-types .lint-rest
.lint-types:
	@$(PY) -m mypy
.lint-rest:
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@$(PY) -c 'from importlinter.cli import lint_imports_command; lint_imports_command()'
	@$(PY) docs/architecture.py --check
	@$(PY) -m docs.commands --check
	@$(PY) -m docs.validation --check
	@$(PY) -m docs.rule_lists --check
	@$(PY) -m docs.glossary --check
	@$(PY) -m docs.openapi --check
	@$(PY) -m bench.readme --check
	@$(PY) -m bench.paper --check
	@$(PY) .ci/platforms.py
	@$(PY) .ci/deploy.py

.PHONY: images
images: .venv-dev ## Build the images of a Guest and a Host, where a Docker daemon answers
	@$(PY) .ci/deploy.py --images

.PHONY: bench
bench: .venv-dev ## Measure (an hour), write the figures into the documents, and print the aims and which claim became untrue
	@before=$$(mktemp -d) && cp bench/results/*.json $$before && \
	for claim in $(CLAIMS); do \
		$(PY) -m bench.$$claim --json > bench/results/$$claim.new || exit 1; \
		mv bench/results/$$claim.new bench/results/$$claim.json; done && \
	$(PY) -m bench.readme && $(PY) -m bench.aims --before $$before && rm -r $$before

.PHONY: growth
growth: .venv-dev ## Measure how cost grows with rows, features, trees and parties (planned for two hours; a smaller base: GROWTH_BASE=rows,features,trees,parties)
	@$(PY) -m bench.growth --json > bench/results/growth.new && mv bench/results/growth.new bench/results/growth.json && $(PY) -m bench.readme

.PHONY: paper
paper: .venv-dev ## Measure the papers' tables and figures (half an hour) and write docs/paper.md; needs the data sets (QUICK=1: small samples)
	@$(PY) -m bench.paper $(if $(QUICK),--quick)

.PHONY: docs
docs: .venv-dev ## Write the generated parts of the documents again
	@$(PY) docs/architecture.py
	@$(PY) -m docs.commands
	@$(PY) -m docs.validation
	@$(PY) -m docs.rule_lists
	@$(PY) -m docs.glossary
	@$(PY) -m docs.openapi
	@$(PY) -m bench.readme
	@$(PY) -m bench.paper --page

.PHONY: clean
clean: ## Delete .venv and all caches (models and keys under GLASSLEAF_HOME stay)
	@rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The environment: .venv/installed-* is a copy of the requirements that were installed, so that only a change installs again.

.PHONY: .venv-made .venv-run .venv-dev
.venv-made:
	@if $(PY) -c 'import pip' 2>/dev/null; then exit 0; fi; \
	python="$(PYTHON)"; \
	for each in $(PYTHONS); do if [ -z "$$python" ] && $$each $(RECENT); then python=$$each; fi; done; \
	if [ -z "$$python" ]; then \
		echo "Glassleaf needs Python 3.11 or newer; none was found as python3.13, python3.12, python3.11 or python3." >&2; \
		echo "Install one, or name it: make $(MAKECMDGOALS) PYTHON=/path/to/python" >&2; exit 1; fi; \
	if ! $$python $(RECENT); then \
		echo "Glassleaf needs Python 3.11 or newer; $$python is older, or is not there." >&2; \
		echo "Name another one: make $(MAKECMDGOALS) PYTHON=/path/to/python" >&2; exit 1; fi; \
	if ! $$python -c 'import ensurepip, venv' 2>/dev/null; then \
		echo "$$python cannot make virtual environments: its module ensurepip is missing." >&2; \
		echo "On Debian and Ubuntu: apt-get install python3-venv; then run make again." >&2; exit 1; fi; \
	echo "Making .venv with $$python …"; $$python -m venv --clear .venv

.venv-run: .venv-made
	@if ! cat requirements.txt constraints.txt | cmp -s - .venv/installed-run; then \
		echo "Installing requirements.txt …"; \
		$(PY) -m pip install -qq --disable-pip-version-check -r requirements.txt \
		&& cat requirements.txt constraints.txt > .venv/installed-run; fi

.venv-dev: .venv-run
	@if ! cat requirements.txt requirements-dev.txt constraints.txt | cmp -s - .venv/installed-dev; then \
		echo "Installing requirements-dev.txt …"; \
		$(PY) -m pip install -qq --disable-pip-version-check -r requirements-dev.txt \
		&& cat requirements.txt requirements-dev.txt constraints.txt > .venv/installed-dev; fi
