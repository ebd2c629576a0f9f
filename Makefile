# Two commands matter: `make run` and `make test`. Nothing else is needed but Python 3.11 or later.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
# 0 where only what this machine has should be tested; CI sets 1.
export TOOLGATE_REQUIRE_SERVICES ?= 0
# Every server that a test starts would otherwise compile toolgate anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run test install check services bench chaos fuzz lock docs fleet clean

# With what every built-in tool needs; `make run EXTRAS=` starts without.
run: EXTRAS ?= tools tools-math
run: install
	@$(BIN)/toolgate serve

# `make install EXTRAS=postgres` adds what PostgreSQL needs.
install: $(VENV)/.run
	@$(if $(EXTRAS),$(PIP) install --require-hashes $(EXTRAS:%=-r requirements/%.txt))

# Two for each core where CI runs: much of what a test does is to wait for another process.
WORKERS ?= 4
test: $(VENV)/.dev
	@$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal $(PYTEST_ARGS)

check: $(VENV)/.dev
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/ruff check --quiet .
	@$(BIN)/basedpyright --level error --threads 2
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/python -m scripts.reference --check
	@echo "checked: format, lint, types, layers, docs"

services: $(VENV)/.dev
	@$(BIN)/python scripts/services.py

bench: $(VENV)-bench/.done
	@$(VENV)-bench/bin/python -m benchmarks

# Kills writers and migrations, fills disks, stops servers and races revokes, over and over; CI runs each once.
# Then what is drawn at random, with as many examples as it is meant to have (tests/thorough.py); CI draws fewer.
ROUNDS ?= 10
chaos: $(VENV)/.dev
	@for round in $$(seq $(ROUNDS)); do \
	  echo "round $$round of $(ROUNDS)"; \
	  TOOLGATE_RACE_ROUNDS=500 $(BIN)/python -m pytest -q -n 2 tests/store/test_group_commit.py tests/store/test_migrate.py \
	    tests/store/test_tables.py tests/store/test_outage.py tests/store/test_write_behind.py \
	    tests/server/test_lifecycle.py \
	    tests/net/test_kept.py tests/gate/test_races.py tests/gate/test_away.py tests/engines/test_gone.py \
	    tests/engines/test_relations_away.py tests/engines/test_spicedb_away.py || exit 1; \
	done
	@$(ONCE) $(BIN)/python -m pytest -q -n 2 -o timeout=3600 tests/ledger/test_machine.py tests/once
	@TOOLGATE_CHAOS=1 $(BIN)/python -m pytest -q -o timeout=3600 tests/upstreams/test_program.py
	@TOOLGATE_LINK_FLIPS=100000 $(BIN)/python -m pytest -q -o timeout=3600 tests/tools/test_roots.py
	@TOOLGATE_CROSSED_CALLS=100000 $(BIN)/python -m pytest -q -o timeout=3600 tests/server/test_crossed.py
	@TOOLGATE_CHAOS=1 $(BIN)/python -m pytest -q -o timeout=3600 tests/fleet/test_together.py \
	  tests/fleet/test_rebalance.py tests/fleet/test_broker_away.py tests/fleet/test_storm.py
	@TOOLGATE_CHAOS=1 $(BIN)/python -m pytest -q -n 2 -o timeout=3600 $$(grep -rlE '@given|thorough|StateMachine' tests \
	  --include='test_*.py' --exclude-dir=fleet)
# How long the proofs of once-only are at their longest; CI runs shorter ones.
ONCE := TOOLGATE_CHAOS=1 TOOLGATE_ONCE_KEYS=10000 TOOLGATE_ONCE_KILLS=50 \
  TOOLGATE_ONCE_RANDOM_KILLS=300 TOOLGATE_ONCE_STALLS=500 TOOLGATE_ONCE_RESTART_SECONDS=120

# Requests that fit the published description, and ones that do not, for so many seconds each; CI covers every operation once.
SECONDS ?= 600
fuzz: $(VENV)/.dev
	@TOOLGATE_FUZZ_SECONDS=$(SECONDS) $(BIN)/python -m pytest -q tests/server/test_openapi.py

# Two nodes, two workers and the servers they share, on this machine, until Ctrl-C.
fleet: $(VENV)/.dev
	@$(BIN)/python -m examples.fleet

docs: $(VENV)/.dev
	@$(BIN)/python -m scripts.reference

# Locks every requirement with its hashes and without an address; needs the `uv` command.
lock:
	@uv pip compile pyproject.toml $(LOCK) --group build -o requirements/run.txt
	@uv pip compile pyproject.toml $(LOCK) --extra composio -c requirements/run.txt -o requirements/composio.txt
	@uv pip compile pyproject.toml $(LOCK) --extra jwt -c requirements/run.txt -o requirements/jwt.txt
	@uv pip compile pyproject.toml $(LOCK) --extra kafka -c requirements/run.txt -o requirements/kafka.txt
	@uv pip compile pyproject.toml $(LOCK) --extra otel -c requirements/run.txt -o requirements/otel.txt
	@uv pip compile pyproject.toml $(LOCK) --extra postgres -c requirements/run.txt -o requirements/postgres.txt
	@uv pip compile pyproject.toml $(LOCK) --extra redis -c requirements/run.txt -o requirements/redis.txt
	@uv pip compile pyproject.toml $(LOCK) --extra spicedb -c requirements/run.txt -o requirements/spicedb.txt
	@uv pip compile pyproject.toml $(LOCK) --extra tools -c requirements/run.txt -o requirements/tools.txt
	@uv pip compile pyproject.toml $(LOCK) --extra tools-math -c requirements/run.txt -o requirements/tools-math.txt
	@uv pip compile pyproject.toml $(LOCK) --all-extras --group dev --group frameworks --group services -c requirements/run.txt -o requirements/dev.txt
	@uv pip compile $(LOCK) --group legacy -o requirements/legacy.txt
	@uv pip compile $(LOCK) --group served -o requirements/served.txt
	@uv pip compile pyproject.toml $(LOCK) --all-extras --group bench -c requirements/run.txt -o requirements/bench.txt
LOCK := --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --no-emit-index-url --quiet

clean:
	@rm -rf $(VENV) $(VENV)-bench .pytest_cache .ruff_cache .hypothesis .import_linter_cache

$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "toolgate needs Python 3.11 or later: make PYTHON=python3.12 …")'
	@echo "making $(VENV) …"
	@$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.run: $(VENV)/.made requirements/run.txt pyproject.toml
	@echo "installing toolgate …"
	@$(PIP) install --require-hashes -r requirements/run.txt
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.run requirements/dev.txt
	@echo "installing what the tests need …"
	@$(PIP) install --no-compile --require-hashes -r requirements/dev.txt
	@# On every core; some packages bring templates that are no Python yet.
	@$(BIN)/python -W ignore -m compileall -qq -j 0 $(VENV)/lib || true
	@touch $@

$(VENV)-bench/.done: requirements/bench.txt pyproject.toml
	@echo "installing toolgate and its peers …"
	@$(PYTHON) -m venv $(VENV)-bench
	@$(VENV)-bench/bin/python -m pip --disable-pip-version-check --quiet install --require-hashes -r requirements/bench.txt
	@$(VENV)-bench/bin/python -m pip --disable-pip-version-check --quiet install --no-deps --no-build-isolation --editable .
	@touch $@
