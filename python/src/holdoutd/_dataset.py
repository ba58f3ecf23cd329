"""What the synchronous and the asynchronous data set have in common."""

from __future__ import annotations

import copy
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from . import _resolve, _steps, _wire, tables
from ._questions import R
from ._scores import Questioned, Scores, reported
from ._view import Card
from .answers import Answer, Explanation, NotAsked
from .errors import HoldoutWarning, QueryInvalid
from .expressions import Columns
from .reports import Report, ReportPlan

if TYPE_CHECKING:
    from ._possible import CanScore

D = TypeVar("D", bound="Holdout[Any]")
T = TypeVar("T")


class Holdout(Scores[R]):
    """A holdout as its card shows it, and the steps of asking it."""

    def __init__(self, card: Mapping[str, Any], kind: tables.Kind | None = None):
        self.card = Card(card)
        self.id: str = card["id"]
        self.name: str = card["name"]
        self._kind = kind
        self._features: _resolve.Features | None = None
        self._some: _resolve.Training | None = None
        self._sent = _resolve.Sent()
        self._most: int | None = None
        self._told: set[tuple[Any, ...]] = set()

    @property
    def kind(self) -> tables.Kind:
        """The library that its tables are read with: the one that the table came from, or one that is installed."""
        return self._kind or tables.installed()

    @property
    def c(self) -> Columns:
        """The columns, for expressions with operators: (ds.c.delay > 15) & ~ds.c.origin.is_in(["SFO"])."""
        return Columns(self.card.columns)

    def can_score(self, estimator: Any, X: Any = None, y: Any = None) -> CanScore:
        """Whether score() could ask about a model of this kind, before you fit it. It asks nothing, and downloads no row of the table.

        A copy is fitted to a few rows and exported: to rows of X and y, or to made-up ones of the table's columns. Where the answer is
        no, its `why` says what else can be done. Where features are public nothing is fitted: of a fitted model, or a function, it is
        looked whether it predicts one label or number for each row, of X or of training rows that you have downloaded; of others the
        answer is yes, if it does.
        """
        from ._possible import can_score

        return can_score(self.card, estimator, X, y, self._some.rows if self._some else None)

    def up_to(self: D, questions: int) -> D:
        """The same holdout, whose next requests may cost so many questions each. Without it the server refuses a query that costs
        more than a tenth of the budget (TooDear), so that none takes it by accident."""
        other = copy.copy(self)
        other._most = questions
        return other

    def _resolved(self, query: Mapping[str, Any]) -> _wire.Steps[dict[str, Any]]:
        if self._features is None and self.card.public:
            self._features = _resolve.Features(self.id, self.kind)
        rows = None
        if next(_resolve.models_in(query), None) is not None:
            if self.card.raw.get("draft"):  # whose card does not tell how many rows there are
                _resolve.refuse_early(query, self.card)
                yield from _steps.explain(self.id, {"type": "count", "of": "true"})
                yield from self._looked()
            rows = yield from self._training.some(self.card)
        return (yield from _resolve.resolve((yield from self._screened(query)), self.card, rows, self._features))

    @property
    def _training(self) -> _resolve.Training:
        if self._some is None:
            self._some = _resolve.Training(self.id, self.kind)
        return self._some

    def _looked(self) -> _wire.Steps[None]:
        """With the first look a holdout is no draft any more, and its card has what a draft's leaves out."""
        if self.card.raw.get("draft"):
            self.card = Card((yield from _steps.get_card(self.id)))
            self._warn()

    def _warn(self) -> None:
        """Warns of what the card warns of, once, where the caller's own code is."""
        frame, level = sys._getframe(1), 2
        while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == __package__:
            frame, level = frame.f_back, level + 1
        for w in self.card.raw["warnings"]:
            about = (w["code"], w.get("unit"), w.get("column"))  # after the first look it may say more of the same
            if about not in self._told:
                self._told.add(about)
                warnings.warn(w["detail"], HoldoutWarning, stacklevel=level)

    def _asked(self, query: Mapping[str, Any]) -> _wire.Steps[Answer]:
        resolved = yield from self._resolved(query)
        answer = yield from self._sending(resolved, lambda q: _steps.ask(self.id, q, self._most))
        yield from self._looked()
        return answer

    def _sending(self, query: Any, send: Callable[[Any], _wire.Steps[T]]) -> _wire.Steps[T]:
        """Sends a query, or a list of them, in which long models are named."""
        try:
            return (yield from send((yield from self._sent.short(query))))
        except QueryInvalid as error:
            if not self._sent.are_gone(error):
                raise
        return (yield from send((yield from self._sent.short(query))))

    def _batched(self, queries: Sequence[Mapping[str, Any]], partial: bool) -> _wire.Steps[list[Answer | NotAsked]]:
        resolved = []
        for q in queries:
            resolved.append((yield from self._resolved(q)))
        answers = yield from self._sending(resolved, lambda q: _steps.batch(self.id, q, partial, self._most))
        yield from self._looked()
        return answers

    def _explained(self, query: Mapping[str, Any]) -> _wire.Steps[Explanation]:
        explanation = yield from self._sending((yield from self._resolved(query)), lambda q: _steps.explain(self.id, q))
        yield from self._looked()
        return explanation

    def _reported(
        self, questions: Questioned | None, metric: str, title: str, close: bool, columns: Any, texts: Any
    ) -> _wire.Steps[Report | ReportPlan]:
        if questions is None:
            if close or title:
                raise TypeError("report what? Give a list of questions or models, or a dict of them by name")
            return Report((yield from _steps.report(self.id)))
        resolved = []
        for q in reported(questions, metric, columns, texts):
            resolved.append((yield from self._resolved(q)))
        if not close:
            plan = ReportPlan((yield from self._sending(resolved, lambda q: _steps.plan_report(self.id, q))))
            yield from self._looked()
            return plan
        made = Report((yield from self._sending(resolved, lambda q: _steps.close(self.id, q, title))))
        self.card = Card((yield from _steps.get_card(self.id)))
        return made

    def _downloaded(self, what: str, save_to: Path | None = None) -> _wire.Steps[bytes]:
        content = yield from _steps.download(self.id, what, save_to)
        yield from self._looked()
        return content

    def _planned(self, questions: int | None, request: Mapping[str, Any]) -> _wire.Steps[dict[str, Any]]:
        sizes = {"n": self.card.guarantee["n"], "training": self.card.guarantee.get("training")}
        return (yield from _steps.plan({**sizes, "questions": questions or self.card.guarantee["questions"], **request}))

    def _screened(self, query: Mapping[str, Any]) -> _wire.Steps[Mapping[str, Any]]:
        """The range of a screen that names none is that of all its features. The card of a draft does not tell it: one look does."""
        if query.get("type") != "screen" or query.get("range") is not None:
            return query
        if self.card.raw.get("draft"):
            yield from _steps.explain(self.id, {"type": "count", "of": "true"})
            yield from self._looked()
        return {**query, "range": self.card.range_of(query["features"])}

    def __repr__(self) -> str:
        return f"<holdout {self.name!r} {self.id}: {self.card.guarantee['n']:,} units held out>"

    def _repr_html_(self) -> str:
        return self.card._repr_html_()


def settings_of(
    table: Any, parts: Mapping[str, Any], name: str | None, settings: Mapping[str, Any], progress: bool | None
) -> tuple[dict[str, Any], _steps.Progress | None]:
    """The upload's parameters, and what shows how much was sent."""
    if (table is not None) + bool(parts) + (settings.get("path") is not None) != 1:
        raise TypeError(
            "upload() takes a table, or path= of one that is there, or the parts training_part= and holdout_part= of one that was split"
        )
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
