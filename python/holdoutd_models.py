"""Writes models of scikit-learn, XGBoost and LightGBM as JSON that holdoutd reads (docs/MODELS.md).

    from holdoutd_models import export

    forest = RandomForestClassifier(max_depth=8).fit(training[["distance", "hour"]], training.delay > 15)
    query = {"type": "accuracy", "label": "delay > 15", "model": export(forest, ["distance", "hour"])}

export(estimator, columns, texts=None) takes a fitted estimator and the names of the table's columns that its features are, in
the order of the features. texts says which features are indicators of a text column, as pandas.get_dummies makes them:
{"origin_SFO": ("origin", "SFO")}.

Exported are, of scikit-learn: linear and ridge regression, lasso, elastic net, linear support vectors, logistic regression,
decision trees, random forests, extra trees, gradient boosting and histogram gradient boosting, each alone or at the end of a
Pipeline of SimpleImputer and (before linear models) StandardScaler; of XGBoost and LightGBM: tree boosters for regression, for
two classes and for several. What cannot be exported exactly raises ValueError.

A classifier of two classes becomes a model with one output, the probability of the second one of classes_; its label is a
condition. One of several classes has them as they are: the label is a column. Predictions are those of the library: scikit-learn's
trees compare features that were rounded to single precision, XGBoost's too; thresholds are moved so that comparing the
column's double gives the same side for every number.
"""

import json
import math

import numpy as np


def export(estimator, columns, texts=None):
    """The model as an object for json.dumps. columns[i] names the column, or the key of texts, of feature i."""
    features = [(texts or {}).get(name, name) for name in columns]
    module = type(estimator).__module__.split(".")[0]
    if module == "xgboost":
        return _xgboost(estimator, features)
    if module == "lightgbm":
        return _lightgbm(estimator, features)
    steps = [s for _, s in estimator.steps] if hasattr(estimator, "steps") else [estimator]
    means, scales, nulls = np.zeros(len(features)), np.ones(len(features)), [None] * len(features)
    for step in steps[:-1]:
        name = type(step).__name__
        if name == "SimpleImputer" and not step.add_indicator and len(step.statistics_) == len(features):
            nulls = [float(v) for v in step.statistics_]
        elif name == "StandardScaler":
            means = step.mean_ if step.with_mean else means
            scales = step.scale_ if step.with_std else scales
        else:
            raise ValueError(f"a step {name} is not exported")
    final = steps[-1]
    if len(getattr(final, "feature_importances_", [])) == 0 and hasattr(final, "coef_"):
        return _linear(final, features, means, scales, nulls)
    if any(means) or any(scales != 1):
        raise ValueError("trees are exported without a scaler before them, which they do not need")
    return _sklearn_trees(final, features, nulls)


def dumps(estimator, columns, texts=None):
    """export as compact JSON."""
    return json.dumps(export(estimator, columns, texts), separators=(",", ":"))


# Linear models

def _linear(e, features, means, scales, nulls):
    if not hasattr(e, "intercept_") or type(e).__name__ in ("SVC", "SVR", "NuSVC", "NuSVR"):
        raise ValueError(f"{type(e).__name__} is not exported")
    weights = np.atleast_2d(e.coef_) / scales
    intercepts = np.broadcast_to(np.atleast_1d(e.intercept_), len(weights)) - weights @ means
    logistic = type(e).__name__ in ("LogisticRegression", "LogisticRegressionCV") or getattr(e, "loss", None) == "log_loss"
    if len(weights) == 1:
        body = {"intercept": float(intercepts[0]), "weights": _by_column(features, weights[0]), "link": "logit" if logistic else "identity"}
        kind = "linear"
    elif logistic and type(e).__name__.startswith("LogisticRegression"):
        body = {"classes": _classes(e), "intercepts": intercepts.tolist(), "weights": _by_column(features, weights.T)}
        kind = "softmax"
    else:
        raise ValueError("of several classes, logistic regression is exported")
    impute = {}
    for feature, null in zip(features, nulls):
        if null is not None and isinstance(feature, str):
            impute[feature] = null
    if impute:
        body["impute"] = impute
    return {kind: body}


def _by_column(features, weights):
    out = {}
    for feature, w in zip(features, weights):
        w = w.tolist() if isinstance(w, np.ndarray) else float(w)
        if isinstance(feature, str):
            out[feature] = w
        else:
            column, text = feature
            out.setdefault(column, {})[text] = w
    return out


def _classes(e):
    return [c.item() if isinstance(c, np.generic) else c for c in e.classes_]


# Trees. A tree is a list of nodes in preorder; a split is [column, threshold] or [column, [texts]], with "right" where a null goes right.

def _split(feature, threshold, null_right, left, right):
    """The nodes of a split and of what is below it."""
    if isinstance(feature, str):
        node = [feature, threshold] + (["right"] if null_right else [])
        return [node, *left, *right]
    if not 0 <= threshold < 1:
        return left if threshold >= 1 else right
    column, text = feature  # 1 is this text, which is above the threshold; a null is no text
    return [[column, [text], "right"], *right, *left]


LARGEST = 1e150  # the largest number of a model; splits into nulls and all numbers have an infinite threshold in some libraries


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


def _null_right(null, threshold, missing_left):
    """Where a null goes: as its imputed value does, else as the library has it."""
    return not missing_left if null is None else null > threshold


def _sklearn_tree(tree, features, nulls, leaf):
    missing_left = getattr(tree, "missing_go_to_left", np.zeros(tree.node_count))

    def nodes(i):
        if tree.children_left[i] == -1:
            return [leaf(tree.value[i])]
        f, t = tree.feature[i], _double_below(_single_at_most(tree.threshold[i]))
        return _split(features[f], t, _null_right(nulls[f], t, bool(missing_left[i])), nodes(tree.children_left[i]), nodes(tree.children_right[i]))

    return nodes(0)


def _sklearn_trees(e, features, nulls):
    name = type(e).__name__
    if name.startswith("HistGradientBoosting"):
        return _hist(e, features, nulls)
    if name.startswith("GradientBoosting"):
        return _boosting(e, features, nulls)
    if name not in ("DecisionTreeClassifier", "DecisionTreeRegressor", "ExtraTreeClassifier", "ExtraTreeRegressor", "RandomForestClassifier",
                    "RandomForestRegressor", "ExtraTreesClassifier", "ExtraTreesRegressor") or e.n_outputs_ != 1:
        raise ValueError(f"{name} is not exported")
    body = {}
    leaf = lambda value: float(value[0, 0])
    if hasattr(e, "classes_"):
        share = lambda value: (value[0] / value[0].sum()).tolist()
        if len(e.classes_) == 2:
            leaf = lambda value: share(value)[1]
        else:
            leaf, body["classes"] = share, _classes(e)
    trees = getattr(e, "estimators_", [e])
    body["trees"] = [_sklearn_tree(t.tree_, features, nulls, leaf) for t in trees]
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


def _boosting(e, features, nulls):
    if hasattr(e, "classes_") and e.loss != "log_loss":
        raise ValueError("boosting of classes is exported with log_loss")
    if e.init is not None and e.init != "zero":
        raise ValueError("boosting is exported without an estimator to start with")
    base = e._raw_predict_init(np.zeros((1, len(features)), dtype=np.float32))[0]
    trees = [_sklearn_tree(t.tree_, features, nulls, lambda value: float(e.learning_rate * value[0, 0])) for row in e.estimators_ for t in row]
    return _several({"trees": trees}, e, base)


def _hist(e, features, nulls):
    if not hasattr(e, "classes_") and e.loss not in ("squared_error", "absolute_error", "quantile"):
        raise ValueError("of histogram boosting for counts the link is not exported")

    def tree(nodes):
        def below(i):
            n = nodes[i]
            if n["is_leaf"]:
                return [float(n["value"])]
            if n["is_categorical"]:
                raise ValueError("categorical splits are not exported; use indicators and texts")
            f, t = n["feature_idx"], float(n["num_threshold"])
            t = min(max(t, -LARGEST), LARGEST)
            return _split(features[f], t, _null_right(nulls[f], t, bool(n["missing_go_to_left"])), below(n["left"]), below(n["right"]))

        return below(0)

    trees = [tree(p.nodes) for iteration in e._predictors for p in iteration]
    return _several({"trees": trees}, e, np.asarray(e._baseline_prediction).reshape(-1))


def _xgboost(e, features):
    booster = e.get_booster() if hasattr(e, "get_booster") else e
    learner = json.loads(bytes(booster.save_raw("json")))["learner"]
    objective = learner["objective"]["name"]
    classes = int(learner["learner_model_param"]["num_class"])
    if learner["gradient_booster"]["name"] != "gbtree":
        raise ValueError("of XGBoost, gbtree is exported")
    links = {"binary:logistic": "logit", "reg:squarederror": "identity", "reg:absoluteerror": "identity", "multi:softprob": "softmax", "multi:softmax": "softmax"}
    if objective not in links:
        raise ValueError(f"the objective {objective} is not exported")
    model = learner["gradient_booster"]["model"]
    if int(model["gbtree_model_param"].get("num_parallel_tree", 1)) != 1:
        raise ValueError("of XGBoost, boosting without parallel trees is exported")
    base = np.asarray(json.loads(learner["learner_model_param"]["base_score"]), dtype=float).reshape(-1)
    best = getattr(e, "best_iteration", None) if getattr(e, "early_stopping_rounds", None) else None
    trees = model["trees"] if best is None else model["trees"][:(best + 1) * max(classes, 1)]

    def tree(t):
        if any(t["split_type"]):
            raise ValueError("categorical splits are not exported; use indicators and texts")

        def below(i):
            value = np.float32(t["split_conditions"][i])
            if t["left_children"][i] == -1:
                return [float(value)]
            threshold = _double_below(np.nextafter(value, np.float32(-np.inf), dtype=np.float32))  # below it goes left
            return _split(features[t["split_indices"][i]], threshold, not t["default_left"][i], below(t["left_children"][i]), below(t["right_children"][i]))

        return below(0)

    body = {"trees": [tree(t) for t in trees], "link": links[objective]}
    if classes > 1:
        names = _classes(e) if hasattr(e, "classes_") else list(range(classes))
        body.update(classes=names, base=np.broadcast_to(base, classes).tolist())
    else:
        body["base"] = math.log(base[0] / (1 - base[0])) if objective == "binary:logistic" else float(base[0])
    return {"trees": body}


def _lightgbm(e, features):
    booster = getattr(e, "booster_", e)
    model = booster.dump_model()
    objective = model["objective"].split()
    links = {"binary": "logit", "regression": "identity", "regression_l1": "identity", "quantile": "identity", "multiclass": "softmax"}
    if objective[0] not in links or objective[0] == "binary" and "sigmoid:1" not in objective or model.get("average_output"):
        raise ValueError(f"the objective {model['objective']} is not exported")

    def below(n):
        if "leaf_value" in n:
            return [float(n["leaf_value"])]
        if n["decision_type"] != "<=" or n["missing_type"] == "Zero":
            raise ValueError("categorical splits and zero_as_missing are not exported")
        null_right = not n["default_left"] if n["missing_type"] == "NaN" else 0 > n["threshold"]  # else a null is 0
        return _split(features[n["split_feature"]], float(n["threshold"]), null_right, below(n["left_child"]), below(n["right_child"]))

    body = {"trees": [below(t["tree_structure"]) for t in model["tree_info"]], "link": links[objective[0]]}
    if model["num_class"] > 1:
        names = _classes(e) if hasattr(e, "classes_") else list(range(model["num_class"]))
        body["classes"] = names
    return {"trees": body}
