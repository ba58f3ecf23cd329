"""Prints the radii that formulas.go compares with, by SciPy, from what each certificate promises rather than from its formula.

    reference.py > radii.json

Laplace and Gaussian smoothing: the worst sets of the given probabilities (Neyman and Pearson), along the direction in which a move tells most:
the normal of a half-space for Gaussian noise, one coordinate for Laplace noise; the radius at which their probabilities meet. PixelDP: the
radius at which a score bounded by differential privacy meets the others, for the classical calibration of Gaussian noise at its best delta.
Rényi: the best order, on a fine grid.
"""

import json
import sys

import numpy as np
from scipy.optimize import brentq, minimize_scalar
from scipy.stats import laplace, norm


def meeting(law, top, rest, scale):
    """The shift at which the least probability of a set that had top is the largest of one that had rest."""
    f = law(scale=scale)
    return brentq(lambda r: f.cdf(f.ppf(top) - r) - f.sf(f.isf(rest) - r), 0, 100 * scale, xtol=1e-15, rtol=1e-14)


def largest(value, low, high):
    """The largest value on a fine grid and about its best point."""
    grid = np.linspace(low, high, 20_001)
    values = [value(v) for v in grid]
    i = int(np.clip(np.argmax(values), 1, len(grid) - 2))
    found = minimize_scalar(lambda v: -value(v), bounds=(grid[i - 1], grid[i + 1]), method="bounded", options={"xatol": 1e-14})
    return max(values[i], -found.fun)


def pixeldp_laplace(top, rest, scale):
    return brentq(lambda r: top - np.exp(2 * r / scale) * rest, 0, 100 * scale, xtol=1e-15)


def pixeldp_gaussian(top, rest, sigma):
    def size(log_delta):
        delta = np.exp(log_delta)

        def slack(eps):
            return top - np.exp(2 * eps) * rest - (1 + np.exp(eps)) * delta

        if slack(0) <= 0:
            return 0
        eps = 1 if slack(1) > 0 else brentq(slack, 0, 1, xtol=1e-15)
        return sigma * eps / np.sqrt(2 * np.log(1.25 / delta))

    return largest(size, np.log(1e-12), np.log(0.4))


def renyi(top, rest, sigma):
    def square(log_excess):
        order = 1 + np.exp(log_excess)
        power = ((top ** (1 - order) + rest ** (1 - order)) / 2) ** (1 / (1 - order))
        return -2 * sigma**2 / order * np.log(1 - top - rest + 2 * power)

    return np.sqrt(largest(square, np.log(1e-6), np.log(50)))


def main():
    out = []
    for top, rest, scale in ((0.9, 0.1, 0.5), (0.7, 0.3, 0.25), (0.99, 0.01, 0.15), (0.9, 0.05, 0.5), (0.6, 0.3, 0.25)):
        radii = {"smoothing, Gaussian": meeting(norm, top, rest, scale), "pixeldp, Laplace": pixeldp_laplace(top, rest, scale),
                 "pixeldp, Gaussian": pixeldp_gaussian(top, rest, scale), "renyi, Gaussian": renyi(top, rest, scale)}
        if top + rest == 1:  # else the formula is below what holds
            radii["smoothing, Laplace"] = meeting(laplace, top, rest, scale)
        out.append({"top": top, "rest": rest, "scale": scale, "radii": {name: float(f"{r:.12g}") for name, r in sorted(radii.items())}})
    json.dump(out, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
