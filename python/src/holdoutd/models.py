"""Writes models of scikit-learn, XGBoost and LightGBM as JSON that holdoutd reads (docs/MODELS.md).

    from holdoutd.models import export

    forest = RandomForestClassifier(max_depth=8).fit(training[["distance", "hour"]], training.delay > 15)
    query = {"type": "accuracy", "label": "delay > 15", "model": export(forest, ["distance", "hour"])}

export(estimator, columns, texts=None) takes a fitted estimator and the names of the table's columns that its features are, in
the order of the features. texts says which features are indicators of a text column, as pandas.get_dummies makes them:
{"origin_SFO": ("origin", "SFO")}.

Exported are, of scikit-learn: linear and ridge regression, lasso, elastic net, linear support vectors, logistic regression,
decision trees, random forests, extra trees, gradient boosting and histogram gradient boosting; of XGBoost and LightGBM: tree
boosters for regression, for two classes and for several, with nulls and, as histogram gradient boosting, with categories that
are texts; small networks (MLPClassifier, MLPRegressor); and of all these VotingClassifier (soft), VotingRegressor, bagging,
CalibratedClassifierCV (sigmoid or isotonic, two classes) and stacks with a linear end. Each stands alone or at the end of a
Pipeline. Its steps before may be SimpleImputer, StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler, OneHotEncoder and
OrdinalEncoder of text columns, and ColumnTransformer and Pipeline of these. What cannot be exported exactly raises ValueError,
which says what to do instead.

A classifier of two classes becomes a model with one output, the probability of the second one of classes_; its label is a
condition. One of several classes has them as they are: the label is a column. Predictions are those of the library: scikit-learn's
trees compare features that were rounded to single precision, XGBoost's too; thresholds are moved so that comparing the
column's double gives the same side for every number.

What is exported has the type Model. Estimators are of the type Any: those of three libraries, of which none has to be
installed, are told apart by their names and by what they have.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal, NoReturn, SupportsFloat, TypeAlias, TypedDict, cast

import numpy as np
from numpy.typing import NDArray

from . import _verify

# The JSON of a model, as docs/MODELS.md describes it. Members of a base class that is not total may be absent.

Class: TypeAlias = str | float  # a value of the label's column; true and false are numbers
Link: TypeAlias = Literal["identity", "logit", "softmax"]
Weight: TypeAlias = float | dict[str, float]  # of a column: for its number, or by text
Weights: TypeAlias = list[float] | dict[str, list[float]]  # the same for several classes or units
Leaf: TypeAlias = float | list[float]  # one number, or one for each class
Split: TypeAlias = list[str | float | list[str]]  # [column, threshold] or [column, [texts]], with "right" where a null goes right
Tree: TypeAlias = list[Leaf | Split]  # its nodes in preorder


class _Imputes(TypedDict, total=False):
    impute: dict[str, float | str]  # what a null counts as, by column


class Linear(_Imputes):
    intercept: float
    weights: dict[str, Weight]
    link: Link


class Softmax(_Imputes):
    classes: list[Class]
    intercepts: list[float]
    weights: dict[str, Weights]


class _Ends(TypedDict, total=False):
    classes: list[Class]
    link: Link


class Layer(TypedDict):
    weights: list[list[float]]  # a list for each unit of the layer before
    intercepts: list[float]


class Network(_Imputes, _Ends):
    activation: str
    weights: dict[str, Weights]
    intercepts: list[float]
    layers: list[Layer]


class _Sums(_Ends, total=False):
    base: float | list[float]  # a list with classes


class _Averages(_Sums, total=False):
    average: bool


class Trees(_Averages):
    trees: list[Tree]


class Part(TypedDict, total=False):
    """A model of a mixture: the model is always there."""

    model: Model
    weight: float
    curve: list[list[float]]  # points: a prediction, and what it becomes


class Mixture(_Sums):
    models: list[Part]


class Model(TypedDict, total=False):
    """Exactly one of these."""

    linear: Linear
    softmax: Softmax
    trees: Trees
    network: Network
    mixture: Mixture


def export(
    estimator: Any,
    columns: Collection[str],
    texts: Mapping[str, tuple[str, str]] | None = None,
    *,
    rows: Any = None,
    verify: bool = True,
) -> Model:
    """The model as an object for json.dumps. columns[i] names the column, or the key of texts, of feature i.

    Before it is returned its predictions are compared with the estimator's own: on some of rows, a DataFrame such as the training part,
    and on rows that are made from the model. Where they differ it raises ValueError. verify=False leaves that out.
    """
    indicators = texts or {}
    features: _Features = [
        _Text(indicators[name][0], {indicators[name][1]: 1.0}) if name in indicators else _Number(name) for name in columns
    ]
    try:
        model = _model(estimator, features)
    except (AttributeError, KeyError, TypeError, IndexError) as e:
        raise ValueError(
            f"this {type(estimator).__name__} cannot be read ({type(e).__name__}: {e}); is it fitted, and are its options usual ones? "
            + PREDICT
        ) from e
    if verify:
        _verify.verify(estimator, model, list(columns), indicators, rows)
    return model


def _model(estimator: Any, features: _Features) -> Model:
    # A pipeline does not always know it, as where its first step lets all through: the estimator that is its last step does.
    wants = getattr(estimator, "n_features_in_", len(features))
    if wants != len(features):
        raise ValueError(f"the model was fitted on {wants} features, and {len(features)} are named")
    module = type(estimator).__module__.split(".")[0]
    if module == "xgboost":
        return _xgboost(estimator, features)
    if module == "lightgbm":
        return _lightgbm(estimator, features)
    if hasattr(estimator, "steps"):
        for _, step in estimator.steps[:-1]:
            features = _transformed(step, features)
        return _model(estimator.steps[-1][1], features)
    name = type(estimator).__name__
    if name in _MIXTURES:
        return _MIXTURES[name](estimator, features)
    if name in ("MLPClassifier", "MLPRegressor"):
        return _network(estimator, features)
    if name == "FrozenEstimator":
        return _model(estimator.estimator, features)
    if len(getattr(estimator, "feature_importances_", [])) == 0 and hasattr(estimator, "coef_"):
        return _linear(estimator, features)
    return _sklearn_trees(estimator, features)


def dumps(
    estimator: Any,
    columns: Collection[str],
    texts: Mapping[str, tuple[str, str]] | None = None,
    *,
    rows: Any = None,
    verify: bool = True,
) -> str:
    """export as compact JSON."""
    return json.dumps(export(estimator, columns, texts, rows=rows, verify=verify), separators=(",", ":"))


# Features: what an estimator sees, as what a row has. Steps before the estimator make others of them.

LARGEST = 1e150  # the largest number of a model; splits into nulls and all numbers have a larger threshold in some libraries
NO_TEXT = "\0null"  # a text that no row has: it stands for null where a null has a weight, or a side, of its own

_Operator: TypeAlias = Literal["-", "+", "/", "*"]
_Step: TypeAlias = tuple[_Operator, float]


class _Number:
    """A column's number after monotone steps, each as its library computes it: ("-", m), ("/", s), ("*", s), ("+", m)."""

    def __init__(self, column: str, steps: Iterable[_Step] = (), null: float | None = None, filled: float | None = None):
        self.column, self.steps = column, tuple(steps)
        self.null, self.filled = null, filled  # null: the feature where the column is; filled: as a column's number

    def value(self, x: float) -> float:
        for op, by in self.steps:
            x = x - by if op == "-" else x + by if op == "+" else x / by if op == "/" else x * by
        return x

    def then(self, *steps: _Step) -> _Number:
        for op, by in steps:
            if op in "/*" and not by > 0:
                raise ValueError(f"a scale of {by} for {self.column} is not exported")
        after = _Number(self.column, self.steps + steps, filled=self.filled)
        after.null = None if self.null is None else _Number("", steps).value(self.null)
        return after

    def impute(self, by: SupportsFloat) -> _Number:
        if self.null is not None:
            return self
        null = filled = float(by)
        for op, step in reversed(self.steps):
            filled = filled + step if op == "-" else filled - step if op == "+" else filled * step if op == "/" else filled / step
        return _Number(self.column, self.steps, null, filled)

    def affine(self) -> tuple[float, float]:
        """The feature is a x + b."""
        a, b = 1.0, 0.0
        for op, by in self.steps:
            a, b = (a / by, b / by) if op == "/" else (a * by, b * by) if op == "*" else (a, b - by) if op == "-" else (a, b + by)
        return a, b


class _Text:
    """A text column as numbers: values by text, other for every other text, null where there is none (None: as other)."""

    def __init__(self, column: str, values: dict[str, float], other: float = 0.0, null: float | None = None):
        self.column, self.values, self.other, self.null = column, values, other, other if null is None else null

    def then(self, *steps: _Step) -> _Text:
        value = _Number("", steps).value
        return _Text(self.column, {t: value(v) for t, v in self.values.items()}, value(self.other), value(self.null))


class _Filled:
    """A text column whose nulls count as a text, before it is encoded."""

    def __init__(self, column: str, null: str):
        self.column, self.null = column, null


_Feature: TypeAlias = _Number | _Text | _Filled
_Features: TypeAlias = list[_Feature]


def _transformed(step: Any, features: _Features) -> _Features:
    """The features after a fitted step of scikit-learn."""
    name = type(step).__name__
    if step == "passthrough" or step is None or (name == "FunctionTransformer" and step.func is None):
        return features
    if hasattr(step, "steps"):
        for _, s in step.steps:
            features = _transformed(s, features)
        return features
    if name == "ColumnTransformer":
        return _by_columns(step, features)
    if name == "SimpleImputer":
        if (
            step.add_indicator
            or len(step.statistics_) != len(features)
            or (step.missing_values is not np.nan and not _is_null(step.missing_values))
        ):
            raise ValueError("SimpleImputer is exported for nulls, without add_indicator and without columns that are all null")
        return [_imputed(f, v) for f, v in zip(features, step.statistics_, strict=True)]
    if name in ("OneHotEncoder", "OrdinalEncoder"):
        return _encoded(step, features)

    def by(op: _Operator, values: Any, i: int, used: bool = True) -> list[_Step]:
        return [(op, float(values[i]))] if used else []

    each = range(len(features))
    if name == "StandardScaler":
        steps = [by("-", step.mean_, i, step.with_mean) + by("/", step.scale_, i, step.with_std) for i in each]
    elif name == "MinMaxScaler" and not step.clip:
        steps = [by("*", step.scale_, i) + by("+", step.min_, i) for i in each]
    elif name == "MaxAbsScaler" and not getattr(step, "clip", False):
        steps = [by("/", step.scale_, i) for i in each]
    elif name == "RobustScaler":
        steps = [by("-", step.center_, i, step.with_centering) + by("/", step.scale_, i, step.with_scaling) for i in each]
    else:
        raise ValueError(
            f"a step {name}{' with clip' if getattr(step, 'clip', False) else ''} is not exported; exported are SimpleImputer, "
            "StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler, OneHotEncoder, OrdinalEncoder, ColumnTransformer and Pipeline. "
            + PREDICT
        )
    return [f.then(*s) if isinstance(f, (_Number, _Text)) else _plain(f, name) for f, s in zip(features, steps, strict=True)]


PREDICT = (
    "Other models can be asked about by their predictions: upload them as a column, or send them row by row to a holdout that was "
    "created with features=public (docs/MODELS.md, Models that cannot be exported)"
)


def _plain(f: _Feature, name: str) -> NoReturn:
    raise ValueError(f"{name} of the text column {f.column} before it is encoded is not exported")


def _is_null(v: Any) -> bool:
    return v is None or (isinstance(v, (float, np.floating)) and math.isnan(v))


def _imputed(f: _Feature, by: Any) -> _Feature:
    if isinstance(by, str):
        if not isinstance(f, (_Number, _Filled)) or (isinstance(f, _Number) and f.steps):
            raise ValueError(f"a text for nulls of {f.column}, which is a number, is not exported")
        return f if isinstance(f, _Filled) else _Filled(f.column, by)
    if _is_null(by):
        raise ValueError(f"{f.column} is null in all rows that the imputer saw; leave it out")
    if not isinstance(f, _Number):
        return f if isinstance(f, _Text) else _plain(f, "SimpleImputer")
    return f.impute(by)


def _by_columns(step: Any, features: _Features) -> _Features:
    names = list(getattr(step, "feature_names_in_", []))

    def places(columns: Any) -> list[int]:
        if callable(columns):
            raise ValueError("a ColumnTransformer that chooses its columns by a function is exported once it is fitted")
        if isinstance(columns, slice):
            if isinstance(columns.start, str) or isinstance(columns.stop, str):  # names, both included
                ends = ((columns.start, 0), (columns.stop, 1))
                start, stop = (names.index(c) + more if isinstance(c, str) else c for c, more in ends)
                columns = slice(start, stop, columns.step)
            return list(range(len(features))[columns])
        columns = [columns] if isinstance(columns, (str, int)) else list(columns)
        if len(columns) == len(features) and all(isinstance(c, (bool, np.bool_)) for c in columns):
            return [i for i, c in enumerate(columns) if c]
        return [names.index(c) if isinstance(c, str) else int(c) % len(features) for c in columns]

    out: _Features = []
    for _, transformer, columns in step.transformers_:
        at = places(columns)
        if not isinstance(transformer, str) or transformer != "drop":
            out += _transformed(transformer, [features[i] for i in at]) if at else []
    return out


def _encoded(step: Any, features: _Features) -> _Features:
    out: _Features = []
    one_hot = type(step).__name__ == "OneHotEncoder"
    for i, f in enumerate(features):
        if not isinstance(f, _Filled) and not (isinstance(f, _Number) and not f.steps and f.null is None):
            raise ValueError(f"{f.column} is encoded after another step; of text columns an imputer with a text may stand before")
        categories: list[str | None] = [None if _is_null(c) else c for c in step.categories_[i]]
        if not all(c is None or isinstance(c, str) for c in categories):
            raise ValueError(f"the categories of {f.column} are no texts; make it a text column of the table, or leave it a number")
        fill = f.null if isinstance(f, _Filled) else None
        groups = [[k] for k in range(len(categories))]  # of categories that share a feature, or a code
        rare = getattr(step, "infrequent_categories_", None)
        unknown: list[int] = []  # the place of the group in which other texts are
        if rare is not None and rare[i] is not None:
            often = [k for k, c in enumerate(categories) if not any(c == r or (c is None and _is_null(r)) for r in rare[i])]
            groups = [[k] for k in often] + [[k for k in range(len(categories)) if k not in often]]
            unknown = [len(groups) - 1] if step.handle_unknown in ("infrequent_if_exist", "warn") else []
        at = {categories[k]: g for g, group in enumerate(groups) for k in group}
        if one_hot:
            dropped = step._drop_idx_after_grouping[i] if getattr(step, "_drop_idx_after_grouping", None) is not None else None
            for g in range(len(groups)):
                if dropped is None or g != dropped:
                    hot = {c: float(h == g) for c, h in at.items()}
                    out.append(_coded(f.column, hot, fill, float(g in unknown)))
            continue
        missing = getattr(step, "encoded_missing_value", np.nan)
        other = step.unknown_value if step.handle_unknown == "use_encoded_value" else 0.0
        if _is_null(other) or (None in at and _is_null(missing)):
            raise ValueError(
                f"nulls that stay nulls behind OrdinalEncoder are not exported; give {f.column} an unknown_value and an "
                "encoded_missing_value, such as -1 and -2"
            )
        feature = _coded(f.column, {c: float(g) for c, g in at.items()}, fill, float(other))
        if None in at:
            feature.null = float(missing)
        out.append(feature)
    return out


def _coded(column: str, codes: dict[str | None, float], fill: str | None, other: float) -> _Text:
    """A text column by the codes of its categories. A null counts as the text fill, or has its own code, or is as other texts."""
    values = {c: code for c, code in codes.items() if c is not None}
    null = values.get(fill, other) if fill is not None else codes.get(None, other)
    return _Text(column, values, other, null)


# Linear models

_Scores: TypeAlias = NDArray[np.float64]  # a number for each score: for each class, or each unit of a layer
_ByColumn: TypeAlias = dict[str, _Scores | dict[str, _Scores]]


def _linear(e: Any, features: _Features) -> Model:
    if not hasattr(e, "intercept_") or type(e).__name__ in ("SVC", "SVR", "NuSVC", "NuSVR"):
        raise ValueError(f"{type(e).__name__} is not exported. " + PREDICT)
    weights = np.atleast_2d(e.coef_)
    intercepts = np.array(np.broadcast_to(np.atleast_1d(e.intercept_), len(weights)), dtype=float)
    logistic = type(e).__name__ in ("LogisticRegression", "LogisticRegressionCV") or getattr(e, "loss", None) == "log_loss"
    if len(weights) > 1 and not (logistic and type(e).__name__.startswith("LogisticRegression")):
        raise ValueError("of several classes, logistic regression is exported. " + PREDICT)
    by_column, impute = _by_column(features, weights, intercepts)
    if len(weights) == 1:
        linear: Linear = {
            "intercept": float(intercepts[0]),
            "weights": {c: _one(w) for c, w in by_column.items()},
            "link": "logit" if logistic else "identity",
        }
        if impute:
            linear["impute"] = impute
        return {"linear": linear}
    softmax: Softmax = {
        "classes": _classes(e),
        "intercepts": intercepts.tolist(),
        "weights": {c: _lists(w) for c, w in by_column.items()},
    }
    if impute:
        softmax["impute"] = impute
    return {"softmax": softmax}


def _by_column(features: _Features, weights: NDArray[Any], intercepts: _Scores) -> tuple[_ByColumn, dict[str, float | str]]:
    """The weights by column, in the column's own units; what they are off by is added to intercepts."""
    out: _ByColumn = {}
    impute: dict[str, float | str] = {}
    for f, w in zip(features, weights.T.astype(float), strict=False):
        if isinstance(f, _Number):
            a, b = f.affine()
            before = out.get(f.column)
            if isinstance(before, dict) or (before is not None and impute.get(f.column) != f.filled):
                raise ValueError(f"{f.column} is used as a number and as a text, or its nulls count as two numbers; that is not exported")
            out[f.column] = (0.0 if before is None else before) + w * a  # the 0 makes -0 a 0
            intercepts += w * b
            if f.filled is not None:
                impute[f.column] = f.filled
        elif isinstance(f, _Text):
            texts = out.setdefault(f.column, {})
            if not isinstance(texts, dict):
                raise ValueError(f"{f.column} is used as a number and as a text; that is not exported")
            intercepts += w * f.other
            for text, v in {**f.values, **({NO_TEXT: f.null} if f.null != f.other else {})}.items():
                texts[text] = texts.get(text, 0.0) + w * (v - f.other)
            if f.null != f.other:
                impute[f.column] = NO_TEXT
        else:
            _plain(f, "a linear model")
    return out, impute


def _one(weights: _Scores | dict[str, _Scores]) -> Weight:
    return {t: float(w[0]) for t, w in weights.items()} if isinstance(weights, dict) else float(weights[0])


def _lists(weights: _Scores | dict[str, _Scores]) -> Weights:
    return {t: w.tolist() for t, w in weights.items()} if isinstance(weights, dict) else weights.tolist()


# Networks


def _network(e: Any, features: _Features) -> Model:
    weights, intercepts = e.coefs_[0].T, np.array(e.intercepts_[0], dtype=float)
    by_column, impute = _by_column(features, weights, intercepts)
    layers: list[Layer] = [
        {"weights": np.asarray(w, dtype=float).tolist(), "intercepts": np.asarray(b, dtype=float).tolist()}
        for w, b in zip(e.coefs_[1:], e.intercepts_[1:], strict=True)
    ]
    body: Network = {
        "activation": e.activation,
        "weights": {c: _lists(w) for c, w in by_column.items()},
        "intercepts": intercepts.tolist(),
        "layers": layers,
    }
    if impute:
        body["impute"] = impute
    if not layers or e.out_activation_ not in ("identity", "logistic", "softmax") or (e.n_outputs_ > 1 and e.out_activation_ != "softmax"):
        raise ValueError("a network is exported with a hidden layer, and with one output or one for each class. " + PREDICT)
    if e.out_activation_ == "softmax":
        body["classes"] = _classes(e)
    else:
        body["link"] = "logit" if e.out_activation_ == "logistic" else "identity"
    return {"network": body}


# Mixtures: a sum of other models' predictions


def _mixture(
    models: Sequence[Model], weights: Iterable[float], classes: list[Class] | None = None, base: float = 0.0, link: Link = "identity"
) -> Model:
    """The sum of base and of each model's predictions times its weight.

    classes are those of the whole, in the order in which each model has them."""
    if classes is not None and len(classes) > 2:
        models = [_named(m, classes) for m in models]
    parts: list[Part] = [{"model": m, "weight": float(w)} for m, w in zip(models, weights, strict=False)]
    if classes is not None and len(classes) > 2:
        return {"mixture": {"models": parts, "classes": classes}}
    return {"mixture": {"models": parts, "base": float(base), "link": link}}


def _opened(model: Model) -> tuple[str, dict[str, Any]]:
    """The one member of a model, of whichever kind."""
    ((kind, body),) = cast(dict[str, dict[str, Any]], model).items()
    return kind, body


def _closed(kind: str, body: dict[str, Any]) -> Model:
    return cast(Model, {kind: body})


def _named(model: Model, classes: list[Class]) -> Model:
    """The model with these names of its classes: a vote fits its models to the numbers of classes."""
    kind, body = _opened(model)
    if len(body.get("classes", [])) != len(classes):
        raise ValueError("a model of the mixture saw other classes than the whole; fit it on all of them. " + PREDICT)
    body = {**body, "classes": classes}
    if kind == "mixture":
        body["models"] = [{**m, "model": _named(m["model"], classes)} for m in body["models"]]
    return _closed(kind, body)


def _raw(model: Model) -> Model:
    """The model whose prediction is the score."""
    kind, body = _opened(model)
    return _closed(kind, {**body, "link": "identity"})


def _vote(e: Any, features: _Features) -> Model:
    if hasattr(e, "classes_") and e.voting != "soft":
        raise ValueError('a vote of classes is exported with voting="soft"')
    weights = e.weights if e.weights is not None else [1] * len(e.estimators)
    used = [w for (_, was), w in zip(e.estimators, weights, strict=False) if not isinstance(was, str) or was != "drop"]
    models = [_model(m, features) for m in e.estimators_]
    return _mixture(models, np.asarray(used) / np.sum(used), _classes(e) if hasattr(e, "classes_") else None)


def _bag(e: Any, features: _Features) -> Model:
    models = [_model(m, [features[i] for i in chosen]) for m, chosen in zip(e.estimators_, e.estimators_features_, strict=True)]
    return _mixture(models, [1 / len(models)] * len(models), _classes(e) if hasattr(e, "classes_") else None)


def _calibrated(e: Any, features: _Features) -> Model:
    kinds = {type(c.calibrators[0]).__name__ for c in e.calibrated_classifiers_}
    if len(e.classes_) != 2 or not kinds <= {"_SigmoidCalibration", "IsotonicRegression"}:
        raise ValueError('of CalibratedClassifierCV, method="sigmoid" and method="isotonic" of two classes are exported. ' + PREDICT)
    models = []
    for c in e.calibrated_classifiers_:
        model, calibrator = _model(c.estimator, features), c.calibrators[0]
        if hasattr(c.estimator, "decision_function"):
            model = _raw(model)
        if "IsotonicRegression" in kinds:
            models.append(_through(model, calibrator))
        else:
            models.append(_mixture([model], [-calibrator.a_], base=-calibrator.b_, link="logit"))
    if len(models) == 1:
        return models[0]
    if kinds == {"IsotonicRegression"}:  # one mixture of all, each through its curve
        return {"mixture": {"models": [{**m["mixture"]["models"][0], "weight": 1 / len(models)} for m in models]}}
    return _mixture(models, [1 / len(models)] * len(models))


def _through(model: Model, isotonic: Any) -> Model:
    """The model's predictions through an isotonic regression: linear between its thresholds, and constant beyond."""
    x, y = (np.asarray(v, dtype=float).tolist() for v in (isotonic.X_thresholds_, isotonic.y_thresholds_))
    if len(x) == 1:
        x, y = [x[0], x[0] + 1], [y[0], y[0]]
    return {"mixture": {"models": [{"model": model, "curve": [list(p) for p in zip(x, y, strict=True)]}]}}


def _stack(e: Any, features: _Features) -> Model:
    final = e.final_estimator_
    logistic = hasattr(e, "classes_")
    if (
        not hasattr(final, "coef_")
        or len(np.atleast_2d(final.coef_)) != 1
        or e.passthrough
        or (logistic and not type(final).__name__.startswith("LogisticRegression"))
    ):
        raise ValueError(
            "a stack is exported with a linear final_estimator, of classes a logistic regression, for numbers or two classes, "
            "without passthrough. " + PREDICT
        )
    models = [_model(m, features) for m in e.estimators_]
    for i, method in enumerate(e.stack_method_):
        if method == "decision_function":
            models[i] = _raw(models[i])
        elif method == "predict" and logistic:
            raise ValueError("a stack is exported of probabilities or decision functions; leave stack_method as it is")
    weights, intercept = np.ravel(final.coef_), float(np.ravel(final.intercept_)[0])
    if len(weights) != len(models):
        raise ValueError("a stack is exported of models with one output each. " + PREDICT)
    return _mixture(models, weights, base=intercept, link="logit" if logistic else "identity")


_MIXTURES: dict[str, Callable[[Any, _Features], Model]] = {
    "VotingClassifier": _vote,
    "VotingRegressor": _vote,
    "BaggingClassifier": _bag,
    "BaggingRegressor": _bag,
    "CalibratedClassifierCV": _calibrated,
    "StackingClassifier": _stack,
    "StackingRegressor": _stack,
}


def _classes(e: Any) -> list[Class]:
    return [c.item() if isinstance(c, np.generic) else c for c in e.classes_]


# Trees

_Below: TypeAlias = Callable[[float], bool | np.bool_]  # whether a feature's number goes left


def _split(feature: _Feature, below: _Below, threshold: float | None, missing_left: bool, left: Tree, right: Tree) -> Tree:
    """The nodes of a split and of what is under it. below is monotone: left up to some number, which is threshold where it is
    known. missing_left is where the library sends a null."""
    if isinstance(feature, _Number):
        null_left = missing_left if feature.null is None else bool(below(feature.null))
        if feature.steps or threshold is None:
            threshold = _largest(lambda x: below(feature.value(x)))
        threshold = min(max(threshold, -LARGEST), LARGEST)  # a split into nulls and all numbers has 1e300, or no end
        by_number: Split = [feature.column, threshold]
        return [by_number if null_left else [*by_number, "right"], *left, *right]
    if not isinstance(feature, _Text):
        _plain(feature, "a tree")
    other_left, null_left = bool(below(feature.other)), bool(below(feature.null))
    # Texts that go elsewhere than those that are not known.
    apart = sorted(t for t, v in feature.values.items() if bool(below(v)) != other_left)
    if not apart and null_left == other_left:
        return left if other_left else right
    by_text: Split = [feature.column, apart or [NO_TEXT]]
    here, there = (right, left) if other_left else (left, right)  # of the listed texts, and of the others
    return [by_text if null_left != other_left else [*by_text, "right"], *here, *there]


def _codes(feature: _Feature, texts: Sequence[Any]) -> _Text:
    """A text column as the codes of its categories; no number where it is null or another text, which both libraries take for missing."""
    if not isinstance(feature, _Number) or feature.steps or feature.null is not None or not all(isinstance(t, str) for t in texts):
        raise ValueError(
            "categories are exported where the column is one of texts, of pandas' dtype category, without a step before; "
            "make numbers texts, or leave them numbers. " + PREDICT
        )
    return _Text(feature.column, {t: float(code) for code, t in enumerate(texts)}, math.nan, math.nan)


def _largest(below: _Below) -> float:
    """The largest double for which below holds, a condition that holds up to some number; -LARGEST if for none, LARGEST if for all."""

    def number(i: int) -> float:
        """Doubles in their order, as whole numbers."""
        return float(np.int64(i).view(np.float64)) if i >= 0 else -float(np.int64(-i).view(np.float64))

    end = int(np.float64(LARGEST).view(np.int64))
    low, high = -end, end
    with np.errstate(over="ignore"):
        if below(number(high)):
            return LARGEST
        if not below(number(low)):
            return -LARGEST
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if below(number(middle)) else (low, middle)
    return number(low)


def _double_below(single: np.float32) -> float:
    """The largest double that rounds to at most this single."""
    if not np.isfinite(single):
        return math.copysign(LARGEST, single)
    following = np.nextafter(single, np.float32(np.inf), dtype=np.float32)
    middle = (float(single) + float(following)) / 2
    even = int(single.view(np.uint32)) % 2 == 0
    return middle if even else math.nextafter(middle, -math.inf)


def _single_at_most(threshold: float) -> np.float32:
    single: np.float32 = np.float32(threshold)
    if float(single) <= threshold:
        return single
    before: np.float32 = np.nextafter(single, np.float32(-np.inf), dtype=np.float32)
    return before


def _sklearn_tree(tree: Any, features: _Features, leaf: Callable[[NDArray[np.float64]], Leaf]) -> Tree:
    missing_left = getattr(tree, "missing_go_to_left", np.zeros(tree.node_count))

    def nodes(i: int) -> Tree:
        if tree.children_left[i] == -1:
            return [leaf(tree.value[i])]
        f, t = tree.feature[i], _single_at_most(tree.threshold[i])
        return _split(
            features[f],
            lambda x: np.float32(x) <= t,
            _double_below(t),
            bool(missing_left[i]),
            nodes(tree.children_left[i]),
            nodes(tree.children_right[i]),
        )

    return nodes(0)


_TREES = (
    "DecisionTreeClassifier",
    "DecisionTreeRegressor",
    "ExtraTreeClassifier",
    "ExtraTreeRegressor",
    "RandomForestClassifier",
    "RandomForestRegressor",
    "ExtraTreesClassifier",
    "ExtraTreesRegressor",
)


def _number(value: NDArray[np.float64]) -> float:
    """The leaf of a regression tree."""
    return float(value[0, 0])


def _shares(value: NDArray[np.float64]) -> list[float]:
    """The leaf of a tree of several classes: the share of each."""
    shares: list[float] = (value[0] / value[0].sum()).tolist()
    return shares


def _second_share(value: NDArray[np.float64]) -> float:
    """The leaf of a tree of two classes."""
    return _shares(value)[1]


def _sklearn_trees(e: Any, features: _Features) -> Model:
    name = type(e).__name__
    if name.startswith("HistGradientBoosting"):
        return _hist(e, features)
    if name.startswith("GradientBoosting"):
        return _boosting(e, features)
    if name not in _TREES or e.n_outputs_ != 1:
        raise ValueError(f"{name} is not exported. " + PREDICT)
    several = hasattr(e, "classes_") and len(e.classes_) != 2
    leaf = _shares if several else _second_share if hasattr(e, "classes_") else _number
    trees = [_sklearn_tree(t.tree_, features, leaf) for t in getattr(e, "estimators_", [e])]
    body: Trees = {"classes": _classes(e), "trees": trees} if several else {"trees": trees}
    if len(trees) > 1:
        body["average"] = True
    return {"trees": body}


def _boosted(trees: list[Tree], e: Any, base: Sequence[float] | NDArray[Any]) -> Model:
    """A booster of scikit-learn, with the link and the start that its number of classes wants."""
    if len(base) > 1:
        return {"trees": {"trees": trees, "classes": _classes(e), "link": "softmax", "base": [float(b) for b in base]}}
    return {"trees": {"trees": trees, "link": "logit" if hasattr(e, "classes_") else "identity", "base": float(base[0])}}


def _boosting(e: Any, features: _Features) -> Model:
    if hasattr(e, "classes_") and e.loss != "log_loss":
        raise ValueError("boosting of classes is exported with log_loss. " + PREDICT)
    if e.init is not None and e.init != "zero":
        raise ValueError("boosting is exported without an estimator to start with; leave init as it is")
    base = e._raw_predict_init(np.zeros((1, len(features)), dtype=np.float32))[0]

    def leaf(value: NDArray[np.float64]) -> float:
        return float(e.learning_rate * value[0, 0])

    trees = [_sklearn_tree(t.tree_, features, leaf) for row in e.estimators_ for t in row]
    return _boosted(trees, e, base)


def _hist(e: Any, features: _Features) -> Model:
    if not hasattr(e, "classes_") and e.loss not in ("squared_error", "absolute_error", "quantile"):
        raise ValueError("of histogram boosting for counts the link is not exported. " + PREDICT)

    prepare = getattr(e, "_preprocessor", None)
    categorical: Any = getattr(e, "is_categorical_", None)
    if prepare is not None:  # it puts categories first, as codes
        known = prepare.named_transformers_["encoder"].categories_
        at = [i for i, c in enumerate(categorical) if c]
        coded = [_codes(features[i], [t for t in texts if not _is_null(t)]) for i, texts in zip(at, known, strict=True)]
        features = [*coded, *(f for f, c in zip(features, categorical, strict=False) if not c)]
    elif categorical is not None and np.any(categorical):
        raise ValueError("categories that are numbers are not exported; make them texts, of pandas' dtype category. " + PREDICT)

    def tree(p: Any) -> Tree:
        def below(i: int) -> Tree:
            n = p.nodes[i]
            if n["is_leaf"]:
                return [float(n["value"])]
            f, t, missing_left = features[n["feature_idx"]], float(n["num_threshold"]), bool(n["missing_go_to_left"])
            left, right = below(n["left"]), below(n["right"])
            if n["is_categorical"]:
                bits = p.raw_left_cat_bitsets[n["bitset_idx"]]

                def listed(code: float) -> bool:
                    return missing_left if math.isnan(code) else int(bits[int(code) // 32]) >> int(code) % 32 & 1 == 1

                return _split(f, listed, None, missing_left, left, right)
            return _split(f, lambda x: x <= t, t, missing_left, left, right)

        return below(0)

    trees = [tree(p) for iteration in e._predictors for p in iteration]
    return _boosted(trees, e, np.asarray(e._baseline_prediction).reshape(-1))


def _xgboost(e: Any, features: _Features) -> Model:
    booster = e.get_booster() if hasattr(e, "get_booster") else e
    learner = json.loads(bytes(booster.save_raw("json")))["learner"]
    objective = learner["objective"]["name"]
    classes = int(learner["learner_model_param"]["num_class"])
    if learner["gradient_booster"]["name"] != "gbtree":
        raise ValueError("of XGBoost, gbtree is exported. " + PREDICT)
    links: dict[str, Link] = {
        "binary:logistic": "logit",
        "reg:squarederror": "identity",
        "reg:absoluteerror": "identity",
        "multi:softprob": "softmax",
        "multi:softmax": "softmax",
    }
    if objective not in links:
        raise ValueError(f"the objective {objective} is not exported. " + PREDICT)
    if not _is_null(missing := getattr(e, "missing", np.nan)):
        raise ValueError(
            f"XGBoost with missing={missing} is not exported: make these numbers nulls, and leave missing as it is. " + PREDICT
        )
    if int(learner["learner_model_param"].get("num_target", 1)) > 1:
        raise ValueError("a model of several targets is not exported: fit one for each. " + PREDICT)
    model = learner["gradient_booster"]["model"]
    if int(model["gbtree_model_param"].get("num_parallel_tree", 1)) != 1:
        raise ValueError("of XGBoost, boosting without parallel trees is exported. " + PREDICT)
    base = np.asarray(json.loads(learner["learner_model_param"]["base_score"]), dtype=float).reshape(-1)
    best = booster.attr("best_iteration") if booster is not e else None  # its predict stops there; that of a Booster does not
    trees = model["trees"] if best is None else model["trees"][: (int(best) + 1) * max(classes, 1)]

    texts = _xgboost_texts(model.get("cats"))

    def tree(t: dict[str, Any]) -> Tree:
        lists = zip(t["categories_nodes"], t["categories_segments"], t["categories_sizes"], strict=True)
        listed = {node: set(t["categories"][begin : begin + size]) for node, begin, size in lists}  # the codes that go right

        def below(i: int) -> Tree:
            value = np.float32(t["split_conditions"][i])
            if t["left_children"][i] == -1:
                return [float(value)]
            if i in listed:
                at, missing_left = t["split_indices"][i], bool(t["default_left"][i])
                if at >= len(texts) or not texts[at]:
                    raise ValueError(
                        "categories of XGBoost are exported where the model keeps their texts: columns of pandas' dtype category, "
                        "and XGBoost 3.1 or newer. " + PREDICT
                    )
                left, right = below(t["left_children"][i]), below(t["right_children"][i])
                return _split(
                    _codes(features[at], texts[at]),
                    lambda code: missing_left if math.isnan(code) else int(code) not in listed[i],
                    None,
                    missing_left,
                    left,
                    right,
                )
            threshold = _double_below(np.nextafter(value, np.float32(-np.inf), dtype=np.float32))  # below it goes left
            return _split(
                features[t["split_indices"][i]],
                lambda x: np.float32(x) < value,
                threshold,
                bool(t["default_left"][i]),
                below(t["left_children"][i]),
                below(t["right_children"][i]),
            )

        return below(0)

    body: Trees = {"trees": [tree(t) for t in trees], "link": links[objective]}
    if classes > 1:
        body["classes"] = _classes(e) if hasattr(e, "classes_") else list(range(classes))
        body["base"] = np.broadcast_to(base, classes).tolist()
    else:
        body["base"] = math.log(base[0] / (1 - base[0])) if objective == "binary:logistic" else float(base[0])
    return {"trees": body}


def _xgboost_texts(kept: Mapping[str, Any] | None) -> list[list[str]]:
    """The texts of each feature's categories as the model keeps them, in the order of their codes; none of a number."""
    out: list[list[str]] = []
    for enc in (kept or {}).get("enc", []):
        offsets, letters = enc.get("offsets", []), enc.get("values", [])
        if not offsets and letters:
            raise ValueError("categories that are numbers are not exported; make them texts. " + PREDICT)
        if any(not 0 <= c < 128 for c in letters):
            raise ValueError(
                "XGBoost does not keep categories whole that have letters beyond ASCII; give them other names, "
                "or encode them with OneHotEncoder. " + PREDICT
            )
        out.append([bytes(letters[a:b]).decode() for a, b in pairwise(offsets)])
    return out


def _around_zero(threshold: float) -> float:
    """The threshold by which LightGBM sends a number: it takes numbers up to its kZeroThreshold on both sides of 0 for 0."""
    zero = float(np.float32(1e-35))
    if -zero <= threshold < 0:
        return math.nextafter(-zero, -math.inf)
    return max(threshold, zero) if threshold >= 0 else threshold


def _lightgbm(e: Any, features: _Features) -> Model:
    booster = getattr(e, "booster_", e)
    model = booster.dump_model()
    objective = model["objective"].split()
    links: dict[str, Link] = {
        "binary": "logit",
        "regression": "identity",
        "regression_l1": "identity",
        "quantile": "identity",
        "multiclass": "softmax",
    }
    if objective[0] not in links or (objective[0] == "binary" and "sigmoid:1" not in objective) or model.get("average_output"):
        raise ValueError(f"the objective {model['objective']} is not exported. " + PREDICT)

    numbered = re.search(r"^\[categorical_feature: ([\d,]*)\]", booster.model_to_string(num_iteration=1), re.M)
    places = [int(i) for i in numbered[1].split(",") if i] if numbered else []
    categories: dict[int, list[Any]] = dict(zip(places, model.get("pandas_categorical") or [], strict=False))

    def in_list(n: dict[str, Any], feature: _Feature) -> Tree:
        """A split by categories: those of the list go left, all others and nulls right."""
        known = categories.get(n["split_feature"], [])
        texts: list[Any] = [known[int(code)] if int(code) < len(known) else None for code in n["threshold"].split("||")]
        if not isinstance(feature, _Number) or feature.steps or feature.null is not None or not all(isinstance(t, str) for t in texts):
            raise ValueError(
                "categories of LightGBM are exported where the column is one of texts, of pandas' dtype category, without a step before; "
                "make numbers texts, or leave them numbers. " + PREDICT
            )
        split: Split = [feature.column, sorted(texts), "right"]
        return [split, *below(n["left_child"]), *below(n["right_child"])]

    def below(n: dict[str, Any]) -> Tree:
        if "leaf_value" in n:
            return [float(n["leaf_value"])]
        feature = features[n["split_feature"]]
        if n["decision_type"] == "==":
            return in_list(n, feature)
        if n["decision_type"] != "<=" or n["missing_type"] == "Zero":
            raise ValueError("zero_as_missing is not exported; fit without it. " + PREDICT)
        threshold = _around_zero(float(n["threshold"]))
        missing_left = bool(n["default_left"]) if n["missing_type"] == "NaN" else threshold >= 0  # else a null is 0
        return _split(feature, lambda x: x <= threshold, threshold, missing_left, below(n["left_child"]), below(n["right_child"]))

    body: Trees = {"trees": [below(t["tree_structure"]) for t in model["tree_info"]], "link": links[objective[0]]}
    if model["num_class"] > 1:
        body["classes"] = _classes(e) if hasattr(e, "classes_") else list(range(model["num_class"]))
    return {"trees": body}
