# Short verbs. Each can be repeated, and sets up what it needs on a bare Debian 12 machine (root).

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help

SETUP  := test/cluster/setup.sh
PYTHON := build/venv/bin/python
NAME   ?= default

# Scripts import test.cluster; without this they would find Python's own package of that name.
export PYTHONPATH := $(CURDIR)
# What was compiled in one clone serves the next one.
export CCACHE_BASEDIR := $(CURDIR)
export CCACHE_NOHASHDIR := 1

.PHONY: help setup build test soak simulate lint format demo story bench placebench cluster-up cluster-down clean

help: ## list the verbs
	@sed -nE 's/^([a-z-]+):.*## (.*)/  make \1\t\2/p' Makefile | expand -t 22

setup: ## install packages, the tests' Python, and the Kubernetes control plane
	@$(SETUP)

build: ## build build/release/spillway
	@$(SETUP) packages
	@cmake --preset release
	@cmake --build --preset release --target spillway

test: ## run every check and test; the last line is "N passed, N failed"
	@test/run.sh

soak: ## run the tests that take minutes and more
	@test/run.sh --soak

simulate: ## run many lives in virtual time (SEEDS=n or a..b, MINUTES=m)
	@$(SETUP) packages
	@cmake --preset release >/dev/null
	@cmake --build --preset release --target simulation
	@build/release/simulation run --jobs "$$(nproc)" $(if $(SEEDS)$(MINUTES),,--seeds 1000) \
	  $(if $(SEEDS),--seeds '$(SEEDS)') $(if $(MINUTES),--minutes '$(MINUTES)')

lint: ## check format, includes, headers and clang-tidy
	@$(SETUP) packages venv
	@test/lint/run

format: ## format the C++ sources in place
	@$(SETUP) packages
	@git ls-files -z '*.cpp' '*.hpp' | xargs -0 -r clang-format-19 -i

demo: build ## show the whole thing on a real control plane with real containers
	@$(SETUP)
	@$(PYTHON) test/e2e/demo.py

story: build ## tell how a burst goes, on a real control plane; draws build/story.svg
	@$(SETUP)
	@$(PYTHON) -m test.e2e.story

bench: build ## measure against kwok and virtual-kubelet; fails if a must is missed
	@$(SETUP) packages venv controlplane peers
	@cmake --build --preset release --target probe_bench
	@$(PYTHON) test/bench/run.py

placebench: ## judge how placements are chosen (DATA=folder of CSV files; without it a small made-up set)
	@$(SETUP) packages
	@cmake --preset release >/dev/null
	@cmake --build --preset release --target placebench
	@build/release/placebench --jobs "$$(nproc)" $(if $(DATA),--data '$(DATA)' --check,--data test/data/placebench --pods 300 --seeds 3)

cluster-up: ## start a control plane that stays; prints its kubeconfig's path (NAME=default)
	@$(SETUP)
	@$(PYTHON) -m test.cluster up --name '$(NAME)'

cluster-down: ## end it (NAME=default)
	@$(SETUP) venv
	@$(PYTHON) -m test.cluster down --name '$(NAME)'

clean: ## end all clusters of this tree and remove build/ (the cache of Go programs stays)
	@if [[ -x $(PYTHON) ]]; then $(PYTHON) -m test.cluster down --all; fi
	@rm -rf build
