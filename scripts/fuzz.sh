#!/usr/bin/env bash
# Fuzzes: scripts/fuzz.sh [TIME [PATTERN]] runs each fuzz target of the repository whose name or folder has PATTERN in it
# (default: all), one after another, for TIME each (default: 30s). Each starts from its kept seeds: those that the target adds, and
# testdata/fuzz/TARGET beside it. An input that fails is written there and printed; commit it with the mend.
set -euo pipefail
cd "$(dirname "$0")/.."

time=${1:-30s}
pattern=${2:-}
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# Go's fuzzer may fail with these words, and no input, where its time ends while an input runs: that is the end, and nothing that was found.
timed_out() { grep -q '^ *context deadline exceeded$' "$log" && ! grep -q 'Failing input written to' "$log"; }

ran=0
failed=()
while IFS=: read -r file declaration; do
	target=${declaration#func }
	target=${target%%(*}
	folder=./$(dirname "$file")
	case "$folder $target" in *"$pattern"*) ;; *) continue ;; esac
	ran=$((ran + 1))
	echo "== $target in $folder for $time"
	# Making inputs smaller takes most of a run where inputs are long, as those of the decoder and of exports are, and finds nothing.
	# To make a failing one smaller, run the target again with a longer -fuzzminimizetime.
	if ! ${GO:-go} test "$folder" -tags nomsgpack -run '^$' -fuzz "^$target\$" -fuzztime "$time" -fuzzminimizetime 1x -timeout 0 2>&1 | tee "$log" && ! timed_out; then
		failed+=("$target in $folder")
		sed -n 's/^ *Failing input written to //p' "$log" | while read -r kept; do
			echo "-- $folder/$kept:"
			head -c 4096 "$folder/$kept"
		done
	elif ! grep -q '^fuzz: elapsed: .* execs: [1-9]' "$log"; then
		failed+=("$target in $folder, which tried no input")
	fi
done < <(grep -rE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*\(\w+ \*testing\.F\)' . --exclude-dir=.venv | sed 's|^\./||' | sort)

[ "$ran" -gt 0 ] || { echo "fuzz.sh: there is no such target"; exit 1; }
if [ "${#failed[@]}" -gt 0 ]; then
	printf 'fuzz.sh: failed: %s\n' "${failed[@]}"
	exit 1
fi
echo "fuzz.sh: $ran targets, nothing found"
