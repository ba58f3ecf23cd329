"""Answers: numbers that know their interval, their price and their place in the ledger."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from . import _printed


@dataclass(frozen=True)
class Meter:
    """One count of a budget: left of what there was."""

    left: int
    of: int

    def __str__(self) -> str:
        return f"{self.left:,} of {self.of:,}"


@dataclass(frozen=True, repr=False)
class Budget:
    """What is left of a guarantee. tokens is None where the mechanism has none, rounds where questions are asked one by one."""

    questions: Meter
    tokens: Meter | None = None
    rounds: Meter | None = None

    @classmethod
    def of(cls, members: Mapping[str, Any]) -> Budget:
        def meter(name: str) -> Meter | None:
            m = members.get(name)
            return Meter(int(m["left"]), int(m["of"])) if m else None

        questions = meter("questions")
        if questions is None:
            raise ValueError("a budget without questions")
        return cls(questions, meter("tokens"), meter("rounds"))

    def __str__(self) -> str:
        words = [f"{self.questions} questions left"]
        if self.tokens:
            words.append(f"{self.tokens} tokens left")
        if self.rounds:
            words.append(f"{self.rounds} rounds left")
        return " · ".join(words)

    def __repr__(self) -> str:
        return f"<budget: {self}>"


@dataclass(frozen=True)
class Item:
    """One number of an answer that is many. value, low and high are None where they are undefined."""

    of: str
    value: float | None
    low: float | None
    high: float | None

    def __str__(self) -> str:
        return f"{self.of}: {interval_text(self.value, self.low, self.high)}"


@dataclass(frozen=True)
class Cost:
    """What a question debited."""

    questions: int
    tokens: int = 0
    rounds: int = 0

    def __str__(self) -> str:
        words = [f"{self.questions} question{'' if self.questions == 1 else 's'}"]
        if self.tokens:
            words.append(f"{self.tokens} token{'' if self.tokens == 1 else 's'}")
        return ", ".join(words)


# Codes of warnings: the model reads what the label is made of; the value is of the rows that were handed out.
FLATTERING = frozenset({"reads-label", "training-score"})


class Answer(float):
    """An answer. It is its value where a float is wanted; NaN where the answer has none, or is many numbers (`items`).

    `raw` is the answer as the server sent it, with every member that the API has; those that are used most are attributes.
    A key whose grant does not show all of it sees less: `shows` says what. Under bit it has no value, and is true if it `passed`.
    `per` says what has one vote each where units have several rows: a unit, as the card names it, or row; it is empty elsewhere.
    """

    raw: Mapping[str, Any]
    query: Mapping[str, Any]
    budget: Budget | None
    replayed: bool
    per: str

    def __new__(
        cls, raw: Mapping[str, Any], query: Mapping[str, Any], budget: Budget | None = None, replayed: bool = False, per: str = ""
    ) -> Answer:
        value = raw.get("value")
        self = super().__new__(cls, math.nan if value is None else value)
        self.raw, self.query, self.budget, self.replayed, self.per = raw, query, budget, replayed, per
        return self

    def __reduce__(self) -> Any:
        return (Answer, (self.raw, self.query, self.budget, self.replayed, self.per))

    @property
    def value(self) -> float | None:
        """The value, or None where there is none."""
        return None if math.isnan(self) else float(self)

    def __bool__(self) -> bool:
        """Whether it passed, of an answer of which no more is shown; of others whether the value is other than 0, as of every float."""
        return bool(self.passed) if self.shows == "bit" else float(self) != 0

    @property
    def shows(self) -> str:
        """What the key is shown of it: full, value (the numbers without their intervals) or bit (whether the verdict is yes)."""
        return str(self.raw.get("shows") or "full")

    @property
    def passed(self) -> bool | None:
        """Of a decision or a test: whether the verdict is yes. It is None of answers without a verdict."""
        told = self.raw.get("passed")
        if told is None and self.verdict is not None:
            return self.verdict == "yes"
        return None if told is None else bool(told)

    @property
    def low(self) -> float | None:
        """The low end of the interval, or None where there is none."""
        return self._end("low")

    @property
    def high(self) -> float | None:
        """The high end of the interval, or None where there is none."""
        return self._end("high")

    def _end(self, name: str) -> float | None:
        interval = self.raw.get("interval")
        if not interval or (name not in interval and not ({"low", "high"} & interval.keys())):
            return None
        return float(interval.get(name, 0.0))  # the server leaves out a zero

    @property
    def half_width(self) -> float | None:
        """Half the length of the interval."""
        return None if self.low is None or self.high is None else (self.high - self.low) / 2

    @property
    def confidence(self) -> float | None:
        """The probability with which all intervals of the holdout hold together."""
        interval = self.raw.get("interval")
        return float(interval["confidence"]) if interval else None

    @property
    def source(self) -> str:
        """What the mechanism took: holdout, training, guess or mixed; hidden where the key is not shown it."""
        return str(self.raw["source"])

    @property
    def value_from(self) -> str | None:
        """Which rows the value is of: check, training, training+check, guess, holdout or mixed."""
        return self.raw.get("value_from")

    @property
    def outcome(self) -> str | None:
        """What the mechanism found: close, rough, differs, …"""
        return self.raw.get("outcome")

    @property
    def cost(self) -> Cost:
        """What the answer cost when it was given first. A replay costs nothing."""
        return Cost(**{k: int(self.raw["cost"].get(k, 0)) for k in Cost.__dataclass_fields__})

    @property
    def id(self) -> str:
        return str(self.raw["id"])

    @property
    def items(self) -> tuple[Item, ...]:
        """The numbers of an answer that is many."""
        return tuple(Item(i["of"], i.get("value"), i.get("low"), i.get("high")) for i in self.raw.get("items") or ())

    @property
    def selected(self) -> str | None:
        """Of argmax: the candidate."""
        return self.raw.get("selected")

    @property
    def regret(self) -> float | None:
        """Of argmax: the best candidate is at most so much better."""
        return self.raw.get("regret")

    @property
    def verdict(self) -> str | None:
        """Of a decision or a test: yes, no or undecided."""
        return self.raw.get("verdict")

    @property
    def p_value(self) -> float | None:
        """Of a test; it holds after all questions, so that no correction belongs on top."""
        return self.raw.get("p_value")

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader should know of the value."""
        return tuple(str(w.get("detail", w)) for w in self.raw.get("warnings") or ())

    def frame(self, kind: str | None = None) -> Any:
        """The items as a DataFrame with the columns of, value, low, high."""
        rows = self.items or (Item(str(self.query.get("type", "")), self.value, self.low, self.high),)
        return table_of({name: [getattr(r, name) for r in rows] for name in ("of", "value", "low", "high")}, kind)

    def __contains__(self, x: float) -> bool:
        """Whether a number lies in the interval."""
        return self.low is not None and self.high is not None and self.low <= x <= self.high

    def __iter__(self) -> Iterator[Item]:
        return iter(self.items)

    def __repr__(self) -> str:
        if self.items:
            shown = [str(i) for i in self.items[:12]]
            if len(self.items) > 12:
                shown.append(f"… and {len(self.items) - 12} more")
            return "\n".join([*shown, self._tail(), *self._careful()])
        return "\n".join([f"{self._head()}  {self._tail()}".strip(), *self._careful()])

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format(float(self), spec) if spec else repr(self)

    def _head(self) -> str:
        if self.selected is not None:
            return f"{self.selected}" + (
                f" (the best is at most {_printed.high_of(self.regret, 3):.3g} better)" if self.regret is not None else ""
            )
        if self.shows == "bit":
            return "passed" if self.passed else "not passed"
        text = interval_text(self.value, self.low, self.high)
        if self.verdict is not None:
            text = f"{self.verdict}: {text}"
        if self.p_value is not None:
            text += f"  p = {_printed.high_of(self.p_value, 3):.3g}"
        return text

    def _tail(self) -> str:
        words = []
        interval = self.raw.get("interval")
        if interval:
            words.append(f"at {100 * interval['confidence']:g}% for {interval['scope']}")
        if self.shows != "full":
            words.append("the grant shows no interval" if self.shows == "value" else "the grant shows no more")
        if self.per:
            words.append(f"per {self.per}")
        if self.replayed:
            words.append("asked before, no cost")
        elif self.budget:
            words.append(f"{self.budget.questions.left:,} left")
        return " · ".join(words)

    def _careful(self) -> list[str]:
        """Warnings that the value is better than the model is, which nobody who reads the number may miss."""
        return [f"careful: {w['detail']}" for w in self.raw.get("warnings") or () if w.get("code") in FLATTERING]

    def _repr_html_(self) -> str:
        careful = "".join(f"<br>{escape(line)}" for line in self._careful())
        rows = self.items or (Item("", self.value, self.low, self.high),)
        if self.selected is not None or self.shows == "bit":
            return f"<p><b>{escape(self._head())}</b> <small>{escape(self._tail())}{careful}</small></p>"
        low = min((r.low for r in rows if r.low is not None), default=0.0)
        high = max((r.high for r in rows if r.high is not None), default=1.0)
        lines = []
        for r in rows:
            bar = _bar(r, low, high) if len(rows) > 1 else ""
            name = f"<td style='text-align:left'>{escape(r.of)}</td>" if len(rows) > 1 else ""
            lines.append(f"<tr>{name}<td>{escape(interval_text(r.value, r.low, r.high))}</td>{bar}</tr>")
        head = f"<b>{escape(self.verdict)}</b> " if self.verdict else ""
        return f"{head}<table>{''.join(lines)}</table><small>{escape(self._tail())}{careful}</small>"


def _bar(item: Item, low: float, high: float) -> str:
    """An item's interval as a small picture, on the axis of all items."""
    if item.low is None or item.high is None or high <= low:
        return "<td></td>"
    a, b = (160 * (x - low) / (high - low) for x in (item.low, item.high))
    dot = ""
    if item.value is not None:
        dot = f"<circle cx='{160 * (item.value - low) / (high - low):.1f}' cy='7' r='3' fill='currentColor'/>"
    return (
        f"<td><svg width='160' height='14' role='img' aria-hidden='true'><line x1='{a:.1f}' x2='{b:.1f}' y1='7' y2='7' "
        f"stroke='currentColor' stroke-width='2' opacity='.5'/>{dot}</svg></td>"
    )


def interval_text(value: float | None, low: float | None, high: float | None) -> str:
    """value  [low, high], with the decimals that the width deserves; the ends are rounded outward."""
    d = _printed.decimals(None if low is None or high is None else (high - low) / 2)
    text = "no value" if value is None else _printed.near(value, d)
    if low is not None and high is not None:
        text += f"  [{_printed.low(low, d)}, {_printed.high(high, d)}]"
    return text


class NotAsked:
    """An item of a batch that has no answer. Nothing was debited for it; reason says why."""

    def __init__(self, reason: str, query: Mapping[str, Any]):
        self.reason, self.query = reason, query

    def __repr__(self) -> str:
        return f"not asked: {self.reason}"


@dataclass(frozen=True)
class Explanation:
    """What a question would mean, cost and tell, without touching a holdout row. `raw` has every member."""

    raw: Mapping[str, Any]

    @property
    def cost(self) -> Cost:
        return _cost(self.raw["cost"])

    @property
    def half_width(self) -> float | None:
        return self.raw.get("half_width")

    @property
    def answered(self) -> bool:
        return bool(self.raw["answered"])

    @property
    def measured(self) -> tuple[float | None, Cost] | None:
        """The planned half-width and the price with `measure=True`; None where the question cannot be measured, or is."""
        told = self.raw.get("measured")
        return None if told is None else (told["half_width"], _cost(told["cost"]))

    @property
    def report_width(self) -> float | None:
        """How wide a final report of five numbers would be now: each half-width in those of a textbook's interval for one question.
        None where there is no report."""
        return self.raw.get("report_width")

    @property
    def report_widths(self) -> dict[str, float]:
        """How wide it would be after each outcome that the answer may have, and `measured` with `measure=True`."""
        told = [*(self.raw.get("outcomes") or ()), *([self.raw["measured"]] if self.raw.get("measured") else ())]
        return {str(o["outcome"]): float(o["report_width"]) for o in told if o.get("report_width") is not None}

    @property
    def warnings(self) -> tuple[str, ...]:
        return tuple(str(w["detail"]) for w in self.raw.get("warnings") or ())

    def __repr__(self) -> str:
        lines = [f"{_half(self.half_width)} · {'no cost: it was asked before' if self.answered else self._price()}"]
        if self.measured is not None:
            lines.append(f"measured {_half(self.measured[0])} · {self.measured[1]}")
        if self.report_width is not None and self.report_widths:
            after = ", ".join(f"{width:.2f} if {outcome}" for outcome, width in self.report_widths.items())
            lines.append(f"a final report of five numbers: {self.report_width:.2f} textbooks now; then {after}")
        return "\n".join([*lines, *self.warnings])

    def _price(self) -> str:
        """The cost in words: tokens that an answer may cost, and need not, are no price yet."""
        least = min((int(o["cost"].get("tokens", 0)) for o in self.raw.get("outcomes") or ()), default=self.cost.tokens)
        if least == self.cost.tokens:
            return str(self.cost)
        sure = Cost(self.cost.questions, 0, self.cost.rounds)
        return (
            f"{sure}, and at most {self.cost.tokens} token{'' if self.cost.tokens == 1 else 's'} if the value it is compared with is wrong"
        )


def _cost(told: Mapping[str, Any]) -> Cost:
    return Cost(**{k: int(told.get(k, 0)) for k in Cost.__dataclass_fields__})


def _half(half_width: float | None) -> str:
    return "no interval of its own" if half_width is None else f"± {_printed.near(half_width, _printed.decimals(half_width))}"


def table_of(columns: Mapping[str, Sequence[Any]], kind: str | None) -> Any:
    """Columns as a DataFrame of pandas or polars, whichever is there; as a plain dict where neither is."""
    import importlib.util

    for name in [kind] if kind else ["pandas", "polars"]:
        if name and importlib.util.find_spec(name) is not None:
            module = importlib.import_module(name)
            return module.DataFrame(dict(columns))
    if kind:
        raise ModuleNotFoundError(f"{kind} is not installed")
    return dict(columns)
