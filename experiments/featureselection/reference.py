"""Makes reference.json: what the experiment feature-selection is to find, by NumPy, from the published steps and all of the data.

    reference.py SIZE=REPETITIONS ... > reference.json     for example: reference.py 200=4000 1000=2000 10000=100

It shares nothing with the Go code, which draws what the analyst sees instead of the data. For both conditions and both methods it has
the mean, the standard deviation, the kurtosis and nineteen quantiles (5% to 95%) of what repetitions find, each on data of its own.
"""

import json
import math
import sys

import numpy as np

PUBLISHED = 10_000
KS = [10, 20, 30, 45, 70, 100, 150, 200, 250, 300, 400, 500]
LEVELS = np.arange(1, 20) / 20


def scaled(k, n):
    """A number of columns of the published size, at another; halves are rounded up."""
    return max(1, math.floor(k * n / PUBLISHED + 0.5))


def part(random, n, biased, columns=None):
    """Labels and columns of one part: of all columns, or of some."""
    columns = np.arange(n) if columns is None else columns
    y = np.where(random.random(n) < 0.5, 1, -1).astype(np.float32)
    x = random.standard_normal((n, len(columns)), dtype=np.float32)
    know = columns < biased
    x[:, know] += np.float32(6 / math.sqrt(n)) * y[:, None]
    return x, y


def repetition(random, n, biased, through):
    """Accuracies in the training part, as told, and in fresh data, by k; columns selected; answers from the holdout."""
    unit, ks = 1 / math.sqrt(n), sorted({scaled(k, n) for k in KS})
    above = 0

    def tell(a, b, unit):
        nonlocal above
        if not through:
            return b
        far = np.abs(a - b) > 4 * unit + random.normal(0, unit, np.shape(a))
        above += np.count_nonzero(far)
        return np.where(far, b + random.normal(0, unit, np.shape(a)), a)

    training, holdout = part(random, n, biased), part(random, n, biased)
    a, b = ((y @ x).astype(np.float64) / n for x, y in (training, holdout))
    told = tell(a, b, unit)
    selected = np.flatnonzero((np.sign(a) == np.sign(told)) & (np.abs(a) > unit) & (np.abs(told) > unit))
    order = selected[np.argsort(-np.abs(a[selected]))][: ks[-1]]
    signs = np.sign(a[order]).astype(np.float32)
    fresh = part(random, n, biased, order)
    right = []
    for x, y in ((training[0][:, order], training[1]), (holdout[0][:, order], holdout[1]), fresh):
        votes = np.cumsum(x * signs, axis=1)
        right.append([np.mean(votes[:, min(k, len(order)) - 1] * y > 0) if len(order) else 0.0 for k in ks])
    right[1] = [float(tell(np.array(t), np.array(h), 0.01)) for t, h in zip(right[0], right[1])]
    return right[0] + right[1] + right[2] + [len(selected), above]


def kurtosis(v):
    """The fourth moment about the mean, in squared variances: 3 for a normal variable. 3 is told of what never varies."""
    return np.mean((v - v.mean()) ** 4) / v.var() ** 2 if v.var() > 0 else 3


def main(sizes):
    out = {
        "source": "experiments/featureselection/reference.py (NumPy, all data drawn): the steps of the published program, supporting file of doi 10.1126/science.aaa9375",
        "levels": [round(float(v), 2) for v in LEVELS],
        "measures": ["training", "holdout, as told", "fresh data", "columns selected", "answers from the holdout"],
        "cells": [],
    }
    for size in sizes:
        n, repetitions = map(int, size.split("="))
        for condition, biased in (("no signal", 0), ("signal", scaled(20, n))):
            for method in ("standard", "thresholdout"):
                random = np.random.default_rng([2015, n, biased, method == "thresholdout"])
                found = np.array([repetition(random, n, biased, method == "thresholdout") for _ in range(repetitions)])
                print(condition, method, n, file=sys.stderr)
                numbers = [
                    {"mean": float(f"{v.mean():.8g}"), "sd": float(f"{v.std(ddof=1):.6g}"), "kurtosis": float(f"{kurtosis(v):.4g}"),
                     "quantiles": [float(f"{q:.6g}") for q in np.quantile(v, LEVELS, method="inverted_cdf")]}
                    for v in found.T
                ]
                out["cells"].append({"n": n, "condition": condition, "method": method, "repetitions": repetitions, "numbers": numbers})
    json.dump(out, sys.stdout, separators=(",", ":"))
    print()


if __name__ == "__main__":
    main(sys.argv[1:])
