"""Scikit-learn's searches, judged by a holdout."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier
from sklearn.model_selection import ParameterGrid, check_cv, cross_val_score
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ._scores import METRICS, less_is_better, metric_query
from .answers import Answer
from .errors import HoldoutdError, SearchEnded

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
    sends it to other processes as the place of the server and of its key.

    `answers` are those that it was given, in order; those in other processes stay there.
    """

    def __init__(self, ds: Dataset, metric: str = "accuracy", members: Mapping[str, Any] | None = None):
        metric = metric.removeprefix("neg_") if metric.removeprefix("neg_") in METRICS else metric
        metric_query(metric, {})
        self.ds, self.metric, self.members = ds, metric, dict(members or {})
        self.answers: list[Answer] = []

    def __call__(self, estimator: Any, X: Any = None, y: Any = None) -> float:
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
        scoring: of the cross-validation, as of scikit-learn; default: the estimator's own score
        cv: as of scikit-learn
        members: other members of the query

    Attributes:
        best_estimator_, best_params_, best_answer_: the winner, and what the holdout says of it
        answers_: each candidate that was asked about, as (params, training score, answer)
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
    ):
        self.estimator = estimator
        self.param_grid = param_grid
        self.holdout = holdout
        self.metric = metric
        self.label = label
        self.scoring = scoring
        self.cv = cv
        self.members = members

    def fit(self, X: Any, y: Any) -> HoldoutSearchCV:
        """Searches. X and y are the training rows."""
        grid: Iterable[Mapping[str, Any]] = (
            ParameterGrid(self.param_grid) if isinstance(self.param_grid, Mapping) or _grids(self.param_grid) else self.param_grid
        )
        folds = check_cv(self.cv, y, classifier=is_classifier(self.estimator))
        sign = -1 if less_is_better(self.metric) else 1
        ahead, best = -np.inf, -np.inf
        self.answers_: list[tuple[dict[str, Any], float, Answer]] = []
        self.candidates_ = 0
        for params in grid:
            self.candidates_ += 1
            candidate = clone(self.estimator).set_params(**params)
            score = float(np.mean(cross_val_score(candidate, X, y, scoring=self.scoring, cv=folds)))
            if not score > ahead:
                continue
            ahead = score
            candidate.fit(X, y)
            answer = self.holdout.score(candidate, self.metric, label=self.label, **(self.members or {}))
            self.answers_.append((dict(params), score, answer))
            if answer.value is not None and sign * answer.value > best:
                best = sign * answer.value
                self.best_estimator_, self.best_params_, self.best_answer_ = candidate, dict(params), answer
        if not self.answers_:
            raise ValueError("no candidate could be scored on the training rows")
        return self

    @property
    def spent_(self) -> dict[str, int]:
        """What the search cost."""
        check_is_fitted(self, "answers_")
        paid = [a.cost for _, _, a in self.answers_ if not a.replayed]
        return {"questions": sum(c.questions for c in paid), "tokens": sum(c.tokens for c in paid)}

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


def _grids(grid: Any) -> bool:
    """Whether it is a list of grids, whose values are lists, rather than of single candidates."""
    return isinstance(grid, (list, tuple)) and all(
        isinstance(g, Mapping) and all(isinstance(v, (list, tuple, np.ndarray)) for v in g.values()) for g in grid
    )
