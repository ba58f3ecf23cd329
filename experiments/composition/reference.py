"""What one total guarantee leaves for each of k questions, recomputed apart from this repository's Go code: NumPy and SciPy, from the formulas alone.

    python3 reference.py > reference.json

An answer is the mean of numbers in [0,1] over n rows, one of which may be replaced. Distributions of losses are convolved here in steps that are a whole part of a question's epsilon, so that the
losses of nearly all draws lie on a step, and the rest are divided between two.
"""

import functools
import json
import math
import sys

import numpy as np
from scipy import optimize, special

ROWS = 30000
CONFIDENCE = 0.95
TOTALS = [(1, 1e-6), (1, 1e-9)]
QUESTIONS = [d * 10 ** e for e in range(6) for d in (1, 2, 3, 5, 7)] + [10 ** 6]
ORDERS = np.array([i / 10 for i in range(11, 110)] + list(range(11, 65)) + [128, 256, 512, 1024], dtype=float)
BETTER = 1e-3

# Each function is a delta, or an epsilon, of k answers of Laplace noise that are e-private each.


def basic_delta(e, k, eps):
    return 0.0 if k * e <= eps else 1.0


def advanced_epsilon(e, k, delta):
    return math.sqrt(2 * k * math.log(1 / delta)) * e + k * e * (math.exp(e) - 1) / (math.exp(e) + 1)


def advanced_delta(e, k, eps):
    room = eps - k * e * math.tanh(e / 2)
    return math.exp(-room ** 2 / (2 * k * e * e)) if room >= 0 else 1.0


def best_delta(e, k, eps):
    """Randomized response: losses (k-2i) e with binomial probabilities."""
    i = np.arange(int(min(k, max(0, math.floor((k - eps / e) / 2 + 2)))) + 1, dtype=float)
    log = special.gammaln(k + 1) - special.gammaln(i + 1) - special.gammaln(k - i + 1) - k * math.log1p(math.exp(-e)) - i * e
    excess = (k - 2 * i) * e - eps
    return float((np.exp(log) * np.maximum(-np.expm1(-excess), 0)).sum())


def zcdp_delta(rho, eps):
    """Canonne, Kamath and Steinke, arXiv 2004.00010, corollary 13, by search over the order."""
    def log(x):
        a = 1 + math.exp(x)
        return (a - 1) * (a * rho - eps) + a * math.log1p(-1 / a) - math.log(a - 1)
    x = np.linspace(-8, 16, 2000)
    at = x[int(np.argmin([log(v) for v in x]))]
    return min(1.0, math.exp(float(optimize.minimize_scalar(log, bounds=(at - 0.02, at + 0.02), method="bounded", options={"xatol": 1e-10}).fun)))


def laplace_divergences(e):
    a = ORDERS
    return np.logaddexp(np.log(a / (2 * a - 1)) + (a - 1) * e, np.log((a - 1) / (2 * a - 1)) - a * e) / (a - 1)


def first_epsilon(d, delta):
    return float((d + math.log(1 / delta) / (ORDERS - 1)).min())


def first_delta(d, eps):
    return min(1.0, float(np.exp((ORDERS - 1) * (d - eps)).min()))


def renyi_epsilon(d, delta):
    eps = np.maximum(0, d + np.log1p(-1 / ORDERS) - np.log(ORDERS * delta) / (ORDERS - 1))
    return float(np.where(delta * delta >= -np.expm1(-d), 0, eps).min())


def renyi_delta(d, eps):
    return float(np.minimum(np.exp((ORDERS - 1) * (d - eps + np.log1p(-1 / ORDERS))) / ORDERS, np.sqrt(-np.expm1(-d))).min())


def loss_delta(e, k, eps):
    """Laplace noise: losses e with probability 1/2, -e with e^-e/2, and between them with density e^{-(e-x)/2}/4."""
    m = 1024 if k <= 100 else 256 if k <= 10000 else 64
    h = e / m
    edge = np.arange(-m, m + 1) * h
    cell = np.diff(np.exp(-(e - edge) / 2)) / 2
    p = np.zeros(2 * m + 1)
    p[:-1] += cell / 2
    p[1:] += cell / 2
    p[-1] += 0.5
    p[0] += math.exp(-e) / 2
    reach = min(k * m, int((12 * math.sqrt(k) + k * e) * m + eps / h))
    size = 1 << int(2 * reach + 2).bit_length()
    circle = np.zeros(size)
    circle[np.arange(-m, m + 1) % size] = p
    f = np.fft.rfft(circle)
    with np.errstate(divide="ignore"):
        all_ = np.fft.irfft(np.exp(k * np.log(f)), size)
    at = np.arange(-reach, reach + 1)
    loss = at * h
    above = loss > eps
    return float((np.maximum(all_[at[above] % size], 0) * -np.expm1(eps - loss[above])).sum())


def gdp_delta(mu, eps):
    return special.ndtr(-eps / mu + mu / 2) - math.exp(eps + special.log_ndtr(-eps / mu - mu / 2))


def solve(excess, low, high):
    """Where excess, which grows with its argument, is 0: on logarithms."""
    return math.exp(optimize.brentq(lambda x: excess(math.exp(x)), math.log(low), math.log(high), xtol=1e-11))


def log(x):
    return math.log(max(x, 1e-300))


def best_epsilon_of_one(k, eps, delta):
    return solve(lambda e: log(best_delta(e, k, eps)) - math.log(delta), eps / k * (1 + 1e-13), 4)


@functools.cache
def rho_of(eps, delta):
    return solve(lambda r: log(zcdp_delta(r, eps)) - math.log(delta), 1e-5, 1)


@functools.cache
def mu_of(eps, delta):
    return solve(lambda m: log(gdp_delta(m, eps)) - math.log(delta), 0.05, 2)


def by_divergence(epsilon):
    return lambda k, eps, delta: solve(lambda e: epsilon(k * laplace_divergences(e), delta) - eps, eps / k / 100, 4)


LAPLACE = {
    "basic composition": lambda k, eps, delta: eps / k,
    "advanced composition": lambda k, eps, delta: solve(lambda e: advanced_epsilon(e, k, delta) - eps, eps / k / 100, 4),
    "best composition of private answers": best_epsilon_of_one,
    "zCDP": lambda k, eps, delta: math.sqrt(2 * rho_of(eps, delta) / k),
    "Rényi divergence, first conversion": by_divergence(first_epsilon),
    "Rényi divergence": by_divergence(renyi_epsilon),
    "distribution of losses": lambda k, eps, delta: solve(lambda e: log(loss_delta(e, k, eps)) - math.log(delta), eps / k * (1 + 1e-13), min(4, 30 * eps / math.sqrt(k))),
}
GAUSSIAN = {
    "Gaussian noise by zCDP": lambda k, eps, delta: math.sqrt(k / (2 * rho_of(eps, delta))),
    "Gaussian noise, exactly": lambda k, eps, delta: math.sqrt(k) / mu_of(eps, delta),
}


def noise(method, k, eps, delta):
    """The epsilon of one question, None for Gaussian noise; the standard deviation of an answer's noise; and the half-width of all."""
    each = -math.expm1(math.log(CONFIDENCE) / k)
    if method in GAUSSIAN:
        sd = GAUSSIAN[method](k, eps, delta) / ROWS
        return None, sd, -sd * special.ndtri(each / 2)
    e = LAPLACE[method](k, eps, delta)
    return e, math.sqrt(2) / e / ROWS, -math.log(each) / e / ROWS


def first_better(method, eps, delta):
    k = 1
    while noise(method, k, eps, delta)[1] >= math.sqrt(2) * k / eps / ROWS * (1 - BETTER):
        k += 1
    return k


FORMS = {
    "advanced composition, its first term alone": lambda k, eps, delta: eps / math.sqrt(2 * k * math.log(1 / delta)),
    "advanced composition with k eps (e^eps - 1)": lambda k, eps, delta: solve(lambda e: math.sqrt(2 * k * math.log(1 / delta)) * e + k * e * math.expm1(e) - eps, eps / k, 1),
    "advanced composition, twice its first term": lambda k, eps, delta: eps / (2 * math.sqrt(2 * k * math.log(1 / delta))),
}

GAMES = [(4, 0.5, [0.25, 0.75, 1.6]), (100, 0.1, [0.05, 0.45, 0.95, 1.45]), (25, 0.8, [0.2, 2.2, 3.4])]
LECTURE = (50000, 0.0007, [0.0503, 0.1503, 0.2503])


def main():
    found = []

    def add(condition, method, n, k, what, value):
        print(condition, method, k, what, value, file=sys.stderr, flush=True)
        found.append({"condition": condition, "method": method, "n": n, "k": k, "set": what, "mean": value, "sd": 0, "low": value, "high": value, "repetitions": 1})

    for eps, delta in TOTALS:
        named = f"total ({eps:g}, {delta:g})"
        for method in list(LAPLACE) + list(GAUSSIAN):
            if method == "distribution of losses" and delta < 1e-6:
                continue
            for k in QUESTIONS:
                e, sd, width = noise(method, k, eps, delta)
                if e is not None:
                    add(named, method, ROWS, k, "epsilon of one question", e)
                add(named, method, ROWS, k, "standard deviation of an answer's noise", sd)
                add(named, method, ROWS, k, "half-width of the noise of all answers", width)
            if method != "basic composition":
                add(named, method, ROWS, 1, "fewest questions at which it has less noise than basic composition", first_better(method, eps, delta))
    for method, f in FORMS.items():
        add("total (1, 1e-09)", method, ROWS, 50000, "epsilon of one question", f(50000, 1, 1e-9))
    for mechanism in ("randomized response", "Laplace noise"):
        response = mechanism == "randomized response"
        for k, e, at in GAMES + ([LECTURE] if response else []):
            named = f"epsilon {e:g} each"
            add(named, mechanism, 0, k, "mean loss", k * (e * math.tanh(e / 2) if response else e + math.expm1(-e)))
            d = k * ORDERS * e * e / 2 if response else k * laplace_divergences(e)
            for eps in at:
                says = {
                    "basic composition": basic_delta(e, k, eps),
                    "advanced composition": advanced_delta(e, k, eps),
                    "best composition of private answers": best_delta(e, k, eps),
                    "zCDP": zcdp_delta(k * e * e / 2, eps),
                    "Rényi divergence, first conversion": first_delta(d, eps),
                    "Rényi divergence": renyi_delta(d, eps),
                }
                if not response:
                    says["distribution of losses"] = loss_delta(e, k, eps)
                for account, value in says.items():
                    add(f"{named}, at epsilon {eps:g}", mechanism, 0, k, "delta by " + account, min(1.0, value))
    lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in found)
    print('{"source": "reference.py, NumPy and SciPy", "rows": [\n' + lines + "\n]}")


if __name__ == "__main__":
    main()
