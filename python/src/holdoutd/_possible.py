"""Whether a model can be asked about, before it is fitted to the training part."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Collection, Mapping
from datetime import datetime, timedelta
from typing import Any

from . import tables
from ._resolve import by_predictions, judged, label_of, ways_left
from ._scores import Fitted, exported
from ._view import Card
from .errors import CannotExport

ROWS = 60  # that an estimator is tried on: enough for five folds of two classes, and a forest is fitted in a tenth of a second
GIVEN = 500  # of rows that the caller gives
# The columns that an estimator is tried on: most take no times, and many no texts or conditions, and a pipeline may name any.
KINDS = (("number", "bool", "text", "time"), ("number", "bool", "text"), ("number", "bool"), ("number",))


# Of a model that is judged by what it predicts, and has predicted nothing yet.
IF_NUMBERS = "its predictions are labels, probabilities or numbers, one for each row"
# What scikit-learn calls estimators whose predict says something else than a label or a number for a row, and what it says.
NO_LABELS = {"clusterer": "numbers of clusters", "outlier_detector": "1 and -1 for what is usual and what is not"}


class CanScore:
    """Whether a model can be asked about. It is true or false; `why` says why not, and what else can be done; `provided` what could not
    be looked at, where the answer is yes."""

    def __init__(self, why: str = "", provided: str = ""):
        self.why, self.provided = why, provided

    def __bool__(self) -> bool:
        return not self.why

    def __repr__(self) -> str:
        return f"no: {self.why}" if self.why else f"yes, if {self.provided}" if self.provided else "yes"


def can_score(card: Card, estimator: Any, x: Any = None, y: Any = None, training: Any = None) -> CanScore:
    """Fits a copy to a few rows and exports it; where features are public, looks at what it predicts if it is fitted. training are some
    rows of the training part, if they are here already."""
    if not hasattr(estimator, "predict") and not callable(estimator):
        return CanScore(f"this {type(estimator).__name__} does not predict: give an estimator that does, or a pipeline that ends in one")
    if not hasattr(estimator, "predict") and not card.public:
        return CanScore("a plain function cannot be sent to the server. " + ways_left(card))
    if by_predictions(estimator, card):
        return _predicts(card, estimator, x, training)
    try:
        model, rows = _fitted(card, estimator, x, y)
    except Exception as e:
        tried = "these rows" if x is not None else "made-up rows of the table's columns"
        return CanScore(
            f"this {type(estimator).__name__} could not be fitted to {tried} ({type(e).__name__}: {e})"
            + ("" if x is not None else ". Give some rows of your own: ds.can_score(estimator, X, y)")
        )
    try:
        exported(model, None, None, card.columns, rows, else_=ways_left(card))
    except CannotExport as e:
        return CanScore(str(e))
    return CanScore()


def _predicts(card: Card, estimator: Any, x: Any, training: Any) -> CanScore:
    """Whether what a model predicts is one label, probability or number for each row. Nothing is fitted."""
    name = type(estimator).__name__
    if says := NO_LABELS.get(_type_of(estimator)):
        return CanScore(
            f"a {name} predicts {says}, and no label: give a function of the rows that makes one of it, "
            "such as lambda rows: model.predict(rows) == -1"
        )
    rows = training if x is None else _rows(x, list(range(0, len(x), max(1, -(-len(x) // GIVEN)))))
    if not _is_fitted(estimator) or rows is None or tables.kind_of(rows) in (None, "pyarrow"):
        return CanScore(provided=IF_NUMBERS)
    if card.label in rows.columns:
        rows = rows.drop(card.label, axis=1) if tables.kind_of(rows) == "pandas" else rows.drop(card.label)
    try:
        label_of(estimator, card.label, card.kinds)
        judged(Fitted(estimator), rows, {"type": "accuracy"})
        judged(Fitted(estimator), rows, {"type": "auc"})
    except Exception as e:
        return CanScore(f"what this {name} predicts of {len(rows)} rows cannot be judged ({type(e).__name__}: {e})")
    return CanScore()


def _type_of(estimator: Any) -> str:
    """What scikit-learn calls this kind of estimator; "" where it says nothing, or is not there."""
    try:
        from sklearn.utils import get_tags

        return str(get_tags(estimator).estimator_type or "")
    except Exception:  # of another library, or none
        return str(getattr(estimator, "_estimator_type", "") or "")


def _is_fitted(estimator: Any) -> bool:
    """Whether it can predict already. What has no fit, as a function or a Booster, can."""
    if not hasattr(estimator, "fit"):
        return True
    try:
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(estimator)
    except Exception:  # it is not, or is of no kind that scikit-learn knows
        return False
    return True


def _fitted(card: Card, estimator: Any, x: Any, y: Any) -> tuple[Any, Any]:
    """The estimator itself if it is fitted, else a copy that is fitted to a few rows; and these."""
    from sklearn.base import clone, is_regressor
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    draw = random.Random(1)
    if not hasattr(estimator, "fit"):  # as a Booster of LightGBM or XGBoost
        return estimator, None
    try:
        check_is_fitted(estimator)
        return estimator, None
    except NotFittedError:
        pass
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if x is not None:
            some = _rows(x, list(range(0, len(x), max(1, -(-len(x) // GIVEN)))))
            part = None if y is None else _rows(y, list(range(0, len(x), max(1, -(-len(x) // GIVEN)))))
            return clone(estimator).fit(some, part), some if tables.kind_of(some) else None
        label = _label(card, not is_regressor(estimator), draw)
        everything = {name: kind for name, kind in card.kinds.items() if name not in (card.label, card.raw.get("unit"))}
        errors: list[Exception] = []
        tried: list[dict[str, str]] = []
        null = {c["name"] for c in card.raw["columns"] if c["kind"] == "text" and c.get("nulls")}  # a draft does not tell
        for kinds in KINDS:
            columns = {name: kind for name, kind in everything.items() if kind in kinds}
            if not columns or columns in tried:
                continue
            tried.append(columns)
            for nulls in (null, set()) if null & columns.keys() else (set(),):
                frame = _made(columns, draw, nulls)
                try:
                    return clone(estimator).fit(frame, label), frame
                except Exception as e:
                    error = e
            errors.append(error)
        raise errors["time" in tried[0].values() and len(errors) > 1]  # of all columns but times


def _rows(of: Any, at: list[int]) -> Any:
    return of.iloc[at] if hasattr(of, "iloc") else of[at]


def _label(card: Card, classes: bool, draw: random.Random) -> list[Any]:
    """A label of both classes, or of numbers."""
    kind = card.kinds.get(card.label or "")
    if not classes:
        return [draw.gauss(10, 1) for _ in range(ROWS)]
    pair: tuple[Any, Any] = {"text": ("a", "b"), "bool": (False, True)}.get(kind or "", (0, 1))
    return [pair[i % 2] for i in range(ROWS)]


def _made(kinds: Mapping[str, str], draw: random.Random, nulls: Collection[str] = ()) -> Any:
    """Rows of these columns that are about nothing; some of those of nulls have no text."""
    make: dict[str, Callable[[], Any]] = {
        "number": lambda: draw.gauss(1, 1),
        "bool": lambda: draw.random() < 0.5,
        "text": lambda: draw.choice("abc"),
        "time": lambda: datetime(2026, 1, 1) + timedelta(hours=draw.randrange(1000)),
    }
    columns = {name: [make[kind]() for _ in range(ROWS)] for name, kind in kinds.items()}
    for name in nulls:
        if name in columns:
            columns[name][::7] = [None] * len(columns[name][::7])
    if tables.installed() == "polars":
        import polars

        return polars.DataFrame(columns)
    import pandas

    return pandas.DataFrame(columns)
