"""Makes reference.json: two regressions on noise, the second on what the first found, by NumPy and SciPy (D. A. Freedman, 1983).

    reference.py 100=2000 1000=100 > reference.json     ROWS=RUNS

It shares nothing with the Go code. All of the data are drawn, orthonormal regressors too (by QR), and fitted by least squares.
"""

import json
import sys

import numpy as np
from scipy.stats import t as student

LEVELS = np.arange(1, 20) / 20
MEASURES = ["R2 of the first", "F of the first", "R2 of the second", "F of the second", "share kept", "significant of the second"]


def regression(x, y):
    """R2, F and P of each coefficient, with an intercept."""
    n, p = x.shape
    freedom = n - p - 1
    with_one = np.column_stack([np.ones(n), x])
    q, r = np.linalg.qr(with_one)
    coefficients = np.linalg.solve(r, q.T @ y)
    rest = np.sum((y - with_one @ coefficients) ** 2)
    total = np.sum((y - y.mean()) ** 2)
    inverse = np.linalg.inv(r)
    t = coefficients[1:] / np.sqrt(rest / freedom * np.sum(inverse**2, axis=1)[1:])
    return 1 - rest / total, (total - rest) / p / (rest / freedom), 2 * student.sf(np.abs(t), freedom)


def run(random, n, orthonormal):
    p = n // 2
    x = random.standard_normal((n, p))
    if orthonormal:
        x = np.linalg.qr(np.column_stack([np.ones(n), x]))[0][:, 1:]
    y = random.standard_normal(n)
    r2, f, each = regression(x, y)
    kept = each < 0.25
    if not kept.any():
        return [r2, f, 0, 0, 0, 0]
    r2_second, f_second, again = regression(x[:, kept], y)
    return [r2, f, r2_second, f_second, kept.mean(), np.mean(again < 0.05)]


def kurtosis(v):
    return np.mean((v - v.mean()) ** 4) / v.var() ** 2


def main(sizes):
    cells = []
    for size in sizes:
        n, runs = map(int, size.split("="))
        for design in ("independent regressors", "orthonormal regressors"):
            random = np.random.default_rng([1983, n, design[0] == "o"])
            found = np.array([run(random, n, design[0] == "o") for _ in range(runs)])
            print(design, n, found.mean(axis=0), file=sys.stderr)
            numbers = [{"mean": float(f"{v.mean():.8g}"), "sd": float(f"{v.std(ddof=1):.6g}"), "kurtosis": float(f"{kurtosis(v):.4g}"),
                        "quantiles": [float(f"{q:.6g}") for q in np.quantile(v, LEVELS, method="inverted_cdf")]} for v in found.T]
            cells.append({"design": design, "n": n, "repetitions": runs, "numbers": dict(zip(MEASURES, numbers))})
    json.dump({"source": "experiments/freedman/reference.py (NumPy, SciPy)", "cells": cells}, sys.stdout, separators=(",", ":"))
    print()


if __name__ == "__main__":
    main(sys.argv[1:])
