"""One method for each query type of the server. Made by internal/clientgen from api/openapi.json; do not edit.

To make it anew: make generate
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Generic, Literal, TypeVar, Union

from .expressions import Expression

Expr = Union[str, Expression]
"""A row expression: CEL as text, or made with the operators of `ds.c`."""

Query = Mapping[str, Any]
"""One query, as `holdoutd.q` makes it, or a plain dict as docs/QUERIES.md has it."""

Model = Any
"""A fitted estimator, which is exported, or the JSON object of a model, as holdoutd.models.export makes it."""

R = TypeVar("R", covariant=True)

TYPES = (
    "mean",
    "fraction",
    "count",
    "sum",
    "screen",
    "variance",
    "stddev",
    "covariance",
    "correlation",
    "kendall",
    "quantile",
    "median",
    "histogram",
    "frequencies",
    "groups",
    "compare",
    "argmax",
    "passes",
    "difference",
    "test",
    "accuracy",
    "balanced_accuracy",
    "precision",
    "recall",
    "f1",
    "loss",
    "rmse",
    "r2",
    "auc",
    "calibration",
    "confusion",
    "gradient",
)


class Questions(ABC, Generic[R]):
    """The questions that a holdout answers. What a call gives is the subclass's to say."""

    @abstractmethod
    def _ask(self, query: dict[str, Any]) -> R: ...

    def mean(
        self,
        of: Expr,
        *,
        range: tuple[float, float] | Sequence[float],
        guess: float | None = None,
        half_width: float | None = None,
        measure: bool | None = None,
        note: str | None = None,
        null: float | Literal["skip"] | None = None,
        promise: Mapping[str, Any] | None = None,
        weight: Literal["unit", "row"] | None = None,
        weights: Mapping[str, Any] | None = None,
        where: Expr | None = None,
    ) -> R:
        r"""The mean of a number, clamped to a range. With where it is that of the rows for which the condition holds.

        Price in questions: 1; under gaussian 1, with where 2.

        Args:
            of: the number to average: a row expression
            range: [low, high]: values are clamped to it; the narrower it is, the narrower the interval
            guess: under guess_and_check: your own guess of the answer; default: the answer on the check part where a
                model or predictions are asked about, else on the training and the check part together
            half_width: under guess_and_check: the half-width that you want, if your guess passes or the answer is
                measured; default: planned by the server
            measure: under guess_and_check: true to be told where the holdout is, whatever was guessed: a narrow
                interval, for a token and a fortieth of all questions, rounded up. Of means and shares, also under a
                condition. false to have a guess checked. Default: measured where only that reaches your half_width, or
                where the guess would be a model's score (not the difference of two) on rows that it may have been
                fitted to, while less than half of the tokens are spent; else checked
            note: a remark of your own; it is kept in your history and does not change the query
            null: what a null value counts as; default: the low end of the range. "skip" leaves rows with a null out: it
                is the same question as with where: x != null, at its price
            promise: under gaussian: a bound that the holdout keeps, as you know; it is checked exactly. If it is true,
                the interval is narrower: the tighter the bound, the narrower. If it is false, it costs a token, and the
                interval is the usual one. One of at_most, at_least (the answer itself), disagreement (of a compare of 0
                or 1: the share of rows that differ; else the mean distance from 0 of values whose range is symmetric),
                variance (of the values over the units); default: what explain says
            weight: what has one vote: unit or row; default: unit. With row every row counts once, but no unit counts
                for more than largest_unit rows, which is on the card. Where units have several rows, under gaussian it
                costs one more question: "unit", "row"; default: unit
            weights: {"of": a number, "range": [low, high]}: a weight for each row, clamped to the range, which must not
                be negative. The answer is E[weight·value]/E[weight], and costs two questions under gaussian. The
                interval is wide if the high end is much larger than the mean weight
            where: a condition: only rows for which it holds count; under gaussian it costs one more question
        """
        return self._ask(
            {
                "type": "mean",
                "of": of,
                "range": range,
                "guess": guess,
                "half_width": half_width,
                "measure": measure,
                "note": note,
                "null": null,
                "promise": promise,
                "weight": weight,
                "weights": weights,
                "where": where,
            }
        )

    def fraction(
        self,
        of: Expr,
        *,
        guess: float | None = None,
        half_width: float | None = None,
        measure: bool | None = None,
        note: str | None = None,
        null: Literal["skip"] | None = None,
        promise: Mapping[str, Any] | None = None,
        weight: Literal["unit", "row"] | None = None,
        where: Expr | None = None,
    ) -> R:
        r"""The share of rows for which a condition holds. With where it is the share among the rows for which that
        condition holds.

        Price in questions: 1; under gaussian 1, with where 2.

        Args:
            of: the condition: a row expression
            guess: under guess_and_check: your own guess of the answer; default: the answer on the check part where a
                model or predictions are asked about, else on the training and the check part together
            half_width: under guess_and_check: the half-width that you want, if your guess passes or the answer is
                measured; default: planned by the server
            measure: under guess_and_check: true to be told where the holdout is, whatever was guessed: a narrow
                interval, for a token and a fortieth of all questions, rounded up. Of means and shares, also under a
                condition. false to have a guess checked. Default: measured where only that reaches your half_width, or
                where the guess would be a model's score (not the difference of two) on rows that it may have been
                fitted to, while less than half of the tokens are spent; else checked
            note: a remark of your own; it is kept in your history and does not change the query
            null: "skip" leaves out rows in which a value is null that is compared; default: such a comparison does not
                hold. It is the same question as with where: x != null, at its price: "skip"
            promise: under gaussian: a bound that the holdout keeps, as you know; it is checked exactly. If it is true,
                the interval is narrower: the tighter the bound, the narrower. If it is false, it costs a token, and the
                interval is the usual one. One of at_most, at_least (the answer itself), disagreement (of a compare of 0
                or 1: the share of rows that differ; else the mean distance from 0 of values whose range is symmetric),
                variance (of the values over the units); default: what explain says
            weight: what has one vote: unit or row; default: unit. With row every row counts once, but no unit counts
                for more than largest_unit rows, which is on the card. Where units have several rows, under gaussian it
                costs one more question: "unit", "row"; default: unit
            where: a condition: only rows for which it holds count; under gaussian it costs one more question
        """
        return self._ask(
            {
                "type": "fraction",
                "of": of,
                "guess": guess,
                "half_width": half_width,
                "measure": measure,
                "note": note,
                "null": null,
                "promise": promise,
                "weight": weight,
                "where": where,
            }
        )

    def count(
        self,
        of: Expr | None = None,
        *,
        guess: float | None = None,
        half_width: float | None = None,
        measure: bool | None = None,
        note: str | None = None,
        promise: Mapping[str, Any] | None = None,
        where: Expr | None = None,
    ) -> R:
        r"""The number of holdout rows for which a condition holds: the fraction times the number of the holdout's rows,
        which is public. Where units have several rows, every row has one vote, but no unit has more than the card's
        largest_unit.

        Price in questions: 1; under gaussian 1, where units have several rows 2.

        Args:
            of: the condition: a row expression
            guess: under guess_and_check: your own guess of the answer; default: the answer on the check part where a
                model or predictions are asked about, else on the training and the check part together
            half_width: under guess_and_check: the half-width that you want, if your guess passes or the answer is
                measured; default: planned by the server
            measure: under guess_and_check: true to be told where the holdout is, whatever was guessed: a narrow
                interval, for a token and a fortieth of all questions, rounded up. Of means and shares, also under a
                condition. false to have a guess checked. Default: measured where only that reaches your half_width, or
                where the guess would be a model's score (not the difference of two) on rows that it may have been
                fitted to, while less than half of the tokens are spent; else checked
            note: a remark of your own; it is kept in your history and does not change the query
            promise: under gaussian: a bound that the holdout keeps, as you know; it is checked exactly. If it is true,
                the interval is narrower: the tighter the bound, the narrower. If it is false, it costs a token, and the
                interval is the usual one. One of at_most, at_least (the answer itself), disagreement (of a compare of 0
                or 1: the share of rows that differ; else the mean distance from 0 of values whose range is symmetric),
                variance (of the values over the units); default: what explain says
            where: a condition that must hold as well; it can stand without of; costs nothing more
        """
        return self._ask(
            {
                "type": "count",
                "of": of,
                "guess": guess,
                "half_width": half_width,
                "measure": measure,
                "note": note,
                "promise": promise,
                "where": where,
            }
        )

    def sum(
        self,
        of: Expr,
        *,
        range: tuple[float, float] | Sequence[float],
        guess: float | None = None,
        half_width: float | None = None,
        measure: bool | None = None,
        note: str | None = None,
        promise: Mapping[str, Any] | None = None,
        where: Expr | None = None,
    ) -> R:
        r"""The sum of a number over the rows of the holdout, each value clamped to a range. Nulls, and rows for which
        where does not hold, add nothing. It is the mean times the number of the holdout's rows, which is public. Where
        units have several rows, every row has one vote, but no unit has more than the card's largest_unit.

        Price in questions: 1; under gaussian 1, where units have several rows 2.

        Args:
            of: the number to add up: a row expression
            range: [low, high]: values are clamped to it
            guess: under guess_and_check: your own guess of the answer; default: the answer on the check part where a
                model or predictions are asked about, else on the training and the check part together
            half_width: under guess_and_check: the half-width that you want, if your guess passes or the answer is
                measured; default: planned by the server
            measure: under guess_and_check: true to be told where the holdout is, whatever was guessed: a narrow
                interval, for a token and a fortieth of all questions, rounded up. Of means and shares, also under a
                condition. false to have a guess checked. Default: measured where only that reaches your half_width, or
                where the guess would be a model's score (not the difference of two) on rows that it may have been
                fitted to, while less than half of the tokens are spent; else checked
            note: a remark of your own; it is kept in your history and does not change the query
            promise: under gaussian: a bound that the holdout keeps, as you know; it is checked exactly. If it is true,
                the interval is narrower: the tighter the bound, the narrower. If it is false, it costs a token, and the
                interval is the usual one. One of at_most, at_least (the answer itself), disagreement (of a compare of 0
                or 1: the share of rows that differ; else the mean distance from 0 of values whose range is symmetric),
                variance (of the values over the units); default: what explain says
            where: a condition: other rows add nothing; costs nothing more
        """
        return self._ask(
            {
                "type": "sum",
                "of": of,
                "range": range,
                "guess": guess,
                "half_width": half_width,
                "measure": measure,
                "note": note,
                "promise": promise,
                "where": where,
            }
        )

    def screen(
        self,
        label: Expr | None = None,
        *,
        features: str | Sequence[str],
        range: tuple[float, float] | Sequence[float],
        clip: float | None = None,
        note: str | None = None,
        range_label: tuple[float, float] | Sequence[float] | None = None,
        statistic: Literal["correlation", "product"] | None = None,
    ) -> R:
        r"""Many features against one label in one request: for each feature the correlation, or the mean product. Only
        features for which training part and holdout disagree take tokens. Features for which none are left are null and
        cost nothing.

        Price in questions: 1 a feature.

        Args:
            label: what the features are compared with: a number, or a condition or a column of 0 and 1, which count as
                1 and -1; default: the holdout's label, which the canonical form then names
            features: a list of number columns; or a pattern of column names, with * and ?, for all number columns that
                match and are not part of the label
            range: [low, high]: features are clamped to it
            clip: of correlation: the product of the z-scores is clamped to ±clip, in [1e-6, 1e6]; the interval is
                proportional to clip; default: 3
            note: a remark of your own; it is kept in your history and does not change the query
            range_label: [low, high] of a label that is another number
            statistic: correlation: the mean product of z-scores, with means and standard deviations of the training
                part; product: the mean product of feature and label; default: correlation: "correlation", "product";
                default: correlation
        """
        return self._ask(
            {
                "type": "screen",
                "label": label,
                "features": features,
                "range": range,
                "clip": clip,
                "note": note,
                "range_label": range_label,
                "statistic": statistic,
            }
        )

    def variance(
        self,
        of: Expr,
        *,
        range: tuple[float, float] | Sequence[float],
        ddof: Literal[0, 1] | None = None,
        guess: float | None = None,
        half_width: float | None = None,
        measure: bool | None = None,
        note: str | None = None,
        null: float | Literal["skip"] | None = None,
        weight: Literal["unit", "row"] | None = None,
        where: Expr | None = None,
    ) -> R:
        r"""The variance of a number, clamped to a range. It is E[(x-c)²] - (E[x]-c)² about a public center c: the
        training part's mean, or without one the middle of the range. The center changes the interval, and not the
        target.

        Price in questions: 1; under gaussian 2, with where 3.

        Args:
            of: the number: a row expression
            range: [low, high]: values are clamped to it; the narrower it is, the narrower the interval
            ddof: 1 divides by the number of units minus 1. The interval is about the population, where the two are the
                same: 0, 1; default: 0
            guess: under guess_and_check: your own guess of the answer; default: the answer on the check part where a
                model or predictions are asked about, else on the training and the check part together
            half_width: under guess_and_check: the half-width that you want, if your guess passes or the answer is
                measured; default: planned by the server
            measure: under guess_and_check: true to be told where the holdout is, whatever was guessed: a narrow
                interval, for a token and a fortieth of all questions, rounded up. Of means and shares, also under a
                condition. false to have a guess checked. Default: measured where only that reaches your half_width, or
                where the guess would be a model's score (not the difference of two) on rows that it may have been
                fitted to, while less than half of the tokens are spent; else checked
            note: a remark of your own; it is kept in your history and does not change the query
            null: what a null value counts as; default: the low end of the range. "skip" leaves rows with a null out: it
                is the same question as with where: x != null, at its price
            weight: what has one vote: unit or row; default: unit. With row every row counts once, but no unit counts
                for more than largest_unit rows, which is on the card. Where units have several rows, under gaussian it
                costs one more question: "unit", "row"; default: unit
            where: a condition: only rows for which it holds count; under gaussian it costs one more question
        """
        return self._ask(
            {
                "type": "variance",
                "of": of,
                "range": range,
                "ddof": ddof,
                "guess": guess,
                "half_width": half_width,
                "measure": measure,
                "note": note,
                "null": null,
                "weight": weight,
                "where": where,
            }
        )

    def stddev(
        self,
        of: Expr,
        *,
        range: tuple[float, float] | Sequence[float],
        ddof: Literal[0, 1] | None = None,
        guess: float | None = None,
        half_width: float | None = None,
        measure: bool | None = None,
        note: str | None = None,
        null: float | Literal["skip"] | None = None,
        weight: Literal["unit", "row"] | None = None,
        where: Expr | None = None,
    ) -> R:
        r"""The standard deviation of a number, clamped to a range: the square root of its variance.

        Price in questions: 1; under gaussian 2, with where 3.

        Args:
            of: the number: a row expression
            range: [low, high]: values are clamped to it; the narrower it is, the narrower the interval
            ddof: 1 divides by the number of units minus 1. The interval is about the population, where the two are the
                same: 0, 1; default: 0
            guess: under guess_and_check: your own guess of the answer; default: the answer on the check part where a
                model or predictions are asked about, else on the training and the check part together
            half_width: under guess_and_check: the half-width that you want, if your guess passes or the answer is
                measured; default: planned by the server
            measure: under guess_and_check: true to be told where the holdout is, whatever was guessed: a narrow
                interval, for a token and a fortieth of all questions, rounded up. Of means and shares, also under a
                condition. false to have a guess checked. Default: measured where only that reaches your half_width, or
                where the guess would be a model's score (not the difference of two) on rows that it may have been
                fitted to, while less than half of the tokens are spent; else checked
            note: a remark of your own; it is kept in your history and does not change the query
            null: what a null value counts as; default: the low end of the range. "skip" leaves rows with a null out: it
                is the same question as with where: x != null, at its price
            weight: what has one vote: unit or row; default: unit. With row every row counts once, but no unit counts
                for more than largest_unit rows, which is on the card. Where units have several rows, under gaussian it
                costs one more question: "unit", "row"; default: unit
            where: a condition: only rows for which it holds count; under gaussian it costs one more question
        """
        return self._ask(
            {
                "type": "stddev",
                "of": of,
                "range": range,
                "ddof": ddof,
                "guess": guess,
                "half_width": half_width,
                "measure": measure,
                "note": note,
                "null": null,
                "weight": weight,
                "where": where,
            }
        )

    def covariance(
        self,
        x: Expr,
        y: Expr,
        *,
        range_x: tuple[float, float] | Sequence[float],
        range_y: tuple[float, float] | Sequence[float],
        center_x: float | None = None,
        center_y: float | None = None,
        clip: float | None = None,
        form: Literal["clipped", "exact"] | None = None,
        guess: float | None = None,
        half_width: float | None = None,
        measure: bool | None = None,
        note: str | None = None,
        null: Literal["skip"] | None = None,
        promise: Mapping[str, Any] | None = None,
        scale_x: float | None = None,
        scale_y: float | None = None,
        weight: Literal["unit", "row"] | None = None,
        where: Expr | None = None,
    ) -> R:
        r"""The covariance of two numbers, clamped to ranges. The form clipped is the mean of the product of the
        z-scores of x and y, clamped to ±clip. Their centers and scales are the training part's, or declared. Its
        interval is about the clamped mean, which is nearer to 0: .449 where Pearson's is .5. A clipped answer is the
        mean times the scales. The form exact is E[xy] - E[x]E[y], about public centers.

        Price in questions: 1; under gaussian clipped 1, with where 2; exact 3, with where 4.

        Args:
            x: one number: a row expression
            y: the other number: a row expression
            range_x: [low, high]: values of x are clamped to it
            range_y: [low, high]: values of y are clamped to it
            center_x: what is subtracted from x; default: the training part's mean
            center_y: what is subtracted from y; default: the training part's mean
            clip: the product of the z-scores is clamped to ±clip, in [1e-6, 1e6]; the interval is proportional to clip;
                default: 3
            form: clipped: the mean of clipped products; exact: from all moments; default: clipped where clip, a center
                or a scale is named; else exact where that is one question, and clipped elsewhere: "clipped", "exact"
            guess: under guess_and_check: your own guess of the answer; default: the answer on the check part where a
                model or predictions are asked about, else on the training and the check part together
            half_width: under guess_and_check: the half-width that you want, if your guess passes or the answer is
                measured; default: planned by the server
            measure: under guess_and_check: true to be told where the holdout is, whatever was guessed: a narrow
                interval, for a token and a fortieth of all questions, rounded up. Of means and shares, also under a
                condition. false to have a guess checked. Default: measured where only that reaches your half_width, or
                where the guess would be a model's score (not the difference of two) on rows that it may have been
                fitted to, while less than half of the tokens are spent; else checked
            note: a remark of your own; it is kept in your history and does not change the query
            null: "skip" leaves out rows in which x or y is null. It is the same question as with where: x != null && y
                != null, at its price: "skip"
            promise: under gaussian: a bound that the holdout keeps, as you know; it is checked exactly. If it is true,
                the interval is narrower: the tighter the bound, the narrower. If it is false, it costs a token, and the
                interval is the usual one. One of at_most, at_least (the answer itself), disagreement (of a compare of 0
                or 1: the share of rows that differ; else the mean distance from 0 of values whose range is symmetric),
                variance (of the values over the units); default: what explain says
            scale_x: what x is divided by; default: the training part's standard deviation
            scale_y: what y is divided by; default: the training part's standard deviation
            weight: what has one vote: unit or row; default: unit. With row every row counts once, but no unit counts
                for more than largest_unit rows, which is on the card. Where units have several rows, under gaussian it
                costs one more question: "unit", "row"; default: unit
            where: a condition: only rows for which it holds count; under gaussian it costs one more question
        """
        return self._ask(
            {
                "type": "covariance",
                "x": x,
                "y": y,
                "range_x": range_x,
                "range_y": range_y,
                "center_x": center_x,
                "center_y": center_y,
                "clip": clip,
                "form": form,
                "guess": guess,
                "half_width": half_width,
                "measure": measure,
                "note": note,
                "null": null,
                "promise": promise,
                "scale_x": scale_x,
                "scale_y": scale_y,
                "weight": weight,
                "where": where,
            }
        )

    def correlation(
        self,
        x: Expr,
        y: Expr,
        *,
        range_x: tuple[float, float] | Sequence[float],
        range_y: tuple[float, float] | Sequence[float],
        center_x: float | None = None,
        center_y: float | None = None,
        clip: float | None = None,
        form: Literal["clipped", "exact"] | None = None,
        guess: float | None = None,
        half_width: float | None = None,
        measure: bool | None = None,
        note: str | None = None,
        null: Literal["skip"] | None = None,
        promise: Mapping[str, Any] | None = None,
        scale_x: float | None = None,
        scale_y: float | None = None,
        weight: Literal["unit", "row"] | None = None,
        where: Expr | None = None,
    ) -> R:
        r"""The correlation of two numbers, clamped to ranges. The form clipped is the mean of the product of the
        z-scores of x and y, clamped to ±clip. Their centers and scales are the training part's, or declared. Its
        interval is about the clamped mean, which is nearer to 0: .449 where Pearson's is .5. The form exact is
        Pearson's correlation; its interval is the narrower, the stronger the correlation is.

        Price in questions: 1; under gaussian clipped 1, with where 2; exact 5, with where 6.

        Args:
            x: one number: a row expression
            y: the other number: a row expression
            range_x: [low, high]: values of x are clamped to it
            range_y: [low, high]: values of y are clamped to it
            center_x: what is subtracted from x; default: the training part's mean
            center_y: what is subtracted from y; default: the training part's mean
            clip: the product of the z-scores is clamped to ±clip, in [1e-6, 1e6]; the interval is proportional to clip;
                default: 3
            form: clipped: the mean of clipped products; exact: from all moments; default: clipped where clip, a center
                or a scale is named; else exact where that is one question, and clipped elsewhere: "clipped", "exact"
            guess: under guess_and_check: your own guess of the answer; default: the answer on the check part where a
                model or predictions are asked about, else on the training and the check part together
            half_width: under guess_and_check: the half-width that you want, if your guess passes or the answer is
                measured; default: planned by the server
            measure: under guess_and_check: true to be told where the holdout is, whatever was guessed: a narrow
                interval, for a token and a fortieth of all questions, rounded up. Of means and shares, also under a
                condition. false to have a guess checked. Default: measured where only that reaches your half_width, or
                where the guess would be a model's score (not the difference of two) on rows that it may have been
                fitted to, while less than half of the tokens are spent; else checked
            note: a remark of your own; it is kept in your history and does not change the query
            null: "skip" leaves out rows in which x or y is null. It is the same question as with where: x != null && y
                != null, at its price: "skip"
            promise: under gaussian: a bound that the holdout keeps, as you know; it is checked exactly. If it is true,
                the interval is narrower: the tighter the bound, the narrower. If it is false, it costs a token, and the
                interval is the usual one. One of at_most, at_least (the answer itself), disagreement (of a compare of 0
                or 1: the share of rows that differ; else the mean distance from 0 of values whose range is symmetric),
                variance (of the values over the units); default: what explain says
            scale_x: what x is divided by; default: the training part's standard deviation
            scale_y: what y is divided by; default: the training part's standard deviation
            weight: what has one vote: unit or row; default: unit. With row every row counts once, but no unit counts
                for more than largest_unit rows, which is on the card. Where units have several rows, under gaussian it
                costs one more question: "unit", "row"; default: unit
            where: a condition: only rows for which it holds count; under gaussian it costs one more question
        """
        return self._ask(
            {
                "type": "correlation",
                "x": x,
                "y": y,
                "range_x": range_x,
                "range_y": range_y,
                "center_x": center_x,
                "center_y": center_y,
                "clip": clip,
                "form": form,
                "guess": guess,
                "half_width": half_width,
                "measure": measure,
                "note": note,
                "null": null,
                "promise": promise,
                "scale_x": scale_x,
                "scale_y": scale_y,
                "weight": weight,
                "where": where,
            }
        )

    def kendall(
        self,
        x: Expr,
        y: Expr,
        *,
        bins: float | None = None,
        edges_x: Sequence[float] | None = None,
        edges_y: Sequence[float] | None = None,
        guess: float | None = None,
        half_width: float | None = None,
        measure: bool | None = None,
        note: str | None = None,
        null: Literal["skip"] | None = None,
        where: Expr | None = None,
    ) -> R:
        r"""Kendall's tau of two numbers that are counted in bins: how much more probable it is that of two rows the one
        with the higher x has the higher y than that it has the lower one. Ties count as neither (tau_a), so it is
        nearer to 0 than tau_b. Edges of bins are declared, or are quantiles in the training part.

        Price in questions: 1 where a unit is one row, else refused; under gaussian 1 with rounds=1, where a unit is one
        row, else refused.

        Args:
            x: one number: a row expression
            y: the other number: a row expression
            bins: how many bins to make of the training part's values, where edges are not declared, 2 to 64; default:
                32; default: 32
            edges_x: the edges of the bins of x: 1 to 63 rising numbers; a bin is (e, e'] for neighbours
            edges_y: the same of y
            guess: under guess_and_check: your own guess of the answer; default: the answer on the check part where a
                model or predictions are asked about, else on the training and the check part together
            half_width: under guess_and_check: the half-width that you want, if your guess passes or the answer is
                measured; default: planned by the server
            measure: under guess_and_check: true to be told where the holdout is, whatever was guessed: a narrow
                interval, for a token and a fortieth of all questions, rounded up. Of means and shares, also under a
                condition. false to have a guess checked. Default: measured where only that reaches your half_width, or
                where the guess would be a model's score (not the difference of two) on rows that it may have been
                fitted to, while less than half of the tokens are spent; else checked
            note: a remark of your own; it is kept in your history and does not change the query
            null: "skip" leaves out rows in which x or y is null. It is the same question as with where: x != null && y
                != null, at its price: "skip"
            where: a condition: only rows for which it holds count; costs nothing more
        """
        return self._ask(
            {
                "type": "kendall",
                "x": x,
                "y": y,
                "bins": bins,
                "edges_x": edges_x,
                "edges_y": edges_y,
                "guess": guess,
                "half_width": half_width,
                "measure": measure,
                "note": note,
                "null": null,
                "where": where,
            }
        )

    def quantile(
        self,
        of: Expr,
        *,
        p: float,
        range: tuple[float, float] | Sequence[float],
        guess: float | None = None,
        half_width: float | None = None,
        measure: bool | None = None,
        note: str | None = None,
        null: float | Literal["skip"] | None = None,
        resolution: float | None = None,
        where: Expr | None = None,
    ) -> R:
        r"""The p-quantile of a number, clamped to a range: the least x with P(number <= x) >= p, up to a resolution.
        Where it is one question, the numbers of rows below each step of the resolution are compared with what the
        training part foresees. Elsewhere, and in a test, it is a search, which costs a question a step: log2(1 + (high
        - low)/resolution), rounded up, or 10.

        Price in questions: 1; under gaussian 10; 1 with rounds=1.

        Args:
            of: the number: a row expression
            p: more than 0 and less than 1. For example 0.9: nine in ten rows do not exceed the answer
            range: [low, high]: values are clamped to it, and the search is within it
            guess: under guess_and_check: your own guess of the answer; default: the answer on the check part where a
                model or predictions are asked about, else on the training and the check part together
            half_width: under guess_and_check: the half-width that you want, if your guess passes or the answer is
                measured; default: planned by the server
            measure: under guess_and_check: true to be told where the holdout is, whatever was guessed: a narrow
                interval, for a token and a fortieth of all questions, rounded up. Of means and shares, also under a
                condition. false to have a guess checked. Default: measured where only that reaches your half_width, or
                where the guess would be a model's score (not the difference of two) on rows that it may have been
                fitted to, while less than half of the tokens are spent; else checked
            note: a remark of your own; it is kept in your history and does not change the query
            null: what a null value counts as; default: the low end of the range. "skip" leaves rows with a null out: it
                is the same question as with where: x != null, at its price
            resolution: the answer is one of low, low + resolution, low + 2·resolution, …, high; default: a 1023rd of
                the range. Half the resolution narrows the interval; in a search it costs one more question
            where: a condition: only rows for which it holds count; costs nothing more
        """
        return self._ask(
            {
                "type": "quantile",
                "of": of,
                "p": p,
                "range": range,
                "guess": guess,
                "half_width": half_width,
                "measure": measure,
                "note": note,
                "null": null,
                "resolution": resolution,
                "where": where,
            }
        )

    def median(
        self,
        of: Expr,
        *,
        range: tuple[float, float] | Sequence[float],
        guess: float | None = None,
        half_width: float | None = None,
        measure: bool | None = None,
        note: str | None = None,
        null: float | Literal["skip"] | None = None,
        resolution: float | None = None,
        where: Expr | None = None,
    ) -> R:
        r"""The median of a number, clamped to a range: its quantile at p = 1/2. Where it is one question, the numbers
        of rows below each step of the resolution are compared with what the training part foresees. Elsewhere, and in a
        test, it is a search, which costs a question a step: log2(1 + (high - low)/resolution), rounded up, or 10.

        Price in questions: 1; under gaussian 10; 1 with rounds=1.

        Args:
            of: the number: a row expression
            range: [low, high]: values are clamped to it, and the search is within it
            guess: under guess_and_check: your own guess of the answer; default: the answer on the check part where a
                model or predictions are asked about, else on the training and the check part together
            half_width: under guess_and_check: the half-width that you want, if your guess passes or the answer is
                measured; default: planned by the server
            measure: under guess_and_check: true to be told where the holdout is, whatever was guessed: a narrow
                interval, for a token and a fortieth of all questions, rounded up. Of means and shares, also under a
                condition. false to have a guess checked. Default: measured where only that reaches your half_width, or
                where the guess would be a model's score (not the difference of two) on rows that it may have been
                fitted to, while less than half of the tokens are spent; else checked
            note: a remark of your own; it is kept in your history and does not change the query
            null: what a null value counts as; default: the low end of the range. "skip" leaves rows with a null out: it
                is the same question as with where: x != null, at its price
            resolution: the answer is one of low, low + resolution, low + 2·resolution, …, high; default: a 1023rd of
                the range. Half the resolution narrows the interval; in a search it costs one more question
            where: a condition: only rows for which it holds count; costs nothing more
        """
        return self._ask(
            {
                "type": "median",
                "of": of,
                "range": range,
                "guess": guess,
                "half_width": half_width,
                "measure": measure,
                "note": note,
                "null": null,
                "resolution": resolution,
                "where": where,
            }
        )

    def histogram(
        self,
        of: Expr,
        *,
        edges: Sequence[float],
        guess: Mapping[str, float] | None = None,
        note: str | None = None,
        where: Expr | None = None,
    ) -> R:
        r"""The shares of rows whose number lies between edges: in [a, b) for neighbours a < b, in [a, b] for the last
        two; and the shares below, above and null. All shares are one vector, whose noise does not grow with their
        number. With where they are shares of the rows for which the condition holds. Shares for which no tokens are
        left are null.

        Price in questions: 1 a share; under gaussian at most 4.

        Args:
            of: the number: a row expression
            edges: rising numbers, 2 to 1001 of them
            guess: under guess_and_check: your own guesses of some of the answer's items, by their names; default: what
                the check part says where a model or predictions are asked about, else the training and the check part
                together
            note: a remark of your own; it is kept in your history and does not change the query
            where: a condition: only rows for which it holds count; under gaussian it costs at most one more question
        """
        return self._ask(
            {
                "type": "histogram",
                "of": of,
                "edges": edges,
                "guess": guess,
                "note": note,
                "where": where,
            }
        )

    def frequencies(
        self,
        of: Expr,
        *,
        guess: Mapping[str, float] | None = None,
        note: str | None = None,
        values: Sequence[str] | None = None,
        where: Expr | None = None,
    ) -> R:
        r"""The shares of rows that have each category of a text column, and of rows that have another value or none.
        The categories are declared or the training part's, never the holdout's. All shares are one vector, whose noise
        does not grow with their number. With where they are shares of the rows for which the condition holds. Shares
        for which no tokens are left are null.

        Price in questions: 1 a share; under gaussian at most 4.

        Args:
            of: a text column
            guess: under guess_and_check: your own guesses of some of the answer's items, by their names; default: what
                the check part says where a model or predictions are asked about, else the training and the check part
                together
            note: a remark of your own; it is kept in your history and does not change the query
            values: the categories, as a list of texts; default: the 100 most frequent values of the training part. All
                other values are one category, other
            where: a condition: only rows for which it holds count; under gaussian it costs at most one more question
        """
        return self._ask(
            {
                "type": "frequencies",
                "of": of,
                "guess": guess,
                "note": note,
                "values": values,
                "where": where,
            }
        )

    def groups(
        self,
        of: Expr,
        *,
        by: Expr,
        edges: Sequence[float] | None = None,
        guess: Mapping[str, float] | None = None,
        note: str | None = None,
        null: float | Literal["skip"] | None = None,
        range: tuple[float, float] | Sequence[float] | None = None,
        values: Sequence[str] | Sequence[float] | None = None,
        where: Expr | None = None,
    ) -> R:
        r"""The mean of a number, clamped to a range, or the fraction of a condition, in each group of rows, and in all
        other rows together. Groups are the categories of a text column, values or ranges of a number, or whether a
        condition holds; they are declared or the training part's. The groups other and null are left out where public
        facts exclude them. Groups for which no tokens are left are null. Under guess_and_check a group with too few
        rows to compare with is null, too, and needs no token.

        Price in questions: 1 a group; under gaussian 4.

        Args:
            of: the number to average, or a condition: a row expression
            by: what makes the groups: a text column, a number or a condition. Items are named by the text, the number
                or the range; by true and false; and by other and null
            edges: by a number: rising numbers, 2 to 1001 of them. Groups are [a, b) for neighbours, the last one [a,
                b], and what is below, above and null
            guess: under guess_and_check: your own guesses of some of the answer's items, by their names; default: what
                the check part says where a model or predictions are asked about, else the training and the check part
                together
            note: a remark of your own; it is kept in your history and does not change the query
            null: what a null value counts as; default: the low end of the range. "skip" leaves rows with a null out: it
                is the same question as with where: x != null, at its price
            range: [low, high] of a number: values are clamped to it; a condition has none
            values: by a text or a number: the values, as a list; default: those of the column in the training part, at
                most the 100 most frequent. All other values are one group, other
            where: a condition: only rows for which it holds count; costs nothing more
        """
        return self._ask(
            {
                "type": "groups",
                "of": of,
                "by": by,
                "edges": edges,
                "guess": guess,
                "note": note,
                "null": null,
                "range": range,
                "values": values,
                "where": where,
            }
        )

    def compare(
        self,
        a: Query,
        b: Query,
        *,
        by: float | None = None,
        guess: float | None = None,
        half_width: float | None = None,
        least: bool | None = None,
        measure: bool | None = None,
        note: str | None = None,
        promise: Mapping[str, Any] | None = None,
        weight: Literal["unit", "row"] | None = None,
        where: Expr | None = None,
    ) -> R:
        r"""Whether b is better than a, by the mean of the difference b - a of each row: two models' accuracies or
        losses, two measurements; or two aucs, or two balanced accuracies, of the same label. The verdict is yes if the
        whole interval is above by, no if none of it is, else undecided. Under guess_and_check the interval follows how
        much the differences vary, and is narrow where a and b seldom differ. Elsewhere it is as wide as those of both
        means together; if both are near an end of their range, two queries can give a narrower result.

        Price in questions: 1; of aucs what both cost where that is not 1; under gaussian 1; of aucs or balanced
        accuracies what both cost.

        Args:
            a: what b is compared with: a query that is the mean of one row function, such as mean, fraction, accuracy
                or loss, without where, weight and guess; or an auc or a balanced_accuracy without where, if b is one
            b: what may be better: a query that is the mean of one row function, such as mean, fraction, accuracy or
                loss, without where, weight and guess; or an auc or a balanced_accuracy of the label of a, if a is one
            by: how much better b must be for the verdict yes; default: 0; default: 0
            guess: under guess_and_check: your own guess of the answer; default: the answer on the check part where a
                model or predictions are asked about, else on the training and the check part together
            half_width: under guess_and_check: the half-width that you want, if your guess passes or the answer is
                measured; default: planned by the server
            least: true if less is better, as for a loss: the verdict is then yes if the whole interval of b - a is
                below -by; default: false
            measure: under guess_and_check: true to be told where the holdout is, whatever was guessed: a narrow
                interval, for a token and a fortieth of all questions, rounded up. Of means and shares, also under a
                condition. false to have a guess checked. Default: measured where only that reaches your half_width, or
                where the guess would be a model's score (not the difference of two) on rows that it may have been
                fitted to, while less than half of the tokens are spent; else checked
            note: a remark of your own; it is kept in your history and does not change the query
            promise: under gaussian: a bound that the holdout keeps, as you know; it is checked exactly. If it is true,
                the interval is narrower: the tighter the bound, the narrower. If it is false, it costs a token, and the
                interval is the usual one. One of at_most, at_least (the answer itself), disagreement (of a compare of 0
                or 1: the share of rows that differ; else the mean distance from 0 of values whose range is symmetric),
                variance (of the values over the units); default: what explain says
            weight: what has one vote: unit or row; default: unit. With row every row counts once, but no unit counts
                for more than largest_unit rows, which is on the card. Where units have several rows, under gaussian it
                costs one more question: "unit", "row"; default: unit
            where: a condition: only rows for which it holds count; under gaussian it costs one more question
        """
        return self._ask(
            {
                "type": "compare",
                "a": a,
                "b": b,
                "by": by,
                "guess": guess,
                "half_width": half_width,
                "least": least,
                "measure": measure,
                "note": note,
                "promise": promise,
                "weight": weight,
                "where": where,
            }
        )

    def argmax(
        self,
        of: Sequence[Query],
        *,
        guess: Mapping[str, float] | None = None,
        least: bool | None = None,
        names: Sequence[str] | None = None,
        note: str | None = None,
        questions: float | None = None,
    ) -> R:
        r"""The best of many candidates: the one with the largest mean, or with the least. Under gaussian the answer
        names the winner without its value (exponential mechanism), and questions pays more for less regret. Elsewhere
        it has all values. The regret is a bound: the best candidate is at most so much better than the selected one, in
        the query's units. It grows with the logarithm of the number of candidates.

        Price in questions: 1 a candidate; under gaussian 1.

        Args:
            of: the candidates, all with the same range: each a query that is the mean of one row function, such as
                mean, fraction, accuracy or loss, without where, weight and guess
            guess: under guess_and_check: your own guesses of some of the answer's items, by their names; default: what
                the check part says where a model or predictions are asked about, else the training and the check part
                together
            least: true if less is better, as for losses; default: false
            names: the names of the candidates, in their order; default: their places, from 0
            note: a remark of your own; it is kept in your history and does not change the query
            questions: under gaussian: how many questions to pay, 1 to 1000; four times as many halve the part of the
                regret that is the mechanism's; default: 1; default: 1
        """
        return self._ask(
            {
                "type": "argmax",
                "of": of,
                "guess": guess,
                "least": least,
                "names": names,
                "note": note,
                "questions": questions,
            }
        )

    def passes(
        self,
        of: Query,
        *,
        above: float | None = None,
        below: float | None = None,
        guess: float | None = None,
        half_width: float | None = None,
        measure: bool | None = None,
        note: str | None = None,
    ) -> R:
        r"""Whether a number is above, or below, a bar: any query whose answer is one number. The verdict is yes if the
        whole interval is beyond the bar, no if none of it is, else undecided. The answer has the value, too.

        Price in questions: that of the number.

        Args:
            of: a query whose answer is one number
            above: the bar, in the query's units; yes above it
            below: the bar, in the query's units; yes below it
            guess: under guess_and_check: your own guess of the answer; default: the answer on the check part where a
                model or predictions are asked about, else on the training and the check part together
            half_width: under guess_and_check: the half-width that you want, if your guess passes or the answer is
                measured; default: planned by the server
            measure: under guess_and_check: true to be told where the holdout is, whatever was guessed: a narrow
                interval, for a token and a fortieth of all questions, rounded up. Of means and shares, also under a
                condition. false to have a guess checked. Default: measured where only that reaches your half_width, or
                where the guess would be a model's score (not the difference of two) on rows that it may have been
                fitted to, while less than half of the tokens are spent; else checked
            note: a remark of your own; it is kept in your history and does not change the query
        """
        return self._ask(
            {
                "type": "passes",
                "of": of,
                "above": above,
                "below": below,
                "guess": guess,
                "half_width": half_width,
                "measure": measure,
                "note": note,
            }
        )

    def difference(
        self,
        of: Expr,
        *,
        between: Sequence[Expr],
        guess: float | None = None,
        half_width: float | None = None,
        measure: bool | None = None,
        note: str | None = None,
        null: float | Literal["skip"] | None = None,
        range: tuple[float, float] | Sequence[float] | None = None,
        where: Expr | None = None,
    ) -> R:
        r"""The mean of a number, clamped to a range, or the fraction of a condition, in one group of rows minus that in
        another. With one condition the other group is all other rows. A row that is in both groups counts in the first
        one only. The interval is narrower than that of two means with where.

        Price in questions: 1; under gaussian 3, where units have several rows 4.

        Args:
            of: the number to average, or a condition: a row expression
            between: the first group and the second: conditions. With one condition the second group is all other rows
            guess: under guess_and_check: your own guess of the answer; default: the answer on the check part where a
                model or predictions are asked about, else on the training and the check part together
            half_width: under guess_and_check: the half-width that you want, if your guess passes or the answer is
                measured; default: planned by the server
            measure: under guess_and_check: true to be told where the holdout is, whatever was guessed: a narrow
                interval, for a token and a fortieth of all questions, rounded up. Of means and shares, also under a
                condition. false to have a guess checked. Default: measured where only that reaches your half_width, or
                where the guess would be a model's score (not the difference of two) on rows that it may have been
                fitted to, while less than half of the tokens are spent; else checked
            note: a remark of your own; it is kept in your history and does not change the query
            null: what a null value counts as; default: the low end of the range. "skip" leaves rows with a null out: it
                is the same question as with where: x != null, at its price
            range: [low, high] of a number: values are clamped to it; a condition has none
            where: a condition: only rows for which it holds count; costs nothing more
        """
        return self._ask(
            {
                "type": "difference",
                "of": of,
                "between": between,
                "guess": guess,
                "half_width": half_width,
                "measure": measure,
                "note": note,
                "null": null,
                "range": range,
                "where": where,
            }
        )

    def test(
        self,
        test: Literal["mean", "proportion", "two-sample", "two-proportions", "correlation", "slope", "goodness-of-fit", "independence", "value"],
        *,
        alternative: Literal["two-sided", "greater", "less"] | None = None,
        between: Sequence[Expr] | None = None,
        cells: Sequence[Expr] | None = None,
        columns: Sequence[Expr] | None = None,
        equals: float | None = None,
        expected: Sequence[float] | None = None,
        guess: float | None = None,
        half_width: float | None = None,
        measure: bool | None = None,
        note: str | None = None,
        null: float | Literal["skip"] | None = None,
        of: Expr | None = None,
        query: Query | None = None,
        range: tuple[float, float] | Sequence[float] | None = None,
        range_x: tuple[float, float] | Sequence[float] | None = None,
        range_y: tuple[float, float] | Sequence[float] | None = None,
        rows: Sequence[Expr] | None = None,
        where: Expr | None = None,
        x: Expr | None = None,
        y: Expr | None = None,
    ) -> R:
        r"""A hypothesis test. The answer has the effect with its interval, a p-value, and a verdict: yes if the null
        hypothesis is rejected, else undecided.

        P-value and verdict hold for all questions of the holdout together, however you chose this one from earlier
        answers: **no further correction belongs on top**. The p-value is the least level at which the answer's
        intervals exclude the null hypothesis; the verdict is yes if it is at most 1 - confidence. Only the independence
        of units is assumed, so p-values are larger than a textbook's. None is below 1e-9. It is null under naive
        and under published bounds, which have no intervals at other levels.

        Under guess_and_check a test of one number first tries a narrower interval, if the training part shows an
        effect. If that passes, the answer is close, with a p-value of at most 1 - confidence. If only the planned
        half-width passes, it is rough: it has the usual interval and costs no token, and later intervals are wider, the
        first such by up to a quarter. A half_width of your own is taken in its place.

        A plain_p_value is that of this one test, valid if you chose its hypothesis beforehand; it is not valid for one
        of many tests. It holds for any number of units, and for rare events (docs/proofs/p-values.md). It is there
        where nothing was answered about these units before:

        | test | under |
        |---|---|
        | mean and proportion without where, goodness-of-fit | gaussian, in the first request; split |
        | mean and proportion with where, two-sample, two-proportions | gaussian with rounds=1, or of one question; split |
        | the first question of all, if it is of one statistic | guess_and_check |

        | test | members | null hypothesis | effect |
        |---|---|---|---|
        | mean | of, range, equals, where, null | the mean of the clamped number is equals (default: 0) | the mean |
        | proportion | of, equals, where | the fraction of the condition is equals (default: 0.5) | the fraction |
        | two-sample | of, range, between, equals, where, null | the difference of two groups' means is equals (default: 0) | the difference, as in difference |
        | two-proportions | of, between, equals, where | the difference of two groups' fractions is equals (default: 0) | the difference |
        | correlation | x, y, range_x, range_y, where | the clamped numbers are not correlated | their covariance |
        | slope | x, y, range_x, range_y, equals, where | the slope of y on x, by least squares, is equals (default: 0) | the slope |
        | goodness-of-fit | cells, expected | the cells have the expected shares; rows for which no condition holds are in a last cell | the largest deviation of a share; items: each share minus what is expected |
        | independence | rows, columns | row and column are independent; rows for which no condition holds are in a last row or column | the largest deviation of a cell; items: each cell's share minus the product of its margins |
        | value | query, equals | the answer of any query that is one number is equals | that answer |

        Price in questions: that of its effect.

        Args:
            test: which test
            alternative: greater and less reject in that direction only. The p-value does not become smaller, because
                intervals are two-sided: "two-sided", "greater", "less"; default: two-sided
            between: the first group and the second, as in difference
            cells: conditions; a row is in the cell of the first that holds. Rows for which none holds are in a last
                cell
            columns: conditions; a row is in the first that holds
            equals: the value under the null hypothesis
            expected: the share of each cell under the null hypothesis; the last cell has the rest
            guess: under guess_and_check: your own guess of the answer; default: the answer on the check part where a
                model or predictions are asked about, else on the training and the check part together
            half_width: under guess_and_check: the half-width that you want, if your guess passes or the answer is
                measured; default: planned by the server
            measure: under guess_and_check: true to be told where the holdout is, whatever was guessed: a narrow
                interval, for a token and a fortieth of all questions, rounded up. Of means and shares, also under a
                condition. false to have a guess checked. Default: measured where only that reaches your half_width, or
                where the guess would be a model's score (not the difference of two) on rows that it may have been
                fitted to, while less than half of the tokens are spent; else checked
            note: a remark of your own; it is kept in your history and does not change the query
            null: what a null value counts as; default: the low end of the range. "skip" leaves rows with a null out: it
                is the same question as with where: x != null, at its price
            of: the number, or the condition of proportions: a row expression
            query: a query whose answer is one number
            range: [low, high]: values are clamped to it; the narrower it is, the narrower the interval
            range_x: [low, high]: values of x are clamped to it
            range_y: [low, high]: values of y are clamped to it
            rows: conditions; a row is in the first that holds
            where: a condition: only rows for which it holds count
            x: one number; of slope, the one that explains y
            y: the other number
        """
        return self._ask(
            {
                "type": "test",
                "test": test,
                "alternative": alternative,
                "between": between,
                "cells": cells,
                "columns": columns,
                "equals": equals,
                "expected": expected,
                "guess": guess,
                "half_width": half_width,
                "measure": measure,
                "note": note,
                "null": null,
                "of": of,
                "query": query,
                "range": range,
                "range_x": range_x,
                "range_y": range_y,
                "rows": rows,
                "where": where,
                "x": x,
                "y": y,
            }
        )

    def accuracy(
        self,
        label: Expr | None = None,
        *,
        features: Mapping[str, Expr] | None = None,
        guess: float | None = None,
        half_width: float | None = None,
        measure: bool | None = None,
        model: Model | None = None,
        note: str | None = None,
        null: Literal["skip"] | None = None,
        prediction: Expr | None = None,
        predictions: Sequence[float | None] | Mapping[str, Any] | Mapping[str, Any] | Mapping[str, Any] | Mapping[str, Any] | Mapping[str, Any] | None = None,
        promise: Mapping[str, Any] | None = None,
        threshold: float | None = None,
        weight: Literal["unit", "row"] | None = None,
        where: Expr | None = None,
    ) -> R:
        r"""The share of rows for which a classifier is right. A model with one output predicts true if its prediction
        is above the threshold. A model with classes predicts the class with the largest score, and the first of them if
        several are equal.

        Price in questions: 1; under gaussian 1, with where 2.

        Args:
            label: the truth: a condition, or a column of 0 and 1, for a model with one output; a column for one with
                classes; default: the holdout's label, which the canonical form then names
            features: features of the model that are not columns, by name: row expressions that are numbers, or
                conditions, which count as 1 and 0
            guess: under guess_and_check: your own guess of the answer; default: the answer on the check part where a
                model or predictions are asked about, else on the training and the check part together
            half_width: under guess_and_check: the half-width that you want, if your guess passes or the answer is
                measured; default: planned by the server
            measure: under guess_and_check: true to be told where the holdout is, whatever was guessed: a narrow
                interval, for a token and a fortieth of all questions, rounded up. Of means and shares, also under a
                condition. false to have a guess checked. Default: measured where only that reaches your half_width, or
                where the guess would be a model's score (not the difference of two) on rows that it may have been
                fitted to, while less than half of the tokens are spent; else checked
            model: the model, as docs/MODELS.md describes: linear, softmax, trees, a network, a kernel machine, nearest
                neighbors or a mixture of these over the table's columns and what it computes of them
            note: a remark of your own; it is kept in your history and does not change the query
            null: "skip" leaves out rows in which the label is null, or a prediction that is an expression; it is the
                same question as with where: label != null, at its price: "skip"
            prediction: instead of a model: a row expression, such as a column of predictions
            predictions: instead of a model, where the holdout has features=public: a number for each row of the
                download of features, in the order of row_id: the holdout's, then the check part's; also as bytes, or by
                the digest of numbers that were sent before. Of several classes {"classes": […], "of": […]}, the numbers
                of each class (MODELS.md)
            promise: under gaussian: a bound that the holdout keeps, as you know; it is checked exactly. If it is true,
                the interval is narrower: the tighter the bound, the narrower. If it is false, it costs a token, and the
                interval is the usual one. One of at_most, at_least (the answer itself), disagreement (of a compare of 0
                or 1: the share of rows that differ; else the mean distance from 0 of values whose range is symmetric),
                variance (of the values over the units); default: what explain says
            threshold: true is predicted where the prediction, after its link, is above it; default: the model's own
                threshold, else 0.5
            weight: what has one vote: unit or row; default: unit. With row every row counts once, but no unit counts
                for more than largest_unit rows, which is on the card. Where units have several rows, under gaussian it
                costs one more question: "unit", "row"; default: unit
            where: a condition: only rows for which it holds count; under gaussian it costs one more question
        """
        return self._ask(
            {
                "type": "accuracy",
                "label": label,
                "features": features,
                "guess": guess,
                "half_width": half_width,
                "measure": measure,
                "model": model,
                "note": note,
                "null": null,
                "prediction": prediction,
                "predictions": predictions,
                "promise": promise,
                "threshold": threshold,
                "weight": weight,
                "where": where,
            }
        )

    def balanced_accuracy(
        self,
        label: Expr | None = None,
        *,
        features: Mapping[str, Expr] | None = None,
        guess: float | None = None,
        half_width: float | None = None,
        measure: bool | None = None,
        model: Model | None = None,
        note: str | None = None,
        null: Literal["skip"] | None = None,
        prediction: Expr | None = None,
        predictions: Sequence[float | None] | Mapping[str, Any] | Mapping[str, Any] | Mapping[str, Any] | Mapping[str, Any] | Mapping[str, Any] | None = None,
        threshold: float | None = None,
        where: Expr | None = None,
    ) -> R:
        r"""The balanced accuracy of a classifier of two classes: the mean of the shares of both that it gets right, in
        which a rare class counts as much as the other. It predicts as in accuracy; of a model with two classes, rows of
        neither do not count. Of more classes ask for the recall of each.

        Price in questions: 1; under gaussian 3, where units have several rows 4.

        Args:
            label: the truth: a condition, or a column of 0 and 1, for a model with one output; a column for one with
                classes; default: the holdout's label, which the canonical form then names
            features: features of the model that are not columns, by name: row expressions that are numbers, or
                conditions, which count as 1 and 0
            guess: under guess_and_check: your own guess of the answer; default: the answer on the check part where a
                model or predictions are asked about, else on the training and the check part together
            half_width: under guess_and_check: the half-width that you want, if your guess passes or the answer is
                measured; default: planned by the server
            measure: under guess_and_check: true to be told where the holdout is, whatever was guessed: a narrow
                interval, for a token and a fortieth of all questions, rounded up. Of means and shares, also under a
                condition. false to have a guess checked. Default: measured where only that reaches your half_width, or
                where the guess would be a model's score (not the difference of two) on rows that it may have been
                fitted to, while less than half of the tokens are spent; else checked
            model: the model, as docs/MODELS.md describes: linear, softmax, trees, a network, a kernel machine, nearest
                neighbors or a mixture of these over the table's columns and what it computes of them
            note: a remark of your own; it is kept in your history and does not change the query
            null: "skip" leaves out rows in which the label is null, or a prediction that is an expression; it is the
                same question as with where: label != null, at its price: "skip"
            prediction: instead of a model: a row expression, such as a column of predictions
            predictions: instead of a model, where the holdout has features=public: a number for each row of the
                download of features, in the order of row_id: the holdout's, then the check part's; also as bytes, or by
                the digest of numbers that were sent before. Of several classes {"classes": […], "of": […]}, the numbers
                of each class (MODELS.md)
            threshold: true is predicted where the prediction, after its link, is above it; default: the model's own
                threshold, else 0.5
            where: a condition: only rows for which it holds count, at no further cost
        """
        return self._ask(
            {
                "type": "balanced_accuracy",
                "label": label,
                "features": features,
                "guess": guess,
                "half_width": half_width,
                "measure": measure,
                "model": model,
                "note": note,
                "null": null,
                "prediction": prediction,
                "predictions": predictions,
                "threshold": threshold,
                "where": where,
            }
        )

    def precision(
        self,
        label: Expr | None = None,
        *,
        features: Mapping[str, Expr] | None = None,
        guess: float | None = None,
        half_width: float | None = None,
        measure: bool | None = None,
        model: Model | None = None,
        note: str | None = None,
        null: Literal["skip"] | None = None,
        positive: str | float | None = None,
        prediction: Expr | None = None,
        predictions: Sequence[float | None] | Mapping[str, Any] | Mapping[str, Any] | Mapping[str, Any] | Mapping[str, Any] | Mapping[str, Any] | None = None,
        threshold: float | None = None,
        weight: Literal["unit", "row"] | None = None,
        where: Expr | None = None,
    ) -> R:
        r"""The precision of a classifier: the share of the rows that it predicts positive in which the label is
        positive. A model with one output predicts true if its prediction is above the threshold; of a model with
        classes, positive names the class that counts.

        Price in questions: 1; under gaussian 2.

        Args:
            label: the truth: a condition, or a column of 0 and 1, for a model with one output; a column for one with
                classes; default: the holdout's label, which the canonical form then names
            features: features of the model that are not columns, by name: row expressions that are numbers, or
                conditions, which count as 1 and 0
            guess: under guess_and_check: your own guess of the answer; default: the answer on the check part where a
                model or predictions are asked about, else on the training and the check part together
            half_width: under guess_and_check: the half-width that you want, if your guess passes or the answer is
                measured; default: planned by the server
            measure: under guess_and_check: true to be told where the holdout is, whatever was guessed: a narrow
                interval, for a token and a fortieth of all questions, rounded up. Of means and shares, also under a
                condition. false to have a guess checked. Default: measured where only that reaches your half_width, or
                where the guess would be a model's score (not the difference of two) on rows that it may have been
                fitted to, while less than half of the tokens are spent; else checked
            model: the model, as docs/MODELS.md describes: linear, softmax, trees, a network, a kernel machine, nearest
                neighbors or a mixture of these over the table's columns and what it computes of them
            note: a remark of your own; it is kept in your history and does not change the query
            null: "skip" leaves out rows in which the label is null, or a prediction that is an expression; it is the
                same question as with where: label != null, at its price: "skip"
            positive: of a model with classes: the class that counts as positive
            prediction: instead of a model: a row expression, such as a column of predictions
            predictions: instead of a model, where the holdout has features=public: a number for each row of the
                download of features, in the order of row_id: the holdout's, then the check part's; also as bytes, or by
                the digest of numbers that were sent before. Of several classes {"classes": […], "of": […]}, the numbers
                of each class (MODELS.md)
            threshold: true is predicted where the prediction, after its link, is above it; default: the model's own
                threshold, else 0.5
            weight: what has one vote: unit or row; default: unit. With row every row counts once, but no unit counts
                for more than largest_unit rows, which is on the card. Where units have several rows, under gaussian it
                costs one more question: "unit", "row"; default: unit
            where: a condition: only rows for which it holds count, at no further cost
        """
        return self._ask(
            {
                "type": "precision",
                "label": label,
                "features": features,
                "guess": guess,
                "half_width": half_width,
                "measure": measure,
                "model": model,
                "note": note,
                "null": null,
                "positive": positive,
                "prediction": prediction,
                "predictions": predictions,
                "threshold": threshold,
                "weight": weight,
                "where": where,
            }
        )

    def recall(
        self,
        label: Expr | None = None,
        *,
        features: Mapping[str, Expr] | None = None,
        guess: float | None = None,
        half_width: float | None = None,
        measure: bool | None = None,
        model: Model | None = None,
        note: str | None = None,
        null: Literal["skip"] | None = None,
        positive: str | float | None = None,
        prediction: Expr | None = None,
        predictions: Sequence[float | None] | Mapping[str, Any] | Mapping[str, Any] | Mapping[str, Any] | Mapping[str, Any] | Mapping[str, Any] | None = None,
        threshold: float | None = None,
        weight: Literal["unit", "row"] | None = None,
        where: Expr | None = None,
    ) -> R:
        r"""The recall of a classifier: the share of the rows with a positive label that it predicts positive. A model
        with one output predicts true if its prediction is above the threshold; of a model with classes, positive names
        the class that counts.

        Price in questions: 1; under gaussian 2.

        Args:
            label: the truth: a condition, or a column of 0 and 1, for a model with one output; a column for one with
                classes; default: the holdout's label, which the canonical form then names
            features: features of the model that are not columns, by name: row expressions that are numbers, or
                conditions, which count as 1 and 0
            guess: under guess_and_check: your own guess of the answer; default: the answer on the check part where a
                model or predictions are asked about, else on the training and the check part together
            half_width: under guess_and_check: the half-width that you want, if your guess passes or the answer is
                measured; default: planned by the server
            measure: under guess_and_check: true to be told where the holdout is, whatever was guessed: a narrow
                interval, for a token and a fortieth of all questions, rounded up. Of means and shares, also under a
                condition. false to have a guess checked. Default: measured where only that reaches your half_width, or
                where the guess would be a model's score (not the difference of two) on rows that it may have been
                fitted to, while less than half of the tokens are spent; else checked
            model: the model, as docs/MODELS.md describes: linear, softmax, trees, a network, a kernel machine, nearest
                neighbors or a mixture of these over the table's columns and what it computes of them
            note: a remark of your own; it is kept in your history and does not change the query
            null: "skip" leaves out rows in which the label is null, or a prediction that is an expression; it is the
                same question as with where: label != null, at its price: "skip"
            positive: of a model with classes: the class that counts as positive
            prediction: instead of a model: a row expression, such as a column of predictions
            predictions: instead of a model, where the holdout has features=public: a number for each row of the
                download of features, in the order of row_id: the holdout's, then the check part's; also as bytes, or by
                the digest of numbers that were sent before. Of several classes {"classes": […], "of": […]}, the numbers
                of each class (MODELS.md)
            threshold: true is predicted where the prediction, after its link, is above it; default: the model's own
                threshold, else 0.5
            weight: what has one vote: unit or row; default: unit. With row every row counts once, but no unit counts
                for more than largest_unit rows, which is on the card. Where units have several rows, under gaussian it
                costs one more question: "unit", "row"; default: unit
            where: a condition: only rows for which it holds count, at no further cost
        """
        return self._ask(
            {
                "type": "recall",
                "label": label,
                "features": features,
                "guess": guess,
                "half_width": half_width,
                "measure": measure,
                "model": model,
                "note": note,
                "null": null,
                "positive": positive,
                "prediction": prediction,
                "predictions": predictions,
                "threshold": threshold,
                "weight": weight,
                "where": where,
            }
        )

    def f1(
        self,
        label: Expr | None = None,
        *,
        features: Mapping[str, Expr] | None = None,
        guess: float | None = None,
        half_width: float | None = None,
        measure: bool | None = None,
        model: Model | None = None,
        note: str | None = None,
        null: Literal["skip"] | None = None,
        positive: str | float | None = None,
        prediction: Expr | None = None,
        predictions: Sequence[float | None] | Mapping[str, Any] | Mapping[str, Any] | Mapping[str, Any] | Mapping[str, Any] | Mapping[str, Any] | None = None,
        threshold: float | None = None,
        weight: Literal["unit", "row"] | None = None,
        where: Expr | None = None,
    ) -> R:
        r"""The F1 score of a classifier, the harmonic mean of precision and recall. It is 2J/(1+J), where J is the
        share of rows whose label and prediction are both positive among the rows in which any of them is; the interval
        is that of J, moved. A model with one output predicts true if its prediction is above the threshold; of a model
        with classes, positive names the class that counts.

        Price in questions: 1; under gaussian 2.

        Args:
            label: the truth: a condition, or a column of 0 and 1, for a model with one output; a column for one with
                classes; default: the holdout's label, which the canonical form then names
            features: features of the model that are not columns, by name: row expressions that are numbers, or
                conditions, which count as 1 and 0
            guess: under guess_and_check: your own guess of the answer; default: the answer on the check part where a
                model or predictions are asked about, else on the training and the check part together
            half_width: under guess_and_check: the half-width that you want, if your guess passes or the answer is
                measured; default: planned by the server
            measure: under guess_and_check: true to be told where the holdout is, whatever was guessed: a narrow
                interval, for a token and a fortieth of all questions, rounded up. Of means and shares, also under a
                condition. false to have a guess checked. Default: measured where only that reaches your half_width, or
                where the guess would be a model's score (not the difference of two) on rows that it may have been
                fitted to, while less than half of the tokens are spent; else checked
            model: the model, as docs/MODELS.md describes: linear, softmax, trees, a network, a kernel machine, nearest
                neighbors or a mixture of these over the table's columns and what it computes of them
            note: a remark of your own; it is kept in your history and does not change the query
            null: "skip" leaves out rows in which the label is null, or a prediction that is an expression; it is the
                same question as with where: label != null, at its price: "skip"
            positive: of a model with classes: the class that counts as positive
            prediction: instead of a model: a row expression, such as a column of predictions
            predictions: instead of a model, where the holdout has features=public: a number for each row of the
                download of features, in the order of row_id: the holdout's, then the check part's; also as bytes, or by
                the digest of numbers that were sent before. Of several classes {"classes": […], "of": […]}, the numbers
                of each class (MODELS.md)
            threshold: true is predicted where the prediction, after its link, is above it; default: the model's own
                threshold, else 0.5
            weight: what has one vote: unit or row; default: unit. With row every row counts once, but no unit counts
                for more than largest_unit rows, which is on the card. Where units have several rows, under gaussian it
                costs one more question: "unit", "row"; default: unit
            where: a condition: only rows for which it holds count, at no further cost
        """
        return self._ask(
            {
                "type": "f1",
                "label": label,
                "features": features,
                "guess": guess,
                "half_width": half_width,
                "measure": measure,
                "model": model,
                "note": note,
                "null": null,
                "positive": positive,
                "prediction": prediction,
                "predictions": predictions,
                "threshold": threshold,
                "weight": weight,
                "where": where,
            }
        )

    def loss(
        self,
        label: Expr | None = None,
        *,
        loss: Literal["zero_one", "log", "brier", "hinge", "squared", "absolute", "pinball"],
        clip: float | None = None,
        features: Mapping[str, Expr] | None = None,
        guess: float | None = None,
        half_width: float | None = None,
        measure: bool | None = None,
        model: Model | None = None,
        note: str | None = None,
        null: float | Literal["skip"] | None = None,
        prediction: Expr | None = None,
        predictions: Sequence[float | None] | Mapping[str, Any] | Mapping[str, Any] | Mapping[str, Any] | Mapping[str, Any] | Mapping[str, Any] | None = None,
        promise: Mapping[str, Any] | None = None,
        quantile: float | None = None,
        range: tuple[float, float] | Sequence[float] | None = None,
        threshold: float | None = None,
        weight: Literal["unit", "row"] | None = None,
        where: Expr | None = None,
    ) -> R:
        r"""The mean loss of a model's predictions, each row's loss clamped to a range. For classes: zero_one is 1 where
        the prediction is wrong; log is minus the logarithm of the probability that the model gives to the label,
        clipped; brier is the squared distance of the probabilities from the label, halved if there are several classes.
        For a condition and the model's score s: hinge is max(0, 1 - s) where the label holds, else max(0, 1 + s). For
        numbers, with e = label - prediction: squared is e², absolute is |e|, pinball is the larger of q·e and (q-1)·e.

        Price in questions: 1; under gaussian 1, with where 2.

        Args:
            label: the truth: a condition or, for a model with classes, a column; a number for squared, absolute and
                pinball; default: the holdout's label, which the canonical form then names
            loss: which loss
            clip: log: probabilities are clipped to [clip, 1 - clip]; default: 0.001; default: 0.001
            features: features of the model that are not columns, by name: row expressions that are numbers, or
                conditions, which count as 1 and 0
            guess: under guess_and_check: your own guess of the answer; default: the answer on the check part where a
                model or predictions are asked about, else on the training and the check part together
            half_width: under guess_and_check: the half-width that you want, if your guess passes or the answer is
                measured; default: planned by the server
            measure: under guess_and_check: true to be told where the holdout is, whatever was guessed: a narrow
                interval, for a token and a fortieth of all questions, rounded up. Of means and shares, also under a
                condition. false to have a guess checked. Default: measured where only that reaches your half_width, or
                where the guess would be a model's score (not the difference of two) on rows that it may have been
                fitted to, while less than half of the tokens are spent; else checked
            model: the model, as docs/MODELS.md describes: linear, softmax, trees, a network, a kernel machine, nearest
                neighbors or a mixture of these over the table's columns and what it computes of them
            note: a remark of your own; it is kept in your history and does not change the query
            null: what a row counts as if its loss is null, because its label or its prediction is null; default: the
                high end of the range. "skip" leaves out rows in which the label is null, or a prediction that is an
                expression; it is the same question as with where: label != null, at its price
            prediction: instead of a model: a row expression, such as a column of predictions
            predictions: instead of a model, where the holdout has features=public: a number for each row of the
                download of features, in the order of row_id: the holdout's, then the check part's; also as bytes, or by
                the digest of numbers that were sent before. Of several classes {"classes": […], "of": […]}, the numbers
                of each class (MODELS.md)
            promise: under gaussian: a bound that the holdout keeps, as you know; it is checked exactly. If it is true,
                the interval is narrower: the tighter the bound, the narrower. If it is false, it costs a token, and the
                interval is the usual one. One of at_most, at_least (the answer itself), disagreement (of a compare of 0
                or 1: the share of rows that differ; else the mean distance from 0 of values whose range is symmetric),
                variance (of the values over the units); default: what explain says
            quantile: pinball: the q that is predicted, in (0, 1)
            range: [low, high] of the loss: a row's loss is clamped to it. Needed for hinge, squared, absolute and
                pinball; zero_one and brier are in [0, 1], log in [0, -ln(clip)]
            threshold: zero_one: true is predicted where the prediction, after its link, is above it; default: the
                model's own threshold, else 0.5
            weight: what has one vote: unit or row; default: unit. With row every row counts once, but no unit counts
                for more than largest_unit rows, which is on the card. Where units have several rows, under gaussian it
                costs one more question: "unit", "row"; default: unit
            where: a condition: only rows for which it holds count; under gaussian it costs one more question
        """
        return self._ask(
            {
                "type": "loss",
                "label": label,
                "loss": loss,
                "clip": clip,
                "features": features,
                "guess": guess,
                "half_width": half_width,
                "measure": measure,
                "model": model,
                "note": note,
                "null": null,
                "prediction": prediction,
                "predictions": predictions,
                "promise": promise,
                "quantile": quantile,
                "range": range,
                "threshold": threshold,
                "weight": weight,
                "where": where,
            }
        )

    def rmse(
        self,
        label: Expr | None = None,
        *,
        max_error: float,
        features: Mapping[str, Expr] | None = None,
        guess: float | None = None,
        half_width: float | None = None,
        measure: bool | None = None,
        model: Model | None = None,
        note: str | None = None,
        null: Literal["skip"] | None = None,
        prediction: Expr | None = None,
        predictions: Sequence[float | None] | Mapping[str, Any] | Mapping[str, Any] | Mapping[str, Any] | Mapping[str, Any] | Mapping[str, Any] | None = None,
        weight: Literal["unit", "row"] | None = None,
        where: Expr | None = None,
    ) -> R:
        r"""The root mean squared error of predictions of a number, each error clamped to ±max_error. The interval is
        that of the mean square, so it is wide if the error is a small part of max_error.

        Price in questions: 1; under gaussian 1, with where 2.

        Args:
            label: the truth: a number; default: the holdout's label, which the canonical form then names
            max_error: larger errors count as this one; the smaller it is, the narrower the interval
            features: features of the model that are not columns, by name: row expressions that are numbers, or
                conditions, which count as 1 and 0
            guess: under guess_and_check: your own guess of the answer; default: the answer on the check part where a
                model or predictions are asked about, else on the training and the check part together
            half_width: under guess_and_check: the half-width that you want, if your guess passes or the answer is
                measured; default: planned by the server
            measure: under guess_and_check: true to be told where the holdout is, whatever was guessed: a narrow
                interval, for a token and a fortieth of all questions, rounded up. Of means and shares, also under a
                condition. false to have a guess checked. Default: measured where only that reaches your half_width, or
                where the guess would be a model's score (not the difference of two) on rows that it may have been
                fitted to, while less than half of the tokens are spent; else checked
            model: the model, as docs/MODELS.md describes: linear, softmax, trees, a network, a kernel machine, nearest
                neighbors or a mixture of these over the table's columns and what it computes of them
            note: a remark of your own; it is kept in your history and does not change the query
            null: "skip" leaves out rows in which the label is null, or a prediction that is an expression; it is the
                same question as with where: label != null, at its price: "skip"
            prediction: instead of a model: a row expression, such as a column of predictions
            predictions: instead of a model, where the holdout has features=public: a number for each row of the
                download of features, in the order of row_id: the holdout's, then the check part's; also as bytes, or by
                the digest of numbers that were sent before. Of several classes {"classes": […], "of": […]}, the numbers
                of each class (MODELS.md)
            weight: what has one vote: unit or row; default: unit. With row every row counts once, but no unit counts
                for more than largest_unit rows, which is on the card. Where units have several rows, under gaussian it
                costs one more question: "unit", "row"; default: unit
            where: a condition: only rows for which it holds count; under gaussian it costs one more question
        """
        return self._ask(
            {
                "type": "rmse",
                "label": label,
                "max_error": max_error,
                "features": features,
                "guess": guess,
                "half_width": half_width,
                "measure": measure,
                "model": model,
                "note": note,
                "null": null,
                "prediction": prediction,
                "predictions": predictions,
                "weight": weight,
                "where": where,
            }
        )

    def r2(
        self,
        label: Expr | None = None,
        *,
        range: tuple[float, float] | Sequence[float],
        features: Mapping[str, Expr] | None = None,
        guess: float | None = None,
        half_width: float | None = None,
        measure: bool | None = None,
        model: Model | None = None,
        note: str | None = None,
        null: Literal["skip"] | None = None,
        prediction: Expr | None = None,
        predictions: Sequence[float | None] | Mapping[str, Any] | Mapping[str, Any] | Mapping[str, Any] | Mapping[str, Any] | Mapping[str, Any] | None = None,
        weight: Literal["unit", "row"] | None = None,
        where: Expr | None = None,
    ) -> R:
        r"""The coefficient of determination of predictions of a number, 1 - E[(y - p)²]/Var[y], where label y and
        prediction p are clamped to a range. An answer below -1 is given as -1. Under guess_and_check the interval
        follows how much the squared errors differ from what the training part's R² makes of the label's squared
        deviations.

        Price in questions: 1; under gaussian 3, with where 4.

        Args:
            label: the truth: a number; default: the holdout's label, which the canonical form then names
            range: [low, high]: label and prediction are clamped to it; the narrower it is, the narrower the interval
            features: features of the model that are not columns, by name: row expressions that are numbers, or
                conditions, which count as 1 and 0
            guess: under guess_and_check: your own guess of the answer; default: the answer on the check part where a
                model or predictions are asked about, else on the training and the check part together
            half_width: under guess_and_check: the half-width that you want, if your guess passes or the answer is
                measured; default: planned by the server
            measure: under guess_and_check: true to be told where the holdout is, whatever was guessed: a narrow
                interval, for a token and a fortieth of all questions, rounded up. Of means and shares, also under a
                condition. false to have a guess checked. Default: measured where only that reaches your half_width, or
                where the guess would be a model's score (not the difference of two) on rows that it may have been
                fitted to, while less than half of the tokens are spent; else checked
            model: the model, as docs/MODELS.md describes: linear, softmax, trees, a network, a kernel machine, nearest
                neighbors or a mixture of these over the table's columns and what it computes of them
            note: a remark of your own; it is kept in your history and does not change the query
            null: "skip" leaves out rows in which the label is null, or a prediction that is an expression; it is the
                same question as with where: label != null, at its price: "skip"
            prediction: instead of a model: a row expression, such as a column of predictions
            predictions: instead of a model, where the holdout has features=public: a number for each row of the
                download of features, in the order of row_id: the holdout's, then the check part's; also as bytes, or by
                the digest of numbers that were sent before. Of several classes {"classes": […], "of": […]}, the numbers
                of each class (MODELS.md)
            weight: what has one vote: unit or row; default: unit. With row every row counts once, but no unit counts
                for more than largest_unit rows, which is on the card. Where units have several rows, under gaussian it
                costs one more question: "unit", "row"; default: unit
            where: a condition: only rows for which it holds count; under gaussian it costs one more question
        """
        return self._ask(
            {
                "type": "r2",
                "label": label,
                "range": range,
                "features": features,
                "guess": guess,
                "half_width": half_width,
                "measure": measure,
                "model": model,
                "note": note,
                "null": null,
                "prediction": prediction,
                "predictions": predictions,
                "weight": weight,
                "where": where,
            }
        )

    def auc(
        self,
        label: Expr | None = None,
        *,
        bins: float | None = None,
        edges: Sequence[float] | None = None,
        features: Mapping[str, Expr] | None = None,
        guess: float | None = None,
        half_width: float | None = None,
        measure: bool | None = None,
        model: Model | None = None,
        note: str | None = None,
        null: Literal["skip"] | None = None,
        prediction: Expr | None = None,
        predictions: Sequence[float | None] | Mapping[str, Any] | Mapping[str, Any] | Mapping[str, Any] | Mapping[str, Any] | Mapping[str, Any] | None = None,
        where: Expr | None = None,
    ) -> R:
        r"""The area under the ROC curve of a score that is counted in bins: how probable it is that a row with the
        label has a score in a higher bin than a row without it, where a tie counts one half. Edges of bins are
        declared, or are quantiles of the score in the training part. Under guess_and_check take 50 bins or more.

        Price in questions: 1; where units have several rows, under thresholdout and split, two a bin; under gaussian
        one a bin, with where one more.

        Args:
            label: the truth: a condition; default: the holdout's label, which the canonical form then names
            bins: how many bins to make of the training part's scores, 2 to 100; default: 10; default: 10
            edges: the edges of the bins of the prediction, after its link: 1 to 99 rising numbers; a bin is (e, e'] for
                neighbours
            features: features of the model that are not columns, by name: row expressions that are numbers, or
                conditions, which count as 1 and 0
            guess: under guess_and_check: your own guess of the answer; default: the answer on the check part where a
                model or predictions are asked about, else on the training and the check part together
            half_width: under guess_and_check: the half-width that you want, if your guess passes or the answer is
                measured; default: planned by the server
            measure: under guess_and_check: true to be told where the holdout is, whatever was guessed: a narrow
                interval, for a token and a fortieth of all questions, rounded up. Of means and shares, also under a
                condition. false to have a guess checked. Default: measured where only that reaches your half_width, or
                where the guess would be a model's score (not the difference of two) on rows that it may have been
                fitted to, while less than half of the tokens are spent; else checked
            model: the model, as docs/MODELS.md describes: linear, softmax, trees, a network, a kernel machine, nearest
                neighbors or a mixture of these over the table's columns and what it computes of them
            note: a remark of your own; it is kept in your history and does not change the query
            null: "skip" leaves out rows in which the label is null, or a prediction that is an expression; it is the
                same question as with where: label != null, at its price: "skip"
            prediction: instead of a model: a row expression, such as a column of predictions
            predictions: instead of a model, where the holdout has features=public: a number for each row of the
                download of features, in the order of row_id: the holdout's, then the check part's; also as bytes, or by
                the digest of numbers that were sent before. Of several classes {"classes": […], "of": […]}, the numbers
                of each class (MODELS.md)
            where: a condition: only rows for which it holds count; under gaussian it costs one more question
        """
        return self._ask(
            {
                "type": "auc",
                "label": label,
                "bins": bins,
                "edges": edges,
                "features": features,
                "guess": guess,
                "half_width": half_width,
                "measure": measure,
                "model": model,
                "note": note,
                "null": null,
                "prediction": prediction,
                "predictions": predictions,
                "where": where,
            }
        )

    def calibration(
        self,
        label: Expr | None = None,
        *,
        edges: Sequence[float] | None = None,
        features: Mapping[str, Expr] | None = None,
        form: Literal["curve", "gap"] | None = None,
        guess: Mapping[str, float] | None = None,
        model: Model | None = None,
        note: str | None = None,
        null: Literal["skip"] | None = None,
        prediction: Expr | None = None,
        predictions: Sequence[float | None] | Mapping[str, Any] | Mapping[str, Any] | Mapping[str, Any] | Mapping[str, Any] | Mapping[str, Any] | None = None,
        where: Expr | None = None,
    ) -> R:
        r"""A reliability diagram: for each bin of the predicted probability, the share of rows in it, the share of
        these that have the label, and their mean prediction. The form gap is one number for each bin: how far the share
        of its rows that have the label is above their mean prediction. Predictions outside the edges are in no bin.
        Bins for which no tokens are left are null.

        Price in questions: 1 a number; under gaussian 5; gap 4.

        Args:
            label: the truth: a condition; default: the holdout's label, which the canonical form then names
            edges: rising numbers, 2 to 1001 of them: bins are [a, b) for neighbours, the last one [a, b]; default:
                tenths
            features: features of the model that are not columns, by name: row expressions that are numbers, or
                conditions, which count as 1 and 0
            form: curve: of each bin three items, its share of the rows, the share of these that have the label, and
                their mean prediction; gap: of each bin one, the second of these minus the third: "curve", "gap";
                default: curve
            guess: under guess_and_check: your own guesses of some of the answer's items, by their names; default: what
                the check part says where a model or predictions are asked about, else the training and the check part
                together
            model: the model, as docs/MODELS.md describes: linear, softmax, trees, a network, a kernel machine, nearest
                neighbors or a mixture of these over the table's columns and what it computes of them
            note: a remark of your own; it is kept in your history and does not change the query
            null: "skip" leaves out rows in which the label is null, or a prediction that is an expression; it is the
                same question as with where: label != null, at its price: "skip"
            prediction: instead of a model: a row expression, such as a column of predictions
            predictions: instead of a model, where the holdout has features=public: a number for each row of the
                download of features, in the order of row_id: the holdout's, then the check part's; also as bytes, or by
                the digest of numbers that were sent before. Of several classes {"classes": […], "of": […]}, the numbers
                of each class (MODELS.md)
            where: a condition: only rows for which it holds are in a bin; costs nothing more
        """
        return self._ask(
            {
                "type": "calibration",
                "label": label,
                "edges": edges,
                "features": features,
                "form": form,
                "guess": guess,
                "model": model,
                "note": note,
                "null": null,
                "prediction": prediction,
                "predictions": predictions,
                "where": where,
            }
        )

    def confusion(
        self,
        label: Expr | None = None,
        *,
        features: Mapping[str, Expr] | None = None,
        guess: Mapping[str, float] | None = None,
        model: Model | None = None,
        note: str | None = None,
        null: Literal["skip"] | None = None,
        prediction: Expr | None = None,
        predictions: Sequence[float | None] | Mapping[str, Any] | Mapping[str, Any] | Mapping[str, Any] | Mapping[str, Any] | Mapping[str, Any] | None = None,
        threshold: float | None = None,
        where: Expr | None = None,
    ) -> R:
        r"""The confusion matrix of a classifier: for each pair of a label and a predicted class, the share of rows that
        have it. Rows whose label is no class of the model are not counted. All shares are one vector, whose noise does
        not grow with their number. With where they are shares of the rows for which the condition holds. Shares for
        which no tokens are left are null.

        Price in questions: 1 a share; under gaussian at most 4.

        Args:
            label: the truth: a condition, or a column of 0 and 1, for a model with one output; a column for one with
                classes; default: the holdout's label, which the canonical form then names
            features: features of the model that are not columns, by name: row expressions that are numbers, or
                conditions, which count as 1 and 0
            guess: under guess_and_check: your own guesses of some of the answer's items, by their names; default: what
                the check part says where a model or predictions are asked about, else the training and the check part
                together
            model: the model, as docs/MODELS.md describes: linear, softmax, trees, a network, a kernel machine, nearest
                neighbors or a mixture of these over the table's columns and what it computes of them
            note: a remark of your own; it is kept in your history and does not change the query
            null: "skip" leaves out rows in which the label is null, or a prediction that is an expression; it is the
                same question as with where: label != null, at its price: "skip"
            prediction: instead of a model: a row expression, such as a column of predictions
            predictions: instead of a model, where the holdout has features=public: a number for each row of the
                download of features, in the order of row_id: the holdout's, then the check part's; also as bytes, or by
                the digest of numbers that were sent before. Of several classes {"classes": […], "of": […]}, the numbers
                of each class (MODELS.md)
            threshold: true is predicted where the prediction, after its link, is above it; default: the model's own
                threshold, else 0.5
            where: a condition: only rows for which it holds count; under gaussian it costs at most one more question
        """
        return self._ask(
            {
                "type": "confusion",
                "label": label,
                "features": features,
                "guess": guess,
                "model": model,
                "note": note,
                "null": null,
                "prediction": prediction,
                "predictions": predictions,
                "threshold": threshold,
                "where": where,
            }
        )

    def gradient(
        self,
        label: Expr | None = None,
        *,
        clip: float,
        model: Model,
        features: Mapping[str, Expr] | None = None,
        note: str | None = None,
    ) -> R:
        r"""The gradient of a linear model's mean loss by its intercept and weights: of the log loss with the link
        logit, of the squared error (not halved) with identity. A row's gradient that is longer than clip is scaled down
        to the length clip. With it you can train a model on the holdout itself.

        Price in questions: 1 a weight; under gaussian 1.

        Args:
            label: the truth: a condition with the link logit, a number with identity; default: the holdout's label,
                which the canonical form then names
            clip: the largest length of a row's gradient; intervals are proportional to it
            model: a linear model with one output, as docs/MODELS.md describes; name all weights that you want to fit,
                for example as 0
            features: features of the model that are not columns, by name: row expressions that are numbers, or
                conditions, which count as 1 and 0
            note: a remark of your own; it is kept in your history and does not change the query
        """
        return self._ask(
            {
                "type": "gradient",
                "label": label,
                "clip": clip,
                "model": model,
                "features": features,
                "note": note,
            }
        )
