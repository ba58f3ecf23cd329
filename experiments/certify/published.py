"""Prints what published.go compares with: certified accuracy at the settings of PixelDP and of Cohen et al., by NumPy and SciPy.

    published.py PROCESSES MNIST > published.json

MNIST is a directory with the four files of that name, as they are published.

A network of 32 tanh units learns from noisy digits by stochastic gradient descent. Of its hidden units only the sums before tanh
are drawn when it is certified: under Gaussian noise on the pixels they are normal, with the covariance that the first layer's
weights make. A smoothed prediction's bounds are Clopper and Pearson's. Cohen's radius is sigma times the normal quantile of the lower
one; PixelDP's is that of the best delta, at which the scores meet. Also printed are ceilings: the radius if all draws agree.
"""

import gzip
import json
import sys
from itertools import pairwise
from multiprocessing import Pool
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from scipy.stats import beta, kurtosis, norm

DATA = Path(__file__).parent.parent / "data"
SIZES = [0, 0.1, 0.25, 0.5, 0.75, 1, 1.5]
HIDDEN, SELECT = 32, 100
EACH, RUNS = 10, 24  # digits of a run, and runs
QUICK_EACH, QUICK_RUNS = 40, 240

SIGMAS = [0.12, 0.25, 0.5, 1.0]  # Cohen et al., alpha 0.001
BOUNDS = [0.03, 0.1, 0.3, 1.0]  # PixelDP's L at epsilon 1, delta 0.05; alpha 0.05


def digits():
    table = pq.read_table(DATA / "digits.parquet").to_pandas()
    return table.drop(columns="label").to_numpy(float) / 16, table["label"].to_numpy(int)


def mnist():
    def unpacked(name, header):
        with gzip.open(Path(sys.argv[2]) / name) as file:
            return np.frombuffer(file.read()[header:], np.uint8)

    def part(name, each):
        """The first digits of each class."""
        images, labels = unpacked(f"{name}-images-idx3-ubyte.gz", 16).reshape(-1, 784), unpacked(f"{name}-labels-idx1-ubyte.gz", 8)
        first = np.concatenate([np.flatnonzero(labels == k)[:each] for k in range(10)])
        return images[first] / 255, labels[first].astype(int)

    return part("train", 200), part("t10k", 50)


def split(rng, name, size, each):
    """Digits to learn from, and so many others."""
    if name == "digits":
        x, y = digits()
        order = rng.permutation(len(y))
        return x[order[:size]], y[order[:size]], x[order[size : size + each]], y[order[size : size + each]]
    (x, y), (others, labels) = mnist()
    some, test = rng.permutation(len(y))[:size], rng.permutation(len(labels))[:each]
    return x[some], y[some], others[test], labels[test]


def train(rng, clean, y, sigma, rounds, rate):
    """An epoch is over digits with fresh noise; momentum is 0.9 within it."""
    sizes = [clean.shape[1], HIDDEN, 10]
    w = [np.sqrt(6 / (a + b)) * rng.uniform(-1, 1, (b, a)) for a, b in pairwise(sizes)]
    b = [np.zeros(n) for n in sizes[1:]]
    params = [w[0], b[0], w[1], b[1]]
    for _ in range(rounds):
        x = clean + sigma * rng.standard_normal(clean.shape)
        speed = [np.zeros_like(p) for p in params]
        order = rng.permutation(len(y))
        for at in range(0, len(y), 32):
            rows = order[at : at + 32]
            h = np.tanh(x[rows] @ w[0].T + b[0])
            s = h @ w[1].T + b[1]
            p = np.exp(s - s.max(1, keepdims=True))
            p /= p.sum(1, keepdims=True)
            p[np.arange(len(rows)), y[rows]] -= 1
            p /= len(rows)
            back = (p @ w[1]) * (1 - h * h)
            for v, value, g in zip(speed, params, [back.T @ x[rows], back.sum(0), p.T @ h, p.sum(0)], strict=True):
                v *= 0.9
                v += g
                value -= rate * v
    return params


def votes(rng, params, x, sigma, draws):
    w, b, top, c = params
    mean, spread = w @ x + b, sigma * np.linalg.cholesky(w @ w.T)
    h = np.tanh(mean + rng.standard_normal((draws, HIDDEN)) @ spread.T)
    return np.bincount((h @ top.T + c).argmax(1), minlength=10)


def pixeldp(top, rest, sigma):
    """The largest radius of any delta, on a grid and on finer ones about its best.

    u = e^eps is the root of rest u^2 + delta u + delta = top.
    """
    low, high = np.log(1e-12), np.log(0.4)
    for _ in range(3):
        logs = np.linspace(low, high, 10_001)
        delta = np.exp(logs)
        with np.errstate(invalid="ignore"):
            u = (-delta + np.sqrt(delta**2 + 4 * rest * (top - delta))) / (2 * rest)
        eps = np.minimum(np.log(np.maximum(np.nan_to_num(u), 1)), 1)
        sizes = sigma * eps / np.sqrt(2 * np.log(1.25 / delta))
        best = logs[sizes.argmax()]
        step = logs[1] - logs[0]
        low, high = best - step, best + step
    return sizes.max()


def certify(counts, label, sigma, paper):
    n = counts.sum()
    if paper == "Cohen et al.":
        p = beta.ppf(0.001, counts[label], n - counts[label] + 1) if counts[label] else 0
        return sigma * norm.ppf(p) if p > 0.5 else 0.0
    alpha = 0.05 / 10
    top = beta.ppf(alpha, counts[label], n - counts[label] + 1) if counts[label] else 0
    most = np.delete(counts, label).max()
    rest = min(1 - top, beta.ppf(1 - alpha, most + 1, n - most) if most < n else 1)
    return pixeldp(top, rest, sigma) if top > rest else 0.0


def settings(quick, name):
    cohen = 1000 if quick else 100_000 if name == "digits" else 10_000
    for sigma in [0.25, 0.5] if quick else SIGMAS:
        yield "Cohen et al.", f"sigma {sigma:g}", sigma, cohen
    for bound in [0.1] if quick else BOUNDS:
        yield "PixelDP", f"L {bound:g}", bound * np.sqrt(2 * np.log(1.25 / 0.05)), 500 if quick else 2000


def stored(values):
    levels = np.arange(1, 20) / 20
    return {
        "mean": float(f"{np.mean(values):.8g}"),
        "sd": float(f"{np.std(values, ddof=1):.8g}"),
        "kurtosis": float(f"{kurtosis(values, fisher=False):.4g}") if np.std(values) > 0 else 3.0,
        "quantiles": [float(f"{q:.6g}") for q in np.quantile(values, levels, method="inverted_cdf")],
    }


def play(cell):
    index, quick, name, (paper, setting, sigma, draws) = cell
    rng, results = np.random.default_rng([20181, index]), []
    runs, each = (QUICK_RUNS, QUICK_EACH) if quick else (RUNS, EACH)
    size, rounds = (300, 20) if quick else (1297 if name == "digits" else 1500, 50)
    for _ in range(runs):
        x, y, others, labels = split(rng, name, size, each)
        params = train(rng, x, y, sigma, rounds, 0.05 if name == "digits" else 0.01)
        radii = []
        for digit, truth in zip(others, labels, strict=True):
            label = votes(rng, params, digit, sigma, SELECT).argmax()
            radius = certify(votes(rng, params, digit, sigma, draws), label, sigma, paper)
            radii.append(radius if label == truth else 0.0)
        radii = np.array(radii)
        results.append([radii.mean()] + [(radii > s).mean() for s in SIZES])
    results = np.array(results).T
    all_agree = np.zeros(10, int)
    all_agree[0] = draws
    print(quick, name, paper, setting, results.mean(1).round(3), file=sys.stderr, flush=True)
    return {
        "quick": quick,
        "set": name,
        "paper": paper,
        "setting": setting,
        "runs": runs,
        "each": each,
        "draws": draws,
        "ceiling": float(f"{certify(all_agree, 0, sigma, paper):.12g}"),
        "radius": stored(results[0]),
        "accuracy": [stored(v) for v in results[1:]],
    }


def main():
    cells = [(quick, name, s) for quick in [True, False] for name in ["digits", "MNIST"] for s in settings(quick, name)]
    with Pool(int(sys.argv[1])) as pool:
        out = pool.map(play, [(i, *c) for i, c in enumerate(cells)], chunksize=1)
    json.dump(out, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
