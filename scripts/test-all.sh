#!/usr/bin/env bash
# What draws lots, or takes longer than make test: the Go tests from a fresh seed, those under the race detector that make test leaves out, 20,000 runs of the simulation, every
# kind of model against its library, SQL engines against the one in memory, the clients of agents, every planted fault, and every fuzz target for FUZZTIME. All parts run, whatever the first ones say; it ends
# with a table, in which what failed has the line that repeats it. make test-all calls it.
set -uo pipefail
cd "$(dirname "$0")/.."

table=$(printf '%-11s %-7s %8s  %s' part verdict minutes 'to repeat it')
failed=0
part() { # NAME REPEAT COMMAND…
	local begin=$SECONDS verdict=passed
	echo "== $1: $2"
	"${@:3}" || { verdict=FAILED failed=1; }
	table+=$(printf '\n%-11s %-7s %8d  %s' "$1" "$verdict" $(((SECONDS - begin) / 60)) "$2")
}

seed=${HOLDOUTD_SEED:-$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}
part seed "HOLDOUTD_SEED=$seed go test -count=1 ./..." env HOLDOUTD_SEED="$seed" GORACE=atexit_sleep_ms=0 "${GO:-go}" test -vet=off -count=1 -timeout 15m -tags "${TAGS:?}" ./...
quiet=$("${GO:-go}" run ./scripts/concurrent -quiet) || exit 1 # go test without packages passes
part race "go test -race \$(go run ./scripts/concurrent -quiet)" env GORACE=atexit_sleep_ms=0 "${GO:-go}" test -race -gcflags=modernc.org/sqlite/lib=-race=false -vet=off -timeout 20m -tags "$TAGS" $quiet
part simulation "HOLDOUTD_SEED=$seed go test ./tests/simulation -run TestSeeds -seeds 20000" env HOLDOUTD_SEED="$seed" "${GO:-go}" test -vet=off -timeout 60m -tags "$TAGS" ./tests/simulation -run TestSeeds -seeds 20000
python=$(scripts/python.sh) || exit 1
models=(python/tests/test_grid.py --noconftest -p no:cacheprovider)
part models "HOLDOUTD_GRID=all PYTHONPATH=python/src $python -m pytest ${models[*]}" env HOLDOUTD_GRID=all PYTHONPATH=python/src "$python" -m pytest "${models[@]}"
engines=$(scripts/engines.sh) || exit 1
part engines "HOLDOUTD_ENGINES=\$(scripts/engines.sh) go test -tags engines ./queries/engine/remote" env HOLDOUTD_ENGINES="$engines" "${GO:-go}" test -count=1 -vet=off -timeout 60m -tags "$TAGS,engines" ./queries/engine/remote/...
part sources "HOLDOUTD_PYTHON=$python HOLDOUTD_ENGINES=\$(scripts/engines.sh) go test -tags engines -run TestSource ./holdout ./cmd/holdoutd" env HOLDOUTD_ENGINES="$engines" HOLDOUTD_PYTHON="$python" "${GO:-go}" test -count=1 -vet=off -timeout 30m -tags "$TAGS,engines" -run TestSource ./holdout ./cmd/holdoutd
part agents "scripts/tools-read.sh" scripts/tools-read.sh
part faults "HOLDOUTD_ENGINES=\$(scripts/engines.sh) make test-faults" env HOLDOUTD_ENGINES="$engines" make test-faults
part fuzz "make fuzz; an input that fails is kept beside its target" make fuzz FUZZTIME="${FUZZTIME:-30s}"
printf '%s\n' "$table"
exit $failed
