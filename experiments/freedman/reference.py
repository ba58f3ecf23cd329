"""Reference numbers of Freedman's screening, made apart from this repository's Go code: least squares by NumPy, P-values by SciPy.

    python3 reference.py > reference.json

Rows of normal noise, half as many regressors, an intercept; those with P below 0.25 are kept and the regression is run again on the same rows.
Orthonormal regressors are the orthonormal basis of such columns, made orthogonal to the intercept.
"""

import json
import sys

import numpy as np
from scipy import stats

LEVEL = 0.25


def fit(x, y):
    """R2, F, the P-value of F, and the P-values of the coefficients of a regression with an intercept."""
    n, p = x.shape
    if p == 0:  # nothing was kept
        return 0.0, 0.0, 1.0, np.zeros(1) + 1
    design = np.column_stack([np.ones(n), x])
    q, r = np.linalg.qr(design)
    beta = np.linalg.solve(r, q.T @ y)
    residual = y - design @ beta
    freedom = n - p - 1
    rss, tss = residual @ residual, np.sum((y - y.mean()) ** 2)
    r2 = 1 - rss / tss
    f = (r2 / p) / ((1 - r2) / freedom)
    inverse = np.linalg.inv(r)
    errors = np.sqrt(rss / freedom * np.sum(inverse ** 2, axis=1))
    return r2, f, stats.f.sf(f, p, freedom), 2 * stats.t.sf(np.abs(beta / errors), freedom)[1:]


def repetition(rng, n, p, orthonormal):
    x, y = rng.standard_normal((n, p)), rng.standard_normal(n)
    if orthonormal:
        x = np.linalg.qr(x - x.mean(axis=0))[0]
    first = fit(x, y)
    kept = first[3] < LEVEL
    second = fit(x[:, kept], y)
    return {("all regressors", "R2"): first[0], ("all regressors", "F"): first[1], ("all regressors", "F test with P below 0.05"): float(first[2] < 0.05),
            ("all regressors", "share of coefficients with P below 0.05"): np.mean(first[3] < 0.05),
            ("screened, refitted", "R2"): second[0], ("screened, refitted", "F"): second[1], ("screened, refitted", "F test with P below 0.05"): float(second[2] < 0.05),
            ("screened, refitted", "share of coefficients with P below 0.05"): np.mean(second[3] < 0.05),
            ("screened, refitted", "share of regressors kept"): kept.mean()}


def main():
    rows = []
    for n, repetitions in ((100, 5000), (1000, 300)):
        for design in ("independent", "orthonormal"):
            values = {}
            for i in range(repetitions):
                for key, v in repetition(np.random.default_rng([1983, n, i, len(design)]), n, n // 2, design == "orthonormal").items():
                    values.setdefault(key, []).append(v)
            for (condition, measure), v in values.items():
                v = np.array(v)
                spread = np.var(v)
                kurtosis = np.mean((v - v.mean()) ** 4) / spread ** 2 if spread > 0 else 0.0
                rows.append({"condition": condition, "method": design + " regressors", "n": n, "k": n // 2, "set": measure, "mean": round(float(v.mean()), 8),
                             "sd": round(float(v.std(ddof=1)), 8), "kurtosis": round(float(kurtosis), 4), "repetitions": repetitions})
            print(n, design, file=sys.stderr)
    print(json.dumps({"source": "reference.py: NumPy and SciPy", "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
