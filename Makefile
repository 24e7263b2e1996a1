# Every command sets up what it needs first; a second run finds it there.
#
#   make check   format, lint, types, layers and the pure tests, before each commit
#   make test    everything, with real clients and Apache Kafka's own tools
#   make test-airflow  the final project's jobs in real Apache Airflow, which it sets up for itself
#   make demo    the final project: a site, a scraper, topics, Spark, a database, and a crash
#                (KEEP=1 leaves it running, DATABASE=postgresql://... stores it in a database of yours)
#   make project-up   the final project in a directory that stays, PROJECT_DIR (.project): installs, starts
#                and supervises all of it; project-status, project-logs (PART=name), project-down, project-backup,
#                project-restore (FROM=file), project-upgrade and project-drift look after it
#   make demo-broker  a broker, a stream of telemetry, and what one can do with it
#   make bench   Strom and Apache Kafka in turn; the numbers go to .setup/results.json
#                (CASES='latency' ROUNDS=1 for a part)
#   make bench-page  docs/benchmarks.md from the numbers of a run of all cases
#   make soak    the tests that get better with time: fuzzing, crashes  (SECONDS=600)

PY := .venv/bin/python
# The tests start hundreds of processes: none of them shall compile its modules again.
unexport PYTHONDONTWRITEBYTECODE
# In the order of the files: what passes here passes there. By itself pytest shuffles the tests.
PYTEST := $(PY) -m pytest -p no:randomly
PURE = STROM_TESTS_IN_SHORT=1 $(PYTEST) -q -m "not slow and not java" --durations=5
ALL = $(PYTEST) -q --durations=25
# With what is compiled, brokers as processes, Kafka's own tools and clients; the rest has Spark.
BROKERS := tests/conformance tests/cli tests/bench tests/broker/test_lost_directory.py \
	tests/broker/test_quorum.py tests/broker/api/test_alter_replica_log_dirs.py tests/test_compiled.py
# What takes as long as all the other pure tests.
PURE_FIRST := tests/broker tests/cli tests/log tests/records tests/testing
SECONDS ?= 600
CASES ?=
ROUNDS ?= 3

.PHONY: setup compiled tools java spark lint check pure-first pure-rest test test-brokers test-rest test-airflow demo demo-broker bench bench-page soak \
	project-up project-status project-logs project-down project-backup project-restore project-upgrade project-drift

setup:
	@tools/set-up python

compiled: setup
	@tools/set-up compiled

tools: setup
	@tools/set-up tools

java: setup
	@tools/set-up java

spark: tools
	@tools/set-up spark

lint: setup
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	.venv/bin/lint-imports

# Side by side, as there are mostly two cores at least.
check: setup
	@$(MAKE) --no-print-directory -j3 -O lint pure-first pure-rest

pure-first: setup
	$(PURE) $(PURE_FIRST)

pure-rest: setup
	$(PURE) $(PURE_FIRST:%=--ignore=%) --ignore=tests/conformance

# While what the brokers' tests run is compiled, the tools are fetched and the rest is tested.
test: setup
	@tools/side-by-side brokers="$(MAKE) --no-print-directory test-brokers" \
		rest="$(MAKE) --no-print-directory test-rest"

test-brokers: compiled tools
	STROM_COMPILED=$(CURDIR)/.setup/compiled STROM_TEST_PORTS_FROM=20000 $(ALL) $(BROKERS)

test-rest: tools spark lint
	STROM_TEST_PORTS_FROM=26000 $(ALL) $(BROKERS:%=--ignore=%)

# Not a part of `make test`: Airflow is a hundred packages for one test.
test-airflow: setup
	@tools/set-up airflow
	STROM_AIRFLOW=$(CURDIR)/.setup/airflow-venv $(PYTEST) -q tests/airflow

demo: java
	@tools/demo $(if $(KEEP),--keep) $(if $(DATABASE),--database "$(DATABASE)")

project-up: java
	@tools/project up

project-status project-logs project-down project-backup project-upgrade project-drift: project-%:
	@tools/project $* $(if $(filter logs,$*),$(PART))

project-upgrade: java

project-restore:
	@tools/project restore $(abspath $(or $(FROM),$(error FROM=file names the backup)))

demo-broker: setup
	.venv/bin/strom demo

bench: tools
	$(PY) -m bench --rounds $(ROUNDS) $(if $(CASES),--cases "$(CASES)")

bench-page: setup
	$(PY) -m bench.page

soak: tools compiled
	STROM_COMPILED=$(CURDIR)/.setup/compiled STROM_SOAK_SECONDS=$(SECONDS) $(PYTEST) -q -m soak --timeout=0
