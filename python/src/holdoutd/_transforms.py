"""Fitted steps of scikit-learn as row expressions: what they compute of their features."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from .expressions import Expression, maximum, where

Columns: TypeAlias = Sequence[Expression]

PIECES = 256  # of a function of one number; more are too long an expression


def total(terms: Sequence[Expression]) -> Expression:
    """Their sum, added in pairs, so that it is not deep."""
    if len(terms) == 1:
        return terms[0]
    half = len(terms) // 2
    return total(terms[:half]) + total(terms[half:])


def weighted(of: Columns, weights: Sequence[float], more: float = 0.0) -> Expression:
    """more, and the sum of each number times its weight."""
    terms = [x * float(w) for x, w in zip(of, weights, strict=True) if w != 0]
    if not terms:
        terms = [of[0] * 0.0]
    return total(terms) + float(more) if more else total(terms)


def pieces(x: Expression, edges: Sequence[float], values: Sequence[Expression | float]) -> Expression | float:
    """values[i] from edges[i-1] on and below edges[i]; there is a value more than edges."""
    if not edges:
        return values[0]
    middle = len(edges) // 2
    below, above = pieces(x, edges[:middle], values[: middle + 1]), pieces(x, edges[middle + 1 :], values[middle + 1 :])
    return where(x < float(edges[middle]), below, above)


def _principal(step: Any, of: Columns) -> list[Expression]:
    components = np.asarray(step.components_, dtype=float)
    if step.whiten:
        components = components / np.maximum(np.sqrt(step.explained_variance_), np.finfo(float).eps)[:, None]
    return [weighted([x - float(m) for x, m in zip(of, step.mean_, strict=True)], c) for c in components]


def _singular(step: Any, of: Columns) -> list[Expression]:
    return [weighted(of, c) for c in np.asarray(step.components_, dtype=float)]


def _polynomial(step: Any, of: Columns) -> list[Expression]:
    out = []
    for powers in step.powers_:
        factors = [x for x, p in zip(of, powers, strict=True) for _ in range(int(p))]
        product = factors[0] if factors else of[0] * 0.0 + 1.0
        for x in factors[1:]:
            product = product * x
        out.append(product)
    return out


def _power(step: Any, of: Columns) -> list[Expression]:
    out = []
    for i, (x, power) in enumerate(zip(of, map(float, step.lambdas_), strict=True)):
        if step.method == "box-cox":
            y = x.log() if power == 0 else ((x.log() * power).exp() - 1.0) / power
        else:
            up = (abs(x) + 1.0).log()
            positive = up if power == 0 else ((up * power).exp() - 1.0) / power
            rest = 2.0 - power
            negative = -up if rest == 0 else (1.0 - (up * rest).exp()) / rest
            y = where(x < 0.0, negative, positive)
        if step.standardize:
            scaler = step._scaler
            y = (y - float(scaler.mean_[i])) / float(scaler.scale_[i])
        out.append(y)
    return out


def _quantiles(step: Any, of: Columns) -> list[Expression]:
    if step.output_distribution != "uniform":
        raise ValueError('QuantileTransformer is exported with output_distribution="uniform"')
    if len(step.references_) > PIECES:
        raise ValueError(f"QuantileTransformer is exported with n_quantiles of at most {PIECES}")
    out = []
    for i, x in enumerate(of):
        knots, shares = np.asarray(step.quantiles_[:, i], dtype=float), np.asarray(step.references_, dtype=float)
        at = np.unique(knots)
        # Where knots are equal the library takes the middle of their first and last share.
        y = np.array([(shares[knots == k][0] + shares[knots == k][-1]) / 2 for k in at])
        y[0] = 0.0
        first = np.array([shares[knots == k][0] for k in at])
        last = np.array([shares[knots == k][-1] for k in at])
        lines: list[Expression | float] = [0.0]
        for k in range(len(at) - 1):
            slope = (first[k + 1] - last[k]) / (at[k + 1] - at[k])
            inner = (x - float(at[k])) * float(slope) + float(last[k])
            lines.append(inner if last[k] == y[k] else where(x == float(at[k]), float(y[k]), inner))
        lines.append(1.0)
        value = pieces(x, at.tolist(), lines)
        out.append(where(x.is_null(), None, value))
    return out


def _bins(step: Any, of: Columns) -> list[Expression]:
    out = []
    for x, edges, bins in zip(of, step.bin_edges_, step.n_bins_, strict=True):
        inner = [float(e) for e in edges[1:-1]]
        if len(inner) > PIECES:
            raise ValueError(f"KBinsDiscretizer is exported with at most {PIECES} bins")
        if step.encode == "ordinal":
            out.append(where(x.is_null(), None, pieces(x, inner, [float(k) for k in range(int(bins))])))
            continue
        for k in range(int(bins)):
            out.append(where(x.is_null(), None, pieces(x, inner, [float(j == k) for j in range(int(bins))])))
    return out


def _splines(step: Any, of: Columns) -> list[Expression]:
    from scipy.interpolate import PPoly

    if step.extrapolation not in ("constant", "continue", "error") or getattr(step, "handle_missing", "error") != "error":
        raise ValueError('SplineTransformer is exported with extrapolation="constant", "continue" or "error"')
    if step.sparse_output:  # some of whose zeros are stored, and are no nulls for XGBoost
        raise ValueError("SplineTransformer is exported with sparse_output=False")
    out: list[Expression] = []
    for x, spline in zip(of, step.bsplines_, strict=True):
        low, high = float(spline.t[spline.k]), float(spline.t[-spline.k - 1])
        of_x = x.clamp(low, high) if step.extrapolation != "continue" else x
        count = spline.c.shape[1]
        for k in range(count if step.include_bias else count - 1):
            poly = PPoly.from_spline((spline.t, spline.c[:, k], spline.k))
            inside = [i for i in range(len(poly.x) - 1) if poly.x[i] < poly.x[i + 1] and low <= poly.x[i] and poly.x[i + 1] <= high]
            values: list[Expression | float] = []
            for i in inside:
                distance = of_x - float(poly.x[i])
                value: Expression | float = float(poly.c[0, i])
                for coefficient in poly.c[1:, i]:
                    value = distance * value + float(coefficient)
                values.append(value)
            out.append(where(x.is_null(), None, pieces(of_x, [float(poly.x[i]) for i in inside[1:]], values)))
    return out


_FUNCTIONS: dict[str, Callable[[Expression], Expression]] = {
    "log": lambda x: x.log(),
    "log1p": lambda x: (x + 1.0).log(),
    "log2": lambda x: x.log() / math.log(2),
    "log10": lambda x: x.log() / math.log(10),
    "exp": lambda x: x.exp(),
    "expm1": lambda x: x.exp() - 1.0,
    "sqrt": lambda x: x.sqrt(),
    "square": lambda x: x * x,
    "abs": abs,
    "absolute": abs,
    "fabs": abs,
    "negative": lambda x: -x,
    "reciprocal": lambda x: 1.0 / x,
    "floor": lambda x: x.floor(),
    "ceil": lambda x: x.ceil(),
    "sign": lambda x: where(x > 0.0, 1.0, where(x < 0.0, -1.0, x)),
}


def _function(step: Any, of: Columns) -> list[Expression]:
    name = getattr(step.func, "__name__", "")
    if name not in _FUNCTIONS or getattr(np, name, None) is not step.func or step.kw_args:
        raise ValueError(f"FunctionTransformer is exported of NumPy's {', '.join(sorted(_FUNCTIONS))}, without kw_args")
    return [_FUNCTIONS[name](x) for x in of]


def _normal(step: Any, of: Columns) -> list[Expression]:
    if step.norm == "l2":
        length = total([x * x for x in of]).sqrt()
    elif step.norm == "l1":
        length = total([abs(x) for x in of])
    else:
        length = maximum(*(abs(x) for x in of)) if len(of) > 1 else abs(of[0])
    return [x / where(length == 0.0, 1.0, length) for x in of]


def _binary(step: Any, of: Columns) -> list[Expression]:
    return [where(x.is_null(), None, where(x > float(step.threshold), 1.0, 0.0)) for x in of]


COMPUTING: dict[str, Callable[[Any, Columns], list[Expression]]] = {
    "PCA": _principal,
    "TruncatedSVD": _singular,
    "PolynomialFeatures": _polynomial,
    "PowerTransformer": _power,
    "QuantileTransformer": _quantiles,
    "KBinsDiscretizer": _bins,
    "SplineTransformer": _splines,
    "FunctionTransformer": _function,
    "Normalizer": _normal,
    "Binarizer": _binary,
}


def _gaussian(e: Any, of: Columns) -> list[Expression]:
    out = []
    for prior, means, variances in zip(e.class_prior_, e.theta_, e.var_, strict=True):
        squares = [(x - float(m)) * (x - float(m)) for x, m in zip(of, means, strict=True)]
        constant = math.log(prior) - 0.5 * float(np.sum(np.log(2 * np.pi * variances)))
        out.append(weighted(squares, -0.5 / np.asarray(variances), constant))
    return out


def _quadratic(e: Any, of: Columns) -> list[Expression]:
    out = []
    for prior, means, rotation, scaling in zip(e.priors_, e.means_, e.rotations_, e.scalings_, strict=True):
        moved = [x - float(m) for x, m in zip(of, means, strict=True)]
        axes = [weighted(moved, axis) for axis in (rotation * scaling**-0.5).T]
        constant = math.log(prior) - 0.5 * float(np.sum(np.log(scaling)))
        out.append(weighted([a * a for a in axes], [-0.5] * len(axes), constant))
    return out


LIKELIHOODS: dict[str, Callable[[Any, Columns], list[Expression]]] = {
    "GaussianNB": _gaussian,
    "QuadraticDiscriminantAnalysis": _quadratic,
}
