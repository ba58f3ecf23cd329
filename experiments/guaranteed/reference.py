"""How many adaptive questions are guaranteed, recomputed apart from this repository's Go code: NumPy and SciPy, from the formulas alone.

    python3 reference.py > reference.json

Every question is the mean of numbers in [0,1] over n independent units, all answers are to be within w of their expectations with probability
95%, and the number of questions is the largest for which that is proved. A bound of the literature adds normal noise of one deviation to every
answer, at its best deviation. For guess_and_check and thresholdout, whose intervals are narrower than Chernoff's by the overshoot theorem,
there are two numbers: with Chernoff's inequality, and with as much less as the normal law would leave of its exponent.
"""

import json
import math
import sys

import numpy as np
from scipy import optimize, special

BETA = 0.05
MOST = 1 << 40  # more questions than this are not counted
SIZES = [1000, 3000, 10000, 30000, 100000, 300000, 1000000]
WIDTHS = [0.05, 0.1]


def least(f, low, high, points=40):
    """The least of f between low and high: a grid, then a search around its best point."""
    x = np.linspace(low, high, points)
    y = np.array([f(v) for v in x])
    i = int(np.argmin(y))
    a, b = x[max(i - 1, 0)], x[min(i + 1, points - 1)]
    found = optimize.minimize_scalar(f, bounds=(a, b), method="bounded", options={"xatol": 1e-5})
    return min(float(found.fun), float(y[i]))


def best_noise(parts):
    """The least half-width over the noise: parts(n, k, sigma)."""
    def width(n, k):
        low, high = k ** 0.25 / math.sqrt(n), max(k ** 0.25 / math.sqrt(n), math.sqrt(k) / n)
        return least(lambda x: parts(n, k, math.exp(x)), math.log(low) - 3, math.log(high) + 3, 24)
    return width


def zcdp(n, k, sigma):
    return k / (2 * (n * sigma) ** 2)


def tail_noise(k, b, sigma):
    return sigma * math.sqrt(2 * math.log(4 * k / b))


def eps_of(rho, delta):
    """Bun and Steinke, arXiv 1605.02065, lemma 3.6; delta is an array."""
    v = np.sqrt(np.pi * rho) / delta
    v = np.where(v < np.e, 1 / delta, v)
    return rho + 2 * np.sqrt(rho * np.log(np.maximum(v, 1)))


DELTAS = np.exp(np.linspace(math.log(BETA) - 60, 0, 3000))


def splitting(n, k):
    m = n // k
    return math.sqrt(math.log(2 * k / BETA) / (2 * m)) if m else math.inf


def dfhprr(n, k, sigma):
    x = zcdp(n, k, sigma)
    roots = np.roots([1, -8 * x, 16 * x * x - 64 * x * math.log(math.sqrt(math.pi * x)), -64 * x * math.log(1 / BETA)])
    r = max(v.real for v in roots if abs(v.imag) < 1e-9 * max(1, abs(v)))
    return max(2 * math.sqrt(48 / n * math.log(8 / BETA)), r + tail_noise(k, BETA, sigma))


def bnsssu(n, k, sigma):
    runs = 20
    e = np.expm1(np.minimum(eps_of(zcdp(n, k, sigma), DELTAS), 50))
    w = e + 2 * runs * DELTAS + sigma * np.sqrt(2 * np.log(4 * k / DELTAS))
    return float(w.min()) / (1 - (1 - BETA) ** runs)


LOGITS = np.linspace(-6, 40, 2000)


def rz(n, k, sigma):
    information = zcdp(n, k, sigma) * n
    square = (2 * information + np.log1p(np.exp(LOGITS))) / (2 * n * BETA * special.expit(LOGITS))
    return math.sqrt(float(square.min())) + tail_noise(k, BETA, sigma)


def xr(n, k, sigma):
    return math.sqrt(2 / n * (2 * zcdp(n, k, sigma) * n / BETA + math.log(4 / BETA))) + tail_noise(k, BETA, sigma)


def jlnrss20(n, k, sigma):
    e = np.expm1(np.minimum(eps_of(zcdp(n, k, sigma), DELTAS), 50))
    z = -special.ndtri(DELTAS / (2 * k))
    return float((e + 6 * DELTAS / BETA + sigma * z).min())


SHARES = special.expit(np.linspace(-7, 7, 113))


def free_constants(k, sigma, eps, log_delta):
    """Jung et al.'s transfer theorem at its best constants, given pairs of eps and the logarithm of delta."""
    use = (eps > 0) & (eps < 5) & (log_delta < 0)
    if not use.any():
        return math.inf
    eps, log_delta = eps[use], log_delta[use]
    t = np.linspace(0.3, math.sqrt(2 * math.log(k / BETA) + 80), 600)
    tail = -np.expm1(k * np.log1p(-2 * special.ndtr(-t)))  # P(max of k |normals| > t)
    noise = (sigma * t[None, :] + tail[None, :] / (SHARES[:, None] * BETA)).min(axis=1)
    privacy = (np.expm1(eps)[None, :] + 2 / ((1 - SHARES[:, None]) * BETA) * np.exp(log_delta)[None, :]).min(axis=1)
    return float((noise + privacy).min())


ORDERS = 1 + np.exp(np.linspace(-4, 14, 1200))


def jlnrss_plus(n, k, sigma):
    # Canonne, Kamath and Steinke, arXiv 2004.00010, corollary 13, at the eps for which an order is best.
    rho, a = zcdp(n, k, sigma), ORDERS
    eps = (2 * a - 1) * rho + np.log1p(-1 / a)
    return free_constants(k, sigma, eps, (a - 1) * (a * rho - eps) + a * np.log1p(-1 / a) - np.log(a - 1))


def jlnrss_gdp(n, k, sigma):
    mu = math.sqrt(k) / (n * sigma)
    eps = np.exp(np.linspace(math.log(mu) - 4, math.log(mu * mu + 16 * mu), 800))
    # delta(eps) = Phi(-eps/mu + mu/2) - e^eps Phi(-eps/mu - mu/2) (Dong, Roth and Su, arXiv 1905.02383, corollary 2.13)
    a, b = special.log_ndtr(-eps / mu + mu / 2), eps + special.log_ndtr(-eps / mu - mu / 2)
    return free_constants(k, sigma, eps, a + np.log(-np.expm1(np.minimum(b - a, -1e-16))))


# The adaptive Hoeffding bound (docs/proofs/adaptive-hoeffding.md): a tenth of beta is kept for other questions.

PLAIN = 0.9 * BETA


def pbar(n, w, sigma, released):
    d = (w - np.sqrt(released / (2 * n))) / sigma
    a = 2 * n * sigma * sigma
    c = 1 + 2 * a
    p = special.ndtr(-d) + np.exp(-a * d * d / c) / np.sqrt(c) * special.ndtr(d / np.sqrt(c))
    return np.where(d > 0, p, 1.0)


def logarithm(x):
    return math.log(max(x, 1e-300))


def exact_tail(n, w, released):
    return math.exp(-max(w * math.sqrt(2 * n) - math.sqrt(released), 0) ** 2)


def schedule(q):
    """1-u, u the root of 6u^2 - 8u^3 + 3u^4 = q: by bisection, all at once."""
    low, high = np.zeros_like(q), np.ones_like(q)
    for _ in range(60):
        u = (low + high) / 2
        above = 6 * u ** 2 - 8 * u ** 3 + 3 * u ** 4 > q
        low, high = np.where(above, low, u), np.where(above, u, high)
    return 1 - (low + high) / 2


def stretches(k):
    """Questions 1 to k-1, each by itself or, of many, in runs that grow with the distance to the nearer end: middles and lengths."""
    if k <= 2000:
        return np.arange(1, k, dtype=float), np.ones(k - 1)
    half = np.unique(np.concatenate([np.arange(0, 200), np.exp(np.linspace(math.log(200), math.log(k / 2), 1000)).astype(np.int64)]))
    ends = np.unique(np.concatenate([half, k - 1 - half]))
    ends = ends[(ends >= 0) & (ends <= k - 1)].astype(float)
    return (ends[:-1] + ends[1:] + 1) / 2, np.diff(ends)


def gaussian(n, k):
    if k == 1:
        return math.sqrt(math.log(2 / BETA) / (2 * n))
    middle, count = stretches(k)
    shape = schedule((middle - 0.5) / k)
    each = count / shape ** 2
    before = np.cumsum(each) - each + (count - 1) / (2 * shape ** 2)
    total = float(each.sum())

    def width(log_s):
        s = math.exp(log_s)
        unit = 1 / (8 * s * s * (n - 1))

        def excess(w):
            return logarithm(2 * float((count * pbar(n, w, s * shape, before * unit)).sum()) + 2 * exact_tail(n, w, total * unit)) - math.log(PLAIN)
        return optimize.brentq(excess, 1e-6, 1e3 * k ** 0.25 / math.sqrt(n), xtol=1e-10)
    scale = math.log(k ** 0.25 / math.sqrt(n) / 2)
    return float(optimize.minimize_scalar(width, bounds=(scale - 1, scale + 1.5), method="bounded", options={"xatol": 1e-3}).fun)


def five_rounds(n, k):
    rounds = min(5, k)
    size = np.array([k // rounds + (i < k % rounds) for i in range(rounds)], dtype=float)
    if rounds == 1:
        return math.sqrt(math.log(2 / PLAIN) / (2 * n))

    def width(log_sigma):
        sigma = np.exp(np.minimum(log_sigma, 50))
        after = np.cumsum(size[:-1] / (8 * sigma ** 2 * (n - 1)))
        before = np.concatenate([[0], after[:-1]])

        def excess(w):
            miss = float((2 * size[:-1] * pbar(n, w, sigma, before)).sum())
            return logarithm(miss + 2 * size[-1] * exact_tail(n, w, after[-1])) - math.log(PLAIN)
        return optimize.brentq(excess, 1e-6, 1e3 * k ** 0.25 / math.sqrt(n), xtol=1e-11)
    start = math.log(k ** 0.25 / math.sqrt(n) / 2) + np.linspace(0.3, -0.8, rounds - 1)
    return float(optimize.minimize(width, start, method="Nelder-Mead", options={"xatol": 1e-3, "fatol": 1e-8, "maxfev": 1000}).fun)


# guess_and_check and thresholdout (docs/proofs/two-moments.md, sections 4, 5 and 13), a training part of n units, questions about one half.

def urn(k, beta, failed, said):
    """E of the last question, when so many before it have failed and the others passed narrowly; said is what a failure tells, in nats."""
    def grown(a, m):
        return float(special.gammaln(a + m) - special.gammaln(a))
    return math.log(2 * k / beta) + grown(k / 2 + 2, k - 1) - grown(k / 2, k - 1 - failed) - grown(1, failed) + failed * said


def by_chernoff(level):
    return level


def by_normal_law(level):
    return level - math.log(math.sqrt(4 * math.pi * level))


def high(n, a, level):
    """The largest x with n kl(a||x) <= level."""
    if a >= 1 - 1e-12:
        return 1.0

    def excess(x):
        return n * (a * math.log(a / x) + (1 - a) * math.log((1 - a) / (1 - x))) - level
    return optimize.brentq(excess, a, 1 - 1e-15, xtol=1e-13)


def guess_and_check(tokens, exponent):
    def width(n, k):
        z = min(max(-special.ndtri(0.15 / k), 2), 4.5)
        s, y2 = 2 / n, 0.25
        d = z * math.sqrt(s / 4 + z * z * s * s * y2 / 4) + z * z * s * math.sqrt(y2) / 2
        cells = 2.0 ** round(math.log2(math.sqrt(n)))
        level = urn(k, BETA, min(tokens, k - 1), math.log(cells))
        return high(n, min(0.5 + d, 1), exponent(level)) - 0.5
    return width


def thresholdout(tokens, exponent):
    def width(n, k):
        granted, failed = min(tokens, k), min(tokens, k - 1)
        u = -special.ndtri(-np.expm1(np.log1p(-BETA / 3) / k))
        sigma = math.sqrt(math.sqrt(max(granted / 2, 1) / (8 * (n - 1))) / (u * math.sqrt(2 * n)))
        level = (math.sqrt(urn(k, BETA / 3, failed, 0)) + math.sqrt(failed / (8 * sigma * sigma * (n - 1)))) ** 2
        return high(n, min(0.5 + 1.5 * math.sqrt(2 / n) + u * sigma, 1), exponent(level)) - 0.5
    return width


CURVES = {
    ("split", "questions"): splitting,
    ("gaussian", "questions"): gaussian,
    ("gaussian, 5 rounds", "questions"): five_rounds,
    ("Dwork et al. 2015", "questions"): best_noise(dfhprr),
    ("Bassily et al. 2016", "questions"): best_noise(bnsssu),
    ("Rogers et al. 2020", "questions"): best_noise(rz),
    ("Xu and Raginsky 2017", "questions"): best_noise(xr),
    ("Jung et al. 2020", "questions"): best_noise(jlnrss20),
    ("Jung et al., free constants", "questions"): best_noise(jlnrss_plus),
    ("Jung et al., exact accounting", "questions"): best_noise(jlnrss_gdp),
}
for what, law in (("questions by Chernoff", by_chernoff), ("questions by the normal law", by_normal_law)):
    CURVES["guess_and_check, 20 tokens", what] = guess_and_check(20, law)
    CURVES["guess_and_check, all guesses fail", what] = guess_and_check(MOST, law)
    CURVES["thresholdout, 20 tokens", what] = thresholdout(20, law)
    CURVES["thresholdout, all answers differ", what] = thresholdout(MOST, law)


def largest(width, n, w):
    """The largest number of questions whose half-width is at most w, to a part in five thousand."""
    low, above = 0, 1
    while width(n, above) <= w:
        low = above
        if low == MOST:
            return MOST
        above = min(above * 4, MOST)
    while above - low > 1 and above - low > 2e-4 * low:
        middle = (low + above) // 2 if above < 2 * low or low < 2 else int(math.sqrt(low * above))
        middle = min(max(middle, low + 1), above - 1)
        if width(n, middle) <= w:
            low = middle
        else:
            above = middle
    return low


def main():
    rows = []
    for (method, what), width in CURVES.items():
        for w in WIDTHS:
            for n in SIZES:
                k = largest(width, n, w)
                print(method, what, w, n, k, file=sys.stderr, flush=True)
                rows.append({"condition": f"±{w:g}", "method": method, "n": n, "k": 0, "set": what, "mean": k, "sd": 0, "low": k, "high": k, "repetitions": 1})
    json.dump({"source": "reference.py, NumPy and SciPy", "rows": rows}, sys.stdout, indent=1, ensure_ascii=False)
    print()


if __name__ == "__main__":
    main()
