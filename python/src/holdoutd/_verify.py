"""Compares an exported model with the estimator that it came from, before anything is sent."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta
from datetime import time as time_of_day
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from . import _evaluate, _forest, tables
from ._evaluate import Numbers

SECONDS = 3.0  # for all rows but the first sample
SAMPLE = 200  # rows of the training part
THRESHOLDS = 40  # of a column, whose neighbours are looked at
TEXTS = 100  # of a column, each in a row of its own
LARGEST = 1e30  # thresholds beyond stand for nulls
UNSEEN = "a text that nobody has seen"  # as a category of pandas it is null, which docs/MODELS.md says of such a text
LEAVES = 400  # of a model, each with a row of its own
UNREACHED = object()  # no number or text is known to lead there
AWAY = 1e-6  # predictions so near to where a decision changes may round to either side

Cells: TypeAlias = dict[str, list[Any]]  # rows by column: numbers or texts; None for null
Kinds: TypeAlias = dict[str, list[str] | None]  # the texts that a model knows of each text column; None of a column of numbers


TIMES = (date, time_of_day, timedelta, np.datetime64, np.timedelta64)  # Timestamps of pandas are dates


class Differs(ValueError):
    """The exported model is not the estimator."""


def verify(
    estimator: Any,
    model: Mapping[str, Any],
    columns: Sequence[str],
    texts: Mapping[str, tuple[str, str]],
    rows: Any = None,
    seconds: float = SECONDS,
) -> None:
    """Raises Differs where the model's predictions are not the estimator's.

    They are compared on rows of the training part (a DataFrame, or None) and on rows made from the model: thresholds, their neighbours in
    both precisions, nulls, texts that it knows, one that it does not, and zeros."""
    with _forest.reading_once():
        _verified(_Estimator(estimator, model, columns, texts, rows), model, rows, seconds)


def _verified(asked: _Estimator, model: Mapping[str, Any], rows: Any, seconds: float) -> None:
    asked.same_classes()
    base, with_nulls = _sampled(model, rows, asked.table, asked.kinds)
    until = time.monotonic() + seconds
    compared, refusal = 0, ""
    waiting = _blocks(model, base, with_nulls, asked.kinds)
    for part in (p for block in waiting for p in block):
        for c in asked.conditions:  # they have no other numbers than 0 and 1
            part.cells[c] = [None if v is None else float(v > 0.5) for v in part.cells[c]]
    while waiting and not (compared and time.monotonic() > until):
        block = waiting.pop(0)
        cells = _joined([p.cells for p in block])
        try:
            want = asked.predictions(cells)
        except Differs:
            raise
        except Exception as error:  # of whatever kind the library raises
            refusal = refusal or f"{type(error).__name__}: {error}"
            if not compared and any(c not in asked.categories for c in asked.table):  # a booster within may want texts as categories
                asked.categories = {**dict.fromkeys(asked.table), **asked.categories}
                waiting.insert(0, block)
                continue
            if len(block) > 1:  # of what it has no prediction for nothing is promised: each kind of rows by itself
                waiting[:0] = [[p] for p in block]
            continue
        got = asked.as_asked(_evaluate.predictions(model, cells))
        tied = _evaluate.tied(model, cells) if asked.near else np.zeros(len(got), dtype=bool)
        at = 0
        for part in block:
            here = slice(at, at := at + part.rows())
            _compare(asked, part, got[here], want[here], tied[here] & ~part.real)
        compared += len(got)
    if not compared:
        raise Differs(
            f"the exported {type(asked.estimator).__name__} could not be compared with the library, which has no prediction for "
            f"what was tried ({refusal}). Give it rows of the training part: call ds.training() once, or export(…, rows=…); "
            "verify=False sends it as it is"
        )


class _Rows:
    """Rows of one kind; real ones are of the training part, the others are made."""

    def __init__(self, kind: str, cells: Cells, real: bool = False):
        self.kind, self.cells, self.real = kind, cells, np.bool_(real)

    def rows(self) -> int:
        return len(next(iter(self.cells.values())))


def _joined(all: Sequence[Cells]) -> Cells:
    return {c: [v for cells in all for v in cells[c]] for c in all[0]}


class _Estimator:
    """An estimator, asked about rows of the table."""

    def __init__(self, estimator: Any, model: Mapping[str, Any], columns: Sequence[str], texts: Mapping[str, tuple[str, str]], rows: Any):
        self.estimator, self.columns, self.texts = estimator, list(columns), texts
        self.table = list(dict.fromkeys(texts[c][0] if c in texts else c for c in columns))
        there = [] if rows is None else [c for c in self.table if c in names_of(rows)]  # the others are computed in the server
        known = {**texts_encoded(estimator), **texts_of(model)}
        self.kinds: Kinds = {c: known.get(c) for c in self.table}
        for c in there:
            if self.kinds[c] is None and _is_text(tables.values(tables.some(rows, SAMPLE), c)):
                self.kinds[c] = []
        for _, (column, text) in texts.items():
            self.kinds[column] = sorted({*(self.kinds[column] or []), text})
        kind, body = _evaluate.opened(model)
        self.near = kind == "neighbors"
        self.classes: list[Any] | None = body.get("classes")
        self.threshold = float(model.get("threshold", 0.5))
        self.known = getattr(estimator, "classes_", None)
        if self.known is not None and not len(self.known):  # of CatBoost's regressors
            self.known = None
        self.elects = body.get("votes") is True  # classes by the votes of pairs: predict is compared
        self.votes = self.known is not None and not hasattr(estimator, "predict_proba") and not hasattr(estimator, "decision_function")
        self.names = fitted_on(estimator)
        self.single = "xgboost" in _modules(estimator)
        self.conditions = conditions(rows, self.table)
        # A model reads no times, but a pipeline that was fitted on whole rows wants the columns there.
        self.times = {c: one for c in there if self.kinds[c] is None and (one := _time_of(rows, c)) is not None}
        self.categories: dict[str, list[Any] | None] = {}  # of text columns that are categories of pandas; None: all texts
        if _whole(estimator):
            self.categories = dict.fromkeys(self.table)
        self.nulls: dict[str, Any] = dict.fromkeys(self.table, None if _knows_none(estimator) else np.nan)  # of texts: None, or NaN
        if rows is not None:
            self.nulls.update({c: null for c in there if self.kinds[c] is not None and (null := _null_of(rows, c)) is not UNREACHED})
            self.categories.update({c: of for c in there if (of := _categories(rows, c)) is not None})

    def inputs(self, cells: Cells) -> Any:
        """What the estimator takes: a DataFrame where it was fitted on one, else an array."""
        features: list[list[Any]] = []
        for name in self.columns:
            if name in self.texts:
                column, text = self.texts[name]
                features.append([float(v == text) for v in cells[column]])
            else:
                features.append(cells[name])
        if self.names is None and not any(self.kinds[c] is not None and c in self.columns for c in self.table):
            return np.array([[math.nan if v is None else float(v) for v in f] for f in features], dtype=float).T.reshape(-1, len(features))
        import pandas

        names = self.names if self.names is not None else self.columns
        frame = pandas.DataFrame(dict(zip(range(len(names)), features, strict=True)))
        frame.columns = pandas.Index(names)
        for i, name in enumerate(self.columns):
            if name in self.times:
                frame[names[i]] = pandas.Series([self.times[name]] * len(frame))
            elif name in self.texts or self.kinds[name] is None:
                frame[names[i]] = np.array([math.nan if v is None else float(v) for v in features[i]])
            elif name in self.categories:
                known = self.categories[name] or sorted(({*features[i]} | {*(self.kinds[name] or [])}) - {None, UNSEEN})
                frame[names[i]] = pandas.Categorical([v if v in known else None for v in features[i]], categories=known)
            else:
                frame[names[i]] = pandas.Series([self.nulls[name] if v is None else v for v in features[i]], dtype=object)
        return frame

    def predictions(self, cells: Cells) -> Numbers:
        """As docs/MODELS.md has them: a column for each class, or one."""
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return self._predictions(self.inputs(cells), len(next(iter(cells.values()))))

    def _predictions(self, x: Any, rows: int) -> Numbers:
        e = self.estimator
        if type(e).__module__.split(".")[0] == "xgboost" and not hasattr(e, "get_booster"):
            import xgboost

            said = e.predict(xgboost.DMatrix(x, feature_names=self.names, enable_categorical=True))
        elif self.elects:
            said = np.asarray(e.predict(x)).astype(str)[:, None] == np.asarray(self.known).astype(str)[None, :]
        elif self.votes:  # it says classes, and no numbers
            said = np.asarray(e.predict(x)) == np.asarray(self.known)[1]
        elif hasattr(e, "decision_function") and not hasattr(e, "predict_proba"):
            said = np.asarray(e.decision_function(x))
            self._decides(x, said)
        elif hasattr(e, "predict_proba"):
            said = e.predict_proba(x)
            if self.classes is None:
                said = said[:, 1]
            self._decides(x, np.asarray(said))
        else:
            said = e.predict(x)
        said = np.asarray(said, dtype=float)
        return said.reshape(rows, -1)

    def same_classes(self) -> None:
        """Raises Differs where the exported model has other classes, or the same in another order."""
        known = None if self.known is None else np.asarray(self.known).tolist()
        if (known is not None and (self.classes or known) != known) or (self.classes is None and len(known or [0, 1]) > 2):
            raise Differs(f"the exported {type(self.estimator).__name__} has the classes {self.classes}, and the library {known}")

    def as_asked(self, got: Numbers) -> Numbers:
        """The exported model's predictions as what the estimator says."""
        if self.elects:
            return (got.argmax(axis=1)[:, None] == np.arange(got.shape[1])).astype(float)
        return (got > self.threshold).astype(float) if self.votes else got

    def _decides(self, x: Any, said: NDArray[Any]) -> None:
        """Raises Differs where predict is not what questions take: the second class above the threshold, of several the largest."""
        if self.known is None:
            return
        classes, decided = np.asarray(self.known), np.asarray(self.estimator.predict(x)).reshape(-1)
        if self.classes is None:
            clear, taken = np.abs(said - self.threshold) > AWAY, (said > self.threshold).astype(int)
        else:
            ordered = np.sort(said, axis=1)
            clear, taken = ordered[:, -1] - ordered[:, -2] > AWAY, said.argmax(axis=1)
        other = clear & (classes[taken].astype(str) != decided.astype(str))  # CatBoost says True as a text
        if other.any():
            i = int(np.flatnonzero(other)[0])
            raise Differs(
                f"predict of this {type(self.estimator).__name__} does not go by what it is exported with: of row {i} the prediction is "
                f"{said[i]}, the threshold {self.threshold}, and it says {decided[i]!r}"
            )


def _time_of(rows: Any, column: str) -> Any:
    """A value of a column of times, or of durations; None of another."""
    some = tables.values(tables.some(rows, SAMPLE), column)
    return next((v for v in some if not _null(v) and isinstance(v, TIMES)), None)


def _number(value: Any) -> float:
    return 0.0 if isinstance(value, TIMES) else float(value)


def names_of(rows: Any) -> set[str]:
    """The columns of a DataFrame."""
    return set(rows.column_names if tables.kind_of(rows) == "pyarrow" else rows.columns)


def conditions(rows: Any, columns: Iterable[str]) -> set[str]:
    """Those columns of a DataFrame that are true and false."""
    if rows is None:
        return set()
    some, known = tables.some(rows, SAMPLE), names_of(rows)
    return {c for c in columns if c in known and any(isinstance(v, (bool, np.bool_)) for v in tables.values(some, c))}


def fitted_on(estimator: Any) -> list[str] | None:
    """The names of an estimator's features, where it was fitted on a DataFrame or knows them otherwise."""
    for name in ("feature_names_in_", "feature_names", "feature_names_"):
        names = getattr(estimator, name, None)
        if names is not None and not callable(names):
            return [str(n) for n in names]
    return None


def _whole(estimator: Any) -> bool:
    """Whether text columns reach it as categories of pandas: boosters that have categories of their own."""
    name = type(estimator).__name__
    return type(estimator).__module__.split(".")[0] in ("xgboost", "lightgbm") or name.startswith("HistGradientBoosting")


def _categories(rows: Any, column: str) -> list[Any] | None:
    """The categories of a DataFrame's column; None if it has none."""
    of = rows[column]
    kind = str(getattr(of, "dtype", ""))
    if tables.kind_of(rows) == "pandas":
        return list(of.cat.categories) if kind == "category" else None
    if tables.kind_of(rows) == "polars":
        return [str(v) for v in of.unique().drop_nulls()] if kind.startswith(("Categorical", "Enum")) else None
    return None


def _null_of(rows: Any, column: str) -> Any:
    """What stands for null in a column of texts: None or NaN, which scikit-learn tells apart; UNREACHED where no row shows it."""
    if tables.kind_of(rows) != "pandas" or str(rows[column].dtype) != "object":
        return UNREACHED
    return next((v if v is None else np.nan for v in rows[column] if _null(v)), UNREACHED)


def _knows_none(estimator: Any, deep: int = 6) -> bool:
    """Whether an encoder within was fitted on None."""
    if any(v is None for of in getattr(estimator, "categories_", ()) for v in of):
        return True
    inside = [*getattr(estimator, "steps", ()), *getattr(estimator, "transformers_", ())]
    return deep > 0 and any(_knows_none(of[1], deep - 1) for of in inside)


def texts_encoded(estimator: Any, columns: Sequence[Any] = (), deep: int = 6) -> dict[str, list[str]]:
    """The texts that encoders within were fitted on, by column; a model behind them may use none of them."""
    found: dict[str, list[str]] = {}
    names = list(getattr(estimator, "feature_names_in_", columns))
    encoded = getattr(estimator, "categories_", ())
    if len(encoded) == len(names):
        for name, of in zip(names, encoded, strict=True):
            if texts := [v for v in of if isinstance(v, str)]:
                found[str(name)] = texts
    for part in getattr(estimator, "transformers_", ()) if deep else ():
        if isinstance(part[2], (list, tuple)) and all(isinstance(c, str) for c in part[2]):
            found |= texts_encoded(part[1], part[2], deep - 1)
    for step in getattr(estimator, "steps", ()) if deep else ():  # imputers and the like keep columns in their place
        found |= texts_encoded(step[1], names, deep - 1)
    return found


def _modules(estimator: Any, deep: int = 6) -> set[str]:
    """The libraries of an estimator and of what it holds."""
    found = {type(estimator).__module__.split(".")[0]}
    if deep == 0 or isinstance(estimator, (str, bytes, float, int, type(None), np.ndarray)):
        return found
    inside: list[Any] = [estimator.get(k) for k in estimator] if isinstance(estimator, dict) else []
    if isinstance(estimator, (list, tuple)):
        inside = list(estimator)[:64]
    elif hasattr(estimator, "get_params"):
        inside = [v for k, v in vars(estimator).items() if isinstance(v, (list, tuple)) or hasattr(v, "get_params") or "estimator" in k]
    for one in inside:
        found |= _modules(one, deep - 1)
    return found


def texts_of(model: Mapping[str, Any]) -> dict[str, list[str]]:
    """The texts that a model knows, by text column."""
    found: dict[str, set[str]] = {}
    for body in _bodies(model):
        for column, listed in _forest.texts(body["trees"]) if "trees" in body else ():
            found.setdefault(column, set()).update(listed)
    for column, weight in _weights(model):
        if isinstance(weight, Mapping):
            found.setdefault(column, set()).update(weight)
    return {c: sorted(t for t in texts if not t.startswith("\0")) for c, texts in found.items()}


def _bodies(model: Mapping[str, Any]) -> Any:
    kind, body = _evaluate.opened(model)
    if kind == "mixture":
        for part in body["models"]:
            yield from _bodies(part["model"])
    else:
        yield body


def _forests(model: Mapping[str, Any]) -> Iterable[_forest.Forest]:
    return (_forest.read(body["trees"]) for body in _bodies(model) if "trees" in body)


def _weights(model: Mapping[str, Any]) -> Any:
    for body in _bodies(model):
        yield from body.get("weights", {}).items()


def _sampled(model: Mapping[str, Any], rows: Any, table: Sequence[str], kinds: Kinds) -> tuple[Cells, Cells]:
    """Some rows of the training part: those without nulls, from which others are made, and those with some.

    A library that refuses nulls was fitted on the former. Where there are none they are drawn."""
    if rows is None or not len(rows):
        return _drawn(model, table, kinds), {c: [] for c in table}
    some, drawn = tables.some(rows, SAMPLE), _drawn(model, table, kinds)
    cells: Cells = {
        c: [None if _null(v) else _number(v) if kinds[c] is None else str(v) for v in tables.values(some, c)]
        if c in names_of(rows)
        else [drawn[c][i % len(drawn[c])] for i in range(len(some))]
        for c in table
    }
    null = [any(cells[c][i] is None for c in table) for i in range(len(some))]
    whole = {c: [v for v, n in zip(cells[c], null, strict=True) if not n] for c in table}
    return (drawn if all(null) else whole), {c: [v for v, n in zip(cells[c], null, strict=True) if n] for c in table}


def _drawn(model: Mapping[str, Any], table: Sequence[str], kinds: Kinds) -> Cells:
    """Rows that nobody has seen, the same each time: a first one of zeros and of each column's first text, the others of numbers at the
    model's thresholds and of several sizes, and of its texts."""
    random, thresholds = np.random.default_rng(1), _thresholds(model, table)
    made: Cells = {}
    for c in table:
        of = kinds[c]
        if of is None:
            numbers = random.normal(size=SAMPLE) * random.choice([0.1, 1.0, 10.0, 1000.0], SAMPLE)
            if (near := np.array(sorted(thresholds[c]))).size:
                beside = random.random(SAMPLE) < 0.8
                numbers[beside] = random.choice(near, beside.sum()) * (1 + 0.01 * random.normal(size=beside.sum()))
            made[c] = [0.0, *numbers.tolist()]
        else:
            made[c] = [(of or [""])[i % max(len(of), 1)] for i in [0, *random.integers(0, max(len(of), 1), SAMPLE)]]
    return made


def _thresholds(model: Mapping[str, Any], table: Iterable[str]) -> dict[str, set[float]]:
    """The numbers by which the model splits, by column; without those that stand for nulls."""
    found: dict[str, set[float]] = {c: set() for c in table}
    for forest in _forests(model):
        for i, (column, texts, _) in enumerate(forest.reads):
            if column in found and texts is None:
                of = np.unique(forest.threshold[forest.of == i])
                found[column].update(of[np.abs(of) < LARGEST].tolist())
    return found


def _at_leaves(model: Mapping[str, Any], kinds: Kinds) -> list[dict[str, Any]]:
    """What of a row takes it to a leaf, for leaves of all trees: half way between thresholds, or a hundredth beyond the last."""
    forests = list(_forests(model))
    leaves = [np.flatnonzero(forest.of < 0) for forest in forests]
    total = sum(map(len, leaves))
    chosen, found, before = np.linspace(0, total - 1, min(total, LEAVES)).astype(int), [], 0
    for forest, of in zip(forests, leaves, strict=True):
        here = chosen[(chosen >= before) & (chosen < before + len(of))] - before
        before += len(of)
        for path in forest.paths(of[here]):
            known: dict[str, Any] = {}
            for (column, texts, _), threshold, right in path:
                known[column] = _beyond(known.get(column), texts, threshold, right)
            found.append({c: value for c, of in known.items() if c in kinds and (value := _within(of, kinds[c])) is not UNREACHED})
    return found


def _beyond(known: Any, texts: tuple[str, ...] | None, threshold: float, right: bool) -> Any:
    """What is known of a column on one side of a split: of numbers the least and the largest, of texts those in and out of lists."""
    if texts is not None:
        listed, out = known or (None, frozenset())
        if right:
            return listed, out | set(texts)
        return (frozenset(texts) if listed is None else listed & set(texts)), out
    low, high = known or (-math.inf, math.inf)
    return (max(low, threshold), high) if right else (low, min(high, threshold))


def _within(of: Any, texts: list[str] | None) -> Any:
    first, second = of
    if texts is not None:
        return next((t for t in texts if (first is None or t in first) and t not in second), UNREACHED)
    if first > LARGEST:
        return None  # only a null is beyond all numbers
    if second > LARGEST:
        second = math.inf
    if math.isinf(first) and math.isinf(second):
        return UNREACHED
    if math.isinf(first):
        return second - 0.01 * max(1.0, abs(second))
    return first + 0.01 * max(1.0, abs(first)) if math.isinf(second) else (first + second) / 2


def _is_text(column: list[Any]) -> bool:
    return any(isinstance(v, str) for v in column)


def _null(v: Any) -> bool:
    return v is None or v != v or type(v).__name__ in ("NAType", "NaTType")


def _blocks(model: Mapping[str, Any], base: Cells, with_nulls: Cells, kinds: Kinds) -> list[list[_Rows]]:
    """Rows to compare on, in blocks that are predicted together."""
    rows = len(next(iter(base.values())))
    thresholds = _thresholds(model, base)

    def changed(kind: str, column: str, values: Sequence[Any]) -> _Rows:
        """The rows, in turn, with another value in one column."""
        at = [i % rows for i in range(len(values))]
        return _Rows(kind, {c: list(values) if c == column else [v[i] for i in at] for c, v in base.items()})

    numbers, nulls, unknown = [], [], []
    for column, of in kinds.items():
        nulls.append(changed(f"{column} of null", column, [None] * min(rows, 16)))
        if of is not None:
            numbers.append(changed(f"each text of {column}", column, of[:TEXTS] or base[column][:1]))
            unknown.append(changed(f"a text of {column} that the model does not know", column, [UNSEEN] * 4))
            continue
        chosen = sorted(thresholds[column])
        if len(chosen) > THRESHOLDS:
            chosen = [chosen[i] for i in np.linspace(0, len(chosen) - 1, THRESHOLDS).astype(int)]
        beside = [v for t in chosen for v in _beside(t)]
        numbers.append(
            changed(f"{column} of 0 and ±1, at thresholds of the model and beside them", column, [0.0, -0.0, 1.0, -1.0, *beside])
        )
    training = [_Rows("rows of the training part with nulls", with_nulls, True)] if next(iter(with_nulls.values())) else []
    if leaves := _at_leaves(model, kinds):
        at = [i % rows for i in range(len(leaves))]
        numbers.append(_Rows("a row of each leaf", {c: [row.get(c, base[c][i]) for row, i in zip(leaves, at, strict=True)] for c in base}))
    return [[_Rows("rows of the training part", base, True), *training], numbers, nulls, *([unknown] if unknown else [])]


def _beside(threshold: float) -> list[float]:
    """A number and its neighbours, in double and in single precision."""
    with np.errstate(over="ignore"):
        single = np.float32(threshold)
        near = [single, np.nextafter(single, np.float32(np.inf)), np.nextafter(single, np.float32(-np.inf))]
    return [threshold, math.nextafter(threshold, math.inf), math.nextafter(threshold, -math.inf), *(float(v) for v in near)]


def _compare(asked: _Estimator, part: _Rows, got: Numbers, want: Numbers, excused: NDArray[np.bool_]) -> None:
    if got.shape != want.shape:
        raise Differs(f"the exported model has {got.shape[1]} outputs, and the {type(asked.estimator).__name__} has {want.shape[1]}")
    finite = np.isfinite(want)
    size = np.abs(np.where(finite, want, 0.0))  # a few predictions that are huge do not excuse the others
    usual = max(float(np.median(size)), 1.0 if hasattr(asked.estimator, "predict_proba") else 1e-12)
    tolerance = (1e-5 if asked.single else 1e-7) * np.maximum(size, usual)
    with np.errstate(invalid="ignore"):
        off = np.where(finite, ~(np.abs(got - want) <= tolerance), np.isfinite(got))  # what is no number for the library is none here
    off &= ~excused[:, None]
    if not off.any():
        return
    i, k = (int(v[0]) for v in np.nonzero(off))
    row = {c: v[i] for c, v in part.cells.items()}
    said = ", ".join(f"{c}={v!r}" for c, v in list(row.items())[:6]) + (", …" if len(row) > 6 else "")
    causes = "a link, an option or a step that is not exported"
    if asked.near:
        causes = (
            "rows of the training part that are equally far, of which the library takes those that its search meets first; and a search "
            "by brute force, which rounds distances near 0. Drop rows that occur twice, and try algorithm='kd_tree'"
        )
    raise Differs(
        f"the exported {type(asked.estimator).__name__} is not the library's: on {part.kind}, at {said}, it predicts {got[i, k]:.9g} and "
        f"the library {want[i, k]:.9g} ({int(off.any(axis=1).sum())} of {len(got)} such rows differ). Usual causes: {causes}"
    )
