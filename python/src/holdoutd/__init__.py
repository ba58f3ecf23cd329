"""Reuse a holdout set honestly.

    import holdoutd

    server = holdoutd.connect()
    ds = server.upload(df, name="flights", holdout=0.3, questions=1000)
    ds.fraction("delay > 15", where="origin == 'SFO'")

The server keeps the holdout secret and answers with intervals that hold for all questions together. Nothing statistical is
computed here.
"""

from importlib.metadata import PackageNotFoundError as _PackageNotFoundError
from importlib.metadata import version as _version
from typing import Any

from . import aio, expressions
from ._questions import TYPES, Questions
from ._view import Card, History, Plan
from .answers import Answer, Budget, Cost, Explanation, Item, Meter, NotAsked
from .client import Dataset, Server, connect
from .errors import (
    BudgetExhausted,
    CannotExport,
    ConnectionFailed,
    EpsilonExhausted,
    GrantEnded,
    GrantExhausted,
    HoldoutdError,
    HoldoutExists,
    HoldoutWarning,
    LedgerUnavailable,
    NotAllowed,
    NotConfigured,
    NotFound,
    NotShown,
    QueryInvalid,
    ReleasedBefore,
    RowsKnown,
    SearchEnded,
    ServerError,
    TooDear,
    TooNarrow,
    UnitUndecided,
    Violation,
)
from .expressions import Columns, Expression, column, maximum, minimum, where
from .reports import Report, ReportPlan


class _Queries(Questions[dict[str, Any]]):
    """Makes queries without asking them: for batch, explain, compare and argmax."""

    def _ask(self, query: dict[str, Any]) -> dict[str, Any]:
        return {k: v for k, v in query.items() if v is not None}


q = _Queries()
try:
    __version__ = _version("holdoutd")
except _PackageNotFoundError:  # run from its source
    __version__ = "0"

__all__ = [
    "TYPES",
    "Answer",
    "Budget",
    "BudgetExhausted",
    "CannotExport",
    "Card",
    "Columns",
    "ConnectionFailed",
    "Cost",
    "Dataset",
    "EpsilonExhausted",
    "Explanation",
    "Expression",
    "GrantEnded",
    "GrantExhausted",
    "History",
    "HoldoutExists",
    "HoldoutWarning",
    "HoldoutdError",
    "Item",
    "LedgerUnavailable",
    "Meter",
    "NotAllowed",
    "NotAsked",
    "NotConfigured",
    "NotFound",
    "NotShown",
    "Plan",
    "QueryInvalid",
    "ReleasedBefore",
    "Report",
    "ReportPlan",
    "RowsKnown",
    "SearchEnded",
    "Server",
    "ServerError",
    "TooDear",
    "TooNarrow",
    "UnitUndecided",
    "Violation",
    "aio",
    "column",
    "connect",
    "expressions",
    "maximum",
    "minimum",
    "q",
    "where",
]
