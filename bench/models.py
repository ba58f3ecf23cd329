"""Predictions of the same models on rows of the same shape, in turns: by holdoutd, which answers an accuracy question about them, and by the library that made them.

Prints medians in nanoseconds a row, on one thread each. Eight columns of numbers; a logistic regression, boosting of 100 trees of depth 3, a forest
of 100 trees of depth 6, one of 20 trees of depth 10, and boosting of 1,000 trees of depth 6, exported by python/src/holdoutd/models.py. The libraries get a matrix of
doubles that is ready and without nulls, and only predict: holdoutd reads columns, checks for nulls and compares with the label.
"""

import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

import lightgbm
import numpy as np
import sklearn
import xgboost
from sklearn import ensemble, linear_model

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "python", "src"))
from holdoutd.models import export  # noqa: E402

ROWS = 200_000
COLUMNS = [f"f{i}" for i in range(8)]
NAMES = {"Logistic": "logistic", "Boosted": "boosted", "Forest": "forest", "Deep": "deep", "Thousand": "thousand"}


def engine(folder):
    """ns a row of the Go benchmarks with the models of a folder, by name."""
    out = subprocess.run(["go", "test", "-run", "^$", "-bench", "Model", "-benchtime", "300ms", "-cpu", "1", "./queries/engine"],
                         check=True, capture_output=True, text=True, env={**os.environ, "HOLDOUTD_MODELS": folder}).stdout
    found = dict(re.findall(r"^BenchmarkModel(\w+?)(?:-\d+)?\s.*?([\d.]+) ns/row", out, re.M))
    return {name: float(found[go]) for go, name in NAMES.items()}


def timed(predict, x):
    """ns a row; the first call is not counted."""
    predict(x[:1000])
    start = time.perf_counter_ns()
    predict(x)
    return (time.perf_counter_ns() - start) / len(x)


def main():
    runs = int(sys.argv[1])
    rng = np.random.default_rng(1)
    x = rng.normal(size=(ROWS, len(COLUMNS)))
    y = x[:, 0] + x[:, 1] * x[:, 2] + 0.5 * x[:, 3] + rng.normal(size=ROWS) > 0
    part = slice(0, 20_000)
    forest = lambda trees, depth: ensemble.RandomForestClassifier(trees, max_depth=depth, n_jobs=1, random_state=0).fit(x[part], y[part])
    boosted = ensemble.GradientBoostingClassifier(n_estimators=100, max_depth=3, random_state=0).fit(x[part], y[part])
    xgb = xgboost.XGBClassifier(n_estimators=100, max_depth=3, n_jobs=1).fit(x[part], y[part])
    lgb = lightgbm.LGBMClassifier(n_estimators=100, max_depth=3, n_jobs=1, verbose=-1).fit(x[part], y[part])
    large = xgboost.XGBClassifier(n_estimators=1000, max_depth=6, n_jobs=1).fit(x[part], y[part])
    large_lgb = lightgbm.LGBMClassifier(n_estimators=1000, max_depth=6, n_jobs=1, verbose=-1).fit(x[part], y[part])
    logistic = linear_model.LogisticRegression().fit(x[part], y[part])
    shallow, deep = forest(100, 6), forest(20, 10)
    skl = "scikit-learn " + sklearn.__version__
    others = {"logistic": [(skl, logistic)], "boosted": [(skl, boosted), ("XGBoost " + xgboost.__version__, xgb), ("LightGBM " + lightgbm.__version__, lgb)],
              "forest": [(skl, shallow)], "deep": [(skl, deep)],
              "thousand": [("XGBoost " + xgboost.__version__, large), ("LightGBM " + lightgbm.__version__, large_lgb)]}
    figures = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, systems in others.items():
            with open(os.path.join(folder, name + ".json"), "w") as f:
                json.dump(export(systems[0][1], COLUMNS), f)
        for _ in range(runs):
            for name, value in engine(folder).items():
                figures.setdefault((name, "holdoutd"), []).append(value)
            for name, systems in others.items():
                for system, model in systems:
                    figures.setdefault((name, system), []).append(timed(model.predict, x))
    print(f"{'ns a row':10}" + "".join(f"{s:>22}" for s in ("system", "median", "of holdoutd's")))
    for (name, system), values in sorted(figures.items(), key=lambda item: (list(others).index(item[0][0]), item[0][1] != "holdoutd")):
        median = statistics.median(values)
        print(f"{name:10}{system:>22}{median:22.1f}{median / statistics.median(figures[name, 'holdoutd']):21.1f}x")


main()
