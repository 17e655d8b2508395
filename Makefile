# SPDX-License-Identifier: MIT OR Apache-2.0
# make run    build the release binary and reproduce the published iozone table
# make test   every test (a C compiler and a Rust toolchain are all that is needed)
# make test-long   tests of half a minute and more: larger devices, more writes
# make test-clients  nbdcopy, qemu-img, fio, SQLite and others use a served device (packages of Debian; it says which)
# make test-guest  Linux in QEMU and Readpath read each other's flash (packages of Debian; it says which)
# make test-guest-large  the same at full size: a NAND of 4 GiB, find over a /usr, rm of 1 GiB (ten minutes, 6 GiB of disk)
# make test-kernel  Linux guests in QEMU use a UFS device (packages of Debian; it says which; builds a kernel once)
# make test-kernel-long  the same guests, killed 300 times while they write (25 minutes)
# make test-pages  reports as Chromium lays them out: errors, loads, empty figures, widths, contrast (chromium)
# make test-python  the Python package, in a virtual environment of its own (Python 3.11 or newer, and PyPI once)
# make fast   target/dist/readpath: optimised for what it does most, for long studies (six minutes; llvm-tools of rustup)
# make dist   out/dist: a tarball with a static program, and the Python wheel (Python 3.11 or newer, and PyPI once)
# make dist-check  whether two builds make the same bytes, and whether they run and can be installed (as make dist)
# make licences  whether every crate may be linked in (cargo-deny, from crates.io once)
# make bench  how fast the simulator is on this machine
# make bench-clients  how many requests a second a served device takes, beside nbdkit and QEMU (fio, nbdkit)
# make bench-latency  whether the latencies of a served device are those of the model (fio)
# make docs   the API documentation, and a check of links in the Markdown files
# make book   target/book: the book as HTML (mdBook, from crates.io once)
# make test-book  every command of README and the book is run, and what it prints compared (bash, gzip, xz; a quarter of an hour)
# make check  format, lint and house rules
# make mutants  faults put into what RANGE=main~20.. changed, or into CRATE=readpath-sweep, for MINUTES=60 at most: which of
#             them no test finds (cargo-mutants, from crates.io once)
# make fuzz   every fuzz body over fixed pseudo-random inputs, on the stable toolchain
CARGO ?= cargo
OUT ?= out

GUEST ?= target/guest
# QEMU, kernels and tools of test-kernel.
KERNEL_LAB ?= target/kernel

PYTHON ?= python3
# Where test-python installs the package, and builds it.
VENV ?= target/python
TARGET = $(abspath $(or $(CARGO_TARGET_DIR),target))
# The package is a workspace of its own; checking it needs no Python.
PY_CARGO = CARGO_TARGET_DIR=$(TARGET)/py $(CARGO)

.PHONY: run test test-long test-pages test-python test-clients bench-clients bench-latency test-guest \
	test-guest-large test-kernel test-kernel-long bench docs check mutants fuzz build fast dist dist-check licences book options test-book clean

build:
	$(CARGO) build --release --locked -p readpath

fast:
	CARGO="$(CARGO)" sh release/fast.sh

dist:
	rm -f $(OUT)/dist/readpath-*
	sh release/tarball.sh $(OUT)/dist
	PYTHON=$(PYTHON) sh release/wheel.sh $(OUT)/dist
	cd $(OUT)/dist && sha256sum readpath-* >SHA256SUMS && cat SHA256SUMS

dist-check:
	PYTHON=$(PYTHON) sh release/check.sh target/release-check

# Tools that are programs of crates.io, each at one version, built once.
TOOLS ?= target/tools
CARGO_DENY = $(TOOLS)/cargo-deny-0.20.2
$(TOOLS)/%:
	name=$$(echo $* | sed 's/-[0-9.]*$$//'); $(CARGO) install $$name --version $$(echo $* | sed 's/.*-//') --locked \
	    --no-default-features --root $(TOOLS) --target-dir $(TOOLS)/build && mv $(TOOLS)/bin/$$name $@

licences: $(CARGO_DENY)
	for manifest in Cargo.toml crates/py/Cargo.toml fuzz/Cargo.toml; do \
	    $(CARGO_DENY) --manifest-path $$manifest --locked --config deny.toml check licenses bans sources || exit 1; done
	sh release/licences.sh program >/dev/null && sh release/licences.sh wheel >/dev/null

run: build
	./target/release/readpath reproduce iozone --out $(OUT)/iozone

test:
	$(CARGO) test --workspace --locked

test-long:
	$(CARGO) test --locked -p readpath-run -p readpath-lab -p readpath-store -p readpath --test suite -- --ignored --nocapture

test-pages:
	READPATH_PAGES=1 $(CARGO) test --locked -p readpath --test suite pages

test-python: build
	$(PYTHON) -m venv $(VENV)
	CARGO_TARGET_DIR=$(TARGET)/py $(VENV)/bin/pip install --quiet --disable-pip-version-check '.[test]'
	READPATH=$(TARGET)/release/readpath $(VENV)/bin/python -m pytest

test-clients: build
	bash crates/cli/tests/clients/run.sh target/release/readpath target/clients

bench-clients: build
	bash crates/cli/tests/clients/throughput.sh target/release/readpath

bench-latency: build
	bash crates/cli/tests/clients/latency.sh target/release/readpath

GUEST_TEST = READPATH_GUEST=$(abspath $(GUEST)) $(CARGO) test --locked -p readpath-ubifs --test suite -- --ignored --nocapture

test-guest:
	sh crates/nand/ubifs/tests/suite/guest/setup.sh $(GUEST)
	$(GUEST_TEST) linux_and_readpath_read_each_others_flash

test-guest-large:
	sh crates/nand/ubifs/tests/suite/guest/setup.sh $(GUEST)
	$(GUEST_TEST) at_the_size_of_the_published_experiment

test-kernel: build
	sh crates/cli/tests/kernel/run.sh $(KERNEL_LAB) target/release/readpath

test-kernel-long: build
	ROUNDS=200 sh crates/cli/tests/kernel/run.sh $(KERNEL_LAB) target/release/readpath torture

bench: build
	./target/release/readpath dev bench

# The page of all options is what the program says.
options: build
	sh docs/options.sh $(TARGET)/release/readpath >docs/options.md

docs: options
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --locked --no-deps
	RUSTDOCFLAGS="-D warnings" CARGO_TARGET_DIR=$(TARGET)/private $(CARGO) doc --workspace --locked --no-deps \
	    --document-private-items
	sh docs/check-links.sh

MDBOOK = $(TOOLS)/mdbook-0.5.4
book: $(MDBOOK) options
	sh docs/build-book.sh $(MDBOOK) target/book

test-book: build
	READPATH=$(TARGET)/release/readpath $(CARGO) test --locked -p readpath-testkit --test book -- --ignored --nocapture

check:
	$(CARGO) fmt --all --check
	$(CARGO) fmt --manifest-path crates/py/Cargo.toml --check
	$(CARGO) clippy --workspace --locked --all-targets -- -D warnings
	PYO3_NO_PYTHON=1 PYO3_BUILD_EXTENSION_MODULE=1 $(PY_CARGO) clippy --manifest-path crates/py/Cargo.toml --locked -- -D warnings
	.ci/tidy

CARGO_MUTANTS = $(TOOLS)/cargo-mutants-27.1.0
# Faults go into what has changed since the first commit of RANGE, or into all of CRATE. Each is tried on the tests of its
# own crate, or on those of the crates in TESTS.
RANGE ?= HEAD~10..
MINUTES ?= 60
MUTANTS = $(TARGET)/mutants
FAULTS_IN = $(if $(CRATE),--package $(CRATE),--in-diff $(MUTANTS)/range.diff)
# At the end of the time (124) what was found so far stands in mutants.out; 2 and 3 are faults missed and tests that hang.
mutants: $(CARGO_MUTANTS)
	@rm -rf $(MUTANTS)/mutants.out && mkdir -p $(MUTANTS)
	@$(if $(CRATE),$(CARGO) pkgid $(CRATE) >/dev/null,test -n '$(filter %.. %..HEAD,$(RANGE))' && \
	    git diff '$(firstword $(subst .., ,$(RANGE)))' -- '*.rs' >$(MUTANTS)/range.diff && test -s $(MUTANTS)/range.diff || \
	    { echo "make mutants: no Rust file has changed in RANGE='$(RANGE)'; write COMMIT.., such as main.." >&2; exit 1; })
	CARGO_TARGET_DIR=$(MUTANTS)/build timeout --signal=INT $(MINUTES)m $(CARGO_MUTANTS) mutants --output $(MUTANTS) \
	    --shuffle --timeout-multiplier 3 $(foreach crate,$(TESTS),--test-package $(crate)) $(FAULTS_IN); \
	    case $$? in 0 | 2 | 3 | 124) ;; *) exit 1 ;; esac
	@cd $(MUTANTS)/mutants.out 2>/dev/null || { echo 'There is nothing to put faults into'; exit 0; }; \
	    wc -l caught.txt missed.txt timeout.txt unviable.txt && cat missed.txt

fuzz:
	cd fuzz && CARGO_TARGET_DIR=../target/fuzz $(CARGO) test --locked

clean:
	$(CARGO) clean
	rm -rf $(OUT)
