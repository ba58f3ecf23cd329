#!/usr/bin/env bash
# XGBoost 3.2.0: the booster gblinear of several classes begins each class with the base_score of the first one. The model keeps a base_score for each class,
# estimated from the labels; with gbtree each class has its own.
#
# Seen: the margin less x·weights and intercept is base_score[0] for each of the three classes. Expected: base_score[k] for class k.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check xgboost-cpu==3.2.0 scikit-learn==1.9.1 numpy==2.4.6
cd "$folder"
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
import json
import sys

import numpy as np
import xgboost

random = np.random.default_rng(0)
x = random.normal(size=(400, 3))
y = np.digitize(x[:, 0] + random.normal(size=400), [0.5, 1.5])
model = xgboost.XGBClassifier(n_estimators=5, booster="gblinear", updater="coord_descent").fit(x, y)
learner = json.loads(bytes(model.get_booster().save_raw("json")))["learner"]
weights = np.array(learner["gradient_booster"]["model"]["weights"]).reshape(4, 3)
start = model.predict(x, output_margin=True) - x @ weights[:3] - weights[3]
kept = np.array(json.loads(learner["learner_model_param"]["base_score"]))
print(f"xgboost {xgboost.__version__}: base_score {kept.round(4)}, each class begins with {start.mean(axis=0).round(4)}")
sys.exit(0 if np.ptp(kept) > 0.1 and np.abs(start - kept[0]).max() < 1e-4 else "this has changed")
PYTHON
