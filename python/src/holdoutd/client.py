"""The synchronous client: a server, and its data sets."""

from __future__ import annotations

import os
import ssl
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar, Union

import httpx

from . import _connect, _steps, _wire, tables
from ._dataset import Holdout, settings_of
from ._scores import Questioned
from ._view import Card, History, Plan
from .answers import Answer, Budget, Explanation, NotAsked
from .reports import Report, ReportPlan

T = TypeVar("T")
Verify = Union[bool, str, ssl.SSLContext]

TIMEOUT = httpx.Timeout(120.0, connect=10.0)  # seconds; the server itself gives up after a minute


def connect(
    source: str | os.PathLike[str] | None = None,
    *,
    key: str | None = None,
    verify: Verify = True,
    cert: Any = None,
    retries: int = _wire.RETRIES,
    timeout: float | httpx.Timeout = TIMEOUT,
) -> Server:
    """A connection to a server.

    Args:
        source: its URL, or the data directory of a server on this machine, or its connect.json; default: the environment
            (HOLDOUTD_URL and HOLDOUTD_KEY, or HOLDOUTD_CONNECT), then holdoutd-data here, then what `holdoutd demo` left for you
        key: the key, hk_…, or @FILE; default: as for source
        verify: of https: True for the system's authorities, the path of a PEM file for your own, or an ssl.SSLContext
        cert: of https: a client certificate, as httpx takes it
        retries: how often a request is sent again where that is safe
        timeout: seconds without a byte after which a request is given up; the card of an upload may take an hour
    """
    url, secret = _connect.find(source, key)
    server = Server(url, secret, verify=verify, cert=cert, retries=retries, timeout=timeout)
    if key is None or key.startswith("@"):  # whoever finds the key as this process did may connect as it did
        server._again = {"source": source, "key": key, "verify": verify, "cert": cert, "retries": retries, "timeout": timeout}
    server.version()  # a wrong URL or key is known at once
    return server


def _reconnected(arguments: dict[str, Any]) -> Server:
    return connect(**arguments)


class Server:
    """One server, seen with one key. It may be used from many threads."""

    def __init__(
        self,
        url: str,
        key: str,
        *,
        verify: Verify = True,
        cert: Any = None,
        retries: int = _wire.RETRIES,
        timeout: float | httpx.Timeout = TIMEOUT,
    ):
        self.url = url.rstrip("/")
        self._retries = retries
        self._again: dict[str, Any] | None = None  # the arguments of connect, without a key
        self._http = httpx.Client(
            base_url=self.url,
            headers={"Authorization": f"Bearer {key}"},
            verify=_wire.verification(verify),
            cert=cert,
            timeout=timeout,
        )

    def __repr__(self) -> str:
        return f"<holdoutd server {self.url}>"

    def __reduce__(self) -> tuple[Any, ...]:
        """A server is sent to another process as the place where it is, and where its key is: never the key."""
        if self._again is None:
            raise TypeError(
                "a connection whose key was given as text is not sent to other processes: set HOLDOUTD_KEY to the key, or to @FILE, and "
                "connect() without key=. Or stay in one process: n_jobs=None"
            )
        return _reconnected, (self._again,)

    def __enter__(self) -> Server:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Ends the connections."""
        self._http.close()

    def version(self) -> str:
        """The server's version."""
        self._run(_steps.holdouts())  # needs the key, unlike /version
        return str(self._run(_one("/version")).json()["version"])

    def upload(
        self,
        table: Any = None,
        *,
        name: str | None = None,
        training_part: Any = None,
        check_part: Any = None,
        holdout_part: Any = None,
        progress: bool | None = None,
        **settings: Any,
    ) -> Dataset:
        """Makes a holdout of a table: a pandas or polars DataFrame, a pyarrow Table, the path of a Parquet file, or of a folder of them.

        The server splits it, keeps the holdout secret and fixes the guarantee. The same table with the same settings is the same
        holdout, so that a notebook may be run again.

        Args:
            table: the whole table; without it path="NAME/TABLE" of one in a source of the server's operator, or with
                split="given" the parts training_part, holdout_part and, if there is one, check_part
            name: what people call it
            progress: whether to show how much was sent; default: if a person is looking
            settings: holdout=0.3, questions=, label=, unit=, confidence=, mechanism=, … (the server's upload parameters; cells= may be
                a dict, such as {"member": [True, False], "age": [18, 40, 65]}); without
                questions the server takes as many as still have useful intervals, and the card says how many (chosen)

        What the card warns of is a HoldoutWarning. Where a column names something of which each has several rows, such as customers,
        unit= must be said: UnitUndecided has the choices.
        """
        parts = {n: t for n, t in (("training", training_part), ("check", check_part), ("holdout", holdout_part)) if t is not None}
        params, bar = settings_of(table, parts, name, settings, progress)
        card = self._run(_steps.create(table, parts or None, params, bar))
        ds = Dataset(self, card, tables.kind_of(table if table is not None else training_part))
        ds._warn()
        return ds

    def card(self, table: Any = None, *, name: str | None = None, **settings: Any) -> Card:
        """The card that upload() would give, with its guarantee, widths and warnings. Nothing is created."""
        params, _ = settings_of(table, {}, name, {**settings, "dry_run": True}, False)
        return Card(self._run(_steps.create(table, None, params, None)))

    def holdout(self, name_or_id: str, *, kind: tables.Kind | None = None) -> Dataset:
        """The holdout with this id, or with this name if only one has it. kind is the library that its tables are read with."""
        ds = Dataset(self, self._run(_steps.find(name_or_id)), kind)
        ds._warn()
        return ds

    def holdouts(self) -> list[Dataset]:
        """All holdouts that the key may see."""
        return [Dataset(self, card) for card in self._run(_steps.holdouts())]

    def plan(self, n: int, questions: int | None = None, **request: Any) -> Plan:
        """What every method promises for a holdout of n units. It looks at no data and costs nothing."""
        return Plan(self._run(_steps.plan({"n": n, "questions": questions, **request})))

    def new_key(self, name: str, scope: str = "analyst", *, oidc_subject: str | None = None) -> dict[str, Any]:
        """A new key; its secret is shown this once. With oidc_subject it has none: that subject's tokens stand for it. For admins."""
        return self._run(_steps.new_key(name, scope, oidc_subject))

    def keys(self) -> list[dict[str, Any]]:
        """All keys, without their secrets. For admins."""
        return self._run(_steps.keys())

    def revoke_key(self, key_id: str) -> None:
        """Ends a key, at once. For admins."""
        self._run(_steps.act("DELETE", f"/v1/keys/{key_id}"))

    def grants(self) -> list[dict[str, Any]]:
        """The grants with what is spent of each and what is left: an admin sees all, other keys their own."""
        return self._run(_steps.grants())

    def new_grant(
        self,
        key_id: str,
        holdout_id: str,
        questions: int,
        *,
        tokens: int | None = None,
        parent: str | None = None,
        expires: datetime | str | None = None,
        shows: str = "full",
    ) -> dict[str, Any]:
        """A slice of a holdout's budget for a key with the scope granted. It never changes. For admins.

        Args:
            key_id: whose it is; new_key(name, "granted") makes one
            holdout_id: the holdout's id
            questions: how many it may spend, together with the grants below it
            tokens: how many it may spend; default: it has no limit of its own
            parent: the id of the grant that it is a slice of; default: of the holdout's own budget
            expires: when it ends, by the server's clock; default: never
            shows: what it shows of answers: full; value, the numbers without intervals; or bit, whether the verdict is yes
        """
        more = {"tokens": tokens, "parent": parent, "expires": expires, "shows": shows}
        return self._run(_steps.new_grant(key_id, holdout_id, questions, **more))

    def revoke_grant(self, grant_id: str) -> None:
        """Ends a grant and those below it, at once. For admins."""
        self._run(_steps.act("DELETE", f"/v1/grants/{grant_id}"))

    def _run(self, steps: _wire.Steps[T]) -> T:
        """Drives steps to their end."""
        try:
            call = next(steps)
            while True:
                try:
                    reply = self._send(call)
                except Exception as e:
                    call = steps.throw(e)
                else:
                    call = steps.send(reply)
        except StopIteration as end:
            result: T = end.value
            return result

    def _send(self, call: _wire.Call) -> _wire.Reply:
        attempt = 0
        while True:
            try:
                return self._attempt(call)
            except Exception as error:
                pause = _wire.next_pause(error, call, attempt, self._retries)
                if pause is None:
                    raise _wire.failed(error, self.url) from error.__cause__
            time.sleep(pause)
            attempt += 1

    def _attempt(self, call: _wire.Call) -> _wire.Reply:
        request = self._http.build_request(
            call.method, call.path, **call.options(_chunks, self.url), timeout=call.waits(self._http.timeout)
        )
        response = self._http.send(request, stream=True)
        try:
            if call.save_to is not None and response.status_code < 300:
                with call.save_to.open("wb") as file:
                    for chunk in response.iter_bytes():
                        file.write(chunk)
                return _wire.Reply(response.status_code, response.headers, b"")
            reply = _wire.Reply(response.status_code, response.headers, response.read())
        finally:
            response.close()
        if reply.status >= 300:
            raise _wire.problem(reply)
        return reply


def _one(path: str) -> _wire.Steps[_wire.Reply]:
    return (yield _wire.Call("GET", path))


def _chunks(call: _wire.Call, body: _wire.Body) -> Iterator[bytes]:
    file = body.open()
    sent = 0
    while chunk := file.read(_wire.CHUNK):
        yield chunk
        sent += len(chunk)
        if call.progress:
            call.progress(sent, body.size)


class Dataset(Holdout[Answer]):
    """A holdout, with its training part and its budget. Every query type is a method that asks it."""

    def __init__(self, server: Server, card: Mapping[str, Any], kind: tables.Kind | None = None):
        super().__init__(card, kind)
        self.server = server

    def ask(self, query: Mapping[str, Any]) -> Answer:
        """Asks one query, as holdoutd.q makes it or as a dict."""
        return self._ask(dict(query))

    def _ask(self, query: dict[str, Any]) -> Answer:
        return self.server._run(self._asked(query))

    def batch(self, queries: Sequence[Mapping[str, Any]], *, partial: bool = False) -> list[Answer | NotAsked]:
        """Asks many queries in one pass over the data: all or none, or with partial as many as the budget allows."""
        return self.server._run(self._batched(queries, partial))

    def explain(self, query: Mapping[str, Any]) -> Explanation:
        """What a query would mean, cost and tell. It costs nothing and touches no holdout row."""
        return self.server._run(self._explained(query))

    def training(self, *, kind: tables.Kind | None = None) -> Any:
        """The training part, which is yours to look at as often as you like."""
        content = self.server._run(self._downloaded("training"))
        return self._training.keep(tables.read(content, kind or self.kind, self.card.categories))

    def features(self, *, kind: tables.Kind | None = None) -> Any:
        """The features of the holdout's rows, with their row_id, of a holdout that was made with features="public"."""
        content = self.server._run(self._downloaded("features"))
        return tables.read(content, kind or self.kind, self.card.categories)

    def retire(self) -> None:
        """Ends the questions for good and releases the rows, which retired() then gives. Earlier answers replay. For admins.

        Upload later rows with succeeds=ds.id for the holdout that comes after it.
        """
        self.card = Card(self.server._run(_steps.retire(self.id)))

    def retired(self, *, kind: tables.Kind | None = None) -> Any:
        """The rows of a retired holdout, with those of its check part: more rows to train on."""
        content = self.server._run(self._downloaded("retired"))
        return tables.read(content, kind or self.kind, self.card.categories)

    def save_training(self, path: str | os.PathLike[str]) -> None:
        """Writes the training part to a Parquet file, without holding it in memory."""
        self.server._run(self._downloaded("training", Path(path)))

    def save_ledger(self, path: str | os.PathLike[str]) -> None:
        """Writes the ledger to a file, which `holdoutd verify` checks."""
        self.server._run(self._downloaded("ledger", Path(path)))

    @property
    def budget(self) -> Budget:
        """What is left, now: to a key with a grant, of the grant."""
        return self.server._run(_steps.budget(self.id))

    def spending(self) -> list[dict[str, Any]]:
        """What each key has spent, the most first. For admins."""
        return self.server._run(_steps.spending(self.id))

    def history(self) -> History:
        """Every answer so far, by anyone: a sequence, with frame() and a table in notebooks."""
        return History(self.server._run(_steps.history(self.id)), self.card)

    def report(
        self,
        questions: Questioned | None = None,
        *,
        metric: str = "accuracy",
        title: str = "",
        close: bool = False,
        columns: Any = None,
        texts: Mapping[str, tuple[str, str]] | None = None,
    ) -> Report | ReportPlan:
        """The final report: one batch of exact answers, after which the holdout answers nothing more.

        Its intervals are the narrowest that a holdout gives, and hold together with all earlier ones. Without close it says how wide they
        would be, at no cost. Without questions it is the report of a closed holdout.

        Args:
            questions: a list of queries and of fitted models, or a dict of them by name
            metric: what is measured of models, as in score
            title: a title for the report
            close: closes the holdout for good; for admins
            columns: of models: as in score
            texts: of models: as in score
        """
        return self.server._run(self._reported(questions, metric, title, close, columns, texts))

    def save_report(self, path: str | os.PathLike[str]) -> None:
        """Writes the report of a closed holdout to a file, as a page that loads nothing: to print, to send, to attach."""
        self.server._run(self._downloaded("report.html", Path(path)))

    def release(
        self,
        *,
        epsilon: float,
        columns: Sequence[str | Mapping[str, Any]] = (),
        release_epsilon: float | None = None,
        rows_per_unit: int | None = None,
        earlier_releases: str | None = None,
    ) -> dict[str, Any]:
        """Private statistics of the training part that may be shown to people who have nothing else of it. For admins.

        What it spends is recorded before it is shown; the same release again is the recorded one, at no cost.

        Args:
            epsilon: what the release spends: pure differential privacy for each unit of the training part
            columns: names, or for example {"name": "age", "low": 18, "high": 90, "edges": [40, 65]} or {"name": "city", "texts": ["Rome"]};
                take bounds, edges and texts that are known without a look at the rows
            release_epsilon: what all releases of the holdout may spend together, for ever; the first one says it (default 3)
            rows_per_unit: at most so many rows of a unit count (default 1); not where units are rows
            earlier_releases: "accepted" makes the release although releases of other holdouts are of the same rows; they add up, and
                the cards say so for good
        """
        members = {
            "epsilon": epsilon,
            "release_epsilon": release_epsilon,
            "rows_per_unit": rows_per_unit,
            "earlier_releases": earlier_releases,
            "columns": [{"name": c} if isinstance(c, str) else dict(c) for c in columns],
        }
        return self.server._run(_steps.release(self.id, members))

    def releases(self) -> dict[str, Any]:
        """All releases of the training part, with what they have spent and what is left. For admins."""
        return self.server._run(_steps.releases(self.id))

    def plan(self, questions: int | None = None, **request: Any) -> Plan:
        """What so many questions would get from a holdout of this size, by every method."""
        return Plan(self.server._run(self._planned(questions, request)))

    def plot(self, **options: Any) -> Any:
        """A forest plot of every answer so far, with the curve of the budget. Needs matplotlib."""
        from .plot import forest

        return forest(self.history(), self.budget, **options)

    def cv(self) -> list[tuple[Any, Any]]:
        """One split for scikit-learn's searches: fit on the whole training part, and let a scorer of this holdout judge."""
        from .sklearn import one_split

        return one_split(self.card.rows["training"])

    def scorer(self, metric: str = "accuracy", **members: Any) -> Any:
        """A scorer for scikit-learn that asks the holdout once for each candidate: use it with cv=ds.cv()."""
        from .sklearn import HoldoutScorer

        return HoldoutScorer(self, metric, members)

    def delete(self) -> None:
        """Removes the holdout's rows and secrets. Its table stays known. For admins."""
        self.server._run(_steps.act("DELETE", _steps.path(self.id)))
