"""Models of the libraries as people fit them, each exported and compared on rows that bite: exact, or refused with a reason."""

from __future__ import annotations

import functools
import os
import warnings
from collections.abc import Callable
from typing import Any

import catboost
import lightgbm as lgb
import numpy as np
import pandas as pd
import pytest
import xgboost as xgb
from sklearn import (
    calibration,
    cross_decomposition,
    decomposition,
    discriminant_analysis,
    dummy,
    ensemble,
    feature_selection,
    kernel_ridge,
    linear_model,
    model_selection,
    multiclass,
    naive_bayes,
    neighbors,
    neural_network,
    preprocessing,
    semi_supervised,
    svm,
    tree,
)
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, make_pipeline

from holdoutd import _evaluate, models
from holdoutd.models import export

ROWS = 600
NUMBERS, POSITIVE = ["a", "b", "c"], ["b", "n"]
Data = pd.DataFrame


@functools.cache
def data() -> Data:
    """Numbers with zeros and ties, counts, texts of which some are rare, two labels, three classes and an amount above 0."""
    r = np.random.default_rng(7)
    a, b = r.normal(size=ROWS).round(2), r.exponential(size=ROWS).round(3)
    c = r.integers(-2, 5, ROWS).astype(float)
    city = r.choice(["SFO", "OAK", "JFK", "LAX", "rare", "rarer"], ROWS, p=[0.4, 0.3, 0.15, 0.1, 0.03, 0.02])
    score = a + 0.8 * b - 0.3 * c + (city == "SFO") + 0.5 * r.normal(size=ROWS)
    return pd.DataFrame(
        {
            "a": a, "b": b, "c": c, "n": np.abs(c), "city": city,
            "yes": score > 0.7, "word": np.where(score > 0.7, "yes", "no"), "kind": np.digitize(score, [0.0, 1.5]),
            "amount": np.exp(score / 2).round(3), "weekend": c > 2,
        }
    )  # fmt: skip


@functools.cache
def apart() -> Data:
    """The same without rows that are equally far from another: which of these the library takes depends on how many threads search."""
    d, r = data().copy(), np.random.default_rng(10)
    for c in NUMBERS:
        d[c] = d[c] + 1e-4 * r.normal(size=ROWS)
    return d


@functools.cache
def holed() -> Data:
    """The same with nulls."""
    d, r = data().copy(), np.random.default_rng(8)
    for c in ("a", "c", "city"):
        d.loc[r.random(ROWS) < 0.15, c] = None
    return d


def biting(d: Data, columns: list[str], nulls: bool, near: bool = False) -> Data:
    """Rows that training had not: large, small, zeros of both signs, what rounds in single precision, other texts."""
    r = np.random.default_rng(9)
    at = d[columns].iloc[r.integers(0, len(d), 400)].reset_index(drop=True).copy()
    odd = [0.0, -0.0, 1e-40, -1e-36, 1e-7, -1.0, 1.0, 16777217.0, 0.1, 0.30000001, -999.0, 1e10, 3.14159]
    if near:  # from far away all rows are equally far
        odd = [x for x in odd if abs(x) < 1000]
    for c in columns:
        if c in ("city", "weekend"):
            continue
        put = (r.random(len(at)) < 0.25) & (c not in POSITIVE or columns != POSITIVE)
        at.loc[put, c] = r.choice(odd, put.sum())
        if nulls:
            at.loc[r.random(len(at)) < 0.2, c] = np.nan
    return at


class Kind:
    """A configuration: how it is fitted, and what is expected of its export."""

    def __init__(self, fit: Callable[[Data], Any], columns: list[str], refused: str = "", nulls: bool = False):
        self.fit, self.columns, self.refused, self.nulls = fit, columns, refused, nulls


GRID: dict[str, Kind] = {}
CAT: dict[str, Any] = {"verbose": 0, "allow_writing_files": False, "thread_count": 1}


def kind(name: str, model: Any, label: str, columns: list[str] = NUMBERS, refused: str = "", nulls: bool = False) -> None:
    assert name not in GRID, name

    GRID[name] = Kind(lambda d: clone(model).fit(d[columns], d[label]), columns, refused, nulls)


BEHIND = {  # models behind each step that makes features
    "logistic": linear_model.LogisticRegression(max_iter=500),
    "forest": ensemble.RandomForestClassifier(5, max_depth=4, random_state=0),
    "xgb": xgb.XGBClassifier(n_estimators=5),
}

for _name, _model in {
    "logistic": linear_model.LogisticRegression(),
    "logistic cv": linear_model.LogisticRegressionCV(Cs=2, cv=2, l1_ratios=(0,), scoring="neg_log_loss", use_legacy_attributes=False),
    "ridge": linear_model.RidgeClassifier(),
    "linear svc": svm.LinearSVC(),
    "svc linear": svm.SVC(kernel="linear"),
    "sgd hinge": linear_model.SGDClassifier(random_state=0),
    "sgd log": linear_model.SGDClassifier(loss="log_loss", random_state=0),
    "sgd huber": linear_model.SGDClassifier(loss="modified_huber", random_state=0),
    "perceptron": linear_model.Perceptron(random_state=0),
    "lda": discriminant_analysis.LinearDiscriminantAnalysis(),
    "tree": tree.DecisionTreeClassifier(max_depth=6),
    "forest": ensemble.RandomForestClassifier(20, max_depth=6, random_state=0),
    "extra": ensemble.ExtraTreesClassifier(20, max_depth=6, random_state=0),
    "boosting": ensemble.GradientBoostingClassifier(n_estimators=20),
    "boosting exponential": ensemble.GradientBoostingClassifier(n_estimators=20, loss="exponential"),
    "hist": ensemble.HistGradientBoostingClassifier(max_iter=20),
    "ada": ensemble.AdaBoostClassifier(n_estimators=20, random_state=0),
    "ada of margins": ensemble.AdaBoostClassifier(svm.LinearSVC(), n_estimators=5, random_state=0),
    "mlp": neural_network.MLPClassifier((5,), max_iter=60, random_state=0),
    "bag": ensemble.BaggingClassifier(n_estimators=5, max_features=0.7, random_state=0),
    "bag of margins": ensemble.BaggingClassifier(svm.LinearSVC(), n_estimators=5, random_state=0),
    "soft vote": ensemble.VotingClassifier(
        [("a", linear_model.LogisticRegression()), ("b", tree.DecisionTreeClassifier(max_depth=3))], voting="soft"
    ),
    "hard vote": ensemble.VotingClassifier(
        [("a", linear_model.LogisticRegression()), ("b", svm.LinearSVC()), ("c", tree.DecisionTreeClassifier(max_depth=3))]
    ),
    "hard vote, weights": ensemble.VotingClassifier(
        [("a", linear_model.LogisticRegression()), ("b", svm.LinearSVC()), ("c", ensemble.GradientBoostingClassifier(n_estimators=3))],
        weights=[1, 1, 2],
    ),
    "sigmoid": calibration.CalibratedClassifierCV(svm.LinearSVC(), cv=2),
    "isotonic": calibration.CalibratedClassifierCV(linear_model.LogisticRegression(), method="isotonic", cv=2),
    "temperature": calibration.CalibratedClassifierCV(linear_model.LogisticRegression(), method="temperature", cv=2),
    "temperature of margins": calibration.CalibratedClassifierCV(svm.LinearSVC(), method="temperature", cv=2, ensemble=False),
    "stack": ensemble.StackingClassifier([("a", tree.DecisionTreeClassifier(max_depth=3)), ("b", svm.LinearSVC())], cv=2),
    "fixed threshold": model_selection.FixedThresholdClassifier(linear_model.LogisticRegression(), threshold=0.2),
    "fixed threshold of a margin": model_selection.FixedThresholdClassifier(svm.LinearSVC(), threshold=0.3),
    "fixed threshold of a score": model_selection.FixedThresholdClassifier(
        linear_model.LogisticRegression(), threshold=0.3, response_method="decision_function"
    ),
    "tuned threshold": model_selection.TunedThresholdClassifierCV(linear_model.LogisticRegression(), cv=2),
    "search": model_selection.GridSearchCV(linear_model.LogisticRegression(), {"C": [0.1, 1]}, cv=2),
    "selected": make_pipeline(feature_selection.SelectKBest(k=2), linear_model.LogisticRegression()),
    "selected by a model": make_pipeline(
        feature_selection.SelectFromModel(tree.DecisionTreeClassifier(max_depth=2)), ensemble.RandomForestClassifier(5, max_depth=4)
    ),
    "frames between": make_pipeline(preprocessing.StandardScaler(), linear_model.LogisticRegression()).set_output(transform="pandas"),
    "frames to lgb": make_pipeline(preprocessing.StandardScaler(), lgb.LGBMClassifier(n_estimators=5, verbose=-1)).set_output(
        transform="pandas"
    ),
    "xgb": xgb.XGBClassifier(n_estimators=10),
    "xgb dart": xgb.XGBClassifier(n_estimators=10, booster="dart", rate_drop=0.5),
    "xgb parallel": xgb.XGBClassifier(n_estimators=4, num_parallel_tree=3, subsample=0.7),
    "xgb rf": xgb.XGBRFClassifier(n_estimators=10),
    "xgb missing": xgb.XGBClassifier(n_estimators=10, missing=1.0),
    "xgb missing 0": xgb.XGBClassifier(n_estimators=10, missing=0.0),
    "xgb missing between": xgb.XGBClassifier(n_estimators=10, missing=0.3),
    "catboost": catboost.CatBoostClassifier(iterations=10, depth=4, **CAT),
    "catboost lossguide": catboost.CatBoostClassifier(iterations=10, grow_policy="Lossguide", **CAT),
    "lgb": lgb.LGBMClassifier(n_estimators=10, verbose=-1),
    "lgb dart": lgb.LGBMClassifier(n_estimators=10, verbose=-1, boosting_type="dart"),
    "lgb rf": lgb.LGBMClassifier(n_estimators=10, verbose=-1, boosting_type="rf", subsample=0.7, subsample_freq=1),
    "lgb sigmoid": lgb.LGBMClassifier(n_estimators=10, verbose=-1, sigmoid=0.7),
    "lgb zero": lgb.LGBMClassifier(n_estimators=10, verbose=-1, zero_as_missing=True),
}.items():
    kind(_name, _model, "yes")

for _name, _model in {
    "logistic": linear_model.LogisticRegression(max_iter=1000),
    "ridge": linear_model.RidgeClassifier(),
    "linear svc": svm.LinearSVC(),
    "sgd hinge": linear_model.SGDClassifier(random_state=0),
    "lda": discriminant_analysis.LinearDiscriminantAnalysis(),
    "tree": tree.DecisionTreeClassifier(max_depth=6),
    "forest": ensemble.RandomForestClassifier(20, max_depth=6, random_state=0),
    "boosting": ensemble.GradientBoostingClassifier(n_estimators=5),
    "hist": ensemble.HistGradientBoostingClassifier(max_iter=5),
    "ada": ensemble.AdaBoostClassifier(tree.DecisionTreeClassifier(max_depth=2), n_estimators=10, random_state=0),
    "mlp": neural_network.MLPClassifier((5,), max_iter=60, random_state=0),
    "xgb": xgb.XGBClassifier(n_estimators=5),
    "xgb parallel": xgb.XGBClassifier(n_estimators=3, num_parallel_tree=3, subsample=0.7),
    "lgb": lgb.LGBMClassifier(n_estimators=5, verbose=-1),
    "catboost": catboost.CatBoostClassifier(iterations=5, depth=3, **CAT),
}.items():
    kind(f"classes: {_name}", _model, "kind")
kind("classes: huber", linear_model.SGDClassifier(loss="modified_huber", random_state=0), "kind")
kind("classes: sgd log", linear_model.SGDClassifier(loss="log_loss", random_state=0), "kind")
kind("classes: votes", ensemble.VotingClassifier([("a", svm.LinearSVC()), ("b", svm.LinearSVC())]), "kind", refused="two classes")
kind(
    "classes: vector leaves",
    xgb.XGBClassifier(n_estimators=3, multi_strategy="multi_output_tree"),
    "kind",
    refused="is not the library's|outputs|cannot be read",
)

for _name, _model in {
    "least squares": linear_model.LinearRegression(),
    "lasso": linear_model.Lasso(0.01),
    "huber": linear_model.HuberRegressor(),
    "linear svr": svm.LinearSVR(),
    "svr linear": svm.SVR(kernel="linear"),
    "poisson": linear_model.PoissonRegressor(),
    "gamma": linear_model.GammaRegressor(),
    "tweedie": linear_model.TweedieRegressor(power=1.5),
    "tweedie identity": linear_model.TweedieRegressor(power=0),
    "pls": cross_decomposition.PLSRegression(2),
    "tree": tree.DecisionTreeRegressor(max_depth=6),
    "forest": ensemble.RandomForestRegressor(10, max_depth=6, random_state=0),
    "boosting": ensemble.GradientBoostingRegressor(n_estimators=20),
    "hist": ensemble.HistGradientBoostingRegressor(max_iter=20),
    "hist poisson": ensemble.HistGradientBoostingRegressor(max_iter=20, loss="poisson"),
    "hist gamma": ensemble.HistGradientBoostingRegressor(max_iter=20, loss="gamma"),
    "mlp": neural_network.MLPRegressor(hidden_layer_sizes=(5,), max_iter=60, random_state=0),
    "mlp poisson": neural_network.MLPRegressor("poisson", (5,), max_iter=60, random_state=0),
    "vote": ensemble.VotingRegressor([("a", linear_model.PoissonRegressor()), ("b", tree.DecisionTreeRegressor(max_depth=3))]),
    "stack": ensemble.StackingRegressor(
        [("a", linear_model.LinearRegression()), ("b", tree.DecisionTreeRegressor(max_depth=3))], linear_model.GammaRegressor(), cv=2
    ),
    **{
        f"xgb {o}": xgb.XGBRegressor(n_estimators=10, objective=o, **more)
        for o, more in {
            "reg:squarederror": {},
            "reg:absoluteerror": {},
            "reg:pseudohubererror": {},
            "reg:squaredlogerror": {},
            "reg:quantileerror": {"quantile_alpha": 0.7},
            "count:poisson": {},
            "reg:gamma": {},
            "reg:tweedie": {},
        }.items()
    },
    **{
        f"lgb {o}": lgb.LGBMRegressor(n_estimators=10, verbose=-1, objective=o)
        for o in ("regression", "l1", "huber", "fair", "mape", "quantile", "poisson", "gamma", "tweedie")
    },
    **{
        f"catboost {o}": catboost.CatBoostRegressor(iterations=10, depth=3, loss_function=o, **CAT)
        for o in ("RMSE", "MAE", "Quantile:alpha=0.7", "Huber:delta=1", "Poisson", "Tweedie:variance_power=1.5")
    },
    "lgb root": lgb.LGBMRegressor(n_estimators=10, verbose=-1, reg_sqrt=True),
    "lgb rf": lgb.LGBMRegressor(n_estimators=10, verbose=-1, boosting_type="rf", subsample=0.7, subsample_freq=1),
}.items():
    kind(f"amount: {_name}", _model, "amount")
kind("amount: linear leaves", lgb.LGBMRegressor(n_estimators=10, verbose=-1, linear_tree=True, num_leaves=7), "amount")
kind("linear leaves of nulls", lgb.LGBMClassifier(n_estimators=5, verbose=-1, linear_tree=True), "yes", nulls=True)
kind("classes: linear leaves", lgb.LGBMClassifier(n_estimators=5, verbose=-1, linear_tree=True), "kind")
kind(
    "amount: own objective",
    lgb.LGBMRegressor(n_estimators=3, verbose=-1, objective=lambda y, p: (p - y, np.ones_like(y))),
    "amount",
    refused="function as its objective",
)
kind("xgb reg:logistic", xgb.XGBRegressor(n_estimators=10, objective="reg:logistic"), "yes")
kind("lgb cross entropy", lgb.LGBMRegressor(n_estimators=10, verbose=-1, objective="cross_entropy"), "yes")
for _name, _model in {
    "svc": svm.SVC(),
    "svc poly": svm.SVC(kernel="poly", degree=2, coef0=1.0),
    "svc sigmoid": svm.SVC(kernel="sigmoid"),
    "nu svc": svm.NuSVC(gamma="auto"),
    "svc scaled": make_pipeline(preprocessing.StandardScaler(), svm.SVC()),
    "svc calibrated": calibration.CalibratedClassifierCV(svm.SVC(), ensemble=False),
}.items():
    kind(_name, _model, "yes")
    if "calibrated" not in _name:
        kind("classes: " + _name, _model, "kind")
kind("classes: svc linear", svm.SVC(kernel="linear"), "kind")
kind("classes: svc ties", svm.SVC(break_ties=True), "kind", refused="break_ties")
kind("svc probability", svm.SVC(probability=True), "yes", refused="step by step")
for _name, _model in {
    "svr": svm.SVR(),
    "svr poly": svm.SVR(kernel="poly", degree=2, coef0=1.0),
    "nu svr": svm.NuSVR(),
    "kernel ridge": kernel_ridge.KernelRidge(kernel="rbf"),
    "kernel ridge laplacian": kernel_ridge.KernelRidge(kernel="laplacian", gamma=0.5),
    "kernel ridge polynomial": kernel_ridge.KernelRidge(kernel="polynomial", degree=2),
}.items():
    kind("amount: " + _name, _model, "amount")
kind(
    "svc of texts",
    make_pipeline(
        ColumnTransformer([("n", preprocessing.StandardScaler(), NUMBERS), ("t", preprocessing.OneHotEncoder(), ["city"])]), svm.SVC()
    ),
    "yes",
    [*NUMBERS, "city"],
)
for _name, _model in {
    "neighbours": neighbors.KNeighborsClassifier(),
    "neighbours by distance": neighbors.KNeighborsClassifier(8, weights="distance"),
    "neighbours manhattan": neighbors.KNeighborsClassifier(9, p=1, algorithm="brute"),
    "neighbours scaled": make_pipeline(preprocessing.StandardScaler(), neighbors.KNeighborsClassifier(10)),
}.items():
    kind(_name, _model, "yes")
    kind("classes: " + _name, _model, "kind")
kind("amount: neighbours", neighbors.KNeighborsRegressor(), "amount")
kind("amount: neighbours by distance", neighbors.KNeighborsRegressor(weights="distance"), "amount")
kind("neighbours of ties", neighbors.KNeighborsClassifier(), "yes", ["c"], refused="equally far")
kind("neighbours chebyshev", neighbors.KNeighborsClassifier(metric="chebyshev"), "yes", refused="the metric euclidean or manhattan")
kind("gaussian bayes", naive_bayes.GaussianNB(), "yes")
kind("classes: gaussian bayes", naive_bayes.GaussianNB(), "kind")
kind("quadratic", discriminant_analysis.QuadraticDiscriminantAnalysis(), "yes")
kind("classes: quadratic", discriminant_analysis.QuadraticDiscriminantAnalysis(), "kind")

for _step, _made in {
    "pca": decomposition.PCA(2),
    "whitened pca": decomposition.PCA(2, whiten=True),
    "svd": decomposition.TruncatedSVD(2),
    "polynomial": preprocessing.PolynomialFeatures(2, include_bias=False),
    "cubic": preprocessing.PolynomialFeatures(3, interaction_only=True),
    "splines": preprocessing.SplineTransformer(n_knots=4),
    "splines that go on": preprocessing.SplineTransformer(n_knots=3, degree=2, extrapolation="continue", include_bias=False),
    "power": preprocessing.PowerTransformer(),
    "quantiles": preprocessing.QuantileTransformer(n_quantiles=50),
    "bins": preprocessing.KBinsDiscretizer(4, encode="onehot-dense", quantile_method="averaged_inverted_cdf"),
    "sparse bins": preprocessing.KBinsDiscretizer(4, quantile_method="averaged_inverted_cdf"),
    "ordered bins": preprocessing.KBinsDiscretizer(5, encode="ordinal", quantile_method="averaged_inverted_cdf"),
    "absolutes": preprocessing.FunctionTransformer(np.abs),
    "unit length": preprocessing.Normalizer(),
    "binary": preprocessing.Binarizer(threshold=0.5),
}.items():
    for _name, _model in BEHIND.items():
        kind(f"{_step}: {_name}", make_pipeline(_made, _model), "yes")
    kind(f"{_step}: ridge", make_pipeline(preprocessing.StandardScaler(), _made, linear_model.Ridge()), "amount")
kind(
    "sparse splines",
    make_pipeline(preprocessing.SplineTransformer(sparse_output=True), linear_model.Ridge()),
    "amount",
    refused="sparse_output=False",
)
kind("logarithms: ridge", make_pipeline(preprocessing.FunctionTransformer(np.log1p), linear_model.Ridge()), "amount", POSITIVE)
kind(
    "roots: hist",
    make_pipeline(preprocessing.FunctionTransformer(np.sqrt), ensemble.HistGradientBoostingRegressor(max_iter=5)),
    "amount",
    POSITIVE,
)

TEXTS = ["a", "n", "city"]


def before(numbers: Any, texts: Any, threshold: float = 0.3) -> ColumnTransformer:
    return ColumnTransformer([("n", numbers, ["a", "n"]), ("t", texts, ["city"])], sparse_threshold=threshold)


ONE_HOT, SPARSE = (
    preprocessing.OneHotEncoder(handle_unknown="ignore", sparse_output=False),
    preprocessing.OneHotEncoder(handle_unknown="ignore"),
)
RARE = preprocessing.OrdinalEncoder(min_frequency=25, handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-2)
for _name, _model in {
    "logistic": linear_model.LogisticRegression(),
    "tree": tree.DecisionTreeClassifier(max_depth=5),
    "xgb": xgb.XGBClassifier(n_estimators=8),
    "lgb": lgb.LGBMClassifier(n_estimators=8, verbose=-1),
    "catboost": catboost.CatBoostClassifier(iterations=8, depth=3, **CAT),
}.items():
    kind(f"texts: {_name}", make_pipeline(before("passthrough", ONE_HOT), _model), "yes", TEXTS)
    kind(f"texts: {_name} behind sparse", make_pipeline(before("passthrough", SPARSE, 1.0), _model), "yes", TEXTS)
    kind(f"texts: {_name} behind scaled sparse", make_pipeline(before(preprocessing.StandardScaler(), SPARSE, 1.0), _model), "yes", TEXTS)
    kind(f"texts: {_name} of rare codes", make_pipeline(before(SimpleImputer(), RARE), _model), "yes", TEXTS, nulls=True)
    kind(
        f"texts: {_name} with indicators",
        make_pipeline(before(SimpleImputer(add_indicator=True), ONE_HOT), _model), "yes", TEXTS, nulls=True,
    )  # fmt: skip
    kind(
        f"texts: {_name} with scaled indicators",
        make_pipeline(before(make_pipeline(SimpleImputer(add_indicator=True), preprocessing.StandardScaler()), ONE_HOT), _model),
        "yes", TEXTS, nulls=True,
    )  # fmt: skip
kind(
    "texts: xgb behind sparse, imputed",
    make_pipeline(before(SimpleImputer(), SPARSE, 1.0), xgb.XGBClassifier(n_estimators=8)), "yes", TEXTS, nulls=True,
)  # fmt: skip
kind(
    "texts: lgb of zeros, imputed",
    make_pipeline(before(SimpleImputer(), ONE_HOT), lgb.LGBMClassifier(n_estimators=8, verbose=-1, zero_as_missing=True)),
    "yes", TEXTS, nulls=True,
)  # fmt: skip
# Models that read the same columns, of which one takes some numbers for nulls: the others do not.
for _name, _models in {
    "missing first": [xgb.XGBClassifier(n_estimators=5, missing=0.0), lgb.LGBMClassifier(n_estimators=5, verbose=-1)],
    "missing last": [lgb.LGBMClassifier(n_estimators=5, verbose=-1), xgb.XGBClassifier(n_estimators=5, missing=0.0)],
    "zeros first": [lgb.LGBMClassifier(n_estimators=5, verbose=-1, zero_as_missing=True), xgb.XGBClassifier(n_estimators=5)],
}.items():
    kind(f"texts: a vote, {_name}", ensemble.VotingClassifier([(f"m{i}", m) for i, m in enumerate(_models)], voting="soft"), "yes")
kind(
    "texts: a vote, sparse first",
    ensemble.VotingClassifier(
        [
            (
                "s",
                make_pipeline(
                    ColumnTransformer([("n", "passthrough", ["a", "b"]), ("k", SPARSE, ["city"])], sparse_threshold=1.0),
                    xgb.XGBClassifier(n_estimators=5),
                ),
            ),
            ("d", make_pipeline(ColumnTransformer([("n", "passthrough", ["a", "b"])]), xgb.XGBClassifier(n_estimators=5))),
        ],
        voting="soft",
    ),
    "yes",
    ["a", "b", "city"],
)
kind(
    "texts: xgb behind sparse, within",
    make_pipeline(make_pipeline(before("passthrough", SPARSE, 1.0)), xgb.XGBClassifier(n_estimators=5)),
    "yes",
    TEXTS,
)
CITY = ["city"]
kind(
    "texts: multinomial bayes",
    make_pipeline(preprocessing.OneHotEncoder(handle_unknown="ignore"), naive_bayes.MultinomialNB()),
    "yes",
    CITY,
)
kind(
    "texts: complement bayes", make_pipeline(preprocessing.OneHotEncoder(handle_unknown="ignore"), naive_bayes.ComplementNB()), "kind", CITY
)
kind("texts: bernoulli bayes", make_pipeline(preprocessing.OneHotEncoder(handle_unknown="ignore"), naive_bayes.BernoulliNB()), "yes", CITY)
# What a decision function says is not always the score behind the probability.
for _name, _model in {
    "exponential": ensemble.GradientBoostingClassifier(n_estimators=10, loss="exponential"),
    "huber": linear_model.SGDClassifier(loss="modified_huber", random_state=0),
    "bag": ensemble.BaggingClassifier(linear_model.LogisticRegression(), n_estimators=3, random_state=0),
    "bag of a bag": make_pipeline(
        preprocessing.StandardScaler(),
        ensemble.BaggingClassifier(ensemble.BaggingClassifier(svm.LinearSVC(), n_estimators=2), n_estimators=2, random_state=0),
    ),
    "search": model_selection.GridSearchCV(make_pipeline(preprocessing.MinMaxScaler(), linear_model.LogisticRegression()), {}, cv=2),
}.items():
    kind(f"margins: sigmoid of {_name}", calibration.CalibratedClassifierCV(_model, cv=2), "yes")
    kind(f"margins: isotonic of {_name}", calibration.CalibratedClassifierCV(_model, method="isotonic", cv=2), "yes")
    kind(f"margins: temperature of {_name}", calibration.CalibratedClassifierCV(_model, method="temperature", cv=2), "yes")
    kind(f"margins: stack of {_name}", ensemble.StackingClassifier([("a", _model)], cv=2, stack_method="decision_function"), "yes")
    kind(
        f"margins: threshold of {_name}",
        model_selection.FixedThresholdClassifier(_model, threshold=0.3, response_method="decision_function"),
        "yes",
        refused="" if _name == "search" else "that of the probability",
    )
for _name, _model in {
    "logistic": linear_model.LogisticRegression(max_iter=500),
    "svm": svm.LinearSVC(),
    "ridge": linear_model.RidgeClassifier(),
    "huber": linear_model.SGDClassifier(loss="modified_huber", random_state=0),
    "forest": ensemble.RandomForestClassifier(5, max_depth=4, random_state=0),
    "boosting": ensemble.GradientBoostingClassifier(n_estimators=5),
    "hist": ensemble.HistGradientBoostingClassifier(max_iter=5),
    "ada": ensemble.AdaBoostClassifier(n_estimators=5, random_state=0),
    "bag": ensemble.BaggingClassifier(linear_model.LogisticRegression(), n_estimators=3, random_state=0),
    "bayes": naive_bayes.GaussianNB(),
    "neighbours": neighbors.KNeighborsClassifier(9),
    "mlp": neural_network.MLPClassifier((5,), max_iter=60, random_state=0),
    "lda": discriminant_analysis.LinearDiscriminantAnalysis(),
    "lgb": lgb.LGBMClassifier(n_estimators=5, verbose=-1),
    "xgb": xgb.XGBClassifier(n_estimators=5),
    "scaled": make_pipeline(preprocessing.StandardScaler(), linear_model.LogisticRegression()),
}.items():
    kind(f"classes: sigmoid of {_name}", calibration.CalibratedClassifierCV(_model, cv=2), "kind")
    kind(f"classes: isotonic of {_name}", calibration.CalibratedClassifierCV(_model, method="isotonic", cv=2, ensemble=False), "kind")
    _margins = hasattr(_model, "decision_function")
    kind(
        f"classes: temperature of {_name}",
        calibration.CalibratedClassifierCV(_model, method="temperature", cv=2),
        "kind",
        refused="" if _margins else "with a decision function",
    )
    kind(f"classes: stack of {_name}", ensemble.StackingClassifier([("a", _model), ("b", svm.LinearSVC())], cv=2), "kind")
kind("classes: isotonic", calibration.CalibratedClassifierCV(tree.DecisionTreeClassifier(max_depth=3), method="isotonic", cv=3), "kind")
kind("classes: sigmoid of svc", calibration.CalibratedClassifierCV(svm.SVC(), cv=2), "kind", refused="of two classes")
kind(
    "classes: stack of a calibration",
    ensemble.StackingClassifier(
        [("c", calibration.CalibratedClassifierCV(svm.LinearSVC(), cv=2)), ("t", tree.DecisionTreeClassifier(max_depth=3))], cv=2
    ),
    "kind",
)
kind(
    "classes: vote of calibrations",
    ensemble.VotingClassifier(
        [("c", calibration.CalibratedClassifierCV(svm.LinearSVC(), cv=2)), ("t", tree.DecisionTreeClassifier(max_depth=3))], voting="soft"
    ),
    "kind",
)
for _name, _weights in {"fractions": [0.1, 0.2, 0.3], "other fractions": [0.3, 0.4, 0.4], "halves": [0.5, 0.5, 1.0]}.items():
    kind(
        f"hard vote, {_name}",
        ensemble.VotingClassifier(
            [("a", linear_model.LogisticRegression()), ("b", tree.DecisionTreeClassifier(max_depth=3)), ("c", naive_bayes.GaussianNB())],
            weights=_weights,
        ),
        "yes",
        refused="whole numbers" if _name == "fractions" else "",
    )

# What holds or transforms others.
_trees = ensemble.RandomForestRegressor(5, max_depth=4, random_state=0)
for _name, _model in {
    "exp": TransformedTargetRegressor(_trees, func=np.log, inverse_func=np.exp),
    "expm1": TransformedTargetRegressor(linear_model.Ridge(), func=np.log1p, inverse_func=np.expm1),
    "scaled": TransformedTargetRegressor(linear_model.Ridge(), transformer=preprocessing.MinMaxScaler()),
    "standard": TransformedTargetRegressor(_trees, transformer=preprocessing.StandardScaler()),
    "ransac": linear_model.RANSACRegressor(random_state=0),
    "mean": dummy.DummyRegressor(),
    "median": dummy.DummyRegressor(strategy="median"),
    "rfe": feature_selection.RFE(linear_model.Ridge(), n_features_to_select=2),
}.items():
    kind(f"amount: within {_name}", _model, "amount")
kind("amount: square", TransformedTargetRegressor(_trees, func=np.sqrt, inverse_func=np.square), "amount", refused="inverse_func")
for _label in ("yes", "kind"):
    for _name, _model in {
        "rfecv": feature_selection.RFECV(linear_model.LogisticRegression(), cv=2),
        "prior": dummy.DummyClassifier(),
        "most frequent": dummy.DummyClassifier(strategy="most_frequent"),
        "rest of margins": multiclass.OneVsRestClassifier(svm.LinearSVC()),
        "gblinear": xgb.XGBClassifier(n_estimators=5, booster="gblinear", updater="coord_descent"),
        "lgb rf": lgb.LGBMClassifier(n_estimators=5, verbose=-1, boosting_type="rf", subsample=0.7, subsample_freq=1),
    }.items():
        kind(f"{_label}: within {_name}", _model, _label)
GRID["self training"] = Kind(  # of a third of the rows nobody says the label
    lambda d: semi_supervised.SelfTrainingClassifier(linear_model.LogisticRegression()).fit(
        d[NUMBERS], np.where(np.arange(len(d)) % 3 == 0, -1, d["yes"].astype(int))
    ),
    NUMBERS,
)
kind("rest", multiclass.OneVsRestClassifier(linear_model.LogisticRegression()), "yes")
kind("classes: rest", multiclass.OneVsRestClassifier(linear_model.LogisticRegression()), "kind", refused="linear margins")
kind("drawn", dummy.DummyClassifier(strategy="stratified"), "yes", refused="draws")
kind("amount: gblinear of nulls", xgb.XGBRegressor(n_estimators=5, booster="gblinear"), "amount", nulls=True)
kind(
    "early stop by row",
    lgb.LGBMClassifier(n_estimators=60, verbose=-1, pred_early_stop=True, pred_early_stop_margin=1.0),
    "yes",
    refused="set it to False",
)
kind(
    "linear leaves of nulls alone",  # some have no row without a null
    lgb.LGBMClassifier(n_estimators=5, verbose=-1, linear_tree=True, num_leaves=63, min_child_samples=4, random_state=0),
    "yes",
    nulls=True,
)

CODED = ["a", "c", "weekend"]
for _step, _made in {
    "union": FeatureUnion([("s", preprocessing.StandardScaler()), ("p", decomposition.PCA(2)), ("t", "passthrough")]),
    "clipped": preprocessing.MinMaxScaler(clip=True),
    "numbers hot": ColumnTransformer(
        [("o", preprocessing.OneHotEncoder(handle_unknown="ignore"), ["c", "weekend"])], remainder="passthrough", sparse_threshold=0.0
    ),
    "numbers hot but one": ColumnTransformer(
        [("o", preprocessing.OneHotEncoder(drop="first"), ["weekend"])], remainder="passthrough", sparse_threshold=0.0
    ),
    "numbers coded": ColumnTransformer(
        [("o", preprocessing.OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1), ["c", "weekend"])],
        remainder="passthrough",
    ),
}.items():
    for _name, _model in BEHIND.items():
        kind(f"{_step}: {_name}", make_pipeline(_made, _model), "yes", CODED)
for _label in ("yes", "kind", "amount"):
    _ends = (
        (linear_model.Ridge(), ensemble.HistGradientBoostingRegressor(max_iter=5))
        if _label == "amount"
        else (linear_model.LogisticRegression(), ensemble.HistGradientBoostingClassifier(max_iter=5))
    )
    for _i, _model in enumerate(_ends):
        kind(
            f"texts: {_label} as means {_i}",
            make_pipeline(before(SimpleImputer(), preprocessing.TargetEncoder(random_state=0)), _model), _label, TEXTS, nulls=True,
        )  # fmt: skip
kind("nulls: hist", ensemble.HistGradientBoostingClassifier(max_iter=10), "yes", nulls=True)
kind("nulls: xgb", xgb.XGBClassifier(n_estimators=10), "yes", nulls=True)
kind("nulls: xgb missing", xgb.XGBClassifier(n_estimators=10, missing=-1.0), "yes", nulls=True)
kind("nulls: lgb", lgb.LGBMClassifier(n_estimators=10, verbose=-1), "yes", nulls=True)
kind("nulls: lgb zero", lgb.LGBMClassifier(n_estimators=10, verbose=-1, zero_as_missing=True), "yes", nulls=True)
kind("nulls: catboost", catboost.CatBoostClassifier(iterations=10, depth=4, **CAT), "yes", nulls=True)
kind("nulls: catboost last", catboost.CatBoostClassifier(iterations=10, depth=4, nan_mode="Max", **CAT), "yes", nulls=True)
kind("nulls: tree", tree.DecisionTreeClassifier(max_depth=5), "yes", nulls=True)


def test_fitted_again() -> None:
    """A model of fewer columns than the one before. Notices a number of features that is that of the first fit."""
    for model in (
        catboost.CatBoostClassifier(iterations=3, **CAT),
        lgb.LGBMClassifier(n_estimators=3, verbose=-1),
        xgb.XGBClassifier(n_estimators=3),
    ):
        model.fit(data()[NUMBERS], data().yes)
        model.fit(data()[NUMBERS[:2]], data().yes)
        assert "trees" in export(model, NUMBERS[:2], rows=data())


@pytest.mark.parametrize(
    "model", [linear_model.LogisticRegression(), make_pipeline(preprocessing.StandardScaler(), tree.DecisionTreeClassifier())]
)
def test_columns_in_another_order(model: Any) -> None:
    """The names of a table's columns in another order than the features are no renamed columns: each would be another feature, and the
    comparison with the library, which has the same names, would agree."""
    model.fit(data()[NUMBERS], data().yes)
    for columns in (["b", "a", "c"], ["a", "c", "b"], ["x", "a", "c"]):
        with pytest.raises(ValueError, match="in the order of the features"):
            export(model, columns, rows=data().assign(x=0.0))
    export(model, ["a", "b", "other"], rows=data().assign(other=data().c))


def said(model: Any, x: Data) -> tuple[Any, Any]:
    """What the library predicts: the number, and for classifiers what it decides."""
    decided = model.predict(x) if len(getattr(model, "classes_", ())) else None
    if hasattr(model, "predict_proba"):
        p = model.predict_proba(x)
        return (p[:, 1] if p.shape[1] == 2 else p), decided
    if hasattr(model, "decision_function"):
        return model.decision_function(x), decided
    return (None if decided is not None else np.asarray(model.predict(x)).reshape(len(x))), decided


# Every third, and with HOLDOUTD_GRID=all each: a minute of processor time.
CHOSEN = list(GRID)[:: 1 if os.environ.get("HOLDOUTD_GRID") == "all" else 3]


@pytest.mark.parametrize("name", CHOSEN)
def test_exact_or_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The export of each is the library on rows that neither fitting nor its own comparison saw, and decides as its predict does; or it
    is refused for its reason. It notices a link, an option or a step that is read wrongly, and one that is refused for nothing."""
    if len(name) % 2:  # of half of them, trees are arrays, however small
        monkeypatch.setattr(models, "LISTED", 0)
    of = GRID[name]
    near = "neighbours" in name
    d = holed() if of.nulls else apart() if near and not of.refused else data()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        np.random.seed(1)  # what an estimator draws from that has no random_state
        model = of.fit(d)
        if of.refused:
            with pytest.raises(ValueError, match=of.refused):
                export(model, of.columns, rows=d)
            return
        exported = export(model, of.columns, rows=d)
        x = biting(d, of.columns, of.nulls, near=near)
        want, decided = said(model, x)
    cells = {c: [None if v is None or v != v else v for v in x[c].tolist()] for c in of.columns}
    got = _evaluate.predictions(exported, cells)
    elects = _evaluate.opened(exported)[1].get("votes") is True  # the library has other numbers for votes, and decides by them
    if want is not None and not elects:
        want = np.asarray(want, dtype=float).reshape(len(x), -1)
        scale = np.maximum(np.abs(want), 1.0)
        with np.errstate(invalid="ignore"):
            off = np.abs(got - want) / scale
        single = "xgb" in name or "gblinear" in name
        finite = np.isfinite(want)
        assert not np.isnan(off[finite]).any() and off[finite].max() < (2e-5 if single else 1e-7), (name, np.nanargmax(off), np.nanmax(off))
    if decided is None:
        return
    classes = np.asarray(model.classes_)
    if got.shape[1] == 1:
        at = exported.get("threshold", 0.5)
        clear = np.abs(got[:, 0] - at) > 1e-6
        taken = classes[(got[:, 0] > at).astype(int)]
    else:
        ordered = np.sort(got, axis=1)
        clear, taken = elects | (ordered[:, -1] - ordered[:, -2] > 1e-6), classes[got.argmax(axis=1)]
    assert (taken.astype(str) == np.asarray(decided).reshape(-1).astype(str))[clear].all(), name
