"""The synchronous client: a server, and its data sets."""

from __future__ import annotations

import os
import ssl
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar, Union

import httpx

from . import _connect, _steps, _wire, tables
from ._dataset import Holdout, registering_of, settings_of
from ._view import Card, History, Plan
from .answers import Answer, Budget, Explanation, NotAsked

T = TypeVar("T")
Verify = Union[bool, str, ssl.SSLContext]

TIMEOUT = httpx.Timeout(120.0, connect=10.0)  # seconds; the server itself gives up after a minute


def connect(
    source: str | os.PathLike[str] | None = None,
    *,
    key: _wire.Key | None = None,
    verify: Verify = True,
    cert: Any = None,
    retries: int = _wire.RETRIES,
    timeout: float | httpx.Timeout = TIMEOUT,
    grant: str | None = None,
) -> Server:
    """A connection to a server.

    Args:
        source: its URL, or the data directory of a server on this machine, or its connect.json; default: the environment
            (HOLDOUTD_URL and HOLDOUTD_KEY, or HOLDOUTD_CONNECT), then holdoutd-data here, then what `holdoutd demo` left for you
        key: the key, hk_…, or @FILE; or a function without arguments that returns a token of the server's OpenID Connect issuer, and
            is called for every request, since tokens end; default: as for source
        verify: of https: True for the system's authorities, the path of a PEM file for your own, or an ssl.SSLContext
        cert: of https: a client certificate, as httpx takes it
        retries: how often a request is sent again where that is safe
        grant: the id of the grant that pays, where the key has several of a holdout; default: HOLDOUTD_GRANT, or the only one
        timeout: seconds without a byte after which a request is given up
    """
    url, secret = _connect.place(source, key)
    server = Server(url, secret, verify=verify, cert=cert, retries=retries, timeout=timeout, grant=grant)
    server.version()  # a wrong URL or key is known at once
    return server


class Server:
    """One server, seen with one key. It may be used from many threads."""

    def __init__(
        self,
        url: str,
        key: _wire.Key,
        *,
        verify: Verify = True,
        cert: Any = None,
        retries: int = _wire.RETRIES,
        timeout: float | httpx.Timeout = TIMEOUT,
        grant: str | None = None,
    ):
        self.url = url.rstrip("/")
        self._retries = retries
        self._http = httpx.Client(
            base_url=self.url,
            auth=_wire.Bearer(key),
            headers=_wire.on_grant(grant),
            verify=_wire.verification(verify),
            cert=cert,
            timeout=timeout,
        )

    def __repr__(self) -> str:
        return f"<holdoutd server {self.url}>"

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
        """Makes a holdout of a table: a pandas or polars DataFrame, a pyarrow Table, or the path of a Parquet file.

        The server splits it, keeps the holdout secret and fixes the guarantee. The same table with the same settings is the same
        holdout, so that a notebook may be run again. A table that is too large to be divided at once takes minutes; Ctrl-C, the
        server is asked to cancel it.

        Args:
            table: the whole table; without it, with split="given", the parts training_part, holdout_part and, if there is one,
                check_part
            name: what people call it
            progress: whether to show how much was sent; default: if a person is looking
            settings: holdout=0.3, questions=, label=, unit=, confidence=, mechanism=, … (the server's upload parameters); without
                questions the server takes as many as still have useful intervals, and the card says how many (chosen)
        """
        parts = {n: t for n, t in (("training", training_part), ("check", check_part), ("holdout", holdout_part)) if t is not None}
        params, bar = settings_of(table, parts, name, settings, progress)
        card = self._run(_steps.create(table, parts or None, params, bar))
        if _steps.is_registration(card):
            card = self._finish(card, params, progress)
        return Dataset(self, card, tables.kind_of(table if table is not None else training_part))

    def card(self, table: Any, *, name: str | None = None, **settings: Any) -> Card:
        """The card that upload() would give, with its guarantee, widths and warnings. Nothing is created."""
        params, _ = settings_of(table, {}, name, {**settings, "dry_run": True}, False)
        return Card(self._run(_steps.create(table, None, params, None)))

    def sources(self) -> list[dict[str, Any]]:
        """The places whose tables can become holdouts without being uploaded, and whether each answers now. For admins."""
        return self._run(_steps.sources())

    def register(
        self,
        source: str,
        table: str,
        *,
        name: str | None = None,
        key: Sequence[str] | None = None,
        progress: bool | None = None,
        **settings: Any,
    ) -> Dataset:
        """Makes a holdout of a table of a source, which stays where it is, and waits until it is there. For admins.

        A large table takes minutes. Ctrl-C, the server is asked to cancel it. The same table with the same settings is the
        same holdout.

        Args:
            source: the name of the source; sources() has them
            table: the table as it is named there, such as "db.flights", or a folder below that of the source
            name: what people call the holdout
            key: the columns that identify a row, where rows are the units and the source is a database
            progress: whether to show how far it is; default: if a person is looking
            settings: as for upload()
        """
        given = {"name": name, "key": key, **settings}
        return Dataset(self, self._finish(self._run(_steps.begin(source, table, given)), given, progress))

    def _finish(self, begun: dict[str, Any], given: dict[str, Any], progress: bool | None) -> dict[str, Any]:
        try:
            return self._run(_steps.finish(begun["id"], given, registering_of(progress)))
        except KeyboardInterrupt:
            self._run(_steps.cancel(begun["id"]))
            raise

    def begin_registration(
        self, source: str, table: str, *, name: str | None = None, key: Sequence[str] | None = None, **settings: Any
    ) -> dict[str, Any]:
        """register() without the waiting: the registration, whose id the other calls take. For admins."""
        return self._run(_steps.begin(source, table, {"name": name, "key": key, **settings}))

    def registration(self, registration_id: str) -> dict[str, Any]:
        """How far a registration is: its stage, and of its rows how many are done. For admins."""
        return self._run(_steps.registration(registration_id))

    def registrations(self) -> list[dict[str, Any]]:
        """Those that are under way, and those that have ended since the server started. For admins."""
        return self._run(_steps.registrations())

    def await_registration(self, registration_id: str, *, progress: bool | None = None) -> Dataset:
        """The holdout that a registration becomes. For admins."""
        return Dataset(self, self._run(_steps.finish(registration_id, {}, registering_of(progress))))

    def cancel_registration(self, registration_id: str) -> dict[str, Any]:
        """Ends a registration; what it has made at the source is removed. For admins."""
        return self._run(_steps.cancel(registration_id))

    def holdout(self, name_or_id: str, *, kind: tables.Kind | None = None) -> Dataset:
        """The holdout with this id, or with this name if only one has it. kind is the library that its tables are read with."""
        return Dataset(self, self._run(_steps.find(name_or_id)), kind)

    def holdouts(self) -> list[Dataset]:
        """All holdouts that the key may see."""
        return [Dataset(self, card) for card in self._run(_steps.holdouts())]

    def plan(self, n: int, questions: int | None = None, **request: Any) -> Plan:
        """What every method promises for a holdout of n units. It looks at no data and costs nothing."""
        return Plan(self._run(_steps.plan({"n": n, "questions": questions, **request})))

    def new_key(
        self, name: str, scope: str = "analyst", *, holdouts: Sequence[str] | None = None, only_granted: bool = False
    ) -> dict[str, Any]:
        """A new key; its secret is shown this once. For admins.

        holdouts are the ids of those that it may see, default: all. With only_granted it sees those alone that it has a grant of.
        """
        return self._run(_steps.new_key(name, scope, holdouts, only_granted))

    def keys(self) -> list[dict[str, Any]]:
        """All keys, without their secrets. For admins."""
        return self._run(_steps.keys())

    def revoke_key(self, key_id: str) -> None:
        """Ends a key, at once. For admins."""
        self._run(_steps.act("DELETE", f"/v1/keys/{key_id}"))

    def end_grant(self, grant_id: str) -> None:
        """Ends a grant, and those that are parts of it. What is left of it can be spent by others again."""
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
        if call.pause:
            time.sleep(call.pause)
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
        request = self._http.build_request(call.method, call.path, **call.options(_chunks))
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

    def training(self, *, kind: tables.Kind | None = None, piece: int | None = None) -> Any:
        """The training part, which is yours to look at as often as you like.

        That of a large table of a source is in pieces, card.training_pieces of them: piece is one of them, from 0 on; default: all
        together.
        """
        return self.server._run(self._trained(kind or self.kind, piece))

    def features(self, *, kind: tables.Kind | None = None) -> Any:
        """The features of the holdout's rows, with their row_id, of a holdout that was made with features="public"."""
        return tables.read(self.server._run(self._downloaded("features")), kind or self.kind)

    def save_training(self, path: str | os.PathLike[str]) -> None:
        """Writes the training part to a Parquet file, without holding it in memory.

        One in pieces becomes a folder of files, and those that are there already stay.
        """
        self.server._run(self._saved(Path(path)))

    def save_ledger(self, path: str | os.PathLike[str]) -> None:
        """Writes the ledger to a file, which `holdoutd verify` checks."""
        self.server._run(self._downloaded("ledger", Path(path)))

    def grant(
        self,
        holder: str,
        questions: int,
        *,
        tokens: int | None = None,
        rounds: int | None = None,
        shows: str | None = None,
        expires: _steps.When | None = None,
        may_grant: bool = False,
        name: str | None = None,
        parent: str | None = None,
    ) -> dict[str, Any]:
        """Grants a part of the budget to one key, which can spend no more than that, and nobody else can spend it.

        Args:
            holder: the id of the key, or of the holder of a token (oidc:…)
            questions: how many
            tokens: default: the same share of the tokens
            rounds: of a holdout with rounds, how many requests; default: 1
            shows: what of an answer its holder is shown: "full" (default), "value" (no intervals) or "bit" (the verdict alone)
            expires: when it ends by itself: a datetime, or a timedelta from now on
            may_grant: whether its holder may grant parts of it
            name: what it is for, for people
            parent: the id of the grant that it is a part of; default: the holdout's own budget, or the grant of who asks
        """
        rest = {"tokens": tokens, "rounds": rounds, "shows": shows, "may_grant": may_grant, "name": name, "parent": parent}
        return self.server._run(_steps.grant(self.id, holder, questions, expires, rest))

    def grants(self) -> list[dict[str, Any]]:
        """All grants of the holdout, ended ones too; of who is no admin their own and the parts of these."""
        return self.server._run(_steps.grants(self.id))

    def spending(self) -> dict[str, Any]:
        """Who has spent what, and on which grant. For admins."""
        return self.server._run(_steps.spending(self.id))

    @property
    def budget(self) -> Budget:
        """What is left, now."""
        return self.server._run(_steps.budget(self.id))

    def history(self) -> History:
        """Every answer so far, by anyone: a sequence, with frame() and a table in notebooks."""
        return History(self.server._run(_steps.history(self.id)), self.card)

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
