#!/usr/bin/env bash
# Reads the list of tools, and calls tools, with the clients and converters of agents' libraries: none may warn, refuse or close an object that is open. They are installed into a
# directory beside the checkout's own interpreter, once for each version of tools-read-requirements.txt. scripts/test-all.sh calls it.
set -euo pipefail
cd "$(dirname "$0")/.."

dir=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server"; rm -rf "$dir"' EXIT
venv=${XDG_CACHE_HOME:-$HOME/.cache}/holdoutd/agents-$(sha256sum scripts/tools-read-requirements.txt | cut -c1-16)
if [ ! -e "$venv/made" ]; then
	rm -rf "$venv"
	"${PYTHON:-python3}" -m venv "$venv"
	"$venv/bin/pip" install -q -r scripts/tools-read-requirements.txt
	touch "$venv/made"
fi
"${GO:-go}" build -tags "${TAGS:-nomsgpack}" -o "$dir/holdoutd" ./cmd/holdoutd
"$dir/holdoutd" demo --addr 127.0.0.1:0 --browser=false >"$dir/log" 2>&1 &
server=$!
for _ in $(seq 600); do
	grep -q 'msg=listening' "$dir/log" && break
	kill -0 "$server" || { cat "$dir/log"; exit 1; }
	sleep 0.1
done
"$venv/bin/python" -W error::UserWarning scripts/tools_read.py "$(grep -o 'http://127[^ ]*' "$dir/log" | head -1)" "$(grep -o 'hk_[A-Za-z0-9_-]*' "$dir/log" | head -1)"
