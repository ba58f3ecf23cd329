#!/usr/bin/env bash
# Builds a command, ./cmd/holdoutd unless another is named, into the file that is named first, and says how far it is: go build is silent, and a
# first build compiles some 600 packages. Needs no C compiler.
set -euo pipefail
cd "$(dirname "$0")/.."

out=$1
command=${2:-./cmd/holdoutd}
go=${GO:-go}
export CGO_ENABLED=0
# The compiler collects its garbage seldomer: a tenth to a fifth less of processor time, for a peak of 1.1 GB instead of .8 GB (SQLite's package).
export GOGC=${GOGC:-400}
flags=(-tags "${TAGS:-nomsgpack}")
if [ -n "${QUICK:-}" ]; then
	# For a program that is tried and not kept: two thirds of the processor time. What is not inlined is up to twice as slow, and debuggers find nothing.
	flags+=(-gcflags='all=-l -dwarf=false' -ldflags='-s -w')
	# Most of the standard library, which needs no module, is compiled while modules are downloaded.
	"$go" build "${flags[@]}" net/http html/template database/sql encoding/xml &
fi

total=$("$go" list -deps "${flags[@]}" "$command" | wc -l) # it says what it downloads

wait # for the standard library, or both would compile what is left of it
# go build -v names each package as it begins to compile it, and none that it has already.
"$go" build -v "${flags[@]}" -o "$out" "$command" 2>&1 >/dev/null | {
	done=0 failed= over= # over: what ends a line that is written over on a terminal
	while IFS= read -r line; do
		if [[ ! $line =~ ^[^#[:space:]]+$ ]]; then # the compiler's own words
			printf "$over%s\n" "$line" >&2
			failed=1 over=
			continue
		fi
		[ $((done++)) -gt 0 ] || echo "compiling; a first build takes a minute or two, a later one seconds" >&2
		if [ -t 2 ]; then
			printf '\r  %d of %d packages' "$done" "$total" >&2
			over='\n'
		elif [ $((done % 50)) = 0 ]; then
			printf '  %d of %d packages\n' "$done" "$total" >&2
		fi
	done
	if [ "$done" -gt 0 ] && [ -z "$failed" ]; then
		printf "${over:+\\r}  %d of %d packages, in %d s\n" "$done" "$total" "$SECONDS" >&2
	else
		printf "$over" >&2
	fi
}
