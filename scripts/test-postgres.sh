#!/usr/bin/env bash
# Runs the tests that carry the build tag postgres, under the race detector, and no others: what stands beside them in their packages make test has run.
# make test-postgres calls it; HOLDOUTD_POSTGRES must name the folder that scripts/postgres.sh prints.
set -euo pipefail
cd "$(dirname "$0")/.."
: "${HOLDOUTD_POSTGRES:?}"

files=$(git grep -lE '^//go:build .*\bpostgres\b' -- '*_test.go')
export GORACE=atexit_sleep_ms=0 # else every program under the detector sleeps for a second before it ends
failed=0
for package in $(printf '%s\n' "$files" | xargs -n1 dirname | sort -u); do
	tests=$(printf '%s\n' "$files" | grep -E "^$package/[^/]*$" | xargs sed -nE 's/^func (Test[A-Za-z0-9_]+)\(\w+ \*testing\.T\).*/\1/p' | paste -sd'|')
	[ -n "$tests" ] || continue # helpers alone
	"${GO:-go}" test -race -vet=off -count=1 -timeout 30m -tags "${TAGS:?}" -run "^($tests)\$" "./$package" || failed=1
done
exit $failed
