"""Asks a holdoutd server about models and computes the same with scikit-learn.

Prints what each question of the page gets on the flights.
"""

import io
import json
import re
import warnings

import lightgbm
import numpy as np
import pandas
import xgboost
from scipy import stats
from sklearn import ensemble, linear_model, metrics, svm, tree
from sklearn.calibration import CalibratedClassifierCV
from sklearn.impute import SimpleImputer
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from holdoutd.models import export
from server import FLIGHTS, GRID, URL, api, ask, check_page, create, done, items, near

warnings.filterwarnings("ignore", "X does not have valid feature names|X has feature names")
np.random.seed(3)  # what an estimator draws from that has no random_state
rng = np.random.default_rng(3)
N = 5000
data = pandas.DataFrame({"a": rng.normal(size=N) * 3 + 1, "b": rng.standard_t(4, N) * 100, "c": rng.integers(0, 12, N).astype(float)})
data["s"] = pandas.Series(rng.choice(["SFO", "OAK", "é"], N), dtype="object")
score = 0.6 * data.a + 0.004 * data.b - 0.15 * data.c + (data.s == "SFO") * 1.2
data["y"] = score * 10 + rng.normal(size=N) * 8
data["late"] = score + rng.logistic(size=N) > 0.5
data["kind"] = pandas.Series(np.choose(np.digitize(score + rng.normal(size=N), [-1, 1]), ["low", "mid", "top"]), dtype="object")
data["number"] = np.digitize(score + rng.normal(size=N), [-1, 1]).astype(float)
data.loc[rng.random(N) < 0.1, "b"] = np.nan
data.loc[rng.random(N) < 0.05, "s"] = None

DUMMIES = {"s_SFO": ("s", "SFO"), "s_OAK": ("s", "OAK"), "s_é": ("s", "é")}
COLUMNS = ["a", "b", "c", "s_SFO", "s_OAK", "s_é"]


def features(table, null=None):
    """The features of COLUMNS, nulls as they are or filled."""
    x = table[["a", "b", "c"]].copy()
    for name, (column, text) in DUMMIES.items():
        x[name] = (table[column] == text).astype(float)
    return (x if null is None else x.fillna(null)).to_numpy()


X, FILLED = features(data), features(data, 0.0)
half = slice(0, N // 2)
everything = create(data, holdout=1.0, mechanism="naive", questions=100000, name="everything")


def expected(model):
    return export(model, COLUMNS, DUMMIES)


def clipped_log_loss(y, p, clip):
    return metrics.log_loss(y, np.clip(p, clip, 1 - clip))


def check_classifier(model, x, name):
    """Everything about a classifier of two classes; a tolerance of 1e-5 is for sums in single precision."""
    model.fit(x[half], data.late[half])
    p, y, exported = model.predict_proba(x)[:, 1], data.late.to_numpy(), expected(model)
    common = dict(label="late", model=exported)
    loose = 1e-5 if name.startswith("xgboost") else 1e-7
    near(ask(everything, type="accuracy", **common)["value"], metrics.accuracy_score(y, model.predict(x)), 4 * GRID, name + " accuracy")
    near(ask(everything, type="accuracy", threshold=0.3, **common)["value"], np.mean(y == (p > 0.3)), 4 * GRID, name + " accuracy at 0.3")
    near(ask(everything, type="balanced_accuracy", **common)["value"], metrics.balanced_accuracy_score(y, model.predict(x)), 20 * GRID, name + " balanced accuracy")
    near(ask(everything, type="balanced_accuracy", threshold=0.3, **common)["value"], metrics.balanced_accuracy_score(y, p > 0.3), 20 * GRID, name + " balanced accuracy at 0.3")
    near(ask(everything, type="precision", **common)["value"], metrics.precision_score(y, model.predict(x)), 20 * GRID, name + " precision")
    near(ask(everything, type="recall", threshold=0.3, **common)["value"], metrics.recall_score(y, p > 0.3), 20 * GRID, name + " recall at 0.3")
    near(ask(everything, type="f1", **common)["value"], metrics.f1_score(y, model.predict(x)), 20 * GRID, name + " f1")
    near(ask(everything, type="loss", loss="zero_one", **common)["value"], metrics.zero_one_loss(y, model.predict(x)), 4 * GRID, name + " zero_one")
    near(ask(everything, type="loss", loss="log", clip=0.01, **common)["value"], clipped_log_loss(y, p, 0.01), loose, name + " log")
    near(ask(everything, type="loss", loss="brier", **common)["value"], metrics.brier_score_loss(y, p), loose, name + " brier")
    edges = [0.1, 0.25, 0.4, 0.55, 0.7, 0.85]
    # A double that the library rounds to an edge and the server does not would be in another bin: there are none in these data.
    near(ask(everything, type="auc", edges=edges, **common)["value"], metrics.roc_auc_score(y, np.digitize(p, edges, right=True)), 1e-6, name + " auc")
    rival = dict(type="auc", label="late", prediction="a", edges=[-2, 0, 1, 3])
    gain = metrics.roc_auc_score(y, np.digitize(data.a, rival["edges"], right=True)) - metrics.roc_auc_score(y, np.digitize(p, edges, right=True))
    near(ask(everything, type="compare", a=dict(type="auc", edges=edges, **common), b=rival)["value"], gain, 1e-6, name + " compare of aucs")
    rival = dict(type="balanced_accuracy", label="late", prediction="a > 0.5")
    gain = metrics.balanced_accuracy_score(y, data.a > 0.5) - metrics.balanced_accuracy_score(y, model.predict(x))
    near(ask(everything, type="compare", a=dict(type="balanced_accuracy", **common), b=rival)["value"], gain, 40 * GRID, name + " compare of balanced accuracies")
    got = items(ask(everything, type="confusion", **common))
    want = metrics.confusion_matrix(y, model.predict(x), normalize="all")
    for i, label in enumerate(("false", "true")):
        for j, predicted in enumerate(("false", "true")):
            near(got[f"label {label}, predicted {predicted}"], want[i, j], 4 * GRID, name + " confusion")
    got = items(ask(everything, type="calibration", **common))
    bins = np.digitize(p, np.linspace(0, 1, 11)[1:-1])
    for b in range(10):
        of = f"[{round(b / 10, 1):g}, {round((b + 1) / 10, 1):g}{']' if b == 9 else ')'} "
        near(got[of + "share"], np.mean(bins == b), 8 * GRID, name + " calibration")
        if np.any(bins == b):
            near(got[of + "label"], y[bins == b].mean(), 1e-5, name + " calibration")
            near(got[of + "prediction"], p[bins == b].mean(), 1e-5, name + " calibration")
    return exported


def check_classes(model, x, label, name):
    """A classifier of several classes."""
    model.fit(x[half], data[label][half] if label == "kind" else data[label][half].astype(int))
    y = data[label].to_numpy()
    p, predicted = model.predict_proba(x), model.predict(x)
    common = dict(label=label, model=expected(model))
    loose = 1e-5 if name.startswith("xgboost") else 1e-7
    near(ask(everything, type="accuracy", **common)["value"], metrics.accuracy_score(y, predicted), 4 * GRID, name + " accuracy")
    classes = list(model.classes_)
    given = np.clip(p[np.arange(N), [classes.index(v) for v in y]], 0.01, 0.99)
    near(ask(everything, type="loss", loss="log", clip=0.01, **common)["value"], -np.log(given).mean(), loose, name + " log")
    near(ask(everything, type="loss", loss="brier", **common)["value"], metrics.brier_score_loss(y, p, labels=classes, scale_by_half=True), loose, name + " brier")
    for i, positive in enumerate(classes):
        for kind, score in (("precision", metrics.precision_score), ("recall", metrics.recall_score), ("f1", metrics.f1_score)):
            positive = positive if isinstance(positive, str) else float(positive)
            want = score(y, predicted, labels=classes, average=None)[i]
            near(ask(everything, type=kind, positive=positive, **common)["value"], want, 100 * GRID, f"{name} {kind} of {positive}")
    got, want = items(ask(everything, type="confusion", **common)), metrics.confusion_matrix(y, predicted, normalize="all")
    for i, a in enumerate(classes):
        for j, b in enumerate(classes):
            near(got[f"label {a}, predicted {b}"], want[i, j], 4 * GRID, name + " confusion")


def check_regressor(model, x, name):
    model.fit(x[half], data.y[half])
    y, p, common = data.y.to_numpy(), model.predict(x), dict(label="y", model=expected(model))
    low, high = float(min(y.min(), p.min())) - 1, float(max(y.max(), p.max())) + 1
    width = high - low
    loose = 1e-4 if name.startswith("xgboost") else 1e-6
    near(ask(everything, type="rmse", max_error=width, **common)["value"], metrics.root_mean_squared_error(y, p), loose, name + " rmse")
    near(ask(everything, type="r2", range=[low, high], **common)["value"], metrics.r2_score(y, p), loose, name + " r2")
    losses = dict(range=[0, width**2], **common)
    near(ask(everything, type="loss", loss="squared", **losses)["value"], metrics.mean_squared_error(y, p), width * loose, name + " squared")
    near(ask(everything, type="loss", loss="absolute", **losses)["value"], metrics.mean_absolute_error(y, p), width**2 * GRID + loose, name + " absolute")
    near(ask(everything, type="loss", loss="pinball", quantile=0.8, **losses)["value"], metrics.mean_pinball_loss(y, p, alpha=0.8), width**2 * GRID + loose, name + " pinball")


pipeline = lambda e: make_pipeline(SimpleImputer(strategy="median"), StandardScaler(), e)
imputed = lambda e: make_pipeline(SimpleImputer(strategy="mean"), e)
small = dict(max_depth=6, random_state=0)
logistic = check_classifier(linear_model.LogisticRegression(max_iter=1000), FILLED, "logistic regression")
check_classifier(pipeline(linear_model.LogisticRegression()), X, "logistic pipeline")
check_classifier(tree.DecisionTreeClassifier(**small), X, "tree")
check_classifier(ensemble.RandomForestClassifier(30, **small), X, "forest")
check_classifier(imputed(ensemble.ExtraTreesClassifier(20, **small)), X, "extra trees")
check_classifier(imputed(ensemble.RandomForestClassifier(20, **small)), X, "imputed forest")
check_classifier(imputed(ensemble.GradientBoostingClassifier(n_estimators=30, random_state=0)), X, "boosting")
check_classifier(ensemble.HistGradientBoostingClassifier(max_iter=30), X, "histogram boosting")
check_classifier(xgboost.XGBClassifier(n_estimators=30, max_depth=5), X, "xgboost")
check_classifier(lightgbm.LGBMClassifier(n_estimators=30, verbose=-1), X, "lightgbm")
votes = lambda: ensemble.VotingClassifier([("l", pipeline(linear_model.LogisticRegression(max_iter=1000))), ("t", imputed(tree.DecisionTreeClassifier(**small)))], voting="soft", weights=[1, 3])
check_classifier(votes(), X, "vote")
check_classifier(CalibratedClassifierCV(lightgbm.LGBMClassifier(n_estimators=10, verbose=-1), cv=2), X, "calibrated lightgbm")
check_classifier(make_pipeline(StandardScaler(), MLPClassifier(hidden_layer_sizes=(20, 10), max_iter=80, random_state=0)), FILLED, "network")
check_classes(votes(), X, "kind", "vote of classes")
check_classes(linear_model.LogisticRegression(max_iter=1000), FILLED, "kind", "softmax regression")
check_classes(linear_model.LogisticRegression(max_iter=1000), FILLED, "number", "softmax regression of numbers")
check_classes(ensemble.RandomForestClassifier(20, **small), X, "kind", "forest of classes")
check_classes(imputed(ensemble.GradientBoostingClassifier(n_estimators=15, random_state=0)), X, "kind", "boosting of classes")
check_classes(ensemble.HistGradientBoostingClassifier(max_iter=15), X, "kind", "histogram boosting of classes")
check_classes(xgboost.XGBClassifier(n_estimators=15, max_depth=4), X, "number", "xgboost of classes")
check_classes(lightgbm.LGBMClassifier(n_estimators=15, verbose=-1), X, "kind", "lightgbm of classes")
check_regressor(linear_model.LinearRegression(), FILLED, "least squares")
check_regressor(pipeline(linear_model.Ridge()), X, "ridge pipeline")
check_regressor(tree.DecisionTreeRegressor(**small), X, "regression tree")
check_regressor(ensemble.RandomForestRegressor(20, **small), X, "regression forest")
check_regressor(imputed(ensemble.GradientBoostingRegressor(n_estimators=30, random_state=0)), X, "regression boosting")
check_regressor(ensemble.HistGradientBoostingRegressor(max_iter=30), X, "regression histogram boosting")
check_regressor(xgboost.XGBRegressor(n_estimators=30, max_depth=5), X, "xgboost regression")
check_regressor(lightgbm.LGBMRegressor(n_estimators=30, verbose=-1), X, "lightgbm regression")
check_regressor(lightgbm.LGBMRegressor(n_estimators=10, verbose=-1, linear_tree=True), X, "linear leaves")
check_classifier(make_pipeline(StandardScaler(), KNeighborsClassifier(23)), FILLED, "neighbours")
check_regressor(make_pipeline(StandardScaler(), svm.SVR(cache_size=500)), FILLED, "support vector regression")

check_regressor(xgboost.XGBRegressor(booster="gblinear"), FILLED, "boosted linear functions")

machine = svm.LinearSVC().fit(FILLED[half], data.late[half])
margin = machine.decision_function(FILLED)
want = np.clip(np.maximum(0, 1 - np.where(data.late, margin, -margin)), 0, 5).mean()
near(ask(everything, type="loss", loss="hinge", range=[0, 5], label="late", model=expected(machine))["value"], want, 1e-7, "hinge")

# The gradient, against NumPy.
w = logistic["linear"]["weights"]
x = np.column_stack([np.ones(N), FILLED])
beta = np.array([logistic["linear"]["intercept"], w["a"], w["b"], w["c"], w["s"]["SFO"], w["s"]["OAK"], w["s"]["é"]])
rows = (1 / (1 + np.exp(-x @ beta)) - data.late.to_numpy())[:, None] * x
rows *= np.minimum(1, 20 / np.maximum(np.linalg.norm(rows, axis=1), 1e-300))[:, None]
got = items(ask(everything, type="gradient", clip=20, label="late", model=logistic))
for of, value in zip(["intercept", "a", "b", "c", "s=SFO", "s=OAK", "s=é"], rows.mean(axis=0)):
    near(got[of], value, 1e-6, "gradient by " + of)

# What cannot be exported exactly is refused.
for model, y in ((svm.SVC(probability=True), data.late), (ensemble.AdaBoostRegressor(n_estimators=2), data.y), (svm.SVC(break_ties=True, decision_function_shape="ovr"), data.kind)):
    try:
        expected(model.fit(FILLED[:200], y[:200]))
    except ValueError:
        continue
    raise AssertionError(f"{model} was exported")

# The flights of the examples: what all of them say, and the intervals of real guarantees on 30,000 of them.
flights = pandas.read_parquet(FLIGHTS)
whole = create(flights, holdout=1.0, name="whole", mechanism="naive", questions=100000)
exact = create(flights, holdout=0.3, name="exact", mechanism="naive", questions=100000)
guarded = {m: create(flights, holdout=0.3, name=m, mechanism=m, questions=1000) for m in ("gaussian", "guess_and_check")}
kept = {m: create(flights, holdout=0.3, check=0.2, name=f"{m}, with a check part", mechanism=m, questions=1000) for m in guarded}
questions = []


def show(answer):
    lines = [] if answer["value"] is None else [f"{answer['value']:.4g}"]
    return lines + [f"{i['of']}: {i['value']:.4g}" for i in answer.get("items", []) if i["value"] is not None]


def example(match):
    """A question of the page with the numbers of all flights and the price under each mechanism."""
    question = json.loads(match[1])
    prices = [f"{ask(h, '/explain', **question)['cost']['questions']} under {m}" for m, h in kept.items()]
    questions.append(question)
    return f"```json\n{match[1]}\n```\n\n```text\n" + "\n".join(show(ask(whole, **question))) + f"\ncosts {', '.join(prices)}\n```"


check_page(example)
assert len(questions) >= 8

# The same with an AUC whose edges are the training part's.
training = pandas.read_parquet(io.BytesIO(api.get(f"{URL}/v1/holdouts/{exact['id']}/training").content))
assert len(training) == exact["units"]["training"]
edges = dict(type="auc", label="delay > 15", prediction="distance")
questions.append(edges)
said = ask(exact, "/explain", **edges)
cuts = [float(x) for x in re.search(r"for each edge (.*?) of distance", json.dumps(said))[1].split(", ")]
counts = np.bincount(np.digitize(training.distance, cuts, right=True), minlength=len(cuts) + 1) / len(training)
assert len(cuts) == 9 and counts.min() > 0.08 and counts.max() < 0.12, (cuts, counts)

# What is checked as one question, as the training part has it: with scikit-learn, NumPy and SciPy on its rows.
late, checked = training.delay > 15, guarded["guess_and_check"]
assert checked["units"] == exact["units"]  # the same rows
far, hour = np.digitize(training.distance, [200, 500, 1000, 2000], right=True), np.digitize(training.delay, [-10, 0, 15, 60], right=True)
near(ask(checked, "/explain", **dict(edges, edges=[200, 500, 1000, 2000]))["training"], metrics.roc_auc_score(late, far), 1e-8, "auc in training")
two = dict(type="compare", a=dict(edges, edges=[200, 500, 1000, 2000]), b=dict(edges, prediction="distance + delay", edges=[250, 600, 1100]))
questions.append(two)
want = metrics.roc_auc_score(late, np.digitize(training.distance + training.delay, [250, 600, 1100], right=True)) - metrics.roc_auc_score(late, far)
near(ask(checked, "/explain", **two)["training"], want, 1e-8, "two aucs in training")
near(ask(checked, "/explain", type="quantile", of="delay", range=[-60, 180], resolution=1, p=0.8)["training"],
     np.quantile(training.delay.clip(-60, 180), 0.8, method="inverted_cdf"), 1e-9, "quantile in training")
tau = dict(type="kendall", x="distance", y="delay", edges_x=[200, 500, 1000, 2000], edges_y=[-10, 0, 15, 60])
n = len(training)
untied = [n * (n - 1) / 2 - sum(c * (c - 1) / 2 for c in np.bincount(bins)) for bins in (far, hour)]
tau_a = stats.kendalltau(far, hour, variant="b").statistic * np.sqrt(untied[0] * untied[1]) / (n * n / 2)  # a row beside itself is a tie, too
near(ask(checked, "/explain", **tau)["training"], tau_a, 1e-8, "kendall in training")
answer = ask(checked, **tau)
assert answer["cost"]["questions"] == 1 and answer["interval"]["low"] <= tau_a <= answer["interval"]["high"] and answer["interval"]["high"] - answer["interval"]["low"] < 0.1, answer

for mechanism, holdout in guarded.items():
    for question in questions:
        truth, explained, answer = ask(exact, **question), ask(holdout, "/explain", **question), ask(holdout, **question)
        assert explained["cost"]["questions"] == answer["cost"]["questions"], (explained["cost"], answer["cost"])
        ends = answer["interval"]
        pairs = [(truth["value"], answer["value"], ends.get("low"), ends.get("high"))] if answer["value"] is not None else []
        pairs += [(a["value"], b["value"], b["low"], b["high"]) for a, b in zip(truth.get("items", []), answer.get("items", []))]
        for want, got, low, high in pairs:  # a fifth wider, so that noise alone fails this for less than one seed in 10,000
            slack = (high - low) / 5
            assert want is None or low - slack <= want <= high + slack, (question, want, answer)
            assert got is None or low <= got <= high, (question, answer)
        widths = [max(high - got, got - low) for _, got, low, high in pairs if got is not None]
        said = {k: v for k, v in question.items() if k not in ("model", "features", "label")}
        if "items" in answer:
            print(f"{mechanism:16} {answer['cost']['questions']:3} questions: {len(answer['items'])} items, ±{min(widths, default=0):.3g} to ±{max(widths, default=0):.3g}", said)
        else:
            print(f"{mechanism:16} {answer['cost']['questions']:3} questions: in [{ends['low']:.4g}, {ends['high']:.4g}], exactly {truth['value']:.4g}", said)
done("MODELS OK")
