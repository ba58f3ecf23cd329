"""Asks a holdoutd server for decisions, differences and tests, and computes the same with NumPy, SciPy and scikit-learn.

Prints what each question of the page gets on the flights.
"""

import json

import numpy as np
import pandas
from scipy import stats
from sklearn.metrics import accuracy_score

from server import FLIGHTS, GRID, ask, check_page, create, done, near

np.random.seed(11)  # what an estimator draws from that has no random_state
rng = np.random.default_rng(11)
N = 5000
people = pandas.DataFrame({"x": rng.standard_t(3, N) * 20 + 10, "k": rng.integers(0, 20, N).astype(float)})
people["y"] = 0.6 * people.x + 15 * rng.normal(size=N)
people["w"] = rng.random(N) < 0.3
people["g"] = rng.choice(["a", "b", "c"], N, p=[0.5, 0.3, 0.2])
people["chart"] = rng.integers(0, 1500, N).astype(float)
people.loc[rng.random(N) < 0.05, "x"] = np.nan

RANGE = [-60.0, 180.0]


def clamp(x, null=-60.0):
    return np.clip(np.where(np.isnan(x), null, x), *RANGE)


def check_rows(holdout, rows):
    x, y = clamp(rows.x), clamp(rows.y)
    mean_x, mean_y = dict(type="mean", of="x", range=RANGE), dict(type="mean", of="y", range=RANGE)
    near(ask(holdout, type="compare", a=mean_x, b=mean_y)["value"], np.mean(y - x), 480 * GRID, "compare")
    near(ask(holdout, type="compare", a=mean_x, b=dict(mean_y, null=3), where="w")["value"], np.mean((y - x)[rows.w]), 480 * 8 * GRID, "compare where")
    rules = [rows.k > 3, rows.k > 10, (rows.k > 15) & (rows.y > 0)]
    texts = ["k > 3", "k > 10", "k > 15 && y > 0"]
    scores = [accuracy_score(rows.w, rule) for rule in rules]
    said = [dict(type="fraction", of=f"w == ({text})") for text in texts]
    near(ask(holdout, type="compare", a=said[0], b=said[1])["value"], scores[1] - scores[0], 4 * GRID, "compare of accuracies")
    best = ask(holdout, type="argmax", of=said, names=texts)
    assert best["selected"] == texts[np.argmax(scores)] and [i["of"] for i in best["items"]] == texts, best
    for item, score in zip(best["items"], scores):
        near(item["value"], score, 4 * GRID, "argmax")
    assert ask(holdout, type="argmax", of=said, least=True)["selected"] == str(np.argmin(scores))
    near(ask(holdout, type="passes", of=mean_x, above=0)["value"], np.mean(x), 240 * GRID, "passes")

    a, b = rows.g == "a", rows.g == "b"
    ttest = stats.ttest_ind(x[a], x[b], equal_var=False)
    for more in (dict(type="difference"), dict(type="test", test="two-sample")):
        near(ask(holdout, of="x", range=RANGE, between=["g == 'a'", "g == 'b'"], **more)["value"], np.mean(x[a]) - np.mean(x[b]), 240 * 32 * GRID, "two samples")
    assert np.sign(ttest.statistic) == np.sign(np.mean(x[a]) - np.mean(x[b]))
    near(ask(holdout, type="difference", of="w", between=["g == 'a'"])["value"], rows.w[a].mean() - rows.w[~a].mean(), 32 * GRID, "difference from the rest")
    near(ask(holdout, type="test", test="two-proportions", of="w", between=["g == 'a'", "g == 'b'"])["value"], rows.w[a].mean() - rows.w[b].mean(), 32 * GRID, "two proportions")
    near(ask(holdout, type="test", test="mean", of="x", range=RANGE, equals=4)["value"], np.mean(x), 240 * GRID, "mean")
    near(ask(holdout, type="test", test="proportion", of="w", where="k > 3")["value"], rows.w[rows.k > 3].mean(), 16 * GRID, "proportion")

    fit = stats.linregress(x, y)
    xy = dict(x="x", y="y", range_x=RANGE, range_y=RANGE)
    near(ask(holdout, type="test", test="slope", **xy)["value"], fit.slope, 1e-5, "slope")
    near(ask(holdout, type="test", test="correlation", **xy)["value"], fit.rvalue * np.std(x) * np.std(y), 240**2 * 16 * GRID, "covariance")

    counts = rows.g.value_counts()[["a", "b", "c"]].to_numpy()
    expected = np.array([0.5, 0.25, 0.25])
    answer = ask(holdout, type="test", test="goodness-of-fit", cells=["g == 'a'", "g == 'b'"], expected=[0.5, 0.25])
    assert [i["of"] for i in answer["items"]] == ['g == "a"', 'g == "b"', "other"], answer
    deviations = counts / N - expected
    for item, want in zip(answer["items"], deviations):
        near(item["value"], want, 4 * GRID, "goodness of fit")
    near(answer["value"], np.abs(deviations).max(), 4 * GRID, "largest deviation")
    near(np.sum(deviations**2 / expected) * N, stats.chisquare(counts, expected * N).statistic, 1e-6, "chi-square from the items")

    table = np.array([[np.sum((rows.w == w) & (rows.g == g)) for g in "abc"] for w in (True, False)])
    margins = stats.chi2_contingency(table).expected_freq
    answer = ask(holdout, type="test", test="independence", rows=["w"], columns=["g == 'a'", "g == 'b'"])
    for item, want in zip(answer["items"], ((table - margins) / N).ravel()):
        near(item["value"], want, 16 * GRID, "independence")
    assert "p_value" not in answer and answer["verdict"] == "undecided" and answer["interval"] is None, answer


def check_units(holdout, rows):
    """One vote a unit: means of units' own means, and contrasts in which a unit's rows share its vote."""
    x, y = clamp(rows.x), clamp(rows.y)
    paired = pandas.Series(y - x).groupby(rows.chart).mean().mean()
    near(ask(holdout, type="compare", a=dict(type="mean", of="x", range=RANGE), b=dict(type="mean", of="y", range=RANGE))["value"], paired, 480 * 4 * GRID, "compare over units")
    votes = 1 / rows.groupby("chart").x.transform("size")
    w = rows.w.to_numpy()
    want = np.average(x[w], weights=votes[w]) - np.average(x[~w], weights=votes[~w])
    near(ask(holdout, type="difference", of="x", range=RANGE, between=["w"])["value"], want, 240 * 1e-6, "difference over units")


naive = dict(mechanism="naive", questions=100000)
check_rows(create(people, holdout=1.0, name="rows", **naive), people)
check_units(create(people, holdout=1.0, name="units", unit="chart", largest_unit=20, **naive), people)

# The flights of the examples: what all of them say, and the intervals and verdicts of real guarantees on 30,000 of them.
flights = pandas.read_parquet(FLIGHTS)
everything = create(flights, holdout=1.0, name="everything", **naive)
exact = create(flights, holdout=0.3, name="exact", **naive)
guarded = {m: create(flights, holdout=0.3, name=m, mechanism=m, questions=500) for m in ("gaussian", "guess_and_check")}
questions = []


def show(answer):
    lines = [] if answer["value"] is None else [f"{answer['value']:.4g}"]
    lines += [f"{i['of']}: {i['value']:.4g}" for i in answer.get("items", [])]
    return lines + ([f"selected: {answer['selected']}"] if "selected" in answer else [])


def example(match):
    """A question of the page with the numbers of all flights and the price under each mechanism."""
    question = json.loads(match[1])
    prices = [f"{ask(h, '/explain', **question)['cost']['questions']} under {m}" for m, h in guarded.items()]
    questions.append(question)
    return f"```json\n{match[1]}\n```\n\n```text\n" + "\n".join(show(ask(everything, **question))) + f"\ncosts {', '.join(prices)}\n```"


check_page(example)
assert len(questions) >= 8

for mechanism, holdout in guarded.items():
    for question in questions:
        truth, explained, answer = ask(exact, **question), ask(holdout, "/explain", **question), ask(holdout, **question)
        assert explained["cost"]["questions"] == answer["cost"]["questions"], (explained["cost"], answer["cost"])
        ends = answer["interval"]
        pairs = [(truth["value"], answer["value"], ends.get("low"), ends.get("high"))] if answer["value"] is not None else []
        pairs += [(a["value"], b["value"], b["low"], b["high"]) for a, b in zip(truth.get("items", []), answer.get("items", []))]
        for want, got, low, high in pairs:  # a fifth wider, so that noise alone fails this for less than one seed in 10,000
            slack = (high - low) / 5
            assert low - slack <= want <= high + slack and low <= got <= high, (question, want, answer)
        if question["type"] == "test":
            assert (answer["verdict"] == "yes") == (answer["p_value"] <= 0.05), answer
        said = [f"in [{ends['low']:.4g}, {ends['high']:.4g}]"] if "low" in ends else []
        said += [f"{k} {answer[k]:.3g}" if isinstance(answer[k], float) else f"{k} {answer[k]}" for k in ("verdict", "p_value", "selected", "regret") if k in answer]
        print(f"{mechanism:16} {answer['cost']['questions']:3} questions: {', '.join(said)}", json.dumps(question))
done("DECISIONS OK")
