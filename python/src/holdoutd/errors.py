"""What can go wrong. Every error of the server is a ServerError; its subclasses are those that a program handles by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


class HoldoutdError(Exception):
    """The base of all errors of this package."""


class ConnectionFailed(HoldoutdError):
    """No reply came from the server, though the request was sent again as often as that is safe."""


class NotConfigured(HoldoutdError):
    """There is no URL or no key to connect with."""


class CannotExport(HoldoutdError):
    """The model cannot be sent to the server, and the message says what can be done instead."""


class SearchEnded(BaseException):
    """Ends a search whose scorer could not ask. Its cause is the error, and its text that error's.

    It is no Exception, since scikit-learn takes every Exception of a scorer for a score that is nan, and goes on."""


@dataclass(frozen=True)
class Violation:
    """One thing that is wrong with a request.

    pointer names the place in the query (RFC 6901), or parameter the setting. line and column, from 1, lie in the expression there.
    """

    detail: str
    pointer: str | None = None
    parameter: str | None = None
    suggestion: str | None = None
    line: int | None = None
    column: int | None = None


class ServerError(HoldoutdError):
    """A refusal of the server (RFC 9457). Compare `code`; `detail` says what happened and what can be done.

    Attributes:
        status: the HTTP status
        code: the class of the problem, such as "budget-exhausted"
        detail: what happened this time
        violations: each thing that is wrong, in the order of the request
        members: all members of the problem, those of its class too
        request_id: what the server's log calls the request
        retry_after: the seconds after which the server says to ask again, or None
    """

    def __init__(self, status: int, members: Mapping[str, Any], request_id: str | None = None, retry_after: float | None = None):
        self.status = status
        self.members = dict(members)
        self.code: str = str(members.get("code", ""))
        self.detail: str = str(members.get("detail", "the reply is not a problem document"))
        self.violations = [Violation(**{k: v[k] for k in Violation.__dataclass_fields__ if k in v}) for v in members.get("errors", ())]
        self.request_id = request_id
        self.retry_after = retry_after
        super().__init__(self._text())

    def _text(self) -> str:
        lines = [f"{self.detail} [{self.status} {self.code}]".strip()]
        for v in self.violations:
            if v.detail in self.detail and (v.suggestion is None or v.suggestion in self.detail):
                continue  # said already
            at = v.pointer or v.parameter or ""
            place = f" (line {v.line}, column {v.column})" if v.line else ""
            meant = f"; did you mean {v.suggestion}?" if v.suggestion else ""
            lines.append(f"  {at}{place}: {v.detail}{meant}")
        return "\n".join(lines)


class BudgetExhausted(ServerError):
    """The budget cannot pay for the question. Questions that were answered before can still be asked.

    Attributes:
        requested: the questions that the request costs
        left: those that are left
        affordable: the questions that a smaller request may still cost
    """

    @property
    def requested(self) -> int | None:
        return self._whole("requested")

    @property
    def left(self) -> int | None:
        return self._whole("remaining")

    @property
    def affordable(self) -> int | None:
        return self._whole("affordable")

    def _whole(self, member: str) -> int | None:
        value = self.members.get(member)
        return value if isinstance(value, int) else None


class GrantExhausted(BudgetExhausted):
    """The grant of the key cannot pay for the question; the holdout may have more. Questions answered before can still be asked."""

    @property
    def grant(self) -> str:
        """The id of the grant that lacks it: the key's own, or one that it is a slice of. Ask whoever made it."""
        return str(self.members.get("grant", ""))


class EpsilonExhausted(ServerError):
    """The release would spend more than is left for all releases of the holdout. Nothing was spent."""

    @property
    def left(self) -> float:
        """What the releases of the holdout can still spend."""
        return float(self.members.get("remaining", 0))


class ReleasedBefore(ServerError):
    """Releases of other holdouts are of the same rows, or may have been forgotten. `earlier` names them, with what they have spent."""

    @property
    def earlier(self) -> list[dict[str, Any]]:
        """The other holdouts: `holdout`, `share` and `epsilon`."""
        return list(self.members.get("earlier_releases", []))


class QueryInvalid(ServerError):
    """The query, or a setting, is wrong. `violations` point to each place; nothing was spent."""

    @property
    def pointer(self) -> str | None:
        """Where the first thing is that is wrong, as a JSON pointer into the query."""
        return self.violations[0].pointer if self.violations else None


class TooNarrow(QueryInvalid):
    """No answer has the half-width that was asked for, checked or measured. A guess can pass at `least`; `planned` is the server's own."""

    @property
    def least(self) -> float:
        return float(self.members["least"])

    @property
    def planned(self) -> float:
        return float(self.members["planned"])


class TooDear(ServerError):
    """The request costs more questions than it may: ds.up_to(n) says that n are meant. Nothing was spent."""

    @property
    def requested(self) -> int:
        """The questions that it costs."""
        return int(self.members["requested"])


class UnitUndecided(ServerError):
    """A column of the table names something of which each has several rows, such as customers, and nobody said what one observation is.

    Say unit="COLUMN", and all rows of one value are on the same side of the split; or unit="row". Nothing was kept.
    """

    @property
    def choices(self) -> list[dict[str, Any]]:
        """What one observation may be: its `unit`, how many `units` there are, of how many `rows` each, and the planned `half_width`."""
        return list(self.members.get("choices", ()))


class HoldoutWarning(UserWarning):
    """What a card warns of: what may make its numbers say less than they seem to."""


class HoldoutExists(ServerError):
    """The same table was uploaded before. `holdout` is the id of its holdout."""

    @property
    def holdout(self) -> str:
        return str(self.members.get("holdout", ""))


class RowsKnown(ServerError):
    """Rows of the table are held out, or were shown, by another holdout. `overlaps` says by which, and how many.

    Use that holdout, or upload other rows. overlap="accepted" takes the table all the same, and its card says so for good.
    """

    @property
    def overlaps(self) -> list[dict[str, Any]]:
        """Of each earlier `holdout` what `matter` it is, and which `share` of the rows at least."""
        return list(self.members.get("overlaps", ()))


class LedgerUnavailable(ServerError):
    """The server cannot record an answer, so it gives none. Nothing was released."""


class NotFound(ServerError):
    """What was asked for is not there, or not there for this key."""


class NotAllowed(ServerError):
    """The key is missing, revoked or lacks the scope."""


class GrantEnded(NotAllowed):
    """The grant of the key has ended, or one that it is a slice of. Nothing was spent."""

    @property
    def grant(self) -> str:
        """The id of the grant that ended."""
        return str(self.members.get("grant", ""))

    @property
    def reason(self) -> str:
        """revoked or expired."""
        return str(self.members.get("reason", ""))


class NotShown(NotAllowed):
    """The grant of the key shows less of answers than this would say. Nothing was spent."""


_CLASSES: dict[str, type[ServerError]] = {
    "budget-exhausted": BudgetExhausted,
    "grant-exhausted": GrantExhausted,
    "grant-ended": GrantEnded,
    "not-shown": NotShown,
    "epsilon-exhausted": EpsilonExhausted,
    "released-before": ReleasedBefore,
    "invalid": QueryInvalid,
    "malformed": QueryInvalid,
    "max-questions": TooDear,
    "holdout-exists": HoldoutExists,
    "rows-known": RowsKnown,
    "unit-undecided": UnitUndecided,
    "unavailable": LedgerUnavailable,
    "holdout-damaged": LedgerUnavailable,
    "ledger-rolled-back": LedgerUnavailable,
    "not-found": NotFound,
    "unauthorized": NotAllowed,
    "forbidden": NotAllowed,
}


def error_of(status: int, members: Mapping[str, Any], request_id: str | None = None, retry_after: float | None = None) -> ServerError:
    """The exception for a reply that is an error."""
    cls = _CLASSES.get(str(members.get("code", "")), ServerError)
    if cls is QueryInvalid and {"least", "planned"} <= members.keys():
        cls = TooNarrow
    return cls(status, members, request_id, retry_after)
