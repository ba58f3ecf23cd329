#!/usr/bin/env bash
# Runs the tests that carry the build tag engines, under the race detector, and no others: what stands beside them in their packages make test has run.
# make test-engines calls it, with the folders of the engines in the environment, as scripts/clickhouse.sh and its like print them. A test whose engine is missing fails.
set -euo pipefail
cd "$(dirname "$0")/.."
: "${HOLDOUTD_CLICKHOUSE:?}" "${HOLDOUTD_TRINO:?}"

files=$(git grep -lE '^//go:build .*\bengines\b' -- '*_test.go')
unwatched=(-gcflags=modernc.org/sqlite/lib=-race=false) # as in scripts/test.sh, which says why
export GORACE=atexit_sleep_ms=0 # else every program under the detector sleeps for a second before it ends
failed=0
for package in $(printf '%s\n' "$files" | xargs -n1 dirname | sort -u); do
	tests=$(printf '%s\n' "$files" | grep -E "^$package/[^/]*$" | xargs sed -nE 's/^func (Test[A-Za-z0-9_]+)\(\w+ \*testing\.T\).*/\1/p' | paste -sd'|')
	[ -n "$tests" ] || continue # helpers alone
	"${GO:-go}" test -race "${unwatched[@]}" -vet=off -count=1 -timeout 60m -tags "${TAGS:?}" -run "^($tests)\$" "./$package" || failed=1
done
exit $failed
