#!/usr/bin/env bash
# Draws docs/figures/dashboard.png: starts a demo, asks as a small team would (ask.py), and opens its page in Chromium.
set -euo pipefail
cd "$(dirname "$0")/../.."
python=${HOLDOUTD_PYTHON:-$(scripts/python.sh)}
node=${HOLDOUTD_NODE:-$(scripts/web.sh)}
home=$(mktemp -d)
go build -tags nomsgpack -o "$home/holdoutd" ./cmd/holdoutd
HOME=$home XDG_CONFIG_HOME='' "$home/holdoutd" demo --data "$home/data" --addr 127.0.0.1:0 >"$home/demo.txt" 2>"$home/log.txt" &
demo=$!
trap 'kill $demo; wait $demo || true; rm -rf "$home"' EXIT
until grep -q '^  key' "$home/demo.txt"; do
	kill -0 $demo || { cat "$home/log.txt" >&2; exit 1; }
	sleep 0.2
done
export HOLDOUTD_URL HOLDOUTD_KEY
HOLDOUTD_URL=$(sed -n 's/^  URL *//p' "$home/demo.txt")
HOLDOUTD_KEY=$(sed -n 's/^  key *//p' "$home/demo.txt")
PYTHONPATH=python/src "$python" web/picture/ask.py
PATH=$node:$PATH node web/picture/picture.mjs docs/figures/dashboard.png
