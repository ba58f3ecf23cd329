# make test is the check of every day: formatting, vet, and every test, those that concern the race detector with and without it.
# The same commit has the same verdict: what tests draw begins from HOLDOUTD_SEED (internal/stattest).
# make test-all is what draws lots or takes longer: the Go tests from a fresh seed, many runs of the simulation, every planted fault, which must be noticed by its test
# (make test-faults, tests/faults), and every fuzz target for half a minute (make fuzz).
.PHONY: demo test test-all test-faults fuzz build web generate release bench format clean

GO ?= go
FUZZTIME ?= 30s
# FAULTS=k/n plants every n-th fault only, from the k-th, 0 <= k < n.
FAULTS ?= 0/1

# gin can read and write MessagePack, which nothing here does, by a library that takes longer to compile than SQLite. It stays out of what
# is built here; without the tag all works as well.
TAGS := nomsgpack

build:
	@GO=$(GO) TAGS=$(TAGS) scripts/build.sh holdoutd

# A server with something to ask about, from a clone and nothing else: what it does not need is not compiled.
demo:
	@GO=$(GO) TAGS=$(TAGS),nofigures,nopostgres QUICK=1 scripts/build.sh holdoutd
	@./holdoutd demo

# The dashboard's files, which are committed: go build needs no node.
web:
	PATH=$$(scripts/web.sh):$$PATH npm --prefix web run build

# All that is generated, in one go: clients, types and forms, pages of docs, and the built dashboard. A stale file fails make test with this name.
generate:
	python=$$(scripts/python.sh) && node=$$(scripts/web.sh) && GO=$(GO) TAGS=$(TAGS),python,browser HOLDOUTD_PYTHON=$$python HOLDOUTD_NODE=$$node scripts/generate.sh

# The binary to ship: without symbols for debuggers and paths of this machine.
release:
	CGO_ENABLED=0 $(GO) build -tags $(TAGS) -trimpath -ldflags '-s -w' -o holdoutd ./cmd/holdoutd
	@ls -l holdoutd

test:
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$unformatted" ]; then echo "gofmt would change: $$unformatted"; exit 1; fi
	@command -v curl >/dev/null || { [ "$$(id -u)" = 0 ] && apt-get update -q && apt-get install -qy --no-install-recommends curl; } || { echo "the tests need curl: install it"; exit 1; }
	@[ ! -e /dev/fuse ] || command -v bindfs >/dev/null || [ "$$(id -u)" != 0 ] || apt-get install -qy --no-install-recommends bindfs >/dev/null 2>&1 || true
	$(GO) vet -trimpath -tags $(TAGS),python,browser,faults,engines ./...
	python=$$(scripts/python.sh) && node=$$(scripts/web.sh) && GO=$(GO) TAGS=$(TAGS),python,browser HOLDOUTD_PYTHON=$$python HOLDOUTD_NODE=$$node scripts/test.sh

test-all:
	GO=$(GO) TAGS=$(TAGS) FUZZTIME=$(FUZZTIME) scripts/test-all.sh

# make test-faults CHANGED=main plants what concerns the files that differ from main's: run it before your change lands.
# Faults of the tests with an SQL engine are planted where HOLDOUTD_ENGINES is the output of scripts/engines.sh, as in make test-all; else their names are said.
test-faults:
	HOLDOUTD_ENGINES=$${HOLDOUTD_ENGINES:-none} HOLDOUTD_PYTHON=$$(scripts/python.sh) HOLDOUTD_FAULTS=$(FAULTS) HOLDOUTD_CHANGED=$(CHANGED) $(GO) test -v -count=1 -tags faults -run TestPlanted -timeout 120m ./tests/faults

fuzz:
	GO=$(GO) scripts/fuzz.sh $(FUZZTIME)

# The kernels beside DuckDB, NumPy and Polars in one run, then the other benchmarks.
bench:
	HOLDOUTD_PYTHON=$$(scripts/python.sh) bench/compare.sh
	$$(scripts/python.sh) bench/screen.py
	$(GO) test -run '^$$' -bench . -benchtime 1s ./...

format:
	gofmt -w $$(git ls-files '*.go')

clean:
	rm -rf holdoutd .venv .node web/node_modules holdoutd-data
