"""Queries as a person writes them, made into those that the server reads."""

from __future__ import annotations

import base64
import difflib
import hashlib
import math
import sys
from array import array
from collections.abc import Iterator, Mapping
from typing import Any

from . import _steps as steps
from . import tables
from ._scores import Fitted, exported, in_table, is_model
from ._view import Card
from ._wire import Steps, dumps
from .errors import CannotExport, QueryInvalid
from .expressions import column


class Features:
    """The features of a holdout's rows, downloaded once, for models that are judged by their predictions."""

    def __init__(self, holdout: str, kind: tables.Kind):
        self.holdout, self.kind = holdout, kind
        self._frame: Any = None

    def frame(self, card: Card) -> Steps[Any]:
        if self._frame is None:
            content = yield from steps.download(self.holdout, "features")
            self._frame = tables.read(content, self.kind, card.categories)
        return self._frame


class Training:
    """Some rows of the training part, on which an exported model is compared with the library's before it is sent."""

    ROWS = 200
    LARGEST = (
        5_000_000  # cells of a training part that is downloaded for them; of a larger one the caller's download is used, if there is one
    )

    def __init__(self, holdout: str, kind: tables.Kind):
        self.holdout, self.kind = holdout, kind
        self.rows: Any = None

    def keep(self, frame: Any) -> Any:
        """Takes the rows out of a training part that was downloaded anyway, and returns it."""
        self.rows = tables.some(frame, self.ROWS)
        return frame

    def some(self, card: Card) -> Steps[Any]:
        """None where there are no rows, or too many."""
        cells = card.rows.get("training", 0) * len(card.columns)
        if self.rows is None and 0 < cells <= self.LARGEST:
            content = yield from steps.download(self.holdout, "training")
            self.keep(tables.read(content, self.kind, card.categories))
        return self.rows


class Sent:
    """Models that were sent to the server once, and are named by their digests in questions."""

    LONG = 64 << 10  # bytes of JSON of a model that is sent by itself

    def __init__(self) -> None:
        self._digests: dict[bytes, str] = {}  # by that of the text that was sent

    def short(self, query: Any) -> Steps[Any]:
        """The query, with digests for long models."""
        if isinstance(query, (list, tuple)):
            items = []
            for one in query:
                items.append((yield from self.short(one)) if isinstance(one, (dict, list)) else one)
            return items
        own: dict[str, Any] = {}
        for member, value in query.items():
            if member == "model" and isinstance(value, Mapping) and "sha256" not in value:
                own[member] = yield from self._named(value)
            elif isinstance(value, (dict, list)):
                own[member] = yield from self.short(value)
            else:
                own[member] = value
        return own

    def _named(self, model: Mapping[str, Any]) -> Steps[Mapping[str, Any]]:
        beside = {k: v for k, v in model.items() if k in ("threshold", "features")}
        text = dumps({k: v for k, v in model.items() if k not in beside}).encode()
        if len(text) <= self.LONG:
            return model
        key = hashlib.sha256(text).digest()
        if key not in self._digests:
            self._digests[key] = yield from steps.keep_model(text)
        return {"sha256": self._digests[key], **beside}

    def are_gone(self, error: QueryInvalid) -> bool:
        """Whether the server does not keep a model any more that a question names: then all of them are sent again."""
        if not any((v.pointer or "").endswith("/model/sha256") for v in error.violations) or not self._digests:
            return False
        self._digests.clear()
        return True


def models_in(query: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], str, Any]]:
    """Each object of a query in which a model stands that is not JSON yet, with its member and the model."""
    for member, value in query.items():
        if member == "model" and (isinstance(value, Fitted) or is_model(value)):
            assert isinstance(query, dict)
            yield query, member, value
        elif isinstance(value, Mapping):
            yield from models_in(value)
        elif isinstance(value, (list, tuple)):
            for one in value:
                if isinstance(one, Mapping):
                    yield from models_in(one)


def copied(value: Any) -> Any:
    """A query that may be changed."""
    if isinstance(value, Mapping):
        return {k: copied(v) for k, v in value.items() if v is not None}
    if isinstance(value, (list, tuple)):
        return [copied(v) for v in value]
    return value


def resolve(query: Mapping[str, Any], card: Card, rows: Any, features: Features | None) -> Steps[dict[str, Any]]:
    """The query as JSON: of fitted estimators their predictions, where by_predictions says so, else the estimators, exported and compared
    on rows."""
    own: dict[str, Any] = copied(query)
    for place, member, value in list(models_in(own)):
        fitted = value if isinstance(value, Fitted) else Fitted(value)
        if isinstance(fitted.model, Mapping):
            place[member] = dict(fitted.model)
            continue
        if features is not None and by_predictions(fitted.model, card):
            del place[member]
            if "features" in place:
                raise CannotExport("predictions are made here, where features are public: " + MADE_HERE)
            place["predictions"] = predicted(fitted, (yield from features.frame(card)), place)
        else:
            computed(fitted, place, card)
            place[member] = exported(fitted.model, fitted.columns, fitted.texts, card.columns, rows, ways_left(card))
        if (label := label_of(fitted.model, place.get("label", card.label), card.kinds)) is not None:
            place["label"] = label
    result: dict[str, Any] = steps.plain(own)
    return result


MADE_HERE = (
    "give a function of the holdout's rows that makes its features, such as ds.score(lambda rows: model.predict_proba(made(rows))[:, 1])"
)


def computed(fitted: Fitted, place: dict[str, Any], card: Card) -> None:
    """Leaves a query those features that its model reads, so that a compare may be of one with and one without. CannotExport names a
    feature that is no column, and how to say what it is made of."""
    from .models import columns_of

    names = fitted.columns if fitted.columns is not None else columns_of(fitted.model)
    if names is None or not card.columns:
        return
    given = place.get("features") or {}
    kept = {n: of for n, of in given.items() if n in names}
    if kept and len(kept) < len(given):
        place["features"] = kept
    elif given and not kept and any(n in card.columns for n in names):
        del place["features"]
    for name in map(str, names):
        if in_table(name, card.columns) not in card.columns and name not in given and name not in (fitted.texts or {}):
            raise CannotExport(not_there(name, card))


def not_there(name: str, card: Card) -> str:
    """That a model's feature is no column of the table, and what to write."""
    near = difflib.get_close_matches(name, card.columns, 1, 0.8)
    column = max((c for c, kind in card.kinds.items() if kind == "text" and name.startswith(f"{c}_")), key=len, default="")
    said = f"the model's feature {name!r} is no column of the table"
    if column:
        return (
            f"{said}. As a column of pandas.get_dummies it is said by texts={{{name!r}: ({column!r}, {name[len(column) + 1 :]!r}), …}}; "
            "a OneHotEncoder within a pipeline needs no word"
        )
    if near:
        return f"{said}; did you mean {near[0]}?"
    return f"{said}. If it is made of columns, say how: features={{{name!r}: 'an expression of columns'}}"


def refuse_early(query: Mapping[str, Any], card: Card) -> None:
    """Raises CannotExport while the holdout is a draft, so that it can be uploaded again with other settings."""
    for _, _, value in models_in(dict(query)):
        fitted = value if isinstance(value, Fitted) else Fitted(value)
        if not isinstance(fitted.model, Mapping) and not by_predictions(fitted.model, card):
            exported(fitted.model, fitted.columns, fitted.texts, card.columns, None, ways_left(card))


def by_predictions(model: Any, card: Card) -> bool:
    """Whether a model is judged by its predictions: where features are public, but not if it is compared with the training part, for
    whose rows there are no numbers."""
    if not card.public:
        return False
    compares = card.guarantee["mechanism"] in ("guess_and_check", "thresholdout") and not card.units.get("check")
    return not (compares and hasattr(model, "predict"))


def ways_left(card: Card) -> str:
    """What can be done where a model cannot be exported, as a clause."""
    if card.public:
        return "Or upload the table again with a check part, as long as nothing was asked: then any model is judged by its predictions"
    if card.raw.get("draft"):
        return (
            "Or upload the table again with features='public', as long as nothing was shown of this holdout: then predictions are made "
            "here, by any model, and only they are sent"
        )
    return "The features of this holdout are secret, and stay so: take a model that ds.can_score says yes to. docs/MODELS.md has the list"


def label_of(estimator: Any, label: Any, kinds: Mapping[str, str]) -> Any:
    """What a label that is a column's name stands for: of a model of two classes, that it is the second one. None: it stands as it is."""
    classes = getattr(estimator, "classes_", None)
    kind = kinds.get(str(label))
    if classes is None or not len(classes) or kind is None or (kind == "bool" and len(classes) == 2):
        return None
    known = [c.item() if hasattr(c, "item") else c for c in classes]
    if (kind == "text") != all(isinstance(c, str) for c in known):
        raise ValueError(
            f"the label {str(label)!r} is a column of {kind}, and the classes of this {type(estimator).__name__} are "
            f"{', '.join(map(repr, known[:5]))}: ask with a label that is one of them, such as a column of these numbers, "
            "or a condition for the second of two classes"
        )
    return column(str(label)) == known[1] if len(known) == 2 else None


DECISIONS = frozenset({"accuracy", "balanced_accuracy", "precision", "recall", "f1", "confusion"})


def predicted(fitted: Fitted, frame: Any, query: Mapping[str, Any]) -> dict[str, Any]:
    """A model's prediction for each row, as the bytes of doubles. Of two classes it is what the question is about: whether predict says
    the second, its probability, or the margin where there is no probability; of several classes the same of each of them. Else it is what
    predict gives. What is no number is NaN."""
    return judged(fitted, frame.drop("row_id", axis=1) if tables.kind_of(frame) == "pandas" else frame.drop("row_id"), query)


def judged(fitted: Fitted, rows: Any, query: Mapping[str, Any]) -> dict[str, Any]:
    """The same of rows without their numbers."""
    model = fitted.model
    names = fitted.columns if fitted.columns is not None else getattr(model, "feature_names_in_", None)
    if names is not None:
        for name in map(str, names):
            if name not in rows.columns:
                raise CannotExport(f"the model's feature {name!r} is no column of the held-out rows: {MADE_HERE}")
        rows = rows[[str(n) for n in names]]
    classes = getattr(model, "classes_", ())
    if len(classes) > 2:
        known = steps.plain(classes)
        return {"classes": known, "of": [packed(column, len(rows)) for column in of_several(model, known, rows, query)]}
    if len(classes) == 2:
        return packed(of_two(model, rows, query), len(rows))
    return packed(model.predict(rows) if hasattr(model, "predict") else model(rows), len(rows))


def packed(values: Any, rows: int) -> dict[str, Any]:
    """Numbers as the bytes of doubles, or of bits where each is yes or no."""
    plain = steps.plain(values)
    if len(plain) != rows:
        raise ValueError(f"the model gave {len(plain)} predictions for {rows} rows")
    for v in plain:
        if isinstance(v, (str, list, tuple, dict)):
            raise ValueError(
                f"the model predicts {v!r}: a prediction is one number, or yes or no, for each row; "
                "of several columns, or of texts, give a function that makes one of them, such as lambda rows: model.predict(rows) == 'yes'"
            )
    if all(isinstance(v, bool) for v in plain):
        bits = bytearray((rows + 7) // 8)
        for i, yes in enumerate(plain):
            bits[i // 8] |= yes << i % 8
        return {"bits": base64.b64encode(bytes(bits)).decode(), "count": rows}
    numbers = array("d", (math.nan if v is None else float(v) for v in plain))
    if sys.byteorder == "big":
        numbers.byteswap()
    return {"f64": base64.b64encode(numbers.tobytes()).decode()}


def decides(query: Mapping[str, Any]) -> bool:
    """Whether a question is about what predict says."""
    return "threshold" not in query and (query.get("type") in DECISIONS or query.get("loss") == "zero_one")


def of_several(model: Any, classes: list[Any], rows: Any, query: Mapping[str, Any]) -> list[Any]:
    """The predictions of a classifier of several classes that a question wants, those of each class."""
    if not decides(query) and hasattr(model, "predict_proba"):
        table = steps.plain(model.predict_proba(rows))
        return [[row[k] for row in table] for k in range(len(classes))]
    said = steps.plain(model.predict(rows))
    return [[p == c for p in said] for c in classes]


def of_two(model: Any, rows: Any, query: Mapping[str, Any]) -> Any:
    """The predictions of a classifier of two classes that a question wants."""
    if not decides(query) and query.get("loss") != "hinge" and hasattr(model, "predict_proba"):
        return model.predict_proba(rows)[:, 1]
    if not decides(query) and hasattr(model, "decision_function"):
        margins = model.decision_function(rows)
        if query.get("type") == "auc" and "edges" not in query:  # the server's bins are of probabilities
            return [0.5 + m / (1 + abs(m)) / 2 for m in map(float, margins)]
        return margins
    second = model.classes_[1]
    return [float(p == second) for p in model.predict(rows)]
