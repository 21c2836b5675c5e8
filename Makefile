# `make demo` and `make test` start from nothing but python3, make and a C compiler.

PYTHON ?= python3
JOBS ?= 2
PROGRAMS ?= 20000
MATRICES ?= 1000
GRADIENTS ?= 50000
GRAPHS ?= 5000
MODULES ?= 1000

# One more than cores: tests wait for disks and for each other's processes.
WORKERS ?= $(shell echo $$(($(JOBS) + 1)))

VENV := .venv
BIN := $(VENV)/bin
# Python compiles what it imports, once; pip would compile all that there is, which takes longer than the rest.
INSTALL := $(BIN)/python -m pip install --quiet --no-compile --config-settings editable_mode=strict --editable

# What is installed has a link to every file, and a folder changes when files come and go.
SOURCES := pyproject.toml $(shell find tc grammar tuner cache -type d ! -name __pycache__)

# Its processes have seconds to start, which is too few on a busy machine: it ends with 2 then, and works alone.
MYPY := $(BIN)/mypy -p tc -p tests -p benchmarks

# Tests start hundreds of processes, which need not compile the same modules again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test test-postgres lint types fuzz bench docs clean
.DELETE_ON_ERROR:

help:
	@echo "make demo   run the comprehensions of the demo on a photograph and print what they cost"
	@echo "make test   check style, types and layers, and run the tests"
	@echo "make test-postgres  run the tests of the cache on a PostgreSQL server too, which is installed if need be"
	@echo "make fuzz   compare PROGRAMS=$(PROGRAMS) random programs with the oracle, half of them under sanitizers,"
	@echo "            MATRICES=$(MATRICES) products of halves and bytes with it on the emulator,"
	@echo "            GRADIENTS=$(GRADIENTS) gradients with differences, GRAPHS=$(GRAPHS) random graphs with NumPy,"
	@echo "            and MODULES=$(MODULES) random modules with PyTorch"
	@echo "make bench  measure the suite beside PyTorch, NumPy and JAX; ARGUMENTS=... as for python -m benchmarks"
	@echo "make docs   build the documentation in docs-output/, where every broken link is an error"
	@echo "make clean  remove everything that make has made"

demo: $(VENV)/demo.installed
	$(BIN)/python -m benchmarks demo

test: lint types
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

test-postgres: $(VENV)/postgres.installed
	$(BIN)/python -m tests.cache.postgres

lint: $(VENV)/test.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/test.installed
	$(MYPY) --num-workers $(JOBS) || { [ $$? -eq 2 ] && $(MYPY); }

fuzz: $(VENV)/test.installed
	$(BIN)/python -m tests.fuzz --programs $(PROGRAMS) --jobs $(JOBS)
	$(BIN)/python -m tests.fuzz --matrices --programs $(MATRICES) --jobs $(JOBS)
	$(BIN)/python -m tests.fuzz.gradients --programs $(GRADIENTS) --jobs $(JOBS)
	$(BIN)/python -m tests.fuzz.graphs --programs $(GRAPHS) --jobs $(JOBS)
	$(BIN)/python -m tests.fuzz.modules --programs $(MODULES) --jobs $(JOBS)

bench: $(VENV)/bench.installed
	$(BIN)/python -m benchmarks --json bench-output/results.json --plot bench-output/results.png $(ARGUMENTS)

docs: $(VENV)/docs.installed
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --site-dir docs-output

$(VENV)/created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "error: Python 3.11 or newer is needed; \`make PYTHON=python3.12 ...\` names another one" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' || \
		{ echo "error: this Python cannot make virtual environments; install them (Debian: python3-venv)" >&2; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)
	@touch $@

$(VENV)/demo.installed: $(VENV)/created $(SOURCES)
	$(INSTALL) '.[demo]'
	@touch $@

$(VENV)/docs.installed: $(VENV)/created $(SOURCES)
	$(INSTALL) '.[docs]'
	@touch $@

$(VENV)/bench.installed: $(VENV)/created $(SOURCES)
	$(INSTALL) '.[bench]'
	@touch $@

$(VENV)/postgres.installed: $(VENV)/created $(SOURCES)
	$(INSTALL) '.[dev,postgres]'
	@touch $@

$(VENV)/test.installed: $(VENV)/created $(SOURCES)
	$(INSTALL) '.[dev]'
	@touch $@

clean:
	rm -rf $(VENV) build dist demo-output bench-output docs-output .mypy_cache .ruff_cache .pytest_cache .hypothesis *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
