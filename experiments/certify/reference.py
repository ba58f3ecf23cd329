"""Radii of certificates, made apart from this repository's Go code: the papers' formulas, maximised by SciPy.

    python3 reference.py > reference.json

PixelDP (arXiv 1802.03471): top >= e^(2 eps) rest + (1 + e^eps) delta, with the classical scales of noise and eps at most 1 for Gaussian noise. Cohen et al.
(arXiv 1902.02918), Teng et al. (2020) and Li et al. (arXiv 1809.03113) as in their theorems.
"""

import json

import numpy as np
from scipy.optimize import brentq, minimize_scalar
from scipy.stats import norm

POINTS = [(0.9, 0.05), (0.6, 0.3), (0.99, 0.005), (0.75, 0.25), (0.55, 0.4)]
SCALES = [0.15, 0.5]


def pixeldp_epsilon(top, rest, delta):
    def holds(eps):
        return top - np.exp(2 * eps) * rest - (1 + np.exp(eps)) * delta
    if holds(0.0) <= 0:
        return 0.0
    return brentq(holds, 0.0, 50.0, xtol=1e-14)


def pixeldp_laplace(top, rest, scale):
    return scale * pixeldp_epsilon(top, rest, 0.0)


def pixeldp_gaussian(top, rest, sigma):
    def size(logarithm):
        delta = np.exp(logarithm)
        return sigma * min(1.0, pixeldp_epsilon(top, rest, delta)) / np.sqrt(2 * np.log(1.25 / delta))
    grid = np.linspace(np.log(1e-12), np.log(0.4), 2001)
    best = int(np.argmax([size(g) for g in grid]))
    low, high = grid[max(0, best - 1)], grid[min(len(grid) - 1, best + 1)]
    return max(size(grid[best]), -minimize_scalar(lambda g: -size(g), bounds=(low, high), method="bounded", options={"xatol": 1e-12}).fun)


def smoothing_gaussian(top, rest, sigma):
    return sigma / 2 * (norm.ppf(top) - norm.ppf(rest))


def smoothing_laplace(top, rest, scale):
    return max(scale / 2 * np.log(top / rest), -scale * np.log(1 - top + rest))


def renyi_gaussian(top, rest, sigma):
    def squared(order):
        logarithm = np.logaddexp((1 - order) * np.log(top), (1 - order) * np.log(rest)) - np.log(2)
        mean = np.exp(logarithm / (1 - order))
        return -2 * sigma ** 2 / order * np.log(1 - top - rest + 2 * mean)
    orders = 1 + np.exp(np.linspace(np.log(1e-5), np.log(1e3), 200001))
    return float(np.sqrt(np.max(squared(orders))))


def main():
    rows = []
    for function in (pixeldp_laplace, pixeldp_gaussian, smoothing_gaussian, smoothing_laplace, renyi_gaussian):
        for top, rest in POINTS:
            for scale in SCALES:
                rows.append({"function": function.__name__, "top": top, "rest": rest, "scale": scale, "radius": round(float(function(top, rest, scale)), 12)})
    print(json.dumps({"source": "reference.py: SciPy", "radii": rows}, indent=1))


if __name__ == "__main__":
    main()
