"""Makes reference.json: what the experiment coverage is to find of the single-adaptive analyst, by NumPy and SciPy.

    reference.py RUNS > reference.json

It shares nothing with the Go code. Half-widths of gaussian are the root of the proof's equation (docs/proofs/adaptive-hoeffding.md, docs/proofs/promises.md), with the
expectation over the noise integrated numerically; those of naive reuse are Hoeffding's for questions that are fixed beforehand. The analyst
asks about k-1 columns of coins, weighs each by the log-odds of its answer, and last asks about the vote of the columns.
"""

import json
import sys

import numpy as np
from scipy.optimize import brentq, minimize_scalar
from scipy.stats import norm

SIZES = ((500, 100), (500, 500), (2000, 500))
CONFIDENCES = (0.8, 0.95)
LEVELS = np.arange(1, 20) / 20


def schedule(k):
    """The noise of each question in scales of the schedule: 1-u, 6u^2 - 8u^3 + 3u^4 = (j-1/2)/k."""
    return np.array([1 - brentq(lambda u: u * u * (6 + u * (3 * u - 8)) - (j - 0.5) / k, 0, 1, xtol=1e-15) for j in range(1, k + 1)])


def tail(n, t, released):
    return np.exp(-(np.maximum(0, t * np.sqrt(2 * n) - np.sqrt(released)) ** 2))


def miss(n, w, sigma, released):
    """E tail(W - sigma max(Z, 0)): where answers may bear promises, noise towards the target counts for nothing (docs/proofs/promises.md)."""
    at = np.arange(1 / 128, 10, 1 / 64)  # the middles of cells
    return tail(n, w, released) / 2 + (tail(n, w - sigma[:, None] * at, released[:, None]) * norm.pdf(at)).sum(axis=1) / 64


def gaussian(n, k, beta):
    """The narrowest half-width and its noise: the last question has none. A tenth of beta is for other answers, and a tenth of the rest
    for broken promises."""
    beta = 0.9 * 0.9 * beta
    shape = schedule(k)

    def half_width(s):
        sigma = s * shape[:-1]
        released = np.concatenate([[0], np.cumsum(1 / (8 * sigma**2 * (n - 1)))])  # before each question

        def excess(w):
            return 2 * (miss(n, w, sigma, released[:-1]).sum() + tail(n, w, released[-1])) - beta

        return brentq(excess, 0.01, 2, xtol=1e-9)

    found = minimize_scalar(lambda log_s: half_width(np.exp(log_s)), bounds=(np.log(0.005), np.log(0.3)), method="bounded", options={"xatol": 1e-4})
    return found.fun, np.exp(found.x) * np.append(shape[:-1], 0)


def attack(random, n, k, sigma):
    """The largest error of a run."""
    agree = random.random((n, k - 1)) < 0.5
    answers = np.append(agree.mean(axis=0), 0) + sigma * random.standard_normal(k)
    c = np.clip(2 * answers[:-1] - 1, -1 + 1e-15, 1 - 1e-15)
    score = np.where(agree, 1.0, -1.0) @ (np.log1p(c) - np.log1p(-c))
    vote = np.mean(np.where(score == 0, random.random(n) < 0.5, score > 0))
    answers[-1] += vote
    return np.abs(np.clip(answers, 0, 1) - 0.5).max()


def kurtosis(v):
    return np.mean((v - v.mean()) ** 4) / v.var() ** 2


def main(runs):
    cells = []
    for n, k in SIZES:
        for confidence in CONFIDENCES:
            beta = 1 - confidence
            for method in ("gaussian", "naive, non-adaptive intervals"):
                w, sigma = gaussian(n, k, beta) if method == "gaussian" else (np.sqrt(np.log(2 * k / beta) / (2 * n)), np.zeros(k))
                random = np.random.default_rng([2016, n, k, int(100 * confidence), method == "gaussian"])
                worst = np.array([attack(random, n, k, sigma) for _ in range(runs)])
                print(method, n, k, confidence, w, sigma[0], worst.mean(), (worst / w).mean(), file=sys.stderr)
                cells.append({"method": method, "n": n, "k": k, "confidence": confidence, "half_width": float(f"{w:.6g}"), "repetitions": runs,
                              "worst": {"mean": float(f"{worst.mean():.8g}"), "sd": float(f"{worst.std(ddof=1):.6g}"), "kurtosis": float(f"{kurtosis(worst):.4g}"),
                                        "quantiles": [float(f"{q:.6g}") for q in np.quantile(worst, LEVELS, method="inverted_cdf")]}})
    json.dump({"source": "experiments/coverage/reference.py (NumPy, SciPy)", "analyst": "single-adaptive", "cells": cells}, sys.stdout, separators=(",", ":"))
    print()


if __name__ == "__main__":
    main(int(sys.argv[1]))
