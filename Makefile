# What a person types. `make` alone lists it.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
.PHONY: help run test demo bench verify fix env setup release

# Prefix of a cargo command that builds: with the cached RocksDB archive, built first if missing.
BUILD = environment=$$(.ci/environment) && eval "$$environment" &&

# The node that `make run` starts.
DATA ?= ./data
LISTEN ?= 127.0.0.1:8085

# More words for `orderly demo`, such as --nodes=1 or --wan-round-trip-ms=20.
DEMO ?=

# More words for `orderly bench suite`, such as --quick or --write FILE.
BENCH ?=

help:
	@echo 'make run     build, then start one node on $(LISTEN) with its data in $(DATA)'
	@echo 'make test    every test; at the end what was skipped, and the sum'
	@echo 'make demo    a region is lost, and order holds: nine nodes on this machine; DEMO=--nodes=1 for three'
	@echo 'make bench   measure throughput and latency on this machine'
	@echo 'make verify  formatting, clippy, docs, tidy, then make test; writes nothing'
	@echo 'make fix     format, apply clippy suggestions'
	@echo 'make env     the exports for plain cargo commands: eval "$$(make env)"'

setup:
	@.ci/setup

release: setup
	@$(BUILD) echo 'make: building the release binary (about 10 minutes the first time, then seconds)' >&2 && cargo build --release --quiet --package orderly-node

run: release
	@$(BUILD) cargo run --release --quiet --package orderly-node -- serve --data-dir '$(DATA)' --listen '$(LISTEN)'

test:
	@.ci/setup tests
	@cargo xtask test

demo: release
	@$(BUILD) cargo run --release --quiet --package orderly-node -- demo --show $(DEMO)

bench: release
	@echo 'make bench: every row of the speed table (about 10 minutes; BENCH=--quick is a small one)' >&2
	@$(BUILD) cargo run --release --quiet --package orderly-node -- bench suite $(BENCH)

verify:
	@.ci/setup tests
	@cargo xtask verify

fix: setup
	@cargo xtask fix

env:
	@.ci/environment
