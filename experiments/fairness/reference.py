"""Makes reference.json: the gap that exact answers show of a rule that was tuned on a holdout, by NumPy.

    reference.py RUNS > reference.json

It shares nothing with the Go code. Every row is drawn: its group, whether the rule decides it, whether it is right, and, of undecided rows of group B, what each adjustment says.
The last rule sums the adjustments, each weighted by how far its gap was below the average.
"""

import json
import sys

import numpy as np

SIZES = ((40_000, (100, 200, 400, 800, 1600)),)
LEVELS = np.arange(1, 20) / 20


def shown(random, n, k):
    in_a = random.random(n) < 0.5
    undecided = ~in_a & (random.random(n) < 0.5)
    right = np.where(in_a, random.random(n) < 0.80, random.random(n) < 0.94)
    label = random.integers(0, 2, undecided.sum(), dtype=np.int8)
    says = random.integers(0, 2, (k, undecided.sum()), dtype=np.int8)

    def gap(decisions):
        right[undecided] = decisions == label
        # Both groups are half of the population, which is public: the accuracies are those of halves.
        return 2 * ((in_a & right).sum() + (~in_a & ~right).sum()) / n - 1

    gaps = np.array([gap(s) for s in says])
    votes = (gaps.mean() - gaps) @ (2.0 * says - 1)
    return gap((votes > 0).astype(np.int8))


def kurtosis(v):
    return np.mean((v - v.mean()) ** 4) / v.var() ** 2


def main(runs):
    cells = []
    for n, tries in SIZES:
        for k in tries:
            random = np.random.default_rng([1411, n, k])
            v = np.array([shown(random, n, k) for _ in range(runs)])
            print(n, k, v.mean(), v.std(), file=sys.stderr)
            cells.append({"n": n, "k": k, "repetitions": runs,
                          "shown": {"mean": float(f"{v.mean():.8g}"), "sd": float(f"{v.std(ddof=1):.6g}"), "kurtosis": float(f"{kurtosis(v):.4g}"),
                                    "quantiles": [float(f"{q:.6g}") for q in np.quantile(v, LEVELS, method="inverted_cdf")]}})
    json.dump({"source": "experiments/fairness/reference.py (NumPy)", "cells": cells}, sys.stdout, separators=(",", ":"))
    print()


if __name__ == "__main__":
    main(int(sys.argv[1]))
