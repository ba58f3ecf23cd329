#!/usr/bin/env bash
# The feature-selection experiment of Science 2015 at full size, one after the other in one run: a plain NumPy script, holdoutd
# drawing all data (--plain), and holdoutd sampling what the analyst sees. Prints wall time, memory and ratios.
# HOLDOUTD_PYTHON names an interpreter with numpy; without it the repository's own .venv is made and used.
set -euo pipefail
cd "$(dirname "$0")/.."
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
go build -o "$dir/holdoutd" ./cmd/holdoutd
python=${HOLDOUTD_PYTHON:-$(scripts/python.sh)}
"$python" bench/feature-selection.py "$dir/holdoutd" "$dir"
