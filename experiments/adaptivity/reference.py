"""Makes guaranteed.json: how many adaptive questions gaussian answers within a half-width at 95%, by NumPy and SciPy.

    reference.py > guaranteed.json

It shares nothing with the Go code. A half-width W is the root of the proof's equation (docs/proofs/adaptive-hoeffding.md): 2 sum_j E tail(W - sigma_j Z, I_j) = 0.9 beta, with
the expectation over the noise integrated numerically; a tenth of beta is for other answers. The noise is the schedule's at the best scale, and the last answer has none. The
number of questions is the largest whose half-width is not above what is asked for.
"""

import json
import sys

import numpy as np
from scipy.optimize import brentq, minimize_scalar
from scipy.stats import norm

SIZES = {0.1: (2000, 4000, 8000, 16000), 0.05: (8000, 16000, 32000)}
BETA = 0.05
AT = np.arange(-10 + 1 / 128, 10, 1 / 64)  # the middles of cells of the noise


def schedule(k):
    """The noise of each question but the last in scales of the schedule: 1-u, 6u^2 - 8u^3 + 3u^4 = (j-1/2)/k."""
    grid = np.linspace(0, 1, 100_001)
    u = np.interp((np.arange(1, k) - 0.5) / k, grid * grid * (6 + grid * (3 * grid - 8)), grid)
    return 1 - u


def tail(n, t, released):
    return np.exp(-(np.maximum(0, t * np.sqrt(2 * n) - np.sqrt(released)) ** 2))


def half_width(n, k, s, shape):
    sigma = s * shape
    released = np.concatenate([[0], np.cumsum(1 / (8 * sigma**2 * (n - 1)))])  # before each question

    def excess(w):
        noisy = 0.0
        for at in range(0, k - 1, 4096):
            part = slice(at, at + 4096)
            noisy += (tail(n, w - sigma[part, None] * AT, released[:-1][part, None]) * norm.pdf(AT)).sum() / 64
        return 2 * (noisy + tail(n, w, released[-1])) - 0.9 * BETA

    return brentq(excess, 0.005, 2, xtol=1e-9)


def narrowest(n, k):
    shape = schedule(k)
    found = minimize_scalar(lambda log_s: half_width(n, k, np.exp(log_s), shape), bounds=(np.log(0.003), np.log(0.3)), method="bounded", options={"xatol": 1e-3})
    return found.fun


def main():
    cells = []
    for h, sizes in SIZES.items():
        for n in sizes:
            low, high = 2, 4
            while narrowest(n, high) <= h:
                low, high = high, 2 * high
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if narrowest(n, middle) <= h else (low, middle)
            print(h, n, low, file=sys.stderr, flush=True)
            cells.append({"n": n, "half_width": h, "questions": low})
    json.dump({"source": "experiments/adaptivity/reference.py (NumPy, SciPy)", "cells": cells}, sys.stdout, separators=(",", ":"))
    print()


if __name__ == "__main__":
    main()
