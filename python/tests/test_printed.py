"""What is printed holds what was proved: the table that the server, the command and the page are tested by, too."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from holdoutd import _printed
from holdoutd._view import Card, History
from holdoutd.answers import Answer, Item

CASES: dict[str, list[dict[str, Any]]] = json.loads(
    (Path(__file__).parents[2] / "internal" / "printed" / "cases.json").read_text(encoding="utf-8")
)


@pytest.mark.parametrize("case", CASES["decimals"], ids=lambda c: f"{c['x']} to {c['decimals']}")
def test_decimals(case: dict[str, Any]) -> None:
    x, digits = float(case["x"]), case["decimals"]
    shown = [f(x, digits).replace(",", "") for f in (_printed.low, _printed.near, _printed.high)]
    assert shown == [case["low"], case["near"], case["high"]]


@pytest.mark.parametrize("case", CASES["significant"], ids=lambda c: f"{c['x']} to {c['significant']}")
def test_significant(case: dict[str, Any]) -> None:
    x, digits = float(case["x"]), case["significant"]
    shown = [f(x, digits) for f in (_printed.low_of, _printed.near_of, _printed.high_of)]
    assert shown == [float(case["low"]), float(case["near"]), float(case["high"])]


def test_answers_are_printed_so() -> None:
    """As text, as HTML and as a table of the history: no end is nearer to the value than what was proved."""
    ends = (0.69291, 0.74109)
    members = {
        "id": "ans_1", "holdout": "ho_1", "query": "sha256:1", "value": 0.71749, "cost": {"questions": 1},
        "interval": {"low": ends[0], "high": ends[1], "confidence": 0.95, "scope": "all 10 questions"},
    }  # fmt: skip
    answer = Answer(members, {"type": "mean"}, None, True, "")
    history = History([{"answer": members, "canonical": {"type": "mean"}, "time": "2026-01-01T00:00:00Z"}], Card({}))
    for text in (repr(answer), str(answer), answer._repr_html_(), repr(history), str(Item("a", 0.71749, *ends))):
        assert "0.717" in text and "[0.692, 0.742]" in text, text
    shown = [float(x) for x in re.findall(r"<td[^>]*>(0\.\d+)</td>", history._repr_html_())]
    assert shown == [0.71749, 0.69291, 0.74109]
    members["interval"] |= {"low": 0.692914, "high": 0.741096}
    shown = [float(x) for x in re.findall(r"<td[^>]*>(0\.\d+)</td>", History(history._raw, history.card)._repr_html_())]
    assert shown[1] <= 0.692914 and shown[2] >= 0.741096, shown
