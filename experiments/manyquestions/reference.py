"""Makes reference.json: half-widths for many questions about a small domain, and how far answers are off that are exact or of private multiplicative weights, by NumPy.

    reference.py RUNS > reference.json

It shares nothing with the Go code. Rows are of 64 cells, the i-th with a probability in proportion to 1/i. An analyst asks k-1 random sets of them. Of exact answers it asks last about the cells of which the
answers say that there are too many rows. Private weights (Hardt and Rothblum 2010) keep a guess: a question on which it is off by more than a noisy threshold is answered with noise, and
mends the guess. Their last question is about the cells of which the guess has too little.
"""

import json
import sys

import numpy as np
from scipy.special import gammaln

N, M, BETA = 30_000, 64, 0.05
AGAIN = "the guess is mended more than once"
LEVELS = np.arange(1, 20) / 20
LAW = 1 / np.arange(1, M + 1)
LAW /= LAW.sum()


def cells():
    return min(np.sqrt((M * np.log(2) - np.log(BETA)) / (2 * N)), np.sqrt((M - 1) / N) / 2 + np.sqrt(-np.log(BETA) / (2 * N)))


def described(k):
    """Weights without noise: transcripts that say where the guess was mended, and by which of c cells."""
    best = 1
    for u in np.floor(2 ** np.arange(0, 16.5, 0.5)):
        d = np.sqrt(np.log(M) / (2 * u))
        places = min(u, k // 2)
        log_choose = gammaln(k + 1) - gammaln(places + 1) - gammaln(k - places + 1)
        for c in (10, 20, 50, 100, 200, 500, 1000):
            level = np.log(2 * k * (u + 1) / BETA) + log_choose + u * np.log(c)
            best = min(best, max(d, 0.5 / c) + np.sqrt(level / (2 * N)))
    return best


def shares(eps, u):
    """The parts of epsilon for the threshold, for the comparisons and for the answers."""
    part = 1 / (1 + (2 * u) ** (2 / 3))
    return eps * 2 / 3 * part, eps * 2 / 3 * (1 - part), eps / 3


def plan(eps, k):
    """The threshold, the rate and the number of updates with the least error, and that error."""
    best = (1, None)
    for u in np.floor(2 ** np.arange(0, 16.25, 0.25)):
        threshold, comparison, answer = shares(eps, u)
        grid = 2.0**20
        margin = max(np.log(3 / BETA) / threshold + 1 / grid + 2 * u / comparison * np.log(3 * 2 * k / BETA) + 1 / grid, u / answer * np.log(3 * u / BETA) + 1 / grid)
        margin = (margin + 2 / grid) / N
        mistake = np.sqrt(np.log(M) / (2 * u)) * (1 + 1e-9)
        if mistake + 2 * margin < best[0] and mistake + margin < 1 and 4 * mistake <= 4:
            best = (mistake + 2 * margin, (mistake + margin, 4 * mistake, int(u)))
    return best


def private(k):
    """The best of some epsilons, with what a mean may move on average."""
    best = (1, None, None)
    for eps in 2 ** np.arange(-4, 2.5, 0.5):
        error, settings = plan(eps, k)
        if settings and error + np.tanh(eps / 4) < best[0]:
            best = (error + np.tanh(eps / 4), eps, settings)
    return best


def sets(random, k):
    return random.integers(0, 2, (k, M)).astype(float)


def exact(random, k):
    holdout = random.multinomial(N, LAW) / N
    asked = sets(random, k - 1)
    off = asked @ (holdout - LAW)
    excess = (2 * asked - 1).T @ off
    last = abs((excess > 0) @ (holdout - LAW))
    return {"error of the last answer": last, "largest error of a run": max(last, abs(off).max())}


def weights(random, k, eps, settings):
    threshold, rate, updates = settings
    by_threshold, by_comparison, by_answer = (1 / (N * part) for part in shares(eps, updates))
    holdout = random.multinomial(N, LAW) / N
    guess = np.full(M, 1 / M)
    asked = sets(random, k - 1)
    base = threshold + random.laplace(0, by_threshold)
    largest, mended, at = 0, 0, 0

    def mend(q, sign):
        new = guess * np.exp(sign * rate * q)
        return new / new.sum()

    def answer(q):
        """The value, and the sign by which the guess is mended, 0 for not at all."""
        off = q @ (holdout - guess)
        for sign in (1, -1):
            if sign * off + random.laplace(0, 2 * updates * by_comparison) >= base:
                return np.clip(q @ guess + sign * (sign * off + random.laplace(0, updates * by_answer)), 0, 1), sign
        return q @ guess, 0

    while at < k - 1:
        rest = asked[at:]
        off = rest @ (holdout - guess)
        up = off + random.laplace(0, 2 * updates * by_comparison, len(rest)) >= base
        down = -off + random.laplace(0, 2 * updates * by_comparison, len(rest)) >= base
        first = int(np.argmax(up | down)) if (up | down).any() else len(rest)
        if first:
            largest = max(largest, abs(rest[:first] @ (guess - LAW)).max())
        at += first
        if first < len(rest):
            q, sign = rest[first], 1 if up[first] else -1
            value = np.clip(q @ guess + sign * (sign * off[first] + random.laplace(0, updates * by_answer)), 0, 1)
            largest = max(largest, abs(value - q @ LAW))
            guess = mend(q, sign)
            mended += 1
            at += 1
    q = (LAW > guess).astype(float)
    value, sign = answer(q)
    last = abs(value - q @ LAW)
    return {"error of the last answer": last, "largest error of a run": max(largest, last), AGAIN: mended + abs(sign) > 1}


def stored(v):
    spread = v.var()
    return {"mean": float(f"{v.mean():.8g}"), "sd": float(f"{v.std(ddof=1):.6g}"), "kurtosis": float(f"{np.mean((v - v.mean()) ** 4) / spread**2:.4g}") if spread else 3,
            "quantiles": [float(f"{q:.6g}") for q in np.quantile(v, LEVELS, method="inverted_cdf")]}


def main(runs):
    widths, played = [], []
    for k in 10 ** np.arange(1, 10):
        for method, width in (("cells", cells()), ("weights without noise", described(k)), ("private weights: more than", private(k)[0])):
            if width < 1:
                widths.append({"method": method, "k": int(k), "width": float(f"{width:.12g}")})
    for k in (100, 1000, 10_000, 100_000):
        _, eps, settings = private(k)
        for method, play in (("cells", exact), ("private weights", lambda random, k: weights(random, k, eps, settings))):
            random = np.random.default_rng([2010, k, method == "cells"])
            found = [play(random, k) for _ in range(runs if k < 100_000 else runs // 4)]
            numbers = {name: np.array([f[name] for f in found], dtype=float) for name in found[0]}
            print(method, k, eps, settings, {name: (v.mean(), v.std()) for name, v in numbers.items()}, file=sys.stderr)
            played.append({"method": method, "k": k, "repetitions": len(found), "numbers": {name: stored(v) for name, v in numbers.items() if name != AGAIN}})
            if AGAIN in numbers:
                played[-1]["again"] = numbers[AGAIN].mean()
    json.dump({"source": "experiments/manyquestions/reference.py (NumPy)", "n": N, "widths": widths, "cells": played}, sys.stdout, separators=(",", ":"))
    print()


if __name__ == "__main__":
    main(int(sys.argv[1]))
