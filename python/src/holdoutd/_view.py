"""Cards, plans and histories, for people: text in a terminal, tables in a notebook, DataFrames to go on with."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from . import _printed
from .answers import Answer, table_of


class Card:
    """What may be known of a holdout without asking it. `raw` is the card as the server sent it."""

    def __init__(self, raw: Mapping[str, Any]):
        self.raw = raw

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return [c["name"] for c in self.raw["columns"]]

    @property
    def kinds(self) -> dict[str, str]:
        """The kind of each column: number, bool, text or time."""
        return {c["name"]: c["kind"] for c in self.raw["columns"]}

    @property
    def categories(self) -> dict[str, list[str]]:
        """The text columns that were categories of pandas without an order when they were uploaded, with those of training rows, where
        they are few."""
        return {c["name"]: c.get("values", []) for c in self.raw["columns"] if c.get("category")}

    @property
    def rows(self) -> Mapping[str, int]:
        """Rows by part; empty of a draft whose units are not rows."""
        rows: Mapping[str, int] = self.raw.get("rows") or {}
        return rows

    @property
    def units(self) -> Mapping[str, int]:
        """Units, which are independent of each other, by part."""
        units: Mapping[str, int] = self.raw["units"]
        return units

    @property
    def guarantee(self) -> Mapping[str, Any]:
        """The mechanism with its numbers."""
        guarantee: Mapping[str, Any] = self.raw["guarantee"]
        return guarantee

    @property
    def settings(self) -> Mapping[str, Any]:
        """The choices made at creation."""
        settings: Mapping[str, Any] = self.raw["settings"]
        return settings

    @property
    def label(self) -> str | None:
        """The column that is predicted, where one was named."""
        return self.settings.get("label")

    @property
    def public(self) -> bool:
        """Whether the features of the held-out rows can be downloaded."""
        return self.settings.get("features") == "public"

    @property
    def retired(self) -> bool:
        """Whether it answers nothing more and has released its rows. `raw["succeeded_by"]` has the ids of those that come after it."""
        return bool(self.raw.get("retired"))

    @property
    def warnings(self) -> list[str]:
        """What the owner should know."""
        return [w["detail"] for w in self.raw["warnings"]]

    def range_of(self, features: str | Sequence[str]) -> list[float]:
        """The least and the largest value of number columns in the training part; features is a pattern of names or a list."""
        low, high = [], []
        for c in self.raw["columns"]:
            chosen = fnmatch.fnmatchcase(c["name"], features) if isinstance(features, str) else c["name"] in features
            if chosen and c["kind"] == "number" and "min" in c and "max" in c:
                low.append(float(c["min"]))
                high.append(float(c["max"]))
        if not low or min(low) >= max(high):
            raise ValueError(f"no number column with two values is in {features!r}: give range=(low, high)")
        return [min(low), max(high)]

    def _lines(self) -> list[tuple[str, str]]:
        g = self.guarantee
        units = " and ".join(f"{n:,} {part}" for part, n in self.units.items())
        if g.get("sealed"):
            units += f"; {g['sealed']:,} of the held-out ones are sealed for the final report"
        promise = f"{g['questions']:,} questions at {100 * g['confidence']:g}% together, by {g['mechanism']}"
        if g.get("half_width"):
            promise += f", a share to ±{_printed.near(g['half_width'], _printed.decimals(g['half_width']))}"
        return [
            ("holdout", f"{self.raw['name']} ({self.raw['id']})"),
            ("units", f"{units}; a unit is {self.raw['unit']}"),
            ("guarantee", promise),
            *([("chosen", self.raw["chosen"])] if self.raw.get("chosen") else []),
            ("columns", ", ".join(f"{c['name']} ({c['kind']})" for c in self.raw["columns"])),
            *[("warning", w) for w in self.warnings],
        ]

    def __repr__(self) -> str:
        return "\n".join(f"{name:<10} {text}" for name, text in self._lines())

    def _repr_html_(self) -> str:
        return _table(["", ""], self._lines())


class Plan:
    """A comparison of all methods for a holdout of some size. `raw` is the server's reply."""

    def __init__(self, raw: Mapping[str, Any]):
        self.raw = raw

    @property
    def recommended(self) -> str:
        """The narrowest method that a holdout can be created with."""
        return str(self.raw["recommended"])

    def frame(self, kind: str | None = None) -> Any:
        """The methods as a DataFrame, narrowest first."""
        rows = self._rows()
        names = ("method", "half_width", "published", "assumes")
        return table_of({n: [r[n] for r in rows] for n in names}, kind)

    def _rows(self) -> list[dict[str, Any]]:
        wide = float("inf")
        return sorted(self.raw["methods"], key=lambda m: wide if m["half_width"] is None else m["half_width"])

    def plot(self, ax: Any = None) -> Any:
        """The half-widths of all methods as bars. Needs matplotlib."""
        from .plot import plan

        return plan(self, ax)

    def _head(self) -> str:
        r = self.raw
        sizes = f"{r['n']:,} units held out, {r['questions']:,} questions, {100 * r['confidence']:g}% together"
        return f"{sizes}: {self.recommended} is recommended"

    def _texts(self) -> list[tuple[str, str]]:
        return [
            (
                m["method"],
                "no interval" if m["half_width"] is None else f"±{_printed.near(m['half_width'], _printed.decimals(m['half_width']))}",
            )
            for m in self._rows()
        ]

    def workload(self, kind: str | None = None) -> Any:
        """Of a plan that was asked with workload=, such as "60 accuracy, 60 auc": a DataFrame with a row for each mechanism and kind of
        question: the questions that one costs, and its planned and widest half-width in its own units."""
        return table_of(self._workload(), kind)

    def _workload(self) -> dict[str, list[Any]]:
        names = ("mechanism", "of", "count", "questions", "half_width", "widest_half_width")
        table: dict[str, list[Any]] = {n: [] for n in names}
        load = self.raw.get("workload") or {"items": [], "plans": []}
        for p in load["plans"]:
            for item, price in zip(load["items"], p["items"], strict=False):
                row = {"mechanism": p["name"], **item, **price}
                for n in names:
                    table[n].append(row.get(n))
        return table

    def __repr__(self) -> str:
        lines = [self._head(), *(f"  {width:>12}  {name}" for name, width in self._texts()), *self.raw["notes"]]
        w = self._workload()
        for mechanism, of, count, questions, width in zip(*(list(w.values())[:5]), strict=True):
            shown = "no interval" if width is None else f"±{_printed.near(width, _printed.decimals(width))}"
            lines.append(f"  {shown:>12}  {count} {of}, {questions} questions each, by {mechanism}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        notes = "".join(f"<p><small>{escape(n)}</small></p>" for n in self.raw["notes"])
        return f"<p>{escape(self._head())}</p>{_table(['method', 'half-width of a share'], self._texts())}{notes}"


class History(Sequence[Mapping[str, Any]]):
    """Every answer so far, oldest first, as the server has them."""

    def __init__(self, raw: Sequence[Mapping[str, Any]], card: Card):
        self._raw, self.card = raw, card

    def __len__(self) -> int:
        return len(self._raw)

    def __getitem__(self, i: Any) -> Any:
        return self._raw[i]

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        return iter(self._raw)

    def answers(self) -> list[Answer]:
        """The answers by themselves."""
        return [Answer(p["answer"], p["canonical"], None, True, p.get("per", "")) for p in self._raw]

    def columns(self) -> dict[str, list[Any]]:
        """The history by column. reference is what the rows that the holdout is compared with say."""
        import json

        table: dict[str, list[Any]] = {}
        for p, a in zip(self._raw, self.answers(), strict=True):
            reference = p.get("reference") or {}
            row = {
                "time": p["time"],
                "asked_by": (p.get("asked_by") or {}).get("name"),
                "type": p["canonical"].get("type"),
                "query": json.dumps(p["canonical"], ensure_ascii=False),
                "value": a.value,
                "low": a.low,
                "high": a.high,
                "reference": reference.get("value"),
                "value_from": a.value_from,
                "outcome": p.get("outcome"),
                "questions": a.cost.questions,
                "tokens": a.cost.tokens,
                "note": p.get("note"),
                "id": a.id,
            }
            for name, value in row.items():
                table.setdefault(name, []).append(value)
        return table

    def frame(self, kind: str | None = None) -> Any:
        """The history as a DataFrame."""
        return table_of(self.columns(), kind)

    def __repr__(self) -> str:
        return (
            "\n".join(f"{p['canonical'].get('type'):<12} {a}" for p, a in zip(self._raw, self.answers(), strict=True)) or "no answers yet"
        )

    def _repr_html_(self) -> str:
        shown = ["time", "asked_by", "query", "value", "low", "high", "outcome", "questions", "tokens", "note"]
        columns = self.columns()
        rows = list(zip(*(columns.get(n, []) for n in shown), strict=True))
        rounded = {"low": _printed.low_of, "high": _printed.high_of}

        def text(name: str, v: Any) -> str:
            if isinstance(v, float):
                return f"{rounded.get(name, _printed.near_of)(v, 5):.5g}"
            return "" if v is None else str(v)

        return _table(shown, [[text(n, v) for n, v in zip(shown, row, strict=True)] for row in rows])


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    th = "".join(f"<th style='text-align:left'>{escape(h)}</th>" for h in head) if any(head) else ""
    body = "".join("<tr>" + "".join(f"<td style='text-align:left'>{escape(c)}</td>" for c in row) + "</tr>" for row in rows)
    return f"<table>{f'<thead><tr>{th}</tr></thead>' if th else ''}<tbody>{body}</tbody></table>"
