#!/usr/bin/env bash
# Builds a command, ./cmd/holdoutd unless another is named, into the file that is named first, and says how far it is: go build is silent, and a
# first build compiles some 650 packages. Needs no C compiler.
set -euo pipefail
cd "$(dirname "$0")/.."

out=$1
command=${2:-./cmd/holdoutd}
go=${GO:-go}
export CGO_ENABLED=0
flags=(-tags "${TAGS:-nomsgpack}")

total=$("$go" list -deps "${flags[@]}" "$command" | wc -l) # it says what it downloads

# go build -v names each package that it compiles, and none that it has already.
"$go" build -v "${flags[@]}" -o "$out" "$command" 2>&1 >/dev/null | {
	done=0
	while IFS= read -r line; do
		if [[ ! $line =~ ^[^#[:space:]]+$ ]]; then
			printf '%s\n' "$line" >&2
			continue
		fi
		[ $((done++)) -gt 0 ] || echo "compiling; the next time it is there" >&2
		if [ -t 2 ]; then
			printf '\r  %d of %d packages' "$done" "$total" >&2
		elif [ $((done % 50)) = 0 ]; then
			printf '  %d of %d packages\n' "$done" "$total" >&2
		fi
	done
	[ "$done" = 0 ] || printf "$([ -t 2 ] && echo '\r')  %d of %d packages, in %d s\n" "$done" "$total" "$SECONDS" >&2
}
