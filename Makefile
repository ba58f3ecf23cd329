# make test is the check of every day: formatting, vet, and every test, those of packages that start goroutines with the race detector on.
# make test-all is what takes longer, beside it: what needs a real PostgreSQL (make test-postgres), or the engines that sources stand on (make test-engines), every planted fault must be noticed by its test
# (make test-faults, tests/faults), every fuzz target runs for a minute (make fuzz), and the files that start replicas are checked by what reads them
# there (make test-deploy).
.PHONY: test test-all test-postgres test-engines test-faults test-deploy fuzz build web release bench bench-scale format clean

GO ?= go
FUZZTIME ?= 1m
# FAULTS=k/n plants every n-th fault only, from the k-th, 0 <= k < n.
FAULTS ?= 0/1
# PROGRAMS bounds the random row functions that each engine sums in a test, of rows and again of units.
PROGRAMS ?= 1500

# gin can read and write MessagePack, which nothing here does, by a library that takes longer to compile than SQLite. It stays out of what
# is built here; without the tag all works as well.
TAGS := nomsgpack

build:
	$(GO) build -tags $(TAGS) -o holdoutd ./cmd/holdoutd

# The dashboard's files, which are committed: go build needs no node.
web:
	PATH=$$(scripts/web.sh):$$PATH npm --prefix web run build

# The binary to ship: without symbols for debuggers and paths of this machine.
release:
	CGO_ENABLED=0 $(GO) build -tags $(TAGS) -trimpath -ldflags '-s -w' -o holdoutd ./cmd/holdoutd
	@ls -l holdoutd

test:
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$unformatted" ]; then echo "gofmt would change: $$unformatted"; exit 1; fi
	@command -v curl >/dev/null || { [ "$$(id -u)" = 0 ] && apt-get update -q && apt-get install -qy --no-install-recommends curl; } || { echo "the tests need curl: install it"; exit 1; }
	$(GO) vet -tags $(TAGS),python,browser,postgres,engines,faults ./...
	python=$$(scripts/python.sh) && node=$$(scripts/web.sh) && GO=$(GO) TAGS=$(TAGS),python,browser HOLDOUTD_PYTHON=$$python HOLDOUTD_NODE=$$node scripts/test.sh

test-all: test-postgres test-engines test-faults fuzz test-deploy

test-postgres:
	postgres=$$(scripts/postgres.sh) && GO=$(GO) TAGS=$(TAGS),postgres HOLDOUTD_POSTGRES=$$postgres scripts/test-postgres.sh

test-engines:
	clickhouse=$$(scripts/clickhouse.sh) && trino=$$(scripts/trino.sh) && GO=$(GO) TAGS=$(TAGS),engines HOLDOUTD_PROGRAMS=$(PROGRAMS) HOLDOUTD_CLICKHOUSE=$$clickhouse HOLDOUTD_TRINO=$$trino scripts/test-engines.sh

test-faults:
	postgres=$$(scripts/postgres.sh) && HOLDOUTD_POSTGRES=$$postgres HOLDOUTD_PYTHON=$$(scripts/python.sh) HOLDOUTD_FAULTS=$(FAULTS) $(GO) test -v -count=1 -tags faults -run TestPlanted -timeout 120m ./tests/faults

# The Helm chart, the compose file, the load balancer and the alerts (deploy/).
test-deploy:
	GO=$(GO) scripts/deploy.sh

fuzz:
	GO=$(GO) scripts/fuzz.sh $(FUZZTIME)

# The kernels beside DuckDB and NumPy in one run, then the other benchmarks.
bench:
	HOLDOUTD_PYTHON=$$(scripts/python.sh) bench/compare.sh
	$$(scripts/python.sh) bench/screen.py
	$(GO) test -run '^$$' -bench . -benchtime 1s ./...

# What questions cost where tables already are (docs/SCALE.md): HOLDOUTD_SCALE_ROWS rows, made inside the engines. HOLDOUTD_SCALE names a file for the results.
bench-scale:
	HOLDOUTD_CLICKHOUSE=$$(scripts/clickhouse.sh) $(GO) test -tags scale -run '^TestClickHouse$$' -v -count=1 -timeout 4h ./bench/scale

format:
	gofmt -w $$(git ls-files '*.go')

clean:
	rm -rf holdoutd .venv .node web/node_modules holdoutd-data
