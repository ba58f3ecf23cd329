"""Makes reference.json: the loss that the published attack on a leaderboard ends with, by NumPy (A. Blum, M. Hardt, arXiv 1502.04585).

    reference.py RUNS > reference.json

It shares nothing with the Go code. A submission is the vector of its errors, coins. The attack submits k of them, keeps those that are shown with a loss
of at most 1/2, or that move the parameter-free Ladder to at most 1/2, and last submits their majority.
"""

import json
import sys

import numpy as np

N = 4000
KS = (25, 50, 100, 200, 400, 800)
LEVELS = np.arange(1, 20) / 20


def majority(random, kept):
    votes = 2 * kept.sum(axis=0, dtype=np.int32) - len(kept)
    return np.where(votes == 0, random.random(N) < 0.5, votes > 0).mean()


def exact(random, k):
    errors = random.integers(0, 2, (k, N), dtype=np.uint8)
    kept = errors[2 * errors.sum(axis=1, dtype=np.int32) <= N]
    return majority(random, kept)


def ladder(random, k):
    """The parameter-free Ladder: a submission moves it that is better than the best by a standard error of the difference."""
    errors = random.integers(0, 2, (k, N), dtype=np.uint8)
    best, shown, kept = None, np.inf, []
    for e in errors:
        loss = e.mean()
        moves = best is None or loss < shown - np.std(e.astype(float) - best, ddof=1) / np.sqrt(N)
        if moves:
            best, shown = e.astype(float), round(loss * N) / N
            if shown <= 0.5:
                kept.append(e)
    return majority(random, np.array(kept, dtype=np.uint8).reshape(len(kept), N))


def kurtosis(v):
    return np.mean((v - v.mean()) ** 4) / v.var() ** 2


def main(runs):
    cells = []
    for name, play in (("exact scores", exact), ("ladder", ladder)):
        for k in KS:
            random = np.random.default_rng([1502, k, name == "ladder"])
            v = np.array([play(random, k) for _ in range(runs)])
            print(name, k, v.mean(), v.std(), file=sys.stderr)
            cells.append({"method": name, "n": N, "k": k, "repetitions": runs,
                          "final": {"mean": float(f"{v.mean():.8g}"), "sd": float(f"{v.std(ddof=1):.6g}"), "kurtosis": float(f"{kurtosis(v):.4g}"),
                                    "quantiles": [float(f"{q:.6g}") for q in np.quantile(v, LEVELS, method="inverted_cdf")]}})
    json.dump({"source": "experiments/leaderboard/reference.py (NumPy)", "cells": cells}, sys.stdout, separators=(",", ":"))
    print()


if __name__ == "__main__":
    main(int(sys.argv[1]))
