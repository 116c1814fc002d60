# weft's front door. Every target installs what it needs; `make help` lists them.

BUILD  := build
VENV   := $(BUILD)/venv
STAMPS := $(BUILD)/stamps
PYTHON ?= python3
MDBOOK_VERSION := 0.5.4

# The MPI and the application of build/venv come first where a target runs MPI programs.
MPI_ENVIRONMENT := PATH="$(CURDIR)/$(VENV)/bin:$$PATH" LD_LIBRARY_PATH="$(CURDIR)/$(VENV)/lib:$$LD_LIBRARY_PATH"

.DEFAULT_GOAL := help
.PHONY: help demo run libraries test lint bench docs clean openmpi

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-7s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(STAMPS)/rust $(STAMPS)/venv ## Record LAMMPS on 8 ranks and replay it on two machines (STEPS=20)
	cargo build --locked --release -p weft-cli
	$(MAKE) --no-print-directory -C recorder
	$(MPI_ENVIRONMENT) $(VENV)/bin/python demo/rhodopsin.py $(if $(STEPS),--steps $(STEPS))

run: $(STAMPS)/rust $(STAMPS)/venv libraries ## Run a real MPI program on the ExaNeSt rack in virtual time (RANKS=4)
	$(VENV)/bin/mpicc -O2 -Wall -Wextra demo/ping_pong.c -o $(BUILD)/ping_pong
	target/release/weft run -m exanest -n $(or $(RANKS),4) --ppn 1 -- $(BUILD)/ping_pong

# What `weft run` needs: the command, with the library that ranks load beside it, and the libfabric provider.
libraries: | $(STAMPS)/rust
	cargo build --locked --release -p weft-cli
	$(MAKE) --no-print-directory -C libfabric

test: $(STAMPS)/rust $(STAMPS)/venv openmpi ## All checks and tests, under 20 minutes from nothing on 2 cores
	cargo fetch --locked
	$(VENV)/bin/python tools/test.py all

lint: $(STAMPS)/rust $(STAMPS)/venv ## The fast part of test: formatting, clippy, ruff, licences
	cargo fetch --locked
	$(VENV)/bin/python tools/test.py lint

bench: $(STAMPS)/rust $(STAMPS)/venv libraries ## Speed and memory: prints the table and keeps it in bench/runs
	@tools/install_packages.sh --optional "SimGrid beside weft in the benchmark" libsimgrid-dev
	$(VENV)/bin/mpicc -O2 -Wall -Wextra bench/ping_pong.c -o $(BUILD)/bench_ping_pong
	$(VENV)/bin/mpicc -O2 -Wall -Wextra bench/allreduce.c -o $(BUILD)/bench_allreduce
	$(MPI_ENVIRONMENT) $(VENV)/bin/python bench/run.py $(BENCH)

docs: $(STAMPS)/rust $(STAMPS)/venv $(BUILD)/tools/bin/mdbook ## Build the book and the API pages into build/
	$(VENV)/bin/python tools/check_docs.py
	$(BUILD)/tools/bin/mdbook build docs
	RUSTDOCFLAGS="-D warnings" cargo doc --locked --workspace --no-deps --target-dir $(BUILD)/api

clean: ## Remove all that make has built
	rm -rf $(BUILD) target

# mdBook is built from source, which takes minutes: only `make docs` wants it.
$(BUILD)/tools/bin/mdbook: | $(STAMPS)/rust
	cargo install mdbook --version $(MDBOOK_VERSION) --locked --root $(BUILD)/tools

$(STAMPS)/rust: rust-toolchain.toml | $(STAMPS)
	@tools/install_packages.sh gcc libc6-dev make
	@command -v cargo >/dev/null || { \
	  echo "Rust is missing. Install it from https://rustup.rs:" >&2; \
	  echo "  curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh" >&2; exit 2; }
	cargo --version
	@touch $@

# Built anew when the lock changes, so that nothing stays of an older one.
$(STAMPS)/venv: requirements.lock | $(STAMPS)
	@tools/install_packages.sh gcc libc6-dev
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Python 3.11 or later is needed; name one with make PYTHON=..." >&2; exit 2; }
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || tools/install_packages.sh python3-venv
	$(PYTHON) -m venv --clear $(VENV)
	$(VENV)/bin/pip install --quiet --disable-pip-version-check -r requirements.lock
	@touch $@

# The recorder's second build. Without it its tests report that they are skipped, so it is asked for
# again each time.
openmpi:
	@tools/install_packages.sh --optional "the tests of the recorder with Open MPI" openmpi-bin libopenmpi-dev lammps

$(STAMPS):
	@mkdir -p $@
