"""The final report, from Python."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import holdoutd


@pytest.fixture
def churn(server: holdoutd.Server, request: pytest.FixtureRequest) -> tuple[holdoutd.Dataset, dict[str, LogisticRegression]]:
    np.random.seed(1)  # of the estimators
    rng = np.random.default_rng(len(request.node.name))  # a table of its own
    table = pd.DataFrame({f"x{i}": rng.normal(size=6000) for i in range(4)})
    table["churned"] = table.x0 + 0.7 * table.x1 + rng.normal(size=6000) > 0
    ds = server.upload(table, name=request.node.name, label="churned", mechanism="guess_and_check", questions=100)
    training = ds.training()
    few, many = ["x0"], ["x0", "x1", "x2", "x3"]
    models = {
        "few": LogisticRegression().fit(training[few], training.churned),
        "many": LogisticRegression().fit(training[many], training.churned),
    }
    return ds, models


def test_report(churn: tuple[holdoutd.Dataset, dict[str, LogisticRegression]], tmp_path: Path) -> None:
    """A report is planned at no cost, made once with close=True, narrower than what was asked before, and read and saved afterwards."""
    ds, models = churn
    asked = {name: ds.score(model, name=name) for name, model in models.items()}
    left = ds.budget.questions.left
    plan = ds.report(models)
    assert isinstance(plan, holdoutd.ReportPlan)
    assert ds.budget.questions.left == left
    assert "close=True" in repr(plan) and "few" in repr(plan) and "few" in plan._repr_html_()
    assert all(w is not None and w < (asked[n].high - asked[n].low) / 2 for w, n in zip(plan.half_widths, models, strict=True))

    report = ds.report({**models, "late": {"type": "fraction", "of": "x0 > 1"}}, title="Spring", close=True)
    assert isinstance(report, holdoutd.Report)
    assert ds.card.raw["closed"]
    assert ds.budget.questions.left == 0
    for name, answer in zip(models, report.answers, strict=False):
        assert answer.high - answer.low < asked[name].high - asked[name].low
        assert answer.low <= answer.value <= answer.high
    assert "Spring" in repr(report) and "few, accuracy for churned" in repr(report) and report.head.startswith("sha256:")
    frame = report.frame("pandas")
    assert list(frame["name"]) == ["few", "many", "late"] and list(frame["type"]) == ["accuracy", "accuracy", "fraction"]
    assert ds.report().text == report.text
    ds.save_report(tmp_path / "report.html")
    assert report.head in (tmp_path / "report.html").read_text(encoding="utf-8")
    with pytest.raises(holdoutd.BudgetExhausted, match="final report"):
        ds.mean("x1", range=(-3, 3))
    with pytest.raises(TypeError, match="report what"):
        ds.report(close=True)


def test_no_report_yet(churn: tuple[holdoutd.Dataset, dict[str, LogisticRegression]]) -> None:
    ds, _ = churn
    with pytest.raises(holdoutd.NotFound, match="still answers"):
        ds.report()
    with pytest.raises(holdoutd.QueryInvalid, match="guess"):
        ds.report([{"type": "fraction", "of": "x0 > 1", "guess": 0.2}])


def test_measured(churn: tuple[holdoutd.Dataset, dict[str, LogisticRegression]]) -> None:
    """A model is measured: the holdout's own number, narrower than a check, at the price that explaining said."""
    ds, models = churn
    checked = ds.score(models["many"])
    said = ds.explain(holdoutd.q.fraction("churned")).measured
    assert said is not None
    half_width, cost = said
    assert half_width is not None and (cost.questions, cost.tokens) == (3, 1)
    assert "measured ±" in repr(ds.explain(holdoutd.q.fraction("churned")))
    before = ds.budget
    measured = ds.score(models["many"], measure=True)
    assert measured.outcome == "measured" and measured.cost == cost
    assert (measured.high - measured.low) < 0.6 * (checked.high - checked.low)
    assert before.questions.left - ds.budget.questions.left == 3
    share = ds.fraction("churned", measure=True)
    assert share.low <= share.value <= share.high
    again = ds.explain(holdoutd.q.fraction("churned", measure=True))
    assert again.answered and again.measured is None
    with pytest.raises(holdoutd.QueryInvalid, match="not measured"):
        ds.median("x0", range=(-4, 4), measure=True)
