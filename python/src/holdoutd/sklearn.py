"""Scikit-learn's searches, judged by a holdout."""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier
from sklearn.metrics import brier_score_loss, check_scoring, f1_score, make_scorer, precision_score, recall_score
from sklearn.model_selection import ParameterGrid, check_cv, cross_val_score
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ._scores import METRICS, less_is_better, metric_query
from .answers import Answer
from .errors import HoldoutdError, HoldoutWarning, SearchEnded

if TYPE_CHECKING:
    from .client import Dataset


def one_split(rows: int) -> list[tuple[Any, Any]]:
    """One split whose fit has every training row. Its test row is not looked at: the holdout judges."""
    return [(np.arange(rows), np.arange(1))]


class HoldoutScorer:
    """A scorer, as scikit-learn calls one: scorer(estimator, X, y). It asks the holdout about the estimator and leaves X and y
    alone. The same model asked again is a replay and costs nothing. Greater is better: losses have their sign changed, so that
    "log_loss" and "neg_log_loss" are the same.

    Where it cannot ask, since a model is not exported or the budget is spent, the search ends with SearchEnded. A search with n_jobs
    sends it to other processes as the place of the server and of its key. permutation_importance, which changes X, is refused.

    `answers` are those that it was given, in order; those in other processes stay there.
    """

    def __init__(self, ds: Dataset, metric: str = "accuracy", members: Mapping[str, Any] | None = None):
        metric = metric.removeprefix("neg_") if metric.removeprefix("neg_") in METRICS else metric
        metric_query(metric, {})
        self.ds, self.metric, self.members = ds, metric, dict(members or {})
        self.answers: list[Answer] = []

    def __call__(self, estimator: Any, X: Any = None, y: Any = None) -> float:
        if _called_by("sklearn.inspection"):
            raise TypeError(
                "permutation_importance shuffles the columns of X, and a holdout is asked about its own rows: every importance would be "
                f"0. Give it rows of the training part and scoring={self.metric!r}; or ask ds.compare(model without the column, model)"
            )
        if getattr(X, "shape", (1,))[0] > 1 and _called_by("sklearn.model_selection"):
            warnings.warn(
                "each fold fits another model, and asks another question of the holdout; the fold's own rows are not looked at. "
                "Search with cv=ds.cv(): one fit to all training rows, and one question, a candidate",
                HoldoutWarning,
                stacklevel=2,
            )
        try:
            answer = self.ds.score(estimator, self.metric, **self.members)
        except (HoldoutdError, ValueError) as e:
            raise SearchEnded(str(e)) from e
        self.answers.append(answer)
        if answer.value is None:  # of what is undefined, such as a precision where nothing is predicted
            return math.nan
        return -float(answer) if less_is_better(self.metric) else float(answer)

    def __repr__(self) -> str:
        return f"<{self.metric} on the holdout {self.ds.name!r}>"


def _called_by(package: str) -> bool:
    """Whether a function of this package is among the callers."""
    frame = sys._getframe(1)
    while frame is not None:
        if str(frame.f_globals.get("__name__", "")).startswith(package):
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False


class HoldoutSearchCV(MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """A grid search that asks the holdout only about candidates that cross-validation on the training rows puts ahead.

    Candidates are tried in the grid's order. Each is cross-validated on the training rows, which costs nothing. If it is better
    there than every candidate before it, it is fitted on all training rows and the holdout is asked about it, so that a search
    over hundreds of candidates asks about a few. The best by the holdout is kept.

    Args:
        estimator: what is fitted
        param_grid: as of GridSearchCV, or an iterable of dicts of parameters
        holdout: the Dataset
        metric: as of Dataset.score
        label: the truth, for the holdout
        scoring: of the cross-validation, as of scikit-learn; default: the metric, or where scikit-learn has no such the estimator's score
        cv: as of scikit-learn
        members: other members of the query
        n_jobs: of the cross-validation, as of scikit-learn

    Attributes:
        best_estimator_, best_params_, best_index_, best_answer_: the winner, and what the holdout says of it
        best_score_: the value of best_answer_; of a loss with its sign changed, as searches have it
        answers_: each candidate that was asked about, as (params, training score, answer)
        cv_results_: all candidates, as of GridSearchCV, with the holdout's scores as holdout_score: nan of those that were not asked about
        candidates_: how many were tried
        spent_: questions and tokens that this search cost
    """

    def __init__(
        self,
        estimator: Any,
        param_grid: Any,
        holdout: Any,
        metric: str = "accuracy",
        label: Any = None,
        scoring: Any = None,
        cv: Any = 5,
        members: Mapping[str, Any] | None = None,
        n_jobs: int | None = None,
    ):
        self.estimator = estimator
        self.param_grid = param_grid
        self.holdout = holdout
        self.metric = metric
        self.label = label
        self.scoring = scoring
        self.cv = cv
        self.members = members
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, groups: Any = None) -> HoldoutSearchCV:
        """Searches. X and y are the training rows; groups are their groups, for a cv that keeps those together."""
        grid: Iterable[Mapping[str, Any]] = (
            ParameterGrid(self.param_grid) if isinstance(self.param_grid, Mapping) or _grids(self.param_grid) else self.param_grid
        )
        folds = check_cv(self.cv, y, classifier=is_classifier(self.estimator))
        sign = -1 if less_is_better(self.metric) else 1
        self.scorer_ = self._scorer(y)
        ahead, best = -np.inf, -np.inf
        self.answers_: list[tuple[dict[str, Any], float, Answer]] = []
        tried: list[tuple[dict[str, Any], Any, float]] = []
        for params in grid:
            candidate = clone(self.estimator).set_params(**params)
            scores = cross_val_score(candidate, X, y, scoring=self.scorer_, cv=folds, groups=groups, n_jobs=self.n_jobs)
            score, asked = float(np.mean(scores)), math.nan
            if score > ahead:
                ahead = score
                candidate.fit(X, y)
                answer = self.holdout.score(candidate, self.metric, label=self.label, **(self.members or {}))
                self.answers_.append((dict(params), score, answer))
                if answer.value is not None:
                    asked = sign * answer.value
                if asked > best:
                    best, self.best_index_ = asked, len(tried)
                    self.best_estimator_, self.best_params_, self.best_answer_ = candidate, dict(params), answer
            tried.append((dict(params), scores, asked))
        self.candidates_ = len(tried)
        if not self.answers_:
            raise ValueError("no candidate could be scored on the training rows")
        self.best_score_ = best
        self.cv_results_ = _results(tried)
        return self

    def _scorer(self, y: Any) -> Any:
        """What orders candidates in training: scoring, or the metric as scikit-learn has it. Of two classes the second counts."""
        name = SCORING.get(self.metric)
        if self.scoring is not None or name not in OF_A_CLASS:
            return check_scoring(self.estimator, self.scoring or name)
        classes = np.unique(np.asarray(y))
        if len(classes) != 2:
            return check_scoring(self.estimator)
        if name == "neg_brier_score":
            return make_scorer(brier_score_loss, greater_is_better=False, response_method="predict_proba", pos_label=classes[1])
        return make_scorer({"precision": precision_score, "recall": recall_score, "f1": f1_score}[name], pos_label=classes[1])

    @property
    def spent_(self) -> dict[str, int]:
        """What the search cost."""
        check_is_fitted(self, "answers_")
        paid = [a.cost for _, _, a in self.answers_ if not a.replayed]
        return {"questions": sum(c.questions for c in paid), "tokens": sum(c.tokens for c in paid)}

    def score(self, X: Any, y: Any) -> float:
        """The winner's score on rows of your own, by the scoring of the cross-validation. It asks nothing."""
        check_is_fitted(self)
        return float(self.scorer_(self.best_estimator_, X, y))

    @property
    def classes_(self) -> Any:
        """The winner's classes."""
        check_is_fitted(self)
        return self.best_estimator_.classes_

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "best_estimator_")

    def predict(self, X: Any) -> Any:
        """The winner's predictions."""
        check_is_fitted(self)
        return self.best_estimator_.predict(X)

    @available_if(lambda self: hasattr(self.estimator, "predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Any:
        """The winner's probabilities."""
        check_is_fitted(self)
        return self.best_estimator_.predict_proba(X)

    def report(self) -> str:
        """What was asked and what it cost, in words."""
        spent = self.spent_
        return (
            f"{self.candidates_} candidates tried on the training rows, {len(self.answers_)} asked about: "
            f"{spent['questions']} questions and {spent['tokens']} tokens. Best: {self.best_params_}, {self.metric} {self.best_answer_}"
        )


# How scikit-learn calls a metric, as a score of which greater is better.
SCORING = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced_accuracy",
    "precision": "precision",
    "recall": "recall",
    "f1": "f1",
    "auc": "roc_auc",
    "roc_auc": "roc_auc",
    "log_loss": "neg_log_loss",
    "brier": "neg_brier_score",
    "brier_score": "neg_brier_score",
    "mean_absolute_error": "neg_mean_absolute_error",
    "mean_squared_error": "neg_mean_squared_error",
    "rmse": "neg_root_mean_squared_error",
    "root_mean_squared_error": "neg_root_mean_squared_error",
    "r2": "r2",
}

OF_A_CLASS = frozenset({"precision", "recall", "f1", "neg_brier_score"})  # which are about one class


def _results(tried: list[tuple[dict[str, Any], Any, float]]) -> dict[str, Any]:
    """What searches say of their candidates."""
    folds = np.array([scores for _, scores, _ in tried])
    mean = folds.mean(axis=1)
    results: dict[str, Any] = {"params": [params for params, _, _ in tried]}
    for name in dict.fromkeys(name for params, _, _ in tried for name in params):
        column: Any = np.ma.array([None] * len(tried), mask=True, dtype=object)
        for i, (params, _, _) in enumerate(tried):
            if name in params:
                column[i] = params[name]
        results[f"param_{name}"] = column
    for fold in range(folds.shape[1]):
        results[f"split{fold}_test_score"] = folds[:, fold]
    results["mean_test_score"], results["std_test_score"] = mean, folds.std(axis=1)
    ranks = np.array([1 + sum(other > x for other in mean) for x in mean], dtype=np.int32)
    results["rank_test_score"], results["holdout_score"] = ranks, np.array([asked for _, _, asked in tried])
    return results


def _grids(grid: Any) -> bool:
    """Whether it is a list of grids, whose values are lists, rather than of single candidates."""
    return isinstance(grid, (list, tuple)) and all(
        isinstance(g, Mapping) and all(isinstance(v, (list, tuple, np.ndarray)) for v in g.values()) for g in grid
    )
