"""Reference numbers of feature selection, made apart from this repository's Go code: all data is drawn with NumPy, and the steps of the
published program (supporting file of doi 10.1126/science.aaa9375) are played on it.

    python3 reference.py > reference.json              # 1,000 rows and columns, 1,500 repetitions
    python3 reference.py 10000 100                     # the published size, some seconds a repetition

A repetition draws a training part, a holdout and fresh data of n rows and d normal columns; both ways of answering see the same data.
For each accuracy the file has the mean, the standard deviation and the fourth standardized moment (kurtosis) over the repetitions, and
how many repetitions lie between edges: a histogram for comparisons of shapes. Only NumPy is needed.
"""

import json
import sys

import numpy as np

PUBLISHED_KS = [10, 20, 30, 45, 70, 100, 150, 200, 250, 300, 400, 500]
PUBLISHED_SIZE = 10000
PUBLISHED_BIASED = 20
BLOCK = 500  # columns that are drawn at once
BINS = 8


def scaled(k, d):
    return max(1, int(np.floor(k * d / PUBLISHED_SIZE + 0.5)))


def sizes(d):
    return sorted({scaled(k, d) for k in PUBLISHED_KS})


class Part:
    """n rows whose first columns know the label a little; the columns that may be selected are kept."""

    def __init__(self, rng, n, d, biased, keep=None):
        self.label = (2 * rng.integers(0, 2, n) - 1).astype(np.float32)
        self.correlation = np.empty(d)
        self.kept = {}
        for start in range(0, d, BLOCK):
            width = min(BLOCK, d - start)
            x = rng.standard_normal((n, width), dtype=np.float32)
            for j in range(start, min(biased, start + width)):
                x[:, j - start] += np.float32(6 / np.sqrt(n)) * self.label
            self.correlation[start:start + width] = (self.label @ x).astype(np.float64) / n
            for j in range(start, start + width):
                wanted = abs(self.correlation[j]) > 1 / np.sqrt(n) if keep is None else j in keep
                if wanted:
                    self.kept[j] = x[:, j - start].copy()

    def accuracies(self, columns, signs, ks):
        """Share of rows whose label the vote of the first k columns has, for each k."""
        margin, out, used = np.zeros(len(self.label), dtype=np.float64), [], 0
        for k in ks:
            for j, sign in zip(columns[used:k], signs[used:k]):
                margin += sign * self.kept[j]
            used = max(used, min(k, len(columns)))
            out.append(float(np.mean(margin * self.label > 0)))
        return np.array(out)


def select(training, told, n):
    cutoff = 1 / np.sqrt(n)
    both = ((training > cutoff) & (told > cutoff)) | ((training < -cutoff) & (told < -cutoff))
    chosen = np.flatnonzero(both)
    return chosen[np.argsort(-np.abs(training[chosen]), kind="stable")]


def thresholdout(rng, training, holdout, threshold, sigma):
    """The published mechanism with fresh normal noise in each comparison and each answer."""
    noisy = threshold + sigma * rng.standard_normal(len(training))
    answer = holdout + sigma * rng.standard_normal(len(training))
    return np.where(np.abs(training - holdout) <= noisy, training, answer)


def repetition(rng, n, d, biased, ks):
    training = Part(rng, n, d, biased)
    holdout = Part(rng, n, d, biased, keep=training.kept)
    told = {"standard": holdout.correlation,
            "thresholdout": thresholdout(rng, training.correlation, holdout.correlation, 4 / np.sqrt(n), 1 / np.sqrt(n))}
    chosen = {m: select(training.correlation, t, n)[:ks[-1]] for m, t in told.items()}
    fresh = Part(rng, n, d, biased, keep=set(np.concatenate(list(chosen.values())).tolist()))
    out = {}
    for method, columns in chosen.items():
        signs = np.sign(training.correlation[columns])
        a, b, c = (p.accuracies(columns, signs, ks) for p in (training, holdout, fresh))
        if method == "thresholdout":
            b = thresholdout(rng, a, b, 0.04, 0.01)
        out[method] = np.stack([a, b, c], axis=1)
    return out


def summary(values):
    """What is stored of one accuracy over the repetitions. Accuracies are multiples of 1/n: edges lie at their quantiles."""
    mean, sd = float(np.mean(values)), float(np.std(values, ddof=1))
    edges = np.unique(np.quantile(values, np.arange(1, BINS) / BINS, method="inverted_cdf"))
    counts = np.bincount(np.searchsorted(edges, values, side="left"), minlength=len(edges) + 1)
    return {"mean": round(mean, 7), "sd": round(sd, 7), "kurtosis": round(float(np.mean((values - np.mean(values)) ** 4) / np.var(values) ** 2), 4),
            "edges": [round(float(e), 10) for e in edges], "counts": [int(c) for c in counts]}


def condition(name, biased, n, d, repetitions, seed):
    ks = sizes(d)
    values = {"standard": [], "thresholdout": []}
    for i in range(repetitions):
        rng = np.random.default_rng([seed, n, biased, i])
        for method, v in repetition(rng, n, d, biased, ks).items():
            values[method].append(v)
        if i % 10 == 9:
            print(name, n, i + 1, file=sys.stderr)
    cells = []
    for method, v in values.items():
        v = np.array(v)
        cells.append({"condition": name, "method": method, "repetitions": repetitions,
                      "accuracies": [[summary(v[:, i, j]) for j in range(3)] for i in range(len(ks))]})
    return cells


def main():
    n, repetitions = (int(a) for a in sys.argv[1:]) if len(sys.argv) == 3 else (1000, 1500)
    cells = condition("no signal", 0, n, n, repetitions, 20150807) + condition("signal", scaled(PUBLISHED_BIASED, n), n, n, repetitions, 20150807)
    out = {"source": "reference.py: all data drawn with NumPy, the published program's steps; by k, for each: training part, as told, fresh data",
           "n": n, "d": n, "ks": sizes(n), "cells": cells}
    print(json.dumps(out).replace('{"mean"', '\n{"mean"'))


if __name__ == "__main__":
    main()
