#!/usr/bin/env bash
# Predictions of models beside scikit-learn, XGBoost and LightGBM, on one thread each, in one run.
# HOLDOUTD_PYTHON names an interpreter with these libraries; without it the repository's own .venv is made and used.
set -euo pipefail
cd "$(dirname "$0")/.."
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
exec "${HOLDOUTD_PYTHON:-$(scripts/python.sh)}" bench/models.py "${RUNS:-5}"
