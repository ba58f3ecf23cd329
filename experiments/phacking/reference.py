"""Makes reference.json: by how many standard errors the risk group deviates where labels are shuffled, by NumPy, with exact answers: of the share of late flights among all, and,
as queries of type test ask, among those of a group.

    reference.py RUNS > reference.json      where the working directory is the repository's

It shares nothing with the Go code but the file of flights. Single groups are those by hour, weekday, month, tenth of the distance and the 25
busiest airports of either end; the risk group is the flights for which the excesses of their groups, as asked, have a positive sum.
"""

import json
import sys

import numpy as np
import polars as pl

N = 200_000
LEVELS = np.arange(1, 20) / 20


def groups():
    """For each attribute the group of every flight, -1 for none; and which flights are late."""
    flights = pl.read_parquet("experiments/data/flights-100k.parquet")
    date = flights["date"]
    distance = flights["distance"].cast(pl.Float64).to_numpy()
    codes = [date.dt.hour().to_numpy().astype(int), date.dt.weekday().to_numpy().astype(int) - 1, np.minimum(date.dt.month().to_numpy().astype(int) - 1, 5),
             10 * np.searchsorted(np.sort(distance), distance) // len(distance)]
    for end in ("origin", "destination"):
        names = flights[end].cast(pl.String).to_numpy()
        values, counts = np.unique(names, return_counts=True)
        busiest = list(values[np.argsort(-counts)[:25]])
        codes.append(np.array([busiest.index(v) if v in busiest else -1 for v in names]))
    return codes, flights["delay"].cast(pl.Float64).to_numpy() > 15


def run(random, codes, late, shares):
    rows = random.integers(len(late), size=N)
    excess = late[random.integers(len(late), size=N)] - late.mean()
    score, whole = np.zeros(N), np.zeros(len(late))
    tested, tested_whole = np.zeros(N), np.zeros(len(late))
    for code, share in zip(codes, shares):
        drawn = code[rows]
        weights = np.append(np.bincount(drawn[drawn >= 0], excess[drawn >= 0], len(share)) / N / share, 0)  # -1 is the last
        score += weights[drawn]
        whole += weights[code]
        flights = np.bincount(drawn[drawn >= 0], minlength=len(share))
        weights = np.append(np.bincount(drawn[drawn >= 0], excess[drawn >= 0], len(share)) / np.maximum(flights, 1), 0)
        tested += weights[drawn]
        tested_whole += weights[code]
    rate = late.mean()
    deviation = np.sum(excess[score > 0]) / N / np.sqrt(np.mean(whole > 0) * rate * (1 - rate) / N)
    return deviation, np.mean(excess[tested > 0]) / np.sqrt(rate * (1 - rate) / N / np.mean(tested_whole > 0))


def stored(v):
    return {"mean": float(f"{v.mean():.8g}"), "sd": float(f"{v.std(ddof=1):.6g}"), "kurtosis": float(f"{np.mean((v - v.mean()) ** 4) / v.var() ** 2:.4g}"),
            "quantiles": [float(f"{q:.6g}") for q in np.quantile(v, LEVELS, method="inverted_cdf")]}


def main(runs):
    codes, late = groups()
    shares = []
    for code in codes:
        share = np.bincount(code[code >= 0], minlength=code.max() + 1) / len(code)
        shares.append(np.where(share > 0, share, np.inf))  # nobody is in it
    random = np.random.default_rng(200)
    v = np.array([run(random, codes, late, shares) for _ in range(runs)])
    print(v.mean(axis=0), v.std(axis=0), file=sys.stderr)
    json.dump({"source": "experiments/phacking/reference.py (NumPy)", "n": N, "repetitions": runs, "deviation": stored(v[:, 0]), "tested": stored(v[:, 1])},
              sys.stdout, separators=(",", ":"))
    print()


if __name__ == "__main__":
    main(int(sys.argv[1]))
