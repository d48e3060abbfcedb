# Everything a person does with this repository. `make help` lists the targets; GNU make 4.3 or newer.
#
# One profile (release) and one target folder serve every target, so that wasmtime is built once. The folder is
# ./target, or CARGO_TARGET_DIR where that is set. Paths are quoted everywhere: a clone's may hold spaces, so functions
# of make that split words are not used on them.

CARGO ?= cargo
PYTHON ?= python3

target := $(shell realpath -m -- "$${CARGO_TARGET_DIR:-target}")
export CARGO_TARGET_DIR := $(target)
# What the tests and the conversation run. Set here, so that a variable of the shell cannot put another binary in its place.
export TOOLCELL_BIN := $(target)/release/toolcell

# The tests' own crate stands apart in every command: its client libraries turn on features of crates that wasmtime is
# built on, and in one command with the host they would have wasmtime built a second time.
host := --release --locked --workspace --exclude toolcell-tests
tests := --release --locked -p toolcell-tests
# Our own crates with few optimisations, for what is built to be run once. All others stay as they are, and are not built again.
quick := $(CARGO) --config .ci/quick.toml
# End-to-end tests wait for processes of theirs most of their time.
threads := $(shell expr "$$(nproc)" \* 3)
# Guests run natively in their unit tests and for clippy; what they are built with is in guest-examples/build.sh.
guests := --locked --manifest-path guest-examples/Cargo.toml --workspace --target-dir "$(target)/guests"
fixtures := --locked --manifest-path tests/fixtures/Cargo.toml --workspace --target-dir "$(target)/fixtures"

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help run build code guests guests-all languages gallery gallery-measure fixtures clients test test-host test-guests test-e2e test-balanced dev-test drill conformance matrix console-check registries-check operating-check bench soak soak-smoke chaos fuzz fuzz-smoke lint docs book dist dist-check install uninstall check-all ci clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

run: build guests ## Serve the examples over HTTP and hold a conversation with them (PORT=8080, ARGS=--once: end after it)
	@$(PYTHON) guest-examples/conversation.py $(if $(PORT),--port $(PORT)) $(ARGS)

test: build code guests-all fixtures clients test-host test-guests test-e2e ## Build and run every test

build: ## Build the toolcell binary (target/release/toolcell; its line tables are in toolcell.debug beside it)
	$(CARGO) build --release --locked -p toolcell
	@host/cli/split-symbols.sh "$(target)/release/toolcell"

code: ## Build the engine of scripts, for [code] (target/release/toolcell-code.wasm; gets a C compiler for WASI once)
	CARGO_TARGET_DIR="$(target)" host/code/build.sh

guests: ## Build the example components (guest-examples/components)
	CARGO_TARGET_DIR="$(target)/guests" guest-examples/build.sh

guests-all: guests ## Build those as well that take minutes to compile (mail, with its TLS)
	CARGO_TARGET_DIR="$(target)/guests" guest-examples/build.sh -p mail

languages: build guests ## Build the examples and new projects in other languages and try what they answer (ARGS=--all: fail where a compiler is not available; --all-examples: every new project)
	guest-examples/languages.sh $(filter-out --all-examples,$(ARGS))
	@$(PYTHON) guest-examples/check.py
	@$(PYTHON) guest-examples/starts.py $(ARGS)

gallery: build ## Get components and programs that others published, and try what they answer as tools (uses package registries; ARGS=--all: large ones as well)
	@$(PYTHON) guest-examples/gallery/gallery.py check $(ARGS)

gallery-measure: build ## Print the table of the gallery: sizes, and how long its calls take here
	@$(PYTHON) guest-examples/gallery/gallery.py measure $(ARGS)

fixtures: ## Build the misbehaving components of the tests (tests/fixtures/components)
	tests/fixtures/build.sh

clients: ## Install the MCP clients of the tests, from their lock files
	@tests/clients/setup.sh >/dev/null

test-host: ## Run the host crates' own tests
	$(quick) test --no-fail-fast $(host)

test-guests: ## Run the examples' own tests, natively
	$(CARGO) test --no-fail-fast $(guests)

test-e2e: ## Run the end-to-end tests: the binary, hostile components, real clients (ARGS=hostile:: for those alone)
	$(quick) test $(tests) -- --test-threads=$(threads) $(ARGS)

dev-test: fixtures code ## Build the binary with few optimisations and run end-to-end tests against it (ARGS="hostile::a_tool_that_sleeps")
	@.ci/dev-build.sh "$(target)"
	TOOLCELL_BIN="$(target)/dev-test/toolcell" CARGO_INCREMENTAL=1 $(quick) test $(tests) --test e2e -- --test-threads=$(threads) $(ARGS)

test-balanced: build code guests-all fixtures clients ## Run the end-to-end tests of HTTP, callers, questions, approvals, resources, state and clients again, each against three replicas behind nginx
	$(PYTHON) tests/balanced.py $(ARGS)

drill: build fixtures ## Break out of the sandbox in every way there is, and see what it gets: a program of its own, in which guests can do anything
	$(quick) build --release --locked -p toolcell --features drill --bin toolcell-drill
	$(quick) test $(tests) --test drill

conformance: build fixtures clients ## Run the official conformance suite against the binary, for both eras
	tests/conformance/run.py

matrix: build guests fixtures ## Have the SDKs, clients of agents' frameworks, bridges and the Inspector talk with the binary, and write host/docs/clients.md (ARGS=fastmcp: only that)
	@$(PYTHON) tests/clients/matrix/matrix.py $(ARGS)

console-check: build guests fixtures ## Look at the console's pages in a headless Chromium, with axe, and decide there (ARGS=served: only that)
	$(quick) build $(host) --example pages
	@tests/clients/console/check.py $(ARGS)

registries-check: build guests fixtures ## Pull, verify and push components at docker-registry with what cosign, sigstore's client and wkg sign and push (ARGS=keys: only that; ARGS=--parts-only: without toolcell; ARGS="--without wkg": without what takes minutes to compile)
	@tests/registries/check.py $(ARGS)

operating-check: build guests fixtures ## Type the commands of host/docs/operating.md, and try two versions, a roll, clocks that differ and a restore (ARGS="--other BINARY": another version; ARGS=--all: fail without a Valkey server)
	@$(PYTHON) tests/operating.py $(ARGS)

bench: build guests fixtures ## Measure calls, start-up and memory (ARGS=--quick: only that it runs)
	$(CARGO) run $(tests) --bin toolcell-bench -- $(ARGS)
ifeq ($(ARGS),)
	$(CARGO) bench --locked --workspace --exclude toolcell-tests --bench in_process --bench keyvalue
endif

soak: build fixtures ## Drive one host with good, hostile and cancelled calls for a time (SECONDS=600, ARGS=--json)
	$(CARGO) run $(tests) --bin toolcell-soak -- --seconds $(or $(SECONDS),600) $(ARGS)

soak-smoke: ## The same for 20 seconds, with calls that are the same each time
	@$(MAKE) --no-print-directory soak SECONDS=20 ARGS="--seed 1"

chaos: build fixtures clients ## Drive three replicas with shared state while one thing after another goes wrong (ARGS=--quick: short pauses only)
	$(CARGO) run $(tests) --bin toolcell-chaos -- $(ARGS)

fuzz: ## Look for inputs that break the decoder, the transport, the manifest, the schemas, the documents of APIs, the conversion of values, the loading of components, recordings or what sandbox processes and loaders say (SECONDS=300 each; TARGET=manifest: only that)
	tests/fuzz/run.sh $(or $(SECONDS),300) $(TARGET)

fuzz-smoke: ## The same for 20 seconds each, from the seeds alone
	tests/fuzz/run.sh --same 20 $(TARGET)

lint: ## Check formatting and comments, the files for Kubernetes and Prometheus, and clippy with every warning an error (ARGS=--get: get promtool)
	@$(CARGO) fmt --version >/dev/null 2>&1 || { echo 'cargo fmt is missing; get it with: rustup component add rustfmt' >&2; exit 1; }
	@$(CARGO) clippy --version >/dev/null 2>&1 || { echo 'cargo clippy is missing; get it with: rustup component add clippy' >&2; exit 1; }
	$(CARGO) fmt --all --check
	$(CARGO) fmt --all --check --manifest-path guest-examples/Cargo.toml
	$(CARGO) fmt --all --check --manifest-path tests/fixtures/Cargo.toml
	$(CARGO) fmt --check --manifest-path tests/fuzz/Cargo.toml
	$(CARGO) fmt --check --manifest-path host/code/Cargo.toml
	$(PYTHON) .ci/check-rust.py
	$(PYTHON) .ci/check-imports.py
	$(PYTHON) host/deploy/manifests.py
	$(PYTHON) host/deploy/manifests.py --self-test
	$(PYTHON) host/deploy/prometheus/check.py $(ARGS)
	$(CARGO) clippy $(host) --all-targets --features toolcell/drill -- -D warnings
	$(CARGO) clippy $(tests) --all-targets -- -D warnings
	$(CARGO) clippy $(tests) --test drill -- -D warnings
	$(CARGO) clippy $(guests) --all-targets -- -D warnings
	$(CARGO) clippy $(fixtures) --all-targets -- -D warnings

docs: export RUSTDOCFLAGS := -D warnings
docs: build ## Build the crates' documentation, and check links, snippets and generated pages
	$(CARGO) doc $(host) --no-deps
	$(PYTHON) .ci/check-docs.py
	$(PYTHON) .ci/check-docs.py --self-test
	$(PYTHON) .ci/promises.py --self-test
	$(PYTHON) .ci/check-snippets.py

book: ## Build all pages as a book with search (target/book/html)
	$(PYTHON) .ci/book.py

dist: ## Build every package (target/packages): tarball, .deb, wheel, npm, image (ARGS="--target aarch64-unknown-linux-gnu")
	@$(PYTHON) host/deploy/dist.py $(ARGS)

dist-check: build guests ## Install every package in a clean folder or root, and serve the examples from it (ARGS=--twice: compare bytes)
	@$(PYTHON) host/deploy/check.py $(ARGS)

install: build ## Install the binary, its manual pages, completions and licences (PREFIX=/usr/local)
	@$(PYTHON) host/deploy/install.py "$(or $(PREFIX),/usr/local)"

uninstall: ## Remove what make install has installed there (PREFIX=/usr/local)
	@$(PYTHON) host/deploy/install.py "$(or $(PREFIX),/usr/local)" --uninstall

check-all: ## Run every check that the gate leaves to those whose files change, and note what passed in .ci/notes (ARGS="fuzz-schemas book": only these; ARGS=--stale)
	$(PYTHON) .ci/checks.py parts $(ARGS)

ci: ## All that continuous integration runs: the gate, then checks that are due, in a clone
	.ci/run

clean: ## Remove everything that was built
	$(CARGO) clean
	rm -rf guest-examples/components tests/fixtures/components
