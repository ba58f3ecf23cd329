"""Asks a holdoutd server about variance, covariance, correlation, quantiles and shares, and computes the same with NumPy.

Prints the half-width of each type on the flights.
"""

import io
import json

import numpy as np
import pandas

from server import FLIGHTS, GRID, URL, api, ask, check_page, create, done, items, near

rng = np.random.default_rng(5)
N = 6000
people = pandas.DataFrame({"id": np.arange(N, dtype=float), "x": rng.standard_t(3, N) * 20 + 10, "k": rng.integers(0, 20, N).astype(float)})
people["y"] = 0.6 * people.x + 15 * rng.normal(size=N)
people["s"] = pandas.Series(rng.choice(["a", "b", "c", "d", "é"], N, p=[0.4, 0.3, 0.2, 0.06, 0.04]), dtype="object")
people["w"] = rng.random(N) < 0.3
people["chart"] = rng.integers(0, 1500, N).astype(float)
people.loc[rng.random(N) < 0.05, "x"] = np.nan
people.loc[rng.random(N) < 0.05, "s"] = None

LOW, HIGH = -60.0, 180.0
RANGE = [LOW, HIGH]


def clamp(x, null=LOW):
    return np.clip(np.where(np.isnan(x), null, x), LOW, HIGH)


def check_rows(holdout, rows):
    """Questions of one vote a row, of all rows and of some."""
    for where in (None, "w"):
        more = {"where": where} if where else {}
        part = rows[rows.w] if where else rows
        x, y, k = clamp(part.x), clamp(part.y), part.k
        xy = dict(x="x", y="y", range_x=RANGE, range_y=RANGE, **more)
        near(ask(holdout, type="variance", of="x", range=RANGE, **more)["value"], np.var(x), 240**2 * 8 * GRID, "variance")
        near(ask(holdout, type="mean", of="x", range=RANGE, weights={"of": "k", "range": [1, 15]}, **more)["value"],
             np.average(x, weights=np.clip(k, 1, 15)), 240 * 64 * GRID, "weighted mean")
        near(ask(holdout, type="stddev", of="x", range=RANGE, null=5, **more)["value"], np.std(clamp(part.x, 5)), 240 * 64 * GRID, "stddev")
        near(ask(holdout, type="covariance", form="exact", **xy)["value"], np.cov(x, y, ddof=0)[0, 1], 240**2 * 16 * GRID, "covariance")
        near(ask(holdout, type="correlation", form="exact", **xy)["value"], np.corrcoef(x, y)[0, 1], 4096 * GRID, "correlation")
        z = np.clip((clamp(part.x, 10) - 10) / 30 * (y - 5) / 25, -2, 2)
        declared = dict(center_x=10, scale_x=30, center_y=5, scale_y=25, clip=2)
        near(ask(holdout, type="correlation", **declared, **xy)["value"], np.mean(z), 32 * GRID, "clipped correlation")
        near(ask(holdout, type="covariance", **declared, **xy)["value"], np.mean(z) * 750, 750 * 32 * GRID, "clipped covariance")
        for p in (0.1, 0.5, 0.99):
            want = np.quantile(x, p, method="inverted_cdf")
            got = ask(holdout, type="quantile", of="x", range=RANGE, p=p, resolution=0.25, **more)["value"]
            assert want <= got < want + 0.25, ("quantile", p, got, want)
            got = ask(holdout, type="quantile", of="k", range=[0, 19], p=p, resolution=1, **more)["value"]
            assert got == np.quantile(k, p, method="inverted_cdf"), ("quantile of integers", p, got)
        assert ask(holdout, type="median", of="k", range=[0, 19], resolution=1, **more)["value"] == np.quantile(k, 0.5, method="inverted_cdf")
        edges = [-20, 0, 7.5, 20, 40]
        counts = np.histogram(part.x.dropna(), bins=edges)[0]
        got = items(ask(holdout, type="histogram", of="x", edges=edges, **more))
        want = [np.sum(part.x < -20), *counts, np.sum(part.x > 40), np.sum(part.x.isna())]
        assert list(got) == ["below -20", "[-20, 0)", "[0, 7.5)", "[7.5, 20)", "[20, 40]", "above 40", "null"], got
        for value, count in zip(got.values(), want):
            near(value, count / len(part), 8 * GRID, "histogram")
        names = part.s.map(lambda s: "null" if s is None or s != s else s if s in ("a", "é") else "other")
        got = items(ask(holdout, type="frequencies", of="s", values=["é", "a"], **more))
        assert list(got) == ["é", "a", "other", "null"], got
        for name, share in names.value_counts(normalize=True).items():
            near(got[name], share, 8 * GRID, "frequencies")
        got = items(ask(holdout, type="groups", of="x", range=RANGE, by="s", values=["é", "a"], **more))
        for name, mean in pandas.Series(x, index=part.index).groupby(names).mean().items():
            near(got[name], mean, 240 * 1e-6, "groups")
    near(ask(holdout, type="variance", of="x", range=RANGE, ddof=1)["value"], np.var(clamp(rows.x), ddof=1), 240**2 * 8 * GRID, "ddof")


def check_units(holdout, rows):
    """One vote a unit, which its rows share."""
    votes = 1 / rows.groupby("chart").x.transform("size")
    x, y = clamp(rows.x), clamp(rows.y)
    near(ask(holdout, type="variance", of="x", range=RANGE)["value"], np.cov(x, aweights=votes, ddof=0), 240**2 * 8 * GRID, "variance over units")
    near(ask(holdout, type="covariance", form="exact", x="x", y="y", range_x=RANGE, range_y=RANGE)["value"],
         np.cov(x, y, aweights=votes, ddof=0)[0, 1], 240**2 * 16 * GRID, "covariance over units")
    near(ask(holdout, type="variance", of="x", range=RANGE, weight="row")["value"], np.var(x), 240**2 * 1e-6, "variance over rows")
    want = np.quantile(rows.k, 0.3, weights=votes, method="inverted_cdf")
    assert ask(holdout, type="quantile", of="k", range=[0, 19], resolution=1, p=0.3)["value"] == want
    got = items(ask(holdout, type="histogram", of="y", edges=[0, 10]))
    near(got["[0, 10]"], np.average((rows.y >= 0) & (rows.y <= 10), weights=votes), 8 * GRID, "histogram over units")
    got = items(ask(holdout, type="groups", of="x", range=RANGE, by="s", values=["a"]))
    a = (rows.s == "a").to_numpy()
    near(got["a"], np.average(x[a], weights=votes[a]), 240 * 1e-6, "groups over units")


def check_training(holdout, rows):
    """Constants and categories of the training part."""
    training = pandas.read_parquet(io.BytesIO(api.get(f"{URL}/v1/holdouts/{holdout['id']}/training").content))
    held = rows[~rows.id.isin(training.id)]
    assert len(held) == holdout["units"]["holdout"]

    def product(part):
        z = [(clamp(part[c], 60) - clamp(training[c], 60).mean()) / clamp(training[c], 60).std() for c in ("x", "y")]
        return np.where(part.x.isna() | part.y.isna(), 0, np.clip(z[0] * z[1], -3, 3))

    answer = ask(holdout, type="correlation", x="x", y="y", range_x=RANGE, range_y=RANGE)
    near(answer["value"], product(held).mean(), 1e-5, "correlation with training constants")
    got = items(ask(holdout, type="frequencies", of="s"))
    assert list(got) == ["a", "b", "c", "d", "é", "other", "null"], got
    near(got["b"], np.mean(held.s == "b"), 8 * GRID, "frequencies of training values")


naive = dict(mechanism="naive", questions=100000)
check_rows(create(people, holdout=1.0, name="rows", **naive), people)
check_units(create(people, holdout=1.0, name="units", unit="chart", largest_unit=20, **naive), people)
check_training(create(people, holdout=0.5, name="half", **naive), people)

# The flights of the examples: the intervals of a real guarantee against the answers of a naive one on the same rows.
flights = pandas.read_parquet(FLIGHTS)
exact = create(flights, holdout=0.3, name="exact", **naive)
QUESTIONS = [
    (2, dict(type="variance", of="delay", range=RANGE)),
    (3, dict(type="variance", of="delay", range=RANGE, where="origin == 'ORD'")),
    (2, dict(type="stddev", of="delay", range=RANGE)),
    (1, dict(type="correlation", x="delay", y="distance", range_x=RANGE, range_y=[0, 3000], form="clipped")),
    (5, dict(type="correlation", x="delay", y="distance", range_x=RANGE, range_y=[0, 3000], form="exact")),
    (1, dict(type="covariance", x="delay", y="distance", range_x=RANGE, range_y=[0, 3000], form="clipped")),
    (3, dict(type="covariance", x="delay", y="distance", range_x=RANGE, range_y=[0, 3000], form="exact")),
    (10, dict(type="median", of="delay", range=RANGE)),
    (8, dict(type="median", of="delay", range=RANGE, resolution=1)),
    (10, dict(type="quantile", of="delay", range=RANGE, p=0.9)),
    (12, dict(type="quantile", of="delay", range=RANGE, p=0.9, resolution=0.06)),
    (10, dict(type="quantile", of="delay", range=RANGE, p=0.9, where="distance < 1000")),
    (4, dict(type="histogram", of="delay", edges=[-60, 0, 15, 60, 180])),
    (4, dict(type="histogram", of="delay", edges=[-60, 0, 15, 60, 180], where="distance < 500")),
    (4, dict(type="frequencies", of="origin", values=["SFO", "OAK", "ORD", "ATL"])),
    (4, dict(type="frequencies", of="origin")),
    (4, dict(type="groups", of="delay", range=RANGE, by="origin", values=["ORD", "ATL", "DFW"])),
    (4, dict(type="groups", of="delay > 15 ? 1 : 0", range=[0, 1], by="origin")),
]
guarded = {m: create(flights, holdout=0.3, name=m, mechanism=m, questions=1000) for m in ("gaussian", "guess_and_check")}


def show(x):
    return "undefined" if x is None else f"{x:.4g}"


def example(match):
    """A question of the page with the numbers of all flights and the price under each mechanism."""
    question = json.loads(match[1])
    answer = ask(everything, **question)
    lines = [f"{i['of']}: {show(i['value'])}" for i in answer["items"]] if "items" in answer else [show(answer["value"])]
    prices = [f"{ask(h, '/explain', **question)['cost']['questions']} under {m}" for m, h in guarded.items()]
    QUESTIONS.append((None, question))
    return f"```json\n{match[1]}\n```\n\n```text\n" + "\n".join(lines) + f"\ncosts {', '.join(prices)}\n```"


everything = create(flights, holdout=1.0, name="everything", **naive)
check_page(example)

for mechanism, holdout in guarded.items():
    assert holdout["units"] == exact["units"]
    for price, question in QUESTIONS:
        truth, explained, answer = ask(exact, **question), ask(holdout, "/explain", **question), ask(holdout, **question)
        cost = answer["cost"]["questions"]
        assert explained["cost"]["questions"] == cost, (explained["cost"], answer["cost"])
        assert cost == price or price is None or mechanism != "gaussian", (question, cost, price)
        pairs = [(truth, dict(value=answer["value"], **{k: answer["interval"].get(k) for k in ("low", "high")}))]
        if "items" in answer:
            pairs = list(zip(truth["items"], answer["items"]))
        widths = []
        for want, got in pairs:
            if want["value"] is not None and got["low"] is not None:  # a fifth wider, so that noise alone fails this for less than one seed in 10,000
                slack = (got["high"] - got["low"]) / 5
                assert got["low"] - slack <= want["value"] <= got["high"] + slack, (question, want, got)
            if got["value"] is not None:
                assert got["low"] <= got["value"] <= got["high"], (question, got)
                widths.append(max(got["high"] - got["value"], got["value"] - got["low"]))
        if "items" not in answer:
            print(f"{mechanism:16} {cost:3} questions: {show(answer['value']):>10} in [{show(pairs[0][1]['low'])}, {show(pairs[0][1]['high'])}], exactly {show(truth['value'])}",
                  f"({', '.join(w['code'] for w in explained['warnings'])})", question)
        else:
            print(f"{mechanism:16} {cost:3} questions: {len(answer['items'])} items, ±{min(widths, default=0):.3g} to ±{max(widths, default=0):.3g}", question)
done("MOMENTS OK")
