#!/usr/bin/env bash
# The engine beside DuckDB, NumPy and Polars, on one thread each, over columns of the same shape, in one run. The table says how
# many nanoseconds one query takes a row (the median of RUNS runs) and how many times faster the engine is.
# HOLDOUTD_PYTHON names an interpreter with numpy, duckdb and polars; without it the repository's own .venv is made and used.
set -euo pipefail
cd "$(dirname "$0")/.."
exec "${HOLDOUTD_PYTHON:-$(scripts/python.sh)}" bench/compare.py "${RUNS:-5}"
