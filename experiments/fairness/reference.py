"""Reference numbers of a gap that is closed on exact answers, made apart from this repository's Go code: NumPy, and Polars to read the flights.

    python3 reference.py > reference.json

A holdout of n flights is one multinomial draw of four kinds of counts: right and wrong for each rule, and for all other flights.
"""

import json
import pathlib
import sys

import numpy as np
import polars as pl

AIRPORTS = ["PHX", "LAS", "SEA", "SJC"]
DATA = pathlib.Path(__file__).parent.parent / "data" / "flights-100k.parquet"


def counts():
    """Flights that the model is right and wrong about: by hour and weekday in the subgroup, and of all others."""
    flights = pl.read_parquet(DATA)
    hour, day = (flights["date"].dt.hour().to_numpy().astype(int), flights["date"].dt.weekday().to_numpy().astype(int))
    late, west = flights["delay"].to_numpy() > 0, np.isin(flights["origin"].to_numpy(), AIRPORTS)
    says = np.array([late[hour == h].mean() > 0.5 if (hour == h).any() else False for h in range(24)])
    right = says[hour] == late
    cells = np.unique(100 * day[west] + hour[west])
    inside = [[np.sum(west & (100 * day + hour == c) & (right == r)) for c in cells] for r in (True, False)]
    return np.array(inside), np.array([np.sum(~west & right), np.sum(~west & ~right)])


def row(condition, n, rules, measure, v):
    spread = np.var(v)
    return {"condition": condition, "method": "exact, plain interval", "n": n, "k": rules, "set": measure, "mean": round(float(v.mean()), 8), "sd": round(float(v.std(ddof=1)), 8),
            "kurtosis": round(float(np.mean((v - v.mean()) ** 4) / spread ** 2), 4), "repetitions": len(v)}


def main():
    inside, others = counts()
    rules, total = inside.shape[1], inside.sum() + others.sum()
    about = inside.sum(axis=0)
    rows = []
    for n in (20000, 150000):
        for condition in ("labels of the subgroup are coins", "real labels"):
            coins = condition != "real labels"
            p = np.vstack([about, about]) / 2 if coins else inside
            rng = np.random.default_rng([2014, n, coins])
            drawn = rng.multinomial(n, np.concatenate([p[0], p[1], others]) / total, size=4000)
            right, wrong, rest = drawn[:, :rules], drawn[:, rules:2 * rules], drawn[:, 2 * rules:]
            kept = wrong > right
            told = rest[:, 0] / rest.sum(axis=1) - np.where(kept, wrong, right).sum(axis=1) / (right + wrong).sum(axis=1)
            left = others[0] / others.sum() - np.where(kept, p[1], p[0]).sum(axis=1) / about.sum()
            rows.append(row(condition, n, rules, "gap, as told", told))
            rows.append(row(condition, n, rules, "rules kept", kept.sum(axis=1)))
            if not coins:
                rows.append(row(condition, n, rules, "gap that is left", left))
            print(n, condition, told.mean(), left.mean(), file=sys.stderr)
    print(json.dumps({"source": "reference.py: NumPy and Polars", "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
