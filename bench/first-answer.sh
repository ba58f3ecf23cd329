#!/usr/bin/env bash
# Seconds from a clone to the first answer on a machine that has nothing of it yet: no modules, nothing compiled, no wheels. It follows the README of each
# commit: the server's line, the Python client installed meanwhile in an environment of its own, then the first question.
#
#   bench/first-answer.sh COMMIT [COMMIT ...]
#
# It downloads what the programs need. Other work on the machine makes it slower: compare within a run alone.
set -euo pipefail
cd "$(dirname "$0")/.."
project=$PWD

for commit in "$@"; do
	dir=$(mktemp -d)
	git clone -q "$project" "$dir/clone"
	git -C "$dir/clone" checkout -q "$commit"
	(
		cd "$dir/clone"
		export HOME=$dir/home GOMODCACHE=$dir/modules GOCACHE=$dir/compiled PIP_NO_CACHE_DIR=1 GOFLAGS=-modcacherw\ ${GOFLAGS:-}
		mkdir "$HOME"
		begun=$EPOCHREALTIME
		since() { awk -v a="$begun" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f", b - a }'; }
		if grep -q '^demo:' Makefile; then line="make demo"; else line="go run ./cmd/holdoutd demo"; fi
		setsid $line >"$dir/demo" 2>"$dir/log" &
		server=$!
		trap 'kill -- -$server 2>/dev/null || true' EXIT
		python3 -m venv "$dir/venv"
		"$dir/venv/bin/pip" install --quiet "./python"
		installed=$(since)
		until grep -q 'http://' "$dir/demo"; do
			kill -0 $server 2>/dev/null || { cat "$dir/log" >&2; exit 1; }
			sleep .05
		done
		started=$(since)
		answer=$("$dir/venv/bin/python" -c 'import holdoutd; print(holdoutd.connect().holdout("flights (demo)").fraction("delay > 15"))')
		echo "$commit: client installed after $installed s, server after $started s, first answer after $(since) s: $answer"
	)
	rm -rf "$dir"
done
