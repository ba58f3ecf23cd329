#!/usr/bin/env bash
# Runs every test once: those of packages that start goroutines under the race detector, the others without it. scripts/concurrent tells
# which is which, from the code. make test calls it; HOLDOUTD_PYTHON must name the interpreter that scripts/python.sh prints, and HOLDOUTD_NODE
# the folder that scripts/web.sh does.
set -euo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go}
flags=(-vet=off -timeout 45m -tags "${TAGS:?}") # make test has vetted all

# Tests in packages that start goroutines, whose own work is arithmetic on the test's goroutine, which takes ten times as long under the
# race detector. They run without it, wherever they are, and the detector's run skips by the same names; so a name that no test has moves
# nothing.
arithmetic='TestPrintedTargets|TestAgentTunes|TestAgentIsEvaluated|TestSelectingModels|TestWhatComesWasExplained|TestSizesAreKnownBeforehand|TestCoverage|TestPlantedFaults|TestEveryAttackBites|TestTooLargeRadiusIsBroken|TestSamplingIsExact|TestSamplingFaults'

# The race detector looks at all code but SQLite's: that is C, made Go by a machine, keeps its rows in memory that the detector does not
# watch, and takes ten times as long under it. Its calls, and locks, are in packages that the detector does look at.
unwatched=(-gcflags=modernc.org/sqlite/lib=-race=false)

# A program under the race detector sleeps for a second before it ends. Tests start thousands of them, which decode a file each.
export GORACE=atexit_sleep_ms=0

# Tests write thousands of small files, and wait for each until it is on the disk. Where there is memory for it they write to that: what
# they look at is which writes were made, in which order, and what is there after the process has died, which is the same. Tests that kill
# a ledger or a server, or fill the disk, stay on it: they write to HOLDOUTD_DISK.
export HOLDOUTD_DISK=${TMPDIR:-/tmp}
export GOTMPDIR=${GOTMPDIR:-$HOLDOUTD_DISK}
kilobytes_needed=$((4 << 20))
kilobytes() { { "$@" 2>/dev/null || true; } | tail -1 | tr -dc 0-9; }
if [ "$(kilobytes df --output=avail -k /dev/shm)0" -gt "${kilobytes_needed}0" ] &&
	[ "$(kilobytes awk '/MemAvailable/ {print $2}' /proc/meminfo)0" -gt $((2 * kilobytes_needed))0 ] &&
	memory=$(mktemp -d /dev/shm/holdoutd-test.XXXXXX); then
	trap 'rm -rf "$memory"' EXIT
	printf '#!/bin/sh\n' >"$memory/program"
	chmod +x "$memory/program"
	if "$memory/program" 2>/dev/null; then # some mount it for data alone
		export TMPDIR=$memory
	fi
fi
echo "tests write to ${TMPDIR:-/tmp}"

module=$("$go" list -m)
# having prints the packages whose tests match a pattern.
having() { git ls-files '*_test.go' | xargs grep -lE "$1" | xargs -n1 dirname | sort -u | sed "s|^|$module/|"; }
racing=$("$go" run ./scripts/concurrent)
alone=$("$go" run ./scripts/concurrent -not)
# Experiments make fewer and smaller runs under the detector (runtest.UnderRace): they are tested in both ways.
alone=$(printf '%s\n' "$alone" $(having 'experiments/run/runtest"') | sort -u)
rest=$(having "^func ($arithmetic)\(" | grep -vxF "$alone")

failed=0
"$go" test "${flags[@]}" $alone || failed=1
"$go" test "${flags[@]}" -run "^($arithmetic)\$" $rest || failed=1
"$go" test -race "${unwatched[@]}" "${flags[@]}" -skip "^($arithmetic)\$" $racing || failed=1
exit $failed
