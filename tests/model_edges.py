"""Fits models as people have them, exports each, and prints what the library predicts for rows at the edges, one JSON object a line.

Edges are nulls, texts that were never seen, numbers at the exported thresholds and their neighbours, and numbers that single precision rounds to another side.
"""

import json
import os
import sys
import warnings

import lightgbm
import numpy as np
import pandas
import xgboost
from sklearn import calibration, ensemble, kernel_ridge, linear_model, neighbors, neural_network, svm, tree
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, OneHotEncoder, OrdinalEncoder, RobustScaler, StandardScaler

from holdoutd import _evaluate as evaluate
from holdoutd import models as exporter

warnings.filterwarnings("ignore")
np.random.seed(5)  # what an estimator draws from that has no random_state
rng = np.random.default_rng(5)
N = 1000
a, b = rng.normal(size=N) * 3 + 1, rng.standard_t(4, N) * 100
data = pandas.DataFrame({"a": a, "b": b, "c": rng.integers(0, 12, N).astype(float)})
data["s"] = rng.choice(["SFO", "OAK", "é", "JFK", "LGA", "rare one", "rare two"], N, p=[0.3, 0.25, 0.2, 0.1, 0.13, 0.01, 0.01]).astype(object)
data["t"] = rng.choice(["x", "y", "z"], N).astype(object)
score = 0.6 * a + 0.004 * b + 1.2 * np.isin(data.s, ["SFO", "LGA"]) - 0.8 * (data.t == "y") * (a > 0)
data["y"] = score * 10 + rng.normal(size=N)
data["amount"] = np.exp(score / 4) + 0.1
data["late"] = score + rng.logistic(size=N) > 0.5
data["kind"] = np.choose(np.digitize(score + rng.normal(size=N), [-1, 1]), ["low", "mid", "top"]).astype(object)
data.loc[rng.random(N) < 0.1, "a"] = np.nan
data.loc[rng.random(N) < 0.1, "b"] = np.nan
data.loc[rng.random(N) < np.where(data.late, 0.5, 0.02), "c"] = np.nan  # nulls that tell something, so that some splits are into nulls and all numbers
data.loc[rng.random(N) < 0.1, "s"] = None
data["s_ascii"] = data.s.where(data.s != "é", "e")  # XGBoost does not keep other letters whole
data["number"] = data.kind.map({"low": 0, "mid": 1, "top": 2})
NUMBERS, TEXTS = ["a", "b", "c"], ["s", "t"]


def thresholds(model, column):
    """The numbers at which an exported model splits a column."""
    splits = [n for t in model.get("trees", {}).get("trees", []) for n in t if isinstance(n, list) and n and n[0] == column]
    return sorted({n[1] for n in splits if not isinstance(n[1], list) and abs(n[1]) < 1e100})


def edges(model):
    """Rows of the table, and rows at the edges of the model."""
    rows = data.sample(120, random_state=1)[NUMBERS + TEXTS + ["s_ascii"]].to_dict("records")
    for column in NUMBERS:
        found = thresholds(model, column)
        for t in [found[i] for i in sorted(rng.choice(len(found), min(12, len(found)), replace=False))] if found else []:
            for x in (t, np.nextafter(t, np.inf), np.nextafter(t, -np.inf), float(np.float32(t))):
                rows.append({**rows[rng.integers(120)], column: float(x)})
        for x in (np.nan, 0.0, -0.0, 1e-40, 1e30, -1e30, 0.1, float(np.float32(0.1))):
            rows.append({**rows[rng.integers(120)], column: x})
    for column in TEXTS + ["s_ascii"]:
        for text in ("never seen", "", None, "rare one"):
            rows.append({**rows[rng.integers(120)], column: text})
    rows.append(dict.fromkeys(NUMBERS, np.nan) | dict.fromkeys(TEXTS + ["s_ascii"], None))
    return pandas.DataFrame(rows)


def tell(name, exported, predicted, rows, tolerance, scores):
    null = lambda v: None if v is None or v != v else v
    predicted = np.asarray(predicted, dtype=float)
    cells = {c: [null(v) for v in rows[c]] for c in rows}
    evaluated = [[null(v) for v in row] for row in evaluate.scores(exported, evaluate.Columns(cells)).tolist()]
    print(json.dumps({"name": name, "model": exported, "rows": [{k: null(v) for k, v in r.items()} for r in rows.to_dict("records")],
                      "predicted": [[v if np.isfinite(v) else None for v in row] for row in predicted.reshape(len(rows), -1).tolist()], "tolerance": tolerance, "scores": scores, "evaluated": evaluated}))


def check(name, model, columns=NUMBERS + TEXTS, label="late", tolerance=0.0, prepare=lambda t: t, scores=None, texts=None, near=False):
    """scores says how the library gives raw scores, which are compared instead of probabilities. near leaves out rows from which others are equally far, of which libraries choose."""
    model.fit(prepare(data[columns]), data[label])
    exported = exporter.export(model, list(prepare(data[columns]).columns), texts, rows=prepare(data[columns]))
    rows = edges(exported)
    if near:
        rows = rows[~evaluate.tied(exported, {c: [None if v is None or v != v else v for v in rows[c]] for c in rows})]
    x = prepare(rows[columns])
    if scores:
        predicted = scores(model, x)
    elif label in ("y", "amount"):
        predicted = model.predict(x)
    else:
        predicted = model.predict_proba(x)
        predicted = predicted[:, 1] if predicted.shape[1] == 2 else predicted
    tell(name, exported, predicted, rows, tolerance, bool(scores))
    return sum(n[1] == exporter.LARGEST for t in exported.get("trees", {}).get("trees", []) for n in t if isinstance(n, list) and isinstance(n[0], str))


def categories(table):
    """Text columns as pandas categories, as LightGBM wants them; what was never seen is null, as pandas has it."""
    known = {c: sorted(data[c].dropna().unique()) for c in TEXTS + ["s_ascii"]}
    return table.assign(**{c: pandas.Categorical(table[c], categories=known[c]) for c in table.columns if c in known})


raw = lambda m, x: m.predict(x, raw_score=True)
one_hot = lambda *number_steps, **o: ColumnTransformer([("n", make_pipeline(SimpleImputer(strategy="median"), *number_steps), NUMBERS),
                                                        ("t", OneHotEncoder(**{"handle_unknown": "ignore", **o}), TEXTS)])
filled = ColumnTransformer([("t", make_pipeline(SimpleImputer(strategy="constant", fill_value="missing"), OneHotEncoder(handle_unknown="ignore")), ["s"]),
                            ("one", OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=50, drop="first"), [4]),
                            ("n", make_pipeline(MinMaxScaler(), SimpleImputer(strategy="constant", fill_value=0.5)), slice("a", "b"))], remainder="passthrough")
coded = lambda *steps: ColumnTransformer([("t", make_pipeline(OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-2), *steps), TEXTS),
                                          ("n", "passthrough", NUMBERS)])
drop_c = ColumnTransformer([("no", "drop", ["c"]), ("t", OneHotEncoder(handle_unknown="infrequent_if_exist", max_categories=4), ["s"]), ("n", make_pipeline(RobustScaler(), SimpleImputer()), ["a", "b"])])

LIGHT = dict(n_estimators=10, verbose=-1, min_child_samples=5, num_leaves=15)
split_nulls = 0
for seed in range(3):  # nulls: 12 of 40 such models have a split into nulls and all numbers
    split_nulls += check(f"lightgbm with nulls {seed}", lightgbm.LGBMClassifier(**LIGHT, random_state=seed, colsample_bytree=0.5, use_missing=True), NUMBERS, scores=raw)
assert split_nulls > 0, "no model of this test splits into nulls and all numbers"
check("lightgbm regression with nulls", lightgbm.LGBMRegressor(**LIGHT), NUMBERS, "y")
check("lightgbm categories", lightgbm.LGBMClassifier(**LIGHT, min_data_per_group=5, cat_smooth=1), scores=raw, prepare=categories)
check("lightgbm categories of classes", lightgbm.LGBMClassifier(**{**LIGHT, "n_estimators": 6}, min_data_per_group=5, cat_smooth=1), label="kind", scores=raw, prepare=categories)
check("lightgbm one category column first", lightgbm.LGBMRegressor(**LIGHT, max_cat_to_onehot=1, min_data_per_group=1, cat_smooth=0), ["s", "a"], "y", prepare=categories)
# Texts that were never seen are nulls for pandas, as for the exported model.
histogram = lambda m, x: m._raw_predict(x).reshape(len(x), -1)
check("histogram boosting of categories", ensemble.HistGradientBoostingClassifier(max_iter=8, min_samples_leaf=3), scores=histogram, prepare=categories, tolerance=1e-12)
check("histogram boosting of categories and classes", ensemble.HistGradientBoostingClassifier(max_iter=5, min_samples_leaf=3), label="kind", scores=histogram, prepare=categories, tolerance=1e-12)
check("histogram boosting, categories last and first", ensemble.HistGradientBoostingRegressor(max_iter=8, min_samples_leaf=1, max_leaf_nodes=60), ["s", "a", "t"], "y", prepare=categories, tolerance=1e-12)
check("lightgbm behind one-hot", make_pipeline(one_hot(MinMaxScaler()), lightgbm.LGBMClassifier(**LIGHT)), scores=raw)
check("lightgbm behind codes", make_pipeline(coded(), lightgbm.LGBMClassifier(**LIGHT)), scores=raw)
# XGBoost and single precision: sums of leaves are the library's but for the order and precision of its additions.
margin = lambda m, x: (m.steps[-1][1] if hasattr(m, "steps") else m).predict(m[:-1].transform(x) if hasattr(m, "steps") else x, output_margin=True)
check("xgboost with nulls", xgboost.XGBClassifier(n_estimators=8, max_depth=4), NUMBERS, scores=margin, tolerance=2e-6)
check("xgboost categories", xgboost.XGBClassifier(n_estimators=8, max_depth=4, enable_categorical=True, max_cat_to_onehot=1), ["s_ascii", "a", "t"], scores=margin, tolerance=2e-6, prepare=categories)
check("xgboost categories of classes", xgboost.XGBClassifier(n_estimators=5, max_depth=4, enable_categorical=True), ["a", "t", "s_ascii"], label="number", scores=margin, tolerance=2e-6, prepare=categories)
check("xgboost regression of categories", xgboost.XGBRegressor(n_estimators=8, max_depth=5, enable_categorical=True, max_cat_to_onehot=2, max_cat_threshold=3), ["t", "s_ascii"], "y", tolerance=2e-5, prepare=categories)
check("xgboost behind one-hot", make_pipeline(one_hot(StandardScaler(), sparse_output=False), xgboost.XGBClassifier(n_estimators=8, max_depth=4)), scores=margin, tolerance=2e-6)
check("tree behind scalers", make_pipeline(one_hot(StandardScaler()), tree.DecisionTreeClassifier(max_depth=8)))
check("forest behind one-hot with nulls as a category", make_pipeline(one_hot(), ensemble.RandomForestClassifier(6, max_depth=7, random_state=0)), tolerance=1e-15)
check("forest behind a mixed transformer", make_pipeline(filled, ensemble.ExtraTreesClassifier(6, max_depth=7, random_state=0)), tolerance=1e-15)
check("boosting behind codes", make_pipeline(coded(MaxAbsScaler()), SimpleImputer(), ensemble.GradientBoostingClassifier(n_estimators=15, random_state=0)), tolerance=1e-14)
check("histogram boosting behind a scaler", make_pipeline(MinMaxScaler(), ensemble.HistGradientBoostingRegressor(max_iter=8)), NUMBERS, "y", tolerance=1e-12)
check("regression tree without a column", make_pipeline(drop_c, tree.DecisionTreeRegressor(max_depth=8)), label="y")
# Linear models: the steps are folded into the weights, so sums are rounded elsewhere.
linear = lambda name, model, **more: check(name, model, tolerance=1e-9, **more)
logit = lambda m, x: m.decision_function(x)
linear("logistic behind one-hot", make_pipeline(one_hot(StandardScaler()), linear_model.LogisticRegression(max_iter=2000)))
linear("logistic behind min and max", make_pipeline(one_hot(MinMaxScaler(), drop="first"), linear_model.LogisticRegression(max_iter=2000)))
linear("softmax behind one-hot", make_pipeline(one_hot(StandardScaler()), linear_model.LogisticRegression(max_iter=2000)), label="kind")
linear("logistic behind a mixed transformer", make_pipeline(filled, SimpleImputer(), linear_model.LogisticRegression(max_iter=2000)))
linear("ridge behind a transformer that drops", make_pipeline(drop_c, linear_model.Ridge()), label="y")
linear("ridge behind codes", make_pipeline(coded(), SimpleImputer(), StandardScaler(), linear_model.Ridge()), label="y")

linear("ridge of classes", make_pipeline(one_hot(StandardScaler()), linear_model.RidgeClassifier()), label="kind", scores=logit)
linear("poisson behind one-hot", make_pipeline(one_hot(StandardScaler()), linear_model.PoissonRegressor()), label="amount")

# Links of other losses, and numbers that count as null.
check("lightgbm of roots", lightgbm.LGBMRegressor(**LIGHT, reg_sqrt=True), NUMBERS, "y", tolerance=1e-12)
check("lightgbm gamma", lightgbm.LGBMRegressor(**LIGHT, objective="gamma"), NUMBERS, "amount", tolerance=1e-12)
check("lightgbm, zero is null", lightgbm.LGBMClassifier(**LIGHT, zero_as_missing=True), NUMBERS, scores=raw)
check("lightgbm, random forest", lightgbm.LGBMRegressor(**LIGHT, boosting_type="rf", subsample=0.6, subsample_freq=1), NUMBERS, "y", tolerance=1e-12)
check("xgboost tweedie", xgboost.XGBRegressor(n_estimators=8, objective="reg:tweedie"), NUMBERS, "amount", tolerance=2e-6)
check("xgboost, 2 is null", xgboost.XGBClassifier(n_estimators=8, missing=2.0), NUMBERS, scores=margin, tolerance=2e-6)
check("xgboost behind sparse one-hot", make_pipeline(one_hot(MinMaxScaler()).set_params(sparse_threshold=1.0), xgboost.XGBClassifier(n_estimators=8, max_depth=4)), scores=margin, tolerance=2e-6)
check("adaptive boosting", make_pipeline(one_hot(), ensemble.AdaBoostClassifier(n_estimators=10, random_state=0)), tolerance=1e-12)
check("adaptive boosting of classes", make_pipeline(one_hot(), ensemble.AdaBoostClassifier(n_estimators=10, random_state=0)), label="kind", tolerance=1e-12)

# Networks, and models of models. A margin is of additions in another order.
check("network", make_pipeline(one_hot(StandardScaler()), neural_network.MLPClassifier(hidden_layer_sizes=(12, 6), max_iter=60, random_state=0)), tolerance=1e-9)
check("network of classes", make_pipeline(one_hot(StandardScaler()), neural_network.MLPClassifier(hidden_layer_sizes=(9,), activation="tanh", max_iter=60, random_state=0)), label="kind", tolerance=1e-9)
check("network regression", make_pipeline(one_hot(MinMaxScaler()), neural_network.MLPRegressor(hidden_layer_sizes=(7, 5), activation="logistic", max_iter=60, random_state=0)), label="y", tolerance=1e-9)
vote = lambda **o: ensemble.VotingClassifier([("l", make_pipeline(one_hot(StandardScaler()), linear_model.LogisticRegression(max_iter=500))), ("t", make_pipeline(coded(), tree.DecisionTreeClassifier(max_depth=5))),
                                              ("b", make_pipeline(coded(), lightgbm.LGBMClassifier(**LIGHT)))], voting="soft", **o)
check("vote", vote(weights=[2, 1, 1]), tolerance=1e-12)
check("vote of classes", vote(), label="kind", tolerance=1e-12)
check("vote of numbers", make_pipeline(one_hot(), ensemble.VotingRegressor([("r", linear_model.Ridge()), ("t", tree.DecisionTreeRegressor(max_depth=4)), ("no", "drop")])), label="y", tolerance=1e-9)
check("bag of some columns", make_pipeline(one_hot(), ensemble.BaggingClassifier(tree.DecisionTreeClassifier(max_depth=4), 6, max_features=0.6, random_state=0)), tolerance=1e-12)
calibrated = lambda m, **o: calibration.CalibratedClassifierCV(m, cv=3, **o)
check("calibrated boosting", make_pipeline(one_hot(), calibrated(ensemble.GradientBoostingClassifier(n_estimators=5, random_state=0))), tolerance=1e-12)
check("calibrated forest", calibrated(make_pipeline(one_hot(), ensemble.RandomForestClassifier(5, max_depth=5, random_state=0)), ensemble=False), tolerance=1e-12)
check("calibrated lightgbm", make_pipeline(coded(), calibrated(lightgbm.LGBMClassifier(**LIGHT))), tolerance=1e-12)
check("calibrated support vectors", make_pipeline(one_hot(StandardScaler()), calibrated(svm.LinearSVC())), tolerance=1e-9)
isotonic = lambda m, **o: calibrated(m, method="isotonic", **o)
check("isotonic boosting", make_pipeline(one_hot(), isotonic(ensemble.GradientBoostingClassifier(n_estimators=5, random_state=0))), tolerance=1e-9)
check("isotonic forest", isotonic(make_pipeline(one_hot(), ensemble.RandomForestClassifier(5, max_depth=5, random_state=0)), ensemble=False), tolerance=1e-9)
check("isotonic support vectors", make_pipeline(one_hot(StandardScaler()), isotonic(svm.LinearSVC())), tolerance=1e-9)
check("isotonic lightgbm of categories", isotonic(lightgbm.LGBMClassifier(**LIGHT, min_data_per_group=5, cat_smooth=1)), tolerance=1e-9, prepare=categories)
margin = lambda m, x: m.decision_function(x)


def pair_votes(model, x):
    """What the machines of pairs vote for: above 0 for the first class."""
    votes = np.zeros((len(x), 3))
    for value, (first, second) in zip(model.decision_function(x).T, ((0, 1), (0, 2), (1, 2))):
        votes[np.arange(len(x)), np.where(value > 0, first, second)] += 1
    return votes


check("support vectors", make_pipeline(one_hot(StandardScaler()), svm.SVC()), tolerance=1e-9, scores=margin)
check("support vectors of a polynomial", make_pipeline(one_hot(StandardScaler()), svm.SVC(kernel="poly", degree=2, coef0=0.5)), tolerance=1e-9, scores=margin)
check("support vectors of a sigmoid", make_pipeline(one_hot(StandardScaler()), svm.SVC(kernel="sigmoid")), tolerance=1e-9, scores=margin)
check("support vectors of classes", make_pipeline(one_hot(StandardScaler()), svm.SVC(decision_function_shape="ovo")), label="kind", scores=pair_votes)
check("support vectors of classes, linear", make_pipeline(one_hot(StandardScaler()), svm.SVC(kernel="linear", decision_function_shape="ovo")), label="kind", scores=pair_votes)
check("support vectors of numbers", make_pipeline(one_hot(StandardScaler()), svm.NuSVR()), label="y", tolerance=1e-9)
check("kernel ridge", make_pipeline(one_hot(StandardScaler()), kernel_ridge.KernelRidge(kernel="laplacian", gamma=0.3)), label="y", tolerance=1e-9)
check("calibrated kernels", make_pipeline(one_hot(StandardScaler()), calibrated(svm.SVC())), tolerance=1e-9)
check("neighbours", make_pipeline(one_hot(StandardScaler()), neighbors.KNeighborsClassifier(7)), tolerance=1e-12, near=True)
check("neighbours of classes by distance", make_pipeline(one_hot(MinMaxScaler()), neighbors.KNeighborsClassifier(7, weights="distance", p=1)), label="kind", tolerance=1e-7, near=True)
check("neighbours of numbers", make_pipeline(one_hot(StandardScaler()), neighbors.KNeighborsRegressor(weights="distance", algorithm="kd_tree")), label="y", tolerance=1e-7, near=True)
check("stack", ensemble.StackingClassifier([("b", make_pipeline(coded(), lightgbm.LGBMClassifier(**LIGHT))), ("l", make_pipeline(one_hot(StandardScaler()), linear_model.LogisticRegression(max_iter=500)))], cv=3), tolerance=1e-9)
check("stack of numbers", make_pipeline(one_hot(), ensemble.StackingRegressor([("t", tree.DecisionTreeRegressor(max_depth=4)), ("r", linear_model.Ridge())], cv=3)), label="y", tolerance=1e-9)
check("vote of calibrated", ensemble.VotingClassifier([("c", make_pipeline(one_hot(), calibrated(tree.DecisionTreeClassifier(max_depth=4)))), ("t", make_pipeline(coded(), tree.DecisionTreeClassifier(max_depth=3)))], voting="soft"), tolerance=1e-12)

# What cannot be exported says what to do.
refused = [
    (ensemble.VotingClassifier([("t", tree.DecisionTreeClassifier(max_depth=2))]), NUMBERS, "two classes", "kind"),
    (calibration.CalibratedClassifierCV(tree.DecisionTreeClassifier(max_depth=2), method="temperature", cv=2), NUMBERS, "a decision function", "kind"),
    (make_pipeline(SimpleImputer(), neighbors.KNeighborsRegressor(metric="chebyshev")), NUMBERS, "predictions"),
    (make_pipeline(OneHotEncoder(handle_unknown="ignore"), linear_model.Ridge()), ["c"], "column of texts"),
    (ensemble.HistGradientBoostingRegressor(max_iter=3, categorical_features=[0]), ["c", "a"], "make numbers texts"),
]
for model, columns, want, *label in refused:
    try:
        exporter.export(model.fit(data[columns], data[label[0] if label else "late" if hasattr(model, "predict_proba") or hasattr(model, "voting") else "y"]), columns)
    except ValueError as e:
        if want not in str(e):
            sys.exit(f"{model} is refused without a word of {want}: {e}")
        continue
    sys.exit(f"{model} was exported")
for model in linear_model.Ridge(), make_pipeline("passthrough", linear_model.Ridge()):
    try:
        exporter.export(model.fit([[1.0, 2], [3, 4]], [1, 2]), ["a"])
    except ValueError as e:
        assert "2 features, and 1 are named" in str(e), e
        continue
    sys.exit(f"{model} of two features was exported for one column")
sys.stdout.flush()
os._exit(0)  # threads of the libraries abort now and then while the interpreter is taken down
