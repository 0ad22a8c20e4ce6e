# Each target is a few commands that can be typed by hand. docs/testing.md lists what each proves.
#
#   make demo        runs sysbench on a node in memory; kills a durable node amid bank transfers: nothing is lost
#   make run         starts a node to try: make run ARGS="--port 3307"
#   make test        all checks that a change must pass
#   make bench       comparison with MariaDB and an echo server, also of durable writes, DBT2, YCSB, instruction
#                    counts, idle connections
#   make restarts    starts with 10,000,000 rows after a stop and after kill -9, beside MariaDB:
#                    make restarts ROWS=1000000
#   make checkpoints writers during a checkpoint, and the speed of checkpoints and backups
#   make sysbench    every sysbench script in every placement, up to 45 minutes
#   make kill        bank transfers and sysbench against a durable server that is killed: make kill KILLS=300
#   make cluster-kill  a cluster whose nodes are killed, cut off and stopped under bank transfers, with the
#                    distribution of the gaps of service: make cluster-kill KILLS=300
#   make cluster-cost  messages, bytes, syncs, hops and CPU time of the commits of a cluster; throughput, latency
#                    and gaps of service beside MariaDB with Galera and Apache Ignite:
#                    make cluster-cost ARGS="--parts commits,hops"
#   make faults      a durable server that is killed at each of its calls for files and at each crash point,
#                    or whose calls fail: make faults FAULTS=500
#   make rot         a durable server's files with one bit flipped, for every sector in turn
#   make history     a million transactions per isolation level, checked for anomalies that the level forbids
#   make deadlocks   very many deadlocks, compared with MariaDB
#   make long-transactions  transactions of 1,000,000 rows, and the pauses of other sessions
#   make long-statements    point selects beside scans, counts and sorts of 400,000 rows, in one thread
#   make ch          CH-benCHmark: transactions of TPC-C alone and beside a stream of queries, on Junctor and MariaDB
#   make load        up to 16,384 connections; a single one beside an echo server; an idle node
#   make thread-pool the modes of the thread pool with 1 to 16,384 connections, beside MariaDB's pool-of-threads
#   make scale       simulated placements for 4 to 128 CPUs, and clusters of 2 to 64 nodes: the plots and figures
#                    of docs/scale
#   make differential  random statements compared with MariaDB: make differential SEED=1 STATEMENTS=400000
#   make queries     many random queries of several tables, compared with MariaDB: make queries SEED=1 QUERIES=1000000
#   make typed       random statements over every type and function, compared with MariaDB: make typed TYPED=1000000
#   make sqllogictest  a sample of the public sqllogictest corpus: make sqllogictest CORPUS=DIR ONE_IN=35
#   make django      Django's own tests of databases, from its source package: make django SUITES="lookup schema"
#   make storage-engine  MariaDB's storage_engine suite on MariaDB and on Junctor; writes docs/storage-engine-suite.md
#   make statement-forms  100,000 statements shaped, unshaped and prepared: make statement-forms SEED=1 FORMS=100000
#   make loom        interleavings of the code that shares memory
#   make models      models of the cluster's protocol with larger bounds
#   make sanitize    kernel and storage under valgrind, and under sanitizers where a nightly compiler is installed
#   make fuzz        property tests with many more cases, and random bytes for the decoders of what nodes take
#                    from each other, for some seconds each: make fuzz CASES=100000 FUZZ_SECONDS=600
#   make tidy        house rules

TARGET := $(or $(CARGO_TARGET_DIR),target)
BENCH := $(TARGET)/release/junctor-bench
CASES ?= 20000
FUZZ_SECONDS ?= 60
TRANSACTIONS ?= 1000000
STATEMENTS ?= 400000
EPISODES ?= 2000
FORMS ?= 100000
TYPED ?= 1000000
QUERIES ?= 1000000
ROWS ?= 10000000
KILLS ?= 300
FAULTS ?= 500
ONE_IN ?= 35
SEED ?= 1

.PHONY: demo run test bench restarts checkpoints sysbench kill cluster-kill cluster-cost faults rot history deadlocks long-transactions long-statements ch load thread-pool scale differential queries typed sqllogictest django storage-engine statement-forms loom models sanitize fuzz tidy tools release

demo: tools release
	$(BENCH) demo $(ARGS)

run: release
	$(TARGET)/release/junctor serve --data-dir $(TARGET)/junctor-data $(ARGS)

test: tools
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	cargo run --quiet --package xtask -- tidy
	timeout 2400 cargo test --quiet --workspace
	sh tests/interleavings.sh
	timeout 1500 cargo run --quiet --package junctor-sim --bin sim -- ci
	sh tests/clients.sh

bench: tools release
	@failed=0; \
	for command in "compare $(ARGS)" compare-applications durable-writes relaxed-writes log-limit instructions connections torn-reads; do \
		echo "== $$command"; $(BENCH) $$command || failed=1; \
	done; \
	exit $$failed

thread-pool: tools release
	$(BENCH) thread-pool $(ARGS)

restarts: tools release
	timeout 3600 $(BENCH) restarts --rows $(ROWS) $(ARGS)

checkpoints: tools release
	timeout 900 $(BENCH) checkpoints $(ARGS)

sysbench: tools release
	timeout 2700 $(BENCH) sysbench-matrix $(ARGS)

kill: tools
	JUNCTOR_KILLS=$(KILLS) timeout 7200 cargo test --package junctor --test durability -- --nocapture kill::

cluster-cost: tools release
	sh tests/install-tools.sh cluster
	timeout 3600 $(BENCH) cluster-cost $(ARGS)

cluster-kill: tools release
	timeout 7200 $(BENCH) cluster-kill --kills $(KILLS) --seed $(SEED) $(ARGS)

faults: tools
	JUNCTOR_FAULTS=$(FAULTS) timeout 14400 cargo test --package junctor --test durability -- --nocapture \
		--test-threads 1 faults:: crash_points:: backup::

rot:
	JUNCTOR_ROT=1 timeout 7200 cargo test --package junctor --test durability -- --nocapture rot::

history: release
	timeout 7200 $(BENCH) history --transactions $(TRANSACTIONS) $(ARGS)

deadlocks: tools release
	timeout 600 $(BENCH) deadlocks $(ARGS)

long-transactions: tools release
	timeout 900 $(BENCH) long-transactions $(ARGS)

long-statements: release
	timeout 900 $(BENCH) long-statements $(ARGS)

ch: tools release
	timeout 3600 $(BENCH) ch $(ARGS)

load: release
	timeout 2400 $(BENCH) load $(ARGS)

scale: release
	timeout 1800 $(BENCH) scale $(ARGS)

differential: tools release
	KEEP_GOING=--keep-going sh tests/differential/run.sh $(TARGET)/release/junctor $(SEED) $(STATEMENTS) $(EPISODES)

queries: tools release
	sh tests/differential/bulk.sh $(TARGET)/release/junctor $(SEED) $(QUERIES) --keep-going

typed: tools release
	TYPED_ONLY=1 TYPED=$(TYPED) TYPED_SECONDS=14400 TYPED_CHECK=--summary KEEP_GOING=--keep-going \
		timeout 15000 sh tests/differential/run.sh $(TARGET)/release/junctor $(SEED)

sqllogictest: tools release
	timeout 7200 sh tests/sqllogictest/run.sh $(TARGET)/release/junctor $(or $(CORPUS),$(error CORPUS names the folder "test" of sqllogictest)) $(ONE_IN) $(SEED)

django: tools
	cargo build --package junctor
	timeout 5400 sh tests/clients/django.sh $(TARGET)/debug/junctor $(SUITES)

storage-engine: release
	sh tests/install-tools.sh suite
	timeout 1800 sh tests/storage-engine.sh $(TARGET)/release/junctor

statement-forms:
	STATEMENT_FORMS=$(FORMS) STATEMENT_FORMS_SEED=$(SEED) cargo test --package junctor --test statement_forms -- --nocapture

loom:
	sh tests/interleavings.sh

models:
	JUNCTOR_MODELS=long timeout 1800 cargo test --release --package junctor-cluster --test epoch_model \
		--test lease_model --test cut_model --test replica_model --test cluster_simulation -- --nocapture --test-threads 1

sanitize: tools
	sh tests/sanitize.sh

fuzz:
	PROPTEST_CASES=$(CASES) cargo test --release --package junctor-model --package junctor-expression \
		--package junctor-storage --package junctor-sql --package junctor-front --package junctor-kernel \
		--package junctor-signals
	sh tests/fuzz.sh $(FUZZ_SECONDS)

tidy:
	cargo run --quiet --package xtask -- tidy

tools:
	sh tests/install-tools.sh

release:
	cargo build --release --package junctor --package junctor-bench
