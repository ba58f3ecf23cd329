"""Evaluates a model's JSON as docs/MODELS.md says, by NumPy: what export compares with the library before anything is sent.

Scores are those of the server to the last bit; exponentials may differ from it by a unit in the last place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from . import _computed, _forest

Numbers: TypeAlias = NDArray[np.float64]
Table: TypeAlias = Mapping[str, Sequence[Any]]  # by column: numbers, booleans or texts; None, or NaN, for null


def predictions(model: Mapping[str, Any], table: Table) -> Numbers:
    """A row of predictions for each row of the table: one, or one for each class. What is no finite number is NaN."""
    columns = Columns(table, model.get("features", {}))
    return _predictions(_link(model), scores(model, columns))


def scores(model: Mapping[str, Any], columns: Columns) -> Numbers:
    """A row of scores for each row of the table."""
    kind, body = opened(model)
    with np.errstate(all="ignore"):
        return _SCORES[kind](body, columns)


def opened(model: Mapping[str, Any]) -> tuple[str, Any]:
    """The member of a model that says which form it has."""
    ((kind, body),) = ((k, v) for k, v in model.items() if k not in ("threshold", "features"))
    return kind, body


def _link(model: Mapping[str, Any]) -> str:
    kind, body = opened(model)
    classes = kind == "softmax" or (kind == "network" and "classes" in body)
    return str(body.get("link", "softmax" if classes else "identity"))


def _predictions(link: str, of: Numbers) -> Numbers:
    with np.errstate(all="ignore"):
        of = of + (of - of)  # what is infinite is NaN
        if link == "logit":
            return np.asarray(1 / (1 + np.exp(-np.clip(of, -700, 700))))
        if link in ("log", "sqrt"):
            of = np.exp(of) if link == "log" else of * np.abs(of)
            return np.asarray(of + (of - of))
        if link == "softmax":
            e = np.exp(of - of.max(axis=1, keepdims=True))
            total = np.zeros(len(of))
            for k in range(of.shape[1]):
                total = total + e[:, k]
            return np.asarray(e / total[:, None])
        return of


class Columns:
    """The columns of a table, as numbers and as texts, and what a model computes of them."""

    def __init__(self, table: Table, computed: Mapping[str, str] | None = None):
        self.table, self.computed = table, computed or {}
        self.rows = len(next(iter(table.values()))) if table else 0
        self._numbers: dict[str, Numbers] = {}
        self._codes: dict[str, tuple[list[str], NDArray[np.int64]]] = {}

    def number(self, column: str) -> Numbers:
        """NaN where it is null."""
        if column not in self._numbers and column in self.computed:
            self._numbers[column] = _computed.evaluate(self.computed[column], self)
        elif column not in self._numbers:
            self._numbers[column] = np.array([math.nan if v is None else float(v) for v in self.table[column]])
        return self._numbers[column]

    def by_text(self, column: str, values: Mapping[str, float], other: float, null: float) -> Numbers:
        """A number for each row by its text."""
        if column not in self._codes:
            texts = {t: i for i, t in enumerate(dict.fromkeys(v for v in self.table[column] if isinstance(v, str)))}
            at = np.array([texts[v] if isinstance(v, str) else len(texts) for v in self.table[column]], dtype=np.int64)
            self._codes[column] = list(texts), at
        known, at = self._codes[column]
        return np.array([values.get(t, other) for t in known] + [null])[at]


def _weighted(body: Mapping[str, Any], intercepts: Sequence[float], columns: Columns) -> Numbers:
    """intercept + weight times number, column by column in the order of their names, each product and sum rounded once."""
    out = np.tile(np.array(intercepts, dtype=float), (columns.rows, 1))
    impute = body.get("impute", {})
    for column in sorted(body["weights"], key=lambda name: name.encode()):
        weight = body["weights"][column]
        for k in range(len(intercepts)):
            if isinstance(weight, Mapping):
                values = {t: _each(w, k) for t, w in weight.items()}
                x = columns.by_text(column, values, 0.0, values[impute[column]] if column in impute else 0.0)
                out[:, k] = fma(1.0, x, out[:, k])
            else:
                x = columns.number(column)
                out[:, k] = fma(_each(weight, k), np.where(np.isnan(x), float(impute.get(column, 0.0)), x), out[:, k])
    return out


def _each(weight: Any, k: int) -> float:
    return float(weight[k] if isinstance(weight, Sequence) else weight)


def _linear(body: Mapping[str, Any], columns: Columns) -> Numbers:
    return _weighted(body, [body.get("intercept", 0.0)], columns)


def _softmax(body: Mapping[str, Any], columns: Columns) -> Numbers:
    return _weighted(body, body.get("intercepts", [0.0] * len(body["classes"])), columns)


_ACTIVATIONS: dict[str, Callable[[Numbers], Numbers]] = {
    "relu": lambda x: np.where(np.isnan(x), x, np.maximum(x, 0)),
    "tanh": lambda x: 1 - 2 / (1 + np.exp(2 * x)),
    "logistic": lambda x: 1 / (1 + np.exp(-x)),
    "identity": lambda x: x,
}


def _network(body: Mapping[str, Any], columns: Columns) -> Numbers:
    activate = _ACTIVATIONS[body.get("activation", "relu")]
    x = _weighted(body, body["intercepts"], columns)
    for layer in body["layers"]:
        x = activate(x)
        y = np.tile(np.array(layer["intercepts"], dtype=float), (columns.rows, 1))
        for j, weights in enumerate(layer["weights"]):
            for k, w in enumerate(weights):
                y[:, k] = fma(float(w), x[:, j], y[:, k])
        x = y
    return x


def _trees(body: Mapping[str, Any], columns: Columns) -> Numbers:
    imputed, absent = body.get("impute", {}), body.get("null", {})  # what a null counts as; then, which numbers count as null
    forest = _forest.read(body["trees"])
    features = np.zeros((columns.rows, max(len(forest.reads), 1)))
    for i, (column, texts, right) in enumerate(forest.reads):
        x = columns.number(column) if texts is None else columns.by_text(column, dict.fromkeys(texts, -1.0), 0.0, math.nan)
        if texts is None and column in imputed:
            x = np.where(np.isnan(x), imputed[column], x)
        if texts is None and column in absent:
            first, last = absent[column]
            x = np.where((x >= first) & (x <= last), math.nan, x)
        features[:, i] = np.where(np.isnan(x), math.inf if right else -math.inf, x)
    classes = len(body.get("classes", [0]))
    base = body.get("base", 0.0)
    out = np.tile(np.array([_each(base, k) for k in range(classes)]), (columns.rows, 1))
    forest.add(out, features)
    return out / len(forest.roots) if body.get("average") else out


def _mixture(body: Mapping[str, Any], columns: Columns) -> Numbers:
    classes, base = len(body.get("classes", [0])), body.get("base", 0.0)
    out = np.tile(np.array([_each(base, k) for k in range(classes)]), (columns.rows, 1))
    for part in body["models"]:
        said = _predictions(_link(part["model"]), scores(part["model"], columns))
        for j, curve in enumerate([part["curve"]] if "curve" in part else part.get("curves", [])):
            said[:, j] = _through(curve, said[:, j])
        if part.get("shares"):
            said = _shares(said)
        weights = part.get("weights") or np.eye(classes) * float(part.get("weight", 1.0))
        for j in range(said.shape[1]):
            for k in range(classes) if "weights" in part else [j]:
                out[:, k] = fma(float(weights[j][k]), said[:, j], out[:, k])
    return out


def _shares(said: Numbers) -> Numbers:
    """Each prediction by the sum of its row; all equal where that is 0."""
    total = np.zeros(len(said))
    for k in range(said.shape[1]):
        total = total + said[:, k]
    of = np.where(total[:, None] == 0, 1 / said.shape[1], said / total[:, None])
    return np.asarray(of + (of - of))


def _through(curve: Any, v: Numbers) -> Numbers:
    if isinstance(curve, Mapping):
        return _predictions("logit", fma(float(curve["slope"]), v, np.full(len(v), float(curve.get("intercept", 0.0)))))
    points = np.array(curve, dtype=float)
    x, y = points[:, 0], points[:, 1]
    slopes: Numbers = np.append(np.diff(y) / np.diff(x), 0.0)
    v = np.clip(v, x[0], x[-1])
    at = np.clip(np.searchsorted(x, v, side="right") - 1, 0, len(x) - 1)
    return np.asarray(slopes[at] * (v - x[at]) + y[at])


VANISHES = -745.2  # where an exponential is 0


PAIRS = 1 << 21  # of rows and vectors that are compared together: 16 MB for each number of a pair


def _by_rows(body: Mapping[str, Any], columns: Columns, of: Callable[[Mapping[str, Any], Numbers, Numbers], NDArray[Any]]) -> NDArray[Any]:
    """Of places of rows and of vectors in their space, some rows at a time."""
    at = _weighted(body, body["intercepts"], columns)
    vectors = _forest.decoded(body["vectors"]).astype(float).reshape(-1, at.shape[1])
    rows = max(1, PAIRS // len(vectors))
    return np.concatenate([of(body, at[i : i + rows], vectors) for i in range(0, max(len(at), 1), rows)])


def _summed(at: Numbers, vectors: Numbers, term: Callable[[Numbers, Numbers], Numbers]) -> Numbers:
    """Of each row and each vector, the sum of a term for each axis."""
    out = np.zeros((len(at), len(vectors)))
    for j in range(at.shape[1]):
        out = out + term(at[:, j, None], vectors[None, :, j])
    return out


def _squares(at: Numbers, vectors: Numbers) -> Numbers:
    return _summed(at, vectors, lambda a, v: (a - v) * (a - v))


def _absolutes(at: Numbers, vectors: Numbers) -> Numbers:
    return _summed(at, vectors, lambda a, v: np.abs(a - v))


def _kernel(body: Mapping[str, Any], at: Numbers, vectors: Numbers) -> Numbers:
    alike = _alike(body, at, vectors)
    coefficients = _forest.decoded(body["coefficients"]).astype(float).reshape(-1, len(vectors))
    base = body.get("base", 0.0)
    sums = np.tile(np.array(base if isinstance(base, Sequence) else [base] * len(coefficients), dtype=float), (len(at), 1))
    for v in range(len(vectors)):  # in this order
        sums = sums + alike[:, v, None] * coefficients[None, :, v]
    if not body.get("votes"):
        return sums
    classes, pair, gone = len(body["classes"]), 0, sums - sums  # NaN where one is no finite number
    out = np.zeros((len(at), classes))
    for a in range(classes):
        for b in range(a + 1, classes):
            out[:, a] += (sums[:, pair] > 0) + gone[:, pair]
            out[:, b] += ~(sums[:, pair] > 0) + gone[:, pair]
            pair += 1
    return out


def _alike(body: Mapping[str, Any], at: Numbers, vectors: Numbers) -> Numbers:
    """The kernel of each row and each vector."""
    function, gamma, coef0 = body.get("function", "rbf"), float(body.get("gamma", 1.0)), float(body.get("coef0", 0.0))
    if function in ("rbf", "laplacian"):
        far = -gamma * (_squares(at, vectors) if function == "rbf" else _absolutes(at, vectors))
        return np.where(far <= VANISHES, 0.0, np.exp(np.maximum(far, -700)))
    product = _summed(at, vectors, lambda a, v: a * v)
    if function == "linear":
        return product
    inner = gamma * product + coef0
    if function == "sigmoid":
        return np.asarray(1 - 2 / (1 + np.exp(2 * inner)))
    power = inner
    for _ in range(int(body.get("degree", 3)) - 1):
        power = power * inner
    return power


def tied(model: Mapping[str, Any], table: Table) -> NDArray[np.bool_]:
    """Rows of which the last of the nearest vectors is as far as the next one, up to rounding."""
    _, body = opened(model)
    return _by_rows(body, Columns(table, model.get("features", {})), _tied)


def _tied(body: Mapping[str, Any], at: Numbers, vectors: Numbers) -> NDArray[np.bool_]:
    far, k = np.sort(_far(body, at, vectors), axis=1), body.get("k", 5)
    if k == far.shape[1]:
        return np.zeros(len(far), dtype=bool)
    with np.errstate(invalid="ignore"):
        return np.asarray(far[:, k] - far[:, k - 1] <= 1e-12 * far[:, k])


def _far(body: Mapping[str, Any], at: Numbers, vectors: Numbers) -> Numbers:
    """How far each row is from each vector; of the Euclidean metric the square."""
    return _squares(at, vectors) if body.get("metric", "euclidean") == "euclidean" else _absolutes(at, vectors)


def _neighbors(body: Mapping[str, Any], at: Numbers, vectors: Numbers) -> Numbers:
    euclidean = body.get("metric", "euclidean") == "euclidean"
    far = _far(body, at, vectors)
    values, k = _forest.decoded(body["values"]).astype(float), body.get("k", 5)
    nearest = np.argsort(far, axis=1, kind="stable")[:, :k]
    near = np.take_along_axis(far, nearest, axis=1)
    near = np.sqrt(near) if euclidean else near
    weight = np.ones(near.shape)
    if body.get("weighting", "uniform") == "distance":
        here = near == 0
        weight = np.where(here[:, :1], here, 1 / np.where(here, 1.0, near))
    classes = len(body.get("classes", [0]))
    out, total = np.zeros((len(at), classes)), near[:, -1:] - near[:, -1:]  # 0, and NaN where so many are not at a finite distance
    for j in range(k):
        of, w = values[nearest[:, j], None], weight[:, j, None]
        total = total + w
        out = out + w * (of if classes == 1 else of == np.arange(classes))
    return np.asarray(out / total)


_SCORES: dict[str, Callable[[Any, Columns], Numbers]] = {
    "linear": _linear,
    "softmax": _softmax,
    "network": _network,
    "kernel": lambda body, columns: _by_rows(body, columns, _kernel),
    "neighbors": lambda body, columns: _by_rows(body, columns, _neighbors),
    "trees": _trees,
    "mixture": _mixture,
}

_SPLITTER = 134217729.0  # 2^27 + 1, which halves a double's digits (Veltkamp)
_PLAIN = 2.0**300  # numbers and products up to it, and not below its inverse, are multiplied without overflow or loss


def fma(a: float, x: Numbers, c: Numbers) -> Numbers:
    """a x + c, rounded once (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008)."""
    out = np.asarray(a * x + c)
    if a == 0 or a == 1:
        return out  # the product is exact
    size = np.abs(x)
    plain = (x == 0) | ((size < _PLAIN) & (size > 1 / _PLAIN) & (1 / _PLAIN < abs(a) < _PLAIN))
    plain &= (np.abs(c) < _PLAIN) & ((c == 0) | (np.abs(c) > 1 / _PLAIN))
    high, low = _product(a, x)
    sum_high, sum_low = _sum(c, low)
    head, rest = _sum(high, sum_high)
    exact = np.asarray(head + _odd(sum_low, rest))
    for i in np.flatnonzero(~plain & np.isfinite(x) & np.isfinite(c)):
        exact[i] = _rounded(Fraction(a) * Fraction(float(x[i])) + Fraction(float(c[i])), out[i])
    return np.where(np.isfinite(x) & np.isfinite(c), exact, out)


def _product(a: float, x: Numbers) -> tuple[Numbers, Numbers]:
    """a x as the double next to it and the rest (Dekker)."""
    p = a * x
    a_high = _SPLITTER * a - (_SPLITTER * a - a)
    x_high = _SPLITTER * x - (_SPLITTER * x - x)
    a_low, x_low = a - a_high, x - x_high
    return p, ((a_high * x_high - p) + a_high * x_low + a_low * x_high) + a_low * x_low


def _sum(a: Numbers, b: Numbers) -> tuple[Numbers, Numbers]:
    """a + b as the double next to it and the rest (Knuth)."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def _odd(a: Numbers, b: Numbers) -> Numbers:
    """a + b, of the two doubles around it the one whose last digit is odd, unless it is a double itself."""
    s, rest = _sum(a, b)
    even = (s.view(np.int64) & 1) == 0
    return np.where((rest != 0) & even, np.nextafter(s, np.where(rest > 0, math.inf, -math.inf)), s)


def _rounded(exact: Fraction, as_computed: float) -> float:
    if exact == 0:
        return as_computed  # of two zeros the sum's
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf
