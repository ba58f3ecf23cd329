#!/usr/bin/env bash
# Runs every test once without the race detector, then those that concern it under it: scripts/concurrent tells which, from the code. make test calls it;
# HOLDOUTD_PYTHON must name the interpreter that scripts/python.sh prints, and HOLDOUTD_NODE the folder that scripts/web.sh does.
set -euo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go}
# make test has vetted all; a package whose tests do not end by then hangs, and go test shows where. With -trimpath what is compiled does not depend on
# where the clone lies: another clone, as a gate's, compiles what has changed.
flags=(-vet=off -trimpath -timeout 6m -tags "${TAGS:?}")

# It would keep verdicts for another clone too, and does not know that another seed is another test, nor what programs that a test starts do.
flags+=(-count=1)

# The race detector looks at all code but SQLite's: that is C, made Go by a machine, keeps its rows in memory that the detector does not
# watch, and takes ten times as long under it. Its calls, and locks, are in packages that the detector does look at.
unwatched=(-gcflags=modernc.org/sqlite/lib=-race=false)

# A program under the race detector sleeps for a second before it ends. Tests start thousands of them, which decode a file each.
export GORACE=atexit_sleep_ms=0

# Tests write thousands of small files, and wait for each until it is on the disk. Where there is memory for it they write to that: what
# they look at is which writes were made, in which order, and what is there after the process has died, which is the same. Tests that kill
# a ledger or a server, or fill the disk, stay on it: they write to HOLDOUTD_DISK.
export HOLDOUTD_DISK=${TMPDIR:-/tmp}
files=$(mktemp -d "$HOLDOUTD_DISK/holdoutd-test.XXXXXX") memory= waiter=
trap 'kill $waiter 2>/dev/null || true; rm -rf "$files" $memory' EXIT
export GOTMPDIR=${GOTMPDIR:-$HOLDOUTD_DISK}
kilobytes_needed=$((4 << 20))
kilobytes() { { "$@" 2>/dev/null || true; } | tail -1 | tr -dc 0-9; }
if [ "$(kilobytes df --output=avail -k /dev/shm)0" -gt "${kilobytes_needed}0" ] &&
	[ "$(kilobytes awk '/MemAvailable/ {print $2}' /proc/meminfo)0" -gt $((2 * kilobytes_needed))0 ] &&
	memory=$(mktemp -d /dev/shm/holdoutd-test.XXXXXX); then
	printf '#!/bin/sh\n' >"$memory/program"
	chmod +x "$memory/program"
	if "$memory/program" 2>/dev/null; then # some mount it for data alone
		export TMPDIR=$memory
	fi
fi
echo "tests write to ${TMPDIR:-/tmp}"

# These packages' tests mostly wait, for programs of other languages and for the disk: the others run beside them.
waiting=(./tests/client ./tests/browser ./tests ./cmd/holdoutd)
echo "beside the others: ${waiting[*]}; what they say comes last"
"$go" test "${flags[@]}" -timeout 10m -p 1 "${waiting[@]}" >"$files/waiting" 2>&1 & # they wait for the others, too: cmd/holdoutd takes 200 to 330 s
waiter=$!

failed=0
others=$("$go" list -tags "$TAGS" ./... | grep -vE '/(tests|tests/client|tests/browser|cmd/holdoutd)$')
whole=$("$go" run -trimpath ./scripts/concurrent) # by themselves, so that a failure of theirs ends this script: go test without packages passes
some=$("$go" run -trimpath ./scripts/concurrent -some)
read -r pattern packages <<<"$some"
"$go" test "${flags[@]}" $others || failed=1
"$go" test -race "${unwatched[@]}" "${flags[@]}" $whole || failed=1
"$go" test -race "${unwatched[@]}" "${flags[@]}" -run "$pattern" $packages || failed=1

wait $waiter || failed=1
cat "$files/waiting"
if [ $failed -ne 0 ]; then
	echo "test.sh: failed, with the seed ${HOLDOUTD_SEED:=1}. To repeat it: HOLDOUTD_SEED=$HOLDOUTD_SEED make test"
fi
exit $failed
