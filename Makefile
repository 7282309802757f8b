# `make train` and `make test` do everything on a machine with Python >= 3.10, a C++ compiler and make.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
NATIVE := $(shell find native -name '*.hpp' -o -name '*.cpp' -o -name 'CMakeLists.txt')
ARGS   ?=
# make compiles one file at a time where ninja is not installed, unless it is told otherwise.
export CMAKE_BUILD_PARALLEL_LEVEL ?= $(shell getconf _NPROCESSORS_ONLN)

.PHONY: setup packages test-setup train master test test-all lint format bench compat sanitize native-test docs release-check bundle wheels clean help
help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit("warpzone needs Python 3.10 or newer; set PYTHON=python3.x") if sys.version_info < (3, 10) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/.installed: pyproject.toml constraints.txt CMakeLists.txt $(NATIVE) | $(VENV)/bin/python
	@echo "[setup] installing dependencies and building the native engine (a few minutes the first time; compiling the engine shows no progress)"
	$(BIN)/python -m pip install --no-compile -c constraints.txt -e '.[dev]'
	@touch $@

setup: $(VENV)/.installed ## virtual environment, dependencies, native build

train: setup ## train on 1-1 with the defaults for this machine (ARGS="--stages 1-2")
	$(BIN)/warpzone train $(ARGS)

master: setup ## one policy for all stages, from the ROM alone (ARGS="--stages 1 --minutes 40")
	$(BIN)/warpzone master $(ARGS)

lint: setup ## ruff, mypy, clang-format
	$(BIN)/ruff check src tests bench wheels
	$(BIN)/ruff format --check src tests bench wheels
	$(BIN)/mypy
	$(BIN)/clang-format --dry-run --Werror $(shell find native -name '*.hpp' -o -name '*.cpp')

format: setup ## rewrite files in the project's format
	$(BIN)/ruff check --fix src tests bench wheels
	$(BIN)/ruff format src tests bench wheels
	$(BIN)/clang-format -i $(shell find native -name '*.hpp' -o -name '*.cpp')

packages: ## Debian packages that some tests need (a browser, jq; for test-all an ARM compiler), if this user may install them
	@sh tests/system_packages.sh $(if $(CHOSEN),,arm)

test-setup: setup packages ## everything that the tests need

# Packages are downloaded beside the set-up; lint takes what the tests leave of the cores.
export CHOSEN ?= -m 'not long'
test: ## all checks but those that take minutes each
	@$(MAKE) --no-print-directory -j2 packages setup
	@nice -n 10 $(MAKE) --no-print-directory lint & lint=$$!; \
		$(BIN)/python -m pytest -n 2 --no-loadscope-reorder $(CHOSEN) $(ARGS); tests=$$?; \
		wait $$lint || { echo "[lint] failed: see above, or run make lint"; exit 1; }; exit $$tests

test-all: CHOSEN =
test-all: test ## all checks, also wheels, ARM, a cluster that loses a node

bench: setup ## benchmarks that print ratios
	$(BIN)/warpzone bench env $(ARGS)

compat: setup ## resume and train with other versions of torch, gymnasium, NumPy and nes-py (ARGS="--torch 2.9.1")
	$(BIN)/python bench/compat.py $(ARGS)

THREADED := team pool digest
sanitize: setup ## native tests and a 60-second fuzz under ASan and UBSan; those with threads under TSan
	$(BIN)/cmake -S native -B build/sanitize -DCMAKE_BUILD_TYPE=RelWithDebInfo -DWARPZONE_SANITIZE=address,undefined
	$(BIN)/cmake --build build/sanitize -j2
	WARPZONE_ROM=$$($(BIN)/python -m warpzone.engine.rom) WARPZONE_FUZZ_SECONDS=$${WARPZONE_FUZZ_SECONDS:-60} \
		$(BIN)/ctest --test-dir build/sanitize --output-on-failure
	$(BIN)/cmake -S native -B build/sanitize-threads -DCMAKE_BUILD_TYPE=RelWithDebInfo -DWARPZONE_SANITIZE=thread
	$(BIN)/cmake --build build/sanitize-threads -j2 --target $(THREADED)
	WARPZONE_ROM=$$($(BIN)/python -m warpzone.engine.rom) \
		$(BIN)/ctest --test-dir build/sanitize-threads --output-on-failure -R '^($(subst $() $(),|,$(THREADED)))$$'

docs: setup ## the documentation as a website in site/; any warning is an error
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[docs]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

release-check: setup ## everything a release has to pass: tests, figures, links, docs, wheels (ARGS="--skip tests")
	$(BIN)/python -m wheels.release $(ARGS)

TARGET ?= current
bundle: setup ## all wheels for an install without internet in bundle/ (TARGET=manylinux_2_28_x86_64 for another machine)
	$(BIN)/python bundle.py --target $(TARGET)

wheels: setup ## wheels for other machines in dist/, those for Linux installed and played (ARGS="--systems aarch64")
	$(BIN)/python -m wheels $(ARGS)

clean: ## remove everything that was built
	rm -rf $(VENV) build dist
