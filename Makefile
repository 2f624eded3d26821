# The README's two commands are `make gate` and `make test`; both do all their set-up themselves on Debian and Ubuntu.
# Without make: scripts/set-up.sh, then the cargo lines below.

CARGO ?= cargo
# What to measure, by which protocol, and any flag of `lodestar gate`. The quick start takes minutes, on the real corpus
# of this repository; the gate that decides is `make gate PROTOCOL=protocols/cosine.toml`.
KERNEL ?= cosine
PROTOCOL ?= protocols/quickstart.toml
ARGS ?=

# Mesa's device-select layer only reorders adapters, and complains on stderr where there is no desktop session.
export NODEVICE_SELECT ?= 1

.DEFAULT_GOAL := help
.PHONY: help gate test lint report

help:
	@echo 'make gate     measure a gate on this machine, with or without a GPU: a first look, on the real corpus'
	@echo 'make test     every test, the shaders on whatever adapter there is'
	@echo 'make lint     formatting, clippy and documentation, warnings refused'
	@echo 'make report   render docs/guides/performance.md from results/'

# Succeeds without a GPU, and says NO-GPU then.
gate:
	scripts/set-up.sh --optional
	$(CARGO) build --release --locked
	$(CARGO) run --release --locked --quiet -- gate $(KERNEL) --sizes $(PROTOCOL) --allow-no-gpu $(ARGS)

# LODESTAR_GPU=require: a missing adapter fails the tests instead of skipping them.
test:
	scripts/set-up.sh
	LODESTAR_GPU=require $(CARGO) test --locked

lint:
	$(CARGO) fmt --all -- --check
	$(CARGO) clippy --locked --all-targets -- -D warnings
	$(CARGO) clippy --locked --lib --no-default-features -- -D warnings
	RUSTDOCFLAGS='-D warnings' $(CARGO) doc --locked --no-deps

report:
	$(CARGO) run --release --locked --quiet -- report
