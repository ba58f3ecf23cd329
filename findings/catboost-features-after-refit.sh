#!/usr/bin/env bash
# CatBoost 1.2.10: an estimator that is fitted again, on fewer columns, keeps the n_features_in_ of its first fit. Its feature_names_ and its predictions are
# of the second. So whatever asks n_features_in_, as scikit-learn's conventions suggest, is told a number of features that the model does not take.
#
# Seen: 8 features, then 3: n_features_in_ is 8 and feature_names_ has 3. Expected: 3 and 3, as every estimator of scikit-learn has it.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check catboost==1.2.10 numpy==2.4.6
cd "$folder"
"$folder/venv/bin/python" - <<'PYTHON'
import sys

import catboost
import numpy as np

random = np.random.default_rng(0)
label = random.random(100) > 0.5
model = catboost.CatBoostClassifier(iterations=2, verbose=0, allow_writing_files=False)
model.fit(random.normal(size=(100, 8)), label)
model.fit(random.normal(size=(100, 3)), label)
model.predict(random.normal(size=(2, 3)))
print(f"catboost {catboost.__version__}: n_features_in_ {model.n_features_in_}, feature_names_ {model.feature_names_}")
sys.exit(0 if (model.n_features_in_, len(model.feature_names_)) == (8, 3) else "this has changed")
PYTHON
