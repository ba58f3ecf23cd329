#!/usr/bin/env bash
# LightGBM 4.7.0: with linear_tree=True, a leaf all of whose training rows have a null among the numbers of its line adds nothing to the prediction of these rows.
# The parameters say that missing values are handled: rows with one get the leaf's constant output. dump_model shows that output, leaf_value, and a leaf_const of 0
# without coefficients, which is what predict adds. It is so from the second tree on.
#
# Seen: leaves with a leaf_value that is not 0, no coefficients and a leaf_const of 0; of the rows that come there predict adds 0. Expected: leaf_value.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check lightgbm==4.7.0 numpy==2.4.6
cd "$folder"
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
import sys

import lightgbm
import numpy as np

random = np.random.default_rng(0)
x = random.normal(size=(400, 2))
x[random.random(400) < 0.2, 1] = np.nan
y = x[:, 0] + 3 * np.isnan(x[:, 1]) + 0.1 * random.normal(size=400)
options = {"objective": "regression", "linear_tree": True, "verbose": -1, "num_leaves": 8, "min_data_in_leaf": 5}
model = lightgbm.train(options, lightgbm.Dataset(x, y), 3)


def leaves(node):
    return [node] if "leaf_value" in node else leaves(node["left_child"]) + leaves(node["right_child"])


seen = 0
for i, tree in enumerate(model.dump_model()["tree_info"]):
    place, added = model.predict(x, pred_leaf=True)[:, i], model.predict(x, start_iteration=i, num_iteration=1)
    for leaf in leaves(tree["tree_structure"]):
        here = place == leaf.get("leaf_index", 0)
        if here.any() and np.isnan(x[here]).any(axis=1).all() and leaf["leaf_value"] != 0 and (added[here] == 0).all():
            seen += 1
            print(f"tree {i}, leaf {leaf['leaf_index']}: {here.sum()} rows, leaf_value {leaf['leaf_value']:.4f}, leaf_const {leaf['leaf_const']}, added 0")
print(f"lightgbm {lightgbm.__version__}: {seen} leaves")
sys.exit(0 if seen else "this has changed")
PYTHON
