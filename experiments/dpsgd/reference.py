"""Prints what dp-sgd compares with: accuracies of private and plain training on handwritten digits, by NumPy and SciPy.

    reference.py PROCESSES > reference.json

Private training is Algorithm 1 of Abadi et al. (arXiv 1607.00133) with momentum: Poisson batches, gradients clipped example by example,
Gaussian noise. Its noise multiplier is found here, too: Rényi divergences of whole orders (Mironov, Talwar, Zhang, arXiv 1908.10530),
converted as Canonne, Kamath, Steinke (arXiv 2004.00010, proposition 12).
"""

import json
import sys
from itertools import pairwise
from multiprocessing import Pool
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from scipy.special import gammaln, logsumexp
from scipy.stats import kurtosis

DATA = Path(__file__).parent.parent / "data"
RUNS, TRAINING = 120, 1347
SAMPLING, CLIP, DELTA = 0.2, 1.0, 1e-5
PRIVATE_MOMENTUM, PLAIN_MOMENTUM = 0.5, 0.9
PLAIN_EPOCHS, PLAIN_BATCH, PLAIN_RATE = 30, 32, 0.1


def digits():
    table = pq.read_table(DATA / "digits.parquet").to_pandas()
    return table.drop(columns="label").to_numpy(float) / 16, table["label"].to_numpy(int)


def epsilon(sigma, steps):
    orders = np.arange(2, 400)
    rdp = []
    for a in orders:
        k = np.arange(a + 1)
        terms = gammaln(a + 1) - gammaln(k + 1) - gammaln(a - k + 1) + (a - k) * np.log1p(-SAMPLING) + k * np.log(SAMPLING)
        rdp.append(steps * logsumexp(terms + k * (k - 1) / (2 * sigma**2)) / (a - 1))
    return np.min(np.array(rdp) + np.log1p(-1 / orders) - (np.log(DELTA) + np.log(orders)) / (orders - 1))


def multiplier(target, steps):
    low, high = 0.3, 100.0
    while high - low > 1e-4 * low:
        middle = (low + high) / 2
        low, high = (middle, high) if epsilon(middle, steps) > target else (low, middle)
    return high


class Network:
    """Softmax regression, or a layer of tanh units before it."""

    def __init__(self, rng, hidden):
        sizes = [64, hidden, 10] if hidden else [64, 10]
        self.params = []
        for a, b in pairwise(sizes):
            weights = np.sqrt(6 / (a + b)) * rng.uniform(-1, 1, (b, a)) if hidden else np.zeros((b, a))
            self.params += [weights, np.zeros(b)]

    def scores(self, x):
        if len(self.params) == 4:
            x = np.tanh(x @ self.params[0].T + self.params[1])
        return x, x @ self.params[-2].T + self.params[-1]

    def gradients(self, x, y, clip):
        """Sums over examples, each clipped to a norm."""
        h, s = self.scores(x)
        p = np.exp(s - s.max(1, keepdims=True))
        p /= p.sum(1, keepdims=True)
        p[np.arange(len(y)), y] -= 1
        layers = [(p, h)]
        if len(self.params) == 4:
            layers.insert(0, ((p @ self.params[2]) * (1 - h * h), x))
        norms = np.sqrt(sum((back**2).sum(1) * ((inputs**2).sum(1) + 1) for back, inputs in layers))
        factor = np.minimum(1, clip / np.maximum(norms, 1e-300))[:, None]
        sums = []
        for back, inputs in layers:
            sums += [(back * factor).T @ inputs, (back * factor).sum(0)]
        return sums

    def accuracy(self, x, y):
        return (self.scores(x)[1].argmax(1) == y).mean()


def descend(network, velocity, gradients, rate, momentum):
    for param, v, g in zip(network.params, velocity, gradients, strict=True):
        v *= momentum
        v += g
        param -= rate * v


def train_privately(rng, network, x, y, steps, sigma, rate):
    velocity = [np.zeros_like(p) for p in network.params]
    for _ in range(steps):
        rows = rng.random(len(y)) < SAMPLING
        noisy = [g + sigma * CLIP * rng.standard_normal(g.shape) for g in network.gradients(x[rows], y[rows], CLIP)]
        descend(network, velocity, [g / (SAMPLING * len(y)) for g in noisy], rate, PRIVATE_MOMENTUM)


def train(rng, network, x, y):
    velocity = [np.zeros_like(p) for p in network.params]
    for _ in range(PLAIN_EPOCHS):
        order = rng.permutation(len(y))
        for at in range(0, len(y), PLAIN_BATCH):
            rows = order[at : at + PLAIN_BATCH]
            descend(network, velocity, [g / len(rows) for g in network.gradients(x[rows], y[rows], np.inf)], PLAIN_RATE, PLAIN_MOMENTUM)


def stored(values):
    levels = np.arange(1, 20) / 20
    return {
        "mean": float(f"{np.mean(values):.8g}"),
        "sd": float(f"{np.std(values, ddof=1):.8g}"),
        "kurtosis": float(f"{kurtosis(values, fisher=False):.4g}"),
        "quantiles": [float(f"{q:.6g}") for q in np.quantile(values, levels, method="inverted_cdf")],
    }


def play(cell):
    index, quick, name, method, target = cell
    rng, (x, y), found = np.random.default_rng([16070, index]), digits(), []
    steps, hidden = (40, 8) if quick else (60, 32)
    sigma = multiplier(target, steps) if target else 0.0
    for _ in range(RUNS):
        order = rng.permutation(len(y))
        own, others = order[:TRAINING], order[TRAINING:]
        network = Network(rng, 0 if name == "softmax regression" else hidden)
        if method == "plain SGD":
            train(rng, network, x[own], y[own])
        else:
            train_privately(rng, network, x[own], y[own], steps, sigma, 2 if name == "softmax regression" else 1)
        found.append([network.accuracy(x[own], y[own]), network.accuracy(x[others], y[others])])
    training, test = np.array(found).T
    print(quick, name, method, target, round(sigma, 3), training.mean().round(4), test.mean().round(4), file=sys.stderr, flush=True)
    return {
        "quick": quick,
        "model": name,
        "method": method,
        "epsilon": target,
        "multiplier": float(f"{sigma:.5g}"),
        "runs": RUNS,
        "training": stored(training),
        "test": stored(test),
        "gap": stored(training - test),
    }


def main():
    cells = []
    for quick, targets in [(True, [0.5, 2, 8]), (False, [0.25, 0.5, 1, 2, 4, 8])]:
        for name in ["softmax regression", "perceptron"]:
            cells += [(quick, name, "DP-SGD", target) for target in targets]
            cells += [(quick, name, "clipped, no noise", 0), (quick, name, "plain SGD", 0)]
    with Pool(int(sys.argv[1])) as pool:
        out = pool.map(play, [(i, *c) for i, c in enumerate(cells)], chunksize=1)
    json.dump(out, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
