# make train   build, install, train Connect Four for five minutes
# make test    all tests but the slow and the gpu suite
# make quick   the core, searches, self-play and one run of training: a minute once `make test` or `make quick` has built;
#              `make quick ROOM=serving` runs tests/serving alone
# VENV=FOLDER uses a virtual environment of yours, with the packages in it.
# make site    the pages as a site in target/site/html
# The rest is for working on azpy: see CONTRIBUTING.md.

GAME ?= connect_four
MINUTES ?= 5
VENV ?= .venv
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	command -v $$p >/dev/null 2>&1 && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& { echo $$p; break; }; done)

# Windows has other names in a virtual environment. make runs in the shell of Git for Windows there.
WINDOWS := $(filter Windows_NT,$(OS))
EXE := $(if $(WINDOWS),.exe)
SCRIPTS := $(if $(WINDOWS),Scripts,bin)

ROOT := $(CURDIR)
BIN = $(abspath $(VENV))/$(SCRIPTS)
SOURCES := Cargo.toml Cargo.lock pyproject.toml \
	$(shell find rust azpy azpy_cli -type f \( -name '*.rs' -o -name '*.toml' -o -name '*.py' -o -name '*.pyi' \)) \
	$(wildcard azpy/web/board/*)
# rust/py links against this interpreter.
export PYO3_PYTHON = $(BIN)/python
# Where the environment keeps Python from writing what it compiles, each process of the tests would compile it again.
export PYTHONDONTWRITEBYTECODE =
# Tests see the installed wheel, not the source tree: they run in another folder.
ELSEWHERE = cd "$(VENV)" &&
PYTEST = $(ELSEWHERE) $(BIN)/python -m pytest -c "$(ROOT)/pyproject.toml" --rootdir "$(ROOT)"
# Tests wait for browsers, servers and other processes half of their time, so there are twice as many workers as cores.
TESTERS = $(shell $(BIN)/python -c 'import os; print(min(6, 2 * (os.cpu_count() or 1)))')
SIDE_BY_SIDE = --numprocesses $(TESTERS) --dist worksteal

# What `make test`, `make lint` and `make quick` install beside the wheel; cpu,train,test is enough for `make quick`.
EXTRAS ?= dev
DEV = $(VENV)/.dev-$(EXTRAS)
# What most tests import.
USED = azpy.training.trainer torch._dynamo $(if $(filter dev,$(EXTRAS)),jax mctx pyspiel)
# What `make quick` runs of Python. With ROOM=NAME it runs tests/NAME alone.
QUICK := search/test_exact.py search/test_counts.py search/test_forced_wins.py selfplay search/test_threads.py \
	cli/test_cli.py::test_a_small_run_prints_what_a_user_needs

.PHONY: train test quick lowest build wasm c lint lint-rust lint-python test-rust test-python test-slow fuzz bench site \
	wheel release sdist crates smoke clean tools

train: $(VENV)/.train
	$(BIN)/az-train "$(GAME)" --minutes "$(MINUTES)"
	@echo "The commands are in $(VENV)/bin: 'source $(VENV)/bin/activate' puts them on the path of this shell."

# The wheel comes first: pip, which uses one core, then installs packages while cargo compiles. Two jobs keep two cores
# busy: most of these programs use one core for most of their time.
test: tools
	$(MAKE) --no-print-directory $(LIGHT)/.built
	$(MAKE) --jobs=2 --no-print-directory $(DEV) test-python lint-rust test-rust lint-python

quick: $(DEV)
	$(if $(ROOM),,MAKEFLAGS= cargo test --release --locked -p azpy-core -p azpy-module)
	$(PYTEST) $(SIDE_BY_SIDE) $(addprefix "$(ROOT)"/tests/,$(or $(ROOM),$(QUICK)))

# `make quick` with the lowest versions that pyproject.toml allows: make lowest VENV=/tmp/lowest PYTHON=python3.11
lowest: $(BIN)/python$(EXE)
	$(BIN)/python -m pip install uv
	$(BIN)/uv pip compile --quiet --no-sources --resolution lowest-direct --python $(BIN)/python \
		--extra cpu --extra train --extra test --output-file "$(VENV)/lowest.txt" pyproject.toml
	rm -f $(VENV)/.dev-*
	PIP_CONSTRAINT="$(abspath $(VENV))/lowest.txt" $(MAKE) --no-print-directory quick EXTRAS=cpu,train,test

# A development build: Python sees edits of azpy/*.py at once, and edits of Rust after another `make build`.
build: $(BIN)/maturin$(EXE)
	rm -f $(VENV)/.wheel $(VENV)/.dev-*
	MAKEFLAGS= VIRTUAL_ENV=$(abspath $(VENV)) $(BIN)/maturin develop --locked
	$(BIN)/python -m pip install "azpy[$(EXTRAS)]"

# The program of pages without a server (az-export --web). The built one stands in the tree: after an edit of the crates
# that it is made of, run this and commit what it writes.
wasm: tools
	$(PYTHON) rust/web/build.py

# azpy for programs in C: its header and its library, in dist.
c: tools
	MAKEFLAGS= cargo build --profile wheel --locked --package azpy-c
	mkdir -p dist
	cp rust/c/azpy.h dist
	for file in libazpy.so libazpy.dylib azpy.dll azpy.dll.lib; do \
		[ ! -e target/wheel/$$file ] || cp target/wheel/$$file dist; done

lint: lint-rust lint-python

lint-rust: $(BIN)/python$(EXE)
	cargo fmt --all --check
	rustfmt --check --edition 2024 $(wildcard azpy/checks/template/src/*.rs rust/fuzz/fuzz_targets/*.rs)
	MAKEFLAGS= cargo clippy --release --workspace --all-targets --locked -- -D warnings

lint-python: $(DEV)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/zizmor --offline --quiet --strict-collection .github
	if command -v actionlint >/dev/null; then actionlint; fi
	$(ELSEWHERE) $(BIN)/python -m mypy.stubtest azpy._core --mypy-config-file "$(ROOT)/pyproject.toml"

# With azpy-module, which has no tests, crates have the features that they have in the wheel: none is compiled twice.
test-rust: tools
	MAKEFLAGS= cargo test --release --locked --workspace --exclude azpy-py

test-python: $(DEV)
	$(PYTEST) $(SIDE_BY_SIDE) --doctest-modules --pyargs azpy "$(ROOT)/tests"

test-slow: $(DEV)
	$(PYTEST) -m slow -o faulthandler_timeout=1800 "$(ROOT)/tests/$(SLOW)"

# Coverage-guided fuzzing of one target for MINUTES. The flags are those of cargo-fuzz without a sanitizer: these crates
# have no unsafe code. A build script must not have them, so the target is named.
FUZZ = games
FUZZ_COVERAGE = level=4 inline-8bit-counters pc-table trace-compares
FUZZ_FLAGS = -Cpasses=sancov-module $(addprefix -Cllvm-args=-sanitizer-coverage-,$(FUZZ_COVERAGE)) \
	--cfg fuzzing -Cdebug-assertions -Coverflow-checks

fuzz:
	mkdir -p rust/fuzz/corpus/$(FUZZ)
	cd rust/fuzz && RUSTC_BOOTSTRAP=1 RUSTFLAGS="$(FUZZ_FLAGS)" cargo run --release --bin $(FUZZ) \
		--target "$$(rustc -vV | sed -n 's/^host: //p')" -- -max_total_time=$$((60 * $(MINUTES))) \
		corpus/$(FUZZ) seeds/$(FUZZ)

# Measures the wheel that users get.
bench: $(VENV)/.train
	$(BIN)/az-bench search games evaluator selfplay

wheel: $(VENV)/.wheel

# A wheel as a release has it, in dist: make release TARGET=aarch64-unknown-linux-musl. For Linux zig links it, for
# glibc 2.17 or musl 1.2: maturin refuses a wheel that needs more, and finds zig by the python of the path. Without
# INTERPRETER one wheel serves Python 3.11 and later, but none without the GIL; abi3audit looks for what is not in 3.11's
# stable ABI. INTERPRETER=python3.14t builds the wheel for that one.
release: $(BIN)/maturin$(EXE)
	$(BIN)/python -m pip install "maturin[zig]>=1.10,<2" abi3audit
	rustup target add $(TARGET)
	env -u MAKEFLAGS -u PYO3_PYTHON PATH="$(BIN):$$PATH" $(BIN)/maturin build --out dist --target $(TARGET) \
		$(if $(findstring linux,$(TARGET)),--zig) $(addprefix --interpreter ,$(INTERPRETER))
	$(if $(INTERPRETER),,$(BIN)/abi3audit --strict dist/azpy-*-abi3-*.whl)

# The source package, and the wheel that pip makes of it.
sdist: $(BIN)/maturin$(EXE)
	$(BIN)/maturin sdist --out dist
	env -u MAKEFLAGS $(BIN)/python -m pip wheel --no-deps --wheel-dir dist dist/azpy-*.tar.gz

# The crates as a registry gets them, each compiled from what its package holds.
crates:
	MAKEFLAGS= cargo package --locked $(addprefix --package ,azpy-core azpy-games azpy-net azpy-serve)

# Installs the wheel that dist has for $(PYTHON), with nothing but what it needs, and tries it.
smoke: VERSION = $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
smoke: SMOKE = $(abspath $(VENV))/smoke/$(SCRIPTS)
smoke:
	$(PYTHON) -m venv --clear "$(VENV)/smoke"
	$(SMOKE)/python -m pip install --no-index --no-deps --find-links dist "azpy==$(VERSION)"
	$(SMOKE)/python -m pip install "azpy==$(VERSION)"
	cd "$(VENV)" && $(SMOKE)/python -c "import azpy; \
		print(azpy.Search(azpy.RolloutEvaluator(1), simulations=400).run(azpy.make_game('connect_four')).action)"
	cd "$(VENV)" && $(SMOKE)/az-check-game tic_tac_toe --games 20
	cd "$(VENV)" && $(SMOKE)/az-doctor --no-speed

clean:
	rm -rf $(VENV) dist target

tools:
	@: $(if $(PYTHON),,$(error Python 3.11 or newer is missing: install python3 from your package manager or https://www.python.org/downloads))
	@: $(if $(shell $(PYTHON) -c 'import ensurepip, venv; print("yes")' 2>/dev/null),,$(error Python has no venv module: install it, on Debian and Ubuntu with apt install python3-venv))
	@: $(if $(shell command -v cargo 2>/dev/null),,$(error cargo is missing: install Rust 1.89 or newer from https://rustup.rs))
	@: $(if $(shell cargo --version | awk '{split($$2, v, "."); if (v[1] > 1 || v[2] >= 89) print "yes"}'),,$(error Rust is too old: install 1.89 or newer, with rustup update))
	@: $(if $(WINDOWS)$(shell command -v cc 2>/dev/null),,$(error a C compiler is missing, Rust links with it: install gcc or clang, on Debian and Ubuntu with apt install build-essential))

# Stamps: make does not repeat a step whose result is up to date.
#   .wheel  dist/ holds the wheel for users, and it is installed
#   .train  the packages of az-train, and of az-play's board, are installed beside it
#   .dev-*  a wheel with the same sources is installed, for users or for tests, and so are the packages of these extras
#   .built  the folder light holds such a wheel; .wheel takes it away, so that no lighter one is installed after it
$(BIN)/python$(EXE): | tools
	$(PYTHON) -m venv $(VENV)

$(BIN)/maturin$(EXE): $(BIN)/python$(EXE)
	$(BIN)/python -m pip install "maturin>=1.10,<2"
	@touch $@

# Installs the one wheel of the folder $(1). Python finds the source tree first in this folder, so the source tree gets
# the core of the wheel.
define install
	$(BIN)/python -m pip install --no-deps --force-reinstall $(1)/azpy-*.whl
	$(BIN)/python -m zipfile --extract $(1)/azpy-*.whl "$(VENV)/.unpacked"
	cp "$(VENV)"/.unpacked/azpy/_core.$(if $(WINDOWS),pyd,*.so) azpy/
	@rm -rf "$(VENV)/.unpacked"
endef

# MAKEFLAGS names a job server that only make's own recipes reach. cargo would complain, so it runs without MAKEFLAGS.
$(VENV)/.wheel: $(SOURCES) $(BIN)/python$(EXE) | tools
	rm -rf dist $(LIGHT)
	@echo "Building the wheel: cargo compiles the core, which takes 2 to 6 minutes. pip prints little meanwhile."
	MAKEFLAGS= $(BIN)/python -m pip wheel --no-deps --wheel-dir dist .
	$(call install,dist)
	@touch $@

# PyPI's torch for Linux brings CUDA, a download of 3 GB. Without an NVIDIA driver the torch for the CPU is enough, if its
# index answers.
TORCH_CPU = https://download.pytorch.org/whl/cpu
WANTS_TORCH_CPU = import sys, shutil, ctypes.util, importlib.util, urllib.request; \
	sys.platform != "linux" or importlib.util.find_spec("torch") or shutil.which("nvidia-smi") \
	or ctypes.util.find_library("cuda") or sys.exit(not urllib.request.urlopen("$(TORCH_CPU)/torch/", timeout=5)); \
	sys.exit(1)

$(VENV)/.train: $(VENV)/.wheel
	@echo "Installing torch and what it needs: a download of 3 GB if torch comes with CUDA."
	if $(BIN)/python -c '$(WANTS_TORCH_CPU)' 2>/dev/null; then \
		$(BIN)/python -m pip install torch --index-url $(TORCH_CPU) || echo "pip takes torch from PyPI instead."; \
	fi
	wheel=$$(echo dist/azpy-*.whl) && $(BIN)/python -m pip install "$$wheel[cpu,train,serve]"
	@touch $@

# A wheel for users that is up to date will do. Otherwise the tests get a wheel that compiles in seconds, in a folder of
# its own, and `make train` has to build the wheel for users again.
LIGHT = $(VENV)/light
$(LIGHT)/.built: $(SOURCES) $(BIN)/maturin$(EXE) | tools
	@mkdir -p $(LIGHT) && rm -f $(LIGHT)/*
	@if [ -e $(VENV)/.wheel ] && [ -z "$$(find $(SOURCES) -newer $(VENV)/.wheel)" ]; then \
		cp dist/azpy-*.whl $(LIGHT); \
	else \
		rm -f $(VENV)/.wheel; \
		MAKEFLAGS= $(BIN)/maturin build --profile release --compatibility linux --out $(LIGHT); \
	fi
	@touch $@

# pip would compile every module of these packages, and few are ever imported. The imports have the used ones compiled
# once. Otherwise each process of pytest compiles them.
$(DEV): $(LIGHT)/.built
	$(call install,$(LIGHT))
	wheel=$$(echo $(LIGHT)/azpy-*.whl) && $(BIN)/python -m pip install --no-compile "$$wheel[$(EXTRAS)]"
	$(ELSEWHERE) $(BIN)/python -c "import importlib, sys; [*map(importlib.import_module, sys.argv[1:])]" $(USED)
	@touch $@

# Broken links fail. The pages get the folders that they have here, as the links between them name these.
site: $(LIGHT)/.built
	$(call install,$(LIGHT))
	wheel=$$(echo $(LIGHT)/azpy-*.whl) && $(BIN)/python -m pip install "$$wheel[site]"
	rm -rf target/site
	$(BIN)/python docs/site.py assemble target/site/pages
	$(BIN)/zensical build --strict
	rm -rf .cache
	for game in $(notdir $(wildcard azpy/players/*)); do \
		$(BIN)/az-export azpy/players/$$game --web target/site/html/docs/players/$$game || exit 1; done
	$(BIN)/python docs/site.py check target/site/html
