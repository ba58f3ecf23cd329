"""Questions about models, in the words of scikit-learn."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from ._questions import Expr, Questions, R
from .errors import CannotExport

# What scikit-learn, or a person, calls a measure: the query that it is.
METRICS: dict[str, dict[str, Any]] = {
    "accuracy": {"type": "accuracy"},
    "balanced_accuracy": {"type": "balanced_accuracy"},
    "precision": {"type": "precision"},
    "recall": {"type": "recall"},
    "f1": {"type": "f1"},
    "auc": {"type": "auc"},
    "roc_auc": {"type": "auc"},
    "log_loss": {"type": "loss", "loss": "log"},
    "brier": {"type": "loss", "loss": "brier"},
    "brier_score": {"type": "loss", "loss": "brier"},
    "zero_one": {"type": "loss", "loss": "zero_one"},
    "hinge": {"type": "loss", "loss": "hinge"},
    "mean_absolute_error": {"type": "loss", "loss": "absolute"},
    "mean_squared_error": {"type": "loss", "loss": "squared"},
    "rmse": {"type": "rmse"},
    "root_mean_squared_error": {"type": "rmse"},
    "r2": {"type": "r2"},
    "calibration": {"type": "calibration"},
    "confusion": {"type": "confusion"},
}

TYPO = 0.85  # how alike a name must be to be taken for another: top_k_accuracy is no slip for accuracy

# Names of scikit-learn's that are no metric here, and what to ask instead.
NOT_ASKED = {
    "average_precision": "it is a mean of precisions at all thresholds, a ratio at each of them, of which no interval is known here that "
    "holds and is narrow enough to tell models apart. Ask for roc_auc, which ranks by all thresholds, too; or for precision and recall at "
    "the threshold that you would use: ds.score(model, 'precision', threshold=0.3)",
}
NOT_ASKED["average_precision_score"] = NOT_ASKED["pr_auc"] = NOT_ASKED["average_precision"]

# Those of which less is better.
LESS_IS_BETTER = frozenset({"loss", "rmse"})


def metric_query(metric: str, members: Mapping[str, Any]) -> dict[str, Any]:
    """The query of a metric, without its model."""
    if (of := metric.removeprefix("neg_")) != metric and of in METRICS:
        raise ValueError(
            f"{metric!r} is a score of searches, which ds.scorer({metric!r}) gives; the measure itself is {of!r}: less is better"
        )
    if metric in NOT_ASKED:
        raise ValueError(f"{metric} is not answered: {NOT_ASKED[metric]}")
    if metric not in METRICS:
        import difflib

        near = difflib.get_close_matches(metric, METRICS, 1, cutoff=TYPO)
        raise ValueError(
            f"there is no metric {metric!r}" + (f"; did you mean {near[0]!r}?" if near else f"; there are {', '.join(METRICS)}")
        )
    return {**METRICS[metric], **members}


OF_PROBABILITIES = frozenset({"log_loss", "brier", "brier_score", "calibration"})


def warn_of_margins(model: Any, metric: str) -> None:
    """Warns where a measure of probabilities is asked of a classifier that has none: its margins or votes are taken for them."""
    if metric in OF_PROBABILITIES and hasattr(model, "classes_") and len(model.classes_) and not hasattr(model, "predict_proba"):
        warnings.warn(
            f"{metric} is of probabilities, and this {type(model).__name__} has none: its margins or votes are taken for them. "
            "Fit it within CalibratedClassifierCV, vote with voting='soft', or ask for accuracy or auc",
            stacklevel=3,
        )


def less_is_better(metric: str) -> bool:
    return METRICS[metric]["type"] in LESS_IS_BETTER if metric in METRICS else False


def is_model(value: Any) -> bool:
    """Whether it is a fitted estimator or a function, rather than a query or the JSON of a model."""
    return not isinstance(value, (Mapping, str)) and (hasattr(value, "predict") or callable(value))


def in_table(name: str, table: Sequence[str]) -> str:
    """The table's column of a feature. LightGBM writes white space in names as an underscore."""
    meant = [c for c in table if "_".join(c.split(" ")) == name]
    return meant[0] if name not in table and len(meant) == 1 else name


def exported(estimator: Any, columns: Any, texts: Any, table: Sequence[str], rows: Any = None, else_: str = "") -> dict[str, Any]:
    """The estimator as JSON, compared with the library on rows of the training part. CannotExport says what else can be done: else_."""
    from . import models

    if not hasattr(estimator, "predict"):
        raise CannotExport(f"a plain function cannot be sent to the server, where the held-out rows are. {else_}")
    try:
        models.fitted(estimator)
    except ValueError as e:
        raise CannotExport(str(e)) from e
    if columns is None and (names := models.columns_of(estimator)) is not None:
        columns = [in_table(n, table) for n in names]
    if columns is None:
        raise CannotExport(
            f"this {type(estimator).__name__} was fitted on an array without column names: fit it on a DataFrame, or give "
            "columns=[…], the table's columns in the order of its features"
        )
    try:
        return dict(models.export(estimator, list(columns), texts, rows=rows))
    except ValueError as e:
        raise CannotExport(f"{e}. {else_}") from e


class Scores(Questions[R]):
    """Questions in which a model stands, asked with the estimator itself."""

    def score(
        self,
        model: Any,
        metric: str = "accuracy",
        *,
        label: Expr | None = None,
        columns: Any = None,
        texts: Mapping[str, tuple[str, str]] | None = None,
        name: str | None = None,
        **members: Any,
    ) -> R:
        """How good a model is, by a metric of scikit-learn's or of the server's: accuracy, balanced_accuracy, roc_auc, log_loss, r2, …

        Args:
            model: a fitted estimator, a pipeline, the JSON of an exported model, or, where the holdout has public features, any
                function of a DataFrame that gives a prediction for each row
            metric: what is measured
            label: the truth: a column or a condition, such as "delay > 15"; default: the label of the holdout
            columns: the table's columns in the order of the model's features; default: the names that it was fitted with
            texts: which features are indicators of a text column: {"origin_SFO": ("origin", "SFO")}
            name: what the model is called in your history and on the page; default: the estimator as it prints. It is the query's note
            members: other members of the query, such as where, range or guess
        """
        query = metric_query(metric, {"label": label, "note": name or name_of(model), **members})
        warn_of_margins(model, metric)
        return self._ask({**query, "model": Fitted(model, columns, texts)})

    def compare(
        self,
        a: Any,
        b: Any,
        metric: str | None = None,
        *,
        label: Expr | None = None,
        columns: Any = None,
        texts: Mapping[str, tuple[str, str]] | None = None,
        name: str | None = None,
        **members: Any,
    ) -> R:
        """Whether b is better than a: two models by a metric, or two queries. The value is b's mean minus a's, and the verdict
        yes if all of the interval is above `by`. Of losses less is better.

        Args:
            a: what b is compared with: a fitted estimator, or a query
            b: what may be better
            metric: of two models: what is measured; default: accuracy
            label: of two models: the truth; default: the label of the holdout
            columns: as in score
            texts: as in score
            name: of two models: what the comparison is called, as in score
            members: other members of the query: by, least, guess, half_width, measure, promise, weight, note; of two models also those
                of the metric, such as clip
        """
        if metric is None and isinstance(a, Mapping) and isinstance(b, Mapping) and "type" in a and "type" in b:
            return self._ask({"type": "compare", "a": a, "b": b, **members})
        metric = metric or "accuracy"
        own = {m: members.pop(m) for m in COMPARE if m in members}
        if names := [n for n in (name_of(b), name_of(a)) if n]:
            own.setdefault("note", name or " against ".join(names))
        if less_is_better(metric):
            own.setdefault("least", True)
        inner = metric_query(metric, {"label": label, **members})
        for model in (a, b):
            warn_of_margins(model, metric)
        return self._ask(
            {
                "type": "compare",
                "a": {**inner, "model": Fitted(a, columns, texts)},
                "b": {**inner, "model": Fitted(b, columns, texts)},
                **own,
            }
        )

    def screen(self, label: Expr | None = None, *, features: Any = "*", range: Any = None, **members: Any) -> R:
        """Many features against one label in one request.

        Args:
            label: what the features are compared with: a number or a condition; default: the label of the holdout
            features: a list of number columns, or a pattern of names; default: all number columns that are not in the label
            range: [low, high] to which features are clamped; default: from the least to the largest of their values in training
            members: other members of the query: statistic, clip, range_label, note
        """
        return self._ask({"type": "screen", "label": label, "features": features, "range": range, **members})

    def ttest(self, of: Expr, between: Any, *, range: Any = None, **members: Any) -> R:
        """Whether a number, or a condition without range, differs between two groups of rows.

        Args:
            of: the number, or the condition
            between: two conditions, or one, whose other rows are the second group
            range: [low, high] of the number
            members: other members of the test: equals, where, null, alternative, note
        """
        between = [between] if isinstance(between, str) or not hasattr(between, "__iter__") else list(between)
        kind = "two-proportions" if range is None else "two-sample"
        return self._ask({"type": "test", "test": kind, "of": of, "between": between, "range": range, **members})


Questioned = Mapping[str, Any] | Sequence[Any]  # of a report


def reported(questions: Questioned, metric: str, columns: Any, texts: Any) -> list[dict[str, Any]]:
    """The queries of a report: questions as they are, models by the metric; of a dict each is called by its name."""
    if isinstance(questions, Mapping) and "type" in questions:
        questions = [questions]
    named = list(questions.items()) if isinstance(questions, Mapping) else [(None, q) for q in questions]
    queries = []
    for name, what in named:
        if isinstance(what, Mapping) and "type" in what:
            queries.append({**what, **({"note": name} if name else {})})
            continue
        warn_of_margins(what, metric)
        query = metric_query(metric, {"note": name or name_of(what)})
        queries.append({**query, "model": Fitted(what, columns, texts)})
    return queries


LONGEST_NAME = 100  # a longer text does not help to tell models apart


def name_of(model: Any) -> str | None:
    """What a model is called that nobody named: as it prints, if that is short; of a pipeline its last step; else its type."""
    if isinstance(model, Mapping):
        return None
    model = getattr(model, "best_estimator_", model)
    if steps := getattr(model, "steps", None):
        return name_of(steps[-1][1])
    if not hasattr(model, "predict"):
        name: str = getattr(model, "__name__", "<lambda>")
        return None if name == "<lambda>" else name
    text = " ".join(repr(model).split())
    return text if text.startswith(type(model).__name__ + "(") and len(text) <= LONGEST_NAME else type(model).__name__


class Fitted:
    """A model in a query that is not JSON yet."""

    def __init__(self, model: Any, columns: Any = None, texts: Any = None):
        self.model, self.columns, self.texts = model, columns, texts


# The members of a compare itself; all others belong to the two queries inside.
COMPARE = frozenset(inspect.signature(Questions.compare).parameters) - {"self", "a", "b"}
