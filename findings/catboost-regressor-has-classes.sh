#!/usr/bin/env bash
# CatBoost 1.2.10: a fitted CatBoostRegressor has an attribute classes_, an empty array. Code that tells classifiers from regressors by that attribute, as is usual
# with estimators of scikit-learn, takes every CatBoostRegressor for a classifier without classes. scikit-learn's own is_classifier is right.
#
# Seen: hasattr(model, "classes_") is True, len(model.classes_) is 0. Expected: no such attribute, as of every regressor of scikit-learn, XGBoost and LightGBM.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check catboost==1.2.10 numpy==2.4.6 scikit-learn==1.9.1
cd "$folder"
"$folder/venv/bin/python" - <<'PYTHON'
import sys

import catboost
import numpy as np
from sklearn.base import is_classifier, is_regressor
from sklearn.linear_model import LinearRegression

random = np.random.default_rng(0)
x, y = random.normal(size=(100, 3)), random.normal(size=100)
model = catboost.CatBoostRegressor(iterations=2, verbose=0, allow_writing_files=False).fit(x, y)
said = hasattr(model, "classes_"), len(model.classes_), is_classifier(model), is_regressor(model)
print(f"catboost {catboost.__version__}: has classes_ {said[0]}, of length {said[1]}; is_classifier {said[2]}, is_regressor {said[3]}")
usual = hasattr(LinearRegression().fit(x, y), "classes_")
sys.exit(0 if said == (True, 0, False, True) and not usual else "this has changed")
PYTHON
