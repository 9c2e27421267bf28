# make train   build, install, train Connect Four for five minutes
# make test    all tests but the slow and the gpu suite
# VENV=FOLDER uses a virtual environment of yours, with the packages in it.
# The rest is for working on azpy: see CONTRIBUTING.md.

GAME ?= connect_four
MINUTES ?= 5
VENV ?= .venv
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	command -v $$p >/dev/null 2>&1 && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& { echo $$p; break; }; done)

ROOT := $(CURDIR)
BIN = $(abspath $(VENV))/bin
SOURCES := Cargo.toml Cargo.lock pyproject.toml \
	$(shell find rust azpy azpy_cli -type f \( -name '*.rs' -o -name '*.toml' -o -name '*.py' -o -name '*.pyi' \))
# rust/py links against this interpreter.
export PYO3_PYTHON = $(BIN)/python
# Tests see the installed wheel, not the source tree: they run in another folder.
ELSEWHERE = cd "$(VENV)" &&
PYTEST = $(ELSEWHERE) $(BIN)/python -m pytest -c "$(ROOT)/pyproject.toml" --rootdir "$(ROOT)"

.PHONY: train test build lint lint-rust lint-python test-rust test-python test-slow bench wheel clean tools

train: $(VENV)/.train
	$(BIN)/az-train "$(GAME)" --minutes "$(MINUTES)"
	@echo "The commands are in $(VENV)/bin: 'source $(VENV)/bin/activate' puts them on the path of this shell."

# The wheel is built beside the checks of Rust, on one core each for most of the time.
test: tools
	$(MAKE) --jobs=2 --no-print-directory $(VENV)/.dev test-rust lint-rust
	$(MAKE) --no-print-directory lint-python test-python

# A development build: edits of azpy/*.py are seen at once, those of Rust after another `make build`.
build: $(VENV)/.dev
	rm -f $(VENV)/.wheel
	VIRTUAL_ENV=$(abspath $(VENV)) $(BIN)/maturin develop --release --locked

lint: lint-rust lint-python

lint-rust: $(VENV)/bin/python
	cargo fmt --all --check
	rustfmt --check --edition 2024 examples/*/src/*.rs
	MAKEFLAGS= cargo clippy --workspace --all-targets --locked -- -D warnings

lint-python: $(VENV)/.dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(ELSEWHERE) $(BIN)/python -m mypy.stubtest azpy._core --mypy-config-file "$(ROOT)/pyproject.toml"

test-rust: tools
	MAKEFLAGS= cargo test --locked

test-python: $(VENV)/.dev
	$(PYTEST) --numprocesses auto --maxprocesses 4 --dist worksteal "$(ROOT)/tests"
	$(PYTEST) --doctest-modules --pyargs azpy

test-slow: $(VENV)/.dev
	$(PYTEST) -m slow -o faulthandler_timeout=1800 "$(ROOT)/tests"

bench: $(VENV)/.dev
	cargo bench --locked
	$(BIN)/az-bench search games evaluator selfplay

wheel: $(VENV)/.wheel

clean:
	rm -rf $(VENV) dist target

tools:
	@: $(if $(PYTHON),,$(error Python 3.11 or newer is missing: install python3 from your package manager or https://www.python.org/downloads))
	@: $(if $(shell $(PYTHON) -c 'import ensurepip, venv; print("yes")' 2>/dev/null),,$(error Python has no venv module: install it, on Debian and Ubuntu with apt install python3-venv))
	@: $(if $(shell command -v cargo 2>/dev/null),,$(error cargo is missing: install Rust 1.88 or newer from https://rustup.rs))
	@: $(if $(shell cargo --version | awk '{split($$2, v, "."); if (v[1] > 1 || v[2] >= 88) print "yes"}'),,$(error Rust is too old: install 1.88 or newer, with rustup update))
	@: $(if $(shell command -v cc 2>/dev/null),,$(error a C compiler is missing, Rust links with it: install gcc or clang, on Debian and Ubuntu with apt install build-essential))

# Stamps: what is up to date is not done again.
$(VENV)/bin/python: | tools
	$(PYTHON) -m venv $(VENV)

# Without MAKEFLAGS, here and where cargo runs: they name a job server that only make's own recipes reach, and cargo would
# complain.
$(VENV)/.wheel: $(SOURCES) $(VENV)/bin/python | tools
	rm -rf dist
	@echo "Building the wheel: cargo compiles the core, which takes 2 to 6 minutes. pip prints little meanwhile."
	MAKEFLAGS= $(BIN)/python -m pip wheel --no-deps --wheel-dir dist .
	$(BIN)/python -m pip install --no-deps --force-reinstall dist/azpy-*.whl
# In this folder Python finds the source tree, which hides the installed wheel: it gets the wheel's core.
	$(BIN)/python -m zipfile --extract dist/azpy-*.whl "$(VENV)/.unpacked"
	cp "$(VENV)"/.unpacked/azpy/_core.*.so azpy/
	@rm -rf "$(VENV)/.unpacked"
	@touch $@

$(VENV)/.train: $(VENV)/.wheel
	@echo "Installing torch and what it needs. Without a torch in $(VENV), pip downloads the one for CUDA (3 GB)."
	wheel=$$(echo dist/azpy-*.whl) && $(BIN)/python -m pip install "$$wheel[cpu,train]"
	@touch $@

$(VENV)/.dev: $(VENV)/.wheel
	wheel=$$(echo dist/azpy-*.whl) && $(BIN)/python -m pip install "$$wheel[dev]"
	@touch $@
