"""Figures with matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from ._view import History, Plan
    from .answers import Answer, Budget

VALUE, REFERENCE = "#1b6ca8", "#c2571a"  # told apart by every kind of sight, and by shape
MOST = 40  # answers of a plot, the newest: more cannot be read


def forest(history: History, budget: Budget | None = None, *, most: int = MOST) -> Any:
    """Every answer with its interval, the newest on top, one panel for each measure; what the training part says beside it, and
    what was spent."""
    groups: dict[str, list[Any]] = {}
    for past, answer in list(zip(history, history.answers(), strict=True))[-most:]:
        measure = past["measure"]
        points = [p for p in _points(past, answer) if None not in (p.value, p.low, p.high)][:most]
        if points:
            groups.setdefault(" · ".join([measure["kind"], *measure.get("of", [])]), []).extend(points)
    heights = [max(1.0, 0.32 * len(g) + 0.6) for g in groups.values()] + [1.6]
    figure, axes = plt.subplots(
        len(heights), 1, FigureClass=_Shown, figsize=(8, sum(heights) + 0.6), height_ratios=heights, layout="constrained", squeeze=False
    )
    for ax, (measure, rows) in zip(axes[:, 0], groups.items(), strict=False):
        parts: set[str] = set()
        for y, point in enumerate(rows):
            ax.hlines(y, point.low, point.high, color=VALUE, lw=2)
            ax.plot(point.value, y, "o", color=VALUE, ms=5, label="answer" if y == 0 else None)
            if point.reference is not None:
                label = None if point.part in parts else f"{point.part} part"
                ax.plot(point.reference, y, "|", color=REFERENCE, ms=15, mew=2, label=label)
                parts.add(point.part)
        ax.set_yticks(range(len(rows)), [point.name for point in rows], fontsize=8)
        ax.set_ylim(-0.7, len(rows) - 0.3)
        ax.set_xlabel(measure, fontsize=8)
        ax.grid(axis="x", alpha=0.3)
        ax.legend(fontsize=7, frameon=False, loc="best")
    _spent(axes[-1, 0], history, budget)
    confidence = history.card.guarantee["confidence"]
    figure.suptitle(f"{history.card.raw['name']}: intervals hold together at {100 * confidence:g}%", fontsize=10)
    return figure


class _Shown(Figure):
    """A figure that a notebook shows once. Its cells end with a picture of each open figure, and have one of their value, too."""

    def _ipython_display_(self) -> None:
        if "inline" not in plt.get_backend() or not plt.fignum_exists(getattr(self, "number", -1)):
            raise NotImplementedError  # then it is shown as any figure is


class _Point(NamedTuple):
    """One number of an answer, with what the rows say that the holdout is compared with."""

    name: str
    value: float
    low: float
    high: float
    reference: float | None
    part: str


def _points(past: Any, answer: Answer) -> list[_Point]:
    """The numbers of an answer: one, or each of its items."""
    reference = past.get("reference") or {}
    part = str(reference.get("part"))
    if not answer.items:
        return [_Point(_short(past), answer.value, answer.low, answer.high, reference.get("value"), part)]  # type: ignore[arg-type]
    known = {i["of"]: i.get("value") for i in reference.get("items") or ()}
    return [
        _Point(_cut(f"{item.of} · {_short(past)}"), item.value, item.low, item.high, known.get(item.of), part)  # type: ignore[arg-type]
        for item in answer.items
    ]


def _short(past: Any) -> str:
    query = past["canonical"]
    text = str(
        past.get("note") or " ".join([str(query["type"]), *(str(query[m]) for m in ("of", "label") if isinstance(query.get(m), str))])
    )
    if isinstance(query.get("where"), str) and not past.get("note"):
        text += f" where {query['where']}"
    return _cut(text)


def _cut(text: str) -> str:
    return text if len(text) <= 48 else text[:47] + "…"


def _spent(ax: Any, history: History, budget: Budget | None) -> None:
    total = 0
    left = [history.card.guarantee["questions"]]
    for answer in history.answers():
        total += answer.cost.questions
        left.append(left[0] - total)
    ax.step(range(len(left)), left, where="post", color=VALUE)
    ax.set_ylim(0, left[0] * 1.05)
    ax.set_xlabel("answers", fontsize=8)
    ax.set_ylabel("questions left", fontsize=8)
    if budget is not None and budget.tokens is not None:
        ax.set_title(f"tokens left: {budget.tokens}", fontsize=8, loc="right")
    ax.grid(alpha=0.3)


def plan(plan: Plan, ax: Any = None) -> Any:
    """The half-widths of all methods as bars, narrowest on top; the recommended one stands out."""
    if ax is None:
        _, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
    rows = [m for m in plan._rows() if m["half_width"] is not None][::-1]
    colors = [VALUE if m["method"] == plan.recommended else "#9db4c4" for m in rows]
    ax.barh([m["method"] for m in rows], [m["half_width"] for m in rows], color=colors)
    ax.axvline(0.5, color="#888", lw=1, ls=":")
    ax.set_xlabel("half-width of a share")
    ax.set_title(plan._head(), fontsize=9)
    return ax
