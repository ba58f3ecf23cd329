"""The final report of a holdout, and what is known of it before it is made."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from . import _printed
from ._view import _table
from .answers import Answer, Item, table_of


class Report:
    """The final report that closed a holdout. `raw` is the server's reply; print it for the text, or show it in a notebook."""

    def __init__(self, raw: Mapping[str, Any]):
        self.raw = raw

    @property
    def answers(self) -> list[Answer]:
        """The answers, in the order of the report."""
        return [Answer(a["answer"], a["canonical"], None, True, a.get("per", "")) for a in self.raw["answers"]]

    @property
    def text(self) -> str:
        """The report in sentences, for a paper or a pull request."""
        return str(self.raw["text"])

    @property
    def head(self) -> str:
        """The ledger's head with the report: who has the ledger checks it with `holdoutd verify`."""
        return str(self.raw["ledger"]["head"])

    def columns(self) -> dict[str, list[Any]]:
        """The numbers of the report by column: a row for each number."""
        table: dict[str, list[Any]] = {n: [] for n in ("name", "type", "of", "value", "low", "high")}
        for raw, a in zip(self.raw["answers"], self.answers, strict=True):
            numbers: list[Item | Answer] = list(a.items) or [a]
            for x in numbers:
                row = (raw.get("note"), raw["canonical"].get("type"), getattr(x, "of", None), x.value, x.low, x.high)
                for column, member in zip(table.values(), row, strict=True):
                    column.append(member)
        return table

    def frame(self, kind: str | None = None) -> Any:
        """The numbers as a DataFrame."""
        return table_of(self.columns(), kind)

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.text)}</pre>"


class ReportPlan:
    """How wide the intervals of a final report would be now. Nothing was asked, and nothing is closed. `raw` is the server's reply."""

    def __init__(self, raw: Mapping[str, Any]):
        self.raw = raw

    @property
    def half_widths(self) -> list[float | None]:
        """The planned half-width of each question, in its own units; of items the widest."""
        return [a["half_width"] for a in self.raw["answers"]]

    def _rows(self) -> list[tuple[str, str, str]]:
        rows = []
        for a in self.raw["answers"]:
            half = a["half_width"]
            value = "" if a["value"] is None else _printed.near(a["value"], _printed.decimals(half) if half else 3)
            width = "no interval" if half is None else f"±{_printed.near(half, _printed.decimals(half))}"
            rows.append((a.get("note") or "", value, width))
        return rows

    def _end(self) -> str:
        left = f"{self.raw['closes']:,} questions that are left"
        return f"Nothing was asked. With close=True the report takes the {left}, and closes the holdout."

    def __repr__(self) -> str:
        return "\n".join([*(f"{width:>12}  {value:>8}  {name}".rstrip() for name, value, width in self._rows()), self._end()])

    def _repr_html_(self) -> str:
        return _table(["name", "value now", "planned"], self._rows()) + f"<p>{escape(self._end())}</p>"
