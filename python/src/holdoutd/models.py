"""Writes models of scikit-learn, XGBoost and LightGBM as JSON that holdoutd reads (docs/MODELS.md).

    from holdoutd.models import export

    forest = RandomForestClassifier(max_depth=8).fit(training[["distance", "hour"]], training.delay > 15)
    query = {"type": "accuracy", "label": "delay > 15", "model": export(forest, ["distance", "hour"])}

export(estimator, columns, texts=None) takes a fitted estimator and the names of the table's columns that its features are, in
the order of the features. texts says which features are indicators of a text column, as pandas.get_dummies makes them:
{"origin_SFO": ("origin", "SFO")}.

Exported are, of scikit-learn: linear and ridge regression, lasso, elastic net, linear support vectors, logistic regression,
decision trees, random forests, extra trees, gradient boosting and histogram gradient boosting; of XGBoost and LightGBM: tree
boosters for regression, for two classes and for several, with nulls and, as histogram gradient boosting, with categories that are texts; small networks
(MLPClassifier, MLPRegressor); and of all these VotingClassifier (soft), VotingRegressor, bagging, CalibratedClassifierCV (sigmoid or isotonic, two classes) and stacks with a linear end. Each stands alone or at
the end of a Pipeline. Its steps before may be SimpleImputer, StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler, OneHotEncoder and
OrdinalEncoder of text columns, and ColumnTransformer and Pipeline of these. What cannot be exported exactly raises ValueError, which says what to do instead.

A classifier of two classes becomes a model with one output, the probability of the second one of classes_; its label is a
condition. One of several classes has them as they are: the label is a column. Predictions are those of the library: scikit-learn's
trees compare features that were rounded to single precision, XGBoost's too; thresholds are moved so that comparing the
column's double gives the same side for every number.
"""

import json
import math
import re

import numpy as np


def export(estimator, columns, texts=None):
    """The model as an object for json.dumps. columns[i] names the column, or the key of texts, of feature i."""
    wants = getattr(estimator, "n_features_in_", len(columns))
    if wants != len(columns):
        raise ValueError(f"the model was fitted on {wants} features, and {len(columns)} columns are named")
    features = [_Text((texts or {})[name][0], {(texts or {})[name][1]: 1.0}) if name in (texts or {}) else _Number(name) for name in columns]
    return _model(estimator, features)


def _model(estimator, features):
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


def dumps(estimator, columns, texts=None):
    """export as compact JSON."""
    return json.dumps(export(estimator, columns, texts), separators=(",", ":"))


# Features: what an estimator sees, as what a row has. Steps before the estimator make others of them.

LARGEST = 1e150  # the largest number of a model; splits into nulls and all numbers have a larger threshold in some libraries
NO_TEXT = "\0null"  # a text that no row has: it stands for null where a null has a weight, or a side, of its own


class _Number:
    """A column's number after monotone steps, each as its library computes it: ("-", m), ("/", s), ("*", s), ("+", m)."""

    def __init__(self, column, steps=(), null=None, filled=None):
        self.column, self.steps, self.null, self.filled = column, tuple(steps), null, filled  # null: the feature where the column is; filled: as a column's number

    def value(self, x):
        for op, by in self.steps:
            x = x - by if op == "-" else x + by if op == "+" else x / by if op == "/" else x * by
        return x

    def then(self, *steps):
        for op, by in steps:
            if op in "/*" and not by > 0:
                raise ValueError(f"a scale of {by} for {self.column} is not exported")
        after = _Number(self.column, self.steps + steps, filled=self.filled)
        after.null = None if self.null is None else _Number("", steps).value(self.null)
        return after

    def impute(self, by):
        if self.null is not None:
            return self
        by = float(by)
        filled = by
        for op, step in reversed(self.steps):
            filled = filled + step if op == "-" else filled - step if op == "+" else filled * step if op == "/" else filled / step
        return _Number(self.column, self.steps, by, filled)

    def affine(self):
        """The feature is a x + b."""
        a, b = 1.0, 0.0
        for op, by in self.steps:
            a, b = (a / by, b / by) if op == "/" else (a * by, b * by) if op == "*" else (a, b - by) if op == "-" else (a, b + by)
        return a, b


class _Text:
    """A text column as numbers: values by text, other for every other text, null where there is none (None: as other)."""

    def __init__(self, column, values, other=0.0, null=None):
        self.column, self.values, self.other, self.null = column, values, other, other if null is None else null

    def then(self, *steps):
        value = _Number("", steps).value
        return _Text(self.column, {t: value(v) for t, v in self.values.items()}, value(self.other), value(self.null))


def _transformed(step, features):
    """The features after a fitted step of scikit-learn."""
    name = type(step).__name__
    if step == "passthrough" or step is None or name == "FunctionTransformer" and step.func is None:
        return features
    if hasattr(step, "steps"):
        for _, s in step.steps:
            features = _transformed(s, features)
        return features
    if name == "ColumnTransformer":
        return _by_columns(step, features)
    if name == "SimpleImputer":
        if step.add_indicator or len(step.statistics_) != len(features) or step.missing_values is not np.nan and not _is_null(step.missing_values):
            raise ValueError("SimpleImputer is exported for nulls, without add_indicator and without columns that are all null")
        return [_imputed(f, v) for f, v in zip(features, step.statistics_)]
    if name in ("OneHotEncoder", "OrdinalEncoder"):
        return _encoded(step, features)
    each = range(len(features))
    if name == "StandardScaler":
        steps = [([("-", float(step.mean_[i]))] if step.with_mean else []) + ([("/", float(step.scale_[i]))] if step.with_std else []) for i in each]
    elif name == "MinMaxScaler" and not step.clip:
        steps = [[("*", float(step.scale_[i])), ("+", float(step.min_[i]))] for i in each]
    elif name == "MaxAbsScaler" and not getattr(step, "clip", False):
        steps = [[("/", float(step.scale_[i]))] for i in each]
    elif name == "RobustScaler":
        steps = [([("-", float(step.center_[i]))] if step.with_centering else []) + ([("/", float(step.scale_[i]))] if step.with_scaling else []) for i in each]
    else:
        raise ValueError(f"a step {name}{' with clip' if getattr(step, 'clip', False) else ''} is not exported; exported are SimpleImputer, StandardScaler, MinMaxScaler, "
                         "MaxAbsScaler, RobustScaler, OneHotEncoder, OrdinalEncoder, ColumnTransformer and Pipeline. " + PREDICT)
    return [f.then(*s) if isinstance(f, (_Number, _Text)) else _plain(f, name) for f, s in zip(features, steps)]


PREDICT = ("Other models can be asked about by their predictions: upload them as a column, or send them row by row to a holdout that was created with features=public "
           "(docs/MODELS.md, Models that cannot be exported)")


class _Filled:
    """A text column whose nulls count as a text, before it is encoded."""

    def __init__(self, column, null):
        self.column, self.null = column, null


def _plain(f, name):
    raise ValueError(f"{name} of the text column {f.column} before it is encoded is not exported")


def _is_null(v):
    return v is None or isinstance(v, (float, np.floating)) and math.isnan(v)


def _imputed(f, by):
    if isinstance(by, str):
        if not isinstance(f, (_Number, _Filled)) or isinstance(f, _Number) and f.steps:
            raise ValueError(f"a text for nulls of {f.column}, which is a number, is not exported")
        return f if isinstance(f, _Filled) else _Filled(f.column, by)
    if _is_null(by):
        raise ValueError(f"{f.column} is null in all rows that the imputer saw; leave it out")
    if not isinstance(f, _Number):
        return f if isinstance(f, _Text) else _plain(f, "SimpleImputer")
    return f.impute(by)


def _by_columns(step, features):
    names = list(getattr(step, "feature_names_in_", []))

    def places(columns):
        if callable(columns):
            raise ValueError("a ColumnTransformer that chooses its columns by a function is exported once it is fitted")
        if isinstance(columns, slice):
            if isinstance(columns.start, str) or isinstance(columns.stop, str):  # names, both included
                columns = slice(*[names.index(c) + more if isinstance(c, str) else c for c, more in ((columns.start, 0), (columns.stop, 1))], columns.step)
            return list(range(len(features)))[columns]
        columns = [columns] if isinstance(columns, (str, int)) else list(columns)
        if len(columns) == len(features) and all(isinstance(c, (bool, np.bool_)) for c in columns):
            return [i for i, c in enumerate(columns) if c]
        return [names.index(c) if isinstance(c, str) else int(c) % len(features) for c in columns]

    out = []
    for _, transformer, columns in step.transformers_:
        at = places(columns)
        if not isinstance(transformer, str) or transformer != "drop":
            out += _transformed(transformer, [features[i] for i in at]) if at else []
    return out


def _encoded(step, features):
    out, one_hot = [], type(step).__name__ == "OneHotEncoder"
    for i, f in enumerate(features):
        if not isinstance(f, _Filled) and not (isinstance(f, _Number) and not f.steps and f.null is None):
            raise ValueError(f"{f.column} is encoded after another step; of text columns an imputer with a text may stand before")
        categories = [None if _is_null(c) else c for c in step.categories_[i]]
        if not all(c is None or isinstance(c, str) for c in categories):
            raise ValueError(f"the categories of {f.column} are no texts; make it a text column of the table, or leave it a number")
        fill = f.null if isinstance(f, _Filled) else None
        groups = [[k] for k in range(len(categories))]  # of categories that share a feature, or a code
        rare = getattr(step, "infrequent_categories_", None)
        unknown = []  # the place of the group in which other texts are
        if rare is not None and rare[i] is not None:
            often = [k for k, c in enumerate(categories) if not any(c == r or c is None and _is_null(r) for r in rare[i])]
            groups = [[k] for k in often] + [[k for k in range(len(categories)) if k not in often]]
            unknown = [len(groups) - 1] if step.handle_unknown in ("infrequent_if_exist", "warn") else []
        at = {categories[k]: g for g, group in enumerate(groups) for k in group}

        def coded(code, other):
            """A feature by the group of a category."""
            values = {c: code(g) for c, g in at.items() if c is not None}
            null = values.get(fill, other) if fill is not None else code(at[None]) if None in at else other
            return _Text(f.column, values, other, null)

        if one_hot:
            dropped = step._drop_idx_after_grouping[i] if getattr(step, "_drop_idx_after_grouping", None) is not None else None
            for g in range(len(groups)):
                if dropped is None or g != dropped:
                    out.append(coded(lambda h, g=g: float(h == g), float(g in unknown)))
            continue
        missing = getattr(step, "encoded_missing_value", np.nan)
        other = step.unknown_value if step.handle_unknown == "use_encoded_value" else 0.0
        if _is_null(other) or None in at and _is_null(missing):
            raise ValueError(f"nulls that stay nulls behind OrdinalEncoder are not exported; give {f.column} an unknown_value and an encoded_missing_value, such as -1 and -2")
        feature = coded(float, float(other))
        if None in at:
            feature.null = float(missing)
        out.append(feature)
    return out


# Linear models

def _linear(e, features):
    if not hasattr(e, "intercept_") or type(e).__name__ in ("SVC", "SVR", "NuSVC", "NuSVR"):
        raise ValueError(f"{type(e).__name__} is not exported. " + PREDICT)
    weights = np.atleast_2d(e.coef_)
    intercepts = np.array(np.broadcast_to(np.atleast_1d(e.intercept_), len(weights)), dtype=float)
    logistic = type(e).__name__ in ("LogisticRegression", "LogisticRegressionCV") or getattr(e, "loss", None) == "log_loss"
    if len(weights) > 1 and not (logistic and type(e).__name__.startswith("LogisticRegression")):
        raise ValueError("of several classes, logistic regression is exported. " + PREDICT)
    by_column, impute = _by_column(features, weights, intercepts)
    if len(weights) == 1:
        body = {"intercept": float(intercepts[0]), "weights": {c: _one(w) for c, w in by_column.items()}, "link": "logit" if logistic else "identity"}
        kind = "linear"
    else:
        body = {"classes": _classes(e), "intercepts": intercepts.tolist(), "weights": {c: _lists(w) for c, w in by_column.items()}}
        kind = "softmax"
    if impute:
        body["impute"] = impute
    return {kind: body}


def _by_column(features, weights, intercepts):
    """The weights by column, in the column's own units; what they are off by is added to intercepts."""
    out, impute = {}, {}
    for f, w in zip(features, weights.T.astype(float)):
        if isinstance(f, _Number):
            a, b = f.affine()
            if f.column in out and (isinstance(out[f.column], dict) or impute.get(f.column) != f.filled):
                raise ValueError(f"{f.column} is used as a number and as a text, or its nulls count as two numbers; that is not exported")
            out[f.column] = out.get(f.column, 0) + w * a
            intercepts += w * b
            if f.filled is not None:
                impute[f.column] = f.filled
        elif isinstance(f, _Text):
            texts = out.setdefault(f.column, {})
            if not isinstance(texts, dict):
                raise ValueError(f"{f.column} is used as a number and as a text; that is not exported")
            intercepts += w * f.other
            for text, v in {**f.values, **({NO_TEXT: f.null} if f.null != f.other else {})}.items():
                texts[text] = texts.get(text, 0) + w * (v - f.other)
            if f.null != f.other:
                impute[f.column] = NO_TEXT
        else:
            _plain(f, "a linear model")
    return out, impute


def _one(weights):
    return {t: float(w[0]) for t, w in weights.items()} if isinstance(weights, dict) else float(weights[0])


def _lists(weights):
    return {t: w.tolist() for t, w in weights.items()} if isinstance(weights, dict) else weights.tolist()


# Networks

def _network(e, features):
    weights, intercepts = e.coefs_[0].T, np.array(e.intercepts_[0], dtype=float)
    by_column, impute = _by_column(features, weights, intercepts)
    layers = [{"weights": np.asarray(w, dtype=float).tolist(), "intercepts": np.asarray(b, dtype=float).tolist()} for w, b in zip(e.coefs_[1:], e.intercepts_[1:])]
    body = {"activation": e.activation, "weights": {c: _lists(w) for c, w in by_column.items()}, "intercepts": intercepts.tolist(), "layers": layers}
    if impute:
        body["impute"] = impute
    if not layers or e.out_activation_ not in ("identity", "logistic", "softmax") or e.n_outputs_ > 1 and e.out_activation_ != "softmax":
        raise ValueError("a network is exported with a hidden layer, and with one output or one for each class. " + PREDICT)
    if e.out_activation_ == "softmax":
        body["classes"] = _classes(e)
    else:
        body["link"] = "logit" if e.out_activation_ == "logistic" else "identity"
    return {"network": body}


# Mixtures: a sum of other models' predictions

def _mixture(models, weights, classes=None, base=0.0, link="identity"):
    """The sum of base and of each model's predictions times its weight. classes are those of the whole, in the order in which each model has them."""
    several = classes is not None and len(classes) > 2
    body = {"models": [{"model": _named(m, classes) if several else m, "weight": float(w)} for m, w in zip(models, weights)]}
    if several:
        body["classes"] = classes
    else:
        body.update(base=float(base), link=link)
    return {"mixture": body}


def _named(model, classes):
    """The model with these names of its classes: a vote fits its models to the numbers of classes."""
    (kind, body), = model.items()
    if len(body.get("classes", [])) != len(classes):
        raise ValueError("a model of the mixture saw other classes than the whole; fit it on all of them. " + PREDICT)
    body = {**body, "classes": classes}
    if kind == "mixture":
        body["models"] = [{**m, "model": _named(m["model"], classes)} for m in body["models"]]
    return {kind: body}


def _raw(model):
    """The model whose prediction is the score."""
    (kind, body), = model.items()
    return {kind: {**body, "link": "identity"}}


def _vote(e, features):
    if hasattr(e, "classes_") and e.voting != "soft":
        raise ValueError('a vote of classes is exported with voting="soft"')
    used = [w for (_, was), w in zip(e.estimators, e.weights if e.weights is not None else [1] * len(e.estimators)) if not isinstance(was, str) or was != "drop"]
    return _mixture([_model(m, features) for m in e.estimators_], np.asarray(used) / np.sum(used), _classes(e) if hasattr(e, "classes_") else None)


def _bag(e, features):
    models = [_model(m, [features[i] for i in chosen]) for m, chosen in zip(e.estimators_, e.estimators_features_)]
    return _mixture(models, [1 / len(models)] * len(models), _classes(e) if hasattr(e, "classes_") else None)


def _calibrated(e, features):
    kinds = {type(c.calibrators[0]).__name__ for c in e.calibrated_classifiers_}
    if len(e.classes_) != 2 or not kinds <= {"_SigmoidCalibration", "IsotonicRegression"}:
        raise ValueError('of CalibratedClassifierCV, method="sigmoid" and method="isotonic" of two classes are exported. ' + PREDICT)
    models = []
    for c in e.calibrated_classifiers_:
        model, calibrator = _model(c.estimator, features), c.calibrators[0]
        if hasattr(c.estimator, "decision_function"):
            model = _raw(model)
        models.append(_through(model, calibrator) if "IsotonicRegression" in kinds else _mixture([model], [-calibrator.a_], base=-calibrator.b_, link="logit"))
    if len(models) == 1:
        return models[0]
    if kinds == {"IsotonicRegression"}:  # one mixture of all, each through its curve
        return {"mixture": {"models": [{**m["mixture"]["models"][0], "weight": 1 / len(models)} for m in models]}}
    return _mixture(models, [1 / len(models)] * len(models))


def _through(model, isotonic):
    """The model's predictions through an isotonic regression: linear between its thresholds, and constant beyond."""
    x, y = (np.asarray(v, dtype=float).tolist() for v in (isotonic.X_thresholds_, isotonic.y_thresholds_))
    if len(x) == 1:
        x, y = [x[0], x[0] + 1], [y[0], y[0]]
    return {"mixture": {"models": [{"model": model, "curve": [list(p) for p in zip(x, y)]}]}}


def _stack(e, features):
    final = e.final_estimator_
    logistic = hasattr(e, "classes_")
    if not hasattr(final, "coef_") or len(np.atleast_2d(final.coef_)) != 1 or e.passthrough or logistic and not type(final).__name__.startswith("LogisticRegression"):
        raise ValueError("a stack is exported with a linear final_estimator, of classes a logistic regression, for numbers or two classes, without passthrough. " + PREDICT)
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


_MIXTURES = {"VotingClassifier": _vote, "VotingRegressor": _vote, "BaggingClassifier": _bag, "BaggingRegressor": _bag, "CalibratedClassifierCV": _calibrated,
             "StackingClassifier": _stack, "StackingRegressor": _stack}


def _classes(e):
    return [c.item() if isinstance(c, np.generic) else c for c in e.classes_]


# Trees. A tree is a list of nodes in preorder; a split is [column, threshold] or [column, [texts]], with "right" where a null goes right.

def _split(feature, below, threshold, missing_left, left, right):
    """The nodes of a split and of what is under it. below(x) says whether a feature's number goes left, which is monotone: left up to some number, which is threshold where it is
    known. missing_left is where the library sends a null."""
    if isinstance(feature, _Number):
        null_left = missing_left if feature.null is None else bool(below(feature.null))
        if feature.steps:
            threshold = _largest(lambda x: below(feature.value(x)))
        threshold = min(max(threshold, -LARGEST), LARGEST)  # a split into nulls and all numbers has 1e300, or no end
        return [[feature.column, threshold] + ([] if null_left else ["right"]), *left, *right]
    if not isinstance(feature, _Text):
        _plain(feature, "a tree")
    other_left, null_left = bool(below(feature.other)), bool(below(feature.null))
    apart = sorted(t for t, v in feature.values.items() if bool(below(v)) != other_left)  # texts that go elsewhere than those that are not known
    if not apart and null_left == other_left:
        return left if other_left else right
    node = [feature.column, apart or [NO_TEXT]]
    here, there = (right, left) if other_left else (left, right)  # of the listed texts, and of the others
    return [node + ([] if null_left != other_left else ["right"]), *here, *there]


def _codes(feature, texts):
    """A text column as the codes of its categories; no number where it is null or another text, which both libraries take for missing."""
    if not isinstance(feature, _Number) or feature.steps or feature.null is not None or not all(isinstance(t, str) for t in texts):
        raise ValueError("categories are exported where the column is one of texts, of pandas' dtype category, without a step before; make numbers texts, or leave them numbers. " + PREDICT)
    return _Text(feature.column, {t: float(code) for code, t in enumerate(texts)}, math.nan, math.nan)


def _largest(below):
    """The largest double for which below holds, a condition that holds up to some number; -LARGEST if for none, LARGEST if for all."""
    number = lambda i: float(np.int64(i).view(np.float64)) if i >= 0 else -float(np.int64(-i).view(np.float64))  # doubles in their order, as whole numbers
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


def _double_below(single):
    """The largest double that rounds to at most this single."""
    single = np.float32(single)
    if not np.isfinite(single):
        return math.copysign(LARGEST, single)
    following = np.nextafter(single, np.float32(np.inf), dtype=np.float32)
    middle = (float(single) + float(following)) / 2
    even = int(single.view(np.uint32)) % 2 == 0
    return middle if even else math.nextafter(middle, -math.inf)


def _single_at_most(threshold):
    single = np.float32(threshold)
    return single if float(single) <= threshold else np.nextafter(single, np.float32(-np.inf), dtype=np.float32)


def _sklearn_tree(tree, features, leaf):
    missing_left = getattr(tree, "missing_go_to_left", np.zeros(tree.node_count))

    def nodes(i):
        if tree.children_left[i] == -1:
            return [leaf(tree.value[i])]
        f, t = tree.feature[i], _single_at_most(tree.threshold[i])
        return _split(features[f], lambda x: np.float32(x) <= t, _double_below(t), bool(missing_left[i]), nodes(tree.children_left[i]), nodes(tree.children_right[i]))

    return nodes(0)


def _sklearn_trees(e, features):
    name = type(e).__name__
    if name.startswith("HistGradientBoosting"):
        return _hist(e, features)
    if name.startswith("GradientBoosting"):
        return _boosting(e, features)
    if name not in ("DecisionTreeClassifier", "DecisionTreeRegressor", "ExtraTreeClassifier", "ExtraTreeRegressor", "RandomForestClassifier",
                    "RandomForestRegressor", "ExtraTreesClassifier", "ExtraTreesRegressor") or e.n_outputs_ != 1:
        raise ValueError(f"{name} is not exported. " + PREDICT)
    body = {}
    leaf = lambda value: float(value[0, 0])
    if hasattr(e, "classes_"):
        share = lambda value: (value[0] / value[0].sum()).tolist()
        if len(e.classes_) == 2:
            leaf = lambda value: share(value)[1]
        else:
            leaf, body["classes"] = share, _classes(e)
    trees = getattr(e, "estimators_", [e])
    body["trees"] = [_sklearn_tree(t.tree_, features, leaf) for t in trees]
    if len(trees) > 1:
        body["average"] = True
    return {"trees": body}


def _several(body, e, base):
    """Adds the link and the start of a booster, by its number of classes."""
    if len(base) > 1:
        body.update(classes=_classes(e), link="softmax", base=[float(b) for b in base])
    else:
        body.update(link="logit" if hasattr(e, "classes_") else "identity", base=float(base[0]))
    return {"trees": body}


def _boosting(e, features):
    if hasattr(e, "classes_") and e.loss != "log_loss":
        raise ValueError("boosting of classes is exported with log_loss. " + PREDICT)
    if e.init is not None and e.init != "zero":
        raise ValueError("boosting is exported without an estimator to start with; leave init as it is")
    base = e._raw_predict_init(np.zeros((1, len(features)), dtype=np.float32))[0]
    trees = [_sklearn_tree(t.tree_, features, lambda value: float(e.learning_rate * value[0, 0])) for row in e.estimators_ for t in row]
    return _several({"trees": trees}, e, base)


def _hist(e, features):
    if not hasattr(e, "classes_") and e.loss not in ("squared_error", "absolute_error", "quantile"):
        raise ValueError("of histogram boosting for counts the link is not exported. " + PREDICT)

    prepare = getattr(e, "_preprocessor", None)
    categorical = getattr(e, "is_categorical_", None)
    if prepare is not None:  # it puts categories first, as codes
        known = prepare.named_transformers_["encoder"].categories_
        at = [i for i, c in enumerate(categorical) if c]
        features = [_codes(features[i], [t for t in texts if not _is_null(t)]) for i, texts in zip(at, known)] + [f for f, c in zip(features, categorical) if not c]
    elif categorical is not None and np.any(categorical):
        raise ValueError("categories that are numbers are not exported; make them texts, of pandas' dtype category. " + PREDICT)

    def tree(p):
        def below(i):
            n = p.nodes[i]
            if n["is_leaf"]:
                return [float(n["value"])]
            f, t, missing_left = features[n["feature_idx"]], float(n["num_threshold"]), bool(n["missing_go_to_left"])
            left, right = below(n["left"]), below(n["right"])
            if n["is_categorical"]:
                bits = p.raw_left_cat_bitsets[n["bitset_idx"]]
                return _split(f, lambda code: missing_left if code != code else int(bits[int(code) // 32]) >> int(code) % 32 & 1 == 1, None, missing_left, left, right)
            return _split(f, lambda x: x <= t, t, missing_left, left, right)

        return below(0)

    trees = [tree(p) for iteration in e._predictors for p in iteration]
    return _several({"trees": trees}, e, np.asarray(e._baseline_prediction).reshape(-1))


def _xgboost(e, features):
    booster = e.get_booster() if hasattr(e, "get_booster") else e
    learner = json.loads(bytes(booster.save_raw("json")))["learner"]
    objective = learner["objective"]["name"]
    classes = int(learner["learner_model_param"]["num_class"])
    if learner["gradient_booster"]["name"] != "gbtree":
        raise ValueError("of XGBoost, gbtree is exported. " + PREDICT)
    links = {"binary:logistic": "logit", "reg:squarederror": "identity", "reg:absoluteerror": "identity", "multi:softprob": "softmax", "multi:softmax": "softmax"}
    if objective not in links:
        raise ValueError(f"the objective {objective} is not exported. " + PREDICT)
    model = learner["gradient_booster"]["model"]
    if int(model["gbtree_model_param"].get("num_parallel_tree", 1)) != 1:
        raise ValueError("of XGBoost, boosting without parallel trees is exported. " + PREDICT)
    base = np.asarray(json.loads(learner["learner_model_param"]["base_score"]), dtype=float).reshape(-1)
    best = getattr(e, "best_iteration", None) if getattr(e, "early_stopping_rounds", None) else None
    trees = model["trees"] if best is None else model["trees"][:(best + 1) * max(classes, 1)]

    texts = _xgboost_texts(model.get("cats"))

    def tree(t):
        listed = {node: set(t["categories"][begin:begin + size])  # the codes that go right
                  for node, begin, size in zip(t["categories_nodes"], t["categories_segments"], t["categories_sizes"])}

        def below(i):
            value = np.float32(t["split_conditions"][i])
            if t["left_children"][i] == -1:
                return [float(value)]
            if i in listed:
                at, missing_left = t["split_indices"][i], bool(t["default_left"][i])
                if at >= len(texts) or not texts[at]:
                    raise ValueError("categories of XGBoost are exported where the model keeps their texts: columns of pandas' dtype category, and XGBoost 3.1 or newer. " + PREDICT)
                left, right = below(t["left_children"][i]), below(t["right_children"][i])
                return _split(_codes(features[at], texts[at]), lambda code: missing_left if code != code else int(code) not in listed[i], None, missing_left, left, right)
            threshold = _double_below(np.nextafter(value, np.float32(-np.inf), dtype=np.float32))  # below it goes left
            return _split(features[t["split_indices"][i]], lambda x: np.float32(x) < value, threshold, bool(t["default_left"][i]), below(t["left_children"][i]), below(t["right_children"][i]))

        return below(0)

    body = {"trees": [tree(t) for t in trees], "link": links[objective]}
    if classes > 1:
        names = _classes(e) if hasattr(e, "classes_") else list(range(classes))
        body.update(classes=names, base=np.broadcast_to(base, classes).tolist())
    else:
        body["base"] = math.log(base[0] / (1 - base[0])) if objective == "binary:logistic" else float(base[0])
    return {"trees": body}


def _xgboost_texts(kept):
    """The texts of each feature's categories as the model keeps them, in the order of their codes; none of a number."""
    out = []
    for enc in (kept or {}).get("enc", []):
        offsets, letters = enc.get("offsets", []), enc.get("values", [])
        if not offsets and letters:
            raise ValueError("categories that are numbers are not exported; make them texts. " + PREDICT)
        if any(not 0 <= c < 128 for c in letters):
            raise ValueError("XGBoost does not keep categories whole that have letters beyond ASCII; give them other names, or encode them with OneHotEncoder. " + PREDICT)
        out.append([bytes(letters[a:b]).decode() for a, b in zip(offsets, offsets[1:])])
    return out


def _lightgbm(e, features):
    booster = getattr(e, "booster_", e)
    model = booster.dump_model()
    objective = model["objective"].split()
    links = {"binary": "logit", "regression": "identity", "regression_l1": "identity", "quantile": "identity", "multiclass": "softmax"}
    if objective[0] not in links or objective[0] == "binary" and "sigmoid:1" not in objective or model.get("average_output"):
        raise ValueError(f"the objective {model['objective']} is not exported. " + PREDICT)

    numbered = re.search(r"^\[categorical_feature: ([\d,]*)\]", booster.model_to_string(num_iteration=1), re.M)
    categories = dict(zip([int(i) for i in numbered[1].split(",") if i] if numbered else [], model.get("pandas_categorical") or []))

    def in_list(n, feature):
        """A split by categories: those of the list go left, all others and nulls right."""
        texts = [categories.get(n["split_feature"], [])[int(code)] if int(code) < len(categories.get(n["split_feature"], [])) else None for code in n["threshold"].split("||")]
        if not isinstance(feature, _Number) or feature.steps or feature.null is not None or not all(isinstance(t, str) for t in texts):
            raise ValueError("categories of LightGBM are exported where the column is one of texts, of pandas' dtype category, without a step before; make numbers texts, or leave them numbers. " + PREDICT)
        return [[feature.column, sorted(texts), "right"], *below(n["left_child"]), *below(n["right_child"])]

    def below(n):
        if "leaf_value" in n:
            return [float(n["leaf_value"])]
        feature = features[n["split_feature"]]
        if n["decision_type"] == "==":
            return in_list(n, feature)
        if n["decision_type"] != "<=" or n["missing_type"] == "Zero":
            raise ValueError("zero_as_missing is not exported; fit without it. " + PREDICT)
        threshold = float(n["threshold"])
        missing_left = bool(n["default_left"]) if n["missing_type"] == "NaN" else 0 <= threshold  # else a null is 0
        return _split(feature, lambda x: x <= threshold, threshold, missing_left, below(n["left_child"]), below(n["right_child"]))

    body = {"trees": [below(t["tree_structure"]) for t in model["tree_info"]], "link": links[objective[0]]}
    if model["num_class"] > 1:
        names = _classes(e) if hasattr(e, "classes_") else list(range(model["num_class"]))
        body["classes"] = names
    return {"trees": body}
