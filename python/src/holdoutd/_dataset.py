"""What the synchronous and the asynchronous data set have in common."""

from __future__ import annotations

import copy
import sys
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from . import _resolve, _steps, _wire, tables
from ._questions import R
from ._scores import Scores
from ._view import Card
from .answers import Answer, Explanation, NotAsked
from .expressions import Columns

D = TypeVar("D", bound="Holdout[Any]")


class Holdout(Scores[R]):
    """A holdout as its card shows it, and the steps of asking it."""

    def __init__(self, card: Mapping[str, Any], kind: tables.Kind | None = None):
        self.card = Card(card)
        self.id: str = card["id"]
        self.name: str = card["name"]
        self._kind = kind
        self._features: _resolve.Features | None = None
        self._most: int | None = None

    @property
    def kind(self) -> tables.Kind:
        """The library that its tables are read with: the one that the table came from, or one that is installed."""
        return self._kind or tables.installed()

    @property
    def c(self) -> Columns:
        """The columns, for expressions with operators: (ds.c.delay > 15) & ~ds.c.origin.is_in(["SFO"])."""
        return Columns(self.card.columns)

    def up_to(self: D, questions: int) -> D:
        """The same holdout, whose next requests may cost so many questions each. Without it the server refuses a query that costs
        more than a tenth of the budget (TooDear), so that none takes it by accident."""
        other = copy.copy(self)
        other._most = questions
        return other

    def _resolved(self, query: Mapping[str, Any]) -> _wire.Steps[dict[str, Any]]:
        if self._features is None and self.card.public:
            self._features = _resolve.Features(self.id, self.kind)
        return (yield from _resolve.resolve(self._screened(query), self._features))

    def _asked(self, query: Mapping[str, Any]) -> _wire.Steps[Answer]:
        return (yield from _steps.ask(self.id, (yield from self._resolved(query)), self._most))

    def _batched(self, queries: Sequence[Mapping[str, Any]], partial: bool) -> _wire.Steps[list[Answer | NotAsked]]:
        resolved = []
        for q in queries:
            resolved.append((yield from self._resolved(q)))
        return (yield from _steps.batch(self.id, resolved, partial, self._most))

    def _explained(self, query: Mapping[str, Any]) -> _wire.Steps[Explanation]:
        return (yield from _steps.explain(self.id, (yield from self._resolved(query))))

    def _planned(self, questions: int | None, request: Mapping[str, Any]) -> _wire.Steps[dict[str, Any]]:
        sizes = {"n": self.card.units["holdout"], "training": self.card.units.get("training")}
        return (yield from _steps.plan({**sizes, "questions": questions or self.card.guarantee["questions"], **request}))

    def _screened(self, query: Mapping[str, Any]) -> Mapping[str, Any]:
        """The range of a screen that names none is that of all its features."""
        if query.get("type") != "screen" or query.get("range") is not None:
            return query
        return {**query, "range": self.card.range_of(query["features"])}

    def __repr__(self) -> str:
        return f"<holdout {self.name!r} {self.id}: {self.card.units['holdout']:,} units held out>"

    def _repr_html_(self) -> str:
        return self.card._repr_html_()


def settings_of(
    table: Any, parts: Mapping[str, Any], name: str | None, settings: Mapping[str, Any], progress: bool | None
) -> tuple[dict[str, Any], _steps.Progress | None]:
    """The upload's parameters, and what shows how much was sent."""
    if (table is None) == (not parts):
        raise TypeError("upload() takes a table, or the parts training= and holdout_part= of one that was split before")
    params = {"name": name, **settings}
    if parts:
        params["split"] = "given"
    shown = sys.stderr.isatty() if progress is None else progress
    return params, progress_of(name or "table") if shown else None


def progress_of(name: str) -> _steps.Progress:
    """A line on the error output that says how much was sent."""

    def show(sent: int, of: int | None) -> None:
        share = f" {100 * sent / of:3.0f}%" if of else ""
        end = "\n" if of and sent >= of else ""
        print(f"\ruploading {name}{share} {sent / 1e6:,.1f} MB", end=end, file=sys.stderr, flush=True)

    return show
