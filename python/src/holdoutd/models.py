"""Writes models of scikit-learn, XGBoost, LightGBM and CatBoost as JSON that holdoutd reads (docs/MODELS.md).

    from holdoutd.models import export

    forest = RandomForestClassifier(max_depth=8).fit(training[["distance", "hour"]], training.delay > 15)
    query = {"type": "accuracy", "label": "delay > 15", "model": export(forest, ["distance", "hour"])}

export(estimator, columns, texts=None) takes a fitted estimator and the names of the table's columns that its features are, in
the order of the features. texts says which features are indicators of a text column, as pandas.get_dummies makes them:
{"origin_SFO": ("origin", "SFO")}.

docs/MODELS.md lists what is exported: linear models, trees and their ensembles, small networks, and models of these, alone or at the end of
a Pipeline whose steps are imputers, scalers, encoders of texts, selections and ColumnTransformer. What cannot be exported exactly raises
ValueError, which says what to do instead.

A classifier of two classes becomes a model with one output, the probability of the second one of classes_; its label is a
condition. One of several classes has them as they are: the label is a column. Predictions are those of the library: scikit-learn's
trees compare features that were rounded to single precision, XGBoost's too; thresholds are moved so that comparing the
column's double gives the same side for every number.

What is exported has the type Model. Estimators are of the type Any: those of three libraries, of which none has to be
installed, are told apart by their names and by what they have.
"""

from __future__ import annotations

import copy
import functools
import hashlib
import json
import math
import operator
import re
import tempfile
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextvars import ContextVar
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple, NoReturn, SupportsFloat, TypeAlias, TypedDict, cast

import numpy as np
from numpy.typing import NDArray

from . import _forest, _verify
from ._transforms import COMPUTING, LIKELIHOODS
from .expressions import Expression, column, where

# The JSON of a model, as docs/MODELS.md describes it. Members of a base class that is not total may be absent.

Class: TypeAlias = str | float  # a value of the label's column; true and false are numbers
Link: TypeAlias = Literal["identity", "logit", "log", "sqrt", "softmax"]
Weight: TypeAlias = float | dict[str, float]  # of a column: for its number, or by text
Weights: TypeAlias = list[float] | dict[str, list[float]]  # the same for several classes or units
Leaf: TypeAlias = float | list[float]  # one number, or one for each class
Split: TypeAlias = list[str | float | list[str]]  # [column, threshold] or [column, [texts]], with "right" where a null goes right
Tree: TypeAlias = list[Leaf | Split]  # its nodes in preorder
Array: TypeAlias = dict[str, str]  # {"f64": "<base64>"}: numbers, little end first
Arrays: TypeAlias = dict[str, Any]  # many trees, as docs/MODELS.md has them: reads, nodes, thresholds, leaves


class _Imputes(TypedDict, total=False):
    impute: dict[str, float | str]  # what a null counts as, by column


class Linear(_Imputes):
    intercept: float
    weights: dict[str, Weight]
    link: Link


class _Ends(TypedDict, total=False):
    classes: list[Class]
    link: Link


class Softmax(_Imputes, _Ends):
    intercepts: list[float]
    weights: dict[str, Weights]


class Layer(TypedDict):
    weights: list[list[float]]  # a list for each unit of the layer before
    intercepts: list[float]


class Network(_Imputes, _Ends):
    activation: str
    weights: dict[str, Weights]
    intercepts: list[float]
    layers: list[Layer]


class Space(_Imputes, _Ends):
    """Where vectors lie: a row's place is a linear function of the columns."""

    weights: dict[str, Weights]
    intercepts: list[float]
    vectors: Array  # vector after vector


class _Kernels(Space, total=False):
    function: str
    gamma: float
    coef0: float
    degree: int
    base: float | list[float]
    votes: bool  # functions are of pairs of classes


class Kernel(_Kernels):
    coefficients: Array  # function after function, a number for each vector


class Neighbors(Space):
    k: int
    metric: str
    weighting: str
    values: Array  # a number for each vector, or the place of its class


class _Sums(_Ends, total=False):
    base: float | list[float]  # a list with classes


class _Averages(_Sums, total=False):
    average: bool
    impute: dict[str, float]  # what a null counts as, by column
    null: dict[str, list[float]]  # numbers that count as null, by column: from the first to the last


class Trees(_Averages):
    trees: list[Tree] | Arrays


class Sigmoid(TypedDict):
    """1/(1+exp(-(slope · prediction + intercept)))."""

    slope: float
    intercept: float


Curve: TypeAlias = list[list[float]] | Sigmoid  # points, a prediction and what it becomes; or logistic


class Part(TypedDict, total=False):
    """A model of a mixture: the model is always there."""

    model: Model
    weight: float
    weights: list[list[float]]  # of each prediction, in each output of the mixture
    curve: Curve
    curves: list[Curve]  # one for each class
    shares: bool  # predictions are divided by their sum


class Mixture(_Sums):
    models: list[Part]


class Model(TypedDict, total=False):
    """Exactly one of the first seven; and perhaps where it decides, and what it computes."""

    linear: Linear
    softmax: Softmax
    trees: Trees
    network: Network
    kernel: Kernel
    neighbors: Neighbors
    mixture: Mixture
    threshold: float  # above which a prediction says yes
    features: dict[str, str]  # what it computes of columns, by name: row expressions


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
    fitted(estimator)
    if hasattr(estimator, "best_estimator_"):  # a search
        estimator = estimator.best_estimator_
    _in_order(estimator, list(columns))
    try:
        model = _exported(estimator, features, _verify.conditions(rows, columns))
    except (AttributeError, KeyError, TypeError, IndexError) as e:
        raise ValueError(
            f"this {type(estimator).__name__} cannot be read ({type(e).__name__}: {e}); is it fitted, and are its options usual ones? "
            + PREDICT
        ) from e
    if verify:
        _verify.verify(estimator, model, list(columns), indicators, rows)
    return model


def _in_order(estimator: Any, columns: Sequence[str]) -> None:
    """Raises ValueError where a column is named as another feature than the one that the estimator was fitted on by this name."""
    names = columns_of(estimator)
    for i, (named, name) in enumerate(zip(columns, names or (), strict=False)):
        if named != name and named in (names or ()):
            raise ValueError(
                f"columns are in the order of the features: feature {i} of this {type(estimator).__name__} is {name!r}, and {named!r} is "
                f"named. Give columns={names}"
            )


def columns_of(estimator: Any) -> list[str] | None:
    """The names of the columns that an estimator was fitted on, where it knows them."""
    for name in ("feature_names_in_", "feature_name_", "feature_names_", "feature_names", "feature_name"):  # the last two of boosters
        names = getattr(estimator, name, None)
        names = names() if callable(names) else names
        if names is not None and not all(re.fullmatch(f"(Column_)?{i}", str(n)) for i, n in enumerate(names)):  # as of an array
            return [str(n) for n in names]
    steps = getattr(estimator, "steps", None)
    if steps:
        return columns_of(steps[0][1])
    return None


def fitted(estimator: Any) -> None:
    """Raises ValueError for an estimator of scikit-learn's kind that is not fitted."""
    if not hasattr(estimator, "fit") or not hasattr(estimator, "get_params"):
        return
    if hasattr(estimator, "is_fitted"):  # of CatBoost
        if not estimator.is_fitted():
            raise ValueError(f"this {type(estimator).__name__} is not fitted: fit it first")
        return
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    try:
        check_is_fitted(estimator)
    except NotFittedError as e:
        raise ValueError(f"this {type(estimator).__name__} is not fitted: fit it first") from e


def _exported(estimator: Any, features: _Features, conditions: set[str]) -> Model:
    """The model, with where it decides."""
    computed: dict[str, str] = {}
    before, without = _COMPUTED.set(computed), _CONDITIONS.set(conditions)
    try:
        model = _model(estimator, features)
        threshold = _threshold(estimator, model)
    finally:
        _COMPUTED.reset(before)
        _CONDITIONS.reset(without)
    _shorten(model)
    _fits(model, computed)
    if used := {name: computed[name] for name in sorted(_read(model)) if name in computed}:
        model = {**model, "features": used}
    return model if threshold is None else {**model, "threshold": threshold}


def _shorten(model: Model) -> None:
    """Writes trees of many nodes as arrays."""
    _, body = _opened(model)
    for part in body.get("models", ()):
        _shorten(part["model"])
    trees = body.get("trees")
    if isinstance(trees, list) and _forest.count(trees) > LISTED and (arrays := _forest.of_lists(trees)) is not None:
        body["trees"] = arrays


# What the server takes of one model, docs/MODELS.md.
MAX_TREES, MAX_NODES, MAX_DEPTH, MAX_STEPS = 4096, 1 << 23, 1 << 10, 1 << 16
MAX_WEIGHTS, MAX_CLASSES, MAX_EXPRESSION = 1 << 17, 128, 16 << 10
MAX_MODELS, MAX_UNITS, MAX_LAYERS = 64, 256, 8
MAX_TEXTS, MAX_INPUTS = 1 << 10, 1 << 11
MAX_VECTORS, MAX_ROW_STEPS, MAX_NEIGHBORS, MAX_VOTERS = 1 << 20, 1 << 20, 256, 32
EXPONENTIAL_STEPS = 12  # of a row, as the server counts them


def _fits(model: Model, computed: Mapping[str, str]) -> None:
    """Raises ValueError for a model that is larger than the server takes, with the parameter that makes it smaller."""
    nodes = steps = weights = texts = lists = inputs = vectors = row_steps = 0
    sizes: list[tuple[float, float, str, str]] = []  # how much there is, how much there may be, of what, and what to change
    for body in _bodies(model):
        layers, by_column = body.get("layers", ()), body.get("weights", {}).values()
        outputs = len(body["intercepts"]) if layers or "vectors" in body else len(body.get("classes", [0]))
        units = max(outputs, *(len(of["intercepts"]) for of in layers)) if layers else 0
        if "vectors" in body:
            vectors += sum(len(_forest.decoded(body[name])) for name in ("vectors", "coefficients", "values") if name in body)
            row_steps += _row_steps(body)
            sizes += [
                (outputs, MAX_UNITS, "features behind its steps", "select fewer, or encode fewer texts"),
                (body.get("k", 0), MAX_NEIGHBORS, "neighbours", "set n_neighbors"),
                (len(body["classes"]) if body.get("votes") is True else 0, MAX_VOTERS, "classes in pairs", "put rare classes together"),
            ]
        weights += sum(map(_count, by_column)) + sum(len(of["weights"]) * len(of["intercepts"]) for of in layers)
        weights += sum(_count(of.get("weights", [])) + sum(map(len, _curves(of))) for of in body.get("models", ()))
        texts += sum(isinstance(of, dict) for of in by_column) * outputs
        sizes += [
            (len(body.get("classes", ())), MAX_CLASSES, "classes", "put rare classes together"),
            (len(body.get("models", ())), MAX_MODELS, "models in a vote", "fit fewer: n_estimators"),
            (units, MAX_UNITS, "units in a layer", "set hidden_layer_sizes"),
            (len(layers), MAX_LAYERS, "hidden layers", "set hidden_layer_sizes"),
        ]
        if "trees" not in body:
            continue
        reads, largest = _forest.reads_of(body["trees"])
        depths = _forest.depths(body["trees"])
        nodes, steps, inputs = nodes + _forest.count(body["trees"]), steps + int(depths.sum()), inputs + len(reads)
        lists += len({(column, of) for column, of, _ in reads if of is not None})
        sizes += [
            (largest, LARGEST, "as the number of a leaf", "scale the label"),
            (len(depths), MAX_TREES, "trees", "fit fewer: n_estimators, of histogram boosting max_iter, of CatBoost iterations"),
            (int(depths.max()), MAX_DEPTH, "levels in a tree", "set max_depth"),
        ]
    longest = max((len(computed[name].encode()) for name in _read(model) if name in computed), default=0)
    sizes += [
        (nodes, MAX_NODES, "nodes", "set min_samples_leaf or max_leaf_nodes, or fewer n_estimators"),
        (steps, MAX_STEPS, "levels in all trees together", "set max_depth, or fewer n_estimators"),
        (weights, MAX_WEIGHTS, "weights", "encode fewer texts: OneHotEncoder(max_categories=…) or (min_frequency=…)"),
        (texts, MAX_TEXTS, "columns of texts, counted for each class or unit", "fit on fewer of them"),
        (lists, MAX_TEXTS, "different lists of texts in splits", "set max_cat_threshold, or encode the texts before"),
        (inputs, MAX_INPUTS, "columns in trees, one whose nulls go both ways counted twice", "fit on fewer columns"),
        (vectors, MAX_VECTORS, "numbers in vectors", "fit it on fewer rows, or columns"),
        (row_steps, MAX_ROW_STEPS, "steps to take with each row", "fit it on fewer rows, or columns, or with fewer neighbours"),
        (longest, MAX_EXPRESSION, "characters to compute one feature", "select columns before the step; of linear leaves set num_leaves"),
    ]
    for has, most, what, mend in sizes:
        if has > most:
            raise ValueError(f"the model has {has:,} {what}, and the server takes {most:,}: {mend}. " + PREDICT)


def _row_steps(body: Mapping[str, Any]) -> int:
    """What the vectors of a model take a row: a step for each number, and some for each vector."""
    numbers = len(_forest.decoded(body["vectors"]))
    count = numbers // len(body["intercepts"])
    if "values" in body:
        each = 2 + 3 * int(body.get("k", 5))
    else:
        each = 2 + len(_forest.decoded(body["coefficients"])) // count
        function = body.get("function", "rbf")
        each += int(body.get("degree", 3)) if function == "poly" else 0 if function == "linear" else EXPONENTIAL_STEPS
    return numbers + each * count


def _count(weights: Weight | Weights | list[list[float]]) -> int:
    """How many numbers the weights of a column are, or those of a model in a mixture."""
    if isinstance(weights, dict):
        return sum(map(_count, weights.values()))
    return sum(map(_count, weights)) if isinstance(weights, list) else 1


def _curves(part: Part) -> list[Curve]:
    """The curves of a model in a mixture."""
    return [part["curve"]] if "curve" in part else part.get("curves", [])


def _bodies(model: Model) -> Iterable[dict[str, Any]]:
    """The models of a mixture, and what is no mixture."""
    _, body = _opened(model)
    yield body
    for part in body.get("models", ()):
        yield from _bodies(part["model"])


def _read(model: Model) -> set[str]:
    """The names of what a model reads."""
    _, body = _opened(model)
    if "models" in body:
        return set().union(*(_read(part["model"]) for part in body["models"]))
    return {
        *body.get("weights", {}),
        *_forest.columns(body.get("trees", ())),
    }


_HOLDERS = {  # estimators that predict as one within does, by the member that has it
    "FrozenEstimator": "estimator",
    "FixedThresholdClassifier": "estimator_",
    "TunedThresholdClassifierCV": "estimator_",
    "RANSACRegressor": "estimator_",
    "RFE": "estimator_",
    "RFECV": "estimator_",
    "SelfTrainingClassifier": "estimator_",
}


def _unwrapped(estimator: Any, features: _Features) -> tuple[Any, _Features]:
    """The estimator within pipelines, searches and what only holds it, and the features that it sees."""
    while True:
        # A pipeline does not always know it, as where its first step lets all through: the estimator that is its last step does.
        wants = getattr(estimator, "n_features_in_", len(features))
        if type(estimator).__module__.split(".")[0] == "catboost":
            wants = len(estimator.feature_names_)  # fitted again, it keeps the number of its first fit
        if wants != len(features):
            raise ValueError(f"the model was fitted on {wants} features, and {len(features)} are named")
        name = type(estimator).__name__
        if hasattr(estimator, "steps"):
            for _, step in estimator.steps[:-1]:
                features = _transformed(step, features)
        elif name.startswith("RFE"):
            features = [f for f, chosen in zip(features, estimator.get_support(), strict=True) if chosen]
        if (within := _within(estimator)) is None:
            return estimator, features
        estimator = within


def _within(estimator: Any) -> Any:
    """The estimator that a pipeline, a search or a holder predicts with; None of all others."""
    if hasattr(estimator, "steps"):
        return estimator.steps[-1][1]
    if hasattr(estimator, "best_estimator_"):
        return estimator.best_estimator_
    held = _HOLDERS.get(type(estimator).__name__)
    return None if held is None else getattr(estimator, held)


def _model(estimator: Any, features: _Features) -> Model:
    estimator, features = _unwrapped(estimator, features)
    module = type(estimator).__module__.split(".")[0]
    if module == "xgboost":
        return _xgboost(estimator, features)
    if module == "lightgbm":
        return _lightgbm(estimator, features)
    if module == "catboost":
        return _catboost(estimator, features)
    name = type(estimator).__name__
    several = getattr(estimator, "n_outputs_", 1) != 1 and not name.startswith("MLP")  # of a network they are its classes
    if several or name.startswith(("MultiOutput", "ClassifierChain", "RegressorChain")):
        raise ValueError(f"{name} of several targets is not exported: fit one for each. " + PREDICT)
    if name in _MIXTURES:
        return _MIXTURES[name](estimator, features)
    if name in ("MLPClassifier", "MLPRegressor"):
        return _network(estimator, features)
    if (
        name in _KERNELS
        and estimator.kernel in _KERNEL_NAMES
        and (len(getattr(estimator, "classes_", ())) > 2 or not hasattr(estimator, "coef_"))
    ):
        return _kernel(estimator, features)
    if name in ("KNeighborsClassifier", "KNeighborsRegressor"):
        return _neighbors(estimator, features)
    if name in _BAYES:
        return _bayes(estimator, features)
    if name in ("DummyClassifier", "DummyRegressor"):
        return _constant(estimator)
    if name == "OneVsRestClassifier":
        return _against_rest(estimator, features)
    if name == "TransformedTargetRegressor":
        return _of_target(estimator, features)
    if name in LIKELIHOODS:
        return _likelihoods(estimator, features)
    if hasattr(estimator, "coef_") and len(getattr(estimator, "feature_importances_", [])) == 0:
        return _linear(estimator, features)
    return _sklearn_trees(estimator, features)


_THRESHOLDS = ("FixedThresholdClassifier", "TunedThresholdClassifierCV")


def _threshold(e: Any, model: Model) -> float | None:
    """The number above which a prediction of two classes says the second one; None where that is one half."""
    name, inner = type(e).__name__, _within(e)
    if inner is not None and name not in _THRESHOLDS:
        return _threshold(inner, model)
    if len(getattr(e, "classes_", ())) != 2:
        return None
    if name in _THRESHOLDS:
        margin = e.response_method == "decision_function" or not hasattr(inner, "predict_proba")
        at = getattr(e, "best_threshold_", None)
        if at is None:
            at = (0.0 if margin else 0.5) if e.threshold == "auto" else e.threshold
        wanted = getattr(e, "pos_label", None)
        if wanted is None and hasattr(e, "_curve_scorer"):
            wanted = e._curve_scorer._get_pos_label()
        if wanted is not None and wanted != e.classes_[1]:
            raise ValueError(f"a threshold for {wanted!r}, the first of the classes, is not exported: make it the second. " + PREDICT)
        if margin and hasattr(inner, "predict_proba"):  # the model's prediction is a probability
            if _opened(model)[1].get("link") != "logit" or _margin_apart(inner):
                raise ValueError("a threshold of a decision function is exported where it is that of the probability. " + PREDICT)
            at = 1 / (1 + math.exp(-at))
        return math.nextafter(float(at), -math.inf)  # from it on, the library says yes
    if name == "VotingClassifier" and e.voting == "hard":
        return float(np.sum([part["weight"] for part in _opened(model)[1]["models"]])) / 2
    if name == "GradientBoostingClassifier":
        return math.nextafter(0.5, 0)  # it says yes at a score of 0
    if hasattr(e, "decision_function") and not hasattr(e, "predict_proba"):
        return 0.0  # of a margin
    return None


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


class _Property:
    """What is known of a feature beside its number."""

    sparse = False  # it comes from a sparse matrix, of which XGBoost takes zeros for missing
    gone = False  # some of its numbers count as missing for the estimator


class _Number(_Property):
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


class _Text(_Property):
    """A text column as numbers: values by text, other for every other text, null where there is none (None: as other)."""

    def __init__(self, column: str, values: dict[str, float], other: float = 0.0, null: float | None = None):
        self.column, self.values, self.other, self.null = column, values, other, other if null is None else null

    def then(self, *steps: _Step) -> _Text:
        value = _Number("", steps).value
        return _Text(self.column, {t: value(v) for t, v in self.values.items()}, value(self.other), value(self.null))


class _Filled(_Property):
    """A text column whose nulls count as a text, before it is encoded."""

    def __init__(self, column: str, null: str):
        self.column, self.null = column, null


class _Null(_Property):
    """Whether a column of numbers is null, as a number: yes where it is, else no."""

    def __init__(self, column: str, yes: float = 1.0, no: float = 0.0):
        self.column, self.yes, self.no = column, yes, no

    def then(self, *steps: _Step) -> _Null:
        value = _Number("", steps).value
        return _Null(self.column, value(self.yes), value(self.no))


_COMPUTED: ContextVar[dict[str, str]] = ContextVar("computed")  # row expressions by name, of the model that is being exported
_CONDITIONS: ContextVar[set[str]] = ContextVar("conditions")  # columns of true and false, which expressions do not take for numbers


def _compute(expression: Expression) -> _Number:
    """A number that is computed of columns. Its name is its expression, or a digest of a long one, behind a sign."""
    text = str(expression)
    name = "= " + (text if len(text) <= 60 else hashlib.sha256(text.encode()).hexdigest()[:16])
    _COMPUTED.get()[name] = text
    return _Number(name)


def _expression(f: _Feature) -> Expression:
    """A feature as a row expression."""
    if isinstance(f, _Filled):
        _plain(f, "a step that computes")
    x = column(f.column)
    if isinstance(f, _Null):
        return where(x.is_null(), f.yes, f.no)
    if f.column in _CONDITIONS.get():
        x = where(x.is_null(), None, where(x, 1.0, 0.0))
    if isinstance(f, _Text):
        value: Expression | float = f.other
        for number in sorted({v for v in f.values.values() if v != f.other}):
            value = where(x.is_in([t for t, v in sorted(f.values.items()) if v == number]), number, value)
        if f.null != f.other:
            value = where(x.is_null(), f.null, value)
        return value if isinstance(value, Expression) else where(x.is_null(), value, value)
    if text := _COMPUTED.get().get(f.column):
        x = Expression(text)
    before = x
    for op, by in f.steps:
        x = x - by if op == "-" else x + by if op == "+" else x / by if op == "/" else x * by
    return x if f.null is None else where(before.is_null(), f.null, x)


_Feature: TypeAlias = _Number | _Text | _Filled | _Null
_Features: TypeAlias = list[_Feature]


def _transformed(step: Any, features: _Features) -> _Features:
    """The features after a fitted step of scikit-learn."""
    after = _stepped(step, features)
    if hasattr(step, "steps"):  # a pipeline: as its last step left them
        return after
    return [_with(f, sparse=_makes_sparse(step, features)) for f in after]


def _makes_sparse(step: Any, features: _Features) -> bool:
    """Whether what a step makes is a sparse matrix."""
    name = type(step).__name__
    if hasattr(step, "sparse_output_"):  # of a ColumnTransformer, by how many zeros there were
        return bool(step.sparse_output_)
    if name == "FeatureUnion":
        return any(_makes_sparse(s, features) for _, s in step.transformer_list if s not in ("drop", "passthrough"))
    if name == "OneHotEncoder":
        return bool(step.sparse_output)
    if name == "KBinsDiscretizer":
        return bool(step.encode == "onehot")
    return name not in ("OrdinalEncoder", "TargetEncoder") and name not in COMPUTING and any(f.sparse for f in features)


def _with(f: _Feature, **more: bool) -> _Feature:
    """The feature with other properties. It is another one: several models of a vote read the same features."""
    other = copy.copy(f)
    for name, value in more.items():
        setattr(other, name, value)
    return other


def _stepped(step: Any, features: _Features) -> _Features:
    name = type(step).__name__
    if step == "passthrough" or step is None or (name == "FunctionTransformer" and step.func is None):
        return features
    if hasattr(step, "steps"):
        for _, s in step.steps:
            features = _transformed(s, features)
        return features
    if name == "ColumnTransformer":
        return _by_columns(step, features)
    if name == "FeatureUnion":
        return [f for _, s in step.transformer_list if s != "drop" for f in _transformed(s, features)]
    if name == "SimpleImputer":
        if len(step.statistics_) != len(features) or not _is_null(step.missing_values):
            raise ValueError(f"SimpleImputer is exported for nulls, not for {step.missing_values!r}, and without columns that are all null")
        indicated = [features[i] for i in step.indicator_.features_] if step.add_indicator else []
        return [*(_imputed(f, v) for f, v in zip(features, step.statistics_, strict=True)), *(_indicator(f) for f in indicated)]
    if name in ("OneHotEncoder", "OrdinalEncoder"):
        return _encoded(step, features)
    if name == "TargetEncoder":
        return _by_target(step, features)
    if hasattr(step, "get_support"):  # a selection of features
        return [f for f, chosen in zip(features, step.get_support(), strict=True) if chosen]
    if name in COMPUTING:
        if any(f.sparse for f in features) and name != "TruncatedSVD":
            raise ValueError(f"{name} behind a sparse matrix is not exported: make it dense. " + PREDICT)
        return [_compute(e) for e in COMPUTING[name](step, [_expression(f) for f in features])]

    def by(op: _Operator, values: Any, i: int, used: bool = True) -> list[_Step]:
        return [(op, float(values[i]))] if used else []

    each = range(len(features))
    if name == "StandardScaler":
        steps = [by("-", step.mean_, i, step.with_mean) + by("/", step.scale_, i, step.with_std) for i in each]
    elif name == "MinMaxScaler":
        steps = [by("*", step.scale_, i) + by("+", step.min_, i) for i in each]
    elif name == "MaxAbsScaler":
        steps = [by("/", step.scale_, i) for i in each]
    elif name == "RobustScaler":
        steps = [by("-", step.center_, i, step.with_centering) + by("/", step.scale_, i, step.with_scaling) for i in each]
    else:
        raise ValueError(
            f"a step {name} is not exported; exported are selections, SimpleImputer, StandardScaler, MinMaxScaler, MaxAbsScaler, "
            "RobustScaler, OneHotEncoder, OrdinalEncoder, TargetEncoder, ColumnTransformer, FeatureUnion, Pipeline, "
            f"{', '.join(COMPUTING)}. " + PREDICT
        )
    after: _Features = [_plain(f, name) if isinstance(f, _Filled) else f.then(*s) for f, s in zip(features, steps, strict=True)]
    if not getattr(step, "clip", False):
        return after
    low, high = getattr(step, "feature_range", (-1.0, 1.0))
    return [_compute(_expression(f).clamp(float(low), float(high))) for f in after]


PREDICT = (
    "Other models can be asked about by their predictions: upload them as a column, or send them row by row to a holdout that was "
    "created with features=public (docs/MODELS.md, Models that cannot be exported)"
)


def _plain(f: _Feature, name: str) -> NoReturn:
    raise ValueError(f"{name} of the text column {f.column} before it is encoded is not exported")


def _is_null(v: Any) -> bool:
    return v is None or (isinstance(v, (float, np.floating)) and math.isnan(v))


def _indicator(f: _Feature) -> _Feature:
    if not isinstance(f, _Number) or f.null is not None:
        raise ValueError(f"an indicator of nulls is exported of a column of numbers, and {f.column} is none. " + PREDICT)
    return _Null(f.column)


def _imputed(f: _Feature, by: Any) -> _Feature:
    if isinstance(by, str):
        if not isinstance(f, (_Number, _Filled)) or (isinstance(f, _Number) and f.steps):
            raise ValueError(f"a text for nulls of {f.column}, which is a number, is not exported")
        return f if isinstance(f, _Filled) else _Filled(f.column, by)
    if _is_null(by):
        raise ValueError(f"{f.column} is null in all rows that the imputer saw; leave it out")
    if isinstance(f, _Filled):
        _plain(f, "SimpleImputer")
    return f.impute(by) if isinstance(f, _Number) else f


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
        if isinstance(f, _Number) and all(isinstance(c, (int, float, np.number, np.bool_)) for c in step.categories_[i]):
            if all(isinstance(c, (bool, np.bool_)) for c in step.categories_[i]):
                _CONDITIONS.get().add(f.column)
            out += _encoded_number(step, i, f)
            continue
        categories: list[str | None] = [None if _is_null(c) else c for c in step.categories_[i]]
        if not all(c is None or isinstance(c, str) for c in categories):
            raise ValueError(f"the categories of {f.column} are of several kinds; make it a column of texts, or leave it a number")
        fill = f.null if isinstance(f, _Filled) and None not in categories else None
        ordinary = any(c is None for c in step.categories_[i])  # None is as other categories; NaN is apart, and what imputers fill
        if ordinary and any(c is not None and _is_null(c) for c in step.categories_[i]):
            raise ValueError(f"{f.column} has None and NaN, which are one null in a table; make them one")
        groups = [[k] for k in range(len(categories))]  # of categories that share a feature, or a code
        rare = getattr(step, "infrequent_categories_", None)
        unknown: list[int] = []  # the place of the group in which other texts are
        if rare is not None and rare[i] is not None:
            counted = [k for k, c in enumerate(categories) if one_hot or ordinary or c is not None]  # of codes, NaN is apart
            often = [k for k in counted if not any(categories[k] == r or (categories[k] is None and _is_null(r)) for r in rare[i])]
            groups = [[k] for k in often] + [[k for k in counted if k not in often]]
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
        apart = None in categories and not ordinary
        if _is_null(other) or (apart and _is_null(missing)):
            raise ValueError(
                f"nulls that stay nulls behind OrdinalEncoder are not exported; give {f.column} an unknown_value and an "
                "encoded_missing_value, such as -1 and -2"
            )
        feature = _coded(f.column, {c: float(g) for c, g in at.items()}, fill, float(other))
        if apart:
            feature.null = float(missing)
        out.append(feature)
    return out


def _encoded_number(step: Any, i: int, f: _Number) -> _Features:
    """The encoding of a number: what is compared with each category. True and false count as 1 and 0."""
    categories = [float(c) for c in step.categories_[i]]
    one_hot = type(step).__name__ == "OneHotEncoder"
    rare = getattr(step, "infrequent_categories_", None)
    if any(map(math.isnan, categories)) or (rare is not None and rare[i] is not None):
        raise ValueError(f"{f.column}, a number, is encoded with nulls or rare ones as a category; make it a column of texts. " + PREDICT)
    x = _expression(f)
    if one_hot:
        dropped = None if step.drop_idx_ is None else step.drop_idx_[i]
        return [_compute(where(x == c, 1.0, 0.0)) for k, c in enumerate(categories) if dropped is None or k != dropped]
    unknown = step.unknown_value if step.handle_unknown == "use_encoded_value" else -1.0  # else the library refuses such numbers
    if _is_null(unknown):
        raise ValueError(
            f"numbers of {f.column} that become nulls behind OrdinalEncoder are not exported; give an unknown_value, such as -1"
        )
    code: Expression | float = float(unknown)
    for k, c in enumerate(categories):
        code = where(x == c, float(k), code)
    return [_compute(cast(Expression, code))]


def _by_target(step: Any, features: _Features) -> _Features:
    """Text columns as the means of the label: of a label with several classes, as one for each."""
    out: _Features = []
    several = len(step.encodings_) // len(features)
    for k, encoding in enumerate(step.encodings_):
        f, mean = features[k // several], float(np.ravel(step.target_mean_)[k % several])
        categories = step.categories_[k // several]
        if not all(_is_null(c) or isinstance(c, str) for c in categories) or not isinstance(f, (_Number, _Filled)):
            raise ValueError(f"TargetEncoder is exported of columns of texts, and {f.column} is none; make it one. " + PREDICT)
        codes = {None if _is_null(c) else c: float(v) for c, v in zip(categories, encoding, strict=True)}
        out.append(_coded(f.column, codes, f.null if isinstance(f, _Filled) and None not in codes else None, mean))
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
    name = type(e).__name__
    if not hasattr(e, "intercept_"):
        raise ValueError(f"{name} is not exported. " + PREDICT)
    weights = np.atleast_2d(e.coef_.toarray() if hasattr(e.coef_, "toarray") else e.coef_)
    intercepts = np.array(np.broadcast_to(np.atleast_1d(e.intercept_), len(weights)), dtype=float)
    if hasattr(e, "_x_mean"):  # of partial least squares
        intercepts = intercepts - weights @ e._x_mean
    if not hasattr(e, "classes_"):
        if len(weights) > 1:
            raise ValueError(f"{name} of several targets is not exported: fit one for each. " + PREDICT)
        return _weighted(features, weights, intercepts, _linked(getattr(e, "_base_loss", None)))
    probable = name.startswith(("LogisticRegression", "LinearDiscriminant"))
    if len(weights) == 1:
        if getattr(e, "loss", None) == "modified_huber":
            model = _weighted(features, weights, intercepts, "identity")
            return {"mixture": {"models": [{"model": model, "curve": [[-1.0, 0.0], [1.0, 1.0]]}]}}
        return _weighted(features, weights, intercepts, "logit" if probable or getattr(e, "loss", None) == "log_loss" else "identity")
    if name == "SGDClassifier" and hasattr(e, "predict_proba"):  # one class against the rest, as shares
        said: Curve = {"slope": 1.0, "intercept": 0.0} if e.loss == "log_loss" else [[-1.0, 0.0], [1.0, 1.0]]
        model = _weighted(features, weights, intercepts, "identity", _classes(e))
        return {"mixture": {"classes": _classes(e), "models": [{"model": model, "curves": [said] * len(weights), "shares": True}]}}
    if (not probable and hasattr(e, "predict_proba")) or len(weights) != len(e.classes_):
        raise ValueError(f"{name} of several classes is not exported; LogisticRegression is. " + PREDICT)
    return _weighted(features, weights, intercepts, "softmax" if probable else "identity", _classes(e))


def _weighted(features: _Features, weights: NDArray[Any], intercepts: _Scores, link: Link, classes: list[Class] | None = None) -> Model:
    """A linear model of one output, or of one for each class."""
    by_column, impute = _by_column(features, weights, intercepts)
    if classes is None:
        linear: Linear = {"intercept": float(intercepts[0]), "weights": {c: _one(w) for c, w in by_column.items()}, "link": link}
        if impute:
            linear["impute"] = impute
        return {"linear": linear}
    softmax: Softmax = {"classes": classes, "intercepts": intercepts.tolist(), "weights": {c: _lists(w) for c, w in by_column.items()}}
    if link != "softmax":
        softmax["link"] = link
    if impute:
        softmax["impute"] = impute
    return {"softmax": softmax}


def _linked(loss: Any) -> Link:
    """The link of a loss of scikit-learn's generalised linear models and boosting."""
    name = type(getattr(loss, "link", None)).__name__
    links: dict[str, Link] = {"NoneType": "identity", "IdentityLink": "identity", "LogLink": "log", "LogitLink": "logit"}
    if name not in links:
        raise ValueError(f"a model with the link {name} is not exported. " + PREDICT)
    return links[name]


_BAYES = ("MultinomialNB", "ComplementNB", "BernoulliNB")


def _likelihoods(e: Any, features: _Features) -> Model:
    """A model of a logarithm of a likelihood for each class, which is computed of the columns."""
    of = LIKELIHOODS[type(e).__name__](e, [_expression(f) for f in features])
    if len(of) == 2:
        return _weighted([_compute(of[1] - of[0])], np.ones((1, 1)), np.zeros(1), "logit")
    return _weighted([_compute(x) for x in of], np.eye(len(of)), np.zeros(len(of)), "softmax", _classes(e))


def _bayes(e: Any, features: _Features) -> Model:
    """Naive Bayes whose logarithms are linear."""
    weights, intercepts = np.array(e.feature_log_prob_), np.array(e.class_log_prior_)
    if type(e).__name__ == "ComplementNB":
        intercepts = intercepts if len(e.classes_) == 1 else np.zeros(len(e.classes_))
    elif type(e).__name__ == "BernoulliNB":
        if e.binarize is not None and not all(isinstance(f, _Text) for f in features):
            raise ValueError("BernoulliNB is exported of encoded texts, or with binarize=None of columns that are 0 and 1. " + PREDICT)
        if e.binarize is not None:
            features = [
                _Text(
                    f.column,
                    {t: float(v > e.binarize) for t, v in f.values.items()},
                    float(f.other > e.binarize),
                    float(f.null > e.binarize),
                )
                for f in features
                if isinstance(f, _Text)
            ]
        absent = np.log(1 - np.exp(weights))
        weights, intercepts = weights - absent, intercepts + absent.sum(axis=1)
    if len(e.classes_) == 2:
        return _weighted(features, weights[1:] - weights[:1], intercepts[1:] - intercepts[:1], "logit")
    return _weighted(features, weights, intercepts, "softmax", _classes(e))


def _by_column(features: _Features, weights: NDArray[Any], intercepts: _Scores) -> tuple[_ByColumn, dict[str, float | str]]:
    """The weights by column, in the column's own units; what they are off by is added to intercepts."""
    out: _ByColumn = {}
    impute: dict[str, float | str] = {}
    nulls: dict[str, _Scores] = {}
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
        elif isinstance(f, _Null):
            intercepts += w * f.no
            nulls[f.column] = nulls.get(f.column, 0.0) + w * (f.yes - f.no)
        else:
            _plain(f, "a linear model")
    for name, w in nulls.items():  # what a null adds is what its number adds
        by, filled = out.get(name), impute.get(name, 0.0)
        if not isinstance(by, np.ndarray) or len(by) != 1 or by[0] == 0 or isinstance(filled, str):
            raise ValueError(f"an indicator of nulls is exported of a column with a weight, and for one output; {name} is none. " + PREDICT)
        impute[name] = float(filled + w[0] / by[0])
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
    links: dict[str, Link] = {"identity": "identity", "logistic": "logit", "exp": "log", "softmax": "softmax"}
    link = links.get(e.out_activation_)
    if not layers or link is None or (e.n_outputs_ > 1 and link != "softmax"):
        raise ValueError("a network is exported with a hidden layer, and with one output or one for each class. " + PREDICT)
    if link == "softmax":
        body["classes"] = _classes(e)
    else:
        body["link"] = link
    return {"network": body}


# Vectors: kernels of support vectors, and nearest neighbours

_KERNELS = ("SVC", "NuSVC", "SVR", "NuSVR", "KernelRidge")
_KERNEL_NAMES = {"rbf": "rbf", "linear": "linear", "poly": "poly", "polynomial": "poly", "sigmoid": "sigmoid", "laplacian": "laplacian"}


def _dense(matrix: Any) -> NDArray[np.float64]:
    return np.asarray(matrix.toarray() if hasattr(matrix, "toarray") else matrix, dtype=float)


def _space(features: _Features, vectors: Any) -> Space:
    """Rows and vectors as an estimator sees them, a feature to each axis."""
    intercepts = np.zeros(len(features))
    by_column, impute = _by_column(features, np.eye(len(features)), intercepts)
    space: Space = {
        "weights": {c: _lists(w) for c, w in by_column.items()},
        "intercepts": intercepts.tolist(),
        "vectors": _forest.encoded(_dense(vectors).ravel(), "f32", "f64"),
    }
    if impute:
        space["impute"] = impute
    return space


def _kernel(e: Any, features: _Features) -> Model:
    """Support vectors, or kernel ridge regression."""
    name = type(e).__name__
    if name == "KernelRidge":
        vectors, coefficients, base = _dense(e.X_fit_), _dense(e.dual_coef_), 0.0
        if coefficients.ndim > 1 and coefficients.shape[1] > 1:
            raise ValueError(f"{name} of several targets is not exported: fit one for each. " + PREDICT)
        gamma = 1 / vectors.shape[1] if e.gamma is None else float(e.gamma)
    else:
        vectors, coefficients, base = _dense(e.support_vectors_), _dense(e.dual_coef_), float(e.intercept_[0])
        gamma = float(e._gamma)
    if e.degree != int(e.degree):
        raise ValueError(f"{name} with degree={e.degree} is not exported: make it a whole number. " + PREDICT)
    body: dict[str, Any] = {
        "function": _KERNEL_NAMES[e.kernel],
        "gamma": gamma,
        "coef0": float(e.coef0),
        "degree": int(e.degree),
        "base": base,
    }
    classes = getattr(e, "classes_", ())
    if len(getattr(e, "_probA", ())) > 0:
        raise ValueError(
            f"probabilities of {name} are found step by step, to a few thousandths, and not exported: fit without probability=True, "
            "or within CalibratedClassifierCV(…, ensemble=False). " + PREDICT
        )
    if len(classes) > 2:
        if e.break_ties:
            raise ValueError(f"{name} of several classes with break_ties=True is not exported. " + PREDICT)
        coefficients = _pairs(coefficients, e.n_support_)
        if e.kernel == "linear":  # each pair is one vector
            coefficients, vectors = np.eye(len(coefficients)), coefficients @ vectors
        body.update({"classes": _classes(e), "votes": True, "base": np.asarray(e.intercept_, dtype=float).tolist()})
    body.update(_space(features, vectors))
    body["coefficients"] = _forest.encoded(coefficients.ravel(), "f32", "f64")
    return {"kernel": cast(Kernel, body)}


def _pairs(coefficients: NDArray[Any], counts: Sequence[int]) -> NDArray[Any]:
    """The coefficients of each pair of classes, of all vectors: a class's vectors have one row for each other class."""
    ends = np.cumsum(counts)
    of = [slice(end - n, end) for end, n in zip(ends, counts, strict=True)]
    pairs = []
    for a in range(len(counts)):
        for b in range(a + 1, len(counts)):
            pair = np.zeros(coefficients.shape[1])
            pair[of[a]], pair[of[b]] = coefficients[b - 1, of[a]], coefficients[a, of[b]]
            pairs.append(pair)
    return np.array(pairs)


_METRICS = {"euclidean": "euclidean", "l2": "euclidean", "manhattan": "manhattan", "l1": "manhattan", "cityblock": "manhattan"}


def _neighbors(e: Any, features: _Features) -> Model:
    name = type(e).__name__
    metric = _METRICS.get(e.effective_metric_)
    if metric is None or e.weights not in ("uniform", "distance"):
        raise ValueError(
            f"{name} is exported with the metric euclidean or manhattan, and weights uniform or distance; "
            f"not with {e.effective_metric_} and {e.weights}. " + PREDICT
        )
    values = np.asarray(e._y, dtype=float)
    if values.ndim > 1 and values.shape[1] > 1:
        raise ValueError(f"{name} of several targets is not exported: fit one for each. " + PREDICT)
    body: Neighbors = {
        **_space(features, e._fit_X),
        "k": int(e.n_neighbors),
        "metric": metric,
        "weighting": e.weights,
        "values": _forest.encoded(values.ravel(), "f32", "f64"),
    }
    if len(getattr(e, "classes_", ())) > 2:
        body["classes"] = _classes(e)
    return {"neighbors": body}


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
        return {"mixture": {"models": parts, "classes": classes, "link": link}}
    return {"mixture": {"models": parts, "base": float(base), "link": link}}


def _opened(model: Model) -> tuple[str, dict[str, Any]]:
    """The one member of a model, of whichever kind."""
    ((kind, body),) = ((k, v) for k, v in cast(dict[str, dict[str, Any]], model).items() if k not in ("threshold", "features"))
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
        body["models"] = [m if "weights" in m else {**m, "model": _named(m["model"], classes)} for m in body["models"]]
    return _closed(kind, body)


def _raw(model: Model) -> Model:
    """The model whose prediction is the score."""
    kind, body = _opened(model)
    return _closed(kind, {**body, "link": "identity"})


def _margin_apart(e: Any) -> bool:
    """Whether a decision function is not the score of which the probability is the logistic function."""
    if (within := _within(e)) is not None:
        return _margin_apart(within)
    name, loss = type(e).__name__, getattr(e, "loss", None)
    return name == "BaggingClassifier" or loss == "modified_huber" or (name == "GradientBoostingClassifier" and loss == "exponential")


def _margin(e: Any, features: _Features) -> Model:
    """The model whose predictions are the decision function, of two classes or of several; without one, the probabilities."""
    if not hasattr(e, "decision_function"):
        return _model(e, features)
    e, features = _unwrapped(e, features)
    name, classes = type(e).__name__, _classes(e)
    several = len(classes) > 2
    if name == "BaggingClassifier":  # the mean of margins
        models = [_margin(m, [features[i] for i in chosen]) for m, chosen in zip(e.estimators_, e.estimators_features_, strict=True)]
        return _mixture(models, [1 / len(models)] * len(models), classes)
    if several and name in _KERNELS:
        raise ValueError(f"the decision function of {name} is exported of two classes. " + PREDICT)
    if several and name == "AdaBoostClassifier":  # its probabilities are those of a share of the scores
        return _mixture([_raw(_model(e, features))], [len(classes) - 1], classes)
    if not _margin_apart(e):
        return _raw(_model(e, features))
    if name == "GradientBoostingClassifier":  # its probability is that of twice the score
        return _mixture([_raw(_model(e, features))], [0.5])
    return _weighted(features, np.atleast_2d(e.coef_), np.array(e.intercept_, dtype=float), "identity", classes if several else None)


def _yes(e: Any, features: _Features, no: float = 0.0) -> Part:
    """A model of two classes as a part of a mixture: 1 where its predict says the second one, else no."""
    if len(e.classes_) != 2:
        raise ValueError(f"votes of {type(e).__name__} are exported where there are two classes. " + PREDICT)
    model = _model(e, features)
    at = _threshold(e, model)
    at = 0.5 if at is None else at
    return {"model": model, "curve": [[at, no], [math.nextafter(at, math.inf) if abs(at) > 1e-100 else at + 1e-150, 1.0]]}


def _vote(e: Any, features: _Features) -> Model:
    weights = e.weights if e.weights is not None else [1] * len(e.estimators)
    used = [w for (_, was), w in zip(e.estimators, weights, strict=False) if not isinstance(was, str) or was != "drop"]
    if hasattr(e, "classes_") and e.voting != "soft":
        _no_rounded_ties(used)
        return {"mixture": {"models": [{**_yes(m, features), "weight": float(w)} for m, w in zip(e.estimators_, used, strict=True)]}}
    models = [_model(m, features) for m in e.estimators_]
    return _mixture(models, np.asarray(used) / np.sum(used), _classes(e) if hasattr(e, "classes_") else None)


COUNTED = 16  # votes of which each outcome is looked at


def _no_rounded_ties(weights: Sequence[float]) -> None:
    """Raises ValueError where rounding decides between two equal sides: the library adds up each, and the export compares one with half."""
    if all(float(w).is_integer() for w in weights):
        return
    told = len(weights) > COUNTED
    if not told:
        outcomes = np.arange(1 << len(weights))
        yes, no = np.zeros(len(outcomes)), np.zeros(len(outcomes))
        for i, w in enumerate(weights):  # one after the other, as both do
            says = outcomes >> i & 1
            yes, no = yes + w * says, no + w * (1 - says)
        told = bool(((yes > no) != (yes > float(np.sum(weights)) / 2)).any())
    if told:
        raise ValueError("weights of votes that are fractions may differ by rounding only: give whole numbers")


def _bag(e: Any, features: _Features) -> Model:
    if hasattr(e, "classes_") and not hasattr(e.estimators_[0], "predict_proba"):
        votes = [_yes(m, [features[i] for i in chosen]) for m, chosen in zip(e.estimators_, e.estimators_features_, strict=True)]
        return {"mixture": {"models": [{**v, "weight": 1 / len(votes)} for v in votes]}}
    models = [_model(m, [features[i] for i in chosen]) for m, chosen in zip(e.estimators_, e.estimators_features_, strict=True)]
    return _mixture(models, [1 / len(models)] * len(models), _classes(e) if hasattr(e, "classes_") else None)


def _adaptive(e: Any, features: _Features) -> Model:
    """AdaBoostClassifier: a sum of votes, each with its model's weight."""
    several, total = len(e.classes_) > 2, float(np.sum(e.estimator_weights_))
    weights = [2 * float(w) / total for w in e.estimator_weights_[: len(e.estimators_)]]  # it counts both classes' votes
    if not all(type(m).__name__ in _TREES for m in e.estimators_):
        if several:
            raise ValueError("AdaBoostClassifier of several classes is exported of trees. " + PREDICT)
        votes = [{**_yes(m, features, -1.0), "weight": w} for m, w in zip(e.estimators_, weights, strict=True)]
        return {"mixture": {"models": cast(list[Part], votes), "link": "logit"}}
    trees = []
    for m, w in zip(e.estimators_, weights, strict=True):
        at = [int(np.flatnonzero(e.classes_ == c)[0]) for c in m.classes_]  # a model may have seen fewer classes

        def leaf(value: NDArray[np.float64], at: list[int] = at, w: float = w) -> Leaf:
            says = at[int(np.argmax(value[0]))]
            if not several:
                return w if says == 1 else -w
            others = len(e.classes_) - 1
            return [w / 2 / others * (1.0 if k == says else -1 / others) for k in range(others + 1)]

        trees.append(_sklearn_tree(m.tree_, features, leaf))
    if several:
        return {"trees": {"trees": trees, "classes": _classes(e), "link": "softmax"}}
    return {"trees": {"trees": trees, "link": "logit"}}


def _calibrated(e: Any, features: _Features) -> Model:
    kinds = {type(c.calibrators[0]).__name__ for c in e.calibrated_classifiers_}
    if not kinds <= {"_SigmoidCalibration", "IsotonicRegression", "_TemperatureScaling"}:
        raise ValueError(f"a calibration by {', '.join(kinds)} is not exported. " + PREDICT)
    if len(e.classes_) > 2:
        return _calibrated_classes(e, features)
    models = []
    for c in e.calibrated_classifiers_:
        model, calibrator = _margin(c.estimator, features), c.calibrators[0]
        if "_TemperatureScaling" in kinds:
            _has_margin(c.estimator)
            models.append(_mixture([model], [2 * float(calibrator.beta_)], link="logit"))
        elif "IsotonicRegression" in kinds:
            models.append(_through(model, calibrator))
        else:
            models.append(_mixture([model], [-calibrator.a_], base=-calibrator.b_, link="logit"))
    if len(models) == 1:
        return models[0]
    if kinds == {"IsotonicRegression"}:  # one mixture of all, each through its curve
        return {"mixture": {"models": [{**m["mixture"]["models"][0], "weight": 1 / len(models)} for m in models]}}
    return _mixture(models, [1 / len(models)] * len(models))


def _has_margin(e: Any) -> None:
    if not hasattr(e, "decision_function"):
        raise ValueError("a temperature is exported for models with a decision function. " + PREDICT)


def _calibrated_classes(e: Any, features: _Features) -> Model:
    """The mean of calibrations of several classes: of each class the margin through its curve, as shares of their sum."""
    classes, parts = _classes(e), list[Part]()
    for c in e.calibrated_classifiers_:
        part: Part = {"weight": 1 / len(e.calibrated_classifiers_)}
        model, calibrators = _named(_margin(c.estimator, features), classes), c.calibrators
        if type(calibrators[0]).__name__ == "_TemperatureScaling":
            _has_margin(c.estimator)
            part["model"] = _mixture([model], [float(calibrators[0].beta_)], classes, link="softmax")
        else:
            part["model"], part["shares"] = model, True
            part["curves"] = [
                _isotonic(k) if hasattr(k, "X_thresholds_") else {"slope": -float(k.a_), "intercept": -float(k.b_)} for k in calibrators
            ]
        parts.append(part)
    return {"mixture": {"models": parts, "classes": classes}}


def _isotonic(of: Any) -> Curve:
    """The points of an isotonic regression: it is linear between its thresholds, and constant beyond."""
    x, y = (np.asarray(v, dtype=float).tolist() for v in (of.X_thresholds_, of.y_thresholds_))
    if len(x) == 1:
        x, y = [x[0], x[0] + 1], [y[0], y[0]]
    return [list(p) for p in zip(x, y, strict=True)]


def _through(model: Model, isotonic: Any) -> Model:
    """The model's predictions through an isotonic regression."""
    return {"mixture": {"models": [{"model": model, "curve": _isotonic(isotonic)}]}}


def _stack(e: Any, features: _Features) -> Model:
    final = e.final_estimator_
    logistic = hasattr(e, "classes_")
    several = logistic and len(e.classes_) > 2
    if (
        not hasattr(final, "coef_")
        or len(np.atleast_2d(final.coef_)) != (len(e.classes_) if several else 1)
        or e.passthrough
        or (logistic and not type(final).__name__.startswith("LogisticRegression"))
    ):
        raise ValueError(
            "a stack is exported with a linear final_estimator, of classes a logistic regression, without passthrough. " + PREDICT
        )
    if logistic and "predict" in e.stack_method_:
        raise ValueError("a stack is exported of probabilities or decision functions; leave stack_method as it is")
    said = [_margin if method == "decision_function" else _model for method in e.stack_method_]
    models = [of(m, features) for of, m in zip(said, e.estimators_, strict=True)]
    if several:
        return _stacked_classes(e, models)
    weights, intercept = np.ravel(final.coef_), float(np.ravel(final.intercept_)[0])
    if len(weights) != len(models):
        raise ValueError("a stack is exported of models with one output each. " + PREDICT)
    return _mixture(models, weights, base=intercept, link="logit" if logistic else _linked(getattr(final, "_base_loss", None)))


def _stacked_classes(e: Any, models: Sequence[Model]) -> Model:
    """A logistic regression of several classes on the predictions of models, each with one for each class."""
    final, parts, at = e.final_estimator_, list[Part](), 0
    for model in models:
        outputs = len(_opened(model)[1].get("classes", [0]))
        parts.append({"model": model, "weights": np.asarray(final.coef_, dtype=float)[:, at : at + outputs].T.tolist()})
        at += outputs
    if at != final.coef_.shape[1]:
        raise ValueError("a model of the stack saw other classes than the whole; fit it on all of them. " + PREDICT)
    return {
        "mixture": {"models": parts, "classes": _classes(e), "base": np.asarray(final.intercept_, dtype=float).tolist(), "link": "softmax"}
    }


def _constant(e: Any) -> Model:
    """What a model says that looks at no column."""
    if not hasattr(e, "classes_"):
        return {"trees": {"trees": [[float(np.ravel(e.constant_)[0])]]}}
    if e.strategy not in ("prior", "most_frequent", "constant"):
        raise ValueError(f"DummyClassifier with strategy={e.strategy!r} draws what it says, and is not exported: take 'prior'. " + PREDICT)
    shares = np.asarray(e.class_prior_, dtype=float)
    if e.strategy != "prior":
        shares = np.eye(len(shares))[shares.argmax() if e.strategy == "most_frequent" else int(np.flatnonzero(e.classes_ == e.constant)[0])]
    if len(shares) == 2:
        return {"trees": {"trees": [[float(shares[1])]]}}
    return {"trees": {"trees": [[shares.tolist()]], "classes": _classes(e)}}


def _against_rest(e: Any, features: _Features) -> Model:
    """One class against the others: of two, one model; of several, linear margins."""
    if len(e.estimators_) == 1:
        return _model(e.estimators_[0], features)
    scores = [_margin(m, features) for m in e.estimators_]
    if hasattr(e, "predict_proba") or not all("linear" in m and "impute" not in m["linear"] for m in scores):
        raise ValueError(
            "OneVsRestClassifier of several classes is exported of linear margins, such as those of LinearSVC; of probabilities take "
            "LogisticRegression itself. " + PREDICT
        )
    linear = [cast(dict[str, Any], m["linear"]) for m in scores]
    weights: dict[str, Any] = {}
    for read, of in linear[0]["weights"].items():
        each = [m["weights"][read] for m in linear]
        weights[read] = {t: [w[t] for w in each] for t in of} if isinstance(of, dict) else each
    return {"softmax": {"classes": _classes(e), "intercepts": [m["intercept"] for m in linear], "weights": weights, "link": "identity"}}


def _of_target(e: Any, features: _Features) -> Model:
    """A model of a label that was transformed before it was fitted."""
    model, back = _model(e.regressor_, features), e.transformer_
    if type(back).__name__ == "StandardScaler":
        scale = float(back.scale_[0]) if back.with_std else 1.0
        return _mixture([model], [scale], base=float(back.mean_[0]) if back.with_mean else 0.0)
    if type(back).__name__ == "MinMaxScaler" and not back.clip:
        return _mixture([model], [1 / float(back.scale_[0])], base=-float(back.min_[0]) / float(back.scale_[0]))
    inverse = getattr(back, "inverse_func", None) if type(back).__name__ == "FunctionTransformer" else None
    if inverse is np.exp or inverse is np.expm1:
        raised = _mixture([model], [1.0], link="log")
        return raised if inverse is np.exp else _mixture([raised], [1.0], base=-1.0)
    raise ValueError(
        "TransformedTargetRegressor is exported with inverse_func=np.exp or np.expm1, or with StandardScaler or MinMaxScaler as "
        "transformer. " + PREDICT
    )


_MIXTURES: dict[str, Callable[[Any, _Features], Model]] = {
    "VotingClassifier": _vote,
    "VotingRegressor": _vote,
    "AdaBoostClassifier": _adaptive,
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
        null_left = missing_left if feature.null is None or feature.gone else bool(below(feature.null))
        if feature.steps or threshold is None:
            threshold = _largest(lambda x: below(feature.value(x)))
        threshold = min(max(threshold, -LARGEST), LARGEST)  # a split into nulls and all numbers has 1e300, or no end
        by_number: Split = [feature.column, threshold]
        return [by_number if null_left else [*by_number, "right"], *left, *right]
    if isinstance(feature, _Null):
        numbers, null = (left if below(feature.no) else right), (left if below(feature.yes) else right)
        by_null: Split = [feature.column, LARGEST, "right"]
        return numbers if numbers is null else [by_null, *numbers, *null]
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


def _absent(features: _Features, body: Trees, first: float, last: float) -> None:
    """Says which numbers of the columns count as null: those that a feature makes one from first to last."""
    read = _forest.columns(body["trees"])
    null: dict[str, list[float]] = {}
    for f in features:
        if not isinstance(f, _Number) or f.column not in read or not f.gone:
            continue
        low = math.nextafter(_largest(lambda x, f=f: f.value(x) < first), math.inf)  # type: ignore[misc]
        high = _largest(lambda x, f=f: f.value(x) <= last)  # type: ignore[misc]
        if low > high:
            continue
        if null.setdefault(f.column, [low, high]) != [low, high]:
            raise ValueError(f"{f.column} is used twice, with other numbers that count as missing; that is not exported. " + PREDICT)
    for f in features:
        if isinstance(f, _Number) and f.column in null and not f.gone:
            raise ValueError(f"{f.column} is used twice, and once its numbers count as missing; that is not exported. " + PREDICT)
    for f in features:
        if not isinstance(f, _Number) or f.column not in read or f.null is None or not f.gone:
            continue
        if f.filled is None or f.value(f.filled) != f.null:
            raise ValueError(
                f"{f.column} is imputed behind another step, and some numbers count as missing; that is not exported. " + PREDICT
            )
        body.setdefault("impute", {})[f.column] = f.filled
    if null:
        body["null"] = null


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
    if np.isinf(following):
        return math.nextafter(2.0**128 - 2.0**103, -math.inf)
    middle = (float(single) + float(following)) / 2
    even = int(single.view(np.uint32)) % 2 == 0
    return middle if even else math.nextafter(middle, -math.inf)


def _single_at_most(threshold: float) -> np.float32:
    single: np.float32 = np.float32(threshold)
    if float(single) <= threshold:
        return single
    before: np.float32 = np.nextafter(single, np.float32(-np.inf), dtype=np.float32)
    return before


LISTED = 1000  # nodes of trees that are written as lists, which people can read; of more, arrays are


class _Grown(NamedTuple):
    """Fitted trees, as arrays over the nodes of all."""

    left: _forest.Whole  # places of nodes; -1 below a leaf
    right: _forest.Whole
    roots: _forest.Whole
    feature: _forest.Whole
    threshold: NDArray[Any]  # the largest number that goes left: singles where numbers are rounded to them first
    missing_left: NDArray[Any]
    leaves: NDArray[np.float64]  # a row for each leaf, of one number or of one for each class
    depths: _forest.Whole  # the levels of each tree


def _as_arrays(grown: _Grown, features: _Features) -> Arrays | None:
    """The trees as arrays; None where lists say them better: a split that sends all rows to one side is none there."""
    leaf = grown.left < 0
    splits = np.flatnonzero(~leaf)
    rounded = grown.threshold.dtype == np.float32
    by_feature = grown.feature[splits]
    used = np.flatnonzero(np.bincount(by_feature, minlength=len(features))).tolist()
    single = rounded and not any(isinstance(features[f], _Number) and features[f].steps for f in used)
    reads: dict[_forest.Read, int] = {}
    of: _forest.Whole = np.full(len(grown.left), -1)
    threshold: NDArray[Any] = np.zeros(len(of), dtype=np.float32 if single else float)
    swapped: NDArray[np.bool_] = np.zeros(len(of), dtype=bool)

    def reads_of(column: str, texts: tuple[str, ...] | None, right: bool) -> int:
        return reads.setdefault((column, texts, right), len(reads))

    # Columns as they are: all of them at once.
    plain = np.array([isinstance(f, _Number) and not f.steps and (f.null is None or f.gone) for f in features])
    sides: _forest.Whole = np.zeros((len(features), 2), dtype=np.int64)
    for f in used:
        if plain[f]:
            sides[f] = [reads_of(features[f].column, None, right) for right in (False, True)]
    here = splits[plain[by_feature]]
    of[here] = sides[grown.feature[here], 1 - grown.missing_left[here].astype(int)]
    threshold[here] = grown.threshold[here] if single or not rounded else _forest.double_at_most(grown.threshold[here])

    for f in used:
        if plain[f]:
            continue
        here = splits[by_feature == f]
        by, feature, missing_left = grown.threshold[here], features[f], grown.missing_left[here].astype(bool)
        if isinstance(feature, _Number):
            if feature.null is not None and not feature.gone:
                missing_left = by.dtype.type(feature.null) <= by
            if feature.steps:
                threshold[here] = _largest_of_all(feature, by)
            else:
                threshold[here] = by if single or not rounded else _forest.double_at_most(by)
            left_side, right_side = (reads_of(feature.column, None, right) for right in (False, True))
            of[here] = np.where(missing_left, left_side, right_side)
            continue
        for t in np.unique(by):
            for left in (False, True):
                these = here[(by == t) & (missing_left == left)]
                if not these.size:
                    continue
                made = _split(feature, lambda x, t=t: type(t)(x) <= t, None, left, [0.0], [1.0])  # type: ignore[misc]
                if len(made) != 3:
                    return None
                head = cast(Split, made[0])
                listed = tuple(head[1]) if isinstance(head[1], list) else None
                of[these] = reads_of(cast(str, head[0]), listed, head[-1] == "right")
                with np.errstate(over="ignore"):  # LARGEST is infinite as a single, and is read as LARGEST again
                    threshold[these] = _forest.IN_LIST if listed is not None else head[1]
                swapped[these] = made[1] == 1.0
    left, right, leaves = grown.left, grown.right, grown.leaves
    if swapped.any() or not _forest.is_preorder(left, right):
        place = _forest.in_preorder(np.where(swapped, right, left), np.where(swapped, left, right), grown.roots)
        order = np.empty_like(place)
        order[place] = np.arange(len(place))
        leaves = leaves[(np.cumsum(leaf) - 1)[order][leaf[order]]]
        of, threshold = of[order], threshold[order]
    numbers = np.array([*(texts is None for _, texts, _ in reads), False])[of]
    arrays = _forest.write(list(reads), of, threshold[numbers], leaves, single)
    arrays.depths = grown.depths
    return arrays


def _largest_of_all(feature: _Number, by: NDArray[Any]) -> NDArray[np.float64]:
    """_largest for many thresholds: the largest number of the column that the steps take to at most each."""

    def number(i: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.where(i < 0, -1.0, 1.0) * np.abs(i).view(np.float64)

    def below(i: NDArray[np.int64]) -> NDArray[np.bool_]:
        return np.asarray(np.asarray(feature.value(number(i))).astype(by.dtype) <= by)

    end = int(np.float64(LARGEST).view(np.int64))
    low, high = np.full(len(by), -end), np.full(len(by), end)
    with np.errstate(over="ignore"):
        always, never = below(high), ~below(low)
        for _ in range(64):
            middle = (low & high) + ((low ^ high) >> 1)  # their mean, which is within
            left = below(middle)
            low, high = np.where(left, middle, low), np.where(left, high, middle)
    return np.where(always, LARGEST, np.where(never, -LARGEST, number(low)))


def _grown(trees: Sequence[Any], leaves: Callable[[NDArray[np.float64]], NDArray[np.float64]]) -> _Grown:
    """Trees of scikit-learn. leaves takes the values of nodes: shape (nodes, 1, outputs)."""
    before = np.cumsum([0, *(t.node_count for t in trees)])

    def joined(of: Callable[[Any], Any]) -> NDArray[Any]:
        return np.concatenate([of(t) for t in trees])

    left, right = joined(lambda t: t.children_left), joined(lambda t: t.children_right)
    leaf: NDArray[np.bool_] = left < 0
    at: _forest.Whole = np.repeat(before[:-1], np.diff(before))
    return _Grown(
        np.where(leaf, -1, left + at),
        np.where(leaf, -1, right + at),
        before[:-1],
        joined(lambda t: t.feature),
        _forest.single_at_most(joined(lambda t: t.threshold)),
        joined(lambda t: getattr(t, "missing_go_to_left", np.zeros(t.node_count))),
        leaves(joined(lambda t: t.value)[leaf]),
        np.array([t.max_depth for t in trees]),
    )


def _written(trees: Sequence[Any], features: _Features, leaf: Callable[[NDArray[np.float64]], NDArray[np.float64]]) -> list[Tree] | Arrays:
    """Trees of scikit-learn as lists or, where they have many nodes, as arrays."""
    if sum(t.node_count for t in trees) > LISTED and (arrays := _as_arrays(_grown(trees, leaf), features)) is not None:
        return arrays

    def one(value: NDArray[np.float64]) -> Leaf:
        said = leaf(value[None])[0].tolist()
        return cast(Leaf, said[0] if len(said) == 1 else said)

    return [_sklearn_tree(t, features, one) for t in trees]


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


def _number(value: NDArray[np.float64]) -> NDArray[np.float64]:
    """The leaves of regression trees."""
    return value[:, 0, :1]


def _shares(value: NDArray[np.float64]) -> NDArray[np.float64]:
    """The leaves of trees of several classes: the share of each."""
    return np.asarray(value[:, 0] / value[:, 0].sum(axis=1, keepdims=True))


def _second_share(value: NDArray[np.float64]) -> NDArray[np.float64]:
    """The leaves of trees of two classes."""
    return _shares(value)[:, 1:]


def _sklearn_trees(e: Any, features: _Features) -> Model:
    name = type(e).__name__
    if name.startswith("HistGradientBoosting"):
        return _hist(e, features)
    if name.startswith("GradientBoosting"):
        return _boosting(e, features)
    if name not in _TREES:
        raise ValueError(f"{name} is not exported. " + PREDICT)
    several = hasattr(e, "classes_") and len(e.classes_) != 2
    leaf = _shares if several else _second_share if hasattr(e, "classes_") else _number
    fitted = getattr(e, "estimators_", [e])
    trees = _written([t.tree_ for t in fitted], features, leaf)
    body: Trees = {"classes": _classes(e), "trees": trees} if several else {"trees": trees}
    if len(fitted) > 1:
        body["average"] = True
    return {"trees": body}


def _boosted(trees: list[Tree] | Arrays, e: Any, base: Sequence[float] | NDArray[Any], link: Link = "identity") -> Model:
    """A booster of scikit-learn, with the link and the start that its number of classes wants."""
    if len(base) > 1:
        return {"trees": {"trees": trees, "classes": _classes(e), "link": "softmax", "base": [float(b) for b in base]}}
    return {"trees": {"trees": trees, "link": "logit" if hasattr(e, "classes_") else link, "base": float(base[0])}}


def _boosting(e: Any, features: _Features) -> Model:
    twice = 2.0 if hasattr(e, "classes_") and e.loss == "exponential" else 1.0  # that loss has the logit of twice the score
    if e.init is not None and e.init != "zero":
        raise ValueError("boosting is exported without an estimator to start with; leave init as it is")
    base = e._raw_predict_init(np.zeros((1, len(features)), dtype=np.float32))[0]

    trees = _written([t.tree_ for row in e.estimators_ for t in row], features, lambda value: twice * e.learning_rate * value[:, 0, :1])
    return _boosted(trees, e, twice * base)


def _hist(e: Any, features: _Features) -> Model:
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
    return _boosted(trees, e, np.asarray(e._baseline_prediction).reshape(-1), "identity" if hasattr(e, "classes_") else _linked(e._loss))


_LINKS: dict[str, dict[Link, str]] = {  # of each library, by what it calls its objectives
    "XGBoost": {
        "identity": "binary:logitraw reg:squarederror reg:squaredlogerror reg:pseudohubererror reg:absoluteerror reg:quantileerror",
        "logit": "binary:logistic reg:logistic",
        "log": "count:poisson reg:gamma reg:tweedie",
        "softmax": "multi:softprob multi:softmax",
    },
    "LightGBM": {
        "identity": "regression regression_l1 huber fair mape quantile",
        "logit": "binary cross_entropy",
        "log": "poisson gamma tweedie",
        "softmax": "multiclass",
    },
    "CatBoost": {
        "identity": "RMSE MAE MAPE Quantile Expectile Huber Lq",
        "logit": "Logloss CrossEntropy",
        "log": "Poisson Tweedie",
        "softmax": "MultiClass",
    },
}


def _link_of(library: str, objective: str) -> Link:
    for link, objectives in _LINKS[library].items():
        if objective in objectives.split():
            return link
    raise ValueError(f"the objective {objective} of {library} is not exported. " + PREDICT)


def _xgboost(e: Any, features: _Features) -> Model:
    booster = e.get_booster() if hasattr(e, "get_booster") else e
    learner = json.loads(bytes(booster.save_raw("json")))["learner"]
    objective = learner["objective"]["name"]
    classes = int(learner["learner_model_param"]["num_class"])
    kind = learner["gradient_booster"]["name"]
    link = _link_of("XGBoost", objective)
    if int(learner["learner_model_param"].get("num_target", 1)) > 1:
        raise ValueError("a model of several targets is not exported: fit one for each. " + PREDICT)
    of = learner["gradient_booster"]
    base = np.asarray(json.loads(learner["learner_model_param"]["base_score"]), dtype=float).reshape(-1)
    if kind == "gblinear":
        return _xgboost_linear(e, features, np.asarray(of["model"]["weights"], dtype=float), base, link, classes)
    model = of["gbtree"]["model"] if kind == "dart" else of["model"]
    drop = of["weight_drop"] if kind == "dart" else [1.0] * len(model["trees"])
    parallel = max(int(model["gbtree_model_param"].get("num_parallel_tree", 1)), 1)
    best = booster.attr("best_iteration") if booster is not e else None  # its predict stops there; that of a Booster does not
    trees = model["trees"] if best is None else model["trees"][: (int(best) + 1) * max(classes, 1) * parallel]
    for t, weight in zip(trees, drop, strict=False):
        t["weight"] = np.float32(weight)
    if classes > 1 and parallel > 1:  # of each class in turn
        by_class = [[t for t, c in zip(trees, model["tree_info"], strict=False) if c == k] for k in range(classes)]
        trees = [t for turn in zip(*by_class, strict=True) for t in turn]
    missing = getattr(e, "missing", np.nan)
    zero = 0.0 if any(f.sparse for f in features) else None
    features = [_with(f, gone=f.sparse or not _is_null(missing)) for f in features]

    def gone(feature: _Feature, value: float) -> bool:
        """Whether XGBoost takes a feature's number for missing: zeros of a sparse matrix, and what its option says."""
        return (feature.sparse and value == zero) or (not _is_null(missing) and np.float32(value) == np.float32(missing))

    if zero is not None and not _is_null(missing):
        raise ValueError(f"XGBoost with missing={missing} behind a sparse matrix is not exported: make it dense. " + PREDICT)

    texts = _xgboost_texts(model.get("cats"))

    def tree(t: dict[str, Any]) -> Tree:
        lists = zip(t["categories_nodes"], t["categories_segments"], t["categories_sizes"], strict=True)
        listed = {node: set(t["categories"][begin : begin + size]) for node, begin, size in lists}  # the codes that go right

        def below(i: int) -> Tree:
            value = np.float32(t["split_conditions"][i])
            if t["left_children"][i] == -1:
                return [float(value * t["weight"])]
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
            feature, missing_left = features[t["split_indices"][i]], bool(t["default_left"][i])
            return _split(
                feature,
                lambda x: missing_left if gone(feature, x) and not isinstance(feature, _Number) else np.float32(x) < value,
                threshold,
                missing_left,
                below(t["left_children"][i]),
                below(t["right_children"][i]),
            )

        return below(0)

    body: Trees = {"trees": [tree(t) for t in trees], "link": link}
    if zero is not None:
        _absent(features, body, 0.0, 0.0)
    elif not _is_null(missing):
        single = np.float32(missing)
        before = np.nextafter(single, np.float32(-np.inf), dtype=np.float32)
        _absent(features, body, math.nextafter(_double_below(before), math.inf), _double_below(single))
    start = _xgboost_start(base, link, classes)
    if classes > 1:
        body["classes"] = _classes(e) if hasattr(e, "classes_") else list(range(classes))
        body["base"] = start.tolist()
    else:
        body["base"] = float(start[0])
    return {"trees": body}


def _xgboost_start(base: _Scores, link: Link, classes: int) -> _Scores:
    """The scores before the first tree."""
    if classes > 1:
        return np.array(np.broadcast_to(base, classes))
    return np.array([math.log(base[0] / (1 - base[0])) if link == "logit" else math.log(base[0]) if link == "log" else float(base[0])])


def _xgboost_linear(e: Any, features: _Features, weights: _Scores, base: _Scores, link: Link, classes: int) -> Model:
    """A linear booster. What is missing adds nothing to its sum."""
    if not _is_null(getattr(e, "missing", np.nan)):
        raise ValueError(f"the booster gblinear with missing={e.missing} is not exported: make such numbers nulls. " + PREDICT)
    by_feature = weights.reshape(len(features) + 1, max(classes, 1))  # the last are the intercepts
    intercepts = by_feature[-1] + _xgboost_start(base[:1], link, classes)  # each class begins with the first one's start
    named: list[Class] | None = None
    if classes > 1:
        named = _classes(e) if hasattr(e, "classes_") else list(range(classes))
    return _weighted(features, by_feature[:-1].T, intercepts, link, named)


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


def _catboost(e: Any, features: _Features) -> Model:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.json"
        e.save_model(str(file), format="json")
        model = json.loads(file.read_text())
    objective = model["model_info"]["params"]["loss_function"]["type"]
    link = _link_of("CatBoost", objective)
    if any(name != "float_features" and of for name, of in model["features_info"].items()):
        raise ValueError(
            "categories, texts and embeddings of CatBoost are not exported: encode texts with OneHotEncoder or OrdinalEncoder. " + PREDICT
        )
    scale, bias = model["scale_and_bias"]
    columns = {f["feature_index"]: f for f in model["features_info"]["float_features"]}

    def split(by: Mapping[str, Any], left: Tree, right: Tree) -> Tree:
        of, border = columns[by["float_feature_index"]], np.float32(by["border"])
        null_left = of["nan_value_treatment"] != "AsTrue"
        return _split(features[of["flat_feature_index"]], lambda x: np.float32(x) <= border, _double_below(border), null_left, left, right)

    def leaf(values: Sequence[float]) -> Leaf:
        return [scale * v for v in values] if len(bias) > 1 else scale * values[0]

    def oblivious(tree: Mapping[str, Any], depth: int, at: int = 0) -> Tree:
        """All splits of a level are the same: the place of a leaf has a bit for each, which says that the row is above."""
        if depth == 0:
            return [leaf(tree["leaf_values"][at * len(bias) : (at + 1) * len(bias)])]
        above = at | 1 << depth - 1
        return split(tree["splits"][depth - 1], oblivious(tree, depth - 1, at), oblivious(tree, depth - 1, above))

    def below(node: Mapping[str, Any]) -> Tree:
        if "split" not in node:
            return [leaf(node["value"] if isinstance(node["value"], list) else [node["value"]])]
        return split(node["split"], below(node["left"]), below(node["right"]))

    if "oblivious_trees" in model:
        trees = [oblivious(t, len(t["splits"] or ())) for t in model["oblivious_trees"]]
    else:
        trees = [below(t) for t in model["trees"]]
    body: Trees = {"trees": trees, "link": link, "base": bias if len(bias) > 1 else bias[0]}
    if len(bias) > 1:
        body["classes"] = _classes(e)
    return {"trees": body}


ZERO = float(np.float32(1e-35))  # LightGBM takes numbers up to its kZeroThreshold, on both sides of 0, for 0


def _around_zero(threshold: float) -> float:
    """The threshold by which LightGBM sends a number."""
    if -ZERO <= threshold < 0:
        return math.nextafter(-ZERO, -math.inf)
    return max(threshold, ZERO) if threshold >= 0 else threshold


def _nodes(node: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    """A node of LightGBM and all that are below it."""
    yield node
    if "left_child" in node:
        yield from _nodes(node["left_child"])
        yield from _nodes(node["right_child"])


def _lightgbm(e: Any, features: _Features) -> Model:
    booster = getattr(e, "booster_", e)
    model = booster.dump_model()
    if "objective" not in model:
        raise ValueError("LightGBM with a function as its objective is not exported. " + PREDICT)
    objective = model["objective"].split()
    link = _link_of("LightGBM", objective[0])
    if "sqrt" in objective:  # fitted to roots
        if objective[0] != "regression":
            raise ValueError(f"the objective {model['objective']} of LightGBM is not exported. " + PREDICT)
        link = "sqrt"
    scale = next((float(word.split(":")[1]) for word in objective if word.startswith("sigmoid:")), 1.0)
    if hasattr(e, "get_params") and e.get_params().get("pred_early_stop"):
        raise ValueError("LightGBM with pred_early_stop, which leaves out trees by row, is not exported: set it to False. " + PREDICT)
    numbered = re.search(r"^\[categorical_feature: ([\d,]*)\]", booster.model_to_string(num_iteration=1), re.M)
    places = [int(i) for i in numbered[1].split(",") if i] if numbered else []
    texts_of = model.get("pandas_categorical") or []  # of all columns that are categories, ordered ones too
    if texts_of and len(texts_of) != len(places):
        raise ValueError(
            "LightGBM does not say which categories are whose where some are ordered, or where some are named by categorical_feature: "
            "make all of them unordered ones of pandas. " + PREDICT
        )
    categories: dict[int, list[Any]] = dict(zip(places, texts_of, strict=False))

    def listed(n: dict[str, Any], feature: _Feature) -> tuple[str, list[str]]:
        """The column and the texts of a split by categories: these go left, all others and nulls right."""
        known = categories.get(n["split_feature"], [])
        texts: list[Any] = [known[int(code)] if int(code) < len(known) else None for code in n["threshold"].split("||")]
        if not isinstance(feature, _Number) or feature.steps or feature.null is not None or not all(isinstance(t, str) for t in texts):
            raise ValueError(
                "categories of LightGBM are exported where the column is one of texts, of pandas' dtype category, without a step before; "
                "make numbers texts, or leave them numbers. " + PREDICT
            )
        return feature.column, sorted(texts)

    def side(n: dict[str, Any]) -> tuple[float, bool]:
        """The threshold of a split by a number, and whether a null goes left."""
        if n["decision_type"] != "<=":
            raise ValueError(f"splits by {n['decision_type']} are not exported. " + PREDICT)
        threshold = _around_zero(float(n["threshold"]))
        return threshold, bool(n["default_left"]) if n["missing_type"] != "None" else threshold >= 0  # else a null is 0

    def below(n: dict[str, Any]) -> Tree:
        if "leaf_value" in n:
            return [scale * float(n["leaf_value"])]
        feature = features[n["split_feature"]]
        if n["decision_type"] == "==":
            split: Split = [*listed(n, feature), "right"]
            return [split, *below(n["left_child"]), *below(n["right_child"])]
        threshold, missing_left = side(n)
        at_zero = missing_left if n["missing_type"] == "Zero" else threshold >= 0
        return _split(
            feature,
            lambda x: at_zero if abs(x) <= ZERO and not isinstance(feature, _Number) else x <= threshold,
            threshold,
            missing_left,
            below(n["left_child"]),
            below(n["right_child"]),
        )

    def computed(n: dict[str, Any]) -> Expression | float:
        """A tree as an expression: its leaves are linear."""
        if "leaf_value" in n:
            value = float(n["leaf_value"])
            of = [_expression(features[i]) for i in n["leaf_features"]]
            linear: Expression | float = float(n["leaf_const"])
            for x, coefficient in zip(of, n["leaf_coeff"], strict=True):
                linear = linear + x * float(coefficient)
            # A leaf without coefficients has its constant, which is 0 where each of its rows has a null, whatever its value.
            return where(functools.reduce(operator.or_, [x.is_null() for x in of]), value, linear) if of else linear
        feature = features[n["split_feature"]]
        if n["decision_type"] == "==":
            name, texts = listed(n, feature)
            left = column(name).is_in(texts)
        else:
            x, (threshold, null_left) = _expression(feature), side(n)
            left = x.is_null() | (x <= threshold) if null_left else x <= threshold
        return where(left, computed(n["left_child"]), computed(n["right_child"]))

    named: list[Class] | None = None
    if model["num_class"] > 1:
        named = _classes(e) if hasattr(e, "classes_") else list(range(model["num_class"]))
    trees = [t["tree_structure"] for t in model["tree_info"]]
    if any("leaf_coeff" in n for tree in trees for n in _nodes(tree)):
        classes = model["num_class"]
        weights = scale * np.tile(np.eye(classes), len(trees) // classes)  # a tree adds to one class, then to the next
        if model.get("average_output"):
            weights = weights * classes / len(trees)
        whole: _Features = [_compute(Expression(str(computed(tree)))) for tree in trees]
        return _weighted(whole, weights, np.zeros(classes), link, named)

    by_zero = {n["split_feature"] for t in model["tree_info"] for n in _nodes(t["tree_structure"]) if n.get("missing_type") == "Zero"}
    features = [_with(f, gone=i in by_zero) for i, f in enumerate(features)]
    averages = bool(model.get("average_output"))
    if averages:
        scale *= model["num_class"]  # an average is by the number of all trees, and a class has its share of them
    body: Trees = {"trees": [below(tree) for tree in trees], "link": link}
    if averages:
        body["average"] = True
    _absent(features, body, -ZERO, ZERO)
    if named is not None:
        body["classes"] = named
    return {"trees": body}
