"""Promised and expected errors of k questions, recomputed apart from this repository's Go code: NumPy and SciPy, from the formulas alone.

    python3 reference.py > reference.json

A table of 100,000 rows of 256 elements; neighbours differ in one replaced row; a total epsilon of 1. Weights are planned as dp/pmw says, with a failure probability of 0.05: a third of epsilon for answers,
the rest shared between threshold and comparisons as 1 to (2 updates)^(2/3).
"""

import json
import math

import numpy as np
from scipy import integrate, optimize, stats

DOMAIN, ROWS, EPSILON, DELTA, BETA = 256, 100_000, 1.0, 1e-6, 0.05
QUESTIONS = [10, 30, 100, 300, 1000, 3000, 10_000, 20_000, 30_000, 100_000, 300_000]


def weights(k):
    """The least promised error over the planned numbers of updates, those updates, and the threshold."""
    best = (1.0, 0, 0.0)
    for exponent in np.arange(0, 16.25, 0.25):
        updates = int(2.0 ** exponent)
        compare = EPSILON * 2 / 3
        first = compare / (1 + (2 * updates) ** (2 / 3))
        off = math.log(3 / BETA) / first + 2 * updates * math.log(6 * k / BETA) / (compare - first)
        margin = max(off, 3 * updates * math.log(3 * updates / BETA) / EPSILON) / ROWS
        mistake = math.sqrt(2 * math.log(DOMAIN) / updates)
        if mistake + 2 * margin < best[0] and mistake + margin < 1:
            best = (mistake + 2 * margin, updates, mistake + margin)
    return best


def gaussian_sigma(k):
    """Balle and Wang, arXiv 1805.06530, theorem 8, for a sensitivity of sqrt(k)/n."""
    def over(mu):
        return stats.norm.cdf(mu / 2 - EPSILON / mu) - math.exp(EPSILON) * stats.norm.cdf(-mu / 2 - EPSILON / mu) - DELTA
    return math.sqrt(k) / ROWS / optimize.brentq(over, 0.05, 5, xtol=1e-15, rtol=1e-14)


def laplace_scale(k):
    return k / EPSILON / ROWS


def each(k):
    """How likely one error is beyond a limit that the largest of k is beyond with probability BETA."""
    return -math.expm1(math.log1p(-BETA) / k)


def laplace_promise(k):
    return laplace_scale(k) * -math.log(each(k))


def gaussian_promise(k):
    return gaussian_sigma(k) * stats.norm.isf(each(k) / 2)


def gaussian_mean(k):
    def beyond(x):
        return -np.expm1(k * np.log1p(-2 * stats.norm.sf(x)))
    return gaussian_sigma(k) * sum(integrate.quad(beyond, a, a + 1, epsabs=1e-13, epsrel=1e-12)[0] for a in range(12))


def crossing(promise):
    return math.exp(optimize.brentq(lambda x: promise(math.exp(x)) - weights(math.exp(x))[0], math.log(10), math.log(1e9), xtol=1e-12))


def main():
    found = []

    def add(method, k, name, value):
        found.append({"condition": "", "method": method, "n": ROWS, "k": k, "set": name, "mean": float(value)})

    for k in QUESTIONS:
        promise, updates, threshold = weights(k)
        add("multiplicative weights", k, "promise", promise)
        add("multiplicative weights", k, "updates", updates)
        add("multiplicative weights", k, "threshold", threshold)
        add("Laplace noise", k, "promise", laplace_promise(k))
        add("Laplace noise", k, "mean", laplace_scale(k) * np.sum(1 / np.arange(1, k + 1)))
        add("Gaussian noise", k, "promise", gaussian_promise(k))
        add("Gaussian noise", k, "mean", gaussian_mean(k))
    add("Laplace noise", 0, "crossing", crossing(laplace_promise))
    add("Gaussian noise", 0, "crossing", crossing(gaussian_promise))
    lines = ",\n".join(json.dumps(row) for row in found)
    print('{"source": "reference.py, NumPy and SciPy", "rows": [\n' + lines + "\n]}")


if __name__ == "__main__":
    main()
