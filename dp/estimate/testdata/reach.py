"""Writes reach.json: how far a weighted sum of draws of noise, and a binomial count less its mean, go with a probability, by convolving the laws term by term.

    python -m venv venv && venv/bin/pip install numpy==2.4.6 scipy==1.17.1 && venv/bin/python dp/estimate/testdata/reach.py

The weights are quotients of whole numbers, so that every sum is a whole number of 1/denominator and its law is exact: no grid and no transform. TestLaw compares with them.
An entry has the least t with P(sum > t) <= beta.
"""

import json
import math
import os

import numpy as np
from scipy.stats import binom, norm


def laplace(scale):
    k = np.arange(-int(40 * scale) - 5, int(40 * scale) + 6)
    a = math.exp(-1 / scale)
    return k[0], (1 - a) / (1 + a) * a ** np.abs(k)


def gaussian(sigma):
    k = np.arange(-int(9 * sigma) - 3, int(9 * sigma) + 4)
    return k[0], norm.cdf((k + 0.5) / sigma) - norm.cdf((k - 0.5) / sigma)


def spread(first, p, weight):
    """The law of weight times a whole number."""
    out = np.zeros((len(p) - 1) * weight + 1)
    out[::weight] = p
    return first * weight, out


def trim(first, p):
    keep = np.nonzero(p > 1e-17)[0]
    return first + int(keep[0]), p[keep[0] : keep[-1] + 1]


def add(a, b):
    return trim(a[0] + b[0], np.convolve(a[1], b[1]))


def reach(law, beta):
    first, p = law
    tail = np.cumsum(p[::-1])[::-1]  # tail[i] = P(sum >= first + i)
    i = int(np.argmax(tail <= beta))
    return first + i - 1


entries = []
for name, size, law in [("laplace", 3, laplace(3)), ("laplace", 0.5, laplace(0.5)), ("gaussian", 3.0, gaussian(3.0)), ("gaussian", 0.4, gaussian(0.4))]:
    for counts, weights, denominator in [((1, 15), (15, 1), 16), ((8, 8), (1, 1), 2), ((30, 31), (1, 1), 2), ((16, 0), (1, 0), 1), ((20, 41), (3, 1), 4), ((61, 0), (1, 0), 1), ((3, 58), (9, 1), 10)]:
        for rows, rank, more in [(0, 0, True), (400, 0.25, True), (400, 0.25, False), (50, 0.9, True)]:
            if rows and (weights[0] > 9 or name == "laplace" and size == 0.5):
                continue
            total = (0, np.ones(1))
            for k, w in zip(counts, weights):
                for _ in range(k if w else 0):
                    total = add(total, spread(*law, w))
            scale = denominator
            if rows:  # off its mean by k - rows*rank, a whole number here
                k = np.arange(rows + 1)
                p = binom.pmf(k, rows, rank)
                first = -round(rows * rank)
                if not more:
                    p, first = p[::-1], -(rows - round(rows * rank))
                total = add(total, spread(first, p, denominator))
            for beta in [0.1, 0.00625, 1e-5][: 1 + 2 * (not rows)]:
                entries.append({"noise": name, "size": size, "counts": counts, "weights": [w / denominator for w in weights], "rows": rows, "rank": rank, "more": more, "beta": beta, "reach": reach(total, beta) / scale})

with open(os.path.join(os.path.dirname(__file__), "reach.json"), "w") as f:
    f.write("[\n" + ",\n".join(" " + json.dumps(e) for e in entries) + "\n]\n")
print(len(entries), "entries")
