"""Expressions with operators are the text that a person would type: the server finds the same canonical form."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pytest
from conftest import table

import holdoutd


def canonical(ds: holdoutd.Dataset, of: object) -> str:
    return str(ds.explain(holdoutd.q.fraction(of)).raw["query"])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("made", "typed"),
    [
        (lambda c: c.x > 15, "x > 15"),
        (lambda c: (c.x > 15) & ~c.origin.is_in(["SFO", "OAK"]), "x > 15 && !(origin in ['SFO','OAK'])"),
        (lambda c: (c.x > 1) | (c.z > 1) & (c.x < 3), "x > 1 || (z > 1 && x < 3)"),
        (lambda c: ((c.x > 1) | (c.z > 1)) & (c.x < 3), "(x > 1 || z > 1) && x < 3"),
        (lambda c: c.x - (c.z - 1) > 0, "x - (z - 1) > 0"),
        (lambda c: c.x - c.z - 1 > 0, "x - z - 1 > 0"),
        (lambda c: 2 / (c.x * c.z) < -c.x, "2 / (x * z) < -x"),
        (lambda c: -(-c.x) > 0, "-(-x) > 0"),  # noqa: B002
        (lambda c: abs(c.x).sqrt() + c.x.clamp(0, 1).exp() >= 2.5, "sqrt(abs(x)) + exp(clamp(x, 0, 1)) >= 2.5"),
        (lambda c: c["support tickets"] == 2, 'col("support tickets") == 2'),
        (lambda c: c.origin == 'it\'s "far"\\', r"""origin == 'it\'s "far"\\'"""),
        (lambda c: c.origin.starts_with("S") | c.origin.contains("a\nb"), r"origin.startsWith('S') || origin.contains('a\nb')"),
        (lambda c: c.x.is_null(), "x == null"),
        (lambda c: c.late & (c.x != None), "late && x != null"),  # noqa: E711
        (lambda c: c.late == False, "late == false"),  # noqa: E712
        (lambda c: c.day >= dt.date(2026, 2, 1), 'day >= timestamp("2026-02-01")'),
        (lambda c: c.day < dt.datetime(2026, 2, 1, 13, 30), 'day < timestamp("2026-02-01T13:30:00Z")'),
        (lambda c: c.day.month() == 2, "day.getMonth() + 1 == 2"),
        (lambda c: (c.day.weekday() == 0) & (c.day.hour() < 6), "day.getDayOfWeek() == 0 && day.getHours() < 6"),
        (lambda c: holdoutd.where(c.late, c.x, None) > 0, "(late ? x : null) > 0"),
        (lambda c: holdoutd.minimum(c.x, c.z, 1) > holdoutd.maximum(c.x, 0), "min(x, z, 1) > max(x, 0)"),
        (lambda c: c.x > np.float64(0.1), "x > 0.1"),
        (lambda c: c.x > 1e-7, "x > 1e-7"),
        (lambda c: c.x.between(0, 1), "x >= 0 && x <= 1"),
        (lambda c: 1 - c.x > 0, "1 - x > 0"),
    ],
)
def test_operators_are_text(ds: holdoutd.Dataset, made: object, typed: str) -> None:
    """Notices a missing parenthesis, a wrong operator and a literal that is spelled otherwise than CEL reads it."""
    expression = made(ds.c)  # type: ignore[operator]
    assert canonical(ds, expression) == canonical(ds, typed), str(expression)


def test_a_condition_is_not_a_truth_value(ds: holdoutd.Dataset) -> None:
    """Notices `and` and `or`, and chained comparisons, which Python would answer with one of the sides."""
    with pytest.raises(TypeError, match="&"):
        bool(ds.c.x > 1)
    with pytest.raises(TypeError):
        _ = 0 < ds.c.x < 1


def test_misspelt_columns(ds: holdoutd.Dataset) -> None:
    with pytest.raises(AttributeError, match="amount"):
        _ = ds.c.amuont
    with pytest.raises(KeyError, match="support tickets"):
        _ = ds.c["support ticket"]
    assert "amount" in dir(ds.c)


def test_no_literal_is_guessed(ds: holdoutd.Dataset) -> None:
    with pytest.raises(ValueError, match="nulls are None"):
        _ = ds.c.x > float("nan")
    with pytest.raises(TypeError, match="cannot stand"):
        _ = ds.c.x > [1]


def test_any_column_name(server: holdoutd.Server) -> None:
    """Notices a name that CEL would read as something else."""
    frame = table(2, 300)[["x", "z"]].rename(columns={"x": "in", "z": 'a "b"\\ c'})
    frame["1st"], frame["col"], frame["a.b"] = 1.0, 2.0, frame["in"]
    ds = server.upload(frame, questions=20)
    for name in frame.columns:
        ds.explain(holdoutd.q.fraction(ds.c[name] > 0.5))
