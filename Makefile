# make test is the check of every day: formatting, vet, and every test with the race detector on.
# make test-all adds what takes longer: every planted fault must be noticed by its test (tests/faults).
.PHONY: test test-all build bench format clean

GO ?= go

build:
	$(GO) build -o holdoutd ./cmd/holdoutd

test:
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$unformatted" ]; then echo "gofmt would change: $$unformatted"; exit 1; fi
	@command -v curl >/dev/null || { [ "$$(id -u)" = 0 ] && apt-get update -q && apt-get install -qy --no-install-recommends curl; } || { echo "the tests need curl: install it"; exit 1; }
	$(GO) vet -tags python,faults ./...
	HOLDOUTD_PYTHON=$$(scripts/python.sh) $(GO) test -race -tags python -timeout 30m ./...

test-all: test
	HOLDOUTD_PYTHON=$$(scripts/python.sh) $(GO) test -tags faults -timeout 120m ./tests/faults

# The kernels beside DuckDB and NumPy in one run, then the other benchmarks.
bench:
	HOLDOUTD_PYTHON=$$(scripts/python.sh) bench/compare.sh
	$$(scripts/python.sh) bench/screen.py
	$(GO) test -run '^$$' -bench . -benchtime 1s ./...

format:
	gofmt -w $$(git ls-files '*.go')

clean:
	rm -rf holdoutd .venv holdoutd-data
